"""One line of a timeline, both ways: `TIMELINE,<offset_ms>,<event>,<job_id>,<detail>`.

    SYNTH_START, SYNTH_END        a partition is synthesised
    GPU_QUEUE (once CHAN_SEND)    it waits for a GPU; GPU_PICKUP: a worker has taken it
    GPU_START, GPU_END            the call: host work, waiting for the lock, kernels
    LOCK_WAIT, LOCK_START         within a call: the device's lock is asked for, and had
    LOCK_END                      and given back
    KERNEL_START, KERNEL_END      kernels run, by the device's own clock
    FAILED, CANCELLED, ASSEMBLED  the end of a partition, or of a job where the detail names no partition

The lock's and the kernels' events and the last three are cuzk's own; the others are those of Curio's daemon.
The detail is `key=value` pairs with commas between; `partition`, `worker` and `device` are numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from sys import intern
from typing import NamedTuple

MARK = "TIMELINE,"

SPAN_EVENTS = frozenset(
    ("SYNTH_START", "SYNTH_END", "GPU_QUEUE", "GPU_PICKUP", "GPU_START", "GPU_END")
    + ("LOCK_WAIT", "LOCK_START", "LOCK_END", "KERNEL_START", "KERNEL_END")
)
ENDINGS = frozenset({"FAILED", "CANCELLED", "ASSEMBLED"})
EVENTS = SPAN_EVENTS | ENDINGS
_OLDER_NAMES = {"CHAN_SEND": "GPU_QUEUE"}

_PIECE = re.compile(r"([0-9]{1,15}),([A-Z][A-Z_]*),([^,]*),(.*)")
#: What would end a field or a line or steer a terminal, and the sign that escapes; Curio's own ids have none.
_UNSAFE = {code: f"%{code:02X}" for code in (*b"%,", *range(0x20), *range(0x7F, 0xA0))}
_ESCAPED = re.compile("%(2[5C]|[01][0-9A-F]|7F|[89][0-9A-F])")
_BARE = "monolithic"  # the one word in a detail that is no pair


class Event(NamedTuple):
    """A line that was understood. A tuple, not a dataclass: logs hold millions."""

    offset_ms: int
    name: str
    job: str
    partition: int | None
    worker: int | None
    device: int | None
    detail: str


def format_line(offset_ms: int, name: str, job: str, detail: Mapping[str, object]) -> str:
    """The line of an event, with its end. What a job id or value must not contain is escaped as %XX."""
    assert name in EVENTS, name
    pairs = ",".join(f"{key}={str(value).translate(_UNSAFE)}" for key, value in detail.items())
    return f"{MARK}{offset_ms},{name},{job.translate(_UNSAFE)},{pairs}\n"


def parse_line(line: str) -> list[Event | None]:
    """The events in a line that contains MARK: one, several if line ends were lost, None for a garbled one.

    Text in front of MARK is allowed, as log collectors put it there.
    """
    return [_parse_piece(piece) for piece in line.rstrip("\r\n").split(MARK)[1:]]


def _parse_piece(piece: str) -> Event | None:
    match = _PIECE.fullmatch(piece)
    if match is None:
        return None
    offset, name, job, detail = match.groups()
    numbers = _numbers(detail)
    if numbers is None or not (detail or name in ENDINGS):
        return None
    if "%" in job:
        job = _unescape(job)
    return Event(int(offset), intern(_OLDER_NAMES.get(name, name)), intern(job), *numbers, detail)


@lru_cache(maxsize=1 << 14)  # most details recur from job to job
def _numbers(detail: str) -> tuple[int | None, int | None, int | None] | None:
    """Partition, worker and device; None where the detail is damaged.

    Damage behind the partition took nothing that is needed.
    """
    found: dict[str, int | None] = {"partition": None, "worker": None, "device": None}
    for item in detail.split(",") if detail else ():
        key, equals, value = item.partition("=")
        if key in found:
            if not (value.isascii() and value.isdecimal()):
                return None
            found[key] = int(value)
        elif not (key.isidentifier() if equals else item == _BARE):
            if found["partition"] is None:
                return None
            break
    return found["partition"], found["worker"], found["device"]


def values_of(detail: str) -> dict[str, str]:
    """All pairs of a detail."""
    pairs = (item.partition("=") for item in detail.split(","))
    return {key: _unescape(value) for key, equals, value in pairs if equals}


def _unescape(text: str) -> str:
    return _ESCAPED.sub(lambda match: chr(int(match[1], 16)), text)
