"""Multi-scalar multiplications and sums of selected points: `python -m bench.msm`.

Points are random multiples of the generator, so that every result is checked against one multiple. Bad inputs
have rows too: what is slow about them is doublings, and that a single bucket leaves other threads idle.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import peers
from bench.field import PRODUCTS_AN_ADDITION, product_seconds
from bench.peers import Peer
from bench.runner import Case, label, main
from cuzk.kernels.device.cpu import CpuDevice, aligned_empty
from cuzk.kernels.fixed_base import FixedBase
from cuzk.kernels.modulus import FR
from cuzk.kernels.msm import WindowPlan, msm, plan
from cuzk.kernels.msm import scratch_rows as msm_scratch_rows
from cuzk.kernels.points import decode_points, encoded_bytes, padded
from cuzk.kernels.selected_sum import scratch_rows as selected_scratch_rows
from cuzk.kernels.selected_sum import selected_sum
from cuzk.kernels.xyzz import curve_of

Words = NDArray[np.uint64]
SELECTED_SHARE = 0.62  # as in a PoRep proof
_BLOCK = 1 << 17
_LIMIT_OF = "of a sum, the products of its affine additions alone at their rate in this run, on all threads"


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--g1-log2", type=int, nargs="*", default=[12, 14, 16, 18, 20, 22], metavar="K")
    parser.add_argument("--g2-log2", type=int, nargs="*", default=[12, 14, 16], metavar="K")
    parser.add_argument("--selected-log2", type=int, nargs="*", default=[20, 21], metavar="K")
    parser.add_argument("--bad-log2", type=int, nargs="*", default=[16], metavar="K")
    parser.add_argument(
        "--windows", type=int, nargs="+", metavar="C", help="bits a window, instead of the best"
    )
    parser.add_argument("--lanes", type=int, choices=[1, 8], help="default: 8 with AVX-512 IFMA, else 1")
    parser.add_argument("--threads", type=int, help="default: all CPUs")


def cases(chosen: argparse.Namespace) -> Iterator[Case]:
    device = CpuDevice(threads=chosen.threads, lanes=chosen.lanes)
    for c in chosen.windows or [None]:
        for log2_n in chosen.g1_log2:
            yield msm_case("G1 random", device, device.g1, log2_n, random_scalars, peer=peers.MSM_G1, c=c)
        for log2_n in chosen.g2_log2:
            yield msm_case("G2 random", device, device.g2, log2_n, random_scalars, peer=peers.MSM_G2, c=c)
    for log2_n in chosen.selected_log2:
        yield selected_case(f"G1 {SELECTED_SHARE:.0%} selected", device, device.g1, log2_n, SELECTED_SHARE)
        yield selected_case("G1 all selected", device, device.g1, log2_n, 1.0, peer=peers.SELECTED_SUM)
    for log2_n in chosen.bad_log2:
        yield msm_case("G1 all ones", device, device.g1, log2_n, all_ones)
        yield msm_case("G1 three distinct scalars", device, device.g1, log2_n, three_distinct)
        yield msm_case("G1 one repeated point", device, device.g1, log2_n, random_scalars, repeated=True)


def random_scalars(n: int) -> Words:
    """Below r, uniform but for the highest word."""
    words = np.random.default_rng(n).integers(0, 2**64, (n, 4), np.uint64)
    words[:, 3] %= np.uint64(FR.p >> 192)
    return words


def all_ones(n: int) -> Words:
    words = np.zeros((n, 4), np.uint64)
    words[:, 0] = 1
    return words


def three_distinct(n: int) -> Words:
    return random_scalars(3)[np.arange(n) % 3]


@lru_cache(maxsize=2)
def points(device: CpuDevice, form: Any, n: int) -> tuple[Words, Any]:
    """Logarithms below 2^31, and the rows of those multiples of the generator with room for any sum."""
    spare = max(
        selected_scratch_rows(device, form, n),
        *(msm_scratch_rows(device, form, n, c=c) for c in range(2, 17)),
    )
    rows = aligned_empty(padded(n) + spare, 2 * form.words)
    logarithms = np.zeros((n, 4), np.uint64)
    logarithms[:, 0] = np.random.default_rng(1).integers(1, 1 << 31, n, np.uint64)
    multiples = FixedBase(device, form, n)
    for start in range(0, n, _BLOCK):
        block = slice(start, min(start + _BLOCK, n))
        encoded = np.empty((block.stop - start, encoded_bytes(form)), np.uint8)
        multiples.encode(logarithms[block], encoded)
        assert decode_points(device, form, encoded, rows[start : start + padded(len(encoded))]) is None
    return logarithms[:, 0], rows


def dot(logarithms: Words, scalars: Words) -> int:
    """Sum of logarithm * scalar: 31 by 32 bits at a time, in 64; halves of the products are summed apart."""
    total = 0
    for j in range(8):
        limb = scalars[:, j // 2] >> np.uint64(32 * (j % 2)) & np.uint64(2**32 - 1)
        product = limb * logarithms
        low, high = product & np.uint64(2**32 - 1), product >> np.uint64(32)
        total += (int(low.sum()) + (int(high.sum()) << 32)) << (32 * j)
    return total


def msm_case(
    name: str,
    device: CpuDevice,
    form: Any,
    log2_n: int,
    scalars_of: Callable[[int], Words],
    *,
    repeated: bool = False,
    peer: Peer | None = None,
    c: int | None = None,
) -> Case:
    n = 1 << log2_n
    logarithms, rows = points(device, form, n)
    if repeated:
        logarithms, distinct = np.full(n, logarithms[0]), rows
        rows = aligned_empty(*distinct.shape)
        rows[:n] = distinct[0]
    scalars, curve = scalars_of(n), curve_of(form)
    return Case(
        name=f"{name}, c = {c}" if c else name,
        device=label(device),
        n=n,
        prepare=lambda: None,
        run=lambda _: msm(device, form, rows, scalars, c=c),
        check=lambda point: point == curve.multiply(dot(logarithms, scalars) % FR.p, curve.generator),
        items=n,
        unit="points",
        limit=points_a_second(device, form, plan(device, n, c)) if scalars_of is random_scalars else None,
        limit_of=_LIMIT_OF,
        peer=measured(peer, n),
    )


def measured(peer: Peer | None, n: int) -> Peer | None:
    return peer if peer and peer.time(n) else None


def points_a_second(device: CpuDevice, form: Any, p: WindowPlan) -> float:
    additions = p.windows * (p.n + 2 * p.buckets * p.parts)
    return p.n / additions * additions_a_second(device, form)


def additions_a_second(device: CpuDevice, form: Any) -> float:
    return device.threads / (PRODUCTS_AN_ADDITION[form.degree] * product_seconds(device.g1))


def selected_case(
    name: str, device: CpuDevice, form: Any, log2_n: int, share: float, *, peer: Peer | None = None
) -> Case:
    n = 1 << log2_n
    logarithms, rows = points(device, form, n)
    bits = (np.random.default_rng(2).random(n) < share).astype(np.uint8)
    expected = int(logarithms[bits != 0].sum())
    curve = curve_of(form)
    return Case(
        name=name,
        device=label(device),
        n=n,
        prepare=lambda: None,
        run=lambda _: selected_sum(device, form, rows, bits),
        check=lambda point: point == curve.multiply(expected, curve.generator),
        items=int(bits.sum()),
        unit="points",
        limit=additions_a_second(device, form),
        limit_of=_LIMIT_OF,
        peer=measured(peer, n),
    )


if __name__ == "__main__":
    main("Multi-scalar multiplications and sums of selected points on the CPU", cases, options, runs=7)
