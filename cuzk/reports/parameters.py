"""What `cuzk params list` and `cuzk doctor` report of parameter files: those that a search would find."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from cuzk.errors import CuzkError
from cuzk.groth16.parameters.locate import find_parameters, search_folders
from cuzk.proofs.kinds import KINDS, kind_named
from cuzk.units import format_size


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterFacts:
    """One `.params` file that a search would find: what it is for, and what it claims to be."""

    kind: str
    sector_size: str
    origin: str
    size_bytes: int
    path: str


def parameter_files(
    params: Path | None, kind: str | None = None, sector_bytes: int | None = None
) -> Iterator[ParameterFacts]:
    """Every parameter file in the folders of the search, in its order; of one kind or size, if given."""
    for folder in dict.fromkeys(search_folders(params)):
        yield from _files_in(folder, kind, sector_bytes)


def _files_in(
    folder: Path, kind: str | None = None, sector_bytes: int | None = None
) -> Iterator[ParameterFacts]:
    kinds = KINDS if kind is None else (kind_named(kind),)
    for shape in (shape for kind in kinds for shape in kind.shapes()):
        path = folder / f"{shape.parameter_stem}.params"
        if sector_bytes not in (None, shape.sector_bytes) or not path.is_file():
            continue
        try:
            found = find_parameters(shape, explicit=folder)
            origin = "development" if found.is_development else "published"
        except CuzkError as error:
            origin = f"unusable: {error.what}"
        yield ParameterFacts(
            kind=shape.kind,
            sector_size=shape.name,
            origin=origin,
            size_bytes=path.stat().st_size,
            path=str(path),
        )


def parameter_folders(params: Path | None) -> dict[str, list[str] | str]:
    """What each folder of the search holds."""
    section: dict[str, list[str] | str] = {}
    for folder in search_folders(params):
        held = [
            f"{facts.kind} {facts.sector_size}, {facts.origin}, {format_size(facts.size_bytes)}"
            for facts in _files_in(folder)
        ]
        section[str(folder)] = held or ("no parameters" if folder.is_dir() else "does not exist")
    return section
