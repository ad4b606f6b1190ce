"""Where the daemon listens: addresses as users write them, unix sockets with permissions, one daemon on each.

unix:///run/curio/cuzk.sock   unix:/run/curio/cuzk.sock   unix:cuzk.sock
127.0.0.1:9820   [::1]:9820   gpu-host.lan:9820   0.0.0.0:9820
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from cuzk.errors import ResourceError, UsageError

_HOST_PORT = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.%]+)\]|(?P<host>[^\s:/\[\]]+)):(?P<port>\d{1,5})")
_LONGEST_PATH = 107  # bytes; Linux has 108 for a socket's, with a zero at the end


@dataclass(frozen=True, slots=True)
class Address:
    """A path, or host and port."""

    path: Path | None = None
    host: str = ""
    port: int = 0

    def __str__(self) -> str:
        if self.path is not None:
            return f"unix://{self.path}"
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_address(text: str, *, where: str = "--listen") -> Address:
    """where: what said so. Raises UsageError."""
    if text.startswith("unix:"):
        path = text.removeprefix("unix:")
        path = path.removeprefix("//") if path.startswith("///") else path
        if path and not path.startswith("//"):
            return Address(path=_short(Path(path).absolute()))
    elif (found := _HOST_PORT.fullmatch(text)) and int(found["port"]) < 1 << 16:
        return Address(host=found["v6"] or found["host"], port=int(found["port"]))
    raise UsageError(
        f"{text!r} is no address",
        where=where,
        next="write unix:///path/to/socket, 127.0.0.1:9820, [::1]:9820 or host.name:9820",
    )


def require_tcp(address: Address) -> None:
    """Of what is served over HTTP. Raises UsageError for a socket's path."""
    if address.path is not None:
        raise UsageError("status is served over TCP", where=str(address), next="name a host and a port")


def _short(path: Path) -> Path:
    if (length := len(os.fsencode(path))) > _LONGEST_PATH:
        raise UsageError(
            f"a unix socket's path may have {_LONGEST_PATH} bytes, this one has {length}",
            where=str(path),
            next="choose a folder nearer to the root, such as /run",
        )
    return path


def numeric(address: Address) -> list[str]:
    """Every host:port that a name stands for, all of which have to be had. Raises ResourceError."""
    try:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        raise ResourceError(
            f"the host is not known: {error.strerror}", where=str(address), next="check its name"
        ) from error
    hosts = dict.fromkeys(str(place[0]) for *_, place in found)
    return [str(Address(host=host, port=address.port)) for host in hosts]


@contextmanager
def owned_socket(path: Path) -> Iterator[None]:
    """Inside, the path is this process's to bind: a socket that a dead process left is removed before, ours
    afterwards.

    A file beside it is locked, so that two daemons that start at once do not both find nobody there.
    Raises ResourceError when another process listens there, or the path is something else.
    """
    with _locked(path) as lock:
        _remove_stale(path)
        try:
            yield
        finally:
            with suppress(OSError):
                path.unlink(missing_ok=True)
            with suppress(OSError):
                Path(lock.name).unlink()


def _locked(path: Path) -> TextIO:
    """The locked file beside a path. Its owner removes it before closing it. Raises as `owned_socket`."""
    beside = path.with_name(f".{path.name}.lock")
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = beside.open("w")
        except OSError as error:
            raise _no_socket(path, error) from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            lock.close()
            raise _taken(path) from error
        # Whoever had the lock before may have removed the file after it was opened here: then others lock a
        # new one, and this one means nothing.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock.fileno()), beside.stat()):
                return lock
        lock.close()


@contextmanager
def private() -> Iterator[None]:
    """What is made inside, nobody else may open."""
    before = os.umask(0o177)
    try:
        yield
    finally:
        os.umask(before)


def permit(path: Path, mode: int, group: str | None) -> None:
    """Let those connect who should. Raises ResourceError."""
    try:
        if group is not None:
            shutil.chown(path, group=group)
        path.chmod(mode)
    except (OSError, LookupError) as error:
        raise ResourceError(
            f"the socket's permissions cannot be set: {error}",
            where=str(path),
            next="check socket_mode and socket_group, and that this user is in the group",
        ) from error


def _remove_stale(path: Path) -> None:
    try:
        kind = path.lstat().st_mode
    except OSError:
        return
    if not stat.S_ISSOCK(kind):
        raise ResourceError("this is no socket", where=str(path), next="remove it, or listen elsewhere")
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        try:
            client.connect(os.fspath(path))
        except (ConnectionRefusedError, FileNotFoundError):
            with suppress(FileNotFoundError):
                path.unlink()
            return
        except OSError:  # someone is there and does not answer, or it cannot be told
            pass
    raise _taken(path)


def _taken(path: Path) -> ResourceError:
    return ResourceError(
        "another process listens there", where=str(path), next="stop it first, or listen elsewhere"
    )


def _no_socket(path: Path, error: OSError) -> ResourceError:
    return ResourceError(
        f"the socket cannot be made: {error.strerror}", where=str(path), next="check its folder"
    )
