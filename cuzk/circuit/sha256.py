"""SHA-256 as rows: one template for each pattern of constant bits that a 512-bit block can have.

A block's externals are those of its 512 message bits and 256 state bits that are variables, in this order.
The state is a constant only as the initial value of a hash. The order of allocations is that of bellperson,
gadgets/sha256.rs: the new a and e of a round are left *pending*, as operands, until something reads their
bits.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np

from cuzk.circuit import boolean
from cuzk.circuit.builder import CONSTANT_BITS, FALSE_BIT, TRUE_BIT, Bits, CircuitBuilder
from cuzk.circuit.r1cs import Template, Tracer, Witness
from cuzk.circuit.uint32 import (
    WORD_BITS,
    MultiEquation,
    Word,
    add_many,
    constant_word,
    rotate_right,
    shift_right,
)
from cuzk.kernels.circuit.sha256 import (
    BIT_SHIFT,
    BLOCK_BITS,
    INITIAL_STATE,
    ROUND_CONSTANTS,
    ROUNDS,
    TRACE_WORDS,
    VARIABLE,
    WORD_SHIFT,
)
from cuzk.kernels.circuit.witness import SHA256_BLOCK


def sha256(builder: CircuitBuilder, message: Bits) -> Bits:
    """The 256 bits of the hash of a whole number of bytes, most significant bit of each first."""
    assert len(message) % 8 == 0, len(message)
    zeros = (-len(message) - 65) % BLOCK_BITS
    padding = [True] + [False] * zeros + [bool(len(message) >> i & 1) for i in reversed(range(64))]
    padded = np.concatenate([message, np.where(padding, TRUE_BIT, FALSE_BIT)])
    state = np.concatenate([constant_bits_be(word) for word in INITIAL_STATE])
    for number, block in enumerate(padded.reshape(-1, BLOCK_BITS)):
        with builder.section(f"SHA block {number}"):
            state = compress(builder, block, state)
    return state


def constant_bits_be(value: int, width: int = WORD_BITS) -> Bits:
    """The bits of a constant, most significant first."""
    bits = [TRUE_BIT if value >> i & 1 else FALSE_BIT for i in reversed(range(width))]
    return np.array(bits, dtype=np.int64)


def compress(builder: CircuitBuilder, block: Bits, state: Bits) -> Bits:
    """One compression; at least one bit of block or state is a variable."""
    bits = np.concatenate([block, state])
    pattern = np.full(len(bits), VARIABLE, dtype=np.uint8)
    pattern[bits == FALSE_BIT] = 0
    pattern[bits == TRUE_BIT] = 1
    assert VARIABLE in pattern
    template = block_template(pattern.tobytes())
    return builder.instance(template, bits=bits[~np.isin(bits, CONSTANT_BITS)])


@lru_cache(maxsize=256)
def block_template(pattern: bytes) -> Template:
    """The template of blocks whose message and state bits are 0, 1 or VARIABLE, as the pattern says."""
    tracer = Tracer(bits=pattern.count(VARIABLE))
    slots = iter(tracer.bits)
    literals = [
        boolean.literal(next(slots)) if kind == VARIABLE else boolean.constant(bool(kind)) for kind in pattern
    ]
    words = [literals[i : i + WORD_BITS][::-1] for i in range(0, len(literals), WORD_BITS)]
    block = BlockTracer(tracer)
    out = block.compress(words[:16], words[16:])
    kinds = np.frombuffer(pattern, np.uint8).astype(np.uint32)
    is_variable = kinds == VARIABLE
    kinds[is_variable] += np.arange(is_variable.sum(), dtype=np.uint32)
    return tracer.template(
        "SHA-256 block",
        Witness(SHA256_BLOCK, np.concatenate([kinds, np.array(block.sources, dtype=np.uint32)])),
        outputs=[bit >> 1 for word in out for bit in reversed(word)],
    )


class BlockTracer:
    """Records one compression, and for each variable its source: a bit of a word that the kernel traces."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._equation = MultiEquation(tracer)
        self._word = 0  # of the trace
        self.sources: list[int] = []

    def compress(self, message: list[Word], state: list[Word]) -> list[Word]:
        w = self._schedule(message)
        a, b, c, d, e, f, g, h = state
        next_a: list[Word] = []
        next_e: list[Word] = []
        for number in range(ROUNDS):
            if number:
                e = self._sum(f"round {number - 1} e-sum", next_e)
            self._tracer.label(f"round {number} Sigma1, CH")
            s1 = self._xor3(rotate_right(e, 6), rotate_right(e, 11), rotate_right(e, 25))
            ch = self._bitwise(boolean.choose, e, f, g)
            if number:
                a = self._sum(f"round {number - 1} a-sum", next_a)
            self._tracer.label(f"round {number} Sigma0, MAJ")
            s0 = self._xor3(rotate_right(a, 2), rotate_right(a, 13), rotate_right(a, 22))
            maj = self._bitwise(boolean.majority, a, b, c)
            temp1 = [h, s1, ch, constant_word(ROUND_CONSTANTS[number]), w[number]]
            next_e, next_a = [*temp1, d], [*temp1, s0, maj]
            h, g, f, d, c, b = g, f, e, c, b, a
        added = [next_a, [b], [c], [d], next_e, [f], [g], [h]]
        out = [
            self._sum(f"output word {number}", [*terms, word])
            for number, (terms, word) in enumerate(zip(added, state, strict=True))
        ]
        self._equation.flush()
        assert self._word == TRACE_WORDS, self._word
        return out

    def _schedule(self, message: list[Word]) -> list[Word]:
        w = list(message)
        for i in range(16, ROUNDS):
            self._tracer.label(f"schedule word {i}")
            x, y = w[i - 15], w[i - 2]
            s0 = self._xor3(rotate_right(x, 7), rotate_right(x, 18), shift_right(x, 3))
            s1 = self._xor3(rotate_right(y, 17), rotate_right(y, 19), shift_right(y, 10))
            w.append(self._sum(f"schedule word {i} sum", [w[i - 16], s0, w[i - 7], s1]))
        return w

    def _xor3(self, x: Word, y: Word, z: Word) -> Word:
        return self._bitwise(boolean.xor, self._bitwise(boolean.xor, x, y), z)

    def _bitwise(self, operation: Callable[..., int], *operands: Word) -> Word:
        """The word of `operation` on each bit of the operands. MAJ traces b & c as well, one word on."""
        tracer, word = self._tracer, []
        before = tracer.allocated
        for i, literals in enumerate(zip(*operands, strict=True)):
            bit = operation(tracer, *literals)
            after = tracer.allocated
            if after > before:
                self._is_bit(self._word, i, bit & 1)
            if after > before + 1:
                self._is_bit(self._word + 1, i, 0)
            word.append(bit)
            before = after
        self._word += 2 if operation is boolean.majority else 1
        return word

    def _sum(self, label: str, operands: list[Word]) -> Word:
        self._tracer.label(label)
        before = self._tracer.allocated
        word = add_many(self._tracer, self._equation, operands)
        for i in range(self._tracer.allocated - before):
            self._is_bit(self._word, i, 0)
        self._word += 1
        return word

    def _is_bit(self, word: int, bit: int, is_complement: int) -> None:
        """The next variable is this bit of a traced word, or its complement."""
        self.sources.append(word << WORD_SHIFT | bit << BIT_SHIFT | is_complement)
