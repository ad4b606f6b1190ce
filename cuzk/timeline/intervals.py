"""Sets of moments: unions of intervals [start, end) in whole milliseconds."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from itertools import accumulate


def merged(intervals: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same moments as disjoint intervals in order; those that touch become one."""
    pieces: list[tuple[int, int]] = []
    for start, end in sorted(intervals):
        if pieces and start <= pieces[-1][1]:
            pieces[-1] = (pieces[-1][0], max(pieces[-1][1], end))
        else:
            pieces.append((start, end))
    return pieces


class Cover:
    """A union of intervals, asked again and again: each question takes logarithmic time."""

    def __init__(self, intervals: Iterable[tuple[int, int]]) -> None:
        self.pieces = merged(intervals)
        self._starts = [start for start, _ in self.pieces]
        self._before = [0, *accumulate(end - start for start, end in self.pieces)]

    @property
    def total(self) -> int:
        return self._before[-1]

    def between(self) -> Iterator[tuple[int, int]]:
        """The intervals that separate the pieces."""
        for (_, end), (start, _) in zip(self.pieces, self.pieces[1:], strict=False):
            yield end, start

    def within(self, start: int, end: int) -> int:
        """How much of [start, end) is covered."""
        return self._until(end) - self._until(start)

    def _until(self, moment: int) -> int:
        k = bisect_right(self._starts, moment) - 1
        if k < 0:
            return 0
        return self._before[k] + min(moment, self.pieces[k][1]) - self.pieces[k][0]
