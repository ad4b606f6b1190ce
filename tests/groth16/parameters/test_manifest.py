"""The manifest, against the names and digests that the network publishes."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from cuzk.groth16.files import file_digest
from cuzk.groth16.parameters.manifest import all_entries, entry_of
from cuzk.sector.porep.shape import porep_shape

PUBLISHED_DIGESTS = {
    2 << 10: ("434fb1338ecfaf0f59256f30dde4968f", "dc1ade9929ade1708238f155343044ac"),
    8 << 20: ("09e612e4eeb7a0eb95679a88404f960c", "b687beb9adbd9dabe265a7e3620813e4"),
    512 << 20: ("6c77597eb91ab936c1cef4cf19eba1b3", "065179da19fbe515507267677f02823e"),
    32 << 30: ("6a388072a518cf46ebd661f5cc46900a", "0c7b4aac1c40fdb7eb82bc355b41addf"),
    64 << 30: ("1801f8a6e1b00bceb00cc27314bb5ce3", "a89884252c04c298d0b3c81bfd884164"),
}


@pytest.mark.parametrize("sector_bytes", PUBLISHED_DIGESTS)
def test_every_published_size_has_its_two_files(sector_bytes: int) -> None:
    stem = porep_shape(sector_bytes).parameter_stem
    params, key = entry_of(f"{stem}.params"), entry_of(f"{stem}.vk")
    assert params is not None and key is not None
    assert (params.digest, key.digest) == PUBLISHED_DIGESTS[sector_bytes]
    assert params.sector_bytes == key.sector_bytes == sector_bytes


def test_unpublished_sizes_have_none() -> None:
    assert entry_of(f"{porep_shape(4 << 10).parameter_stem}.params") is None


def test_entries_have_names_of_their_own() -> None:
    entries = all_entries()
    assert len({entry.name for entry in entries}) == len({entry.cid for entry in entries}) == len(entries)
    assert {len(entry.digest) for entry in entries} == {32}


@pytest.mark.parametrize("size", [0, 1, (1 << 22) - 1, 1 << 22, (1 << 23) + 1])
def test_digest_is_the_head_of_blake2b(size: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    data = bytes(range(256)) * (size // 256 + 1)
    path.write_bytes(data[:size])
    seen: list[tuple[int, int]] = []
    digest = file_digest(path, lambda done, total: seen.append((done, total)))
    assert digest == hashlib.blake2b(data[:size]).hexdigest()[:32]
    assert seen == sorted(seen) and (not size or seen[-1] == (size, size))
