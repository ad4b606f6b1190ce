"""Witness of a SHA-256 block: bits of the native 32-bit words of a compression, in the order of the rows.

A compression is *traced*: the words of all its operations, sums with their carries, one after another. For
each of the words 16..63: rotations of sigma0 XORed, sigma0, the same of sigma1, the sum. For each round: the
e-sum of the round before (from round 1 on), rotations of Sigma1 XORed, Sigma1, CH, the a-sum of the round
before, rotations of Sigma0 XORed, Sigma0, MAJ, b & c. Then eight output sums. Source: FIPS 180-4; the order
is that of bellperson, gadgets/sha256.rs.

A block's tables: for each of its 768 message and state bits 0 or 1 if it is constant, else VARIABLE plus the
number of the external bit that it is; then the *source* of each own variable, a bit of a traced word.
"""

from __future__ import annotations

import math

import numpy as np

from cuzk.kernels.circuit.team import meet, member, members
from cuzk.kernels.jit import jit

BLOCK_BITS = 512
BLOCK_WORDS, STATE_WORDS = 16, 8
PATTERN_BITS = 32 * (BLOCK_WORDS + STATE_WORDS)
ROUNDS = 64
W_WORDS = ROUNDS + STATE_WORDS
VARIABLE = 2

SCHEDULE_OPERATIONS, ROUND_OPERATIONS = 5, 9
TRACE_WORDS = SCHEDULE_OPERATIONS * (ROUNDS - BLOCK_WORDS) + ROUND_OPERATIONS * ROUNDS - 2 + STATE_WORDS
"""In round 0 the new e and a are given, not summed."""

WORD_SHIFT, BIT_SHIFT, BIT_MASK = 7, 1, 63
"""Of a source: from bit 7 on the traced word, bits 1 to 6 the bit in it, bit 0 whether it is complemented."""


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

_K = np.array(ROUND_CONSTANTS, dtype=np.uint32)


@jit
def rotated(x, count):
    return np.uint32(x >> np.uint32(count) | x << np.uint32(32 - count))


@jit
def two_rotations(x, first, second):
    """What the sigma functions XOR first."""
    return rotated(x, first) ^ rotated(x, second)


@jit
def trace_block(w, trace):
    """The traced words of one compression.

    w      (W_WORDS,) uint32: the message, room for the schedule, the state
    trace  (TRACE_WORDS,) uint64
    """
    at = 0
    for i in range(BLOCK_WORDS, ROUNDS):
        x, y = w[i - 15], w[i - 2]
        trace[at] = two_rotations(x, 7, 18)
        s0 = np.uint32(trace[at]) ^ x >> np.uint32(3)
        trace[at + 1] = s0
        trace[at + 2] = two_rotations(y, 17, 19)
        s1 = np.uint32(trace[at + 2]) ^ y >> np.uint32(10)
        trace[at + 3] = s1
        total = np.uint64(w[i - 16]) + np.uint64(s0) + np.uint64(w[i - 7]) + np.uint64(s1)
        trace[at + 4] = total
        w[i] = np.uint32(total)
        at += SCHEDULE_OPERATIONS
    trace_rounds(w, trace, at)


@jit
def trace_rounds(w, trace, at):
    """The 64 rounds and the output sums of `trace_block`."""
    a, b, c, d = w[ROUNDS], w[ROUNDS + 1], w[ROUNDS + 2], w[ROUNDS + 3]
    e, f, g, h = w[ROUNDS + 4], w[ROUNDS + 5], w[ROUNDS + 6], w[ROUNDS + 7]
    sum_a, sum_e = np.uint64(a), np.uint64(e)
    for i in range(ROUNDS):
        if i:
            trace[at] = sum_e
            e = np.uint32(sum_e)
            at += 1
        two = two_rotations(e, 6, 11)
        s1 = np.uint32(two ^ rotated(e, 25))
        ch = np.uint32(g ^ e & (f ^ g))
        trace[at], trace[at + 1], trace[at + 2] = two, s1, ch
        at += 3
        if i:
            trace[at] = sum_a
            a = np.uint32(sum_a)
            at += 1
        two = two_rotations(a, 2, 13)
        s0 = np.uint32(two ^ rotated(a, 22))
        both = np.uint32(b & c)
        maj = np.uint32(both ^ a & (b ^ c))
        trace[at], trace[at + 1], trace[at + 2], trace[at + 3] = two, s0, maj, both
        at += 4
        temp1 = np.uint64(h) + np.uint64(s1) + np.uint64(ch) + np.uint64(_K[i]) + np.uint64(w[i])
        sum_e = temp1 + np.uint64(d)
        sum_a = temp1 + np.uint64(s0) + np.uint64(maj)
        h, g, f, d, c, b = g, f, e, c, b, a
    added = (sum_a, np.uint64(b), np.uint64(c), np.uint64(d), sum_e, np.uint64(f), np.uint64(g), np.uint64(h))
    for i in range(STATE_WORDS):
        trace[at + i] = added[i] + np.uint64(w[ROUNDS + i])


@jit
def load_words(tables, start, externals, externals_start, bits, given, w):
    """w = message and state, from the pattern at tables[start] and the bits that it names.

    given  (768,) uint8 for the team: the bits one by one
    """
    for i in range(member(), PATTERN_BITS, members()):
        kind = tables[start + i]
        if kind >= VARIABLE:
            given[i] = bits[externals[externals_start + np.int64(kind) - VARIABLE]]
        else:
            given[i] = kind
    meet()
    for word in range(member(), BLOCK_WORDS + STATE_WORDS, members()):
        value = np.uint32(0)
        for i in range(32 * word, 32 * word + 32):
            value = np.uint32(value << np.uint32(1) | np.uint32(given[i]))
        w[word if word < BLOCK_WORDS else word + ROUNDS - BLOCK_WORDS] = value
    meet()


@jit
def fill_sha256_block(tables, start, externals, externals_start, bits, at, count, given, w, trace):
    """Fills the `count` variables of one block, bits[at:], from the bits at externals[externals_start:]."""
    load_words(tables, start, externals, externals_start, bits, given, w)
    if member() == 0:
        trace_block(w, trace)
    meet()
    for k in range(member(), count, members()):
        source = tables[start + PATTERN_BITS + k]
        value = trace[source >> np.uint32(WORD_SHIFT)] >> np.uint64(
            source >> np.uint32(BIT_SHIFT) & np.uint32(BIT_MASK)
        )
        bits[at + k] = (value ^ np.uint64(source)) & np.uint64(1)
