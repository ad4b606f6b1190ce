"""What the engine asks of those who know what is proven: three small protocols, and nothing of fields.

    Work    the inputs of one job: prepares its partitions on the host, checks proofs, joins them
    Setup   the parameters of a circuit: says what they take, opens them on a device
    Prover  a setup on one device: turns what was prepared into a proof, on the device in its `Turn`

All methods are called without any lock of the engine's, from several threads at once.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from cuzk.engine.turn import Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Bytes that a setup takes while it is open on one device, the working memory of its proofs included.

    device  on the card; 0 where the device is the CPU
    host    beside it
    """

    device: int
    host: int


class Prover(Protocol):
    """A setup on one device. The workers of the device share it, unless nothing locks them."""

    def prove(self, prepared: Any, turn: Turn) -> bytes:
        """The proof of what `Work.prepare` gave, not yet checked.

        Launches and waits for the device happen inside `with turn.on_device()` only, everything else
        outside. Whatever the turn raises goes through and leaves the prover usable; after any other exception
        the prover is closed.
        """

    def close(self) -> None:
        """Give back what it holds, on the device and on the host. Called once, when nobody uses it."""


class Setup(Protocol):
    """The parameters of a circuit. Setups of equal keys are the same."""

    @property
    def name(self) -> str:
        """As users read it: porep-32GiB."""

    @property
    def key(self) -> Hashable: ...

    def needs(self, device: str) -> Needs:
        """What it will take on that device. Raises ResourceError if it is known not to fit."""

    def open(self, device: str) -> Prover:
        """The setup on that device, ready to prove. May take minutes; the memory has been reserved."""


class Work(Protocol):
    """The inputs of one job, read and held in memory."""

    @property
    def kind(self) -> str:
        """As users read it: porep-c2."""

    @property
    def digest(self) -> str:
        """Of every input: hexadecimal digits. Equal digests are the same work."""

    @property
    def setup(self) -> Setup: ...

    @property
    def partitions(self) -> tuple[int, ...]:
        """Ascending, at least one."""

    @property
    def input_bytes(self) -> int:
        """What the inputs take on the host, from the submission to the end of the job."""

    @property
    def partition_bytes(self) -> int:
        """What one partition takes on the host, from the begin of its preparation until it is proven."""

    def prepare(self, partition: int) -> Any:
        """All that can be done on the host before a device is needed: checks, witness. For any device."""

    def holds(self, partition: int, proof: bytes) -> bool:
        """Whether the proof of one partition verifies."""

    def assemble(self, proofs: Sequence[bytes]) -> bytes:
        """The whole proof, from those of all partitions in order, of each of which `holds` was true.

        Raises ProofError for one that did not hold there.
        """
