"""What runs beside the service of a daemon: its observation, and the door for status, metrics and page."""

from __future__ import annotations

from collections.abc import Sequence

from cuzk.errors import ResourceError, UsageError
from cuzk.server.book import Entry
from cuzk.server.card_readings import CardReadings
from cuzk.server.daemon import Daemon
from cuzk.server.history import Ended
from cuzk.server.http import StatusServer
from cuzk.server.log import Log
from cuzk.server.metrics import Metrics
from cuzk.server.observation import Observation, Surroundings, WaitingJob

_LOG = Log("cuzk_daemon")


class Beside:
    """A companion of a daemon, which must have been given the observation's recorder for its engine.

    port  where status is served, once it is
    Of the event loop's thread, like the daemon.
    """

    def __init__(self, observation: Observation, cards: CardReadings | None = None) -> None:
        self._observation, self._cards = observation, cards
        self._metrics = Metrics(observation)
        self._server: StatusServer | None = None
        self.port: int | None = None

    def metrics(self) -> str:
        """For GetMetrics."""
        return self._metrics.text()

    async def start(self, daemon: Daemon) -> None:
        """Raises UsageError, ResourceError."""
        surroundings = Surroundings(
            waiting=lambda: _waiting(daemon),
            not_ready=lambda: _not_ready(daemon),
            rejected=lambda: daemon.book.rejected,
        )
        self._observation.begin(daemon.prover, surroundings, cards=self._cards)
        daemon.book.on_ended.append(self._ended)
        daemon.book.on_rejected.append(self._observation.history.refuse)
        if daemon.settings.status_listen is not None:
            await self._listen(daemon)

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.close()
        self._observation.close()

    async def _listen(self, daemon: Daemon) -> None:
        address, access = daemon.settings.status_listen, daemon.settings.access
        assert address is not None
        if address.path is not None:
            raise UsageError("status is served over TCP", where=str(address), next="name a host and a port")
        server = StatusServer(self._observation, metrics=self._metrics, token=access.token())
        try:
            self.port = await server.open(address.host, address.port, tls=access.context())
        except OSError as error:
            await server.close()
            raise ResourceError(
                f"status cannot be served here: {error.strerror or error}",
                where=str(address),
                next="stop the process that listens there, or listen elsewhere",
            ) from error
        self._server = server
        _LOG.info("status HTTP server listening", addr=f"{address.host}:{self.port}")

    def _ended(self, entry: Entry) -> None:
        outcome = entry.outcome
        assert outcome is not None, entry.id
        if outcome.is_handed_back:  # it has not ended: the next daemon has it
            return
        result = None if entry.job is None else entry.job.result
        self._observation.end(
            Ended(
                job_id=entry.id,
                kind=entry.kind.name,
                status=outcome.status,
                timings=outcome.timings,
                partitions=() if result is None else result.partitions,
                error=outcome.error,
            )
        )


def _waiting(daemon: Daemon) -> Sequence[WaitingJob]:
    """Jobs that the engine has not been given, the next one first."""
    now = daemon.book.now()
    entries = sorted((e for e in daemon.book.under_way if e.job is None), key=lambda entry: entry.order)
    return [
        WaitingJob(
            job_id=entry.id, kind=entry.kind.name, priority=entry.priority, for_s=now - entry.accepted_at
        )
        for entry in entries
    ]


def _not_ready(daemon: Daemon) -> str | None:
    if daemon.is_draining:
        return "it is shutting down"
    if not daemon.is_ready:
        return "it is starting: devices are opened and parameters loaded"
    if all(device.set_aside for device in daemon.prover.status().devices):
        return "no device is left to prove on"
    return None
