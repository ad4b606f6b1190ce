"""Poseidon of many preimages in compiled code, by the optimised permutation of `poseidon`.

One kernel serves every arity and every form: tables are arguments, and the state lies in memory, `lanes`
hashes side by side. A hash of arity 8 costs 2,000 products: 12 us with eight lanes (AVX-512 IFMA), 41 us
with one.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from cuzk.kernels.field import FR, broadcast, canonical, from_mont, load, sqr, store, to_mont, zero
from cuzk.kernels.field_type import FieldForm
from cuzk.kernels.fr_vector import mont_rows
from cuzk.kernels.jit import jit
from cuzk.kernels.poseidon import HALF_FULL_ROUNDS, constants

if TYPE_CHECKING:
    from cuzk.kernels.device.cpu import CpuDevice

U64 = NDArray[np.uint64]

HASHES_A_CHUNK = 128
"""What a thread takes at a time: a multiple of the lanes, a millisecond or ten of work."""


class Tables(NamedTuple):
    """One arity's constants, each (n, 4) uint64 in Montgomery form; t values make a row of a matrix.

    keys     t initial keys, then for each linear layer what is added before it (t zeros before the last one),
             partial rounds' single keys in between
    mds, pre_sparse                (t * t)
    sparse_w, sparse_v             (Rp * t) and (Rp * (t - 1))
    domain_tag                     (1)
    """

    keys: U64
    mds: U64
    pre_sparse: U64
    sparse_w: U64
    sparse_v: U64
    domain_tag: U64


def hash_many(device: CpuDevice, preimages: U64, *, domain_tag: int | None = None) -> U64:
    """Digests of preimages of one arity (2, 4, 8 or 11): (n, arity, 4) to (n, 4), uint64, canonical Fr.

    Without a domain tag: that of Merkle trees.
    """
    count, arity, _ = preimages.shape
    form, lanes = device.fr, device.lanes
    tables = _tables(arity, form, domain_tag)
    padded = -(-count // lanes) * lanes
    columns = np.zeros((arity, padded, 4), dtype=np.uint64)
    columns[:, :count] = preimages.transpose(1, 0, 2)
    digests = np.empty((padded, 4), dtype=np.uint64)

    def hash_chunk(first: int) -> None:
        last = min(first + HASHES_A_CHUNK, padded)
        state, mixed = np.empty((2, (arity + 1) * lanes, 4), dtype=np.uint64)
        _hash_rows(form, lanes, tables, columns.reshape(-1, 4), first, last, state, mixed, digests)

    device.map(hash_chunk, range(0, padded, HASHES_A_CHUNK))
    return digests[:count]


@cache
def _tables(arity: int, form: FieldForm, domain_tag: int | None) -> Tables:
    table = constants(arity)

    def mont(values: Iterable[int]) -> U64:
        return mont_rows(form, values)

    return Tables(
        keys=mont((*table.compressed, *[0] * table.width)),
        mds=mont(chain(*table.mds)),
        pre_sparse=mont(chain(*table.pre_sparse)),
        sparse_w=mont(chain(*(w for w, _ in table.sparse))),
        sparse_v=mont(chain(*(v for _, v in table.sparse))),
        domain_tag=mont([table.domain_tag if domain_tag is None else domain_tag]),
    )


def _constant(form: Any, table: Any, row: Any) -> Any:
    """One element of a table in every lane."""
    raise NotImplementedError("called from compiled code only")


@overload(_constant)
def _overload_constant(form, table, row):
    if form.form.lanes == 1:
        return lambda form, table, row: load(form, table, row)
    return lambda form, table, row: broadcast(form, load(FR, table, row))


@jit
def _power_five(x):
    return sqr(sqr(x)) * x


@jit
def _hash_rows(form, lanes, tables, columns, first, last, state, mixed, digests):
    """digests[first:last] of the preimages whose element k is columns[k * len(digests) + row].

    state, mixed: (t * lanes, 4) scratch; both change, and which one holds the state alternates.
    """
    width = len(state) // lanes
    partial_rounds = len(tables.sparse_w) // width
    for row in range(first, last, lanes):
        start = _constant(form, tables.domain_tag, 0) + _constant(form, tables.keys, 0)
        store(form, state, 0, canonical(start))
        for j in range(1, width):
            element = to_mont(form, load(form, columns, (j - 1) * len(digests) + row))
            store(form, state, j * lanes, canonical(element + _constant(form, tables.keys, j)))
        key = width
        for _ in range(HALF_FULL_ROUNDS - 1):
            key = _full_round(form, lanes, tables.keys, key, tables.mds, state, mixed)
            state, mixed = mixed, state
        key = _full_round(form, lanes, tables.keys, key, tables.pre_sparse, state, mixed)
        state, mixed = mixed, state
        for i in range(partial_rounds):
            _partial_round(form, lanes, tables, key + i, i, state)
        key += partial_rounds
        for _ in range(HALF_FULL_ROUNDS):
            key = _full_round(form, lanes, tables.keys, key, tables.mds, state, mixed)
            state, mixed = mixed, state
        store(form, digests, row, from_mont(form, load(form, state, lanes)))


@jit
def _full_round(form, lanes, keys, key, matrix, state, mixed):
    """S-boxes in `state`, keys from `key` on, times the matrix into `mixed`. Returns the next key's place."""
    width = len(state) // lanes
    for j in range(width):
        element = _power_five(load(form, state, j * lanes))
        store(form, state, j * lanes, canonical(element + _constant(form, keys, key + j)))
    for j in range(width):
        total = zero(form)
        for i in range(width):
            product = load(form, state, i * lanes) * _constant(form, matrix, i * width + j)
            total = canonical(total + product)
        store(form, mixed, j * lanes, total)
    return key + width


@jit
def _partial_round(form, lanes, tables, key, i, state):
    """S-box of element 0, its key, times SPARSE_i, in place."""
    width = len(state) // lanes
    w, v = i * width, i * (width - 1)
    first = canonical(_power_five(load(form, state, 0)) + _constant(form, tables.keys, key))
    total = canonical(first * _constant(form, tables.sparse_w, w))
    for j in range(1, width):
        element = load(form, state, j * lanes)
        total = canonical(total + element * _constant(form, tables.sparse_w, w + j))
        changed = element + first * _constant(form, tables.sparse_v, v + j - 1)
        store(form, state, j * lanes, canonical(changed))
    store(form, state, 0, total)
