"""Who may call: certificates for TLS, and a token that callers must know."""

from __future__ import annotations

import hmac
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2

from cuzk.errors import ResourceError, UsageError

_HEALTH = "/grpc.health.v1.Health/"


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """Files; all None means plaintext for everyone who can connect, which is what Curio's client speaks.

    certificate, key  of the server, PEM
    client_ca         clients must show a certificate that it signed
    token_file        clients must send what it holds, as `authorization: Bearer TOKEN`
    """

    certificate: Path | None = None
    key: Path | None = None
    client_ca: Path | None = None
    token_file: Path | None = None

    def credentials(self) -> Any:
        """For a secure port of gRPC, None for a plain one. Raises as `context`."""
        # It says what is wrong with certificate and key, where gRPC does on stderr alone.
        if self.context() is None:
            return None
        assert self.certificate is not None and self.key is not None
        authority = None if self.client_ca is None else _content(self.client_ca)
        return grpc.ssl_server_credentials(
            [(_content(self.key), _content(self.certificate))],
            root_certificates=authority,
            require_client_auth=authority is not None,
        )

    def context(self) -> ssl.SSLContext | None:
        """The same for HTTP. Raises UsageError, ResourceError."""
        files = [file for file in (self.certificate, self.key, self.client_ca) if file is not None]
        if not files:
            return None
        if self.certificate is None or self.key is None:
            raise UsageError(
                "TLS needs a certificate and its key",
                where="[daemon]",
                next="set tls_certificate and tls_key, or neither",
            )
        for file in files:
            _content(file)  # an error of ssl names no file
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.certificate, self.key)
        except ssl.SSLError as error:
            raise UsageError(
                f"certificate and key cannot be used: {error.reason}",
                where=str(self.certificate),
                next="give a certificate in PEM and the key that belongs to it",
            ) from error
        if self.client_ca is not None:
            _trust(context, self.client_ca)
        return context

    def token(self) -> str | None:
        """Raises ResourceError, UsageError."""
        if self.token_file is None:
            return None
        token = _content(self.token_file).decode(errors="replace").strip()
        if not token or not token.isascii():
            raise UsageError("the file holds no token", where=str(self.token_file), next="write one into it")
        return token


class RequireToken(grpc.aio.ServerInterceptor):  # type: ignore[misc]  # grpc has no types
    """Refuses calls without the token, but for the health of the server, which whoever watches it asks.

    No message of such a caller is received: it stays with him, by gRPC's flow control, until the call ends.
    """

    def __init__(self, token: str) -> None:
        self._expected = f"Bearer {token}".encode()

        async def refuse(_: AsyncIterator[bytes], context: Any) -> None:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "send authorization: Bearer TOKEN")

        self._refuse = grpc.stream_unary_rpc_method_handler(refuse)

    async def intercept_service(self, proceed: Callable[[Any], Awaitable[Any]], call: Any) -> Any:
        given = [value for key, value in call.invocation_metadata if key == "authorization"]
        if len(given) == 1 and hmac.compare_digest(_bytes(given[0]), self._expected):
            return await proceed(call)
        if call.method.startswith(_HEALTH):
            return _unread(await proceed(call))
        return self._refuse


def _unread(handler: Any) -> Any:
    """Health of the whole server, whatever service the message that is not read names."""
    if handler is None:
        return None
    answer = handler.unary_unary or handler.unary_stream
    shape = (
        grpc.stream_unary_rpc_method_handler if handler.unary_unary else grpc.stream_stream_rpc_method_handler
    )

    async def call(_: AsyncIterator[bytes], context: Any) -> Any:
        return await answer(health_pb2.HealthCheckRequest(), context)

    return shape(call, response_serializer=handler.response_serializer)


def _trust(context: ssl.SSLContext, authority: Path) -> None:
    """Clients must show a certificate that it signed. Raises UsageError."""
    try:
        context.load_verify_locations(authority)
    except ssl.SSLError as error:
        raise UsageError(
            f"clients' certificates cannot be checked by this: {error.reason}",
            where=str(authority),
            next="give certificates in PEM",
        ) from error
    context.verify_mode = ssl.CERT_REQUIRED


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ResourceError(
            f"the file cannot be read: {error.strerror}",
            where=str(path),
            next="check its path and permissions",
        ) from error
