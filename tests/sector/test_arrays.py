"""Views and copies of arrays."""

from __future__ import annotations

import numpy as np
import pytest

from cuzk.sector.arrays import as_hashes, as_limbs, read_only, reshaped_view


def test_limbs_are_the_hash_as_a_little_endian_number() -> None:
    values = [0, 1, 2**64, 2**255 - 19]
    hashes = np.frombuffer(b"".join(value.to_bytes(32, "little") for value in values), np.uint8).reshape(
        4, 32
    )
    limbs = as_limbs(hashes)
    assert [sum(int(limb) << 64 * i for i, limb in enumerate(row)) for row in limbs] == values
    assert np.array_equal(as_hashes(limbs), hashes)


def test_what_is_written_into_a_view_of_a_part_is_in_the_whole() -> None:
    whole = np.zeros((2, 7, 3), np.uint8)
    reshaped_view(whole[:, 1:], 2, 3, 2, 3)[1, 2, 0] = (7, 8, 9)
    assert whole[1, 5].tolist() == [7, 8, 9]
    assert whole.sum() == 24


def test_a_shape_that_takes_a_copy_is_refused() -> None:
    with pytest.raises(AssertionError):
        reshaped_view(np.zeros((2, 7, 3), np.uint8)[:, 1:], 12, 3)


def test_read_only_copies_what_lies_in_gaps_and_nothing_else() -> None:
    whole = np.arange(6, dtype=np.uint8)
    apart = read_only(whole[::2])
    assert apart.tolist() == [0, 2, 4]
    assert not apart.flags.writeable
    assert apart.flags.c_contiguous
    assert not np.may_share_memory(apart, whole)
    assert read_only(whole) is whole
