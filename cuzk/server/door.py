"""A listening socket for HTTP that strangers cannot exhaust: so many connections, none of them idle at first.

aiohttp takes every connection and waits for a first request as long as it takes; each holds a file of the
process, which proofs need too.
"""

from __future__ import annotations

import asyncio
import ssl

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

MOST_CONNECTIONS = 128
#: A connection that has asked for nothing after so many seconds is closed.
FIRST_REQUEST_S = 10.0
CLOSING_S = 2.0

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


class _Refusal(asyncio.Protocol):
    """Of a connection too many."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        transport.abort()


class Door:
    """Listens for an application, with headers that keep other pages out of its answers."""

    def __init__(
        self,
        app: web.Application,
        *,
        most: int = MOST_CONNECTIONS,
        first_request_s: float = FIRST_REQUEST_S,
    ) -> None:
        self._most, self._first_request_s = most, first_request_s
        self._silent: set[RequestHandler] = set()  # connections that asked for nothing yet
        app.on_response_prepare.append(self._on_response)
        self._runner = web.AppRunner(app, access_log=None, keepalive_timeout=60.0, shutdown_timeout=CLOSING_S)
        self._server: asyncio.Server | None = None

    async def open(self, host: str, port: int, *, tls: ssl.SSLContext | None = None) -> int:
        """Listen; the port that it got. Raises OSError."""
        await self._runner.setup()
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(self._connection, host, port, ssl=tls, reuse_port=False)
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        await self._runner.cleanup()

    def _connection(self) -> asyncio.Protocol:
        server = self._runner.server
        assert server is not None
        if len(server.connections) >= self._most:
            return _Refusal()
        connection = server()
        self._silent.add(connection)
        asyncio.get_running_loop().call_later(self._first_request_s, self._end_silent, connection)
        return connection

    def _end_silent(self, connection: RequestHandler) -> None:
        if connection in self._silent:
            self._silent.discard(connection)
            if connection.transport is not None:
                connection.transport.abort()

    async def _on_response(self, request: web.Request, response: web.StreamResponse) -> None:
        self._silent.discard(request.protocol)
        response.headers.update(_HEADERS)
