"""A sector's Commit 1 output, read: what a proof of replication is made from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cuzk.sector.check import check_partition, check_statement
from cuzk.sector.inputs import PartitionInput, Statement
from cuzk.sector.porep_shape import PorepShape
from cuzk.sector.public_inputs import public_inputs
from cuzk.sector.registered_proof import RegisteredProof

if TYPE_CHECKING:
    from cuzk.kernels.device.cpu import CpuDevice

SYNTHETIC_TICKET = b"synthetic sector, sealed by none"
"""What marks a sector that `synthesize` made: real tickets are drawn at random."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class C1:
    """See `claim.ProofInput`.

    The wrapper's sector number and size are None when the document came without its wrapper.
    """

    origin: str
    registered_proof: RegisteredProof
    comm_r: bytes
    comm_d: bytes
    replica_id: bytes
    seed: bytes
    ticket: bytes
    sector_number: int | None
    sector_bytes: int | None
    partitions: tuple[PartitionInput, ...]

    @property
    def shape(self) -> PorepShape:
        return self.registered_proof.shape

    @property
    def partition_count(self) -> int:
        return self.registered_proof.partitions

    @property
    def statement(self) -> Statement:
        return Statement(
            registered_proof=self.registered_proof,
            replica_id=self.replica_id,
            comm_d=self.comm_d,
            comm_r=self.comm_r,
            seed=self.seed,
        )

    @property
    def is_synthetic(self) -> bool:
        """Whether nobody sealed it, as far as its ticket tells."""
        return self.ticket == SYNTHETIC_TICKET

    def check_statement(self, *, miner: int | None = None) -> None:
        """`miner` is the numeric id whose sector this should be, if the caller knows it."""
        check_statement(self, miner=miner)

    def check_partition(self, partition: int, device: CpuDevice) -> None:
        check_partition(self, self.partitions[partition], device)

    def public_inputs(self, partition: int) -> NDArray[np.uint64]:
        return public_inputs(self.statement, partition)

    def facts(self) -> dict[str, dict[str, Any]]:
        registered, shape = self.registered_proof, self.shape
        return {
            "sector": {
                "registered_proof": registered.name,
                "sector_size": shape.name,
                "sector_number": self.sector_number,
                "synthesized": self.is_synthetic,
                "api_version": registered.api_version.value,
                "challenges_drawn": registered.feature.value,
                "partitions": len(self.partitions),
                "challenges": shape.challenges,
                "layers": shape.layers,
            },
            "commitments": {
                "comm_d": self.comm_d.hex(),
                "comm_r": self.comm_r.hex(),
                "replica_id": self.replica_id.hex(),
                "seed": self.seed.hex(),
                "ticket": self.ticket.hex(),
            },
            "challenged nodes": {
                f"partition {partition.index}": ", ".join(map(str, partition.challenges.tolist()))
                for partition in self.partitions
            },
        }
