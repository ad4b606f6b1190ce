"""An NVIDIA GPU as a target: all five sections decoded on the card, and kept there for proofs that follow.

1 prepare    a thread opens the card and sends the sections, h in the order in which transforms leave it
2 synthesis  free values go up; variables and rows are computed on the card and stay there: `synthesis`
3 quotient   of the rows, where they are, and the sums; only their results come down
Memory       as `card_plan` has it; working memory is one array, for recorded launches hold its addresses
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cuzk.circuit.builder import Circuit
from cuzk.circuit.rows import A, B
from cuzk.circuit.witness import FreeValues
from cuzk.events import Notice, OnEvent, Progress, ignore, stage
from cuzk.groth16.gpu.card_clock import CardClock
from cuzk.groth16.gpu.card_plan import CardFacts, CardPlan
from cuzk.groth16.gpu.held_sections import HeldSections
from cuzk.groth16.gpu.points_on_card import PointsOfFile, PointSource, on_card
from cuzk.groth16.gpu.sums import Sums
from cuzk.groth16.gpu.synthesis import DeviceSynthesis
from cuzk.groth16.gpu.synthesis_plan import synthesis_layout
from cuzk.groth16.memory_limits import available_memory
from cuzk.groth16.memory_plan import MemoryPlan
from cuzk.groth16.parameters.params_file import SECTIONS, ParameterFile, SectionName
from cuzk.groth16.qap import full_counts
from cuzk.groth16.target import End, Pending, group_point, require_subgroup
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_card import Card
from cuzk.kernels.device.cuda_memory import DeviceArray
from cuzk.kernels.gpu.ntt import NttPlan, quotient
from cuzk.kernels.gpu.points import NATURAL_ORDER, GpuPoints
from cuzk.kernels.ntt import TRANSFORMS
from cuzk.units import format_size

_TOLD_TIMES = 256
"""How often the loading of points is told of: a chunk takes less time than to draw its progress."""


def digits_of(transforms: NttPlan) -> tuple[int, int, int]:
    """log2 of the digits in which they leave coefficients reversed."""
    low, middle, high = (*(transforms.schedule.bits or (transforms.log2_n,)), 0, 0)[:3]
    return low, middle, high


def _end(section: SectionName, affine: Callable[[], Any]) -> End:
    return lambda: group_point(section, affine())


class _Loading:
    """Tells how many bytes of points have been loaded, and ends the loading when nobody waits for it."""

    def __init__(self, total: int, progress: Progress, is_over: threading.Event) -> None:
        self._total, self._progress, self._is_over = total, progress, is_over
        self._done = self._told = 0

    def advance(self, nbytes: int, points: int) -> None:
        """So many points of so many bytes more."""
        if self._is_over.is_set():
            raise CancelledError("the loading of points was given up")
        self._done += nbytes * points
        if self._done == self._total or self._done - self._told >= self._total // _TOLD_TIMES:
            self._told = self._done
            self._progress(self._done, self._total)


class GpuTarget:
    """See `target.Target`. What fails leaves the card in no known state: `close` gives all of it back.

    open_device     gives the card, which is closed with the target
    points          where the points come from, once
    memory_limit    bytes of the card that it may take; where fewer are free, that is said
    shared          the sections that other cards have of these points
    """

    def __init__(
        self,
        host: CpuDevice,
        name: str,
        open_device: Callable[[], CudaDevice],
        points: PointSource,
        memory_limit: int | None = None,
        shared: HeldSections | None = None,
    ) -> None:
        self.host, self.name, self._memory_limit = host, name, memory_limit
        self._open_device, self._points = open_device, points
        self._shared = shared or HeldSections()
        self._counts = points.counts
        self._opened: Future[tuple[CudaDevice, CardFacts]] = Future()
        self._loaded: Future[None] = Future()
        self._loader: threading.Thread | None = None
        self._closing = threading.Event()  # whoever still loads points may stop
        self._planned: Future[CardPlan] = Future()
        self._sums: Sums | None = None
        self._synthesis: DeviceSynthesis | None = None

    @classmethod
    def on_card(
        cls,
        host: CpuDevice,
        card: Card,
        points: PointSource,
        memory_limit: int | None,
        shared: HeldSections | None = None,
    ) -> GpuTarget:
        """Of a card that `prepare` opens; `memory_limit` as for `CudaDevice`."""
        return cls(
            host,
            card.label,
            lambda: CudaDevice(card.uuid, memory_limit=memory_limit),
            points,
            memory_limit,
            shared,
        )

    def require_memory(self) -> None:
        if self._loader is None:  # later it is there
            MemoryPlan.beside_a_gpu(self._counts).require(available_memory())

    def prepare(self, on_event: OnEvent = ignore) -> None:
        """Open the card in a thread; it loads the points as soon as `opened` has made the plan."""
        if self._loader is None:
            self._on_event = on_event
            self._loader = threading.Thread(target=self._open_and_load, name="cuzk loader")
            self._loader.start()

    def opened(self, circuit: Circuit) -> None:
        if self._planned.done():
            return
        try:
            facts, nbytes = self._opened.result()[1], synthesis_layout(circuit).nbytes
            plan = CardPlan.of(facts, self._counts, full_counts(circuit), nbytes, self._points.reader_bytes)
            plan.require(self.name)
            if self._memory_limit is not None and facts.free_bytes < self._memory_limit:
                self._on_event(self._short_of(facts.free_bytes, plan))
            self._planned.set_result(plan)
        except BaseException as error:  # who waits for the points must not wait for ever
            self._planned.set_exception(error)
            raise

    def _short_of(self, free_bytes: int, plan: CardPlan) -> Notice:
        passing = [one.section for one in plan.sections if one.slice_points is not None]
        what = f"points of {', '.join(passing)} pass over the card" if passing else "all points fit"
        of = f"{format_size(free_bytes)} of {format_size(self._memory_limit or 0)}"
        return Notice(level="warning", text=f"{self.name} has {of} free that it may take: {what}")

    @property
    def _device(self) -> CudaDevice:
        return self._opened.result()[0]

    def _open_and_load(self) -> None:
        """What goes wrong is raised again where the result is needed."""
        try:
            self._opened.set_result(self._opened_device())
            self._load(self._planned.result())
            self._loaded.set_result(None)
        except BaseException as error:
            for future in (self._opened, self._loaded):
                if not future.done():
                    future.set_exception(error)

    def _opened_device(self) -> tuple[CudaDevice, CardFacts]:
        """The card, with the memory that it has free now: nothing of ours is there."""
        device = self._open_device()
        self._clock = CardClock(device)
        try:
            return device, CardFacts.of(device.card, device.free_memory())
        except BaseException:
            device.close()
            raise

    def _load(self, plan: CardPlan) -> None:
        """The points of resident sections; room for the rows."""
        device, m = self._device, self._counts.h + 1
        self._transforms = NttPlan(device, self._counts.domain_log2)
        self._held: dict[SectionName, GpuPoints] = {}
        resident = [one for one in SECTIONS if plan.of_section(one[0]).slice_points is None]
        total = sum(nbytes * self._counts.of(section) for section, nbytes in resident)
        with stage(self._on_event, "load points", total=total, unit="bytes") as progress:
            loading = _Loading(total, progress, self._closing)
            for section, nbytes in resident:
                order = digits_of(self._transforms) if section == "h" else NATURAL_ORDER
                advance = partial(loading.advance, nbytes)
                load = partial(on_card, self._points, device, section, advance, order)
                self._held[section] = self._shared.on_card(
                    device, section, order, load, advance, self._on_event
                )
        self._vectors = [device.allocate((m, 4), np.uint64) for _ in range(2)]

    def loaded(self) -> None:
        """Wait until the points are on the card. Raises what went wrong with them."""
        assert self._planned.done(), "opened comes first"
        self._loaded.result()

    def _ready_sums(self) -> Sums:
        """When the points are on the card. Raises what went wrong with them."""
        self.loaded()
        if self._sums is None:
            self._sums = Sums(
                self._device,
                self._points,
                self._planned.result(),
                self._held,
                digits_of(self._transforms),
                self._clock,
            )
        return self._sums

    def ready(self, circuit: Circuit) -> None:
        """Tables of the circuit on the card, points of full scalars collected."""
        sums, scalars = self._ready_sums(), self._synthesis_of(circuit).scalars
        for section, held in sums.sections.items():
            held.ready(scalars[section])

    def require_good_points(self, on_event: OnEvent) -> None:
        self.loaded()  # that they are on the curve, decoding has found out
        sums = self._ready_sums()
        total, before = sum(self._counts.of(section) for section, _ in SECTIONS), 0
        with stage(on_event, "points in the subgroup", total=total, unit="points") as progress:

            def advance(done: int, of: int) -> None:
                progress(before + done, total)

            for section, _ in SECTIONS:
                require_subgroup(self._points.where, section, sums.of_random_subsets(section, advance))
                before += self._counts.of(section)
                progress(before, total)

    def assign(self, circuit: Circuit, free: FreeValues) -> DeviceSynthesis:
        """Beside the loading of points, if they are on their way."""
        synthesis = self._synthesis_of(circuit)
        self._clock.restart()
        with self._clock.running("witness", synthesis.stream):
            synthesis.assign(free)
        synthesis.synchronise()
        return synthesis

    def _synthesis_of(self, circuit: Circuit) -> DeviceSynthesis:
        """Tables of a circuit stay on the card until another one's are needed."""
        if self._synthesis is None or self._synthesis.circuit is not circuit:
            if self._synthesis is not None:
                self._synthesis.close()
            self._synthesis = DeviceSynthesis(self._device, circuit)
        return self._synthesis

    def rows(self, circuit: Circuit, assignment: DeviceSynthesis) -> list[DeviceArray]:
        self._ready_sums()
        with self._clock.running("rows", assignment.stream):
            for side, vector in zip((A, B), self._vectors, strict=True):
                assignment.rows(side, vector)
        assignment.synchronise()
        return self._vectors

    def unsatisfied_row(self, circuit: Circuit, assignment: DeviceSynthesis) -> tuple[int, str] | None:
        """In the memory of the rows and of the sums, which come later."""
        workspace, (m, _) = self._ready_sums().workspace, self._vectors[0].shape
        return assignment.unsatisfied_row([*self._vectors, workspace.carve((m, 4), np.uint64)])

    def quotient(self, rows: list[DeviceArray], progress: Progress) -> DeviceArray:
        """The coefficients in reversed digits; the last row, of degree m - 1, is 0 and has no point."""
        part = self._clock.in_parts(self._device.stream, progress, parts=TRANSFORMS, total=TRANSFORMS)
        h = quotient(self._transforms, *rows, scratch=self._ready_sums().workspace, around=part)
        return h.rows(0, h.shape[0] - 1)

    def sum_of_h(self, h: DeviceArray, progress: Progress) -> End:
        return _end("h", self._ready_sums().over_h.run(h, progress))

    def sum_over(self, section: SectionName, circuit: Circuit, assignment: DeviceSynthesis) -> Pending:
        held = self._ready_sums().sections[section]
        held.begin(assignment.scalars[section])
        return lambda progress: _end(section, held.collect(progress))

    def computed_ms(self) -> float:
        return self._clock.total_ms()

    def stages_ms(self) -> dict[str, float]:
        """The same, stage by stage."""
        return self._clock.stages_ms()

    @property
    def is_resident(self) -> bool:
        """Whether all points stay on the card: nobody will ask where they come from again."""
        return all(section.slice_points is None for section in self._planned.result().sections)

    @property
    def _is_whole(self) -> bool:
        return self._loaded.done() and self._loaded.exception() is None

    @property
    def is_usable(self) -> bool:
        """Whether another proof may use it."""
        return self._is_whole and self._device.is_usable

    def close(self) -> None:
        """Give back the card and all that is on it."""
        self._closing.set()
        self._shared.wake()
        if self._loader is not None:
            if not self._planned.done():
                self._planned.set_exception(CancelledError("closed before there was a plan"))
            self._loader.join()
            if self._opened.exception() is None:
                self._shared.leave(self._device)
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
    host: CpuDevice,
    card: Card,
    parameters: ParameterFile,
    *,
    memory_limit: int | None = None,
) -> Iterator[GpuTarget]:
    """The target of these parameters on that card: the last one again if it was the same, points in place.

    What the work inside `with` raises ends it: the card's memory is given back before the error goes on.
    """
    at = parameters.path.stat()
    key = (card.uuid, memory_limit, parameters.path.resolve(), at.st_ino, at.st_size, at.st_mtime_ns)
    with _kept.lock:
        old = _kept.target
        if old is None or _kept.key != key or not old.is_usable:
            _kept.drop()
            _kept.key = key
            _kept.target = GpuTarget.on_card(host, card, PointsOfFile(parameters), memory_limit)
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
