"""Reads a log: finds the timeline among other lines, brings it into order, tells one run from the next."""

from __future__ import annotations

import gzip
import io
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from itertools import accumulate
from operator import itemgetter
from pathlib import Path
from typing import TextIO

from cuzk.errors import InputError
from cuzk.garbage import without_garbage_collection
from cuzk.timeline.line import EVENTS, MARK, Event, parse_line

STDIN = Path("-")
#: Lines come late by seconds when many threads write. An offset further back than this may be another run's.
RESTART_MS = 1000
#: What a partition passes through once a try; seeing one of them again means another try.
_ONCE = frozenset({"SYNTH_START", "SYNTH_END", "GPU_QUEUE", "GPU_PICKUP", "GPU_START", "GPU_END"})
GZIP_MAGIC = b"\x1f\x8b"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_WORKERS_SAID = "gpu_workers_per_device"
_WORKERS = re.compile(_WORKERS_SAID + r"=([1-9][0-9]{0,3})\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Lines of a log. `garbled`: marked as timeline, but not to be understood. `unknown`: events by name."""

    timeline: int
    other: int
    garbled: int
    unknown: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """The timelines in a log: for each run its events by offset. `workers_per_gpu`, if the log says it."""

    name: str
    runs: tuple[Sequence[Event], ...]
    counts: Counts
    workers_per_gpu: int | None


def read_log(path: Path) -> Log:
    """The timeline in a file, gzipped or not; `-` is standard input. Raises InputError. 4 us a line."""
    name = "standard input" if path == STDIN else str(path)
    try:
        with _opened(path) as file, without_garbage_collection():
            return parse_log(file, name=name)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            "the gzip file is truncated or damaged", where=name, next="copy the log again"
        ) from error
    except OSError as error:
        raise InputError(
            f"the log cannot be read: {error.strerror or error}",
            where=name,
            next="check the path and its permissions; - reads standard input",
        ) from error


@contextmanager
def _opened(path: Path) -> Iterator[TextIO]:
    """The text of a file; what is not UTF-8 is replaced, so that one bad byte costs one line."""
    with nullcontext(sys.stdin.buffer) if path == STDIN else path.open("rb") as raw:
        file = io.BufferedReader(raw)  # type: ignore[type-var]  # any binary file will do
        zipped = file.peek(2)[:2] == GZIP_MAGIC
        plain = gzip.GzipFile(fileobj=file) if zipped else file
        try:
            yield io.TextIOWrapper(plain, encoding="utf-8", errors="replace")
        finally:
            file.detach()  # standard input is not ours to close


def parse_log(lines: Iterator[str] | TextIO, *, name: str) -> Log:
    """The timeline in lines of text. Raises InputError when there is none."""
    events: list[Event] = []
    unknown: Counter[str] = Counter()
    other = garbled = 0
    workers = None
    for line in lines:
        if MARK not in line:
            other += 1
            if workers is None and _WORKERS_SAID in line:
                said = _WORKERS.search(_COLOUR.sub("", line))
                workers = int(said[1]) if said else None
            continue
        for event in parse_line(line):
            if event is None:
                garbled += 1
            elif event.name in EVENTS:
                events.append(event)
            else:
                unknown[event.name] += 1
    if not events:
        raise InputError(
            "the log has no timeline" + (f": {garbled} TIMELINE lines are all garbled" if garbled else ""),
            where=name,
            next="the engine writes its TIMELINE lines to standard error: give the file that it went to",
        )
    runs = tuple(sorted(run, key=itemgetter(0)) for run in split_runs(events))
    counts = Counts(timeline=len(events), other=other, garbled=garbled, unknown=dict(unknown))
    return Log(name=name, runs=runs, counts=counts, workers_per_gpu=workers)


def split_runs(events: Sequence[Event]) -> list[Sequence[Event]]:
    """Events in the order of their lines, cut where an engine was started anew and its clock with it.

    There the offset falls, as it does for a line that comes late; but no work outlives its engine. So a fall
    is a start only where every partition seen before is either seen no more or begun again.
    """
    highest = list(accumulate((event.offset_ms for event in events), max, initial=0))
    falls = [k for k, event in enumerate(events) if event.offset_ms < highest[k] - RESTART_MS]
    if not falls:
        return [events]
    underway = _underway(events)
    starts, top = [0], 0
    for k, event in enumerate(events):
        if event.offset_ms < top - RESTART_MS and not underway[k]:
            starts.append(k)
            top = 0
        top = max(top, event.offset_ms)
    return [events[begin:end] for begin, end in zip(starts, [*starts[1:], len(events)], strict=True)]


def _underway(events: Sequence[Event]) -> list[int]:
    """For each line, of how many partitions a try was seen before and goes on with or after it."""
    change = [0] * (len(events) + 1)
    tries: dict[tuple[str, int | None], tuple[int, set[str]]] = {}  # last line, names seen once
    for k, event in enumerate(events):
        key = (event.job, event.partition)
        last, seen = tries.get(key, (k, set()))
        if event.name in seen:
            last, seen = k, set()
        if event.name in _ONCE:
            seen.add(event.name)
        change[last + 1] += 1
        change[k + 1] -= 1
        tries[key] = (k, seen)
    return list(accumulate(change))[:-1]
