"""What a proof asks of the machine that computes it: variables, rows, their quotient, sums over its points.

`target_cpu` and `gpu.target` answer; `prove` does not know which. A target belongs to one parameter file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cuzk.circuit.builder import Circuit
from cuzk.circuit.witness import FreeValues
from cuzk.errors import ParameterError
from cuzk.events import OnEvent, Progress, ignore
from cuzk.groth16.encoding import PointError, g1_of_coordinates, g2_of_coordinates
from cuzk.groth16.parameters.params_file import SectionName
from cuzk.groth16.parameters.verifying_key import NEXT
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.fr_vector import Vector
from cuzk.kernels.points import BadPoint


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Query:
    """What multiplies the points of one section: bits for most of them, full scalars for a few.

    bits          (n,) uint8, 0 where the scalar is full
    full_index    (k,) uint32, ascending
    full_scalars  (k, 4) uint64, canonical
    """

    bits: NDArray[np.uint8]
    full_index: NDArray[np.uint32]
    full_scalars: Vector

    def without_zeros(self) -> tuple[NDArray[np.uint32], Query]:
        """The points that count, and their query: bits that are all set, but for the full scalars."""
        counts = self.bits.astype(np.bool_)
        counts[self.full_index] = True
        index = np.flatnonzero(counts).astype(np.uint32)
        places = np.searchsorted(index, self.full_index).astype(np.uint32)
        return index, Query(bits=self.bits[index], full_index=places, full_scalars=self.full_scalars)

    def part(self, part: slice) -> Query:
        """The query of a slice of the points."""
        first, last = np.searchsorted(self.full_index, [part.start, part.stop])
        return Query(
            bits=self.bits[part],
            full_index=self.full_index[first:last] - np.uint32(part.start),
            full_scalars=self.full_scalars[first:last],
        )


#: The rest of a sum, on the host alone: gives the point.
End = Callable[[], Any]
#: A sum that may still be under way: its end, once the target is done with it. The progress counts points.
Pending = Callable[[Progress], End]


class Target(Protocol):
    """The heavy steps of the proofs under one parameter file. One proof at a time.

    name  as a user would give it after --device
    host  the threads for everything else
    """

    name: str
    host: CpuDevice

    def require_memory(self) -> None:
        """Raises ResourceError, with the plan, when the host has too little memory."""

    def prepare(self, on_event: OnEvent = ignore) -> None:
        """Begin what needs no witness; returns at once. A thread of its own tells how points are loaded."""

    def opened(self, circuit: Circuit) -> None:
        """Wait until it is certain that the device can be had and has the memory of a proof; else raise."""

    def loaded(self) -> None:
        """Wait until the points are where proofs need them. Raises what went wrong with them."""

    def ready(self, circuit: Circuit) -> None:
        """Make what all proofs of the circuit share, so that the first takes no longer than others."""

    def assign(self, circuit: Circuit, free: FreeValues) -> Any:
        """The values of all variables, for `rows` and `sum_over`; they hold until the next proof."""

    def rows(self, circuit: Circuit, assignment: Any) -> Any:
        """The values of A and B in all rows, for `quotient`."""

    def unsatisfied_row(self, circuit: Circuit, assignment: Any) -> tuple[int, str] | None:
        """The first row whose a * b is not c, and its gadget, with C evaluated; None if all are satisfied."""

    def quotient(self, rows: Any, progress: Progress) -> Any:
        """The coefficients of (A*B - C) / (X^m - 1), C = A*B row by row, for `sum_of_h`; uses up the rows.

        The progress counts transforms.
        """

    def sum_of_h(self, h: Any, progress: Progress) -> End:
        """The sum of h_i times point i of section h, in G1."""

    def sum_over(self, section: SectionName, circuit: Circuit, assignment: Any) -> Pending:
        """Begin the sum of a section's points times the values of its variables, in its group."""

    def require_good_points(self, on_event: OnEvent) -> None:
        """Check every point of the file, subgroup included. Raises ParameterError for a bad one."""

    def computed_ms(self) -> float | None:
        """Of the device's own clock, since the last `assign`, when all is done; None if it has none."""

    def close(self) -> None:
        """Give back what it holds; no proof follows."""


def group_point(section: SectionName, affine: Any) -> Any:
    """A sum as a point of the section's group. Raises PointError as `encoding`."""
    return g2_of_coordinates(affine) if section == "b_g2" else g1_of_coordinates(affine)


def bad_point(origin: str, section: SectionName, bad: BadPoint) -> ParameterError:
    return ParameterError(f"the point {bad.reason}", where=f"{origin}: {section}[{bad.index}]", next=NEXT)


def require_subgroup(origin: str, section: SectionName, random_sums: list[Any]) -> None:
    """Raises ParameterError when one of some random sums of a section's points is not of order r."""
    for affine in random_sums:
        try:
            group_point(section, affine)
        except PointError as error:
            raise ParameterError(
                "a point is on the curve, but outside the subgroup of order r",
                where=f"{origin}: {section}",
                next=NEXT,
            ) from error
