"""Multi-scalar multiplication on the GPU: the schedule of the kernels, windows in passes.

Symbols    as in `kernels.msm`: n points, c bits a window, W windows, B = 2^(c-1) buckets; A is an addition
           in a round of pairs.
1 sort     digits to the pairs of each bucket: `staged_sort` for many, `bucket_sort` for few
2 rounds   bucket sums: `rounds`, `pair_add`                               W*n A
3 groups   sums over rows and columns of each window's buckets           W*2B A
4 bits     c points a window: `integrate`, `tail_sum`
5 fold     on the host: sum of 2^(c*w + t) T[w][t], `xyzz.horner`         0.4 ms in G1
Passes     as many windows at a time as memory allows; 1 to 4 are done for each pass.
Rounds     as many as the largest bucket of uniform scalars needs, submitted without waiting. A larger one is
           found out in the end; then all is done again with its rounds, and so is the next sum.
Memory     a pass of V windows: V*n rows of pool, 12 to 20 bytes of lists a digit; `workspace_bytes` tells.
Twin       `kernels.msm.msm` on the CPU, `msm_textbook` there.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

import numpy as np
from numba.core import types

from cuzk.kernels.curve import Point
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_launch import Extent, Launch
from cuzk.kernels.device.cuda_memory import DeviceArray
from cuzk.kernels.device.keeper import Keeper
from cuzk.kernels.gpu.bucket_sort import count_digits, scatter_digits
from cuzk.kernels.gpu.compiler import cuda, pointer
from cuzk.kernels.gpu.digits import THREADS as DIGIT_THREADS
from cuzk.kernels.gpu.digits import digit_constants, make_digits
from cuzk.kernels.gpu.integrate import THREADS as LIST_THREADS
from cuzk.kernels.gpu.integrate import bit_lists, group_pairs
from cuzk.kernels.gpu.jit import cuda_jit
from cuzk.kernels.gpu.pair_add import pair_add_kernel
from cuzk.kernels.gpu.rounds import (
    count_pairs,
    neighbours,
    next_list,
    place_pairs,
    scan_partials,
)
from cuzk.kernels.gpu.staged_sort import (
    HISTOGRAM_THREADS,
    SPREAD_ROWS,
    count_bins,
    count_buckets,
    histogram_bytes,
    histogram_tile,
    scatter_bins,
    spread_digits,
    spread_entries,
)
from cuzk.kernels.gpu.staged_sort import THREADS as STAGED_THREADS
from cuzk.kernels.gpu.staged_sort import TILE as STAGED_TILE
from cuzk.kernels.gpu.sum_plan import bucket_rounds
from cuzk.kernels.gpu.sum_schedule import (
    FIRST_BITS,
    SCALAR_BITS,
    SCAN_THREADS,
    SCAN_TILE,
    Form,
    GpuPlan,
    msm_layout,
)
from cuzk.kernels.gpu.tail_sum import sum_lists_kernel
from cuzk.kernels.xyzz import EMPTY, Codes, horner, one_lane_form

IDENTITY_ROW = 0  # of the pool; sums follow
LEAST_ROUNDS = 2  # where too few are submitted, the last list is written by offsets of the last but one
_U32 = pointer(types.uint32)


@cuda_jit(
    types.uint32, types.uint32, types.uint32, types.uint32, _U32, _U32, _U32, _U32, _U32, _U32, _U32,
    launch_bounds=(LIST_THREADS,),
)  # fmt: skip
def begin_pass(buckets, bin_words, n_points, words, counts, extras, bins, bases, largest, pool_x, pool_y):  # type: ignore[no-untyped-def]
    """Empty buckets, and the identity in the pool: every code that is not yet given names it."""
    i = np.int64(cuda.blockIdx.x) * LIST_THREADS + cuda.threadIdx.x
    if i < buckets:
        counts[i] = 0
        extras[i] = np.uint32(n_points + IDENTITY_ROW)
    if i < bin_words:
        bins[i] = 0
    if i < words:
        pool_x[i] = 0
        pool_y[i] = 0
    if i == 0:
        bases[0] = np.uint32(IDENTITY_ROW + 1)
        largest[0] = 0


class GpuMsm(Keeper):
    """The MSM of one array of points, for any number of scalar vectors of the same length, one after another.

    points_x, points_y  (n, words) uint32 on the device, Montgomery form, the identity (0, 0)
    workspace           (nbytes,) uint8 on the device, of at least `workspace_bytes`; overwritten by each run,
                        so that what runs in the same stream may share it
    use_graphs          submit recorded graphs instead of single launches
    """

    def __init__(
        self,
        device: CudaDevice,
        form: Form,
        points_x: DeviceArray,
        points_y: DeviceArray,
        plan: GpuPlan,
        workspace: DeviceArray,
        *,
        use_graphs: bool = True,
    ) -> None:
        super().__init__()
        self.device, self.form, self.plan = device, form, plan
        self._points = (points_x, points_y)
        multiprocessors = device.card.multiprocessors
        self._parts = msm_layout(form, plan, multiprocessors).carve(workspace)
        self._fixed_blocks = 8 * multiprocessors
        self._multiprocessors = multiprocessors
        self._next_rounds = self._expected_rounds = max(LEAST_ROUNDS, bucket_rounds(plan))
        self._scalars: DeviceArray | None = None
        self._fold_codes = fold_codes(plan)
        self._programs: dict[Any, Callable[[], None]] = {}
        self._use_graphs = use_graphs
        try:
            self._constants = self.keep(device.upload(digit_constants(plan)))
            self._largest = self.keep(device.pinned(len(plan.passes), np.uint32))
            out = plan.windows * plan.c, form.words
            self._out = [self.keep(device.pinned(out, np.uint32)) for _ in range(2)]
        except BaseException:
            self.close()
            raise
        #: Called with the name of each stage as it has been submitted; for measurements, without graphs.
        self.mark: Callable[[str], None] = lambda stage: None

    @property
    def parts(self) -> int:
        """In how many `submit` submits."""
        return 2 * len(self.plan.passes)

    @property
    def is_long(self) -> bool:
        """Whether it takes long enough to wait for the device between two parts: 20 us each."""
        return len(self.plan.passes) > 1

    def run(self, scalars: DeviceArray) -> Point[Any]:
        """Sum of scalars[i] * point i, affine, plain integers, None for the identity; scalars (n, 4)
        uint64, to be left alone until then.
        """
        self.submit(scalars)
        return self.collect()()

    def submit(
        self, scalars: DeviceArray, around: Callable[[], AbstractContextManager[None]] = nullcontext
    ) -> None:
        """Steps 1 to 4. On return the points for the fold are on their way to the host.

        around  is entered while each of the `parts` is submitted, and may wait for it
        """
        self._scalars = scalars
        for index in range(len(self.plan.passes)):
            with around():
                self._run(("sort", index, scalars.address), partial(self._sort, scalars, index))
            with around():
                self._run(("sum", index, self._next_rounds), partial(self._sum, index, self._next_rounds))
        self.device.download(self._parts["largest"], into=self._largest)
        for out, pinned in zip(("out_x", "out_y"), self._out, strict=True):
            self.device.download(self._parts[out], into=pinned)

    def collect(self) -> Callable[[], Point[Any]]:
        """Waits for the device; step 5 is left to the caller, as it needs the host alone."""
        assert self._scalars is not None, "nothing was submitted"
        self.device.stream.synchronise()
        needed, given = rounds_of(int(self._largest.array.max())), self._next_rounds
        self._next_rounds = max(self._expected_rounds, needed)
        if needed > given:
            self.submit(self._scalars)
            self.device.stream.synchronise()
        rows = np.concatenate([pinned.array for pinned in self._out], axis=1).view(np.uint64)
        return lambda: horner(one_lane_form(self.form), rows, self._fold_codes)

    def _run(self, key: Any, submit: Callable[[], list[tuple[str, Launch]]]) -> None:
        """Prepare the launches once, then submit them, as a graph when it is wanted."""
        program = self._programs.get(key)
        if program is None:
            launches = submit()
            stream = self.device.stream

            def run_all() -> None:
                for stage, launch in launches:
                    launch.run(stream)
                    self.mark(stage)

            program = run_all
            if self._use_graphs:
                graph = self.keep(self.device.record(run_all))
                program = lambda: graph.run(stream)  # noqa: E731
            self._programs[key] = program
        program()

    def _launch(self, kernel: Any, blocks: Extent, threads: int, *arguments: Any) -> Launch:
        return self.device.load(kernel).prepare(blocks, threads, *arguments)

    def _sort(self, scalars: DeviceArray, index: int) -> list[tuple[str, Launch]]:
        """Step 1 and the first round."""
        p, at = self.plan, self._parts
        first, end = p.passes[index]
        count, buckets = (end - first) * p.n, p.buckets(first, end)
        bin_words = 0 if p.bin_bits is None else at["bins"].shape[0]
        everything = max(buckets, bin_words, self.form.words)
        begin = self._launch(
            begin_pass, -(-everything // LIST_THREADS), LIST_THREADS,
            buckets, bin_words, p.n, self.form.words, at["counts"], at["extras"], at["bins"],
            at["bases"], at["largest"].rows(index, index + 1), at["pool_x"], at["pool_y"],
        )  # fmt: skip
        digits = self._borrowed("pool_y", count, np.int32)
        make = self._launch(
            make_digits, -(-p.n // DIGIT_THREADS), DIGIT_THREADS, scalars, p.n, self._constants, p.c, p.wide,
            p.windows, first, end, digits,
        )  # fmt: skip
        sort = self._simple_sort if p.bin_bits is None else self._staged_sort
        return [
            ("begin", begin),
            ("digits", make),
            *sort(digits, index),
            ("round 1", self._add(0, 0, count // 2)),
        ]

    def _borrowed(self, name: str, count: int, dtype: Any, offset_bytes: int = 0) -> DeviceArray:
        """Scratch of the sort in the rows of the pool behind the identity: no sum is there yet."""
        row_bytes = 4 * self.form.words
        return self._parts[name].carve(count, dtype, offset_bytes=row_bytes + offset_bytes)

    def _simple_sort(self, digits: DeviceArray, index: int) -> list[tuple[str, Launch]]:
        p, at = self.plan, self._parts
        first, end = p.passes[index]
        wide = p.wide_of(first, end)
        grid = (-(-p.n // DIGIT_THREADS), end - first)
        ranks = self._borrowed("pool_y", (end - first) * p.n, np.uint32, digits.nbytes)
        count = self._launch(count_digits, grid, DIGIT_THREADS, digits, p.n, p.c, wide, at["counts"], ranks)
        scatter = self._launch(
            scatter_digits, grid, DIGIT_THREADS, digits, p.n, p.c, wide, at["counts"], ranks, at["offsets_0"],
            self._words("pairs_0"), at["segs_0"], at["extras"],
        )  # fmt: skip
        scan = self._scan_buckets(index)
        return [("count", count), *scan, ("scatter", scatter)]

    def _staged_sort(self, digits: DeviceArray, index: int) -> list[tuple[str, Launch]]:
        p, at, b = self.plan, self._parts, self.plan.bin_bits
        assert b is not None
        first, end = p.passes[index]
        wide, n_digits = p.wide_of(first, end), (end - first) * p.n
        entries = [self._borrowed("pool_x", n_digits, np.uint64, 8 * n_digits * k) for k in range(2)]
        bins, regions = (end - first) << b, (end - first) << FIRST_BITS
        starts, scratch = at["starts"], at["sort_scratch"]
        cursors = at["bins"].rows(bins + 1, at["bins"].shape[0])
        tile, rows, threads = histogram_tile(b), end - first, STAGED_THREADS
        histogram = self.device.load(count_bins).prepare(
            (-(-p.n // tile), rows), HISTOGRAM_THREADS, digits, p.n, b, tile, at["bins"],
            shared_bytes=histogram_bytes(b),
        )  # fmt: skip
        scan_bins = self._scan(
            at["bins"], bins + 1, level=0, number=0, offsets=starts,
            sizes=scratch.rows(0, 1), bases=scratch.rows(1, 3), largest=scratch.rows(3, 4),
        )  # fmt: skip
        spread_1 = self._launch(
            spread_digits, (-(-p.n // STAGED_TILE), rows), threads, digits, p.n, b, starts,
            cursors.rows(0, regions), entries[0],
        )  # fmt: skip
        spread_2 = self._launch(
            spread_entries, (regions, SPREAD_ROWS), threads, entries[0], b, starts,
            cursors.rows(regions, regions + bins), entries[1],
        )  # fmt: skip
        count = self._launch(
            count_buckets, bins, threads, entries[1], b, p.c, wide, starts, at["counts"]
        )  # fmt: skip
        scatter = self._launch(
            scatter_bins, bins, threads, entries[1], b, p.c, wide, starts, at["counts"], at["offsets_0"],
            at["pairs_0"], at["segs_0"], at["extras"], self._words("pairs_0"),
        )  # fmt: skip
        scan = self._scan_buckets(index)
        return [
            ("bins", histogram), *scan_bins, ("spread 1", spread_1), ("spread 2", spread_2), ("count", count),
            *scan, ("scatter", scatter),
        ]  # fmt: skip

    def _words(self, name: str) -> DeviceArray:
        """A list of pairs as its codes."""
        part = self._parts[name]
        return part.carve(2 * part.shape[0], np.uint32)

    def _sum(self, index: int, rounds: int) -> list[tuple[str, Launch]]:
        """Rounds after the first one, groups, bits."""
        p, at = self.plan, self._parts
        first, end = p.passes[index]
        count, wide, pairs = end - first, p.wide_of(first, end), p.buckets(first, end)
        h, room_bits = p.group_bits
        lists = count * p.c
        launches = self._rounds(pairs, rounds, count * p.n // 2)
        group_list = self._launch(
            group_pairs, -(-pairs // LIST_THREADS), LIST_THREADS, at["extras"], count, p.c, wide, h, rounds,
            at["sizes"], at["bases"], at["pairs_0"],
        )  # fmt: skip
        launches += [("group lists", group_list), ("groups 1", self._add(rounds, 0, pairs))]
        for level in range(1, h):
            left = pairs >> level
            neighbour_list = self._launch(
                neighbours, min(-(-left // LIST_THREADS), self._fixed_blocks), LIST_THREADS, at["sizes"],
                at["bases"],
                rounds + level, p.n, at["pairs_1"],
            )  # fmt: skip
            launches += [
                ("group lists", neighbour_list),
                (f"groups {level + 1}", self._add(rounds + level, 1, left)),
            ]
        bit_list = self._launch(
            bit_lists, -(-(lists << room_bits) // LIST_THREADS), LIST_THREADS, at["bases"], rounds + h - 1,
            p.n, count, p.c, wide, h, room_bits, at["bit_codes"], at["bit_lengths"],
        )  # fmt: skip
        bits = self._launch(
            sum_lists_kernel(self.form, p.tail_threads), lists, p.tail_threads, *self._points, at["pool_x"],
            at["pool_y"], p.n, at["bit_codes"], 1 << room_bits, at["bit_lengths"], at["out_x"], at["out_y"],
            first * p.c,
        )  # fmt: skip
        return [*launches, ("bit lists", bit_list), ("bits", bits)]

    def _rounds(self, segments: int, rounds: int, pairs: int) -> list[tuple[str, Launch]]:
        """All rounds of the buckets but the first, whose list and sums, about `pairs`, are made."""
        at = self._parts
        launches: list[tuple[str, Launch]] = []
        for level in range(rounds):
            old, new, is_last = level % 2, 1 - level % 2, level + 1 == rounds
            if not is_last:
                launches += self._scan(
                    at["counts"], segments, level=level + 1, number=level + 1, offsets=at[f"offsets_{new}"]
                )
            launches.append(("lists", self._next_list(level, old, new)))
            if not is_last:
                launches.append((f"round {level + 2}", self._add(level + 1, new, pairs >> (level + 1))))
        return launches

    def _scan_buckets(self, index: int) -> list[tuple[str, Launch]]:
        """Of the first round."""
        at = self._parts
        return self._scan(
            at["counts"], self.plan.buckets(*self.plan.passes[index]), level=0, number=0,
            offsets=at["offsets_0"], largest=at["largest"].rows(index, index + 1),
        )  # fmt: skip

    def _scan(
        self,
        counts: DeviceArray,
        segments: int,
        *,
        level: int,
        number: int,
        offsets: DeviceArray,
        **other: Any,
    ) -> list[tuple[str, Launch]]:
        """offsets := where the pairs of each segment begin; `other` arrays for sizes, bases and the largest
        count.
        """
        at = self._parts
        tiles = -(-segments // SCAN_TILE)
        sizes, bases = other.get("sizes", at["sizes"]), other.get("bases", at["bases"])
        largest = other.get("largest", at["largest"])
        launches = [
            self._launch(count_pairs, tiles, SCAN_THREADS, counts, segments, level, at["partials"], largest),
            self._launch(scan_partials, 1, SCAN_THREADS, at["partials"], tiles, number, sizes, bases),
            self._launch(place_pairs, tiles, SCAN_THREADS, counts, segments, level, at["partials"], offsets),
        ]
        return [("scans", launch) for launch in launches]

    def _next_list(self, level: int, old: int, new: int) -> Launch:
        at = self._parts
        return self._launch(
            next_list, self._fixed_blocks, LIST_THREADS, at["counts"], level, self.plan.n, at["sizes"],
            at["bases"], at["extras"], at[f"segs_{old}"], at[f"offsets_{old}"], at[f"offsets_{new}"],
            at[f"pairs_{new}"], at[f"segs_{new}"],
        )  # fmt: skip

    def _add(self, number: int, which: int, pairs: int) -> Launch:
        """Round `number`, of about that many pairs, from list `which`."""
        p, at = self.plan, self._parts
        shape = p.small_shape if pairs < p.small_below else p.shape
        return self._launch(
            pair_add_kernel(self.form, shape), shape.blocks * self._multiprocessors, shape.threads,
            *self._points, at["pool_x"], at["pool_y"], p.n, at[f"pairs_{which}"], at["sizes"], at["bases"],
            number, at["prefixes"],
        )  # fmt: skip


def rounds_of(largest: int) -> int:
    """Rounds until a bucket of so many points is one sum."""
    return max(LEAST_ROUNDS, (largest - 1).bit_length() if largest else 0)


def fold_codes(plan: GpuPlan) -> Codes:
    """(2, 255), for `xyzz.horner`: T[w][t] is row c*w + t, at bit t of its window; T[w][c - 1] at bit 0."""
    codes = np.full((2, SCALAR_BITS), EMPTY, np.uint32)
    for w in range(plan.windows):
        start, end, row = plan.start(w), plan.start(w + 1), plan.c * w
        codes[0, start : end - 1] = np.arange(row, row + end - 1 - start) << 1
        codes[1, start] = row + plan.c - 1 << 1
    return codes


def workspace_bytes(device: CudaDevice, form: Form, plan: GpuPlan) -> int:
    return msm_layout(form, plan, device.card.multiprocessors).nbytes
