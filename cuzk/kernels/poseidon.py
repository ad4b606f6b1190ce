"""Poseidon over Fr as Filecoin uses it: constants, the textbook hash, and the compiled hash of many preimages.

Symbols    t = arity + 1 state elements; 8 full rounds, 4 before and 4 after Rp partial rounds; S-box x^5.
           RC round constants (8 + Rp, t); M the MDS matrix, M[i][j] = 1/(i + j + t), symmetric. The state is a
           row vector: a linear layer is s -> s M. Element 0 starts as the domain tag 2^arity - 1 (Merkle trees, used
           for columns and comm_r too), elements 1.. as the preimage; the digest is element 1.
Plain      add RC, S-box (all elements, or element 0 in partial rounds), times M: t^2 products a round.
Optimised  M commutes past the partial S-boxes up to sparse matrices, and constants past M: a partial round
           costs 2t - 1 products. Keys are `compressed`, one a partial round; the last full round needs none.
Sources    neptune: poseidon.rs, round_constants.rs, mds.rs, preprocessing.rs; [GKRRS19] eprint 2019/458, appendix B.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from cuzk.kernels.modulus import FR

FULL_ROUNDS = 8
HALF_FULL_ROUNDS = FULL_ROUNDS // 2
PARTIAL_ROUNDS = {2: 55, 4: 56, 8: 57, 11: 57}
"""By arity, for 128 bits of security."""

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


@lru_cache(maxsize=None)
def constants(arity: int) -> PoseidonConstants:
    """The constants of one arity (2, 4, 8 or 11), computed once a process: a few milliseconds."""
    width, partial_rounds = arity + 1, PARTIAL_ROUNDS[arity]
    draws = grain_field_elements(width, partial_rounds)
    rows = tuple(tuple(next(draws) for _ in range(width)) for _ in range(FULL_ROUNDS + partial_rounds))
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


def hash_textbook(preimage: Sequence[int]) -> int:
    """The digest of 2, 4, 8 or 11 canonical field elements by the plain permutation. About 10 ms."""
    table = constants(len(preimage))
    partial = range(HALF_FULL_ROUNDS, HALF_FULL_ROUNDS + table.partial_rounds)
    state = [table.domain_tag, *preimage]
    for number, keys in enumerate(table.round_constants):
        state = [(element + key) % FR.p for element, key in zip(state, keys, strict=True)]
        substituted = 1 if number in partial else table.width
        state[:substituted] = [pow(element, 5, FR.p) for element in state[:substituted]]
        state = list(times(state, table.mds))
    return state[1]


def grain_bits(width: int, partial_rounds: int) -> Iterator[np.ndarray]:
    """Endless blocks of the Grain LFSR's filtered output, (n,) uint8 each of 0 and 1.

    Over GF(2) a recurrence may be squared: it then holds with all distances doubled. The register's history
    is therefore continued by arrays whose length doubles whenever the known bits allow it.
    """
    fields = ((1, 2), (1, 4), (FR.bits, 12), (width, 12), (FULL_ROUNDS, 10), (partial_rounds, 10), (2**30 - 1, 30))
    start = "".join(f"{value:0{bits}b}" for value, bits in fields)
    raw = np.array([int(bit) for bit in start], dtype=np.uint8)
    distance, taps, discarded = len(raw), (62, 51, 38, 23, 13, 0), len(raw) + 160
    scale = 1
    while True:
        while len(raw) < discarded or (len(raw) - discarded) % 2:
            pass
        yield raw
