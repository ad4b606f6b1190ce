"""Between book, store and journal: what is written down of jobs, and taken up again at the next start."""

from __future__ import annotations

from pathlib import Path

from cuzk.engine.jobs import Status
from cuzk.errors import EngineError
from cuzk.server.book import Book, Entry
from cuzk.server.feeder import Feeder
from cuzk.server.journal import SUSPECT, Journal, Record
from cuzk.server.kinds import KINDS
from cuzk.server.log import Log
from cuzk.server.outcome import Outcome
from cuzk.server.store import Store, leftovers

_LOG = Log("cuzk_server.journal")


def write_down(book: Book, feeder: Feeder, journal: Journal) -> None:
    """From now on the journal hears what becomes of jobs."""

    def ended(entry: Entry) -> None:
        assert entry.outcome is not None, entry.id
        if entry.outcome.is_suspect:
            pass  # that it was begun stays written down
        elif entry.outcome.is_handed_back:
            journal.handed_back(entry)
        else:
            journal.ended(entry)
            journal.forget(most=book.kept, before=book.now() - book.kept_s)

    book.on_accepted.append(journal.accepted)
    feeder.on_begun.append(journal.begun)
    book.on_ended.append(ended)


def let_go(book: Book, store: Store) -> None:
    """From now on the store's bytes go with their jobs, but those of jobs that the next daemon will do."""

    def ended(entry: Entry) -> None:
        assert entry.outcome is not None, entry.id
        if not entry.outcome.is_handed_back:
            store.discard(entry.payload)

    book.on_ended.append(ended)


def take_up(book: Book, store: Store, journal: Journal, folder: Path) -> None:
    """Results that are not too old answer again, jobs that waited wait again.

    Before `write_down`, since the journal has them already; what cannot go on is written down as failed.
    """
    oldest, used = book.now() - book.kept_s, set()
    for record in journal.records():
        at = record.accepted_at if record.outcome is None else record.outcome.ended_at
        if at < oldest or record.identity[0] not in KINDS:
            continue
        entry = book.entry(record.id, record.identity, record.priority, record.payload, record.accepted_at)
        entry.is_kept = entry.is_durable = True
        if record.outcome is not None:
            entry.outcome = record.outcome
            book.keep(entry)
            continue
        assert record.payload.path is not None, record.id
        used.add(record.payload.path)
        store.restored(record.payload)
        book.begin(entry)
        why = _hopeless(record)
        if why is not None:
            error = EngineError(why, next="send it again if it is still wanted")
            book.end(entry, Outcome(status=Status.FAILED, error=error))
            journal.ended(entry)
            continue
        _LOG.info("job taken up again", job_id=entry.id, proof_kind=entry.kind.name, begun=record.begun)
    journal.forget(most=book.kept, before=oldest)
    journal.forget_waiting(before=oldest)
    for path in leftovers(folder, used):
        path.unlink(missing_ok=True)


def _hopeless(record: Record) -> str | None:
    """Why a job is not begun again."""
    assert record.payload.path is not None, record.id
    if not record.payload.path.exists():
        return "the input of this job was lost while the daemon was down"
    if record.begun >= SUSPECT:
        return f"{record.begun} daemons were killed or failed while they had this job"
    return None
