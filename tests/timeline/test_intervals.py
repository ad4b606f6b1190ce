"""Unions of intervals against sets of milliseconds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cuzk.timeline.intervals import Cover, merged

MOMENTS = st.integers(0, 40)
INTERVALS = st.lists(st.tuples(MOMENTS, MOMENTS).map(lambda pair: (min(pair), max(pair))), max_size=12)


def moments(intervals: list[tuple[int, int]]) -> set[int]:
    return {moment for start, end in intervals for moment in range(start, end)}


@given(INTERVALS)
def test_merging_keeps_the_moments_and_leaves_holes_between(intervals: list[tuple[int, int]]) -> None:
    pieces = merged(intervals)
    assert moments(pieces) == moments(intervals)
    assert all(end < start for (_, end), (start, _) in zip(pieces, pieces[1:], strict=False))


@given(INTERVALS, MOMENTS, MOMENTS)
def test_a_cover_measures_as_a_set_counts(intervals: list[tuple[int, int]], a: int, b: int) -> None:
    start, end = min(a, b), max(a, b)
    cover, covered = Cover(intervals), moments(intervals)
    assert cover.total == len(covered)
    assert cover.within(start, end) == len(covered & set(range(start, end)))


@given(INTERVALS)
def test_what_lies_between_and_the_pieces_fill_the_whole(intervals: list[tuple[int, int]]) -> None:
    cover = Cover(intervals)
    between = list(cover.between())
    assert moments(between) & moments(intervals) == set()
    if intervals:
        whole = range(min(start for start, _ in intervals), max(end for _, end in intervals))
        assert moments(between) | moments(intervals) == set(whole)
