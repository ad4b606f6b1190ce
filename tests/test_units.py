"""Sizes, counts and durations as people write and read them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuzk.units import format_count, format_duration, format_size, parse_duration, parse_size


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("2048", 2048),
        ("2048B", 2048),
        ("2KiB", 2048),
        ("32GiB", 34359738368),
        (" 64 GiB ", 68719476736),
        ("1.5GiB", 1610612736),
        ("500MB", 500_000_000),
        ("1TiB", 1 << 40),
    ],
)
def test_sizes_are_read_as_written(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "KiB", "2kib", "2K", "-1", "1e3", "2  KiB", "0.3B", "2KiB x", "٢"])
def test_what_is_no_size_is_refused_with_the_text_that_was_given(text: str) -> None:
    with pytest.raises(ValueError, match="size|bytes"):
        parse_size(text)


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (2048, "2 KiB"), (34359738368, "32 GiB"), (1114707768, "1.04 GiB")],
)
def test_sizes_are_shown_in_the_largest_unit(size: int, text: str) -> None:
    assert format_size(size) == text


@given(st.integers(0, 1023), st.sampled_from(["B", "KiB", "MiB", "GiB", "TiB"]))
def test_an_exact_size_reads_back_as_itself(count: int, unit: str) -> None:
    size = parse_size(f"{count}{unit}")
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize(
    ("count", "unit", "text"),
    [
        (313, "", "313"),
        (9999, "rows", "9999 rows"),
        (12_345, "points", "12.3 k points"),
        (10_200_000, "points", "10.2 M points"),
        (722e6, "", "722 M"),
        (2048, "bytes", "2 KiB"),
    ],
)
def test_counts_keep_three_digits(count: float, unit: str, text: str) -> None:
    assert format_count(count, unit) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0124, "12 ms"),
        (3.214, "3.21 s"),
        (12.34, "12.3 s"),
        (59.99, "1 min 00 s"),
        (65, "1 min 05 s"),
        (7380, "2 h 03 min"),
    ],
)
def test_durations_are_shown_in_units_that_fit(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("300", 300.0),
        ("0.5", 0.5),
        ("5m", 300.0),
        ("1h", 3600.0),
        ("500ms", 0.5),
        ("1.5 h", 5400.0),
        ("1h30m", 5400.0),
        (" 1h 2m 3s ", 3723.0),
    ],
)
def test_durations_are_read_in_the_forms_that_people_write(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds


@pytest.mark.parametrize("text", ["", "h", "5 minutes", "-1s", "1d", "1h30", "٣s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)
