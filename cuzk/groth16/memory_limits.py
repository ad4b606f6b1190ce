"""How much memory this process may still take, by every limit that it is under."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from pathlib import Path

_CONTROL_GROUPS = Path("/sys/fs/cgroup")


def available_memory() -> int:
    """Bytes that this process may still take: of the machine, its control groups and its own limit."""
    limits = [_of_machine(), *_of_control_groups(), *_of_process()]
    return max(0, min(limits))


def _of_machine() -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    raise AssertionError("/proc/meminfo has no MemAvailable")


def _of_control_groups() -> Iterator[int]:
    """For each group with a limit, from this process's own up to the root. Files kept in memory make room."""
    for group in _groups():
        try:
            limit = int((group / "memory.max").read_text())
            used = int((group / "memory.current").read_text())
            stat = dict(line.split() for line in (group / "memory.stat").read_text().splitlines())
            yield limit - used + int(stat["inactive_file"]) + int(stat["active_file"])
        except (OSError, ValueError, KeyError):
            continue  # no limit here ("max"), or no control groups of version 2


def _groups() -> Iterator[Path]:
    """Folders of the control groups that this process is in; in a container the root stands for its own."""
    try:
        own = Path("/proc/self/cgroup").read_text().rpartition("::/")[2].strip()
    except OSError:
        own = ""
    for group in (Path(own), *Path(own).parents):
        yield _CONTROL_GROUPS / group


def _of_process() -> list[int]:
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return []
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    return [limit - pages * resource.getpagesize()]
