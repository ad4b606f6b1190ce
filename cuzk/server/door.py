"""A listening socket for HTTP that strangers cannot exhaust: so many connections, none of them idle at first.

aiohttp takes every connection, waits for a first request as long as it takes, and does not know of those that
still shake hands for TLS; each holds a file of the process, which proofs need too. So connections are taken
here, and handed over.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
from collections.abc import Coroutine
from typing import Any

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler

MOST_CONNECTIONS = 128
#: A connection that has not shaken hands after so many seconds, or has then asked for nothing, is closed.
FIRST_REQUEST_S = 10.0
CLOSING_S = 2.0
_NOT_HERE = frozenset({errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT})
_NO_FILES_S = 1.0  # until connections are taken again, once the process can open no more files

_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "interest-cohort=()",
    "Server": "cuzk",
}


class _Told(logging.LoggerAdapter):  # type: ignore[type-arg]  # generic only in newer releases of Python
    """What aiohttp says; strangers who do not speak HTTP are a line, not an error with a traceback."""

    def exception(self, msg: object, *args: object, exc_info: Any = True, **kwargs: Any) -> None:
        if isinstance(exc_info, HttpProcessingError):
            first_line = exc_info.message.partition("\n")[0]
            self.info(f"what came is no request of HTTP/1.1: {first_line}")
        else:
            super().exception(msg, *args, exc_info=exc_info, **kwargs)


_LOG = _Told(logging.getLogger("cuzk_server.http"), {})


class Door:
    """Listens for an application, with headers that keep other pages out of its answers.

    owns  its sockets, a task for each, and one for each connection that shakes hands
    """

    def __init__(
        self,
        app: web.Application,
        *,
        most: int = MOST_CONNECTIONS,
        first_request_s: float = FIRST_REQUEST_S,
    ) -> None:
        self._most, self._first_request_s = most, first_request_s
        self._coming: set[RequestHandler] = set()  # connections that shake hands
        self._silent: set[RequestHandler] = set()  # those that asked for nothing yet
        self._listeners: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        app.on_response_prepare.append(self._on_response)
        self._runner = web.AppRunner(
            app, access_log=None, logger=_LOG, keepalive_timeout=60.0, shutdown_timeout=CLOSING_S
        )

    async def open(self, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> int:
        """Listen wherever the host is; the first port that it got.

        A place that this machine lacks, such as IPv6 where it is off, is passed over if there is another.
        Raises OSError.
        """
        await self._runner.setup()
        lacking: OSError | None = None
        found = await asyncio.get_running_loop().getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        for family, place in dict.fromkeys((family, place) for family, *_, place in found):
            try:
                listener = socket.create_server(place, family=family, backlog=MOST_CONNECTIONS)
            except OSError as error:
                if error.errno not in _NOT_HERE:
                    raise
                lacking = error
                continue
            listener.setblocking(False)
            self._listeners.append(listener)
            self._begin(self._take(listener, tls))
        if not self._listeners:
            assert lacking is not None
            raise lacking
        return int(self._listeners[0].getsockname()[1])

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for listener in self._listeners:
            listener.close()
        await self._runner.cleanup()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _take(self, listener: socket.socket, tls: ssl.SSLContext | None) -> None:
        """Connections, as long as there is room for them; one too many is closed at once."""
        server, loop = self._runner.server, asyncio.get_running_loop()
        assert server is not None
        while True:
            try:
                line, _ = await loop.sock_accept(listener)
            except OSError:
                await asyncio.sleep(_NO_FILES_S)
                continue
            if len({*self._coming, *server.connections}) >= self._most:
                line.close()
            else:
                connection = server()
                self._coming.add(connection)
                self._begin(self._greet(connection, line, tls))
            await asyncio.sleep(0)  # else others would wait as long as connections come

    async def _greet(
        self, connection: RequestHandler, line: socket.socket, tls: ssl.SSLContext | None
    ) -> None:
        loop, wait_s = asyncio.get_running_loop(), self._first_request_s
        self._silent.add(connection)
        try:
            await loop.connect_accepted_socket(
                lambda: connection, line, ssl=tls, ssl_handshake_timeout=None if tls is None else wait_s
            )
        except OSError:  # no hands were shaken
            self._silent.discard(connection)
        else:
            loop.call_later(wait_s, self._end_silent, connection)
        finally:
            self._coming.discard(connection)

    def _end_silent(self, connection: RequestHandler) -> None:
        if connection in self._silent:
            self._silent.discard(connection)
            if connection.transport is not None:
                connection.transport.abort()

    async def _on_response(self, request: web.Request, response: web.StreamResponse) -> None:
        self._silent.discard(request.protocol)
        response.headers.update(_HEADERS)
