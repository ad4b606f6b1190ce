"""Accepted jobs on the disk: a daemon that is killed goes on with them when it starts again.

One table in SQLite; the inputs of jobs are files beside it (`store`). Rows are written without waiting for
the disk: they survive the end of the process in whatever form, the last ones perhaps not that of the machine,
whose clients then send them again.

    accepted   a row, before the client is told; kept, once it was submitted, for those who may ask much later
    begun      its count goes up: what was begun by several daemons that died is suspected, and failed
    ended      result and times; without its input
    recovered  at the start, what is not too old: results answer again, the rest waits again
"""

from __future__ import annotations

import asyncio
import fcntl
import json
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cuzk.engine.jobs import Priority, Status, Timings
from cuzk.errors import CuzkError, ResourceError
from cuzk.server.book import Entry
from cuzk.server.log import Log
from cuzk.server.outcome import NO_TIME, Outcome
from cuzk.server.payload import Payload

_LOG = Log("cuzk_server.journal")
#: A job that was begun by so many daemons that then died is not begun again.
SUSPECT = 3
_FORM = 1  # older daemons of the same form write and read what they know of a row, and leave out the rest
_TABLES = """
CREATE TABLE IF NOT EXISTS jobs (
    id TEXT PRIMARY KEY, kind INTEGER, request_id TEXT, digest TEXT, priority INTEGER, accepted_at REAL,
    input TEXT, input_bytes INTEGER, begun INTEGER DEFAULT 0,
    status TEXT, proof BLOB, error TEXT, timings TEXT, ended_at REAL, is_kept INTEGER DEFAULT 1);
CREATE TABLE IF NOT EXISTS circuits (id TEXT PRIMARY KEY);
"""
#: Of jobs that older daemons accepted nobody knows who wanted them: perhaps somebody who asks much later.
_KEPT_ADDED = "ALTER TABLE jobs ADD COLUMN is_kept INTEGER DEFAULT 1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A job as the journal has it.

    begun    how many daemons began it
    is_kept  it was submitted
    outcome  None while it has not ended
    """

    id: str
    identity: tuple[int, str, str]
    priority: Priority
    accepted_at: float
    payload: Payload
    begun: int
    is_kept: bool
    outcome: Outcome | None


def _nothing() -> None:
    """For the journal's thread: what was said before is written by now."""


class Journal:
    """Writes in a thread of its own, in order; reads before that begins.

    fails  never: what cannot be written is said in the log, once until it can be again
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection) -> None:
        self._folder, self._connection = folder, connection
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="cuzk journal")
        self._has_failed = False  # of the thread

    def accepted(self, entry: Entry) -> None:
        kind, request_id, digest = entry.identity
        path = entry.payload.path
        if path is None:
            return
        columns = (entry.id, kind, request_id, digest, int(entry.priority), entry.accepted_at)
        row = (*columns, path.name, entry.payload.size, entry.is_kept)

        def write() -> None:
            text = "INSERT OR REPLACE INTO jobs (id, kind, request_id, digest, priority, accepted_at, input,"
            self._connection.execute(text + " input_bytes, is_kept) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", row)

        def is_written() -> None:
            entry.is_durable = True

        self._later(write, then=is_written)

    def kept(self, entry: Entry) -> None:
        self._sql("UPDATE jobs SET is_kept = 1 WHERE id = ?", (entry.id,))

    def begun(self, entry: Entry) -> None:
        self._sql("UPDATE jobs SET begun = begun + 1 WHERE id = ?", (entry.id,))

    def ended(self, entry: Entry) -> None:
        outcome = entry.outcome
        assert outcome is not None, entry.id
        timings = json.dumps(asdict(outcome.timings))
        row = (outcome.status.value, outcome.proof, outcome.error_text, timings, outcome.ended_at, entry.id)
        self._sql(
            "UPDATE jobs SET status = ?, proof = ?, error = ?, timings = ?, ended_at = ?, input = NULL"
            " WHERE id = ?",
            row,
        )

    def handed_back(self, entry: Entry) -> None:
        """It waits for the next daemon, and this one did not die of it."""
        self._sql("UPDATE jobs SET begun = 0 WHERE id = ?", (entry.id,))

    def forget(self, *, most: int, before: float) -> None:
        """Drop results that are too many or too old."""
        self._sql(
            "DELETE FROM jobs WHERE ended_at < ? OR id IN"
            " (SELECT id FROM jobs WHERE ended_at NOT NULL ORDER BY ended_at DESC LIMIT -1 OFFSET ?)",
            (before, most),
        )

    def drop(self, job_id: str) -> None:
        self._sql("DELETE FROM jobs WHERE id = ?", (job_id,))

    def loaded(self, circuits: Sequence[str]) -> None:
        """These parameters are open now; the next daemon will open them at its start."""
        rows = [(circuit,) for circuit in circuits]

        def write() -> None:
            self._connection.execute("DELETE FROM circuits")
            self._connection.executemany("INSERT INTO circuits VALUES (?)", rows)

        self._later(write)

    async def has(self, entry: Entry) -> bool:
        """Whether the job is on the disk, once all that was said before is written."""
        await asyncio.get_running_loop().run_in_executor(self._thread, _nothing)
        return entry.is_durable

    def records(self) -> list[Record]:
        """All, the oldest first. Before the first write."""
        return [_record(self._folder, row) for row in self._connection.execute(_ALL)]

    def circuits(self) -> list[str]:
        return [name for (name,) in self._connection.execute("SELECT id FROM circuits ORDER BY id")]

    def close(self) -> None:
        self._thread.submit(self._connection.close)
        self._thread.shutdown()

    def _sql(self, text: str, row: Sequence[Any]) -> None:
        self._later(lambda: self._connection.execute(text, row))

    def _later(self, write: Callable[[], object], then: Callable[[], object] = _nothing) -> None:
        self._thread.submit(self._written, write, then)

    def _written(self, write: Callable[[], object], then: Callable[[], object]) -> None:
        try:
            with self._connection:
                write()
            then()  # not before: what is written reaches the disk, or finds it full, only at the commit
            self._has_failed = False
        except sqlite3.Error as error:
            if not self._has_failed:
                _LOG.error("the journal cannot be written", folder=self._folder, error=error)
            self._has_failed = True


_ALL = (
    "SELECT id, kind, request_id, digest, priority, accepted_at, input, input_bytes, begun, is_kept,"
    " status, proof, error, timings, ended_at FROM jobs ORDER BY accepted_at"
)


def _record(folder: Path, row: Sequence[Any]) -> Record:
    name, kind, request_id, digest, priority, accepted_at, given, given_bytes, begun, kept, *ended = row
    status, proof, error, timings, ended_at = ended
    outcome = None
    if status is not None:
        outcome = Outcome(
            status=Status(status),
            proof=proof,
            error=CuzkError(error) if error else None,
            timings=Timings(**json.loads(timings)) if timings else NO_TIME,
            ended_at=ended_at,
        )
    return Record(
        id=name,
        identity=(kind, request_id, digest),
        priority=Priority(priority),
        accepted_at=accepted_at,
        payload=Payload(path=folder / given, size=given_bytes) if given else Payload(),
        begun=begun,
        is_kept=bool(kept),
        outcome=outcome,
    )


@contextmanager
def open_journal(folder: Path) -> Iterator[Journal]:
    """The journal of that folder, which is made; one daemon at a time. Raises ResourceError.

    A file that is no journal of this form is put aside: what it held is lost, and the log says so.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        lock = (folder / "lock").open("w")
    except OSError as error:
        raise _unusable(folder, error.strerror or str(error)) from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise _unusable(folder, "another daemon uses it") from error
        journal = Journal(folder, _connect(folder))
        try:
            yield journal
        finally:
            journal.close()


def _connect(folder: Path) -> sqlite3.Connection:
    path = folder / "journal.sqlite"
    try:
        return _opened(path)
    except sqlite3.OperationalError as error:  # no file, no room, no permission
        raise _unusable(folder, str(error)) from error
    except sqlite3.DatabaseError as error:
        aside = path.with_suffix(".damaged")
        _LOG.error("the journal is damaged and begins anew", path=path, kept_as=aside, error=error)
        try:
            path.replace(aside)
            for rest in folder.glob("journal.sqlite-*"):
                rest.unlink()
            return _opened(path)
        except (OSError, sqlite3.Error) as again:
            raise _unusable(folder, str(again)) from again


def _opened(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, check_same_thread=False, timeout=5)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        [(form,)] = connection.execute("PRAGMA user_version")
        if form not in (0, _FORM):
            raise sqlite3.DatabaseError(f"it has form {form}, known is {_FORM}")
        with connection:
            connection.executescript(f"{_TABLES} PRAGMA user_version = {_FORM};")
            if "is_kept" not in [name for _, name, *_ in connection.execute("PRAGMA table_info(jobs)")]:
                connection.execute(_KEPT_ADDED)
        connection.execute(_ALL).fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _unusable(folder: Path, why: str) -> ResourceError:
    return ResourceError(
        f"the journal cannot be used: {why}",
        where=str(folder),
        next="name another folder as daemon.journal, or none",
    )
