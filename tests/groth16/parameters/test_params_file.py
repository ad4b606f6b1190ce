"""Parameter files: a hand-made one, and every way in which its sizes can be wrong."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cuzk.errors import ParameterError
from cuzk.groth16.parameters.params_file import PointCounts, open_parameters, read_key_of
from cuzk.groth16.parameters.verifying_key import VerifyingKey


def test_sections_are_views_of_the_file(
    small_params: Path,
    small_key: VerifyingKey,
    small_counts: PointCounts,
    small_sections: dict[str, np.ndarray],
) -> None:
    opened = open_parameters(small_params, small_counts)
    assert opened.key == small_key and opened.counts == small_counts
    for name, points in small_sections.items():
        view = getattr(opened, name)
        assert np.array_equal(view, points)
        assert view.base is not None and not view.flags.writeable
    assert read_key_of(small_params) == small_key


@pytest.mark.parametrize(
    ("counts", "file_bytes"),
    [
        (PointCounts(ic=40, h=4194303, l=2685673, a=2674948, b=685522), 1114707768),
        (PointCounts(ic=40, h=4194303, l=3842449, a=3815036, b=1011290), 1429027896),
        (PointCounts(ic=40, h=8388607, l=4420837, a=4385080, b=1174174), 1988841144),
        (PointCounts(ic=328, h=134217727, l=130169893, a=129753620, b=33112282), 47373928632),
        (PointCounts(ic=328, h=134217727, l=131076643, a=130637870, b=33386944), 47624967288),
    ],
)
def test_counts_give_the_length_of_published_files(counts: PointCounts, file_bytes: int) -> None:
    assert counts.file_bytes == file_bytes


def test_a_section_may_be_empty(tmp_path: Path, small_key: VerifyingKey) -> None:
    path = tmp_path / "bare.params"
    path.write_bytes(small_key.to_bytes() + bytes(20))
    opened = open_parameters(path)
    assert opened.counts == PointCounts(ic=2, h=0, l=0, a=0, b=0) and opened.b_g2.shape == (0, 192)


REJECTED = {
    "empty": (lambda data: b"", "the file is empty"),
    "truncated_in_the_key": (lambda data: data[:400], "truncated: 400 bytes"),
    "truncated_in_ic": (
        lambda data: data[:1000],
        "its verifying key should end at byte 1,060, the file ends at 1,000",
    ),
    "truncated_before_h": (lambda data: data[:1060], "its count of section h should end at byte 1,064"),
    "truncated_in_h": (
        lambda data: data[:1100],
        "its section h should end at byte 1,736, the file ends at 1,100",
    ),
    "truncated_by_one_byte": (lambda data: data[:-1], "its section b_g2 should end at"),
    "trailing_byte": (lambda data: data + b"\0", "1 bytes follow its last point"),
    "count_of_h_is_absurd": (
        lambda data: data[:1060] + b"\xff" * 4 + data[1064:],
        "its section h should end",
    ),
    "key_with_a_point_off_the_curve": (
        lambda data: data[:95] + bytes([data[95] ^ 1]) + data[96:],
        "alpha_g1 is unusable: not on the curve",
    ),
}


@pytest.mark.parametrize("name", REJECTED)
def test_damaged_file_is_refused(name: str, small_params: Path) -> None:
    damage, reason = REJECTED[name]
    small_params.write_bytes(damage(small_params.read_bytes()))
    with pytest.raises(ParameterError, match=reason) as raised:
        open_parameters(small_params)
    assert raised.value.where == str(small_params) and raised.value.next


def test_a_file_cut_anywhere_is_refused(small_params: Path, small_counts: PointCounts) -> None:
    data = small_params.read_bytes()
    for size in range(0, len(data), 23):
        small_params.write_bytes(data[:size])
        for expected in (None, small_counts):
            with pytest.raises(ParameterError, match="empty|truncated"):
                open_parameters(small_params, expected)


@pytest.mark.parametrize("section", ["ic", "h", "l", "a", "b"])
def test_counts_of_another_circuit_are_refused(
    section: str, small_params: Path, small_counts: PointCounts
) -> None:
    other = replace(small_counts, **{section: getattr(small_counts, section) + 1})
    with pytest.raises(ParameterError, match="belong to another circuit: .* points (ic|h|l|a|b_g1), where"):
        open_parameters(small_params, other)


def test_b_must_be_as_long_in_both_groups(small_params: Path, small_sections: dict[str, np.ndarray]) -> None:
    data = small_params.read_bytes()
    shorter = data[: -3 * 192 - 4] + (2).to_bytes(4, "big") + small_sections["b_g2"][:2].tobytes()
    small_params.write_bytes(shorter)
    with pytest.raises(ParameterError, match="3 points b_g1, but 2 b_g2"):
        open_parameters(small_params)


def test_missing_file_and_folder_in_its_place_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match="the file is missing"):
        open_parameters(tmp_path / "none.params")
    with pytest.raises(Exception, match="cannot be read: Is a directory"):
        open_parameters(tmp_path)
