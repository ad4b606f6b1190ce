"""The contract's methods, one function each: translate, ask the book or the prover, translate back.

A proof that fails is an answer, not an error of the call. Errors of gRPC say: the input is at fault
(INVALID_ARGUMENT, with the place), the daemon is ending (UNAVAILABLE), it cannot hold the request
(RESOURCE_EXHAUSTED).

Submit and Prove take their one message as a stream of one: `receiving` says why.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any, NoReturn

import grpc

from cuzk.errors import BusyError, CuzkError, InputError
from cuzk.server import proving_pb2 as pb
from cuzk.server.book import Arrival, Book, Entry
from cuzk.server.card_readings import CardReading
from cuzk.server.contract import ANSWERED, SERVICE
from cuzk.server.feeder import Feeder
from cuzk.server.first_bytes import FIRST_BYTES, name_and_kind, prove_request_head
from cuzk.server.kept_memory import KeptMemory
from cuzk.server.kinds import KINDS
from cuzk.server.loads import Loads
from cuzk.server.log import Log
from cuzk.server.messages import (
    code_of,
    cut,
    late_message,
    loaded_srs,
    result_message,
    status_message,
    text_of,
)
from cuzk.server.outcome import HandedBack
from cuzk.server.payload import Payload
from cuzk.server.readers import Readers
from cuzk.server.receiving import LateError, Receiving
from cuzk.server.seam import ProofRequest, Prover
from cuzk.server.store import Store

#: Metadata of Submit and Prove: how many jobs came first, and whether the job survives a restart.
POSITION_KEY, DURABLE_KEY = "cuzk-queue-position", "cuzk-durable"

_LOG = Log("cuzk_server.service")
_MS = 1000


class Service:
    """Answers calls while `is_open`; then Submit and Prove answer UNAVAILABLE.

    is_durable  whether a job survives the end of the process, once that is sure
    metrics     the text for GetMetrics
    cards       what the driver said last, by the names of devices; for GetStatus
    """

    def __init__(
        self,
        *,
        book: Book,
        feeder: Feeder,
        readers: Readers,
        prover: Prover,
        loads: Loads,
        store: Store,
        memory: KeptMemory,
        is_durable: Callable[[Entry], Awaitable[bool]],
        metrics: Callable[[], Awaitable[str]],
        cards: Callable[[], Mapping[str, CardReading]],
    ) -> None:
        self._book, self._feeder, self._readers, self._prover = book, feeder, readers, prover
        self._loads, self._store, self._is_durable = loads, store, is_durable
        self._metrics, self._cards = metrics, cards
        self._receiving = Receiving(memory)
        self.is_open = True

    # ---- proofs ----

    async def submit(self, context: Any) -> pb.SubmitProofResponse:
        entry, position = await self._accepted(context, prove_request_head, is_kept=True)
        return pb.SubmitProofResponse(job_id=entry.id, queue_position=position)

    async def prove(self, context: Any) -> pb.ProveResponse:
        entry, _ = await self._accepted(context, lambda nbytes: b"", is_kept=False)
        await self._book.wait(entry)
        error = None if entry.outcome is None else entry.outcome.error
        if isinstance(error, InputError | HandedBack):
            await _abort(context, error)
        return pb.ProveResponse(result=result_message(entry))

    async def wait(self, request: pb.AwaitProofRequest, context: Any) -> pb.AwaitProofResponse:
        _LOG.info("AwaitProof", job_id=request.job_id)
        entry = self._book.find(request.job_id)
        if entry is None:
            await context.abort(grpc.StatusCode.NOT_FOUND, cut(f"job not found: {request.job_id}"))
            raise AssertionError("abort raises")
        timeout_s = request.timeout_ms / _MS if request.timeout_ms else None
        if await self._book.wait(entry, timeout_s) is None:
            return late_message(entry, self._feeder.position(entry))
        if entry.outcome is not None and isinstance(entry.outcome.error, HandedBack):
            await _abort(context, entry.outcome.error)
        return result_message(entry)

    async def cancel(self, request: pb.CancelProofRequest, context: Any) -> pb.CancelProofResponse:
        entry = self._book.find(request.job_id)
        was_running = entry is not None and self._book.cancel(entry, "the job was cancelled")
        _LOG.info("CancelProof", job_id=request.job_id, was_running=was_running)
        return pb.CancelProofResponse(was_running=was_running)

    async def _accepted(
        self,
        context: Any,
        head: Callable[[int], bytes],
        *,
        is_kept: bool,
    ) -> tuple[Entry, int]:
        """The job of the request, read and checked, and how many jobs were waiting before it came.

        head  what makes a ProveRequest of a message of so many bytes, written before it
        """
        name = "SubmitProof" if is_kept else "Prove"
        with self._book.arriving() as arrival:
            payload = await self._stored(context, head, name, arrival)
            request = await self._read(context, payload, name)
            position = len(self._book.waiting(self._prover.status()))
            entry = self._book.accept(request, payload, arrived_at=arrival.at, is_kept=is_kept)
        if entry.payload is not payload:
            self._store.discard(payload)
        with self._book.calling(entry):  # from now on: others who wait may go
            durable = "yes" if await self._is_durable(entry) else "no"
            await context.send_initial_metadata(((POSITION_KEY, str(position)), (DURABLE_KEY, durable)))
        return entry, position

    async def _read(self, context: Any, payload: Payload, name: str) -> ProofRequest:
        """The request that it is, while the daemon takes some; what it is not goes."""
        try:
            request = await self._readers.read(payload, check=True)
            if request.note:
                _LOG.warn("the request is odd", request_id=request.request_id, note=request.note)
            if not self.is_open:
                await _abort_closing(context)
        except BaseException as error:
            self._store.discard(payload)
            if isinstance(error, CuzkError):
                self._book.reject(error)
                _LOG.warn(f"{name} refused", error=error)
                await _abort(context, error)
            raise
        return request

    async def _stored(
        self, context: Any, head: Callable[[int], bytes], name: str, arrival: Arrival
    ) -> Payload:
        async def keep(message: bytes) -> Payload:
            before = head(len(message))
            request_id, number = name_and_kind(before + message[:FIRST_BYTES])
            if number in KINDS:
                arrival.kind = KINDS[number].name
            _LOG.info(name, request_id=request_id, proof_kind=number, input_size=len(message))
            return await self._store.put(before, message)

        if not self.is_open:
            await _abort_closing(context)
        try:
            return await self._receiving.of(context, keep)
        except LateError as error:
            text = str(error)
            await context.abort(grpc.StatusCode.ABORTED, text, trailing_metadata=(ANSWERED,))
            raise
        except BusyError as error:
            await _abort(context, error)

    # ---- the daemon ----

    async def status(self, request: pb.GetStatusRequest, context: Any) -> pb.GetStatusResponse:
        return status_message(self._prover.status(), self._book, self._cards())

    async def metrics(self, request: pb.GetMetricsRequest, context: Any) -> pb.GetMetricsResponse:
        return pb.GetMetricsResponse(prometheus_text=await self._metrics())

    async def preload(self, request: pb.PreloadSrsRequest, context: Any) -> pb.PreloadSrsResponse:
        _LOG.info("PreloadSRS", circuit_id=request.circuit_id)
        begin = time.monotonic()
        was_new = await self._asked(self._loads.preload(request.circuit_id), context)
        took_ms = round((time.monotonic() - begin) * _MS) if was_new else 0
        return pb.PreloadSrsResponse(already_loaded=not was_new, load_time_ms=took_ms)

    async def evict(self, request: pb.EvictSrsRequest, context: Any) -> pb.EvictSrsResponse:
        _LOG.info("EvictSRS", circuit_id=request.circuit_id)
        before = _bytes_of(self._prover, request.circuit_id)
        was_loaded = await self._asked(self._loads.evict(request.circuit_id), context)
        freed = max(0, before - _bytes_of(self._prover, request.circuit_id)) if was_loaded else 0
        return pb.EvictSrsResponse(was_loaded=was_loaded, freed_bytes=freed)

    async def _asked(self, answer: Awaitable[bool], context: Any) -> bool:
        try:
            return await answer
        except CuzkError as error:
            _LOG.warn("parameters cannot be loaded or evicted", error=error)
            await _abort(context, error)

    def handlers(self) -> Any:
        """For `grpc.aio.Server.add_generic_rpc_handlers`."""
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "SubmitProof": _stream_of_one(self.submit),
                "AwaitProof": _unary(self.wait, pb.AwaitProofRequest),
                "Prove": _stream_of_one(self.prove),
                "CancelProof": _unary(self.cancel, pb.CancelProofRequest),
                "GetStatus": _unary(self.status, pb.GetStatusRequest),
                "GetMetrics": _unary(self.metrics, pb.GetMetricsRequest),
                "PreloadSRS": _unary(self.preload, pb.PreloadSrsRequest),
                "EvictSRS": _unary(self.evict, pb.EvictSrsRequest),
            },
        )


def _unary(method: Any, request: Any) -> Any:
    return grpc.unary_unary_rpc_method_handler(
        method, request_deserializer=request.FromString, response_serializer=_serialized
    )


def _stream_of_one(method: Any) -> Any:
    async def call(_: AsyncIterator[bytes], context: Any) -> Any:
        """The stream is read through the context: iterating over it keeps the message until the call ends."""
        return await method(context)

    return grpc.stream_unary_rpc_method_handler(call, response_serializer=_serialized)


def _serialized(message: Any) -> bytes:
    data: bytes = message.SerializeToString()
    return data


def _bytes_of(prover: Prover, circuit: str) -> int:
    """What the parameters of a circuit take now."""
    return sum(one.size_bytes for one in loaded_srs(prover.status()) if one.circuit_id == circuit)


async def _abort(context: Any, error: CuzkError) -> NoReturn:
    await context.abort(code_of(error), text_of(error), trailing_metadata=(ANSWERED,))
    raise AssertionError("abort raises")


async def _abort_closing(context: Any) -> NoReturn:
    text = "the daemon is shutting down; send it again later"
    await context.abort(grpc.StatusCode.UNAVAILABLE, text, trailing_metadata=(ANSWERED,))
    raise AssertionError("abort raises")
