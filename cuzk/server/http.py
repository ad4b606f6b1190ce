"""The daemon's other door: status, metrics and the page, over HTTP.

    /              the page: one file that loads nothing
    /events        what the page lives on: server-sent events
    /api/status    the same as one document
    /status        the status document of Curio's daemon
    /metrics       for Prometheus
    /healthz       whether the process answers; /readyz: whether a proof could start now

With a token, all but the page itself and the last two ask for it: `Authorization: Bearer TOKEN`. Nothing here
may be read by pages of other origins.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import ssl
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from cuzk.server.contract_status import TookOf, contract_status
from cuzk.server.door import Door
from cuzk.server.live_status import live_spans, live_status
from cuzk.server.metrics import CONTENT_TYPE, Metrics
from cuzk.server.observation import Observation, Sight
from cuzk.server.recent import Recent
from cuzk.server.status_page import content_security_policy, page

#: Readers of events at a time.
MOST_READERS = 32
#: Between two events of a reader.
EVERY_S = 1.0
#: A reader that does not take an event in this time is sent away; it may come again.
PATIENCE_S = 10.0
_OPEN = frozenset({"/", "/healthz", "/readyz"})

Document = Callable[[Sight, TookOf], dict[str, Any]]
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class StatusServer:
    """Serves an observation. All methods are of one event loop.

    owns     its sockets, one task a reader
    borrows  the observation
    """

    def __init__(
        self,
        observation: Observation,
        *,
        metrics: Metrics | None = None,
        token: str | None = None,
        every_s: float = EVERY_S,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._observation, self._token = observation, token
        self._every_s, self._patience_s = every_s, patience_s
        self._metrics = metrics or Metrics(observation)
        self._readers: set[asyncio.Task[Any]] = set()
        self._state = (-1.0, "")  # when it was put together, and the event; for all readers
        self._making = asyncio.Lock()
        self.dropped = 0
        app = web.Application(middlewares=[_secured, self._authorised], client_max_size=4096)
        app.add_routes(
            [
                web.get("/", self._page),
                web.get("/healthz", self._health),
                web.get("/readyz", self._ready),
                web.get("/metrics", self._text_of_metrics),
                web.get("/api/status", self._live),
                web.get("/events", self._events),
                web.get("/status{rest:.*}", self._status),
            ]
        )
        self._door = Door(app)

    async def open(self, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> int:
        """Listen; the port that it got. Raises OSError."""
        return await self._door.open(host, port, tls=tls)

    async def close(self) -> None:
        """Send readers away, and listen no more."""
        for reader in list(self._readers):
            reader.cancel()
        await self._door.close()

    # ---- who may ----

    @web.middleware
    async def _authorised(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._token is None or request.path in _OPEN:
            return await handler(request)
        given = request.headers.get("Authorization", "")
        if hmac.compare_digest(given.encode(errors="surrogateescape"), f"Bearer {self._token}".encode()):
            return await handler(request)
        return web.Response(
            status=401, text="a token is needed\n", headers={"WWW-Authenticate": 'Bearer realm="cuzk"'}
        )

    # ---- answers ----

    async def _page(self, request: web.Request) -> web.Response:
        return web.Response(
            text=page(),
            content_type="text/html",
            charset="utf-8",
            headers={"Content-Security-Policy": content_security_policy()},
        )

    async def _health(self, request: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _ready(self, request: web.Request) -> web.Response:
        why = self._observation.look().not_ready
        return web.Response(status=200 if why is None else 503, text=f"{why or 'ready'}\n")

    async def _text_of_metrics(self, request: web.Request) -> web.Response:
        text = await self._metrics.text_beside()
        return web.Response(body=text.encode(), headers={"Content-Type": CONTENT_TYPE})

    async def _status(self, request: web.Request) -> web.Response:
        return _json(await self._text_of(contract_status))

    async def _live(self, request: web.Request) -> web.Response:
        return _json(await self._text_of(live_status))

    async def _text_of(self, document: Document) -> str:
        """Built beside the event loop, which answers others meanwhile: of a thousand jobs it takes 20 ms."""
        sight, took_of = self._observation.look(), self._observation.recent.took_ms
        return await asyncio.to_thread(lambda: _compact(document(sight, took_of)))

    # ---- events ----

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """Spans that ended since the last event, and the state, again and again.

        Nothing waits for a reader but its own last event: who is slow gets newer ones, who is stuck none.
        """
        if len(self._readers) >= MOST_READERS:
            return web.Response(status=503, text="too many readers\n", headers={"Retry-After": "10"})
        task = asyncio.current_task()
        assert task is not None
        self._readers.add(task)
        response = web.StreamResponse(
            headers={"Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
        )
        try:
            await response.prepare(request)
            await self._feed(response)
        except (asyncio.TimeoutError, TimeoutError):
            self.dropped += 1
            if request.transport is not None:
                request.transport.abort()
        except ConnectionError:
            pass
        finally:
            self._readers.discard(task)
        return response

    async def _state_event(self) -> str:
        """Put together once for all readers that want it at about the same time."""
        clock = asyncio.get_running_loop().time
        async with self._making:
            made, text = self._state
            if clock() - made > self._every_s / 2 or not text:
                text = _event("state", await self._text_of(live_status))
                self._state = clock(), text
            return text

    async def _feed(self, response: web.StreamResponse) -> None:
        seen = 0
        while True:
            fresh = self._observation.recent.look(seen)
            seen = fresh.count
            spans = await asyncio.to_thread(_spans_event, fresh)
            text = spans + await self._state_event()
            await asyncio.wait_for(response.write(text.encode()), self._patience_s)
            await asyncio.sleep(self._every_s)


def _spans_event(fresh: Recent) -> str:
    return _event("spans", _compact(live_spans(fresh)))


def _event(name: str, data: str) -> str:
    return f"event: {name}\ndata: {data}\n\n"


def _compact(document: dict[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"))


def _json(text: str) -> web.Response:
    return web.Response(body=text.encode(), content_type="application/json")


@web.middleware
async def _secured(request: web.Request, handler: Handler) -> web.StreamResponse:
    """What is asked for in vain answers like everything else."""
    try:
        return await handler(request)
    except web.HTTPNotFound:
        return web.Response(status=404, text="404 Not Found\n")
    except web.HTTPMethodNotAllowed as error:
        return web.Response(
            status=405, text="405 Method Not Allowed\n", headers={"Allow": error.headers["Allow"]}
        )
