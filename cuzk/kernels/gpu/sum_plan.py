"""Which way to cut an MSM on a GPU: from measured costs, scaled to the card at hand. Plain Python.

A round of pairs takes a latency, most of it one inversion, and so much an addition; sorting takes so much a
digit: measured by bench/gpu_msm.py, scaled by `card_speed`.

Symbols    n points, W windows of c or c - 1 bits, B buckets in all
Cost       W*n digits sorted, W*n - B additions in buckets, half of W*n of points that lie anywhere; 2B in
           groups; for each pass the latency of its rounds
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from cuzk.kernels.gpu.card_speed import MEASURED_ON, Speed, pace, throughput
from cuzk.kernels.gpu.sum_schedule import (
    DEFAULT_SHAPES,
    LEAST_WINDOWS,
    MOST_WINDOWS,
    Form,
    GpuPlan,
    SelectedPlan,
    bin_bits,
    has_codes,
    msm_layout,
)

_TOLERANCE = 1.01  # plans whose times differ by less are equal: then the fewest buckets
_EVERY_NUMBER = range(MOST_WINDOWS, LEAST_WINDOWS - 1, -1)  # of windows: by growing buckets
_EXCEEDED = 1e-3  # how often the largest bucket of uniform digits may be larger than is assumed
_TO_MS = 1e-6  # from nanoseconds


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupCosts:
    """What was measured for one group.

    random_ns   an addition of points that lie anywhere; in_order_ns  of results that lie side by side
    round_ms    latency of a round of pairs, however few
    lists_ms    sums of the last lists: of an MSM's bits, of the tail of a sum over bits
    host_ms     the fold, reading sizes back, launches
    """

    random_ns: float
    in_order_ns: float
    round_ms: float
    lists_ms: float
    host_ms: float


COSTS = {
    1: GroupCosts(random_ns=0.298, in_order_ns=0.252, round_ms=0.050, lists_ms=0.15, host_ms=0.4),
    2: GroupCosts(random_ns=0.910, in_order_ns=0.880, round_ms=0.077, lists_ms=0.60, host_ms=0.9),
}
SORT_NS = 0.060  # a digit, simple sort
STAGED_SORT_NS = 0.026
LIST_NS = 0.013  # a digit, in the lists of all rounds
SCAN_NS = 0.040  # a bucket, in the scans of all rounds
PASS_MS = 0.15  # begin, scans and lists of a pass, however short
SELECT_MS = 0.10  # the same of a sum over bits
SELECT_NS = 0.005  # a bit
SELECT_HOST_MS = 0.12


@dataclass(frozen=True, slots=True, kw_only=True)
class SumCost:
    """What a sum is expected to take on a card.

    rounds     of pairs, one after another
    sort_ms    digits to buckets, lists and scans; for bits their selection
    """

    additions: int
    rounds: int
    sort_ms: float
    additions_ms: float
    latency_ms: float
    host_ms: float

    @property
    def total_ms(self) -> float:
        return self.sort_ms + self.additions_ms + self.latency_ms + self.host_ms


def msm_cost(form: Form, plan: GpuPlan, speed: Speed) -> SumCost:
    """Of an MSM of uniform scalars."""
    costs, digits = COSTS[form.degree], plan.windows * plan.n
    buckets = plan.buckets(0, plan.windows)
    anywhere = digits // 2
    later = max(digits + buckets - anywhere, 2 * buckets)
    rounds = len(plan.passes) * (bucket_rounds(plan) + plan.group_bits[0])
    sort_ns = SORT_NS if plan.bin_bits is None else STAGED_SORT_NS
    sort_ms = _TO_MS * ((sort_ns + LIST_NS) * digits + SCAN_NS * buckets)
    additions_ms = _TO_MS * (costs.random_ns * anywhere + costs.in_order_ns * later)
    fixed_ms = len(plan.passes) * (PASS_MS + costs.lists_ms) + rounds * costs.round_ms
    return SumCost(
        additions=anywhere + later,
        rounds=rounds,
        sort_ms=sort_ms / throughput(speed),
        additions_ms=additions_ms / throughput(speed),
        latency_ms=fixed_ms / pace(speed),
        host_ms=costs.host_ms,
    )


def selected_cost(form: Form, plan: SelectedPlan, speed: Speed) -> SumCost:
    """Of a sum over bits, half of them set."""
    costs, additions = COSTS[form.degree], plan.n // 2
    anywhere = additions // 2
    additions_ms = _TO_MS * (costs.random_ns * anywhere + costs.in_order_ns * (additions - anywhere))
    return SumCost(
        additions=additions,
        rounds=plan.rounds,
        sort_ms=_TO_MS * SELECT_NS * plan.n / throughput(speed),
        additions_ms=additions_ms / throughput(speed),
        latency_ms=(SELECT_MS + costs.lists_ms + plan.rounds * costs.round_ms) / pace(speed),
        host_ms=SELECT_HOST_MS,
    )


def bucket_rounds(plan: GpuPlan) -> int:
    """Rounds until each bucket is one sum: those of the largest bucket, of uniform scalars.

    Sizes are Poisson's: fewer than one sum in a thousand has a larger bucket.
    """
    least = plan.c if plan.wide == plan.windows else plan.c - 1  # bits of the narrowest window
    mean, buckets = plan.n / (1 << (least - 1)), plan.buckets(0, plan.windows)
    rounds = max(1, math.ceil(math.log2(max(mean, 1))))
    while mean and math.log(buckets) + _log_of_tail(mean, (1 << rounds) + 1) > math.log(_EXCEEDED):
        rounds += 1
    return rounds


def _log_of_tail(mean: float, size: int) -> float:
    """Of the probability of that size, above the mean, or more: the first term times a geometric sum."""
    return size * math.log(mean) - mean - math.lgamma(size + 1) - math.log(1 - mean / (size + 1))


def msm_plan(
    form: Form,
    n: int,
    speed: Speed = MEASURED_ON,
    *,
    windows: int | None = None,
    windows_a_pass: int | None = None,
) -> GpuPlan:
    """The plan of least time on such a card; all windows in one pass unless told otherwise."""
    windows = windows or best_windows(form, n, speed)
    shape, small_shape = DEFAULT_SHAPES[form.degree]
    return GpuPlan(
        n=n,
        windows=windows,
        windows_a_pass=windows_a_pass or windows,
        shape=shape,
        small_shape=small_shape,
        small_below=1 << 17,
        tail_threads=64,
        bin_bits=bin_bits(n, windows),
    )


@lru_cache(maxsize=64)
def best_windows(form: Form, n: int, speed: Speed) -> int:
    """As many as take the least time, all at once; of those that take the same, the fewest buckets."""
    plans = [msm_plan(form, n, speed, windows=windows) for windows in _EVERY_NUMBER]
    best = min(msm_cost(form, plan, speed).total_ms for plan in plans)
    return next(plan.windows for plan in plans if msm_cost(form, plan, speed).total_ms <= _TOLERANCE * best)


def msm_plan_within(form: Form, n: int, speed: Speed, most_bytes: int) -> GpuPlan | None:
    """The plan of least time whose working memory is at most that much; None where there is none."""
    whole = msm_plan(form, n, speed)
    if has_codes(whole) and _bytes(form, whole, speed) <= most_bytes:
        return whole
    timed = [(msm_cost(form, plan, speed).total_ms, plan) for plan in _all_plans(form, n, speed)]

    def first(of: list[tuple[float, GpuPlan]]) -> tuple[float, GpuPlan] | None:
        return next((one for one in of if _bytes(form, one[1], speed) <= most_bytes), None)

    best = first(sorted(timed, key=lambda one: one[0]))
    if best is None:
        return None
    alike = first([one for one in timed if one[0] <= _TOLERANCE * best[0]])
    return alike[1] if alike else best[1]


def least_msm_plan(form: Form, n: int, speed: Speed) -> GpuPlan:
    """The plan of least working memory."""
    plans = [plan for plan in _all_plans(form, n, speed) if plan.windows_a_pass == 1]
    return min(plans, key=lambda plan: _bytes(form, plan, speed))


def _bytes(form: Form, plan: GpuPlan, speed: Speed) -> int:
    return msm_layout(form, plan, speed.multiprocessors).nbytes


def _all_plans(form: Form, n: int, speed: Speed) -> Iterator[GpuPlan]:
    """In any number of passes, by growing buckets from where these take hardly any memory."""
    most = min(2 * best_windows(form, n, speed), MOST_WINDOWS)
    for windows in range(most, LEAST_WINDOWS - 1, -1):
        for windows_a_pass in dict.fromkeys(-(-windows // passes) for passes in range(1, windows + 1)):
            plan = msm_plan(form, n, speed, windows=windows, windows_a_pass=windows_a_pass)
            if has_codes(plan):
                yield plan
