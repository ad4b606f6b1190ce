"""Insertion of a running node among its siblings at a position given by bits, and selection, as rows.

pick(s; x; y) is "x if s else y": one variable and one row. Fixed sequences of picks, not a generic
multiplexer. Sources: storage-proofs-core, gadgets/insertion.rs; storage-proofs-update, gadgets.rs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from cuzk.circuit.builder import Bits, CircuitBuilder
from cuzk.circuit.r1cs import ONE, Template, Tracer, Witness
from cuzk.kernels.circuit.steps import AND, NOR, PICK
from cuzk.kernels.circuit.witness import STEPS


def insert(builder: CircuitBuilder, node: int, siblings: Sequence[int], position: Bits) -> list[int]:
    """The variables of all children: `node` at `position` (bits, lowest first), the siblings around it."""
    template = insertion_template(len(siblings) + 1)
    with builder.section("insertion"):
        children = builder.instance(template, bits=position, numbers=[node, *siblings])
    return [int(child) for child in children]


def select(builder: CircuitBuilder, candidates: Sequence[int], position: Bits) -> int:
    """A new variable with the value of the candidate at `position` (bits, lowest first)."""
    assert len(candidates) == 1 << len(position), (len(candidates), len(position))
    with builder.section("selection"):
        (chosen,) = builder.instance(select_template(len(position)), bits=position, numbers=candidates)
    return int(chosen)


class StepTracer:
    """Records steps, one new variable each, and the table from which the witness kernel repeats them."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self.steps: list[int] = []

    def pick(self, s: int, x: int, y: int) -> int:
        out = self._tracer.alloc()
        self._tracer.enforce({y: 1, x: -1}, {s: 1}, {y: 1, out: -1})
        self.steps += [PICK, s, x, y]
        return out

    def nor(self, s: int, t: int) -> int:
        out = self._tracer.alloc_bit()
        self._tracer.enforce({ONE: 1, s: -1}, {ONE: 1, t: -1}, {out: 1})
        self.steps += [NOR, s, t, ONE]
        return out

    def both(self, s: int, t: int) -> int:
        out = self._tracer.alloc_bit()
        self._tracer.enforce({s: 1}, {t: 1}, {out: 1})
        self.steps += [AND, s, t, ONE]
        return out


@lru_cache(maxsize=8)
def insertion_template(arity: int) -> Template:
    tracer = Tracer(bits=arity.bit_length() - 1, numbers=arity)
    step = StepTracer(tracer)
    children = {2: insert_2, 4: insert_4, 8: insert_8}[arity](step, list(tracer.numbers), list(tracer.bits))
    return tracer.template(
        f"insertion {arity}", Witness(STEPS, np.array(step.steps, dtype=np.uint32)), outputs=children
    )


def insert_2(step: StepTracer, nodes: list[int], bits: list[int]) -> list[int]:
    a, b = nodes
    (s,) = bits
    return [step.pick(s, b, a), step.pick(s, a, b)]


def insert_4(step: StepTracer, nodes: list[int], bits: list[int]) -> list[int]:
    a, b, c, d = nodes
    s0, s1 = bits
    pick = step.pick
    return [
        pick(s1, b, pick(s0, b, a)),
        pick(s1, c, pick(s0, a, b)),
        pick(s1, pick(s0, d, a), c),
        pick(s1, pick(s0, a, d), d),
    ]


def insert_8(step: StepTracer, nodes: list[int], bits: list[int]) -> list[int]:
    a, b, c, d, e, f, g, h = nodes
    s0, s1, s2 = bits
    pick = step.pick
    nor, both = step.nor(s0, s1), step.both(s0, s1)
    return [
        pick(s2, b, pick(nor, a, b)),
        pick(s2, c, pick(s1, c, pick(s0, a, b))),
        pick(s2, d, pick(s1, pick(s0, d, a), c)),
        pick(s2, e, pick(both, a, d)),
        pick(s2, pick(nor, a, f), e),
        pick(s2, pick(s1, g, pick(s0, a, f)), f),
        pick(s2, pick(s1, pick(s0, h, a), g), g),
        pick(s2, pick(both, a, h), h),
    ]


@lru_cache(maxsize=8)
def select_template(bits: int) -> Template:
    tracer = Tracer(bits=bits, numbers=1 << bits)
    step, left = StepTracer(tracer), list(tracer.numbers)
    for bit in reversed(tracer.bits):
        half = len(left) // 2
        left = [step.pick(bit, high, low) for low, high in zip(left[:half], left[half:], strict=True)]
    return tracer.template(
        f"selection {1 << bits}", Witness(STEPS, np.array(step.steps, dtype=np.uint32)), outputs=left
    )
