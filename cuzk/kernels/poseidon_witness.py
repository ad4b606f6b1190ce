"""Witness of a Poseidon hash: every S-box input x, x^2, x^4 and x^5 + key, and the digest.

Tables (Montgomery form): the domain tag, the keys in the order of use, M and PRE by rows, then for each
partial round W and V. Variables come in the order of the circuit: three an element in the first round,
where x is the preimage itself, then four for each S-box, then the digest.
"""

from __future__ import annotations

import numpy as np

from cuzk.kernels.field import FR, from_mont, load, store, to_mont
from cuzk.kernels.jit import jit
from cuzk.kernels.poseidon import HALF_FULL_ROUNDS


@jit
def fill_sbox(state, element, tables, key, values, at):
    """x -> x^5 + key in place, and its four variables; a negative `key` means none. The place after them."""
    x = load(FR, state, element)
    square = x * x
    fourth = square * square
    fifth = x * fourth
    if key >= 0:
        fifth = fifth + load(FR, tables, key)
    store(FR, values, at, from_mont(FR, x))
    store(FR, values, at + 1, from_mont(FR, square))
    store(FR, values, at + 2, from_mont(FR, fourth))
    store(FR, values, at + 3, from_mont(FR, fifth))
    store(FR, state, element, fifth)
    return at + 4


@jit
def times_matrix(state, tables, start, scratch):
    """state = state * matrix, whose rows begin at `start`."""
    width = len(state)
    for j in range(width):
        total = load(FR, state, 0) * load(FR, tables, start + j)
        for i in range(1, width):
            total = total + load(FR, state, i) * load(FR, tables, start + i * width + j)
        store(FR, scratch, j, total)
    for j in range(width):
        store(FR, state, j, load(FR, scratch, j))


@jit
def times_sparse(state, tables, start):
    """state = state * sparse matrix: W at `start`, V behind it."""
    width = len(state)
    head = load(FR, state, 0)
    total = head * load(FR, tables, start)
    for i in range(1, width):
        element = load(FR, state, i)
        total = total + element * load(FR, tables, start + i)
        store(FR, state, i, element + head * load(FR, tables, start + width + i - 1))
    store(FR, state, 0, total)


@jit
def first_round(state, tables, places, values, at):
    """The first round up to its S-boxes, which reads the preimage from `values` at `places`."""
    width = len(state)
    tag = load(FR, tables, 0) + load(FR, tables, 1)
    square = tag * tag
    store(FR, state, 0, tag * (square * square) + load(FR, tables, 1 + width))
    for i in range(1, width):
        x = to_mont(FR, load(FR, values, places[i - 1])) + load(FR, tables, 1 + i)
        square = x * x
        fourth = square * square
        fifth = x * fourth + load(FR, tables, 1 + width + i)
        store(FR, values, at, from_mont(FR, square))
        store(FR, values, at + 1, from_mont(FR, fourth))
        store(FR, values, at + 2, from_mont(FR, fifth))
        store(FR, state, i, fifth)
        at += 3
    return at


@jit
def fill_poseidon(arity, partial_rounds, tables, places, values, at):
    """Fills the variables of one hash, values[at:], from the preimage at `places`."""
    width = arity + 1
    state = np.empty((width, 4), dtype=np.uint64)
    scratch = np.empty((width, 4), dtype=np.uint64)
    key = 1 + 2 * width
    mds = 1 + 8 * width + partial_rounds
    pre_sparse = mds + width * width
    sparse = pre_sparse + width * width
    at = first_round(state, tables, places, values, at)
    times_matrix(state, tables, mds, scratch)
    for number in range(1, 2 * HALF_FULL_ROUNDS):
        if number == HALF_FULL_ROUNDS:
            for _ in range(partial_rounds):
                at = fill_sbox(state, 0, tables, key, values, at)
                key += 1
                times_sparse(state, tables, sparse)
                sparse += 2 * width - 1
        for i in range(width):
            has_key = number < 2 * HALF_FULL_ROUNDS - 1
            at = fill_sbox(state, i, tables, key if has_key else -1, values, at)
            key += 1
        times_matrix(state, tables, pre_sparse if number == HALF_FULL_ROUNDS - 1 else mds, scratch)
    store(FR, values, at, from_mont(FR, load(FR, state, 1)))
