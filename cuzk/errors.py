"""The errors that users see: what is wrong, where, and what to do next; the class says the exit code.

A broken invariant of our own is an `assert`, never one of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class CuzkError(Exception):
    """Base of every error that a user of cuzk can cause or mend.

    what    one sentence: what is wrong
    where   the place: a file, or partition, challenge, layer, path level
    next    what to do about it
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str | None = None, next: str | None = None) -> None:
        self.what = what
        self.where = where
        self.next = next
        super().__init__(": ".join(part for part in (where, what) if part) + (f" ({next})" if next else ""))


class InputError(CuzkError):
    """What was given to prove or verify is damaged, inconsistent or unknown. Mend or replace the input."""


class ParameterError(CuzkError):
    """Groth16 parameters are missing, damaged, or belong to another circuit. Fetch or generate them again."""


class ResourceError(CuzkError):
    """The machine lacks memory, disk space, a permission or a package. Free or add some, or plan smaller."""


class DiskError(ResourceError):
    """A file cannot be read or written: its disk fails or is full, or nobody may."""


def lacks_memory(error: BaseException) -> bool:
    """Whether one that makes do with less may succeed: not where a disk fails."""
    return isinstance(error, ResourceError) and not isinstance(error, DiskError)


class BusyError(ResourceError):
    """There is no room now, because of other work; when that has ended there will be. Ask again."""


class DeviceError(CuzkError):
    """The device that was asked for cannot be had or failed. `cuzk doctor` shows what there is."""


class DeviceFault(DeviceError):
    """The device failed at work and is unusable in this process, which goes on, as do other devices."""


class EngineError(CuzkError):
    """The engine ended a job that was cancelled or late, or takes no more work as it is closing."""


class UsageError(CuzkError):
    """Options contradict each other or make no sense. `--help` shows the right ones."""

    exit_code = 2


class ProofError(CuzkError):
    """A proof failed its check. It was not returned; report this together with the input."""

    exit_code = 3


@contextmanager
def blamed_on(option: str) -> Iterator[None]:
    """An InputError within is a UsageError: not a file is wrong, but what was said after `option`."""
    try:
        yield
    except InputError as error:
        raise UsageError(error.what, where=option, next=error.next) from error
