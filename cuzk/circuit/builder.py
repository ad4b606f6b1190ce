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
from cuzk.circuit.tables import flat_templates, starts
from cuzk.circuit.waves import Waves, waves_of
from cuzk.kernels.instances import INSTANCE, Instances, Templates

Bits = NDArray[np.int64]

FALSE_BIT, TRUE_BIT = -1, -2
CONSTANT_BITS = (FALSE_BIT, TRUE_BIT)


@dataclass(frozen=True, kw_only=True, eq=False)
class Circuit:
    """The rows and variables of one circuit; what they mean is known to whoever built it.

    Its rows are those of the instances in order, then one (input) * {} = {} for each input, ONE included.

    instances  the table; externals as variables: input i is i, aux j is num_inputs + j
    strands    where strands of instances begin, and their end: the first comes before all others, which do
               not depend on each other
    full_aux   (k,) uint32, ascending: the aux variables that are no bits
    sections   (parent, name) of each section; parent -1 at the top
    section    (instances,) uint32: the section that each belongs to
    """

    name: str
    num_inputs: int
    num_aux: int
    templates: tuple[Template, ...]
    instances: Instances
    strands: tuple[int, ...]
    full_aux: NDArray[np.uint32]
    sections: tuple[tuple[int, str], ...]
    section: NDArray[np.uint32]

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
        return waves_of(self)

    @cached_property
    def full_variables(self) -> NDArray[np.int64]:
        """(k,) those whose values are numbers, in the order of an assignment: all inputs, then `full_aux`."""
        return np.concatenate([np.arange(self.num_inputs), self.num_inputs + self.full_aux.astype(np.int64)])

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
        seen = np.zeros(self.num_inputs + self.num_aux, dtype=np.bool_)
        if side == 0:
            seen[: self.num_inputs] = True
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
            for first in (self.num_inputs + table["first_aux"][which]).tolist():
                seen[first : first + template.aux] |= slots[own:]
        return seen

    @property
    def a_aux_density(self) -> NDArray[np.bool_]:
        """(num_aux,) which aux variables occur in A."""
        return self.occurs(0)[self.num_inputs :]

    @property
    def b_aux_density(self) -> NDArray[np.bool_]:
        """(num_aux,) which aux variables occur in B."""
        return self.occurs(1)[self.num_inputs :]

    def name_of_row(self, row: int) -> str:
        """What row `row` is: sections from the outside in, then the part of the gadget."""
        if row >= self.rows:
            return f"input {row - self.rows}"
        # Instances without rows share their successor's first row: the last one that begins here has it.
        table = self.instances.table
        instance = int(np.searchsorted(table["first_row"], row, side="right")) - 1
        template = self.templates[table["template"][instance]]
        parts = [template.label_of(row - int(table["first_row"][instance]))]
        section = int(self.section[instance])
        while section >= 0:
            section, name = self.sections[section]
            parts.append(name)
        return ", ".join(part for part in reversed(parts) if part)


class CircuitBuilder:
    """Collects instances in order. Gadgets allocate through it; `circuit` closes it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._inputs = 1
        self._aux = self._rows = 0
        self._numbering: dict[Template, int] = {}
        self._templates: list[int] = []
        self._first_rows: list[int] = []
        self._first_aux: list[int] = []
        self._external_bits: list[Bits] = []
        self._external_numbers: list[int] = []
        self._strands = [0]
        self._sections: list[tuple[int, str]] = []
        self._section = -1
        self._section_of: list[int] = []

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        """Names what is built inside."""
        outer, self._section = self._section, len(self._sections)
        self._sections.append((outer, name))
        yield
        self._section = outer

    def begin_strand(self) -> None:
        """What follows depends on the first strand and on itself only."""
        self._strands.append(len(self._templates))

    def new_input(self) -> int:
        """The variable of a new input. The instance that takes it among its numbers sets its value."""
        self._inputs += 1
        return -self._inputs

    def instance(self, template: Template, *, bits: Bits | None = None, numbers: Sequence[int] = ()) -> Bits:
        """Append an instance over these externals; the variables that the template hands on."""
        given = 0 if bits is None else len(bits)
        assert (given, len(numbers)) == (template.external_bits, template.external_numbers), template.name
        self._templates.append(self._numbering.setdefault(template, len(self._numbering)))
        self._first_rows.append(self._rows)
        self._first_aux.append(self._aux)
        self._section_of.append(self._section)
        if bits is not None:
            self._external_bits.append(bits)
        self._external_numbers += numbers
        outputs = self._aux + template.outputs
        self._rows += template.rows
        self._aux += template.aux
        return outputs

    def circuit(self) -> Circuit:
        """The circuit as built so far."""
        templates = tuple(self._numbering)
        table = np.zeros(len(self._templates), dtype=INSTANCE)
        table["template"] = self._templates
        table["first_row"] = self._first_rows
        table["first_aux"] = self._first_aux
        table["bits_start"] = starts([templates[t].external_bits for t in self._templates])
        table["numbers_start"] = starts([templates[t].external_numbers for t in self._templates])
        full_before = starts([len(templates[t].full) for t in self._templates])
        table["first_value"] = self._inputs + full_before
        full_aux = self._full_aux(table, full_before)
        numbers = np.array(self._external_numbers, dtype=np.int64)
        inputs, is_input = -1 - numbers, numbers < 0
        values = self._inputs + np.searchsorted(full_aux, numbers)
        return Circuit(
            name=self._name,
            num_inputs=self._inputs,
            num_aux=self._aux,
            templates=templates,
            instances=Instances(
                table=table,
                external_bits=np.concatenate([np.zeros(0, np.int64), *self._external_bits]).astype(np.uint32),
                external_numbers=np.where(is_input, inputs, self._inputs + numbers).astype(np.uint32),
                external_values=np.where(is_input, inputs, values).astype(np.uint32),
            ),
            strands=(*self._strands, len(table)),
            full_aux=full_aux,
            sections=tuple(self._sections),
            section=np.array(self._section_of, dtype=np.int64),
        )

    def _full_aux(self, table: NDArray[np.void], full_before: NDArray[np.int64]) -> NDArray[np.uint32]:
        """Ascending, the aux variables that are no bits."""
        counts = np.array([len(template.full) for template in self._numbering], dtype=np.int64)
        full_aux = np.repeat(table["first_aux"], counts[table["template"]])
        for template, number in self._numbering.items():
            which = np.flatnonzero(table["template"] == number)
            full_aux[full_before[which][:, None] + np.arange(len(template.full))] += template.full
        return full_aux.astype(np.uint32)
