"""The assembler of GPU programs: recorded 32-bit instructions, printed as PTX or run on plain integers.

A word is a register, by name, or a constant. Every instruction writes a new register: nothing is overwritten.
The GPU has one carry flag. Here it is reached through a `Chain` alone: its first instruction ignores the
flag, each further one adds the carry of its predecessor. Recording asserts that no other chain comes between,
and an instruction sets the flag only if a successor reads it.

`Program.run` asserts more: where no successor takes a carry, there is none, unless the instruction `wraps`.
Source: PTX ISA, "Extended-Precision Integer Arithmetic Instructions".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

WIDTH = 32
LOW = (1 << WIDTH) - 1

Word = str | int
Words = list[Word]

# What an instruction computes before it takes the carry and drops what exceeds 32 bits.
_VALUES: dict[str, Callable[..., int]] = {
    "mul.lo": lambda x, y: x * y & LOW,
    "mad.lo": lambda x, y, z: (x * y & LOW) + z,
    "mad.hi": lambda x, y, z: (x * y >> WIDTH) + z,
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "min": min,
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "not": lambda x: x ^ LOW,
    "shf.l.clamp": lambda low, high, count: (high << WIDTH | low) << count >> WIDTH & LOW,
    "setp.ne": lambda x, y: int(x != y),
    "selp": lambda x, y, predicate: x if predicate else y,
}
_TYPES = {"and": "b32", "or": "b32", "not": "b32", "shf.l.clamp": "b32", "selp": "b32"}


@dataclass(slots=True)
class Instruction:
    """`result` = operation on `arguments`; it reads the carry flag if it `takes`, sets it if it `gives`."""

    operation: str
    result: str
    arguments: tuple[Word, ...]
    takes: bool
    wraps: bool
    gives: bool = False

    @property
    def mnemonic(self) -> str:
        base, dot, part = self.operation.partition(".")
        carry = f"{base}{'c' * self.takes}{dot}{part}{'.cc' * self.gives}"
        return f"{carry}.{_TYPES.get(self.operation, 'u32')}"


class Chain:
    """Additions, or subtractions, through which one carry, or borrow, runs upward.

    What cannot change anything is left out: an addition of 0 while no carry is on its way.
    """

    def __init__(self, asm: Asm) -> None:
        self._asm = asm
        self._last: int | None = None  # the instruction whose carry comes next

    def add(self, x: Word, y: Word, wraps: bool = False) -> Word:
        """x + y + carry."""
        if self._last is None and 0 in (x, y):
            return y if x == 0 else x
        return self._emit("add", x, y, wraps=wraps)

    def sub(self, x: Word, y: Word) -> Word:
        """x - y - borrow."""
        return self._emit("sub", x, y)

    def mask_of_borrow(self) -> Word:
        """All ones if there was a borrow, else 0; ends the chain."""
        return self._emit("sub", 0, 0, wraps=True)

    def mad_wide(self, x: Word, y: Word, low: Word, high: Word, wraps: bool = False) -> tuple[Word, Word]:
        """(low, high) + x*y + carry: a pair that the GPU's assembler fuses into one wide multiply-add."""
        return self._emit("mad.lo", x, y, low), self._emit("mad.hi", x, y, high, wraps=wraps)

    def mad_low(self, x: Word, y: Word, low: Word) -> Word:
        """low + x*y + carry, modulo 2^32; ends the chain."""
        return self._emit("mad.lo", x, y, low, wraps=True)

    def _emit(self, operation: str, *arguments: Word, wraps: bool = False) -> Word:
        result = self._asm.emit(operation, *arguments, wraps=wraps, carry_of=self._last)
        self._last = self._asm.length - 1
        return result


class Asm:
    """Records a program. Words come from `inputs` and from instructions."""

    def __init__(self) -> None:
        self._instructions: list[Instruction] = []
        self._inputs: list[str] = []
        self._flag_touched = -1  # the last instruction that reads or sets the flag

    @property
    def length(self) -> int:
        return len(self._instructions)

    def inputs(self, count: int) -> Words:
        """The next `count` words that the program is given."""
        first = len(self._inputs)
        self._inputs += [f"i{first + k}" for k in range(count)]
        return list(self._inputs[first:])

    def emit(self, operation: str, *arguments: Word, wraps: bool = False, carry_of: int | None = None) -> str:
        """Record one instruction; `carry_of` is the one, by position, whose carry or borrow it takes."""
        position = self.length
        if carry_of is not None:
            giver = self._instructions[carry_of]
            assert self._flag_touched <= carry_of, f"instruction {self._flag_touched} breaks a carry chain"
            assert (giver.operation == "sub") == (operation == "sub"), (giver, operation)
            giver.gives, self._flag_touched = True, position
        result = f"{'q' if operation == 'setp.ne' else 't'}{position}"
        self._instructions.append(Instruction(operation, result, arguments, carry_of is not None, wraps))
        return result

    def chain(self) -> Chain:
        return Chain(self)

    def mul_low(self, x: Word, y: Word) -> Word:
        return self.emit("mul.lo", x, y)

    def add_wrapping(self, x: Word, y: Word) -> Word:
        """x + y modulo 2^32."""
        return self.emit("add", x, y, wraps=True) if 0 not in (x, y) else y if x == 0 else x

    def negate(self, x: Word) -> Word:
        """-x modulo 2^32."""
        return self.emit("sub", 0, x, wraps=True)

    def sub(self, x: Word, y: Word) -> Word:
        """x - y, not negative."""
        return self.emit("sub", x, y)

    def min(self, x: Word, y: Word) -> Word:
        return self.emit("min", x, y)

    def and_(self, x: Word, y: Word) -> Word:
        return self.emit("and", x, y)

    def or_(self, x: Word, y: Word) -> Word:
        return self.emit("or", x, y)

    def not_(self, x: Word) -> Word:
        return self.emit("not", x)

    def shift_left(self, low: Word, high: Word, count: int) -> Word:
        """The upper word of (low, high) << count."""
        return self.emit("shf.l.clamp", low, high, count)

    def select(self, choice: Word, if_not_zero: Words, otherwise: Words) -> Words:
        """One of two values, by whether the word `choice` is zero."""
        predicate = self.emit("setp.ne", choice, 0)
        return [self.emit("selp", x, y, predicate) for x, y in zip(if_not_zero, otherwise, strict=True)]

    def program(self, outputs: Words) -> Program:
        return Program(tuple(self._instructions), tuple(self._inputs), tuple(outputs))


@dataclass(frozen=True, slots=True)
class Program:
    """A finished list of instructions, with the words it is given and those it returns."""

    instructions: tuple[Instruction, ...]
    inputs: tuple[str, ...]
    outputs: tuple[Word, ...]

    def text(self) -> str:
        """One block of inline PTX: $0, $1, ... are the outputs, then the inputs.

        The outputs are copied at the very end, when no input is needed any more, as an output may share a
        register with an input. The copies cost nothing, ptxas removes them.
        """
        operands = {name: f"${len(self.outputs) + k}" for k, name in enumerate(self.inputs)}

        def show(word: Word) -> str:
            return hex(word) if isinstance(word, int) else operands.get(word, word)

        count = len(self.instructions)
        lines = ["{", f".reg .b32 t<{count}>;", f".reg .pred q<{count}>;"]
        for i in self.instructions:
            lines.append(f"{i.mnemonic} {', '.join(map(show, (i.result, *i.arguments)))};")
        lines += [f"mov.b32 ${k}, {show(word)};" for k, word in enumerate(self.outputs)]
        return "\n".join([*lines, "}"])

    def run(self, *inputs: Sequence[int]) -> list[int]:
        """What the program returns, on plain integers, given its inputs one after another."""
        words = [word for group in inputs for word in group]
        known: dict[Word, int] = dict(zip(self.inputs, words, strict=True))
        assert all(0 <= word <= LOW for word in words), words
        carry = 0
        for i in self.instructions:
            exact = _VALUES[i.operation](*(known.get(x, x) for x in i.arguments))
            if i.takes:
                exact += -carry if i.operation == "sub" else carry
            out_of_range = exact >> WIDTH
            if i.gives:
                carry = abs(out_of_range)
                assert carry <= 1, i
            else:
                assert i.wraps or out_of_range == 0, f"{i} loses a carry: {exact:#x}"
            known[i.result] = exact & LOW
        return [known[x] if isinstance(x, str) else x for x in self.outputs]

    @property
    def wide_products(self) -> int:
        """Products of which both halves are made, one after the other: one instruction of the GPU each."""
        return sum(
            (low.operation, high.operation) == ("mad.lo", "mad.hi")
            and low.arguments[:2] == high.arguments[:2]
            for low, high in zip(self.instructions, self.instructions[1:], strict=False)
        )

    @property
    def low_products(self) -> int:
        """Products of which only the lower half is made: half the cost of a wide one."""
        lower_halves = sum(i.operation in ("mul.lo", "mad.lo") for i in self.instructions)
        return lower_halves - self.wide_products
