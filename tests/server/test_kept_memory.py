"""Memory for large requests: used again, given back beyond what is kept. Each in a process of its own."""

from __future__ import annotations

import json
import platform
import subprocess
import sys
from typing import Any

import pytest

from cuzk.server.kept_memory import KEPT_BYTES, SPARE_BYTES
from tests.server.processes import ROOT

MIB = 1 << 20
PAGE_BYTES = 4096

#: Put a message together as gRPC does; what it takes in fresh pages; resident memory.
PRELUDE = """
import json, os, resource
from pathlib import Path
from cuzk.server.kept_memory import keep_memory

def receive(mib):
    message = bytearray()
    for _ in range(64 * mib):
        message += bytes(16384)
    return bytes(message)

def fresh_pages(mib):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    receive(mib)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def resident_bytes():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGESIZE")
"""


def printed(script: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + script], cwd=ROOT, stdout=subprocess.PIPE, timeout=60, check=True
    )
    return json.loads(done.stdout)


@pytest.fixture(autouse=True)
def _glibc() -> None:
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("only glibc's malloc can be told to keep memory")


def test_the_second_large_request_takes_no_fresh_memory() -> None:
    first, second, third = printed("keep_memory(); print(json.dumps([fresh_pages(100) for _ in range(3)]))")
    both_copies = 2 * 100 * MIB // PAGE_BYTES
    assert first > 0.9 * both_copies
    assert second < 0.02 * both_copies and third < 0.02 * both_copies


def test_without_it_every_large_request_takes_fresh_memory() -> None:
    """What it is for: on a system where this fails, keeping memory is of no use."""
    taken = printed("print(json.dumps([fresh_pages(100) for _ in range(3)]))")
    assert min(taken) > 0.9 * 2 * 100 * MIB // PAGE_BYTES


def test_keeping_memory_takes_none_before_it_is_used() -> None:
    before, after = printed("a = resident_bytes(); keep_memory(); print(json.dumps([a, resident_bytes()]))")
    assert after - before < 2 * MIB


def test_what_is_freed_beyond_what_is_kept_is_given_back() -> None:
    script = """
keep_memory()
before = resident_bytes()
blocks = [b"%d" % k * (1 << 20) for k in range(1000, 1300)]
del blocks
after, most = resident_bytes(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
print(json.dumps([before, most, after]))
"""
    before, most, after = printed(script)
    assert most - before > 0.99 * 1200 * MIB
    assert after - before <= KEPT_BYTES + SPARE_BYTES + 8 * MIB


def test_requests_of_every_size_keep_to_the_bound() -> None:
    """The largest that is allowed, others beside it, in an order that leaves gaps."""
    script = """
keep_memory()
before = resident_bytes()
held = receive(70)
for mib in (256, 1, 100, 70, 129, 5, 256, 100):
    held = receive(mib)
del held
print(json.dumps(resident_bytes() - before))
"""
    assert printed(script) <= KEPT_BYTES + SPARE_BYTES + 8 * MIB
