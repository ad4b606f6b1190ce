"""Witness of a Poseidon hash: every S-box input x, x^2, x^4 and x^5 + key, and the digest.

Tables (Montgomery form): the domain tag, the keys in the order of use, M and PRE by rows, then for each
partial round W and V. Variables come in the order of the circuit: three an element in the first round,
where x is the preimage itself, then four for each S-box, then the digest. A member of a team has an element
of the state, or several; elements meet in memory, two rows of scratch each.
"""

from __future__ import annotations

from cuzk.kernels.circuit.team import meet, member, members
from cuzk.kernels.field import from_mont, load, store, to_mont
from cuzk.kernels.jit import jit
from cuzk.kernels.poseidon import HALF_FULL_ROUNDS


@jit
def fill_sbox(form, state, element, tables, key, values, at):
    """x -> x^5 + key in place, and its four variables; a negative `key` means none."""
    x = load(form, state, element)
    square = x * x
    fourth = square * square
    fifth = x * fourth
    if key >= 0:
        fifth = fifth + load(form, tables, key)
    store(form, values, at, from_mont(form, x))
    store(form, values, at + 1, from_mont(form, square))
    store(form, values, at + 2, from_mont(form, fourth))
    store(form, values, at + 3, from_mont(form, fifth))
    store(form, state, element, fifth)


@jit
def times_matrix(form, state, width, tables, start, product):
    """product = state * matrix, whose rows begin at `start`; then the team has met."""
    for j in range(member(), width, members()):
        total = load(form, state, 0) * load(form, tables, start + j)
        for i in range(1, width):
            total = total + load(form, state, i) * load(form, tables, start + i * width + j)
        store(form, product, j, total)
    meet()


@jit
def times_sparse(form, state, width, tables, start, terms):
    """state = state * sparse matrix, W at `start`, V behind it; element 0 is then that of member 0 alone."""
    head = load(form, state, 0)
    for i in range(member(), width, members()):
        element = load(form, state, i)
        store(form, terms, i, element * load(form, tables, start + i))
        if i:
            store(form, state, i, element + head * load(form, tables, start + width + i - 1))
    meet()
    if member() == 0:
        total = load(form, terms, 0)
        for i in range(1, width):
            total = total + load(form, terms, i)
        store(form, state, 0, total)


@jit
def first_round(form, state, width, tables, first, places, start, values, at):
    """The first round up to its S-boxes, which reads the preimage from `values` at `places`."""
    for i in range(member(), width, members()):
        x = to_mont(form, load(form, values, places[start + i - 1])) if i else load(form, tables, first)
        x = x + load(form, tables, first + 1 + i)
        square = x * x
        fourth = square * square
        fifth = x * fourth + load(form, tables, first + 1 + width + i)
        store(form, state, i, fifth)
        if i:
            row = at + 3 * (i - 1)
            store(form, values, row, from_mont(form, square))
            store(form, values, row + 1, from_mont(form, fourth))
            store(form, values, row + 2, from_mont(form, fifth))
    meet()


@jit
def fill_poseidon(form, arity, partial_rounds, tables, first, places, start, values, at, state, product):
    """Fills the variables of one hash, values[at:], from the preimage at places[start:].

    first           where its tables begin
    state, product  a row for each element, for the team
    """
    width = arity + 1
    key = first + 1 + 2 * width
    mds = first + 1 + 8 * width + partial_rounds
    pre_sparse = mds + width * width
    sparse = pre_sparse + width * width
    first_round(form, state, width, tables, first, places, start, values, at)
    at += 3 * arity
    times_matrix(form, state, width, tables, mds, product)
    state, product = product, state
    for number in range(1, 2 * HALF_FULL_ROUNDS):
        if number == HALF_FULL_ROUNDS:
            for _ in range(partial_rounds):
                if member() == 0:
                    fill_sbox(form, state, 0, tables, key, values, at)
                meet()
                times_sparse(form, state, width, tables, sparse, product)
                at += 4
                key += 1
                sparse += 2 * width - 1
        has_key = number < 2 * HALF_FULL_ROUNDS - 1
        for i in range(member(), width, members()):
            fill_sbox(form, state, i, tables, key + i if has_key else -1, values, at + 4 * i)
        meet()
        at += 4 * width
        key += width
        matrix = pre_sparse if number == HALF_FULL_ROUNDS - 1 else mds
        times_matrix(form, state, width, tables, matrix, product)
        state, product = product, state
    if member() == 0:
        store(form, values, at, from_mont(form, load(form, state, 1)))
