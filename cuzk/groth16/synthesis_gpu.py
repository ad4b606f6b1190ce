"""Synthesis on a GPU: from the free values of a circuit to all variables, rows, and scalars of the sections.

1 place    free values go up, some megabytes, to where the circuit allocated them
2 fill     the instances' variables, wave by wave: a recorded graph of launches, a block an instance
3 rows     A z, B z and C z where the transforms want them, a block an instance
4 scalars  of a section of points: bits one after another, full scalars
Memory     a byte a variable, 32 bytes for each that is no bit, and tables: 130, 54 and 50 MB at 32 GiB
Twins      `circuit.witness`, `circuit.rows` and `query` on the CPU
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.circuit.builder import Circuit
from cuzk.circuit.rows import A, B, C
from cuzk.circuit.waves import waves_of
from cuzk.circuit.witness import FreeValues, free_places
from cuzk.groth16.query import Selection
from cuzk.kernels import selection_gpu, template_rows_gpu, witness_gpu
from cuzk.kernels.cuda_jit import CudaKernel
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_launch import Launch
from cuzk.kernels.device.cuda_memory import DeviceArray
from cuzk.kernels.instances_gpu import upload_tables
from cuzk.kernels.selection_gpu import MARKS_A_WORD, take_marked, take_numbers
from cuzk.kernels.template_rows_gpu import evaluate_rows, find_unsatisfied
from cuzk.kernels.witness_gpu import fill_wave, place_bits, place_numbers

_NUMBER_WORDS = 8
_ALIGNMENT = 16  # of the first aux variable's bit: sums read bits eight at a time
_MARKS_A_BYTE = 8
_POPULATION = np.array([byte.bit_count() for byte in range(256)], np.uint8)


class _OnCard:
    """Arrays of a device that are freed together, by `close`."""

    def __init__(self, device: CudaDevice) -> None:
        self.device = device
        self._held: list[DeviceArray] = []

    def _empty(self, shape: int | tuple[int, ...], dtype: Any) -> DeviceArray:
        array = self.device.allocate(shape, dtype)
        self._held.append(array)
        return array

    def _copy(self, array: NDArray[Any]) -> DeviceArray:
        copy = self.device.upload(array)
        self._held.append(copy)
        return copy

    def close(self) -> None:
        for array in self._held:
            array.close()


class DeviceSynthesis(_OnCard):
    """The variables of a circuit on a card, for one partition after another.

    Work is submitted to a stream of its own, and the host waits only in `unsatisfied_row` and `synchronise`.

    bits    (num_aux,) uint8, 0 where the variable is no bit
    values  (num_inputs + k, 4) uint64, canonical; both as in `circuit.witness.Assignment`
    """

    def __init__(self, device: CudaDevice, circuit: Circuit) -> None:
        super().__init__(device)
        self.circuit = circuit
        self.stream = device.new_stream()
        try:
            self._make_room()
            self._tables = upload_tables(device, circuit.flat_templates, circuit.instances)
            self._held += self._tables
            waves = waves_of(circuit)
            self._order, self._wave_starts = self._copy(waves.order), waves.starts
            self._waves = self._wave_launches()
            self._fill = device.record(self._submit_waves, stream=self.stream)
            device.synchronise()
        except BaseException:
            self.close()
            raise
        self._slots = max(template.first_own_slot + template.aux for template in circuit.templates)

    def _make_room(self) -> None:
        circuit, device = self.circuit, self.device
        lead = -(-circuit.num_inputs // _ALIGNMENT) * _ALIGNMENT
        padded = self._empty(lead + circuit.num_aux, np.uint8)
        device.clear(padded, stream=self.stream)
        self.bits = padded.rows(lead, padded.shape[0])
        #: The same behind as many zeros as there are inputs.
        self.all_bits = padded.rows(lead - circuit.num_inputs, padded.shape[0])
        self.values = self._empty((circuit.num_inputs + len(circuit.full_aux), 4), np.uint64)
        self.words = _as_words(self.values)
        one = np.array([[1, 0, 0, 0]], np.uint64)
        device.upload(one, into=self.values.rows(0, 1), stream=self.stream)
        number_places, bit_places = free_places(circuit)
        self._places = self._copy(number_places), self._copy(bit_places)
        self._free = (
            self._empty((len(number_places), _NUMBER_WORDS), np.uint32),
            self._empty(len(bit_places), np.uint8),
        )

    def _wave_launches(self) -> list[Launch]:
        kernel = self.device.load(fill_wave)
        return [
            kernel.prepare(
                end - first, witness_gpu.THREADS,
                *self._tables, self._order, first, self.bits, self.words,
            )
            for first, end in pairwise(self._wave_starts)
        ]  # fmt: skip

    def _submit_waves(self) -> None:
        for launch in self._waves:
            launch.run(self.stream)

    def assign(self, free: FreeValues) -> None:
        """All variables of a partition."""
        numbers = np.ascontiguousarray(free.numbers).view(np.uint32)
        self._place(0, place_numbers, numbers, self.words)
        self._place(1, place_bits, free.bits, self.bits)
        self._fill.run(self.stream)

    def _place(self, which: int, kernel: CudaKernel, given: NDArray[Any], into: DeviceArray) -> None:
        """Numbers (0) or bits (1) from the host to where they belong."""
        source, places = self._free[which], self._places[which]
        self.device.upload(given, into=source, stream=self.stream)
        self.run(kernel, places.shape[0], witness_gpu.THREADS, source, places, places.shape[0], into)

    def run(self, kernel: CudaKernel, items: int, threads: int, *arguments: Any) -> None:
        """A thread an item."""
        self.device.launch(kernel, -(-items // threads), threads, *arguments, stream=self.stream)

    def synchronise(self) -> None:
        """Wait until all that was asked for is there."""
        self.stream.synchronise()

    def rows(self, side: int, out: DeviceArray) -> None:
        """out = A z, B z or C z (side A, B, C), canonical, and 0 behind the last row; (m, 4) uint64."""
        circuit, device = self.circuit, self.device
        device.clear(out.rows(circuit.rows, out.shape[0]), stream=self.stream)
        if side == A:
            inputs = self.values.rows(0, circuit.num_inputs)
            device.copy(inputs, out.rows(circuit.rows, circuit.num_constraints), stream=self.stream)
        device.launch(
            evaluate_rows, len(circuit.instances.table), template_rows_gpu.THREADS,
            *self._tables, side, self.bits, self.words, _as_words(out),
            shared_bytes=self._slots, stream=self.stream,
        )  # fmt: skip

    def unsatisfied_row(self) -> tuple[int, str] | None:
        """The first row whose a * b is not c, and its name; None if all are satisfied."""
        device, count = self.device, self.circuit.num_constraints
        with device.allocate((3 * count, 4), np.uint64) as memory, device.allocate(1, np.uint32) as found:
            sides = [memory.rows(side * count, (side + 1) * count) for side in (A, B, C)]
            for side, vector in enumerate(sides):
                self.rows(side, vector)
            device.clear(found, stream=self.stream)
            threads = template_rows_gpu.THREADS
            self.run(find_unsatisfied, count, threads, *map(_as_words, sides), count, found)
            left = int(device.download(found, stream=self.stream)[0])
        return (count - left, self.circuit.name_of_row(count - left)) if left else None


class SectionScalars(_OnCard):
    """The scalars of a section's points, from a synthesis: what `query.Query` is on the CPU.

    bits          (n,) uint8, 0 where the scalar is full
    full_index    (k,) uint32, on the host, ascending
    full_scalars  (k, 4) uint64, canonical
    """

    def __init__(self, synthesis: DeviceSynthesis, selection: Selection) -> None:
        super().__init__(synthesis.device)
        self._synthesis = synthesis
        self.full_index = selection.full_index
        self._takes_all = not len(selection.inputs) and bool(selection.aux.all())
        values = np.concatenate([selection.inputs, synthesis.circuit.num_inputs + selection.full])
        try:
            self._index = self._copy(values.astype(np.uint32))
            self.full_scalars = self._empty((len(values), 4), np.uint64)
            self.bits = synthesis.bits if self._takes_all else self._marked(selection)
        except BaseException:
            self.close()
            raise

    def _marked(self, selection: Selection) -> DeviceArray:
        """Room for the bits of the section's variables, which are marked among all."""
        inputs = np.zeros(self._synthesis.circuit.num_inputs, np.bool_)
        inputs[selection.inputs] = True
        chosen = np.concatenate([inputs, selection.aux])
        bytes_a_word = MARKS_A_WORD // _MARKS_A_BYTE
        marks = np.zeros((-(-len(chosen) // MARKS_A_WORD), bytes_a_word), np.uint8)
        packed = np.packbits(chosen, bitorder="little")
        marks.reshape(-1)[: len(packed)] = packed
        counts = _POPULATION[marks].sum(axis=1, dtype=np.uint32)
        ends = np.cumsum(counts, dtype=np.uint32)
        self._marks = self._copy(marks.view(np.uint32).reshape(-1))
        self._starts = self._copy(ends - counts)
        return self._empty(int(ends[-1]), np.uint8)

    def take(self) -> None:
        """From the variables as they are in the stream now."""
        threads, count = selection_gpu.THREADS, self._index.shape[0]
        words, out = self._synthesis.words, _as_words(self.full_scalars)
        self._synthesis.run(take_numbers, count, threads, words, self._index, count, out)
        if not self._takes_all:
            marked = self._marks, self._starts, self._marks.shape[0]
            self._synthesis.run(take_marked, marked[2], threads, self._synthesis.all_bits, *marked, self.bits)


def _as_words(vector: DeviceArray) -> DeviceArray:
    return vector.carve(vector.nbytes // 4, np.uint32)
