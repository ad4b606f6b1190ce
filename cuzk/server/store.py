"""Where the bytes of requests are while their jobs wait: files of one folder, in memory if that cannot be.

A request is 70 MB for a sector of 32 GiB, and a hundred may wait.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path

from cuzk.errors import BusyError
from cuzk.server.log import Log
from cuzk.server.payload import Payload
from cuzk.units import format_size

_LOG = Log("cuzk_server.store")
_SUFFIX, _PART_SUFFIX = ".request", ".part"


class Store:
    """Keeps payloads.

    folder        of the files; None: everything in memory
    disk_bytes    that all files may take, `memory_bytes` what is in memory
    owns          its threads, in which it writes and removes files
    on_disk, in_memory  bytes now
    """

    def __init__(self, folder: Path | None, *, disk_bytes: int, memory_bytes: int) -> None:
        self._folder, self._disk_bytes, self._memory_bytes = folder, disk_bytes, memory_bytes
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="cuzk store")
        self._has_failed = False
        self.on_disk = self.in_memory = 0

    async def put(self, *parts: bytes) -> Payload:
        """The payload of that content. Raises BusyError when there is no room for it anywhere."""
        size = sum(map(len, parts))
        if self._folder is not None and self.on_disk + size <= self._disk_bytes:
            self.on_disk += size
            payload = Payload(path=self._folder / f"{secrets.token_hex(16)}{_SUFFIX}", size=size)
            loop = asyncio.get_running_loop()
            written = loop.run_in_executor(self._threads, _write, payload.path, parts)
            try:
                await asyncio.shield(written)
            except OSError as error:
                self.on_disk -= size
                self._say_once(error)
            except asyncio.CancelledError:  # the client went away; the thread writes on
                written.add_done_callback(partial(self._abandon, payload))
                raise
            else:
                self._has_failed = False
                return payload
        if self.in_memory + size > self._memory_bytes:
            raise BusyError(
                f"there is no room for this request of {format_size(size)} beside those that wait",
                where="journal",
                next="send it again when fewer jobs wait; give the journal more room",
            )
        self.in_memory += size
        return Payload(content=b"".join(parts), size=size)

    def _abandon(self, payload: Payload, written: asyncio.Future[None]) -> None:
        written.exception()  # nobody is interested any more
        self.discard(payload)

    def _say_once(self, error: OSError) -> None:
        if not self._has_failed:
            _LOG.error("requests cannot be written, they stay in memory", folder=self._folder, error=error)
        self._has_failed = True

    def restored(self, payload: Payload) -> None:
        """A file from before a restart is in use again."""
        self.on_disk += payload.size

    def discard(self, payload: Payload) -> None:
        """Nobody will read it again."""
        if payload.path is None:
            self.in_memory -= len(payload.content)
            return
        self.on_disk -= payload.size
        with suppress(RuntimeError):  # closed: what no job names is removed at the next start
            self._threads.submit(_remove, payload.path)

    def close(self) -> None:
        """Files that are being written or removed are done with when this returns."""
        self._threads.shutdown()


def leftovers(folder: Path, used: set[Path]) -> list[Path]:
    """Files of a store that nobody names any more."""
    return [path for path in folder.iterdir() if path.suffix in (_SUFFIX, _PART_SUFFIX) and path not in used]


def _write(path: Path | None, parts: Sequence[bytes]) -> None:
    """Whole or not at all. No wait for the disk: a process that is killed takes nothing with it."""
    assert path is not None
    part = path.with_suffix(_PART_SUFFIX)
    try:
        with part.open("wb") as file:
            file.writelines(parts)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink(missing_ok=True)
