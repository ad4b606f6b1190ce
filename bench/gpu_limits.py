"""What a GPU's multipliers allow: products, counted in programs and schedules, at the card's highest clock.

A product of which both halves are made is one instruction, at half the rate of any other; one of which only
the lower half is made takes half of that. All else runs beside them, so that products are the limit.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from cuzk.kernels.butterfly import transform_of
from cuzk.kernels.codegen import factor32, radix32
from cuzk.kernels.codegen.asm import Program
from cuzk.kernels.gpu.ntt_schedule import EIGHT, PassShape, Schedule, first_radix_log2, step_tables_log2
from cuzk.kernels.modulus import FQ, FR
from cuzk.kernels.ntt import Transform

WIDE_PRODUCTS_A_CLOCK = 32  # of one multiprocessor, measured on capability 9.0; other instructions twice that


def wide_products(program: Program) -> float:
    """Those of which only the lower half is made count half."""
    return program.wide_products + program.low_products / 2


def multiplier_rate(multiprocessors: int, clock_mhz: int) -> float:
    """Wide products a second."""
    return multiprocessors * clock_mhz * 1e6 * WIDE_PRODUCTS_A_CLOCK


def _cost(emit: Callable[..., Any], modulus: Any, elements: int) -> float:
    return wide_products(radix32.build(emit, modulus, elements))


@cache
def addition_products(degree: int) -> float:
    """Of a batched affine addition: five products and a square, in Fq2 of three and of two products."""
    product, square = _cost(radix32.mul_mont, FQ, 2), _cost(radix32.sqr_mont, FQ, 1)
    return 5 * product + square if degree == 1 else (5 * 3 + 2) * product


def mixed_addition_products() -> float:
    """Of an affine point to a sum in XYZZ coordinates, in G1: eight products and two squares."""
    return 8 * _cost(radix32.mul_mont, FQ, 2) + 2 * _cost(radix32.sqr_mont, FQ, 1)


class _Counter:
    """`butterfly.Arithmetic` that adds up what products by constants cost."""

    def __init__(self) -> None:
        self.products = 0.0

    def sum(self, a: None, b: None, loose: bool = False) -> None: ...

    def difference(self, a: None, b: None, loose: bool = False) -> None: ...

    def times(self, a: None, constant: int) -> None:
        self.products += _constant_cost(constant)


@cache
def _constant_cost(constant: int) -> float:
    return _cost(lambda asm, x, modulus: factor32.mul_constant(asm, x, constant, modulus), FR, 1)


def _eight_products(radix_log2: int, inverse: bool) -> float:
    counter, size = _Counter(), 1 << radix_log2
    for _ in range(EIGHT // size):
        transform_of(counter, [None] * size, inverse)
    return counter.products


def pass_products(shape: PassShape) -> float:
    """Of a pass, for one value: see `ntt_kernels`."""
    radix, further = first_radix_log2(shape.bits), len(step_tables_log2(shape.bits))
    by_table = EIGHT - (EIGHT >> radix) + (EIGHT - 1) * (further - 1)
    if shape.inverse and not shape.strided and shape.tables and not shape.scaled:
        by_table += EIGHT - 1
    else:
        by_table += EIGHT * shape.tables
    total = by_table * _cost(radix32.mul_shoup, FR, 3)
    total += _eight_products(radix, shape.inverse) + further * _eight_products(3, shape.inverse)
    total += EIGHT * _cost(radix32.mul_mont, FR, 2) if shape.times else 0
    return total / EIGHT


def transform_products(kind: Transform) -> float:
    """Of a transform on the schedule of its size."""
    return kind.n * sum(pass_products(work.shape) for work in Schedule(kind.log2_n).works(kind))
