"""Witness of a SHA-256 block: the bits of native 32-bit words, in the order in which the block's rows made
them.

A block's tables: 768 words that say of each message and state bit whether it is 0, 1 or VARIABLE; then its
*plan*, three masks an operation (new, flipped, both): which bits of the result are variables, which of
these hold the complement, and, for MAJ, after which the variable b & c follows. Order of the operations:
for each of the words 16..63 two XORs of sigma0, two of sigma1, the sum; for each round the e-sum of the
round before (from round 1 on), two XORs of Sigma1, CH, the a-sum of the round before, two XORs of Sigma0,
MAJ; eight output sums. Source: FIPS 180-4; the order is that of bellperson, gadgets/sha256.rs.
"""

from __future__ import annotations

import math

import numpy as np

from cuzk.kernels.jit import jit

VARIABLE = 2
BLOCK_BITS = 512
PATTERN_BITS = 768
MASKS = 3
WORD_MASK = np.uint64(0xFFFFFFFF)


def _first_primes(count: int) -> list[int]:
    primes: list[int] = []
    candidate = 2
    while len(primes) < count:
        if all(candidate % prime for prime in primes):
            primes.append(candidate)
        candidate += 1
    return primes


def _cube_root(value: int) -> int:
    """The integer part of the cube root, by Newton's method from above."""
    root = 1 << -(-value.bit_length() // 3)
    while (better := (2 * root + value // root**2) // 3) < root:
        root = better
    return root


INITIAL_STATE = tuple(math.isqrt(prime << 64) & 0xFFFFFFFF for prime in _first_primes(8))
"""The first 32 bits of the fractional parts of the square roots of the first 8 primes."""

ROUND_CONSTANTS = tuple(_cube_root(prime << 96) & 0xFFFFFFFF for prime in _first_primes(64))
"""The same of the cube roots of the first 64 primes."""

_K = np.array(ROUND_CONSTANTS, dtype=np.uint64)

SMALL_SIGMA_0, SMALL_SIGMA_1, BIG_SIGMA_0, BIG_SIGMA_1 = range(4)
_ROTATIONS = np.array([[7, 18, 3], [17, 19, 10], [2, 13, 22], [6, 11, 25]], dtype=np.uint64)
"""Of the four sigma functions; the last entry of the small ones is a shift."""


@jit
def sigma_parts(x, which):
    """What the sigma function `which` XORs: the XOR of its first two, and the third."""
    double = x | (x << np.uint64(32))
    r = _ROTATIONS[which]
    third = x >> r[2] if which <= SMALL_SIGMA_1 else double >> r[2]
    return ((double >> r[0]) ^ (double >> r[1])) & WORD_MASK, third & WORD_MASK


@jit
def emit(bits, at, value, mask):
    """Writes the bits of `value` that are set in `mask`, lowest first, from `at` on; the place after them.

    A bit that is not set is written too, and overwritten by the next one that is.
    """
    while mask:
        bits[at] = value & np.uint64(1)
        at += np.int64(mask & np.uint64(1))
        value >>= np.uint64(1)
        mask >>= np.uint64(1)
    return at


@jit
def emit_with_and(bits, at, value, mask, both_value, both_mask):
    """As `emit`, and behind each bit that is set in `both_mask` that bit of `both_value`.

    May leave one wrong bit at the place after, which the next operation overwrites.
    """
    while mask | both_mask:
        for value_now, mask_now in ((value, mask), (both_value, both_mask)):
            bits[at] = value_now & np.uint64(1)
            at += np.int64(mask_now & np.uint64(1))
        value >>= np.uint64(1)
        mask >>= np.uint64(1)
        both_value >>= np.uint64(1)
        both_mask >>= np.uint64(1)
    return at


@jit
def emit_sigma(bits, at, x, which, plan, op):
    """The two XORs of a sigma function; the place after them and the function's value."""
    first, third = sigma_parts(x, which)
    at = emit(bits, at, first ^ plan[op + 1], plan[op])
    at = emit(bits, at, first ^ third ^ plan[op + MASKS + 1], plan[op + MASKS])
    return at, first ^ third


@jit
def load_words(tables, externals, bits, words):
    """words = message and state: constants of the pattern, and the bits at `externals`."""
    next_external = 0
    for i in range(PATTERN_BITS):
        bit = tables[i]
        if bit == VARIABLE:
            bit = np.uint64(bits[externals[next_external]])
            next_external += 1
        words[i >> 5] = (words[i >> 5] << np.uint64(1)) | bit


@jit
def fill_sha256_block(tables, externals, bits, at):
    """Fills the variables of one block, bits[at:], from the bits at `externals`."""
    plan = tables[PATTERN_BITS:]
    words = np.zeros(PATTERN_BITS // 32, dtype=np.uint64)
    load_words(tables, externals, bits, words)
    w = np.zeros(64, dtype=np.uint64)
    for i in range(16):
        w[i] = words[i]
    op = 0
    for i in range(16, 64):
        at, s0 = emit_sigma(bits, at, w[i - 15], SMALL_SIGMA_0, plan, op)
        at, s1 = emit_sigma(bits, at, w[i - 2], SMALL_SIGMA_1, plan, op + 2 * MASKS)
        total = w[i - 16] + s0 + w[i - 7] + s1
        at = emit(bits, at, total, plan[op + 4 * MASKS])
        w[i] = total & WORD_MASK
        op += 5 * MASKS
    fill_rounds(bits, at, w, words[16:], plan, op)


@jit
def fill_rounds(bits, at, w, state, plan, op):
    """The 64 rounds and the output sums of `fill_sha256_block`."""
    a, b, c, d = state[0], state[1], state[2], state[3]
    e, f, g, h = state[4], state[5], state[6], state[7]
    sum_a, sum_e = a, e
    for i in range(64):
        if i:
            e = sum_e & WORD_MASK
            at = emit(bits, at, sum_e, plan[op])
            op += MASKS
        at, s1 = emit_sigma(bits, at, e, BIG_SIGMA_1, plan, op)
        ch = (e & f) ^ (~e & g)
        at = emit(bits, at, ch ^ plan[op + 2 * MASKS + 1], plan[op + 2 * MASKS])
        op += 3 * MASKS
        if i:
            a = sum_a & WORD_MASK
            at = emit(bits, at, sum_a, plan[op])
            op += MASKS
        at, s0 = emit_sigma(bits, at, a, BIG_SIGMA_0, plan, op)
        maj = (a & b) ^ (a & c) ^ (b & c)
        new, flipped, both = plan[op + 2 * MASKS], plan[op + 2 * MASKS + 1], plan[op + 2 * MASKS + 2]
        at = emit_with_and(bits, at, maj ^ flipped, new, b & c, both)
        op += 3 * MASKS
        temp1 = h + s1 + ch + _K[i] + w[i]
        sum_e = temp1 + d
        sum_a = temp1 + s0 + maj
        h, g, f, d, c, b = g, f, e, c, b, a
    added = (sum_a, b, c, d, sum_e, f, g, h)
    for i in range(8):
        at = emit(bits, at, added[i] + state[i], plan[op])
        op += MASKS
