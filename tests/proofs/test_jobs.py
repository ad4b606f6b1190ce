"""A partition through an engine's prover: what happens under the device's lock, and what does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cuzk.circuit.builder import Circuit
from cuzk.engine.device_lock import DeviceLock
from cuzk.engine.pipeline import DevicePlace, Pipeline
from cuzk.engine.seam import Needs
from cuzk.engine.settings import Settings
from cuzk.engine.turn import Abandoned, Turn
from cuzk.errors import InputError, ParameterError, ProofError, ResourceError
from cuzk.events import ignore
from cuzk.groth16.generate import generate
from cuzk.groth16.parameters.params_file import open_parameters
from cuzk.groth16.prove import Randomizers
from cuzk.groth16.target_cpu import CpuTarget
from cuzk.groth16.values_at_tau import Trapdoors
from cuzk.groth16.verify import Verifier
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.fr_vector import from_integers
from cuzk.kernels.poseidon import hash_textbook
from cuzk.proofs import jobs
from cuzk.proofs.jobs import DeviceProver, Prepared, ProofSetup, ProofWork
from cuzk.proofs.places import Place
from cuzk.sector.porep.c1_reader import read_c1
from tests.engine.fakes import turn_alone
from tests.groth16.test_prove import PROOF_R13_S17
from tests.sector.porep.documents import POREP
from tests.toy_circuit import toy_circuit, toy_values

HOST = CpuDevice(threads=2)
PREPARED = Prepared(free=toy_values(1, 2), randomizers=Randomizers(r=13, s=17))


@pytest.fixture(scope="module")
def toy() -> Circuit:
    return toy_circuit()


@pytest.fixture(scope="module")
def params(compiled: None, toy: Circuit, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of upstream's trapdoors."""
    folder = tmp_path_factory.mktemp("toy")
    trapdoors = Trapdoors.of([2, 3, 5, 7, 11])
    return generate(HOST, toy, trapdoors, folder=folder, stem="toy", sector_bytes=0, given=True)


class RecordingTarget:
    """A target that notes each call, also of what it gave, and whether the device's lock was held."""

    def __init__(self, target: CpuTarget, lock: DeviceLock) -> None:
        self._target, self._lock = target, lock
        self.calls: list[tuple[str, bool]] = []
        self.during: Callable[[str], None] = lambda name: None

    def __getattr__(self, name: str) -> Any:
        inner = getattr(self._target, name)
        return self._noted(name, inner) if callable(inner) else inner

    def _noted(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            self.calls.append((name, self._lock.locked()))
            self.during(name)
            result = function(*arguments)
            return self._noted(f"end of {name}", result) if callable(result) else result

        return call


@pytest.fixture
def setup(toy: Circuit, params: Path) -> ProofSetup:
    parameters = open_parameters(params)
    return ProofSetup(
        name="toy",
        key="toy",
        circuit=toy,
        parameters=parameters,
        verifier=Verifier(parameters.key),
        places={"cpu": place(toy, lambda most: CpuTarget(HOST, parameters))},
    )


def place(toy: Circuit, new_target: Callable[[int | None], Any], device_bytes: int = 0) -> Place:
    needs = Needs(device=device_bytes, host=0)
    return Place("toy on cpu", toy, needs, new_target, lambda target, on_event: None, ignore)


@pytest.fixture
def lock() -> DeviceLock:
    return DeviceLock()


@pytest.fixture
def target(params: Path, lock: DeviceLock) -> RecordingTarget:
    return RecordingTarget(CpuTarget(HOST, open_parameters(params)), lock)


def turn(lock: DeviceLock, over: list[bool] | None = None, mode: Any = "narrow") -> Turn:
    return turn_alone(lock, mode, is_over=lambda: bool(over))


def test_the_lock_is_held_for_what_the_device_does_and_for_nothing_else(
    setup: ProofSetup, target: RecordingTarget, lock: DeviceLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def noted(name: str, function: Any) -> Any:
        def call(*arguments: Any, **named: Any) -> Any:
            target.calls.append((name, lock.locked()))
            return function(*arguments, **named)

        return call

    monkeypatch.setattr(jobs, "assemble", noted("assemble", jobs.assemble))
    monkeypatch.setattr(Randomizers, "fresh", noted("fresh", Randomizers.fresh))
    prover = DeviceProver(setup, setup.places["cpu"], target)  # type: ignore[arg-type]
    assert prover.prove(PREPARED, turn(lock)).hex() == PROOF_R13_S17
    prover.prove(replace(PREPARED, randomizers=None), turn(lock))

    once = len(target.calls) // 2
    under_lock = [name for name, held in target.calls[:once] if held]
    outside = [name for name, held in target.calls[once:] if not held]
    sums = ["end of sum_over"] * 4
    begun = ["sum_over"] * 4
    assert under_lock == ["assign", "rows", "quotient", *begun, "sum_of_h", *sums, "computed_ms"]
    ends = ["end of sum_of_h", *["end of end of sum_over"] * 4]
    assert outside == ["fresh", *ends, "assemble"]
    assert not lock.locked()


@pytest.mark.parametrize("at", ["assign", "rows", "quotient", "sum_over", "sum_of_h", "end of sum_over"])
def test_a_proof_that_nobody_wants_ends_at_the_next_step_and_leaves_the_target_usable(
    at: str, setup: ProofSetup, target: RecordingTarget, lock: DeviceLock
) -> None:
    over: list[bool] = []
    target.during = lambda name: over.append(True) if name == at and not over else None
    prover = DeviceProver(setup, setup.places["cpu"], target)  # type: ignore[arg-type]
    with pytest.raises(Abandoned):
        prover.prove(PREPARED, turn(lock, over))
    assert target.calls[-1][0] == at or at == "sum_over"  # the sums of a proof are begun together
    assert not lock.locked()
    assert prover.prove(PREPARED, turn(lock)).hex() == PROOF_R13_S17


def test_a_proof_that_finds_no_memory_lets_the_next_target_make_do_with_less(
    setup: ProofSetup, target: RecordingTarget, lock: DeviceLock, toy: Circuit
) -> None:
    def full(name: str) -> None:
        if name == "quotient":
            raise ResourceError("the GPU has no memory left for this", where="cuda:0")

    tried: list[int | None] = []

    def new_target(most: int | None) -> RecordingTarget:
        tried.append(most)
        return target

    target.during = full
    setup = replace(setup, places={"cuda:0": place(toy, new_target, 64)})
    with pytest.raises(ResourceError):
        setup.open("cuda:0").prove(PREPARED, turn(lock))
    setup.open("cuda:0")
    assert tried == [64, 56]


class ToyWork:
    """The toy circuit as work of an engine."""

    kind, partitions, input_bytes, partition_bytes = "toy", (0, 1, 2), 0, 0

    def __init__(self, setup: ProofSetup, digest: str) -> None:
        self.setup, self.digest = setup, digest

    def prepare(self, partition: int) -> Prepared:
        return PREPARED

    def holds(self, partition: int, proof: bytes) -> bool:
        return proof.hex() == PROOF_R13_S17

    def assemble(self, proofs: Any) -> bytes:
        return b"".join(proofs)


@pytest.mark.parametrize("gpu_lock", ["narrow", "coarse", "none"])
def test_workers_that_share_a_device_give_upstreams_proofs(gpu_lock: Any, setup: ProofSetup) -> None:
    """In any of the modes: with "none" each has a target of its own."""
    places = [DevicePlace(name="cpu", memory_bytes=0)]
    with Pipeline(places, host_bytes=1 << 20, settings=Settings(gpu_lock=gpu_lock)) as engine:
        jobs = [engine.submit(ToyWork(setup, str(k))) for k in range(4)]
        for job in jobs:
            result = job.wait(300)
            assert result is not None and result.require_proof().hex() == 3 * PROOF_R13_S17


# ---- the inputs of a sector ----


@pytest.fixture
def work_of(setup: ProofSetup) -> Callable[..., ProofWork]:
    def work(c1: Any = None, partitions: tuple[int, ...] = (0,), rs: Any = None) -> ProofWork:
        return ProofWork(c1 or read_c1(POREP / "2k-random.json"), partitions, setup, HOST, rs)

    return work


def test_equal_inputs_have_equal_digests_wherever_they_came_from(work_of: Callable[..., ProofWork]) -> None:
    c1 = read_c1(POREP / "2k-random.json")
    works = [work_of(), work_of(replace(c1, origin="elsewhere"))]
    assert works[0].digest == works[1].digest
    assert works[0].input_bytes == works[1].input_bytes > 15 * 32 * 2  # more than its columns


def test_every_input_changes_the_digest(work_of: Callable[..., ProofWork]) -> None:
    c1 = read_c1(POREP / "2k-random.json")
    [partition] = c1.partitions
    columns = partition.columns.copy()
    columns[-1, -1, -1, -1] ^= 1
    others = [
        work_of(replace(c1, **{name: bytes(32)}))
        for name in ("replica_id", "comm_d", "comm_r", "seed", "ticket")
    ]
    others += [
        work_of(replace(c1, partitions=(replace(partition, columns=columns),))),
        work_of(replace(c1, registered_proof=read_c1(POREP / "2k-synthetic.json").registered_proof)),
        work_of(partitions=(0, 1)),
        work_of(rs=Randomizers(r=1, s=2)),
    ]
    assert len({work.digest for work in [work_of(), *others]}) == 1 + len(others)


def test_vanilla_proofs_are_checked_when_a_partition_is_prepared(work_of: Callable[..., ProofWork]) -> None:
    c1 = read_c1(POREP / "2k-random.json")
    good = work_of(c1).prepare(0)
    assert len(good.free.numbers) and good.randomizers is None
    [partition] = c1.partitions
    columns = partition.columns.copy()
    columns[0, 3, 1] ^= np.uint8(1)
    bad = work_of(replace(c1, partitions=(replace(partition, columns=columns),)))
    with pytest.raises(InputError, match="column") as raised:
        bad.prepare(0)
    assert raised.value.where is not None and "partition 0, challenge 0" in raised.value.where


def test_bytes_that_are_no_proof_do_not_hold(work_of: Callable[..., ProofWork]) -> None:
    assert not work_of().holds(0, bytes(192))


# ---- the check of proofs ----


class ToyInput:
    """Two partitions of the toy circuit, each with numbers of its own."""

    origin, shape, numbers = "toy.json", SimpleNamespace(kind="toy"), ((1, 2), (3, 4))

    def check_partition(self, partition: int, device: CpuDevice) -> None: ...

    def public_inputs(self, partition: int) -> np.ndarray[Any, Any]:
        return from_integers([hash_textbook(self.numbers[partition])])


@pytest.fixture
def toy_work(setup: ProofSetup, monkeypatch: pytest.MonkeyPatch) -> ProofWork:
    monkeypatch.setattr(jobs, "free_values", lambda given, partition: toy_values(*given.numbers[partition]))
    return ProofWork(ToyInput(), (0, 1), setup, HOST)  # type: ignore[arg-type]


@pytest.fixture
def prove(setup: ProofSetup, lock: DeviceLock, toy_work: ProofWork) -> Callable[[int], bytes]:
    prover = setup.open("cpu")
    return lambda partition: prover.prove(toy_work.prepare(partition), turn(lock))


def test_proofs_that_held_are_joined_in_the_order_of_the_partitions(
    toy_work: ProofWork, prove: Callable[[int], bytes]
) -> None:
    first, second, again = prove(0), prove(1), prove(1)
    assert toy_work.holds(1, second) and toy_work.holds(0, first) and toy_work.holds(1, again)
    assert toy_work.assemble([first, second]) == first + second
    assert toy_work.assemble([first, again]) == first + again


def test_a_proof_of_another_partition_or_with_a_changed_point_does_not_hold(
    toy_work: ProofWork, prove: Callable[[int], bytes]
) -> None:
    first, second = prove(0), prove(1)
    assert not toy_work.holds(1, first) and not toy_work.holds(0, second)
    negated = bytes([first[0] ^ 0x20]) + first[1:]
    assert not toy_work.holds(0, negated)
    assert toy_work.holds(0, first)


def test_what_did_not_hold_for_its_partition_is_never_handed_out(
    toy_work: ProofWork, prove: Callable[[int], bytes]
) -> None:
    first, second, unseen, wrong = prove(0), prove(1), prove(1), bytes(192)
    assert toy_work.holds(0, first) and toy_work.holds(1, second) and not toy_work.holds(1, wrong)
    for proofs, place in (
        ([second, first], "partition 0"),
        ([first, first], "partition 1"),
        ([first, unseen], "partition 1"),
        ([first, wrong], "partition 1"),
        ([first, second[:-1] + bytes([second[-1] ^ 1])], "partition 1"),
    ):
        with pytest.raises(ProofError, match="is not what held; nothing was handed out") as raised:
            toy_work.assemble(proofs)
        assert raised.value.where == f"toy.json, {place}"


def test_a_key_of_another_circuit_is_told_by_the_check(
    toy_work: ProofWork, prove: Callable[[int], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ToyInput, "public_inputs", lambda given, partition: from_integers([1, 2]))
    proof = prove(0)
    with pytest.raises(ParameterError, match="takes 1 public inputs, not 2"):
        toy_work.holds(0, proof)
