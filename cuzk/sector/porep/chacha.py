"""One block of the ChaCha keystream, the generator behind parents (8 rounds) and synthetic challenges (20).

Plain integers: a block takes 0.1 ms, and a sector needs a few hundred. Source: RFC 8439, section 2.3; with 8
rounds the same function.
"""

from __future__ import annotations

import struct

BLOCK_BYTES = 64

_CONSTANTS = struct.unpack("<4I", b"expand 32-byte k")
_MASK = 0xFFFFFFFF
_COLUMNS_THEN_DIAGONALS = (
    (0, 4, 8, 12),
    (1, 5, 9, 13),
    (2, 6, 10, 14),
    (3, 7, 11, 15),
    (0, 5, 10, 15),
    (1, 6, 11, 12),
    (2, 7, 8, 13),
    (3, 4, 9, 14),
)


def chacha_block(key: bytes, counter_and_nonce: bytes, *, rounds: int) -> bytes:
    """64 bytes of keystream. `counter_and_nonce` is words 12..15 of the state as 16 little-endian bytes."""
    start = (*_CONSTANTS, *struct.unpack("<8I", key), *struct.unpack("<4I", counter_and_nonce))
    state = list(start)
    for _ in range(rounds // 2):
        for quarter in _COLUMNS_THEN_DIAGONALS:
            _quarter_round(state, *quarter)
    return struct.pack("<16I", *((x + y) & _MASK for x, y in zip(state, start, strict=True)))


def _quarter_round(state: list[int], a: int, b: int, c: int, d: int) -> None:
    for left, right, mixed, distance in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[left] = (state[left] + state[right]) & _MASK
        word = state[mixed] ^ state[left]
        state[mixed] = (word << distance | word >> 32 - distance) & _MASK
