"""What a sector's size decides about its updates (SnapDeals): the circuit, its parameters, the challenges.

Symbols    n = 2^d nodes; P = 2^p partitions of C challenges, all among the partition's own n / P nodes; the
           A = 2^a *apex leaves* of a partition are a row of tree D between its challenges and its own root.
           How a node is encoded follows from the upper h bits of its index, the *high part*.
Source     storage-proofs-update, constants.rs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache

from cuzk.kernels.modulus import FR
from cuzk.sector.claim import SHORT, SNAP
from cuzk.sector.shape import GIB, KIB, MIB, SectorShape, all_shapes, of_size, parameter_name

UPDATE_TAG = 1 << 40
"""The domain tag of updates' own Poseidon hashes of two."""

_DIGEST_BITS = FR.bits - 1  # challenges are cut from what surely has them


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateShape(SectorShape):
    """See `claim.CircuitShape`.

    challenges    in each partition
    apex_leaves   of each partition
    high_choices  the widths of a high part that the circuit can be told to take
    """

    partitions: int
    challenges: int
    apex_leaves: int
    high_choices: tuple[int, ...]

    kind = SNAP

    @property
    def partition_bits(self) -> int:
        """p."""
        return self.partitions.bit_length() - 1

    @property
    def apex_levels(self) -> int:
        """a."""
        return self.apex_leaves.bit_length() - 1

    @property
    def high_bits(self) -> int:
        """h, the choice in use."""
        return self.high_choices[3]

    @property
    def high_select(self) -> int:
        """How the circuit is told that choice: one bit set, that of the first choice which is h."""
        return 1 << self.high_choices.index(self.high_bits)

    @property
    def challenge_bits(self) -> int:
        """Random bits of a challenge: its place within the partition."""
        return self.d_levels - self.partition_bits

    @property
    def challenges_a_digest(self) -> int:
        """How many challenges are cut from one hash."""
        return _DIGEST_BITS // self.challenge_bits

    @property
    def digests(self) -> int:
        """Hashes that a partition's challenges are cut from."""
        return -(-self.challenges // self.challenges_a_digest)

    @property
    def d_path_levels(self) -> int:
        """Levels of tree D between a challenge and the apex leaf above it."""
        return self.challenge_bits - self.apex_levels

    @property
    def parameter_stem(self) -> str:
        identifier = f"empty_sector_update::PublicParams{{ sector_nodes: {self.nodes} }}"
        return parameter_name(f"empty-sector-update-{self.tree_name}", identifier)


@cache
def update_shapes() -> tuple[UpdateShape, ...]:
    """Every size that an update circuit is defined for, ascending: all but 1 GiB."""
    return tuple(_shape(sector) for sector in all_shapes() if sector.sector_bytes != GIB)


def update_shape_of(sector_bytes: int) -> UpdateShape:
    """The shape of a sector size. Raises InputError for a size that no update circuit is defined for."""
    return of_size(update_shapes(), sector_bytes, f"{SHORT[SNAP]} proof")


def _shape(sector: SectorShape) -> UpdateShape:
    size = sector.sector_bytes
    if size >= 512 * MIB:
        partitions = 16
    elif size >= 8 * MIB:
        partitions = 4
    else:
        partitions = 2 if size >= 16 * KIB else 1
    return UpdateShape(
        **asdict(sector),
        partitions=partitions,
        challenges=86 if size >= 512 * MIB else 10,
        apex_leaves=128 if size >= 16 * KIB else 8,
        high_choices=(7, 8, 9, 10, 11, 12) if size >= 8 * MIB else (1,) * 6,
    )
