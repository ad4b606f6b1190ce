"""Blocks of the ChaCha keystream, the generator behind parents (8 rounds) and synthetic challenges (20).

Many blocks at once, each word of theirs an array: 0.3 ms of 20 rounds, 0.1 ms of 8, whether of one block or
of fifty. Source: RFC 8439, section 2.3; with 8 rounds the same function.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint32]

BLOCK_BYTES = 64

_CONSTANTS = np.frombuffer(b"expand 32-byte k", dtype="<u4")


def chacha_blocks(given: Sequence[bytes], *, rounds: int) -> list[bytes]:
    """64 bytes of keystream for each of the given 48, words 4..15 of a state: key, counter and nonce."""
    start = np.empty((4, 4, len(given)), dtype=np.uint32)
    start[0] = _CONSTANTS[:, None]
    start[1:] = np.frombuffer(b"".join(given), dtype="<u4").reshape(-1, 3, 4).transpose(1, 2, 0)
    a, b, c, d = start
    for _ in range(rounds // 2):
        a, b, c, d = _quarter_rounds(a, b, c, d)
        b, c, d = _rolled(b, 1), _rolled(c, 2), _rolled(d, 3)  # diagonals become columns
        a, b, c, d = _quarter_rounds(a, b, c, d)
        b, c, d = _rolled(b, 3), _rolled(c, 2), _rolled(d, 1)
    blocks = np.stack([a, b, c, d]) + start
    stream = blocks.transpose(2, 0, 1).astype("<u4").tobytes()
    return [stream[first : first + BLOCK_BYTES] for first in range(0, len(stream), BLOCK_BYTES)]


def _quarter_rounds(a: Words, b: Words, c: Words, d: Words) -> tuple[Words, Words, Words, Words]:
    """Of the four columns of every state at once."""
    a = a + b
    d = _rotated(d ^ a, 16)
    c = c + d
    b = _rotated(b ^ c, 12)
    a = a + b
    d = _rotated(d ^ a, 8)
    c = c + d
    b = _rotated(b ^ c, 7)
    return a, b, c, d


def _rotated(words: Words, distance: int) -> Words:
    rotated: Words = words << np.uint32(distance) | words >> np.uint32(32 - distance)
    return rotated


def _rolled(row: Words, by: int) -> Words:
    return np.concatenate([row[by:], row[:by]])
