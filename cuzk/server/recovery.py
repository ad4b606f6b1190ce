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
from cuzk.server.payload import Payload
from cuzk.server.store import Store, leftovers
from cuzk.units import format_duration

_LOG = Log("cuzk_server.journal")


def write_down(book: Book, feeder: Feeder, journal: Journal) -> None:
    """From now on the journal hears what becomes of jobs."""

    def ended(entry: Entry) -> None:
        assert entry.outcome is not None, entry.id
        if not entry.outcome.is_handed_back:
            journal.ended(entry)
            journal.forget(most=book.kept, before=book.now() - book.kept_s)
        elif not entry.outcome.is_suspect:  # of a suspect it stays written down that it was begun
            journal.handed_back(entry)

    book.on_accepted.append(journal.accepted)
    book.on_kept.append(journal.kept)
    feeder.on_begun.append(journal.begun)
    book.on_ended.append(ended)


def let_go(book: Book, store: Store) -> None:
    """From now on the store's bytes go with their jobs, but those of jobs that the next daemon will do."""

    def ended(entry: Entry) -> None:
        assert entry.outcome is not None, entry.id
        if not entry.outcome.is_handed_back:
            store.discard(entry.payload)

    book.on_ended.append(ended)


def take_up(book: Book, store: Store, journal: Journal, folder: Path, *, waiting_s: float) -> None:
    """Results that are not too old answer again, jobs that waited wait again.

    waiting_s  from its acceptance on, a job of SubmitProof is taken up for so long; one of Prove, whose call
               ended with the daemon, as long as results are kept

    Before `write_down`, since the journal has them already; what is given up is written down as failed.
    """
    oldest, used = book.now() - book.kept_s, set()
    for record in journal.records():
        if record.identity[0] not in KINDS:
            _LOG.error("a job of no known kind is forgotten", job_id=record.id, proof_kind=record.identity[0])
            journal.drop(record.id)
            continue
        entry = book.entry(record.id, record.identity, record.priority, record.payload, record.accepted_at)
        entry.is_kept = entry.is_durable = True
        if record.outcome is not None:
            if record.outcome.ended_at >= oldest:
                entry.outcome = record.outcome
                book.keep(entry)
            continue
        why = _hopeless(record) or _late(record, book, waiting_s)
        if why is not None:
            _give_up(entry, why, book, journal)
            continue
        assert record.payload.path is not None, record.id
        used.add(record.payload.path)
        store.restored(record.payload)
        book.begin(entry)
        _LOG.info("job taken up again", job_id=entry.id, proof_kind=entry.kind.name, begun=record.begun)
    journal.forget(most=book.kept, before=oldest)
    for path in leftovers(folder, used):
        path.unlink(missing_ok=True)


def _give_up(entry: Entry, why: str, book: Book, journal: Journal) -> None:
    """Answer whoever asks with that; its input goes with what is left over."""
    _LOG.error("job given up", job_id=entry.id, proof_kind=entry.kind.name, why=why)
    entry.payload = Payload()
    error = EngineError(why, next="send it again if it is still wanted")
    book.end(entry, Outcome(status=Status.FAILED, error=error))
    journal.ended(entry)


def _hopeless(record: Record) -> str | None:
    """Why a job cannot be begun again."""
    assert record.payload.path is not None, record.id
    if not record.payload.path.exists():
        return "the input of this job was lost while the daemon was down"
    if record.begun >= SUSPECT:
        return f"{record.begun} daemons were killed or failed while they had this job"
    return None


def _late(record: Record, book: Book, waiting_s: float) -> str | None:
    """Why nobody may be waiting for a job any more."""
    key, most_s = ("daemon.waiting_age", waiting_s) if record.is_kept else ("daemon.results_age", book.kept_s)
    waited_s = book.now() - record.accepted_at
    if waited_s <= most_s:
        return None
    waited, most = format_duration(waited_s), format_duration(most_s)
    return f"the daemon was started anew when this job had waited for {waited}, more than {key}, {most}"
