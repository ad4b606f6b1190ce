"""The published parameter files: name, digest, sector size and content id of each.

`parameters.json` beside this file is the manifest of rust-fil-proofs, unchanged.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

_MANIFEST = Path(__file__).with_name("parameters.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestEntry:
    """One published file. `digest` is what `files.file_digest` gives for it, `cid` its name at a gateway."""

    name: str
    cid: str
    digest: str
    sector_bytes: int


@lru_cache(maxsize=1)
def _entries() -> dict[str, ManifestEntry]:
    return {
        name: ManifestEntry(
            name=name, cid=entry["cid"], digest=entry["digest"], sector_bytes=entry["sector_size"]
        )
        for name, entry in json.loads(_MANIFEST.read_bytes()).items()
    }


def all_entries() -> tuple[ManifestEntry, ...]:
    """Every published file, of every circuit, in the manifest's order."""
    return tuple(_entries().values())


def entry_of(name: str) -> ManifestEntry | None:
    """The published file of this name, such as `<stem>.params`; None if there is none."""
    return _entries().get(name)


def is_published(stem: str) -> bool:
    """Whether a network has agreed on parameters of that name, so that it accepts proofs under them."""
    return entry_of(f"{stem}.params") is not None and entry_of(f"{stem}.vk") is not None
