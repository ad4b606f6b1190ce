"""A GPU as a target, over a stand-in driver: which points and scalars meet, and what if memory ends."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)


from cuzk.circuit.builder import Circuit
from cuzk.circuit.witness import assign
from cuzk.engine.device_lock import DeviceLock
from cuzk.engine.seam import Needs
from cuzk.errors import ProofError, ResourceError
from cuzk.events import Event, StageAdvanced, ignore
from cuzk.groth16.generate import generate
from cuzk.groth16.gpu import target as gpu_target
from cuzk.groth16.gpu.card_plan import PHASES
from cuzk.groth16.gpu.target import GpuTarget
from cuzk.groth16.parameters.params_file import SECTIONS, SectionName, open_parameters
from cuzk.groth16.prove import Randomizers, assemble, begin_proof
from cuzk.groth16.qap import domain_log2
from cuzk.groth16.target_cpu import CpuTarget
from cuzk.groth16.values_at_tau import Trapdoors
from cuzk.groth16.verify import Verifier
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.field_type import FQ_GPU
from cuzk.kernels.fr_vector import from_integers, to_integers
from cuzk.kernels.gpu import ntt_schedule
from cuzk.kernels.gpu.pair_add import pair_add_kernel
from cuzk.kernels.gpu.proof_kernels import proof_kernels
from cuzk.kernels.gpu.sum_schedule import DEFAULT_SHAPES
from cuzk.kernels.modulus import FR
from cuzk.proofs.jobs import Prepared, ProofSetup
from cuzk.proofs.places import Place
from tests.circuit.plain import row_values
from tests.engine.fakes import turn_alone
from tests.groth16.gpu.played_target import PlayedSum, proven_idly, streamed, target_on
from tests.groth16.proving import UPSTREAMS, proven, upstreams_proof
from tests.groth16.test_prove import PROOF_R13_S17, PUBLIC_INPUTS
from tests.kernels.device.fake_cuda import FakeDriver
from tests.toy_circuit import toy_circuit, toy_values


def assert_upstreams_proofs(target: GpuTarget, toy: Circuit, params: Path) -> None:
    """Two, one after the other: the second finds all in place."""
    target.prepare()
    target.opened(toy)
    for _ in range(2):
        proof = upstreams_proof(target, open_parameters(params), toy, toy_values(1, 2), PUBLIC_INPUTS)
        assert proof.to_bytes().hex() == PROOF_R13_S17


def test_what_proofs_share_is_there_before_the_first(
    idle_driver: FakeDriver, toy: Circuit, toy_params: Path
) -> None:
    target = target_on(idle_driver, toy_params)
    target.prepare()
    target.opened(toy)
    target.require_good_points(ignore)
    target.ready(toy)
    memory, plan = target._device.memory, target._planned.result()
    [later] = (part.nbytes for part in plan.parts if part.name == "tables of transforms")  # milliseconds
    assert memory.used_bytes == memory.peak_bytes == plan.bytes_in("proving") - later
    proven_idly(target, toy)
    assert memory.used_bytes == plan.bytes_in("proving")
    target.close()
    assert idle_driver.held == {}


def test_a_card_holds_what_its_plan_says_to_the_byte(
    idle_driver: FakeDriver, toy: Circuit, toy_params: Path
) -> None:
    target = target_on(idle_driver, toy_params)
    target.prepare()
    target.opened(toy)
    memory, plan = target._device.memory, target._planned.result()
    assignment = target.assign(toy, toy_values(1, 2))
    target.require_good_points(ignore)
    target.rows(toy, assignment)
    assert memory.peak_bytes == plan.bytes_in("checking")
    for _ in range(3):
        proven_idly(target, toy)
    assert memory.peak_bytes == plan.bytes_in("proving")
    kept = sum(part.nbytes for part in plan.parts if part.phases == PHASES)
    assert kept < memory.used_bytes == memory.peak_bytes
    target.close()
    assert idle_driver.held == {}


def test_whatever_a_proof_launches_was_compiled_ahead(
    idle_driver: FakeDriver, toy: Circuit, toy_params: Path
) -> None:
    target = target_on(idle_driver, toy_params)
    target.prepare()
    target.opened(toy)
    target.require_good_points(ignore)
    proven_idly(target, toy)
    launched = set(target._device._kernels)
    assert pair_add_kernel(FQ_GPU, DEFAULT_SHAPES[1][1]) in launched
    assert launched <= set(proof_kernels(domain_log2(toy)))
    target.close()


@pytest.mark.parametrize("digits", [(), (3, 6), (2, 3, 4)])
def test_proofs_are_upstreams_whatever_the_order_of_the_coefficients(
    digits: tuple[int, ...],
    driver: FakeDriver,
    toy: Circuit,
    toy_params: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ntt_schedule, "MIN_BITS", 2)
    monkeypatch.setattr(ntt_schedule, "pass_bits", lambda log2: digits)
    target = target_on(driver, toy_params)
    assert_upstreams_proofs(target, toy, toy_params)
    assert target.is_usable
    target.close()
    assert driver.held == {}


def test_a_row_that_does_not_hold_is_named_and_no_sum_is_made(
    driver: FakeDriver, toy: Circuit, toy_params: Path
) -> None:
    target, parameters = target_on(driver, toy_params), open_parameters(toy_params)
    target.prepare()
    target.opened(toy)
    expected = to_integers(assign(target.host, toy, toy_values(1, 2)).values)
    assignment = target.assign(toy, toy_values(1, 2))
    last = toy.num_inputs + toy.num_aux - 1
    spoilt = from_integers([expected[last] ^ 1])
    target._device.upload(spoilt, into=assignment.values.rows(last, last + 1))
    a, b, c = (row_values(toy, [*expected[:last], expected[last] ^ 1], side) for side in range(3))
    row = next(k for k in range(len(a)) if a[k] * b[k] % FR.p != c[k])
    with pytest.raises(ProofError, match=rf"row {row}: .* a row of the circuit does not hold"):
        proven(
            target, parameters, toy, assignment, Randomizers.fresh(), public_inputs=PUBLIC_INPUTS, check=True
        )
    memory = target._device.memory
    assert memory.peak_bytes <= target._planned.result().bytes_in("proving")
    target.close()
    assert driver.held == {}


def test_too_small_a_budget_is_told_with_the_plan(driver: FakeDriver, toy: Circuit, toy_params: Path) -> None:
    target = target_on(driver, toy_params, limit=1 << 20)
    target.prepare()
    with pytest.raises(ResourceError, match="the plan: points") as raised:
        target.opened(toy)
    assert "0 B can be used" in str(raised.value)
    with pytest.raises(ResourceError, match="the plan"):
        target.rows(toy, None)
    assert not target.is_usable
    target.close()
    assert driver.held == {}


@pytest.mark.parametrize("call", ["cuMemAlloc", "cuMemHostAlloc"])
@pytest.mark.parametrize("at", [1, 2, 5])
def test_memory_that_ends_midway_goes_back(
    driver: FakeDriver, toy: Circuit, toy_params: Path, call: str, at: int
) -> None:
    driver.fail(call, "OUT_OF_MEMORY", at=at)
    target = target_on(driver, toy_params)
    target.prepare()
    with pytest.raises(ResourceError):
        target.opened(toy)
        target.rows(toy, target.assign(toy, toy_values(1, 2)))
    assert not target.is_usable
    target.close()
    assert driver.held == {}


@pytest.mark.parametrize("slice_points", [16, 64])
@pytest.mark.parametrize("sections", [["h"], ["l", "b_g2"], ["h", "l", "a", "b_g1", "b_g2"]])
def test_proofs_are_upstreams_when_points_only_pass(
    sections: list[SectionName],
    slice_points: int,
    driver: FakeDriver,
    toy: Circuit,
    toy_params: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streamed(monkeypatch, sections, slice_points)
    target = target_on(driver, toy_params)
    assert_upstreams_proofs(target, toy, toy_params)
    target.close()
    assert driver.held == {}


@pytest.mark.parametrize("sections", [["h"], ["h", "l", "a", "b_g1", "b_g2"]])
def test_a_card_holds_what_its_plan_says_when_points_only_pass(
    sections: list[SectionName],
    idle_driver: FakeDriver,
    toy: Circuit,
    toy_params: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    streamed(monkeypatch, sections, 64)
    target = target_on(idle_driver, toy_params)
    target.prepare()
    target.opened(toy)
    memory, plan = target._device.memory, target._planned.result()
    for _ in range(2):
        proven_idly(target, toy)
    assert memory.peak_bytes == plan.bytes_in("proving")
    target.close()
    assert idle_driver.held == {}


@pytest.fixture(scope="module", params=[1, 2], ids=["most are numbers", "most are bits"])
def mixed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Circuit, Path]:
    """Circuits whose sections have both numbers and bits, and their parameters."""
    circuit, folder = toy_circuit(request.param), tmp_path_factory.mktemp("mixed")
    trapdoors = Trapdoors.of([2, 3, 5, 7, 11])
    path = generate(
        CpuDevice(threads=2), circuit, trapdoors, folder=folder, stem="mixed", sector_bytes=0, given=True
    )
    return circuit, path


@pytest.mark.parametrize("sections", [[], ["l", "b_g2"], ["h", "l", "a", "b_g1", "b_g2"]])
def test_bits_and_numbers_of_a_section_meet_their_points(
    sections: list[SectionName],
    driver: FakeDriver,
    mixed: tuple[Circuit, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Numbers by collected points if they are few, else by all points; the CPU makes the same proof."""
    (circuit, path), parameters = mixed, open_parameters(mixed[1])
    streamed(monkeypatch, sections, 64)
    target, host = target_on(driver, path), CpuDevice(threads=2)
    target.prepare()
    target.opened(circuit)
    plan = target._planned.result()
    most_are_numbers = circuit.num_aux < 600
    assert plan.of_section("l").all_full is most_are_numbers
    proofs = [
        upstreams_proof(by, parameters, circuit, toy_values(1, 2), PUBLIC_INPUTS)
        for by in (CpuTarget(host, parameters), target, target)
    ]
    assert proofs[0] == proofs[1] == proofs[2]
    assert target._device.memory.peak_bytes <= plan.bytes_in("proving")
    target.close()
    assert driver.held == {}


@pytest.mark.parametrize("is_long", [False, True])
def test_a_proof_in_the_middle_of_which_another_is_computed_on_the_card_is_the_same(
    is_long: bool, driver: FakeDriver, toy: Circuit, toy_params: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As an engine does where something urgent comes in between two kernels; of long sums, between parts."""
    monkeypatch.setattr(PlayedSum, "is_long", is_long)
    parameters, between = open_parameters(toy_params), list[str]()
    told: list[tuple[str, int, int]] = []
    interrupted, urgent = target_on(driver, toy_params), target_on(driver, toy_params)
    for target in (interrupted, urgent):
        target.prepare()
        target.opened(toy)
        target.loaded()

    def proof_on(target: GpuTarget, on_event: Any) -> str:
        assignment = target.assign(toy, toy_values(1, 2))
        finish = begin_proof(target, parameters, toy, assignment, on_event=on_event)
        return assemble(parameters, finish(), UPSTREAMS).to_bytes().hex()

    def comes_in(event: Event) -> None:
        if isinstance(event, StageAdvanced):
            told.append((event.name, event.done, event.total))
            between.append(proof_on(urgent, ignore))

    assert proof_on(interrupted, comes_in) == PROOF_R13_S17
    assert set(between) == {PROOF_R13_S17}
    sums = {"h": [0, 255, 511]}
    if is_long:
        counts = {name: parameters.counts.of(name) for name, _ in SECTIONS[1:]}
        sums |= {name: [count // 2, count] for name, count in counts.items()}
    assert told == [
        *(("transforms", done, 6) for done in range(1, 7)),
        *((f"sum {name}", done, counts[-1]) for name, counts in sums.items() for done in counts),
    ]
    for target in (interrupted, urgent):
        target.close()
    assert driver.held == {}


class WatchedDriver:
    """A driver that notes which calls came while a lock was held, and which while it was not."""

    def __init__(self, driver: FakeDriver, lock: DeviceLock) -> None:
        self._driver, self._lock = driver, lock
        self.calls: list[tuple[str, bool]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("cu"):
            self.calls.append((name, self._lock.locked()))
        return getattr(self._driver, name)


def unchecked(target: object, on_event: object) -> None:
    """A file that has been in use before."""


def test_an_engine_holds_its_lock_while_the_driver_is_asked_and_gives_it_back_for_the_rest(
    driver: FakeDriver, toy: Circuit, toy_params: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, rest, parameters = DeviceLock(), list[tuple[str, bool]](), open_parameters(toy_params)
    watched: Any = WatchedDriver(driver, lock)
    target = target_on(watched, toy_params)
    setup = ProofSetup(
        name="toy",
        key="toy",
        circuit=toy,
        parameters=parameters,
        verifier=Verifier(parameters.key),
        places={"cuda:0": Place("toy", toy, Needs(device=0, host=0), lambda most: target, unchecked, ignore)},
    )
    prover = setup.open("cuda:0")
    prepared = Prepared(free=toy_values(1, 2), randomizers=UPSTREAMS)
    recorded: list[str] = []
    turn = turn_alone(lock, record=lambda name, **detail: recorded.append(name))

    def ends(section: SectionName, point: Any) -> Any:
        rest.append((section, lock.locked()))
        return point

    monkeypatch.setattr(gpu_target, "group_point", ends)
    watched.calls.clear()
    for _ in range(2):
        assert prover.prove(prepared, turn).hex() == PROOF_R13_S17
    assert len(watched.calls) > 100 and all(held for _, held in watched.calls)
    assert {section for section, _ in rest} == {name for name, _ in SECTIONS}
    assert not any(held for _, held in rest)
    assert recorded == 2 * ["LOCK_WAIT", "LOCK_START", "KERNEL_START", "KERNEL_END", "LOCK_END"]
    prover.close()
    assert driver.held == {}
