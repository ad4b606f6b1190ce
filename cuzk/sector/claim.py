"""What every kind of proof has in common, seen from above: an input that was read and can be proven."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from cuzk.kernels.device.cpu import CpuDevice

POREP, SNAP, WINDOW, WINNING = "porep-c2", "snap-update", "window-post", "winning-post"
"""The kinds of proof, as facts and logs have them."""

SHORT = {POREP: "porep", SNAP: "snap", WINDOW: "wpost", WINNING: "winning"}
"""As users write them, and messages to them."""


class CircuitShape(Protocol):
    """A kind of proof at a sector size: all that decides circuit and parameters. Equal ones are the same.

    kind            as `cuzk.proofs.kinds` and users name it: porep-c2
    name            of the sector size: 32GiB
    parameter_stem  the name of its parameter files, without suffix
    """

    @property
    def kind(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def sector_bytes(self) -> int: ...

    @property
    def parameter_stem(self) -> str: ...

    def __hash__(self) -> int: ...


class ProofInput(Protocol):
    """What one job proves, in one proof a partition: a frozen dataclass of plain values and arrays.

    Its fields, all but `origin`, which says where it came from, are what is proven: two inputs are the same
    work when these are equal.
    """

    @property
    def origin(self) -> str: ...

    @property
    def shape(self) -> CircuitShape: ...

    @property
    def partition_count(self) -> int: ...

    def check_statement(self) -> None:
        """The checks that need no vanilla proof and no compiler. Raises InputError."""

    def check_partition(self, partition: int, device: CpuDevice) -> None:
        """All that can be checked natively of one partition's vanilla proofs. Raises InputError."""

    def public_inputs(self, partition: int) -> NDArray[np.uint64]:
        """(n, 4) canonical, without ONE: what a verifier computes for itself, from the statement alone."""

    def facts(self) -> dict[str, dict[str, Any]]:
        """What it says, for users: strings, numbers and lists under headings and names in snake_case.
        Whatever the kind, `sector` has kind and sector_size."""
