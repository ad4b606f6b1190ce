"""The Poseidon hash as rows: S-boxes are rows, linear layers stay symbolic until an S-box reads them.

The optimised permutation of `kernels.poseidon`: keys come after the S-box, partial rounds are sparse. A
template serves one arity and one domain tag. Source: neptune, circuit.rs (not circuit2.rs): the input of
every S-box beyond the first round is allocated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from cuzk.circuit.builder import CircuitBuilder
from cuzk.circuit.r1cs import LC, ONE, Template, Tracer, Witness
from cuzk.kernels.circuit.witness import POSEIDON
from cuzk.kernels.modulus import FR
from cuzk.kernels.poseidon import HALF_FULL_ROUNDS, PoseidonConstants, constants


def poseidon(builder: CircuitBuilder, preimage: Sequence[int], *, domain_tag: int | None = None) -> int:
    """The variable of the hash of 2, 4, 8 or 11 variables. Without a tag: that of Merkle trees."""
    template = poseidon_template(len(preimage), domain_tag)
    with builder.section(template.name):
        (digest,) = builder.instance(template, numbers=preimage).tolist()
    return int(digest)


@lru_cache(maxsize=32)
def poseidon_template(arity: int, domain_tag: int | None = None) -> Template:
    table = constants(arity)
    tag = table.domain_tag if domain_tag is None else domain_tag
    tracer = Tracer(numbers=arity)
    digest = PoseidonTracer(tracer, table).permute(tag)
    return tracer.template(
        f"Poseidon {arity}",
        Witness(
            POSEIDON, np.array([arity, table.partial_rounds], dtype=np.uint32), kernel_numbers(table, tag)
        ),
        outputs=[digest],
    )


def kernel_numbers(table: PoseidonConstants, tag: int) -> tuple[int, ...]:
    """What the witness kernel reads: tag, keys, M, PRE, then (W, V) of each partial round."""
    matrices = [value for matrix in (table.mds, table.pre_sparse) for row in matrix for value in row]
    sparse = [value for w, v in table.sparse for value in (*w, *v)]
    return (tag, *table.compressed, *matrices, *sparse)


class PoseidonTracer:
    """Records one permutation. The state is a list of linear combinations, element 0 first."""

    def __init__(self, tracer: Tracer, table: PoseidonConstants) -> None:
        self._tracer = tracer
        self._table = table
        self._keys: Iterator[int] = iter(table.compressed)

    def permute(self, tag: int) -> int:
        """The slot of the digest."""
        table = self._table
        state = self._first_round(tag)
        for number in range(1, HALF_FULL_ROUNDS):
            matrix = table.pre_sparse if number == HALF_FULL_ROUNDS - 1 else table.mds
            state = times(self._full_round(number, state), matrix)
        for number, (w, v) in enumerate(table.sparse, start=HALF_FULL_ROUNDS):
            self._tracer.label(f"round {number}")
            state[0] = self._sbox(state[0], next(self._keys))
            state = times_sparse(state, w, v)
        after = HALF_FULL_ROUNDS + table.partial_rounds
        for number in range(after, after + HALF_FULL_ROUNDS):
            state = times(self._full_round(number, state), table.mds)
        self._tracer.label("digest")
        return self._reduce(state[1])

    def _first_round(self, tag: int) -> list[LC]:
        """The round whose elements are known: the tag costs nothing, the preimage no allocation."""
        self._tracer.label("round 0")
        width = self._table.width
        before = [next(self._keys) for _ in range(width)]
        after = [next(self._keys) for _ in range(width)]
        state: list[LC] = [{ONE: (pow(tag + before[0], 5, FR.p) + after[0]) % FR.p}]
        for slot, key, post_key in zip(self._tracer.numbers, before[1:], after[1:], strict=True):
            shifted = {slot: 1, ONE: key}
            square, fourth, fifth = (self._tracer.alloc() for _ in range(3))
            self._tracer.enforce(shifted, shifted, {square: 1})
            self._tracer.enforce({square: 1}, {square: 1}, {fourth: 1})
            self._tracer.enforce(shifted, {fourth: 1}, {fifth: 1, ONE: -post_key})
            state.append({fifth: 1})
        return times(state, self._table.mds)

    def _full_round(self, number: int, state: list[LC]) -> list[LC]:
        self._tracer.label(f"round {number}")
        return [self._sbox(element, next(self._keys, 0)) for element in state]

    def _sbox(self, element: LC, key: int) -> LC:
        """element^5 + key; a key of 0 means none: the last round has none, and no constant is 0."""
        x = self._reduce(element)
        square, fourth, fifth = (self._tracer.alloc() for _ in range(3))
        self._tracer.enforce({x: 1}, {x: 1}, {square: 1})
        self._tracer.enforce({square: 1}, {square: 1}, {fourth: 1})
        self._tracer.enforce({x: 1}, {fourth: 1}, {fifth: 1, ONE: -key} if key else {fifth: 1})
        return {fifth: 1}

    def _reduce(self, element: LC) -> int:
        """A new variable with the value of a linear combination."""
        slot = self._tracer.alloc()
        self._tracer.enforce(element, {ONE: 1}, {slot: 1})
        return slot


def add_multiple(lc: LC, element: LC, factor: int) -> None:
    """Add factor * element to `lc`, in place."""
    for slot, value in element.items():
        lc[slot] = (lc.get(slot, 0) + factor * value) % FR.p


def times(state: Sequence[LC], matrix: Sequence[Sequence[int]]) -> list[LC]:
    """The row vector `state` times the matrix."""
    out: list[LC] = [{} for _ in state]
    for element, row in zip(state, matrix, strict=True):
        for lc, factor in zip(out, row, strict=True):
            add_multiple(lc, element, factor)
    return out


def times_sparse(state: Sequence[LC], w: Sequence[int], v: Sequence[int]) -> list[LC]:
    """new_0 = sum of w[i] * state[i]; new_j = state[j] + v[j - 1] * state[0]."""
    first: LC = {}
    for element, factor in zip(state, w, strict=True):
        add_multiple(first, element, factor)
    out = [first]
    for element, factor in zip(state[1:], v, strict=True):
        lc = dict(element)
        add_multiple(lc, state[0], factor)
        out.append(lc)
    return out
