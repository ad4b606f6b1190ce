"""Parameters of a sector size as a whole: what the `params` commands do, for Python programs too."""

from __future__ import annotations

from pathlib import Path

from cuzk.errors import ParameterError
from cuzk.events import Notice, OnEvent, ignore, stage
from cuzk.groth16.checked import CheckedFiles
from cuzk.groth16.fetch import DEFAULT_GATEWAY, fetch
from cuzk.groth16.locate import search_folders
from cuzk.groth16.manifest import ManifestEntry, entry_of
from cuzk.sector.shape import shape_of


def fetch_parameters(
    sector_size: int, *, out: Path | None = None, gateway: str | None = None, on_event: OnEvent = ignore
) -> list[Path]:
    """The published files of a sector size, downloaded unless they are in the folder and whole.

    out      the folder; without it the one where other software looks for them
    gateway  the address before a content id
    Raises ParameterError for a size that has no published parameters, else as `groth16.fetch`.
    """
    folder = out or search_folders()[0]
    return [
        _fetch_missing(entry, folder, gateway or DEFAULT_GATEWAY, on_event)
        for entry in _published(sector_size)
    ]


def _published(sector_size: int) -> list[ManifestEntry]:
    shape = shape_of(sector_size)
    entries = [entry_of(shape.parameter_stem + suffix) for suffix in (".vk", ".params")]
    found = [entry for entry in entries if entry is not None]
    if len(found) < len(entries):
        raise ParameterError(
            f"nobody has published parameters for sectors of {shape.name}",
            next=f"for development: `cuzk params generate --sector-size {shape.name} --insecure-dev`",
        )
    return found


def _fetch_missing(entry: ManifestEntry, folder: Path, gateway: str, on_event: OnEvent) -> Path:
    path, kind = folder / entry.name, Path(entry.name).suffix
    if path.is_file():
        with stage(on_event, f"digest of {kind}", unit="bytes") as progress:
            whole = CheckedFiles().digest(path, progress) == entry.digest
        if whole:
            on_event(Notice(level="info", text=f"{path} is there already"))
            return path
    with stage(on_event, f"fetch {kind}", unit="bytes") as progress:
        return fetch(entry, folder, gateway=gateway, progress=progress)
