"""Poseidon over Fr as Filecoin uses it: constants, the textbook hash, the compiled hash of many preimages.

Symbols    t = arity + 1 state elements; Rp partial rounds between 4 + 4 full ones; S-box x^5.
           RC round constants (8 + Rp, t); M the MDS matrix, M[i][j] = 1/(i + j + t), symmetric. The state is
           a row vector: a linear layer is s -> s M. Element 0 starts as the domain tag 2^arity - 1 (that of
           Merkle trees, used for columns and comm_r too), elements 1.. as the preimage; element 1 is the
           digest.
Plain      add RC, S-box (all elements, or element 0 in partial rounds), times M: t^2 products a round.
Optimised  M passes the partial S-boxes up to sparse matrices, and constants pass M: a partial round costs
           2t - 1 products. Keys are `compressed`, one a partial round; the last full round needs none.
Sources    neptune: poseidon.rs, round_constants.rs, mds.rs, preprocessing.rs; [GKRRS19] eprint 2019/458, B.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from cuzk.kernels.modulus import FR

FULL_ROUNDS = 8
HALF_FULL_ROUNDS = FULL_ROUNDS // 2
PARTIAL_ROUNDS = {2: 55, 4: 56, 8: 57, 11: 57}
"""By arity, for 128 bits of security."""
LARGEST_WIDTH = 1 + max(PARTIAL_ROUNDS)

Row = tuple[int, ...]
Matrix = tuple[Row, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoseidonConstants:
    """Everything that one arity's hash needs; all values are canonical Fr.

    round_constants  8 + Rp rows of t, for the plain permutation
    compressed       8t + Rp keys in the order in which the optimised permutation adds them
    pre_sparse       (t, t), the matrix of the last full round before the partial ones
    sparse           one pair (W, V) a partial round, of t and t - 1 values:
                     new_0 = sum of s_i W[i], new_j = s_j + s_0 V[j - 1]
    """

    arity: int
    partial_rounds: int
    round_constants: Matrix
    compressed: Row
    mds: Matrix
    pre_sparse: Matrix
    sparse: tuple[tuple[Row, Row], ...]

    @property
    def width(self) -> int:
        return self.arity + 1

    @property
    def domain_tag(self) -> int:
        return (1 << self.arity) - 1


@cache
def constants(arity: int) -> PoseidonConstants:
    """The constants of one arity (2, 4, 8 or 11), computed once a process: 6 to 40 ms."""
    width, partial_rounds = arity + 1, PARTIAL_ROUNDS[arity]
    draws = grain_field_elements(width, partial_rounds, (FULL_ROUNDS + partial_rounds) * width)
    rows = tuple(tuple(draws[i : i + width]) for i in range(0, len(draws), width))
    mds = tuple(tuple(pow(i + j + width, -1, FR.p) for j in range(width)) for i in range(width))
    pre_sparse, sparse = factor_into_sparse(mds, partial_rounds)
    return PoseidonConstants(
        arity=arity,
        partial_rounds=partial_rounds,
        round_constants=rows,
        compressed=compress(rows, inverse(mds), partial_rounds),
        mds=mds,
        pre_sparse=pre_sparse,
        sparse=sparse,
    )


def hash_textbook(preimage: Sequence[int], *, domain_tag: int | None = None) -> int:
    """The digest of 2, 4, 8 or 11 canonical field elements by the plain permutation. 0.5 to 3 ms.

    Without a domain tag: that of Merkle trees.
    """
    table = constants(len(preimage))
    partial = range(HALF_FULL_ROUNDS, HALF_FULL_ROUNDS + table.partial_rounds)
    state = [table.domain_tag if domain_tag is None else domain_tag, *preimage]
    for number, keys in enumerate(table.round_constants):
        state = [(element + key) % FR.p for element, key in zip(state, keys, strict=True)]
        substituted = 1 if number in partial else table.width
        state[:substituted] = [pow(element, 5, FR.p) for element in state[:substituted]]
        state = list(times(state, table.mds))
    return state[1]


def grain_field_elements(width: int, partial_rounds: int, count: int) -> list[int]:
    """The first `count` field elements of the Grain stream: 255 bits, first bit highest; >= r is skipped."""
    # Half of all pairs are dropped and one draw in ten is >= r: 4.42 raw bits for one that counts.
    pairs = grain_bits(width, partial_rounds, 5 * count * FR.bits // 2 * 2).reshape(-1, 2)
    bits = pairs[pairs[:, 0] == 1, 1]
    draws = bits[: len(bits) // FR.bits * FR.bits].reshape(-1, FR.bits)
    packed = np.packbits(np.pad(draws, ((0, 0), (1, 0))), axis=1)
    elements = [value for row in packed if (value := int.from_bytes(row.tobytes(), "big")) < FR.p]
    assert len(elements) >= count, (len(elements), count)
    return elements[:count]


def grain_bits(width: int, partial_rounds: int, count: int) -> NDArray[np.uint8]:
    """(count,) uint8 of 0 and 1: what the Grain LFSR shifts out after its start state and 160 discarded bits.

    bit[n] = bit[n-18] ^ bit[n-29] ^ bit[n-42] ^ bit[n-57] ^ bit[n-67] ^ bit[n-80]. Over GF(2) the square of a
    recurrence holds too, and has all distances doubled: so each step makes 18 * scale bits at once.
    """
    sizes = ((FR.bits, 12), (width, 12), (FULL_ROUNDS, 10), (partial_rounds, 10))
    prime_field, power_five = "01", "0001"
    start = prime_field + power_five + "".join(f"{size:0{bits}b}" for size, bits in sizes) + "1" * 30
    skipped = len(start) + 160
    bit = np.zeros(skipped + count, dtype=np.uint8)
    bit[: len(start)] = [int(digit) for digit in start]
    known = len(start)
    while known < len(bit):
        scale = 1 << (known // len(start)).bit_length() - 1
        new = slice(known, min(known + 18 * scale, len(bit)))
        for distance in (18, 29, 42, 57, 67, 80):
            bit[new] ^= bit[new.start - distance * scale : new.stop - distance * scale]
        known = new.stop
    return bit[skipped:]


def compress(rows: Matrix, mds_inverse: Matrix, partial_rounds: int) -> Row:
    """The 8t + Rp keys of the optimised permutation, from the round constants.

    In a partial round all but the first constant pass the S-box untouched, so they move one round up, through
    M^-1; what arrives above the first partial round is added there.
    """
    after = HALF_FULL_ROUNDS + partial_rounds
    carried, partial_keys = rows[after], []
    for row in reversed(rows[HALF_FULL_ROUNDS:after]):
        key, *rest = times(carried, mds_inverse)
        partial_keys.append(key)
        carried = tuple((a + b) % FR.p for a, b in zip(row, (0, *rest), strict=True))
    keys = [*rows[0]]
    for row in (*rows[1:HALF_FULL_ROUNDS], carried):
        keys += times(row, mds_inverse)
    keys += reversed(partial_keys)
    for row in rows[after + 1 :]:
        keys += times(row, mds_inverse)
    return tuple(keys)


def factor_into_sparse(mds: Matrix, partial_rounds: int) -> tuple[Matrix, tuple[tuple[Row, Row], ...]]:
    """PRE and SPARSE_1.. such that partial rounds with M equal PRE and then partial rounds with SPARSE_i.

    Let H be M without row 0 and column 0. Then M = diag(1, H) S with S sparse, and diag(1, H) passes the
    partial S-box into the M of the round before. From the last round backwards this gives M diag(1, H^k),
    k = 0, 1, .., each split in the same way: W = [M00, w H^-(k+1)] and V = v H^k, where v is row 0 and w
    column 0 of M without the corner (H is symmetric, so rows and columns need no telling apart).
    """
    hat = tuple(row[1:] for row in mds[1:])
    hat_inverse = inverse(hat)
    v = u = mds[0][1:]
    sparse = []
    for _ in range(partial_rounds):
        u = times(u, hat_inverse)
        sparse.append(((mds[0][0], *u), v))
        v = times(v, hat)
    rest = tuple(tuple(row[1:]) for row in mds)
    for _ in range(partial_rounds):
        rest = tuple(times(row, hat) for row in rest)
    pre_sparse = tuple((row[0], *tail) for row, tail in zip(mds, rest, strict=True))
    return pre_sparse, tuple(reversed(sparse))


def times(row: Sequence[int], matrix: Matrix) -> Row:
    """The row vector times the matrix, mod r."""
    columns = zip(*matrix, strict=True)
    return tuple(sum(a * b for a, b in zip(row, column, strict=True)) % FR.p for column in columns)


def inverse(matrix: Matrix) -> Matrix:
    """The inverse mod r by Gauss-Jordan, without a search for pivots: a Cauchy matrix has no zero minor."""
    size = len(matrix)
    rows = [[*row, *(int(i == j) for j in range(size))] for i, row in enumerate(matrix)]
    for pivot in range(size):
        scale = pow(rows[pivot][pivot], -1, FR.p)
        rows[pivot] = [scale * value % FR.p for value in rows[pivot]]
        for other in range(size):
            if other != pivot:
                factor = rows[other][pivot]
                rows[other] = [(a - factor * b) % FR.p for a, b in zip(rows[other], rows[pivot], strict=True)]
    return tuple(tuple(row[size:]) for row in rows)
