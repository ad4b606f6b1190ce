"""All variables and rows of a partition on the host, to look at them; computed by the CPU or by a GPU.

For proofs neither is needed: targets leave what they compute where it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Protocol

from cuzk.circuit.builder import Circuit
from cuzk.circuit.rows import A, B, C, evaluate_side, unsatisfied_row
from cuzk.circuit.witness import Assignment, FreeValues, assign
from cuzk.kernels.device.choose import Choice
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.fr_vector import Vector


class Synthesis(Protocol):
    """Of one partition after another."""

    def assign(self, free: FreeValues) -> Assignment:
        """All variables of a partition, which the rest is about; they hold until the next."""

    def rows(self, side: int) -> Vector:
        """A z, B z or C z of every row (side A, B, C): (num_constraints, 4) canonical."""

    def unsatisfied_row(self) -> tuple[int, str] | None:
        """The first row whose a * b is not c, and its gadget; None if all are satisfied."""


@contextmanager
def synthesis_on(choice: Choice, circuit: Circuit) -> Iterator[Synthesis]:
    """On the card that was chosen, which is opened and given back, or on the CPU."""
    if choice.card is None:
        yield CpuSynthesis(choice.host, circuit)
        return
    from cuzk.groth16.gpu.synthesis import HostSynthesis  # needs numba-cuda
    from cuzk.kernels.device.cuda import CudaDevice

    with CudaDevice(choice.card.uuid) as device, closing(HostSynthesis(device, circuit)) as synthesis:
        yield synthesis


class CpuSynthesis:
    """See `Synthesis`. Rows are kept until the next partition: a check asks for them again."""

    def __init__(self, device: CpuDevice, circuit: Circuit) -> None:
        self._device, self._circuit = device, circuit
        self._rows: dict[int, Vector] = {}

    def assign(self, free: FreeValues) -> Assignment:
        self._rows.clear()
        self._assignment = assign(self._device, self._circuit, free)
        return self._assignment

    def rows(self, side: int) -> Vector:
        if side not in self._rows:
            self._rows[side] = evaluate_side(self._device, self._circuit, self._assignment, side)
        return self._rows[side]

    def unsatisfied_row(self) -> tuple[int, str] | None:
        return unsatisfied_row(self._device, self._circuit, *(self.rows(side) for side in (A, B, C)))
