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
from cuzk.groth16.parameters.development import is_marked
from cuzk.groth16.parameters.manifest import entry_of, is_published
from cuzk.groth16.parameters.params_file import read_key_of
from cuzk.groth16.parameters.verifying_key import VerifyingKey, read_verifying_key
from cuzk.sector.claim import SHORT, CircuitShape

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


def find_parameters(shape: CircuitShape, *, explicit: Path | None = None) -> Found:
    """The first parameter file of the search for that circuit.

    Raises ParameterError when there is none, or the first is damaged or contradicts the manifest.
    """
    path = _first(shape, ".params", explicit)
    return _classified(path, shape, read_key_of(path))


def find_verifying_key(shape: CircuitShape, *, explicit: Path | None = None) -> Found:
    """The first file of its verifying key; the rest as for find_parameters."""
    path = _first(shape, ".vk", explicit)
    return _classified(path, shape, read_verifying_key(path))


def _first(shape: CircuitShape, suffix: str, explicit: Path | None) -> Path:
    if explicit is not None and not explicit.is_dir():
        raise ParameterError(
            "this is a file, not a folder of parameters"
            if explicit.is_file()
            else "there is no such folder for parameters",
            where=str(explicit),
            next="name an existing folder",
        )
    folders, name = search_folders(explicit), shape.parameter_stem + suffix
    for folder in folders:
        if (folder / name).is_file():
            return folder / name
    raise ParameterError(
        f"{name} is missing",
        where="searched " + ", ".join(str(folder) for folder in folders),
        next=_how_to_get(shape),
    )


def how_to_generate(shape: CircuitShape) -> str:
    return f"`cuzk params generate {_options(shape)} --insecure-dev` makes parameters for development"


def _how_to_get(shape: CircuitShape) -> str:
    return ", ".join(filter(None, (how_to_fetch(shape), how_to_generate(shape))))


def how_to_fetch(shape: CircuitShape) -> str:
    """Nothing, where nobody has published any."""
    if not is_published(shape.parameter_stem):
        return ""
    return f"`cuzk params fetch {_options(shape)}` gets the published ones"


def _options(shape: CircuitShape) -> str:
    return f"--kind {SHORT[shape.kind]} --sector-size {shape.name}"


def _classified(path: Path, shape: CircuitShape, key: VerifyingKey) -> Found:
    stem = shape.parameter_stem
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
        next=f"remove the file and get it again ({_how_to_get(shape)}), or, if you made it "
        f"yourself for development, move it to {development_folder()}",
    )
