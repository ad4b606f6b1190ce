"""Proofs as an engine sees them: the inputs of a job, parameters, and a prover on a device.

prepare     check of the vanilla proofs, free values                  host, any thread
on device   variables, rows, quotient, sums                           one target, one proof at a time
after       the ends of the sums, A, B, C, encoding; the check        host, the worker's thread
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass

from cuzk.circuit.builder import Circuit
from cuzk.circuit.witness import FreeValues, free_counts
from cuzk.engine.seam import Needs
from cuzk.engine.turn import Turn
from cuzk.errors import ProofError, ResourceError
from cuzk.groth16.parameters.params_file import Parameters
from cuzk.groth16.proof import PROOF_BYTES, Proof
from cuzk.groth16.prove import Randomizers, Sums, assemble, begin_proof
from cuzk.groth16.target import Target
from cuzk.groth16.verify import Verifier
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.proofs.input_digest import input_digest
from cuzk.proofs.kinds import free_values
from cuzk.proofs.places import Place
from cuzk.sector.claim import ProofInput

_NUMBER_BYTES = 32


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProofSetup:
    """Parameters with their circuit, for the devices of one engine.

    key     what tells the file from others
    places  by device: what it takes there, and its targets
    """

    name: str
    key: Hashable
    circuit: Circuit
    parameters: Parameters
    verifier: Verifier
    places: Mapping[str, Place]

    def needs(self, device: str) -> Needs:
        return self.places[device].needs

    def open(self, device: str) -> DeviceProver:
        place = self.places[device]
        return DeviceProver(self, place, place.open())

    @property
    def partition_bytes(self) -> int:
        """Of the free values of a partition."""
        numbers, bits = free_counts(self.circuit)
        return _NUMBER_BYTES * numbers + bits


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Prepared:
    """A partition that waits for a device."""

    free: FreeValues
    randomizers: Randomizers | None


class DeviceProver:
    """A setup on one device. Its target serves one proof at a time: the turn's lock, or its only worker."""

    def __init__(self, setup: ProofSetup, place: Place, target: Target) -> None:
        self._setup, self._place, self._target = setup, place, target

    def prove(self, prepared: Prepared, turn: Turn) -> bytes:
        try:
            finish = self._computed(prepared, turn)
        except ResourceError as error:
            self._place.ran_short(error)
            raise
        randomizers = prepared.randomizers or Randomizers.fresh()
        return assemble(self._setup.parameters, finish(), randomizers).to_bytes()

    def _computed(self, prepared: Prepared, turn: Turn) -> Callable[[], Sums]:
        """All that the device does; what comes back ends the sums on the host."""
        setup, target = self._setup, self._target
        with turn.on_device():
            assignment = target.assign(setup.circuit, prepared.free)
            turn.boundary()
            finish = begin_proof(
                target, setup.parameters, setup.circuit, assignment, on_event=lambda _: turn.boundary()
            )
            turn.computed(target.computed_ms())
        return finish

    def close(self) -> None:
        self._target.close()


class ProofWork:
    """The partitions of an input that are to be proven; its statement has been checked.

    host         threads for the checks
    randomizers  fixed ones, for tests; None gives fresh ones to every proof
    is_checked   so have the vanilla proofs been
    """

    def __init__(
        self,
        given: ProofInput,
        partitions: tuple[int, ...],
        setup: ProofSetup,
        host: CpuDevice,
        randomizers: Randomizers | None = None,
        *,
        is_checked: bool = False,
    ) -> None:
        self._given, self._host, self._randomizers = given, host, randomizers
        self._is_checked = is_checked
        self._held: set[tuple[int, bytes]] = set()  # partitions with their proofs
        self.kind = given.shape.kind
        self.partitions, self.setup = partitions, setup
        self.digest, self.input_bytes = input_digest((self.kind, partitions, randomizers, given), host)
        self.partition_bytes = setup.partition_bytes

    def prepare(self, partition: int) -> Prepared:
        """Raises InputError, with the place, for vanilla proofs that are not those of the statement."""
        if not self._is_checked:
            self._given.check_partition(partition, self._host)
        return Prepared(free=free_values(self._given, partition), randomizers=self._randomizers)

    def holds(self, partition: int, proof: bytes) -> bool:
        """Also False when a point of the proof is none."""
        inputs = self._given.public_inputs(partition)
        try:
            held = self.setup.verifier.verify_partition(inputs, Proof.from_bytes(proof))
        except ProofError:
            return False
        if held:
            self._held.add((partition, proof))
        return held

    def assemble(self, proofs: Sequence[bytes]) -> bytes:
        """Each is, byte by byte, one that held for the partition in whose place it stands: to check them
        together as well, for 15 ms, would say nothing more.
        """
        for partition, proof in zip(self.partitions, proofs, strict=True):
            if (partition, proof) not in self._held:
                raise ProofError(
                    "what stands for the proof of a partition is not what held; nothing was handed out",
                    where=f"{self._given.origin}, partition {partition}",
                    next="this is a fault of cuzk: please report it",
                )
        whole = b"".join(proofs)
        assert len(whole) == PROOF_BYTES * len(self.partitions), len(whole)
        return whole
