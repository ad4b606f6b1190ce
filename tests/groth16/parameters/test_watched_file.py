"""Files that end early, fail or change while they are open: typed errors, never a signal."""

from __future__ import annotations

import errno
import os
import platform
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuzk.errors import ParameterError, ResourceError
from cuzk.groth16.parameters import watched_file
from cuzk.groth16.parameters.watched_file import WatchedFile

CONTENT = np.random.default_rng(5).integers(0, 256, 1_000_003, np.uint8)
PAGE = 4096


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "large"
    path.write_bytes(CONTENT.tobytes())
    return path


def fail_at(monkeypatch: pytest.MonkeyPatch, place: int) -> None:
    """The disk gives what comes before this byte, and then an error."""
    preadv = os.preadv

    def failing(descriptor: int, buffers: list[memoryview], offset: int) -> int:
        if offset <= place < offset + len(buffers[0]):
            if offset == place:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            buffers = [buffers[0][: place - offset]]
        return preadv(descriptor, buffers, offset)

    monkeypatch.setattr(watched_file.os, "preadv", failing)


def needs_populate() -> None:
    release = tuple(int(part) for part in platform.release().split(".")[:2])
    if release < (5, 14):
        pytest.skip(f"Linux {platform.release()} cannot ask for pages of a mapping")


@pytest.mark.parametrize(("first", "nbytes"), [(0, 1), (0, len(CONTENT)), (4095, 2), (1_000_002, 1), (7, 0)])
def test_bytes_come_from_where_they_are_asked_for(first: int, nbytes: int, path: Path) -> None:
    file, out = WatchedFile(path), np.zeros(nbytes, np.uint8)
    file.will_need(first, nbytes)
    file.read_into(first, out)
    assert np.array_equal(out, CONTENT[first : first + nbytes])
    assert file.read(first, nbytes) == out.tobytes()


def test_reads_that_come_in_parts_are_whole_and_threads_do_not_meet(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    preadv = os.preadv
    monkeypatch.setattr(watched_file.os, "preadv", lambda d, b, offset: preadv(d, [b[0][:1000]], offset))
    file, out = WatchedFile(path), np.zeros(len(CONTENT), np.uint8)
    firsts = range(0, len(CONTENT), 50_000)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda first: file.read_into(first, out[first : first + 50_000]), firsts))
    assert np.array_equal(out, CONTENT)


@pytest.mark.parametrize("place", [0, 12_345, len(CONTENT) - 1])
def test_a_failing_disk_is_named_with_the_byte(
    place: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = WatchedFile(path)
    fail_at(monkeypatch, place)
    with pytest.raises(ResourceError, match="Input/output error") as raised:
        file.read(0, len(CONTENT))
    assert raised.value.where == f"{path}, byte {place:,}"
    assert raised.value.next is not None and "dmesg" in raised.value.next


def test_a_file_that_was_cut_says_from_what_to_what(path: Path) -> None:
    file = WatchedFile(path)
    os.truncate(path, 500_000)
    assert file.read(499_999, 1) == CONTENT[499_999:500_000].tobytes()
    with pytest.raises(ParameterError, match="it had 1,000,003 bytes, now it has 500,000"):
        file.read(499_999, 2)


def rewritten(path: Path) -> None:
    path.write_bytes(bytes(len(CONTENT)))
    os.utime(path, ns=(1, 1))


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(CONTENT.tobytes())
    facts = path.stat()
    os.utime(other, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    other.rename(path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (rewritten, "changed or replaced"),
        (replaced, "changed or replaced"),
        (lambda path: os.truncate(path, 1), "changed or replaced"),
        (Path.unlink, "the file is missing"),
    ],
)
def test_another_file_in_its_place_is_noticed(change: Callable[[Path], Any], said: str, path: Path) -> None:
    file = WatchedFile(path)
    file.read(0, 100)
    file.require_same()
    change(path)
    with pytest.raises(ParameterError, match=said) as raised:
        file.require_same()
    assert raised.value.where == str(path)


def test_pages_that_can_be_read_are_good_wherever_they_begin(path: Path) -> None:
    file = WatchedFile(path)
    pages = file.mapped()
    for first, last in ((0, 1), (1, PAGE), (PAGE - 1, PAGE + 1), (0, len(CONTENT)), (5, 5)):
        file.require_readable(pages[first:last], first)
    assert np.array_equal(pages, CONTENT) and not pages.flags.writeable


def test_pages_behind_the_end_of_a_file_that_was_cut_are_an_error_and_no_signal(path: Path) -> None:
    needs_populate()
    file = WatchedFile(path)
    pages = file.mapped()
    os.truncate(path, 100 * PAGE)
    file.require_readable(pages[: 100 * PAGE], 0)
    with pytest.raises(ParameterError, match="the file was cut"):
        file.require_readable(pages[99 * PAGE : 101 * PAGE], 99 * PAGE)


def test_pages_of_a_failing_disk_are_an_error_with_the_byte(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: int) -> int:
        watched_file.ctypes.set_errno(errno.EFAULT)
        return -1

    file = WatchedFile(path)
    pages = file.mapped()
    monkeypatch.setattr(watched_file, "_madvise", lambda: refuse)
    file.require_readable(pages, 0)  # whatever it was, it has gone
    fail_at(monkeypatch, 300_000)
    file.require_readable(pages[:300_000], 0)
    with pytest.raises(ResourceError) as raised:
        file.require_readable(pages[200_000:], 200_000)
    assert raised.value.where == f"{path}, byte 300,000"


def test_a_closed_file_gives_its_descriptor_back(path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    file = WatchedFile(path)
    pages = file.mapped()
    assert len(os.listdir("/proc/self/fd")) > before
    del file, pages
    assert len(os.listdir("/proc/self/fd")) == before
