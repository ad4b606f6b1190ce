"""An NVIDIA GPU as a target: all five sections decoded on the card, and kept there for proofs that follow.

1 prepare    a thread opens the card and sends the sections, h in the order in which transforms leave it
2 synthesis  free values go up; variables and rows are computed on the card and stay there: `synthesis_gpu`
3 quotient   of the rows, where they are, and the sums; only their results come down
Memory       as `card_plan` has it. Working memory of each sum is kept: recorded launches hold its addresses
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from cuzk.circuit.builder import Circuit
from cuzk.circuit.rows import A, B
from cuzk.circuit.witness import FreeValues
from cuzk.events import Progress
from cuzk.groth16.card_plan import CardFacts, CardPlan, form_of
from cuzk.groth16.memory_plan import MemoryPlan, available_memory
from cuzk.groth16.parameters import SECTIONS, ParameterFile, SectionName
from cuzk.groth16.points_on_card import PointsOfFile, PointSource
from cuzk.groth16.qap import NO_FULL, FullCounts, full_counts
from cuzk.groth16.synthesis_gpu import DeviceSynthesis, SectionScalars
from cuzk.groth16.synthesis_plan import synthesis_layout
from cuzk.groth16.target import End, Pending, group_point, require_subgroup
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_card import Card
from cuzk.kernels.device.cuda_memory import DeviceArray
from cuzk.kernels.field_type import FQ_GPU
from cuzk.kernels.msm_gpu import GpuMsm, workspace_bytes
from cuzk.kernels.ntt_gpu import NttPlan, quotient
from cuzk.kernels.points_gpu import NATURAL_ORDER, GpuPoints, gathered
from cuzk.kernels.selected_sum_gpu import GpuSelectedSum
from cuzk.kernels.subset_sums_gpu import random_subset_sums
from cuzk.kernels.sum_plan import msm_plan
from cuzk.kernels.sum_schedule import Form, selected_layout, selected_plan
from cuzk.kernels.xyzz import curve_of


def digits_of(transforms: NttPlan) -> tuple[int, int, int]:
    """log2 of the digits in which they leave coefficients reversed."""
    low, middle, high = (*(transforms.schedule.bits or (transforms.log2_n,)), 0, 0)[:3]
    return low, middle, high


def _selected_bytes(device: CudaDevice, form: Form, count: int) -> int:
    return selected_layout(form, selected_plan(form, count), device.card.multiprocessors).nbytes


def _end(section: SectionName, affine: Callable[[], Any]) -> End:
    return lambda: group_point(section, affine())


class MostlyBits:
    """A section on the card whose scalars are mostly bits."""

    def __init__(self, device: CudaDevice, form: Form, points: GpuPoints) -> None:
        self._device, self._form, self._points = device, form, points
        self._workspace = device.allocate(_selected_bytes(device, form, points.count), np.uint8)
        self.selected = GpuSelectedSum(
            device, form, points.x, points.y, selected_plan(form, points.count), self._workspace
        )
        self._full_index = np.empty(0, np.uint32)
        self._full: GpuMsm | None = None
        self._held: list[Any] = []  # the sum over full scalars, and what it works on

    def begin(self, scalars: SectionScalars) -> None:
        """Submit both sums."""
        self.selected.submit(scalars.bits)
        self._over_full(scalars.full_index).submit(scalars.full_scalars)

    def collect(self) -> Callable[[], Any]:
        """Waits for both. What comes back gives their sum: affine, plain integers, None for the identity."""
        assert self._full is not None
        selected, full = self.selected.collect(), self._full.collect()
        return lambda: curve_of(self._form).add(selected(), full())

    def _over_full(self, index: np.ndarray[Any, Any]) -> GpuMsm:
        """The sum over the points of full scalars, collected once: every proof of a circuit has the same."""
        if self._full is not None and np.array_equal(index, self._full_index):
            return self._full
        for held in self._held:
            held.close()
        device, plan = self._device, msm_plan(self._form, len(index), self._device.card)
        points = gathered(device, self._points, index)
        workspace = device.allocate(workspace_bytes(device, self._form, plan), np.uint8)
        self._full = GpuMsm(device, self._form, points.x, points.y, plan, workspace)
        self._held = [self._full, points, workspace]
        self._full_index = index
        return self._full


class GpuTarget:
    """See `target.Target`. What fails leaves the card in no known state: `close` gives all of it back.

    open_device     gives the card, which is closed with the target
    points          where the points come from, once
    check_subgroup  also check that the points are of order r, before they are used
    """

    def __init__(
        self,
        host: CpuDevice,
        name: str,
        open_device: Callable[[], CudaDevice],
        points: PointSource,
        *,
        check_subgroup: bool,
    ) -> None:
        self.host, self.name = host, name
        self._open_device, self._points = open_device, points
        self._counts = points.counts
        self._unchecked = {name for name, _ in SECTIONS} if check_subgroup else set()
        self._check_subgroup = check_subgroup
        self._opened: Future[tuple[CudaDevice, CardFacts]] = Future()
        self._loaded: Future[None] = Future()
        self._loader: threading.Thread | None = None
        self._over_h: GpuMsm | None = None
        self._plan: CardPlan | None = None
        self._synthesis: DeviceSynthesis | None = None

    def require_memory(self) -> None:
        if self._loader is None:  # later it is there
            MemoryPlan.beside_a_gpu(self._counts).require(available_memory())

    def prepare(self) -> None:
        """Open the card and load the points, in a thread: the host goes on with circuit and witness."""
        if self._loader is None:
            self._loader = threading.Thread(target=self._open_and_load, name="cuzk loader")
            self._loader.start()

    def opened(self, circuit: Circuit) -> None:
        if self._plan is None:
            facts, nbytes = self._opened.result()[1], synthesis_layout(circuit).nbytes
            self._plan = self._required(facts, full_counts(circuit), nbytes)

    def _required(self, facts: CardFacts, full: FullCounts, synthesis_bytes: int) -> CardPlan:
        plan = CardPlan.of(facts, self._counts, full, synthesis_bytes)
        plan.require(self.name)
        return plan

    @property
    def _device(self) -> CudaDevice:
        return self._opened.result()[0]

    def _open_and_load(self) -> None:
        """What goes wrong is raised again where the result is needed."""
        try:
            self._opened.set_result(self._opened_device())
            self._load()
            self._loaded.set_result(None)
        except BaseException as error:
            for future in (self._opened, self._loaded):
                if not future.done():
                    future.set_exception(error)

    def _opened_device(self) -> tuple[CudaDevice, CardFacts]:
        """The card, with the memory that it has free now, which must do for what is known by now."""
        device = self._open_device()
        try:
            facts = CardFacts.of(device.card, device.free_memory())
            self._required(facts, NO_FULL, 0)
        except BaseException:
            device.close()
            raise
        return device, facts

    def _load(self) -> None:
        device, m = self._device, self._counts.h + 1
        self._transforms = NttPlan(device, self._counts.domain_log2)
        self._h_points = self._points.on_card(device, "h", digits_of(self._transforms))
        self._sections: dict[SectionName, MostlyBits] = {}
        for section, _ in SECTIONS[1:]:
            points = self._points.on_card(device, section, NATURAL_ORDER)
            self._sections[section] = MostlyBits(device, form_of(section), points)
        self._vectors = [device.allocate((m, 4), np.uint64) for _ in range(2)]

    def loaded(self) -> None:
        """Wait until the points are on the card. Raises what went wrong with them."""
        self.prepare()
        self._loaded.result()

    def _wait_for_points(self) -> None:
        """Until they are on the card and, the first time, checked. Raises what went wrong with them."""
        self.loaded()
        for section in sorted(self._unchecked):
            self._require_subgroup(section)
            self._unchecked.discard(section)

    def _require_subgroup(self, section: SectionName) -> None:
        device = self._device
        if section != "h":
            held = self._sections[section]
            sums = random_subset_sums(device, held.selected, self._counts.of(section))
        else:  # no proof sums over bits of h
            points, form = self._h_points, form_of(section)
            plan = selected_plan(form, points.count)
            with (
                device.allocate(_selected_bytes(device, form, points.count), np.uint8) as workspace,
                GpuSelectedSum(device, form, points.x, points.y, plan, workspace) as selected,
            ):
                sums = random_subset_sums(device, selected, points.count)
        require_subgroup(self._points.where, section, sums)

    def assign(self, circuit: Circuit, free: FreeValues) -> DeviceSynthesis:
        """Beside the loading of points, if they are on their way. Tables of a circuit stay on the card."""
        if self._synthesis is None or self._synthesis.circuit is not circuit:
            if self._synthesis is not None:
                self._synthesis.close()
            self._synthesis = DeviceSynthesis(self._device, circuit)
        self._synthesis.assign(free)
        self._synthesis.synchronise()
        return self._synthesis

    def rows(self, circuit: Circuit, assignment: DeviceSynthesis) -> list[DeviceArray]:
        self._wait_for_points()
        for side, vector in zip((A, B), self._vectors, strict=True):
            assignment.rows(side, vector)
        assignment.synchronise()
        return self._vectors

    def quotient(self, rows: list[DeviceArray]) -> DeviceArray:
        """The coefficients in reversed digits; the last row, of degree m - 1, is 0 and has no point."""
        h = quotient(self._transforms, *rows)
        self._device.stream.synchronise()
        return h.rows(0, h.shape[0] - 1)

    def sum_of_h(self, h: DeviceArray, progress: Progress) -> End:
        if self._over_h is None:
            self._over_h = self._msm_over_h()
        self._over_h.submit(h)
        return _end("h", self._over_h.collect())

    def _msm_over_h(self) -> GpuMsm:
        assert self._plan is not None, "opened comes first"
        device, plan = self._device, self._plan.of_section("h").msm
        workspace = device.allocate(workspace_bytes(device, FQ_GPU, plan), np.uint8)
        return GpuMsm(device, FQ_GPU, self._h_points.x, self._h_points.y, plan, workspace)

    def sum_over(self, section: SectionName, circuit: Circuit, assignment: DeviceSynthesis) -> Pending:
        self._wait_for_points()
        held = self._sections[section]
        held.begin(assignment.scalars[section])
        return lambda progress: _end(section, held.collect())

    def all_checked(self) -> bool:
        """The subgroup only if that was asked for; decoding checks the rest."""
        return self._check_subgroup and not self._unchecked and self._is_whole

    @property
    def _is_whole(self) -> bool:
        return self._loaded.done() and self._loaded.exception() is None

    @property
    def is_usable(self) -> bool:
        """Whether another proof may use it."""
        return self._is_whole and self._device.is_usable

    def close(self) -> None:
        """Give back the card and all that is on it."""
        if self._loader is not None:
            self._loader.join()
            if self._opened.exception() is None:
                self._device.close()


@dataclass(slots=True)
class _Kept:
    """The target of the last proof in this process. Guarded by `lock`, which a proof holds."""

    lock: threading.Lock
    target: GpuTarget | None = None
    key: Any = None

    def drop(self) -> None:
        if self.target is not None:
            target, self.target = self.target, None
            target.close()


_kept = _Kept(threading.Lock())


@contextmanager
def resident(
    host: CpuDevice, card: Card, parameters: ParameterFile, *, check_subgroup: bool
) -> Iterator[GpuTarget]:
    """The target of these parameters on that card: the last one again if it was the same, points in place.

    What the work inside `with` raises ends it: the card's memory is given back before the error goes on.
    """
    at = parameters.path.stat()
    key = (card.uuid, parameters.path.resolve(), at.st_ino, at.st_size, at.st_mtime_ns)
    with _kept.lock:
        old = _kept.target
        if old is None or _kept.key != key or not old.is_usable or (check_subgroup and not old.all_checked()):
            _kept.drop()
            _kept.key = key
            _kept.target = GpuTarget(
                host,
                card.label,
                lambda: CudaDevice(card.uuid),
                PointsOfFile(parameters),
                check_subgroup=check_subgroup,
            )
        assert _kept.target is not None
        _kept.target.host = host
        try:
            yield _kept.target
        except BaseException:
            _kept.drop()
            raise


def release() -> None:
    """Give back the card that the last proof of this process has left its points on."""
    with _kept.lock:
        _kept.drop()
