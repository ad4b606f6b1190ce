"""What is on the disk of jobs and their inputs, and what becomes of it when the disk does not do its part."""

from __future__ import annotations

import asyncio
import multiprocessing
import resource
import sqlite3
from collections.abc import Coroutine
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cuzk.engine.jobs import Priority, Status
from cuzk.errors import BusyError, ResourceError
from cuzk.server import proving_pb2 as pb
from cuzk.server.book import Book, Entry
from cuzk.server.journal import SUSPECT, open_journal
from cuzk.server.log import Lines
from cuzk.server.outcome import Outcome
from cuzk.server.payload import Payload
from cuzk.server.recovery import take_up
from cuzk.server.store import Store
from tests.server.fakes import FakeProver, proof_of
from tests.server.hall import SOON_S, porep, refused, running, until

COMPLETED = pb.AwaitProofResponse.COMPLETED


def play(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, SOON_S))


def entry_in(folder: Path, name: str, *, at: float = 1000.0) -> Entry:
    path = folder / f"{name}.request"
    path.write_bytes(b"content of " + name.encode())
    payload = Payload(path=path, size=path.stat().st_size)
    return Book().entry(name, (1, name, f"digest of {name}"), Priority.HIGH, payload, at)


def ended(entry: Entry, status: Status, *, at: float, proof: bytes = b"") -> Entry:
    error = None if proof else ValueError("why")
    entry.outcome = Outcome(status=status, proof=proof, error=error, ended_at=at)
    return entry


def taken_up(folder: Path, *, now: float = 1000.0, kept: int = 10) -> tuple[Book, Store]:
    book = Book(kept=kept, kept_s=100.0, clock=lambda: now)
    store = Store(folder, disk_bytes=1 << 20, memory_bytes=1 << 20)
    with open_journal(folder) as journal:
        take_up(book, store, journal, folder, waiting_s=1000.0)
    store.close()
    return book, store


def test_jobs_come_back_as_they_were(tmp_path: Path) -> None:
    async def scenario() -> None:
        with open_journal(tmp_path) as journal:
            waits, proven, failed = (entry_in(tmp_path, name) for name in ("waits", "proven", "failed"))
            for entry in (waits, proven, failed):
                journal.accepted(entry)
                assert await journal.has(entry)
            journal.ended(ended(proven, Status.COMPLETED, at=990.0, proof=b"proof"))
            journal.ended(ended(failed, Status.FAILED, at=991.0))
            journal.loaded(["porep-2k", "snap-2k"])
        with open_journal(tmp_path) as journal:
            assert journal.circuits() == ["porep-2k", "snap-2k"]
        (tmp_path / "nobody.request").write_bytes(b"left over")
        book, store = taken_up(tmp_path)
        [entry] = book.under_way
        assert (entry.id, entry.identity, entry.priority) == ("waits", waits.identity, Priority.HIGH)
        assert entry.payload.data() == b"content of waits" and store.on_disk == entry.payload.size
        results = {one.id: one.outcome for one in book.results}
        assert results["proven"] is not None and results["proven"].proof == b"proof"
        assert results["failed"] is not None and results["failed"].error_text == "why"
        assert sorted(path.name for path in tmp_path.glob("*.request")) == ["waits.request"]

    play(scenario())


def test_what_is_too_old_or_too_much_is_forgotten(tmp_path: Path) -> None:
    async def scenario() -> None:
        with open_journal(tmp_path) as journal:
            for k in range(5):
                entry = entry_in(tmp_path, str(k))
                journal.accepted(entry)
                journal.ended(ended(entry, Status.COMPLETED, at=995.0 + k, proof=b"x"))
            journal.forget(most=3, before=0.0)
        book, _ = taken_up(tmp_path)
        assert [one.id for one in book.results] == ["2", "3", "4"]
        with open_journal(tmp_path) as journal:
            assert [record.id for record in journal.records()] == ["2", "3", "4"]
        book, _ = taken_up(tmp_path, now=5000.0)
        assert list(book.results) == []

    play(scenario())


def test_jobs_that_were_submitted_wait_over_restarts_longer_than_those_whose_call_has_ended(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Results are kept for 100 s, which is how long a job of Prove is taken up; one of SubmitProof 1000 s."""

    async def scenario() -> None:
        with open_journal(tmp_path) as journal:
            for name, is_kept in (("proved", False), ("submitted", True)):
                entry = entry_in(tmp_path, name, at=1000.0)
                entry.is_kept = is_kept
                journal.accepted(entry)
        book, _ = taken_up(tmp_path, now=1099.0)
        assert [one.id for one in book.under_way] == ["proved", "submitted"]
        book, _ = taken_up(tmp_path, now=1101.0)
        assert [one.id for one in book.under_way] == ["submitted"]
        assert list(tmp_path.glob("*.request")) == [tmp_path / "submitted.request"]
        book, _ = taken_up(tmp_path, now=2000.0)
        assert [one.id for one in book.under_way] == ["submitted"]
        taken_up(tmp_path, now=2001.0)
        book, _ = taken_up(tmp_path, now=2100.0)  # by a daemon after the one that gave it up
        assert list(book.under_way) == [] and list(tmp_path.glob("*.request")) == []
        [result] = book.results
        assert result.outcome is not None and result.outcome.status is Status.FAILED
        assert (
            "waited for 16 min 41 s, more than daemon.waiting_age, 16 min 40 s" in result.outcome.error_text
        )

    play(scenario())
    lines = [Lines().format(record) for record in caplog.records if record.message == "job given up"]
    assert len(lines) == 2
    assert "job_id=proved" in lines[0] and "daemon.results_age" in lines[0]
    assert "job_id=submitted" in lines[1] and "daemon.waiting_age" in lines[1]


def test_a_job_that_was_begun_by_a_call_and_is_then_submitted_counts_as_submitted(tmp_path: Path) -> None:
    async def scenario() -> None:
        prover, journal = FakeProver(), tmp_path / "journal"
        go_on = prover.hold()
        async with running(prover, folder=tmp_path, journal=journal, drain_s=0.1) as (daemon, caller):
            going = [asyncio.ensure_future(caller.prove(porep(name))) for name in ("a", "b")]
            await until(lambda: len(list(daemon.book.under_way)) == 2)
            for name in ("b", "c"):
                await caller.call("SubmitProof", porep(name))
            daemon.end()
            await asyncio.gather(*map(refused, going))
            go_on.set()
        with open_journal(journal) as opened:
            records = {record.id: record.is_kept for record in opened.records()}
        assert records == {"a": False, "b": True, "c": True}

    play(scenario())


def test_jobs_of_a_daemon_that_did_not_tell_who_was_submitted_are_taken_up_as_if_they_were(
    tmp_path: Path,
) -> None:
    """And when it is back, it finds the columns that it writes, and the form that it knows."""
    path = entry_in(tmp_path, "old").payload.path
    assert path is not None
    row = ("old", 1, "old", "digest of old", 3, 1000.0, path.name, 14, 0)
    with sqlite3.connect(tmp_path / "journal.sqlite") as connection:
        connection.executescript(OLD_TABLES)
        connection.execute(OLD_INSERT, row)
    connection.close()

    async def scenario() -> None:
        book, _ = taken_up(tmp_path, now=1900.0)
        assert [one.id for one in book.under_way] == ["old"]

    play(scenario())
    with sqlite3.connect(tmp_path / "journal.sqlite") as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (1,)
        connection.execute(OLD_INSERT, ("new", *row[1:]))
    connection.close()
    with open_journal(tmp_path) as journal:
        assert [(record.id, record.is_kept) for record in journal.records()] == [("old", True), ("new", True)]


OLD_TABLES = """
CREATE TABLE jobs (
    id TEXT PRIMARY KEY, kind INTEGER, request_id TEXT, digest TEXT, priority INTEGER, accepted_at REAL,
    input TEXT, input_bytes INTEGER, begun INTEGER DEFAULT 0,
    status TEXT, proof BLOB, error TEXT, timings TEXT, ended_at REAL);
CREATE TABLE circuits (id TEXT PRIMARY KEY);
PRAGMA user_version = 1;
"""
OLD_INSERT = (
    "INSERT INTO jobs (id, kind, request_id, digest, priority, accepted_at, input, input_bytes, begun)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def test_a_job_of_no_known_kind_is_forgotten_with_a_word(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        with open_journal(tmp_path) as journal:
            entry = entry_in(tmp_path, "a")
            entry.identity = (99, *entry.identity[1:])
            journal.accepted(entry)
        taken_up(tmp_path)
        with open_journal(tmp_path) as journal:
            assert journal.records() == []

    play(scenario())
    assert [record for record in caplog.records if "no known kind" in record.message]


def test_a_job_that_daemons_died_of_is_not_begun_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        with open_journal(tmp_path) as journal:
            deadly, innocent = entry_in(tmp_path, "deadly"), entry_in(tmp_path, "innocent")
            for entry in (deadly, innocent):
                journal.accepted(entry)
                for _ in range(SUSPECT):
                    journal.begun(entry)
            journal.handed_back(innocent)
        book, _ = taken_up(tmp_path)
        assert [one.id for one in book.under_way] == ["innocent"]
        [result] = book.results
        assert result.outcome is not None and "3 daemons were killed or failed" in result.outcome.error_text

    play(scenario())


def test_a_job_whose_input_is_gone_is_answered_with_that(tmp_path: Path) -> None:
    async def scenario() -> None:
        with open_journal(tmp_path) as journal:
            journal.accepted(entry_in(tmp_path, "a"))
        (tmp_path / "a.request").unlink()
        book, _ = taken_up(tmp_path)
        [result] = book.results
        assert result.outcome is not None and "input of this job was lost" in result.outcome.error_text

    play(scenario())


@pytest.mark.parametrize("content", [b"this is no database at all" * 100, b""], ids=["damaged", "empty"])
def test_a_damaged_journal_is_put_aside_and_begun_anew(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "journal.sqlite").write_bytes(content)
    with open_journal(tmp_path) as journal:
        assert journal.records() == []
    assert (tmp_path / "journal.damaged").exists() is bool(content)


def test_a_journal_of_another_form_is_put_aside(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "journal.sqlite") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with open_journal(tmp_path) as journal:
        assert journal.records() == []
    assert (tmp_path / "journal.damaged").exists()


def test_a_folder_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResourceError, match="journal cannot be used"), open_journal(tmp_path / "file" / "x"):
        pass


def test_without_room_on_the_disk_bytes_stay_in_memory_up_to_a_bound(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = Store(
            tmp_path / "gone", disk_bytes=100, memory_bytes=10
        )  # no such folder: nothing is written
        payload = await store.put(b"12345678")
        assert payload.path is None and payload.data() == b"12345678"
        assert (store.on_disk, store.in_memory) == (0, 8)
        with pytest.raises(BusyError, match="no room for this request"):
            await store.put(b"123")
        store.discard(payload)
        assert store.in_memory == 0
        (tmp_path / "gone").mkdir()  # and there is room again
        payload = await store.put(b"12345678")
        assert payload.path is not None and payload.data() == b"12345678"
        store.discard(payload)
        store.close()
        assert list((tmp_path / "gone").iterdir()) == [] and store.on_disk == 0

    play(scenario())


def test_a_client_that_goes_away_while_its_request_is_written_leaves_no_file(tmp_path: Path) -> None:
    async def scenario() -> None:
        store = Store(tmp_path, disk_bytes=1 << 30, memory_bytes=0)
        putting = asyncio.ensure_future(store.put(bytes(1 << 24)))
        await asyncio.sleep(0)
        putting.cancel()
        await until(lambda: putting.done() and store.on_disk == 0)
        store.close()
        assert list(tmp_path.iterdir()) == []

    play(scenario())


def durability_on_a_full_disk(folder: Path) -> tuple[bool, bool, list[str]]:
    """In a process of its own, where no file may grow: of a job from before that, of one after it, and who
    is in the journal at the end."""

    async def told() -> tuple[bool, bool]:
        early, late = entry_in(folder, "early"), entry_in(folder, "late")
        with open_journal(folder) as journal:
            journal.accepted(early)
            is_early = await journal.has(early)
            grown = (folder / "journal.sqlite-wal").stat().st_size
            resource.setrlimit(resource.RLIMIT_FSIZE, (grown, resource.RLIM_INFINITY))
            journal.accepted(late)
            return is_early, await journal.has(late)

    durable = asyncio.run(told())
    with open_journal(folder) as journal:
        return *durable, [record.id for record in journal.records()]


def test_a_job_that_finds_the_disk_full_only_at_the_commit_is_not_called_durable(tmp_path: Path) -> None:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        found = process.submit(durability_on_a_full_disk, tmp_path).result(SOON_S)
    assert found == (True, False, ["early"])


def test_a_daemon_whose_journal_breaks_goes_on_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        async with running(folder=tmp_path, journal=tmp_path / "journal") as (daemon, caller):
            assert daemon._journal is not None
            daemon._journal._connection.execute("PRAGMA query_only = 1")  # as a full disk: nothing is written
            for k in range(3):
                submit = porep(str(k))
                call = caller.prove(submit)
                assert (await call).result.proof == proof_of(submit)
                assert dict(iter(await call.initial_metadata()))["cuzk-durable"] == "no"
            daemon._journal._connection.execute("PRAGMA query_only = 0")
            call = caller.prove(porep("again"))
            assert (await call).result.status == COMPLETED
            assert dict(iter(await call.initial_metadata()))["cuzk-durable"] == "yes"

    play(scenario())
    said = [record.message for record in caplog.records if "journal cannot be written" in record.message]
    assert len(said) == 1
