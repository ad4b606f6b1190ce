"""Clients that know nothing of us: what the daemon says of itself is enough to call it, and to watch it."""

from __future__ import annotations

import asyncio
import base64
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import json_format
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

from cuzk.server.contract import SERVICE
from tests.server.fakes import proof_of
from tests.server.hall import SOON_S, porep, refused, running

HEALTH = "grpc.health.v1.Health"
STATES = health_pb2.HealthCheckResponse


def called(target: str, method: str, request: dict[str, Any]) -> dict[str, Any]:
    """As grpcurl does it: the method's types come from the server, request and answer are JSON."""
    with grpc.insecure_channel(target) as channel:
        pool = DescriptorPool(ProtoReflectionDescriptorDatabase(channel))
        service, _, name = method.partition("/")
        found = pool.FindServiceByName(service).methods_by_name[name]
        asked = json_format.ParseDict(request, GetMessageClass(found.input_type)())
        answer = channel.unary_unary(
            f"/{method}",
            request_serializer=type(asked).SerializeToString,
            response_deserializer=GetMessageClass(found.output_type).FromString,
        )(asked, timeout=SOON_S)
        return dict(json_format.MessageToDict(answer, preserving_proto_field_name=True))


def test_a_client_without_the_proto_file_lists_services_and_proves(tmp_path: Path) -> None:
    target = f"unix:{tmp_path / 'cuzk.sock'}"

    def look() -> None:
        with grpc.insecure_channel(target) as channel:
            services = set(ProtoReflectionDescriptorDatabase(channel).get_services())
        assert {SERVICE, HEALTH} <= services
        submit = {"request_id": "a", "proof_kind": "POREP_SEAL_COMMIT", "vanilla_proof": "YzE="}
        answer = called(target, f"{SERVICE}/Prove", {"submit": submit})
        proof = base64.b64decode(answer["result"]["proof"])
        assert (answer["result"]["status"], proof) == ("COMPLETED", proof_of(porep("a")))
        status = called(target, f"{SERVICE}/GetStatus", {})
        assert status["total_proofs_completed"] == "1" and status["gpus"][0]["name"]
        assert called(target, f"{HEALTH}/Check", {"service": SERVICE}) == {"status": "SERVING"}

    async def scenario() -> None:
        async with running(folder=tmp_path):
            await asyncio.to_thread(look)

    asyncio.run(scenario())


def test_who_watches_its_health_is_told_when_it_ends(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(folder=tmp_path) as (daemon, caller):
            go_on = daemon.prover.hold()
            going = asyncio.ensure_future(caller.prove(porep("slow")))
            watch = health_pb2_grpc.HealthStub(caller.channel).Watch(health_pb2.HealthCheckRequest())
            assert (await watch.read()).status == STATES.SERVING
            while not list(daemon.book.under_way):
                await asyncio.sleep(0.01)
            daemon.end()
            assert (await watch.read()).status == STATES.NOT_SERVING
            go_on.set()
            assert (await going).result.proof == proof_of(porep("slow"))
            watch.cancel()

    asyncio.run(asyncio.wait_for(scenario(), SOON_S))


def test_the_health_of_a_service_that_is_not_there_is_not_known(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(folder=tmp_path) as (_, caller):
            check = health_pb2_grpc.HealthStub(caller.channel).Check
            code, _ = await refused(check(health_pb2.HealthCheckRequest(service="cuzk.v2.ProvingEngine")))
            assert code is grpc.StatusCode.NOT_FOUND

    asyncio.run(scenario())


@pytest.mark.parametrize("method", [f"/{SERVICE}/Prove2", "/cuzk.v2.ProvingEngine/Prove", "/"])
def test_methods_that_are_not_there_are_not_implemented(method: str, tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running(folder=tmp_path) as (_, caller):
            code, _ = await refused(caller.channel.unary_unary(method)(b"", timeout=SOON_S))
            assert code is grpc.StatusCode.UNIMPLEMENTED

    asyncio.run(scenario())
