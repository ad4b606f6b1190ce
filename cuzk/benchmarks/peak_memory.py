"""The most memory of the host that this process held, since its begin or some later moment."""

from __future__ import annotations

import resource
from contextlib import suppress
from pathlib import Path

_KIB = 1024


def peak_host_bytes() -> int:
    """The most that was resident since the process began, or since `reset_peak` (Linux).

    Whether pinned pages count is the driver's affair.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _KIB
    return int(status.partition("VmHWM:")[2].split()[0]) * _KIB


def reset_peak() -> None:
    with suppress(OSError):  # elsewhere the peak is that of the whole process
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
