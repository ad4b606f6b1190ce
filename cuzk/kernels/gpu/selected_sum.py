"""Sums of the points that a bit vector selects, on the GPU.

1 select   codes of the set bits, a tile at a time; tiles take their places in the list as they come
2 rounds   neighbours in pairs, sums to the pool, until `limit` are left; an odd one pairs with the identity
3 tail     the rest in `lists` lists of equal room, one block each, and their sums by one more block:
           `tail_sum`
Sizes live on the device, the number of rounds follows from n: nothing waits, all launches are one graph.
Cost       one batched affine addition a selected point; each round some 50 us of latency.
Twin       `kernels.selected_sum` on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from cuzk.kernels.curve import Point
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_launch import Launch
from cuzk.kernels.device.cuda_memory import DeviceArray
from cuzk.kernels.device.keeper import Keeper
from cuzk.kernels.gpu.compiler import cuda, pointer
from cuzk.kernels.gpu.jit import cuda_jit
from cuzk.kernels.gpu.ops import atomic_add
from cuzk.kernels.gpu.pair_add import pair_add_kernel
from cuzk.kernels.gpu.rounds import LIST_THREADS, neighbours, scan_before
from cuzk.kernels.gpu.sum_schedule import SCAN_THREADS, Form, SelectedPlan, selected_layout
from cuzk.kernels.gpu.tail_sum import sum_lists_kernel
from cuzk.kernels.xyzz import horner, one_lane_form

BITS_PER_THREAD = 16
SELECT_TILE = SCAN_THREADS * BITS_PER_THREAD
_SELECTED, _LEVEL, _LEFT = range(3)  # of `state`: bits set, rounds done, items left for the tail
_U8, _U32, _U64 = pointer(types.uint8), pointer(types.uint32), pointer(types.uint64)


@cuda_jit(_U8, _U64, types.uint32, _U32, _U32, launch_bounds=(SCAN_THREADS,))
def select_codes(bits, bit_words, n, state, codes):  # type: ignore[no-untyped-def]
    """Append the indices of this tile's set bits to `codes`. `bit_words` are the bits again, eight at a
    time.
    """
    shared = cuda.shared.array(SCAN_THREADS, types.uint32)
    place_of_tile = cuda.shared.array(1, types.uint32)
    t = np.int32(cuda.threadIdx.x)
    first = np.int64(cuda.blockIdx.x) * SELECT_TILE + t * BITS_PER_THREAD
    mask = np.uint32(0)
    if first + BITS_PER_THREAD <= n:
        for half in range(2):
            word = bit_words[(first >> 3) + half]
            for k in range(8):
                if (word >> np.uint64(8 * k)) & np.uint64(0xFF):
                    mask = np.uint32(mask | np.uint32(1 << (8 * half + k)))
    else:
        for k in range(BITS_PER_THREAD):
            if first + k < n and bits[first + k]:
                mask = np.uint32(mask | np.uint32(1 << k))
    count = np.uint32(0)
    for k in range(BITS_PER_THREAD):
        count = np.uint32(count + ((mask >> np.uint32(k)) & np.uint32(1)))
    before, everything = scan_before(shared, t, count)
    if t == 0:
        place_of_tile[0] = atomic_add(state, _SELECTED, everything)
    cuda.syncthreads()
    place = np.int64(place_of_tile[0]) + before
    for k in range(BITS_PER_THREAD):
        if (mask >> np.uint32(k)) & np.uint32(1):
            codes[place] = np.uint32(first + k)
            place += 1


@cuda_jit(types.uint32, types.uint32, types.uint32, _U32, _U32, _U32, _U32, launch_bounds=(1,))
def plan_rounds(n_points, rounds, limit, state, codes, sizes, bases):  # type: ignore[no-untyped-def]
    """Sizes and places of all rounds, from the number of selected points; those that are not needed are
    empty.
    """
    left = np.int64(state[_SELECTED])
    if left & 1:
        codes[left] = n_points  # the identity
    level = np.int64(0)
    base = np.int64(1)
    for r in range(rounds):
        size = np.int64(0)
        if left > limit:
            size = (left + 1) >> 1
            left = size
            level += 1
        sizes[r] = np.uint32(size)
        bases[r] = np.uint32(base)
        base += size
    state[_LEVEL] = np.uint32(level)
    state[_LEFT] = np.uint32(left)


@cuda_jit(
    _U32, _U32, types.uint32, types.uint32, types.uint32, _U32, _U32, _U32, launch_bounds=(LIST_THREADS,)
)
def tail_lists(state, bases, n_points, lists, room, selected, codes, lengths):  # type: ignore[no-untyped-def]
    """What is left, in lists."""
    q = np.int64(cuda.blockIdx.x) * LIST_THREADS + cuda.threadIdx.x
    left, level = np.int64(state[_LEFT]), np.int64(state[_LEVEL])
    if q < lists:
        lengths[q] = np.uint32(min(max(left - q * room, np.int64(0)), np.int64(room)))
    if q < left:
        if level == 0:
            codes[q] = selected[q]
        else:
            codes[q] = np.uint32(np.int64(n_points) + np.int64(bases[level - 1]) + q)


class GpuSelectedSum(Keeper):
    """The sum over bits for one array of points; points, form and workspace as for `msm.GpuMsm`."""

    def __init__(
        self,
        device: CudaDevice,
        form: Form,
        points_x: DeviceArray,
        points_y: DeviceArray,
        plan: SelectedPlan,
        workspace: DeviceArray,
        *,
        use_graphs: bool = True,
    ) -> None:
        super().__init__()
        self.device, self.form, self.plan = device, form, plan
        self._points = (points_x, points_y)
        self._multiprocessors = device.card.multiprocessors
        self._parts = selected_layout(form, plan, self._multiprocessors).carve(workspace)
        self._use_graphs = use_graphs
        self._programs: dict[int, Any] = {}
        try:
            self._all_codes = self.keep(device.upload(np.arange(plan.lists, dtype=np.uint32)))
            self._all_length = self.keep(device.upload(np.array([plan.lists], np.uint32)))
            self._out = [self.keep(device.pinned((1, form.words), np.uint32)) for _ in range(2)]
        except BaseException:
            self.close()
            raise

    def run(self, bits: DeviceArray) -> Point[Any]:
        """Sum of the points whose bit is not 0, affine, plain integers, None for the identity; bits (n,)
        uint8.
        """
        self.submit(bits)
        return self.collect()()

    def submit(self, bits: DeviceArray) -> None:
        program = self._programs.get(bits.address)
        stream = self.device.stream
        if program is None:
            launches = self._launches(bits)

            def run_all() -> None:
                for name in ("state", "pool_x", "pool_y"):
                    part = self._parts[name]
                    self.device.clear(part if name == "state" else part.rows(0, 1))
                for launch in launches:
                    launch.run(stream)

            program = run_all
            if self._use_graphs:
                graph = self.keep(self.device.record(run_all))
                program = lambda: graph.run(stream)  # noqa: E731
            self._programs[bits.address] = program
        program()
        for name, pinned in zip(("out_x", "out_y"), self._out, strict=True):
            self.device.download(self._parts[name], into=pinned)

    def collect(self) -> Callable[[], Point[Any]]:
        """Waits for the device; what is left needs the host alone."""
        self.device.stream.synchronise()
        rows = np.concatenate([pinned.array for pinned in self._out], axis=1).view(np.uint64)
        return lambda: horner(one_lane_form(self.form), rows, np.zeros((1, 1), np.uint32))

    def _launch(self, kernel: Any, blocks: int, threads: int, *arguments: Any) -> Launch:
        return self.device.load(kernel).prepare(blocks, threads, *arguments)

    def _launches(self, bits: DeviceArray) -> list[Launch]:
        p, at = self.plan, self._parts
        codes = at["pairs_0"].carve(2 * at["pairs_0"].shape[0], np.uint32)
        bit_words = bits.carve(p.n // 8, np.uint64)
        launches = [
            self._launch(select_codes, -(-p.n // SELECT_TILE), SCAN_THREADS, bits, bit_words, p.n,
            at["state"], codes),
            self._launch(plan_rounds, 1, 1, p.n, p.rounds, p.limit, at["state"], codes, at["sizes"],
            at["bases"]),
        ]  # fmt: skip
        for number in range(p.rounds):
            pairs = -(-p.n >> (number + 1))
            if number:
                blocks = min(-(-pairs // LIST_THREADS), 8 * self._multiprocessors)
                launches.append(
                    self._launch(
                        neighbours, blocks, LIST_THREADS, at["sizes"], at["bases"], number, p.n, at["pairs_1"]
                    )
                )
            shape = p.small_shape if pairs < p.small_below else p.shape
            launches.append(
                self._launch(
                    pair_add_kernel(self.form, shape), shape.blocks * self._multiprocessors, shape.threads,
                    *self._points, at["pool_x"], at["pool_y"], p.n, at["pairs_1" if number else "pairs_0"],
                    at["sizes"], at["bases"], number, at["prefixes"],
                )
            )  # fmt: skip
        tail = sum_lists_kernel(self.form, p.tail_threads)
        launches += [
            self._launch(
                tail_lists, -(-max(p.limit, p.lists) // LIST_THREADS), LIST_THREADS, at["state"],
                at["bases"], p.n,
                p.lists, p.room, codes, at["tail_codes"], at["tail_lengths"],
            ),
            self._launch(
                tail, p.lists, p.tail_threads, *self._points, at["pool_x"], at["pool_y"], p.n,
                at["tail_codes"],
                p.room, at["tail_lengths"], at["list_x"], at["list_y"], 0,
            ),
            self._launch(
                tail, 1, p.tail_threads, at["list_x"], at["list_y"], at["list_x"], at["list_y"], p.lists,
                self._all_codes, p.lists, self._all_length, at["out_x"], at["out_y"], 0,
            ),
        ]  # fmt: skip
        return launches
