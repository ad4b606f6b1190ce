"""Poseidon of many preimages, or along many paths, in compiled code: the optimised permutation of `poseidon`.

One kernel serves every arity and every form: constants are one table, and the state lies in scratch, `lanes`
hashes side by side. Sums of products, of which the linear layers consist, are reduced once. In partial rounds
only element 0 meets an S-box, so the others are brought up to date once a block of rounds. With s_j the
elements before the block and x_k the S-boxes' outputs, keys included, in its rounds k < i:

    s_0 after round i         sum over j > 0 of s_j W_i[j]  +  sum over k < i of x_k c_ik  +  x_i W_i[0]
                              c_ik = sum over j of W_i[j] V_k[j]
    s_j after all rounds      s_j + sum over k of x_k V_k[j]

Ranges  with eight lanes, in multiples of r: a sum of products leaves 2, an S-box with its key 1, a block 1.
        The longest sums: t of 1 in a full round, t - 1 of 2 and a block of 1 in a partial one.
Cost    a hash of arity 8 has 2,000 products: 4 us with eight lanes (AVX-512 IFMA), 39 us with one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cuzk.kernels.device.memory import aligned_empty
from cuzk.kernels.field import FR8, canonical, carried, from_mont, lanes_of, load, spill, sqr, store, to_mont
from cuzk.kernels.field_buffer import limb_table, load_same, sum_of_products, unspill_loose
from cuzk.kernels.field_type import FieldForm
from cuzk.kernels.jit import jit
from cuzk.kernels.poseidon import (
    HALF_FULL_ROUNDS,
    LARGEST_WIDTH,
    PARTIAL_ROUNDS,
    PoseidonConstants,
    constants,
)

if TYPE_CHECKING:
    from cuzk.kernels.device.cpu import CpuDevice

U64 = NDArray[np.uint64]
Levels = NDArray[np.int64]

BLOCK = 8
"""Partial rounds in a block: their sums get longer, and are fewer."""
assert FR8.product_limit >= 2 * (LARGEST_WIDTH - 1) + BLOCK and BLOCK < LARGEST_WIDTH

TASKS_A_THREAD = 4
LEAST_HASHES = 256
"""A thread's task at least, a millisecond: its start and its calls take Python's lock for a tenth of one, and
those who prove on a GPU meanwhile wait for that."""


def hash_many(device: CpuDevice, preimages: U64, *, domain_tag: int | None = None) -> U64:
    """Digests of preimages of one arity (2, 4, 8 or 11): (n, arity, 4) to (n, 4), uint64, canonical Fr.

    Without a domain tag: that of Merkle trees.
    """
    form, (count, arity, _) = device.fr, preimages.shape
    table, [level] = _tables(form, (arity,), domain_tag)
    given = _padded(preimages, device.lanes)
    digests = np.empty((len(given), 4), dtype=np.uint64)

    def hash_some(first: int, last: int) -> None:
        children, scratch = _scratch(form)
        _hash_rows(form, table, level, given, first, last, children, scratch, digests)

    _share(device, len(given), 1, hash_some)
    return digests[:count]


def path_roots(device: CpuDevice, leaves: U64, siblings: U64, indices: Levels, arities: Sequence[int]) -> U64:
    """(n, 4): what n paths in Merkle trees hash to, canonical.

    leaves    (n, 4); siblings (n, S, 4), level after level, in the order of the children
    indices   (n, levels): position among them of the node that the path comes from
    arities   of each level
    """
    form, count = device.fr, len(leaves)
    assert ((indices >= 0) & (indices < arities)).all(), "a position outside its level"
    table, levels = _tables(form, tuple(arities), None)
    leaves, siblings, indices = (_padded(part, device.lanes) for part in (leaves, siblings, indices))
    roots = np.empty((len(leaves), 4), dtype=np.uint64)

    def hash_some(first: int, last: int) -> None:
        children, scratch = _scratch(form)
        nodes = np.empty((form.lanes, 4), np.uint64)
        _hash_paths(
            form, table, levels, leaves, siblings, indices, first, last, children, nodes, scratch, roots
        )

    _share(device, len(roots), len(arities), hash_some)
    return roots[:count]


def _padded(rows: NDArray[Any], lanes: int) -> NDArray[Any]:
    """At least a row a lane, unless there is none; read-only: to the compiler that is a type of its own."""
    if 0 < len(rows) < lanes:
        rows = np.concatenate([rows, np.repeat(rows[:1], lanes - len(rows), axis=0)])
    view: NDArray[Any] = np.ascontiguousarray(rows).view()
    view.flags.writeable = False
    return view


def _scratch(form: FieldForm) -> tuple[U64, U64]:
    """Of one thread: children, and places for the state twice or with the outputs of S-boxes beside it."""
    children = np.empty(((LARGEST_WIDTH - 1) * form.lanes, 4), np.uint64)
    return children, aligned_empty(1, 2 * LARGEST_WIDTH * form.limbs * form.lanes)[0]


def _share(device: CpuDevice, count: int, hashes_each: int, work: Callable[[int, int], None]) -> None:
    """`work` on ranges that cover 0..count-1."""
    least = -(-LEAST_HASHES // hashes_each)
    size = max(least, -(-count // (device.threads * TASKS_A_THREAD)))
    size = -(-size // device.lanes) * device.lanes
    device.map(lambda first: work(first, min(first + size, count)), range(0, count, size))


@cache
def _tables(form: FieldForm, arities: tuple[int, ...], domain_tag: int | None) -> tuple[U64, Levels]:
    """Limb table of these arities' constants; and for each level its first row, t and Rp."""
    rows: list[int] = []
    starts: dict[int, int] = {}
    for arity in arities:
        if arity not in starts:
            starts[arity] = len(rows)
            rows += table_rows(constants(arity), domain_tag)
    levels = [(starts[arity], arity + 1, PARTIAL_ROUNDS[arity]) for arity in arities]
    return limb_table(form, rows), np.array(levels, np.int64)


def table_rows(table: PoseidonConstants, domain_tag: int | None) -> Iterator[int]:
    """One arity's constants in the order in which the kernel reads them.

    t initial keys, the first with the domain tag; t keys after the S-boxes of each full round, 0 after the
    last; the columns of M, then of PRE; for each block of partial rounds: for each round its key and the
    factors of s_1 .., x_0 .., x_i; then for each j > 0 the factors V_0[j] .. of x_0 ..
    """
    width, partial = table.width, table.partial_rounds
    before = HALF_FULL_ROUNDS * width
    tag = table.domain_tag if domain_tag is None else domain_tag
    yield table.compressed[0] + tag
    yield from table.compressed[1 : width + before]
    yield from table.compressed[width + before + partial :]
    yield from [0] * width
    for matrix in (table.mds, table.pre_sparse):
        for column in zip(*matrix, strict=True):
            yield from column
    keys = table.compressed[width + before : width + before + partial]
    rounds = list(zip(keys, table.sparse, strict=True))
    for block in (rounds[first : first + BLOCK] for first in range(0, partial, BLOCK)):
        for i, (key, (w, _)) in enumerate(block):
            yield key
            yield from w[1:]
            for _, (_, v) in block[:i]:
                yield sum(a * b for a, b in zip(w[1:], v, strict=True))
            yield w[0]
        for factors in zip(*(v for _, (_, v) in block), strict=True):
            yield from factors


@jit
def _hash_rows(form, table, level, preimages, first, last, children, scratch, digests):
    """digests[first:last] of preimages (n, arity, 4), of which there are as many as lanes or more."""
    lanes = lanes_of(form)
    for row in range(first, last, lanes):
        begin = min(row, len(preimages) - lanes)  # the last values overlap those before
        for lane in range(lanes):
            for k in range(level[1] - 1):
                children[k * lanes + lane] = preimages[begin + lane, k]
        store(form, digests, begin, _hash_children(form, table, level, children, scratch))


@jit
def _hash_paths(form, table, levels, leaves, siblings, indices, first, last, children, nodes, scratch, roots):
    """roots[first:last] of the paths, of which there are as many as lanes or more."""
    lanes = lanes_of(form)
    for path in range(first, last, lanes):
        begin = min(path, len(leaves) - lanes)
        nodes[:] = leaves[begin : begin + lanes]
        start = 0
        for number in range(len(levels)):
            arity = levels[number, 1] - 1
            for lane in range(lanes):
                own = indices[begin + lane, number]
                for k in range(arity):
                    if k == own:
                        children[k * lanes + lane] = nodes[lane]
                    else:
                        children[k * lanes + lane] = siblings[begin + lane, start + k - (k > own)]
            start += arity - 1
            store(form, nodes, 0, _hash_children(form, table, levels[number], children, scratch))
        roots[begin : begin + lanes] = nodes


@jit
def _hash_children(form, table, level, children, scratch):
    """Digests of the preimages whose element k is children[k * lanes:][:lanes]; plain, canonical."""
    lanes, (first, width, partial_rounds) = lanes_of(form), level
    spill(form, scratch, 0, canonical(load_same(form, table, first)))
    for j in range(1, width):
        element = to_mont(form, load(form, children, (j - 1) * lanes))
        spill(form, scratch, j, canonical(element + load_same(form, table, first + j)))
    keys = first + width
    mds = keys + 2 * HALF_FULL_ROUNDS * width
    pre_sparse = mds + width * width
    state, mixed = 0, width
    for number in range(HALF_FULL_ROUNDS):
        matrix = mds if number < HALF_FULL_ROUNDS - 1 else pre_sparse
        _full_round(form, table, keys, matrix, width, scratch, state, mixed, width)
        keys += width
        state, mixed = mixed, state
    _partial_rounds(form, table, pre_sparse + width * width, width, partial_rounds, scratch)
    for _ in range(HALF_FULL_ROUNDS - 1):
        _full_round(form, table, keys, mds, width, scratch, state, mixed, width)
        keys += width
        state, mixed = mixed, state
    _full_round(form, table, keys, mds, width, scratch, state, mixed, 2)
    return from_mont(form, unspill_loose(form, scratch, mixed + 1, 2))


@jit
def _keyed_power_five(form, table, key, scratch, place):
    """x^5 + key, below r."""
    x = carried(unspill_loose(form, scratch, place, 2))
    return canonical(sqr(sqr(x)) * x + load_same(form, table, key))


@jit
def _full_round(form, table, keys, matrix, width, scratch, state, mixed, wanted):
    """S-boxes with keys, in place at `state`; the first `wanted` elements times the matrix to `mixed`."""
    for j in range(width):
        spill(form, scratch, state + j, _keyed_power_five(form, table, keys + j, scratch, state + j))
    for j in range(wanted):
        total = sum_of_products(form, scratch, state, table, matrix + j * width, width)
        spill(form, scratch, mixed + j, total)


@jit
def _partial_rounds(form, table, row, width, rounds, scratch):
    """All of them, in place; the state is in the first `width` places, outputs of S-boxes go behind it."""
    for begin in range(0, rounds, BLOCK):
        size = min(BLOCK, rounds - begin)
        for i in range(size):
            spill(form, scratch, width + i, _keyed_power_five(form, table, row, scratch, 0))
            terms = width + i
            spill(form, scratch, 0, sum_of_products(form, scratch, 1, table, row + 1, terms))
            row += 1 + terms
        for j in range(1, width):
            change = sum_of_products(form, scratch, width, table, row, size)
            spill(form, scratch, j, canonical(unspill_loose(form, scratch, j, 2) + change))
            row += size
