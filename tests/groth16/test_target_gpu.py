"""A GPU as a target, over a stand-in driver: which points and scalars meet, and what if memory ends.

Decoding and collecting points are played by plain integers; quotient and sums, whose kernels have tests of
their own on a real card, by the CPU and by the library.
"""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from py_arkworks_bls12381 import G1Point, G2Point, Scalar

from cuzk.circuit.builder import Circuit
from cuzk.circuit.witness import assign
from cuzk.engine.device_lock import DeviceLock
from cuzk.errors import ParameterError, ProofError, ResourceError
from cuzk.events import Event, Notice, StageAdvanced, StageDone, StageStarted, ignore
from cuzk.groth16 import full_scalars_gpu, streamed_gpu, target_gpu
from cuzk.groth16.card_plan import PHASES, CardPlan
from cuzk.groth16.encoding import g1_of_coordinates, g2_of_coordinates
from cuzk.groth16.generate import generate
from cuzk.groth16.parameters import SECTIONS, SectionName, open_parameters
from cuzk.groth16.points_on_card import PointsOfFile
from cuzk.groth16.prove import Randomizers, begin_sums, prove
from cuzk.groth16.qap import domain_log2
from cuzk.groth16.target_cpu import CpuTarget
from cuzk.groth16.target_gpu import GpuTarget
from cuzk.groth16.values_at_tau import Trapdoors
from cuzk.groth16.verify import Verifier
from cuzk.kernels import ntt_schedule
from cuzk.kernels.cuda_jit import CudaKernel
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.field_type import FQ2_GPU, FQ_GPU
from cuzk.kernels.fr_vector import from_integers, to_integers
from cuzk.kernels.modulus import FQ, FR
from cuzk.kernels.ntt import quotient
from cuzk.kernels.pair_add_gpu import pair_add_kernel
from cuzk.kernels.points_gpu import decode_kernel, gather_kernel
from cuzk.kernels.proof_kernels_gpu import proof_kernels
from cuzk.kernels.selection_gpu import take_reversed
from cuzk.kernels.sum_schedule import DEFAULT_SHAPES
from cuzk.proof_jobs import Prepared, ProofSetup
from tests.circuit.plain import row_values
from tests.engine.fakes import turn_alone
from tests.groth16.played_circuit import EFFECTS, arguments
from tests.groth16.test_prove import PROOF_R13_S17, PUBLIC_INPUTS
from tests.kernels.fake_cuda import FakeDriver, card
from tests.toy_circuit import toy_circuit, toy_values

P, RADIX = FQ.p, 1 << 384
WORD_BYTES, COORDINATE = 4, 48


def memory(address: int, count: int, dtype: Any = np.uint32) -> np.ndarray[Any, Any]:
    nbytes = count * np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * nbytes).from_address(address), dtype)


def reversed_row(k: int, low: int, middle: int, high: int) -> int:
    """k with its digits of so many bits in reverse."""
    digits = k % (1 << low), (k >> low) % (1 << middle), k >> (low + middle)
    return digits[0] << (middle + high) | digits[1] << high | digits[2]


def decode(degree: int) -> Callable[..., None]:
    size = 2 * degree * COORDINATE

    def effect(grid: Any, block: Any, shared: int, params: int) -> None:
        encoded, first, count, total, low, middle, high, x, y, bad = arguments(params, 10)
        for i, point in enumerate(memory(encoded, count * size, np.uint8).reshape(count, size)):
            k = first + i
            row = reversed_row(k, low, middle, high)
            numbers = [int.from_bytes(part.tobytes(), "big") for part in np.split(point, 2 * degree)]
            if max(numbers) >= P:
                memory(bad, 1)[0] = max(int(memory(bad, 1)[0]), total - k)
            for axis, parts in ((x, numbers[:degree]), (y, numbers[degree:])):
                words = [word for part in reversed(parts) for word in FQ.limbs(part * RADIX % P, 12, 32)]
                memory(axis + row * degree * COORDINATE, len(words))[:] = words

    return effect


def gather(degree: int) -> Callable[..., None]:
    words = 12 * degree

    def effect(grid: Any, block: Any, shared: int, params: int) -> None:
        x, y, index, count, out_x, out_y = arguments(params, 6)
        for source, target in ((x, out_x), (y, out_y)):
            for j, row in enumerate(memory(index, count).tolist()):
                at = WORD_BYTES * words
                memory(target + j * at, words)[:] = memory(source + row * at, words)

    return effect


def reversed_scalars(grid: Any, block: Any, shared: int, params: int) -> None:
    values, first, count, room, low, middle, high, out = arguments(params, 8)
    for i in range(room):
        row = reversed_row(first + i, low, middle, high)
        memory(out + 32 * i, 8)[:] = memory(values + 32 * row, 8) if i < count else 0


class PlayedSum:
    """Both kinds of sums, over what lies on the card when it is asked for."""

    def __init__(self, device: CudaDevice, form: Any, x: Any, y: Any, plan: Any, workspace: Any) -> None:
        self.device, self.form, self.axes = device, form, (x, y)
        assert x.shape == y.shape == (plan.n, form.words)
        assert workspace.nbytes > 0

    def submit(self, scalars: Any) -> None:
        held = self.device.download(scalars)
        self.scalars = held.tolist() if held.ndim == 1 else to_integers(held)

    def collect(self) -> Callable[[], Any]:
        kind, of = (G1Point, g1_of_coordinates) if self.form.degree == 1 else (G2Point, g2_of_coordinates)
        rows = zip(*(self.device.download(axis) for axis in self.axes), strict=True)
        points = [tuple(map(self.coordinate, row)) for row in rows]
        pairs = [(of(p), Scalar(k)) for p, k in zip(points, self.scalars, strict=True) if k]  # type: ignore[arg-type]
        return lambda: kind.multiexp_unchecked([p for p, _ in pairs], [k for _, k in pairs])

    def run(self, scalars: Any) -> Any:
        self.submit(scalars)
        return self.collect()()

    def close(self) -> None:
        """It holds nothing."""

    def coordinate(self, row: np.ndarray[Any, Any]) -> Any:
        parts = [int.from_bytes(part.tobytes(), "little") for part in np.split(row, self.form.degree)]
        plain = [part * pow(RADIX, -1, P) % P for part in parts]
        return plain[0] if self.form.degree == 1 else tuple(plain)


def played_quotient(plan: Any, a: Any, b: Any, *, scratch: Any) -> Any:
    """The CPU's, in the order in which the card leaves it."""
    h = quotient(CpuDevice(threads=1, lanes=1), *(plan.device.download(vector) for vector in (a, b)))
    whole = np.concatenate([h, np.zeros((1, 4), np.uint64)])
    order = plan.schedule.coefficients_at(np.arange(len(whole)))
    return plan.device.upload(np.ascontiguousarray(whole[order]), into=a)


class _Group:
    """The played sums are points already."""

    @staticmethod
    def add(a: Any, b: Any) -> Any:
        return b if a is None else a + b


@pytest.fixture
def idle_driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    """Memory is real, kernels do nothing."""
    driver = FakeDriver(card(memory_bytes=8 << 30))
    driver.effects = defaultdict(lambda: lambda *_: None)
    monkeypatch.setattr(CudaKernel, "cubin", lambda self, capability: b"code")
    return driver


@pytest.fixture
def driver(idle_driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    driver = idle_driver
    driver.effects |= EFFECTS
    for form in (FQ_GPU, FQ2_GPU):
        for kind, kernel, play in (
            ("decode", decode_kernel(form), decode),
            ("gather", gather_kernel(form), gather),
        ):
            monkeypatch.setattr(kernel, "name", f"{kind} {form.name}")
            driver.effects[kernel.name] = play(form.degree)
    monkeypatch.setattr(take_reversed, "name", "take reversed")
    driver.effects["take reversed"] = reversed_scalars
    for module in (target_gpu, streamed_gpu, full_scalars_gpu):
        monkeypatch.setattr(module, "GpuMsm", PlayedSum)
    for module in (target_gpu, streamed_gpu):
        monkeypatch.setattr(module, "GpuSelectedSum", PlayedSum)
        monkeypatch.setattr(module, "curve_of", lambda form: _Group)
    monkeypatch.setattr(target_gpu, "quotient", played_quotient)
    monkeypatch.setattr(target_gpu, "group_point", lambda section, point: point)
    return driver


def target_on(driver: FakeDriver, params: Path, limit: int | None = None) -> GpuTarget:
    return GpuTarget(
        CpuDevice(threads=2),
        "cuda:0",
        lambda: CudaDevice("cuda:0", api=driver, memory_limit=limit),
        PointsOfFile(open_parameters(params)),
    )


def proven_idly(target: GpuTarget, toy: Circuit) -> None:
    """All that a proof asks of a target, whatever comes out."""
    nothing = lambda done, total: None  # noqa: E731
    assignment = target.assign(toy, toy_values(1, 2))
    over_variables = begin_sums(target, toy, assignment)
    h = target.quotient(target.rows(toy, assignment))
    target.sum_of_h(h, nothing)
    for pending in over_variables.values():
        pending(nothing)


def assert_upstreams_proofs(target: GpuTarget, toy: Circuit, params: Path) -> None:
    """Two, one after the other: the second finds all in place."""
    target.prepare()
    target.opened(toy)
    for _ in range(2):
        proof = prove(
            target,
            open_parameters(params),
            toy,
            target.assign(toy, toy_values(1, 2)),
            Randomizers(r=13, s=17),
            public_inputs=PUBLIC_INPUTS,
        )
        assert proof.to_bytes().hex() == PROOF_R13_S17


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
        prove(
            target, parameters, toy, assignment, Randomizers.fresh(), public_inputs=PUBLIC_INPUTS, check=True
        )
    memory = target._device.memory
    assert memory.peak_bytes <= target._planned.result().bytes_in("proving")
    target.close()
    assert driver.held == {}


def test_the_bytes_of_the_points_are_counted_while_they_are_loaded(
    driver: FakeDriver, toy: Circuit, toy_params: Path
) -> None:
    target, events = target_on(driver, toy_params), list[Event]()
    target.prepare(events.append)
    target.opened(toy)
    target.loaded()
    counts = open_parameters(toy_params).counts
    total = 96 * (counts.h + counts.l + counts.a + counts.b) + 192 * counts.b
    started, *advanced, done = events
    assert started == StageStarted(name="load points", total=total, unit="bytes")
    assert isinstance(done, StageDone) and done.name == "load points"
    counted = [event.done for event in advanced if isinstance(event, StageAdvanced)]
    assert len(counted) == len(advanced) >= len(SECTIONS)
    assert counted == sorted(counted) and counted[-1] == total
    target.close()


def test_a_bad_point_is_named_where_the_points_are_needed(
    driver: FakeDriver, toy: Circuit, toy_params: Path, tmp_path: Path
) -> None:
    spoilt = bytearray(toy_params.read_bytes())
    spoilt[-192] |= 0x80  # the last point of b_g2
    path = tmp_path / "spoilt.params"
    path.write_bytes(spoilt)
    target = target_on(driver, path)
    target.prepare()
    target.opened(toy)
    last = open_parameters(path).counts.b - 1
    with pytest.raises(ParameterError, match=rf"b_g2\[{last}\].*flag bits") as raised:
        target.rows(toy, None)
    assert raised.value.where == f"{path}: b_g2[{last}]"
    target.close()
    assert driver.held == {}


def test_less_memory_than_it_may_take_is_told(driver: FakeDriver, toy: Circuit, toy_params: Path) -> None:
    heard: list[Any] = []
    points = PointsOfFile(open_parameters(toy_params))
    for limit, notices in ((1 << 50, 1), (None, 0)):
        heard.clear()
        target = GpuTarget(
            CpuDevice(threads=2), "cuda:0", lambda: CudaDevice("cuda:0", api=driver), points, limit
        )
        target.prepare(heard.append)
        target.opened(toy)
        target.loaded()
        told = [event.text for event in heard if isinstance(event, Notice)]
        assert len(told) == notices
        assert all("of 1024 TiB free that it may take: all points fit" in text for text in told)
        target.close()


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


def streamed(monkeypatch: pytest.MonkeyPatch, sections: Sequence[SectionName], slice_points: int) -> None:
    """Whatever the card has, these sections pass over it in slices."""

    def plan(facts: Any, counts: Any, full: Any, synthesis_bytes: int) -> CardPlan:
        cut = dict.fromkeys(sections, slice_points)
        return CardPlan._cut(facts, counts, full, synthesis_bytes, cut)

    monkeypatch.setattr(CardPlan, "of", plan)


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
        prove(
            by,
            parameters,
            circuit,
            by.assign(circuit, toy_values(1, 2)),
            Randomizers(r=13, s=17),
            public_inputs=PUBLIC_INPUTS,
        )
        for by in (CpuTarget(host, parameters), target, target)
    ]
    assert proofs[0] == proofs[1] == proofs[2]
    assert target._device.memory.peak_bytes <= plan.bytes_in("proving")
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


def test_an_engine_holds_its_lock_while_the_driver_is_asked_and_gives_it_back_for_the_rest(
    driver: FakeDriver, toy: Circuit, toy_params: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, rest, parameters = DeviceLock(), list[tuple[str, bool]](), open_parameters(toy_params)
    watched: Any = WatchedDriver(driver, lock)
    target = target_on(watched, toy_params)
    target.prepare()
    target.opened(toy)
    target.loaded()
    setup = ProofSetup(
        name="toy",
        key="toy",
        circuit=toy,
        parameters=parameters,
        verifier=Verifier(parameters.key),
        needs_of={},
        open_target=lambda device: target,
    )
    prover = setup.open("cuda:0")
    prepared = Prepared(free=toy_values(1, 2), randomizers=Randomizers(r=13, s=17))
    recorded: list[str] = []
    turn = turn_alone(lock, record=lambda name, **detail: recorded.append(name))

    def ends(section: SectionName, point: Any) -> Any:
        rest.append((section, lock.locked()))
        return point

    monkeypatch.setattr(target_gpu, "group_point", ends)
    watched.calls.clear()
    for _ in range(2):
        assert prover.prove(prepared, turn).hex() == PROOF_R13_S17
    assert len(watched.calls) > 100 and all(held for _, held in watched.calls)
    assert {section for section, _ in rest} == {name for name, _ in SECTIONS}
    assert not any(held for _, held in rest)
    assert recorded == 2 * ["LOCK_WAIT", "LOCK_START", "KERNEL_START", "KERNEL_END", "LOCK_END"]
    prover.close()
    assert driver.held == {}
