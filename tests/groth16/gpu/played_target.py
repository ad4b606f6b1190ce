"""A GPU as a target over a stand-in driver: kernels of points played by plain integers, sums by the library.

Quotients are the CPU's. Kernels have tests of their own on a real card.
"""

from __future__ import annotations

import ctypes
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from py_arkworks_bls12381 import G1Point, G2Point, Scalar

from cuzk.circuit.builder import Circuit
from cuzk.groth16.encoding import g1_of_coordinates, g2_of_coordinates
from cuzk.groth16.gpu import full_scalars, sums
from cuzk.groth16.gpu import streamed as passing
from cuzk.groth16.gpu import target as gpu_target
from cuzk.groth16.gpu.card_plan import CardPlan
from cuzk.groth16.gpu.points_on_card import PointsOfFile
from cuzk.groth16.gpu.target import GpuTarget
from cuzk.groth16.parameters.params_file import SectionName, open_parameters
from cuzk.groth16.prove import begin_sums
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.field_type import FQ2_GPU, FQ_GPU
from cuzk.kernels.fr_vector import to_integers
from cuzk.kernels.gpu.jit import CudaKernel
from cuzk.kernels.gpu.points import decode_kernel, gather_kernel
from cuzk.kernels.gpu.selection import take_reversed
from cuzk.kernels.modulus import FQ
from cuzk.kernels.ntt import TRANSFORMS, quotient
from tests.groth16.gpu.played_circuit import EFFECTS, arguments
from tests.kernels.device.fake_cuda import FakeDriver, card
from tests.toy_circuit import toy_values

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

    parts, is_long = 2, False

    def submit(self, scalars: Any, around: Callable[[], AbstractContextManager[None]] = nullcontext) -> None:
        for _ in range(self.parts):
            with around():
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


def played_quotient(plan: Any, a: Any, b: Any, *, scratch: Any, around: Any) -> Any:
    """The CPU's, in the order in which the card leaves it."""
    for k in range(TRANSFORMS):
        with around(f"transform {k}"):
            if k == 0:
                values = [plan.device.download(vector) for vector in (a, b)]
                h = quotient(CpuDevice(threads=1, lanes=1), *values)
    whole = np.concatenate([h, np.zeros((1, 4), np.uint64)])
    order = plan.schedule.coefficients_at(np.arange(len(whole)))
    return plan.device.upload(np.ascontiguousarray(whole[order]), into=a)


class _Group:
    """The played sums are points already."""

    @staticmethod
    def add(a: Any, b: Any) -> Any:
        return b if a is None else a + b


def idle_driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    """Memory is real, kernels do nothing."""
    driver = FakeDriver(card(memory_bytes=8 << 30))
    driver.effects = defaultdict(lambda: lambda *_: None)
    monkeypatch.setattr(CudaKernel, "cubin", lambda self, capability: b"code")
    return driver


def playing_driver(monkeypatch: pytest.MonkeyPatch) -> FakeDriver:
    """What the kernels of points do is done, as well as sums and quotients."""
    driver = idle_driver(monkeypatch)
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
    for module in (sums, passing, full_scalars):
        monkeypatch.setattr(module, "GpuMsm", PlayedSum)
    for module in (sums, passing):
        monkeypatch.setattr(module, "GpuSelectedSum", PlayedSum)
        monkeypatch.setattr(module, "curve_of", lambda form: _Group)
    monkeypatch.setattr(gpu_target, "quotient", played_quotient)
    monkeypatch.setattr(gpu_target, "group_point", lambda section, point: point)
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
    h = target.quotient(target.rows(toy, assignment), nothing)
    target.sum_of_h(h, nothing)
    for pending in over_variables.values():
        pending(nothing)


def streamed(monkeypatch: pytest.MonkeyPatch, sections: Sequence[SectionName], slice_points: int) -> None:
    """Whatever the card has, these sections pass over it in slices."""

    def plan(facts: Any, counts: Any, full: Any, synthesis_bytes: int, reader_bytes: Any) -> CardPlan:
        cut = dict.fromkeys(sections, slice_points)
        return CardPlan._cut(facts, counts, full, synthesis_bytes, cut, reader_bytes)

    monkeypatch.setattr(CardPlan, "of", plan)
