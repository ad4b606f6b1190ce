"""Daemons as processes of their own: started, read, signalled, and gone when a test ends."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

ROOT = Path(__file__).resolve().parents[2]
SOON_S = 90.0  # of a machine that does much else; by itself it takes seconds
READY = "cuzk-daemon ready, serving on "


class Process:
    """A daemon; `lines` are its log so far, `errors` its stderr. patience_s: how long it may take to say it.

    more  for Popen
    """

    def __init__(self, command: Sequence[str], *, patience_s: float = SOON_S, **more: Any) -> None:
        self.patience_s = patience_s
        self.popen = subprocess.Popen(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more
        )
        self.lines: list[str] = []
        self.errors: list[str] = []
        self._readers = [
            threading.Thread(target=self._read, args=pair, daemon=True)
            for pair in ((self.popen.stdout, self.lines), (self.popen.stderr, self.errors))
        ]
        for reader in self._readers:
            reader.start()

    @staticmethod
    def _read(stream: Iterator[str], lines: list[str]) -> None:
        for line in stream:
            lines.append(line.rstrip("\n"))

    def line(self, text: str) -> str:
        """The first line with that text, once it is there."""
        return until(lambda: next((line for line in self.lines if text in line), ""), self)

    def ends(self) -> int:
        code = self.popen.wait(self.patience_s)
        for reader in self._readers:
            reader.join(self.patience_s)
        return code

    def signal(self, number: int) -> None:
        self.popen.send_signal(number)


def until(found: Callable[[], str | bool], process: Process | None = None) -> str:
    end = time.monotonic() + (SOON_S if process is None else process.patience_s)
    while time.monotonic() < end:
        if value := found():
            return str(value)
        time.sleep(0.01)
    raise AssertionError(None if process is None else (process.lines, process.errors))


@contextmanager
def daemon(*arguments: str, **more: Any) -> Iterator[Process]:
    """A fake one: see `fake_daemon`."""
    with started([sys.executable, "-u", "-m", "tests.server.fake_daemon", *arguments], **more) as process:
        yield process


@contextmanager
def served(*arguments: str, **more: Any) -> Iterator[Process]:
    """`cuzk serve` as users start it."""
    with started([sys.executable, "-u", "cli.py", "serve", *arguments], **more) as process:
        yield process


@contextmanager
def started(command: Sequence[str], **more: Any) -> Iterator[Process]:
    process = Process(command, **more)
    try:
        yield process
    finally:
        process.popen.kill()
        process.ends()
        for stream in (process.popen.stdout, process.popen.stderr):
            assert stream is not None
            stream.close()


def path_of(address: str) -> Path:
    return Path(address.removeprefix("unix://"))


def health(address: str) -> int:
    with grpc.insecure_channel(address) as channel:
        stub = health_pb2_grpc.HealthStub(channel)
        return int(stub.Check(health_pb2.HealthCheckRequest(), timeout=SOON_S).status)


SERVING = health_pb2.HealthCheckResponse.SERVING
