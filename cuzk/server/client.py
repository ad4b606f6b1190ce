"""The other side: calls to a daemon, with errors that users understand."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import grpc

from cuzk.errors import CuzkError, EngineError, InputError, ResourceError, UsageError
from cuzk.server import proving_pb2 as pb
from cuzk.server.contract import ANSWERED, MESSAGE_LIMITS, SERVICE

_Answer = TypeVar("_Answer")
#: What gRPC says of a port for HTTP.
_NO_GRPC = ("HTTP/2", "http1.x", "http2")


def target_of(address: str) -> str:
    """What gRPC calls the address: unix:///path stays, http://host:port and host:port go by name.

    Raises UsageError.
    """
    for scheme in ("http://", "https://"):
        if address.startswith(scheme):
            address = address.removeprefix(scheme).rstrip("/")
    if not address.startswith(("unix:", "dns:", "ipv4:", "ipv6:")) and ":" not in address:
        raise UsageError(
            f"{address!r} is no address",
            where="-a",
            next="write http://127.0.0.1:9820, 127.0.0.1:9820 or unix:///path/to/socket",
        )
    return address


class Client:
    """Calls one daemon; one channel, any number of threads. `with` closes it.

    token      sent with every call
    authority  a file with certificates: the channel is TLS
    """

    def __init__(self, address: str, *, token: str | None = None, authority: Path | None = None) -> None:
        self.address, target = address, target_of(address)
        self._metadata = [] if token is None else [("authorization", f"Bearer {token}")]
        if authority is None and not address.startswith("https://"):
            self._channel = grpc.insecure_channel(target, options=MESSAGE_LIMITS)
        else:
            roots = None if authority is None else authority.read_bytes()
            credentials = grpc.ssl_channel_credentials(root_certificates=roots)
            self._channel = grpc.secure_channel(target, credentials, options=MESSAGE_LIMITS)

    def prove(self, submit: pb.SubmitProofRequest) -> pb.AwaitProofResponse:
        """How it ended, once it has; a proof that failed is an answer. Raises CuzkError, as all calls do."""
        return self._call("Prove", pb.ProveRequest(submit=submit), pb.ProveResponse, None).result

    def status(self) -> pb.GetStatusResponse:
        return self._call("GetStatus", pb.GetStatusRequest(), pb.GetStatusResponse)

    def metrics(self) -> str:
        return self._call("GetMetrics", pb.GetMetricsRequest(), pb.GetMetricsResponse).prometheus_text

    def preload(self, circuit: str) -> pb.PreloadSrsResponse:
        return self._call("PreloadSRS", pb.PreloadSrsRequest(circuit_id=circuit), pb.PreloadSrsResponse, None)

    def evict(self, circuit: str) -> pb.EvictSrsResponse:
        return self._call("EvictSRS", pb.EvictSrsRequest(circuit_id=circuit), pb.EvictSrsResponse, None)

    def cancel(self, job_id: str) -> bool:
        request = pb.CancelProofRequest(job_id=job_id)
        return self._call("CancelProof", request, pb.CancelProofResponse).was_running

    def _call(
        self, method: str, request: Any, answer: type[_Answer], timeout_s: float | None = 30.0
    ) -> _Answer:
        call = self._channel.unary_unary(
            f"/{SERVICE}/{method}",
            request_serializer=type(request).SerializeToString,
            response_deserializer=getattr(answer, "FromString"),  # noqa: B009
        )
        try:
            answered: _Answer = call(request, timeout=timeout_s, metadata=self._metadata)
        except grpc.RpcError as error:
            raise self._explained(error) from error
        return answered

    def _explained(self, error: Any) -> CuzkError:
        code, text = error.code(), error.details()
        if ANSWERED in (error.trailing_metadata() or ()):  # by our daemon, whose texts say what to do next
            if code is grpc.StatusCode.INVALID_ARGUMENT:
                return InputError(text)  # the text has the place: it is in the request
            kind = EngineError if code is grpc.StatusCode.UNAVAILABLE else CuzkError
            return kind(text, where=self.address)
        if code is grpc.StatusCode.INVALID_ARGUMENT:
            return InputError(text, where=self.address, next="mend the request")
        if code is grpc.StatusCode.UNAVAILABLE and any(sign in text for sign in _NO_GRPC):
            return ResourceError(
                f"what answers there does not speak gRPC: {text}",
                where=self.address,
                next="name the address of `cuzk serve --listen`, not that of --status-listen",
            )
        if code is grpc.StatusCode.UNAVAILABLE:
            return ResourceError(
                f"the daemon cannot be reached: {text}",
                where=self.address,
                next="check that it runs and listens there",
            )
        return CuzkError(f"{code.name}: {text}", where=self.address, next="see the daemon's log")

    def close(self) -> None:
        self._channel.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()
