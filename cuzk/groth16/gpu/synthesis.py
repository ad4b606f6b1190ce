"""Synthesis on a GPU: from the free values of a circuit to all variables, rows, and scalars of the sections.

1 place    free values go up, some megabytes, to where the circuit allocated them
2 fill     the instances' variables, wave by wave: a recorded graph of launches, a block an instance
3 take     the scalars of each section of points: bits one after another, full scalars
4 rows     A z, B z and C z where the transforms want them, a block an instance
Twins      `circuit.witness`, `query` and `circuit.rows` on the CPU
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.circuit.builder import Circuit
from cuzk.circuit.marks import Marks, counts_before
from cuzk.circuit.rows import A, B, C
from cuzk.circuit.witness import Assignment, FreeValues, witness_kinds
from cuzk.groth16.gpu.synthesis_plan import MARKED, TAKEN, lead_bytes, synthesis_layout, tables_of, zero_row
from cuzk.groth16.parameters.params_file import SectionName
from cuzk.groth16.qap import full_counts, point_counts
from cuzk.groth16.query import Selection, selections
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_launch import Launch
from cuzk.kernels.device.cuda_memory import DeviceArray
from cuzk.kernels.fr_vector import Vector
from cuzk.kernels.gpu import selection, template_rows, witness
from cuzk.kernels.gpu.jit import CudaKernel
from cuzk.kernels.gpu.selection import take_marked, take_numbers
from cuzk.kernels.gpu.template_rows import evaluate_rows, find_unsatisfied
from cuzk.kernels.gpu.witness import fill_wave, place_bits, place_numbers

_WORD_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SectionScalars:
    """The scalars of a section's points on the card: what `query.Query` is on the CPU.

    bits          (n,) uint8, 0 where the scalar is full
    full_index    (k,) uint32, on the host, ascending; None where all points are taken with full scalars
    full_scalars  (k, 4) uint64, canonical, or (n, 4), 0 where the scalar is a bit
    """

    bits: DeviceArray
    full_index: NDArray[np.uint32] | None
    full_scalars: DeviceArray


class DeviceSynthesis:
    """The variables of a circuit on a card, for one partition after another. `close` frees them.

    Work is submitted to a stream of its own; the host waits in `synchronise` and `unsatisfied_row`.

    bits     (num_aux,) uint8, 0 where the variable is no bit
    values   (num_inputs + k, 4) uint64, canonical; both as in `circuit.witness.Assignment`
    scalars  of all sections but h
    """

    def __init__(self, device: CudaDevice, circuit: Circuit) -> None:
        self.device, self.circuit = device, circuit
        layout = synthesis_layout(circuit)
        self._memory = device.allocate(layout.nbytes, np.uint8)
        try:
            self.stream = device.new_stream()
            self._at = layout.carve(self._memory)
            self._name_parts()
            self._upload_tables()
            self._waves = self._wave_launches()
            self._fill = device.record(self._submit_waves, stream=self.stream)
        except BaseException:
            self._memory.close()
            raise

    def _name_parts(self) -> None:
        circuit, at = self.circuit, self._at
        first, end = lead_bytes(circuit), at["bits"].shape[0]
        self.bits = at["bits"].rows(first, end)
        self._all_bits = at["bits"].rows(first - circuit.num_inputs, end)  # those of inputs are 0
        self.values = at["values"].rows(0, zero_row(circuit))
        self._words = _as_words(self.values)
        self._tables = [part for name, part in at.items() if name.startswith("table ")]
        self.scalars: dict[SectionName, SectionScalars] = {
            section: SectionScalars(
                bits=at[f"bits of {section}"] if section in MARKED else self.bits,
                full_index=None if self._all_full(section) else self._selection(section).full_index,
                full_scalars=at[f"full of {section}"],
            )
            for section in TAKEN
        }
        self.scalars["b_g2"] = self.scalars["b_g1"]

    def _upload_tables(self) -> None:
        circuit, tables = self.circuit, tables_of(self.circuit)
        for section in TAKEN:
            tables[f"index of {section}"] = self._rows_of_full_scalars(section)
            if section in MARKED:
                words, starts = words_of(self._selection(section).marks)
                tables |= {f"marks of {section}": words, f"starts of {section}": starts}
        for name, table in tables.items():
            self.device.upload(table, into=self._at[name], stream=self.stream)
        last = zero_row(circuit)
        self.device.clear(self._at["bits"], stream=self.stream)
        self.device.clear(self._at["values"].rows(last, last + 1), stream=self.stream)
        one = np.array([[1, 0, 0, 0]], np.uint64)
        self.device.upload(one, into=self.values.rows(0, 1), stream=self.stream)

    def _selection(self, section: SectionName) -> Selection:
        return selections(self.circuit).of(section)

    def _all_full(self, section: SectionName) -> bool:
        return full_counts(self.circuit).of(section) == point_counts(self.circuit).of(section)

    def _rows_of_full_scalars(self, section: SectionName) -> NDArray[np.uint32]:
        """Where in the values the full scalars are; where all are taken as such, a bit's is the row of 0."""
        selection = self._selection(section)
        if not self._all_full(section):
            return selection.values
        rows = np.full(point_counts(self.circuit).of(section), zero_row(self.circuit), np.uint32)
        rows[selection.full_index] = selection.values
        return rows

    def _wave_launches(self) -> list[Launch]:
        kernel, order, circuit = self.device.load(fill_wave), self._at["order"], self.circuit
        kinds = witness_kinds(circuit)[circuit.waves.order]
        return [
            kernel.prepare(
                end - first, witness.threads_of_wave(kinds[first:end]),
                *self._tables, order, first, self.bits, self._words,
            )
            for first, end in pairwise(circuit.waves.starts)
        ]  # fmt: skip

    def _submit_waves(self) -> None:
        for launch in self._waves:
            launch.run(self.stream)

    def assign(self, free: FreeValues) -> None:
        """All variables of a partition, and their scalars."""
        numbers = np.ascontiguousarray(free.numbers).view(np.uint32)
        self._place("numbers", place_numbers, numbers, self._words)
        self._place("bits", place_bits, free.bits, self.bits)
        self._fill.run(self.stream)
        for section in TAKEN:
            self._take(section)

    def _place(self, kind: str, kernel: CudaKernel, given: NDArray[Any], into: DeviceArray) -> None:
        """Free values from the host to where they belong."""
        source, places = self._at[f"free {kind}"], self._at[f"places of {kind}"]
        self.device.upload(given, into=source, stream=self.stream)
        self._run(kernel, places.shape[0], witness.THREADS, source, places, places.shape[0], into)

    def _take(self, section: SectionName) -> None:
        scalars, threads, index = (
            self.scalars[section],
            selection.THREADS,
            self._at[f"index of {section}"],
        )
        count, out = index.shape[0], _as_words(scalars.full_scalars)
        self._run(take_numbers, count, threads, self._words, index, count, out)
        if section in MARKED:
            marks, starts = self._at[f"marks of {section}"], self._at[f"starts of {section}"]
            words = marks.shape[0]
            self._run(take_marked, words, threads, self._all_bits, marks, starts, words, scalars.bits)

    def rows(self, side: int, out: DeviceArray) -> None:
        """out = A z, B z or C z (side A, B, C), canonical, and 0 behind the last row; (m, 4) uint64."""
        circuit, device = self.circuit, self.device
        device.clear(out.rows(circuit.rows, out.shape[0]), stream=self.stream)
        if side == A:
            inputs = self.values.rows(0, circuit.num_inputs)
            device.copy(inputs, out.rows(circuit.rows, circuit.num_constraints), stream=self.stream)
        slots = max(template.first_own_slot + template.aux for template in circuit.templates)
        device.launch(
            evaluate_rows, len(circuit.instances.table), template_rows.THREADS,
            *self._tables, side, self.bits, self._words, _as_words(out),
            shared_bytes=slots, stream=self.stream,
        )  # fmt: skip

    def unsatisfied_row(self, vectors: Sequence[DeviceArray] | None = None) -> tuple[int, str] | None:
        """The first row whose a * b is not c, and its name; None if all are satisfied.

        vectors  three for A z, B z and C z, (num_constraints or more, 4) uint64; without them they are
                 allocated meanwhile
        """
        device, count = self.device, self.circuit.num_constraints
        with ExitStack() as held:
            if vectors is None:
                vectors = [held.enter_context(device.allocate((count, 4), np.uint64)) for _ in range(3)]
            for side, vector in zip((A, B, C), vectors, strict=True):
                self.rows(side, vector)
            found = held.enter_context(device.allocate(1, np.uint32))
            device.clear(found, stream=self.stream)
            threads = template_rows.THREADS
            self._run(find_unsatisfied, count, threads, *map(_as_words, vectors), count, found)
            left = int(device.download(found, stream=self.stream)[0])
        return (count - left, self.circuit.name_of_row(count - left)) if left else None

    def _run(self, kernel: CudaKernel, items: int, threads: int, *arguments: Any) -> None:
        """A thread an item."""
        self.device.launch(kernel, -(-items // threads), threads, *arguments, stream=self.stream)

    def synchronise(self) -> None:
        """Wait until all that was asked for is there."""
        self.stream.synchronise()

    def close(self) -> None:
        for held in (self._fill, self.stream, self._memory):
            held.close()


class HostSynthesis:
    """See `synthesis.Synthesis`: what a card computes, on the host."""

    def __init__(self, device: CudaDevice, circuit: Circuit) -> None:
        self._synthesis = DeviceSynthesis(device, circuit)

    def assign(self, free: FreeValues) -> Assignment:
        held = self._synthesis
        held.assign(free)
        values, bits = (held.device.download(one, stream=held.stream) for one in (held.values, held.bits))
        return Assignment(values=values, bits=bits, num_inputs=held.circuit.num_inputs)

    def rows(self, side: int) -> Vector:
        held = self._synthesis
        with held.device.allocate((held.circuit.num_constraints, 4), np.uint64) as vector:
            held.rows(side, vector)
            return held.device.download(vector, stream=held.stream)

    def unsatisfied_row(self) -> tuple[int, str] | None:
        return self._synthesis.unsatisfied_row()

    def close(self) -> None:
        self._synthesis.close()


def words_of(marks: Marks) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Marks in words, and how many come before each word: what `take_marked` reads."""
    padded = np.zeros(-(-len(marks) // _WORD_BYTES) * _WORD_BYTES, np.uint8)
    padded[: len(marks)] = marks
    return padded.view(np.uint32), np.ascontiguousarray(counts_before(padded)[::_WORD_BYTES])


def _as_words(vector: DeviceArray) -> DeviceArray:
    return vector.carve(vector.nbytes // 4, np.uint32)
