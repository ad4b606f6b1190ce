"""The memory that proofs on the CPU write to, one after the other; touched while something else goes on.

On virtual machines the first touch of a page can cost ten times what it costs on bare metal: a second and
more for the smallest proof. This module loads no compiler, so that it can be touched while that loads.
"""

from __future__ import annotations

from cuzk.groth16.memory_limits import available_memory
from cuzk.kernels.device.memory import Arena

_WORDS_A_VALUE, _WORD_BYTES = 4, 8
_VECTORS_IN_TURN = 3


class ProofMemory:
    """For a domain of m rows.

    vector  the values of A, then the quotient
    arena   in turn the values of B with what transforms need beside them, and the rows of points of each sum

    words_of_rows  what those rows take; unknown, room is left for them: it costs nothing until it is touched
    """

    def __init__(self, m: int, words_of_rows: int | None = None) -> None:
        self._vector_words = _WORDS_A_VALUE * m
        in_turn = _VECTORS_IN_TURN * self._vector_words
        self.vector = Arena(self._vector_words)
        self.arena = Arena(max(in_turn, 2 * in_turn if words_of_rows is None else words_of_rows))
        self._is_begun = False

    @classmethod
    def made_ready(cls, m: int) -> ProofMemory | None:
        """Being touched from now on; None where there may not be enough: `memory_plan` will tell later."""
        if 2 * (1 + _VECTORS_IN_TURN) * _WORDS_A_VALUE * _WORD_BYTES * m > available_memory():
            return None
        memory = cls(m)
        memory.touch_ahead()
        return memory

    def touch_ahead(self) -> None:
        """Begin to touch what transforms will write to, in threads of its own."""
        if not self._is_begun:
            self._is_begun = True
            self.vector.touch_ahead(self._vector_words)
            self.arena.touch_ahead(_VECTORS_IN_TURN * self._vector_words)
