"""Where parameter files are looked for, and whether what was found is published or for development.

Searched in this order: the folder that the user names; the one in FIL_PROOFS_PARAMETER_CACHE; its usual
default, /var/tmp/filecoin-proof-parameters; cuzk's own folder for development parameters.

A `.params` file begins with the bytes of its `.vk` file, whose digest the manifest knows. So the first
kilobytes tell what a file of 45 GB claims to be, without reading it:

    the key is the manifest's                        published; whether the rest is whole, `checked` finds out
    another key, in cuzk's own folder or marked      for development
    a name that the manifest does not have           for development
    another key elsewhere                            an error: damaged, or made by somebody who did not say so
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cuzk.errors import ParameterError
from cuzk.folders import data_folder
from cuzk.groth16.development import is_marked
from cuzk.groth16.manifest import entry_of
from cuzk.groth16.parameters import read_key_of
from cuzk.groth16.verifying_key import VerifyingKey, read_verifying_key

FOLDER_VARIABLE = "FIL_PROOFS_PARAMETER_CACHE"
USUAL_FOLDER = Path("/var/tmp/filecoin-proof-parameters")


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A `.params` or `.vk` file. No network accepts proofs of one that `is_development`: tell the user."""

    path: Path
    key: VerifyingKey
    is_development: bool


def development_folder() -> Path:
    """Where development parameters go unless the user names another folder."""
    return data_folder() / "parameters"


def search_folders(explicit: Path | None = None) -> tuple[Path, ...]:
    """The folders to search, in order, whether they exist or not."""
    variable = os.environ.get(FOLDER_VARIABLE)
    named = [] if explicit is None else [explicit]
    of_variable = [Path(variable)] if variable else []
    return (*named, *of_variable, USUAL_FOLDER, development_folder())


def find_parameters(stem: str, *, sector_size: str, explicit: Path | None = None) -> Found:
    """The first `<stem>.params` of the search. `sector_size` ("32GiB") is for the advice in errors.

    Raises ParameterError when there is none, or the first is damaged or contradicts the manifest.
    """
    path = _first(f"{stem}.params", stem, sector_size, explicit)
    return _classified(path, stem, sector_size, read_key_of(path))


def find_verifying_key(stem: str, *, sector_size: str, explicit: Path | None = None) -> Found:
    """The first `<stem>.vk` of the search; the rest as for find_parameters."""
    path = _first(f"{stem}.vk", stem, sector_size, explicit)
    return _classified(path, stem, sector_size, read_verifying_key(path))


def _first(name: str, stem: str, sector_size: str, explicit: Path | None) -> Path:
    if explicit is not None and not explicit.is_dir():
        raise ParameterError(
            "there is no such folder for parameters", where=str(explicit), next="name an existing folder"
        )
    folders = search_folders(explicit)
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    raise ParameterError(
        f"{name} is missing",
        where="searched " + ", ".join(str(folder) for folder in folders),
        next=_how_to_get(stem, sector_size),
    )


def _how_to_get(stem: str, sector_size: str) -> str:
    generate = (
        f"`cuzk params generate --sector-size {sector_size} --insecure-dev` makes parameters for development"
    )
    if entry_of(f"{stem}.params") is None:
        return generate
    return f"`cuzk params fetch --sector-size {sector_size}` gets the published ones, {generate}"


def _classified(path: Path, stem: str, sector_size: str, key: VerifyingKey) -> Found:
    published = entry_of(f"{stem}.vk")
    if published is not None and key.digest == published.digest:
        return Found(path=path, key=key, is_development=False)
    own = path.parent.resolve() == development_folder().resolve()
    if published is None or own or is_marked(path.parent, stem, key.digest):
        return Found(path=path, key=key, is_development=True)
    raise ParameterError(
        f"the manifest contradicts the file: its verifying key has digest {key.digest}, the published one "
        f"{published.digest}",
        where=str(path),
        next=f"remove the file and get it again ({_how_to_get(stem, sector_size)}), or, if you made it "
        f"yourself for development, move it to {development_folder()}",
    )
