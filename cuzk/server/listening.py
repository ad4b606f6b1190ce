"""The gRPC server itself: its services, its limits, its addresses."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from typing import Any

import grpc
from grpc_health.v1 import health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from cuzk.errors import ResourceError
from cuzk.server.access import Access, RequireToken
from cuzk.server.address import Address, numeric, owned_socket, parse_address, permit, private
from cuzk.server.contract import MESSAGE_LIMITS, SERVICE
from cuzk.server.log import Log
from cuzk.server.service import Service

_LOG = Log("cuzk_daemon")
_MS = 1000
_HANDSHAKE_S = 20  # a connection that has not said by then what it wants is closed
_PING_S, _ANSWER_S = 30, 20  # clients that are gone without a word are found out: nobody waits for their jobs
_OPTIONS = [
    *MESSAGE_LIMITS,
    ("grpc.so_reuseport", 0),  # else a second daemon would share the port in silence
    ("grpc.server_handshake_timeout_ms", _HANDSHAKE_S * _MS),
    ("grpc.keepalive_time_ms", _PING_S * _MS),
    ("grpc.keepalive_timeout_ms", _ANSWER_S * _MS),
    ("grpc.http2.max_pings_without_data", 0),
]


def new_server(service: Service, health: Any, access: Access) -> Any:
    """With the contract, health and reflection. Raises as `Access.token`."""
    token = access.token()
    server = grpc.aio.server(interceptors=[] if token is None else [RequireToken(token)], options=_OPTIONS)
    server.add_generic_rpc_handlers((service.handlers(),))
    health_pb2_grpc.add_HealthServicer_to_server(health, server)
    reflection.enable_server_reflection((SERVICE, "grpc.health.v1.Health", reflection.SERVICE_NAME), server)
    return server


def bind(
    server: Any, address: Address, access: Access, sockets: ExitStack, *, mode: int, group: str | None
) -> list[str]:
    """Where it listens, in words; what must be undone at its end is put on `sockets`.

    mode, group  of a unix socket
    Raises ResourceError when it cannot be had, and as `Access.context`.
    """
    credentials = access.credentials()
    if address.path is not None:
        sockets.enter_context(owned_socket(address.path))
        with private():
            _add(server, f"unix:{address.path}", credentials)
        permit(address.path, mode, group)
        _LOG.info("listening on unix socket", path=address.path)
        return [str(address)]
    bound = []
    for text in numeric(address):
        host, _, _ = text.rpartition(":")
        bound.append(f"{host}:{_add(server, text, credentials)}")
        _LOG.info("listening on TCP", addr=bound[-1])
    return bound


def _add(server: Any, address: str, credentials: Any) -> int:
    """The port that it got."""
    try:
        if credentials is None:
            return int(server.add_insecure_port(address))
        return int(server.add_secure_port(address, credentials))
    except RuntimeError as error:
        raise ResourceError(
            f"the address cannot be had: {_reason(address)}",
            where=address,
            next="stop the process that listens there, or listen elsewhere",
        ) from error


def _reason(address: str) -> str:
    """The system is asked once more: gRPC tells what it said on stderr alone."""
    asked = parse_address(address)
    if asked.path is None:
        try:
            with socket.socket(socket.AF_INET6 if ":" in asked.host else socket.AF_INET) as probe:
                probe.bind((asked.host, asked.port))
        except OSError as error:
            return error.strerror or str(error)
    return "gRPC has said why on stderr"
