"""A circuit as templates and a table of instances, and the builder that gadgets write it with.

While a circuit is built, a variable is an int: aux j is j, input i is -1 - i. Lists of bits are int64
arrays that may also hold the constants FALSE_BIT and TRUE_BIT. Values are given from outside for *free*
variables only (see `numbers.py`); every other one follows from its instance's externals.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from cuzk.circuit.marks import Marks
from cuzk.circuit.r1cs import Template
from cuzk.circuit.tables import flat_templates, full_position, starts
from cuzk.circuit.waves import Waves, waves_of
from cuzk.kernels.circuit.instances import INSTANCE, Instances, Templates

Bits = NDArray[np.int64]

FALSE_BIT, TRUE_BIT = -1, -2
CONSTANT_BITS = (FALSE_BIT, TRUE_BIT)


@dataclass(frozen=True, kw_only=True, eq=False)
class Circuit:
    """The rows and variables of one circuit; what they mean is known to whoever built it.

    Its rows are those of the instances in order, then one (input) * {} = {} for each input, ONE included.

    instances     the table; externals as variables: input i is i, aux j is num_inputs + j
    strands       where strands of instances begin, and their end: the first comes before all others, which
                  do not depend on each other
    strand_names  of each, for messages
    sections      (parent, name) of each section; parent -1 at the top
    section       (instances,) int64: the section that each belongs to, of those of its strand
    """

    name: str
    num_inputs: int
    num_aux: int
    templates: tuple[Template, ...]
    instances: Instances
    strands: tuple[int, ...]
    strand_names: tuple[str, ...]
    sections: tuple[tuple[int, str], ...]
    section: NDArray[np.int64]

    @property
    def rows(self) -> int:
        """Rows of the instances, without those of the inputs."""
        return int(self.instance_counts @ [template.rows for template in self.templates])

    @property
    def num_constraints(self) -> int:
        """All rows."""
        return self.rows + self.num_inputs

    @cached_property
    def instance_counts(self) -> NDArray[np.int64]:
        """(templates,) how many instances each has."""
        return np.bincount(self.instances.table["template"], minlength=len(self.templates))

    @property
    def nonzeros(self) -> tuple[int, int, int]:
        """Terms of A, B and C, the inputs' rows included."""
        per_template = np.array([template.nonzeros for template in self.templates])
        a, b, c = (self.instance_counts @ per_template).tolist()
        return a + self.num_inputs, b, c

    @cached_property
    def flat_templates(self) -> Templates:
        """The templates as kernels read them."""
        return flat_templates(self.templates)

    @cached_property
    def waves(self) -> Waves:
        """The instances in the order in which many threads fill them."""
        return waves_of(self.templates, self.instances, self.num_inputs)

    @property
    def num_full(self) -> int:
        """Aux variables that are no bits."""
        return int(self.instance_counts @ [len(template.full) for template in self.templates])

    @cached_property
    def full(self) -> Marks:
        """The variables whose values are numbers, not bits, in the order of an assignment; all inputs are."""
        own = self._by_aux([~template.aux_is_bit for template in self.templates])
        return np.packbits(np.concatenate([np.ones(self.num_inputs, dtype=np.bool_), own]))

    def _by_aux(self, own: Sequence[NDArray[np.bool_]]) -> NDArray[np.bool_]:
        """(aux,) from what each template says of its own variables; no gaps are between instances."""
        none, numbers = np.zeros(0, dtype=np.bool_), self.instances.table["template"].tolist()
        return np.concatenate([none, *(own[number] for number in numbers)])

    def instances_of(self, template: int) -> NDArray[np.int64]:
        """Which instances have the template with this number."""
        return np.flatnonzero(self.instances.table["template"] == template)

    def occurs(self, side: int) -> NDArray[np.bool_]:
        """(inputs + aux,) bool: which variables have a coefficient in A (0) or B (1)."""
        count = self.num_inputs + self.num_aux
        return np.unpackbits(self.packed_occurrences[side], count=count).view(np.bool_)

    @cached_property
    def packed_occurrences(self) -> tuple[Marks, Marks]:
        """What `occurs` gives for A and for B, as `marks`."""
        return np.packbits(self._occurs(0)), np.packbits(self._occurs(1))

    def _occurs(self, side: int) -> NDArray[np.bool_]:
        own_variables = self._by_aux([t.occurs(side)[t.first_own_slot :] for t in self.templates])
        seen = np.concatenate([np.full(self.num_inputs, side == 0), own_variables])
        externals, table = self.instances, self.instances.table
        for number, template in enumerate(self.templates):
            which = self.instances_of(number)
            slots = template.occurs(side)
            seen[0] |= slots[0] and len(which) > 0
            bits, own = 1 + template.external_bits, template.first_own_slot
            for kind, begins, variables, offset in (
                (slots[1:bits], table["bits_start"], externals.external_bits, self.num_inputs),
                (slots[bits:own], table["numbers_start"], externals.external_numbers, 0),
            ):
                places = begins[which][:, None] + np.flatnonzero(kind)
                seen[variables[places].astype(np.int64) + offset] = True
        return seen

    @property
    def a_aux_density(self) -> NDArray[np.bool_]:
        """(num_aux,) which aux variables occur in A."""
        return self.occurs(0)[self.num_inputs :]

    def name_of_row(self, row: int) -> str:
        """What row `row` is: sections from the outside in, then the part of the gadget."""
        if row >= self.rows:
            return f"input {row - self.rows}"
        # Instances without rows share their successor's first row: the last one that begins here has it.
        table = self.instances.table
        instance = int(np.searchsorted(table["first_row"], row, side="right")) - 1
        template = self.templates[table["template"][instance]]
        parts = [template.label_of(row - int(table["first_row"][instance]))]
        strand = int(np.searchsorted(self.strands, instance, side="right")) - 1
        section = int(self.section[instance])
        while section >= 0:
            section, name = self.sections[section]
            parts.append(name)
        parts.append(self.strand_names[strand])
        return ", ".join(part for part in reversed(parts) if part)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Place:
    """How far a circuit has been built."""

    rows: int
    aux: int
    inputs: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Block:
    """Instances one after another: columns of the table, and the externals of all of them."""

    template: NDArray[np.int64]
    first_row: NDArray[np.int64]
    first_aux: NDArray[np.int64]
    section: NDArray[np.int64]
    bits: Bits
    numbers: NDArray[np.int64]

    def copies(self, count: int, begin: _Place, end: _Place) -> _Block:
        """So many copies, behind the block that was built from `begin` to `end`.

        A variable of the block becomes that of the copy; all others stay.
        """
        step = np.arange(1, count + 1)[:, None]
        rows, aux, inputs = end.rows - begin.rows, end.aux - begin.aux, end.inputs - begin.inputs
        bits_shift = aux * (self.bits >= begin.aux).astype(np.int64)
        numbers_shift = aux * (self.numbers >= begin.aux).astype(np.int64)
        numbers_shift -= inputs * (self.numbers < -begin.inputs).astype(np.int64)
        return _Block(
            template=np.tile(self.template, count),
            first_row=(self.first_row + rows * step).ravel(),
            first_aux=(self.first_aux + aux * step).ravel(),
            section=np.tile(self.section, count),
            bits=(self.bits + bits_shift * step).ravel(),
            numbers=(self.numbers + numbers_shift * step).ravel(),
        )


class CircuitBuilder:
    """Collects instances in order. Gadgets allocate through it; `circuit` closes it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._inputs = 1
        self._aux = self._rows = self._built = 0
        self._numbering: dict[Template, int] = {}
        self._blocks: list[_Block] = []  # all before what follows
        self._instances: list[tuple[int, int, int, int]] = []  # columns of a block
        self._external_bits: list[Bits] = []
        self._external_numbers: list[int] = []
        self._strands, self._strand_names = [0], [""]
        self._sections: list[tuple[int, str]] = []
        self._section = -1

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        """Names what is built inside."""
        outer, self._section = self._section, len(self._sections)
        self._sections.append((outer, name))
        yield
        self._section = outer

    def begin_strand(self, name: str = "") -> None:
        """What follows depends on the first strand and on itself only."""
        self._strands.append(self._built + len(self._instances))
        self._strand_names.append(name)

    @contextmanager
    def strands(self, noun: str, count: int) -> Iterator[None]:
        """`count` strands alike, "noun 0" and so on: the first is built inside, the others are its copies."""
        self._end_block()
        begin = self._place
        self.begin_strand(f"{noun} 0")
        yield
        built, end = self._end_block(), self._place
        self._add(built.copies(count - 1, begin, end))
        for number in range(1, count):
            self._strands.append(self._strands[-1] + len(built.template))
            self._strand_names.append(f"{noun} {number}")
        self._rows += (count - 1) * (end.rows - begin.rows)
        self._aux += (count - 1) * (end.aux - begin.aux)
        self._inputs += (count - 1) * (end.inputs - begin.inputs)

    @property
    def _place(self) -> _Place:
        return _Place(rows=self._rows, aux=self._aux, inputs=self._inputs)

    def _end_block(self) -> _Block:
        """The instances since the last block, as a block."""
        columns = np.array(self._instances, dtype=np.int64).reshape(-1, 4).T
        template, first_row, first_aux, section = columns
        block = _Block(
            template=template,
            first_row=first_row,
            first_aux=first_aux,
            section=section,
            bits=np.concatenate([np.zeros(0, np.int64), *self._external_bits]),
            numbers=np.array(self._external_numbers, dtype=np.int64),
        )
        for collected in (self._instances, self._external_bits, self._external_numbers):
            collected.clear()
        self._add(block)
        return block

    def _add(self, block: _Block) -> None:
        self._blocks.append(block)
        self._built += len(block.template)

    def new_input(self) -> int:
        """The variable of a new input. The instance that takes it among its numbers sets its value."""
        self._inputs += 1
        return -self._inputs

    def instance(self, template: Template, *, bits: Bits | None = None, numbers: Sequence[int] = ()) -> Bits:
        """Append an instance over these externals; the variables that the template hands on."""
        given = 0 if bits is None else len(bits)
        assert (given, len(numbers)) == (template.external_bits, template.external_numbers), template.name
        number = self._numbering.setdefault(template, len(self._numbering))
        self._instances.append((number, self._rows, self._aux, self._section))
        if bits is not None:
            self._external_bits.append(bits)
        self._external_numbers += numbers
        outputs = self._aux + template.outputs
        self._rows += template.rows
        self._aux += template.aux
        return outputs

    def circuit(self) -> Circuit:
        """The circuit as built so far."""
        self._end_block()
        numbers = self._joined("numbers")
        return Circuit(
            name=self._name,
            num_inputs=self._inputs,
            num_aux=self._aux,
            templates=tuple(self._numbering),
            instances=Instances(
                table=(table := self._table()),
                external_bits=self._joined("bits").astype(np.uint32),
                external_numbers=np.where(numbers < 0, -1 - numbers, self._inputs + numbers).astype(
                    np.uint32
                ),
                external_values=self._values(table, numbers).astype(np.uint32),
            ),
            strands=(*self._strands, len(table)),
            strand_names=tuple(self._strand_names),
            sections=tuple(self._sections),
            section=self._joined("section"),
        )

    def _joined(self, column: str) -> NDArray[np.int64]:
        return np.concatenate([getattr(block, column) for block in self._blocks])

    def _table(self) -> NDArray[np.void]:
        templates = tuple(self._numbering)
        table = np.zeros(self._built, dtype=INSTANCE)
        for column in ("template", "first_row", "first_aux"):
            table[column] = self._joined(column)
        for column, counts, first in (
            ("bits_start", [template.external_bits for template in templates], 0),
            ("numbers_start", [template.external_numbers for template in templates], 0),
            ("first_value", [len(template.full) for template in templates], self._inputs),
        ):
            each = np.array(counts, dtype=np.int64)[table["template"]]
            table[column] = first + np.cumsum(each) - each
        return table

    def _values(self, table: NDArray[np.void], numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where in an assignment's values the variables are, none of which is a bit."""
        positions = [full_position(template) for template in self._numbering]
        template_starts = starts([len(part) for part in positions])
        owner = np.searchsorted(np.ascontiguousarray(table["first_aux"]), numbers, side="right") - 1
        own = table[owner]
        place = template_starts[own["template"]] + numbers - own["first_aux"]
        is_input = numbers < 0
        position = np.concatenate([np.zeros(1, np.int32), *positions])[np.where(is_input, 0, 1 + place)]
        assert (position >= 0).all(), self._name
        return np.where(is_input, -1 - numbers, own["first_value"] + position)
