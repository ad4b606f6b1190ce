"""What runs beside the service of a daemon: its observation, and the door for status, metrics and page."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Sequence
from contextlib import suppress

from cuzk.server.address import Address, require_tcp
from cuzk.server.book import Entry
from cuzk.server.card_readings import CardReadings
from cuzk.server.daemon import Daemon
from cuzk.server.history import Ended
from cuzk.server.http import StatusServer
from cuzk.server.log import Log
from cuzk.server.metrics import Metrics
from cuzk.server.observation import Observation, Surroundings, WaitingJob

_LOG = Log("cuzk_daemon")
_RETRY_S = 30.0  # after status could not be served


class Beside:
    """A companion of a daemon, which must have been given the observation's recorder for its engine.

    port  where status is served, once it is
    Of the event loop's thread, like the daemon.
    """

    def __init__(self, observation: Observation, cards: CardReadings | None = None) -> None:
        self._observation, self._cards = observation, cards
        self._metrics = Metrics(observation)
        self._server: StatusServer | None = None
        self._opening: asyncio.Task[None] | None = None
        self.port: int | None = None

    async def metrics(self) -> str:
        """For GetMetrics."""
        return await self._metrics.text_beside()

    async def start(self, daemon: Daemon) -> None:
        """Status that cannot be served keeps no daemon from proving: it is tried again until it can.

        Raises UsageError for what is no address of TCP, and as `Access.token` and `Access.context`.
        """
        surroundings = Surroundings(
            waiting=lambda: _waiting(daemon),
            not_ready=lambda: _not_ready(daemon),
            rejected=lambda: daemon.book.rejected,
        )
        self._observation.begin(daemon.prover, surroundings, cards=self._cards)
        daemon.book.on_ended.append(self._ended)
        daemon.book.on_rejected.append(self._observation.history.refuse)
        address, access = daemon.settings.status_listen, daemon.settings.access
        if address is None:
            return
        require_tcp(address)
        self._opening = asyncio.create_task(self._listen(address, access.token(), access.context()))

    async def stop(self) -> None:
        if self._opening is not None:
            self._opening.cancel()
            with suppress(asyncio.CancelledError):
                await self._opening
        if self._server is not None:
            await self._server.close()
        self._observation.close()

    async def _listen(self, address: Address, token: str | None, tls: ssl.SSLContext | None) -> None:
        said = ""
        while self.port is None:
            self._server = StatusServer(self._observation, metrics=self._metrics, token=token)
            try:
                self.port = await self._server.open(address.host, address.port, tls=tls)
            except OSError as error:
                await self._server.close()
                reason = error.strerror or str(error)
                if reason != said:
                    _LOG.error(
                        f"status cannot be served: {reason}",
                        addr=str(address),
                        next="stop the process that listens there, or set daemon.status_listen to another "
                        f"address; it is tried again every {_RETRY_S:.0f} s",
                    )
                said = reason
                await asyncio.sleep(_RETRY_S)
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
