"""PoRep at a sector size: what decides its circuit and its parameter files.

Version and feature of a registered proof change neither.
Source: storage-proofs-porep, stacked/vanilla/params.rs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache

from cuzk.sector.claim import POREP, SHORT
from cuzk.sector.shape import GIB, SectorShape, all_shapes, of_size, parameter_name

DRG_DEGREE = 6
EXPANDER_DEGREE = 8
PARENTS = DRG_DEGREE + EXPANDER_DEGREE
LABEL_PARENTS = 37
"""Entries of a label's preimage: the parents, repeated to this number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PorepShape(SectorShape):
    """See `claim.CircuitShape`. `min_challenges` are those of all partitions together, at least."""

    layers: int
    min_challenges: int
    partitions: int

    kind = POREP

    @property
    def challenges(self) -> int:
        """Challenges of one partition, the same for every version and feature."""
        return -(-self.min_challenges // self.partitions)

    @property
    def parameter_stem(self) -> str:
        identifier = (
            "layered_drgporep::PublicParams{ graph: stacked_graph::StackedGraph{"
            f"expansion_degree: {EXPANDER_DEGREE} base_graph: drgraph::BucketGraph{{size: {self.nodes}; "
            f"degree: {DRG_DEGREE}; hasher: poseidon_hasher}} }}, challenges: LayerChallenges {{ "
            f"layers: {self.layers}, max_count: {self.challenges} }}, tree: {self.tree_name} }}"
        )
        return parameter_name(f"stacked-proof-of-replication-{self.tree_name}-sha256_hasher", identifier)


@cache
def porep_shapes() -> tuple[PorepShape, ...]:
    """Of every size, ascending."""
    small, large = (2, 2, 1), (11, 176, 10)
    return tuple(
        _porep_shape(shape, *(large if shape.sector_bytes >= 32 * GIB else small)) for shape in all_shapes()
    )


def _porep_shape(shape: SectorShape, layers: int, min_challenges: int, partitions: int) -> PorepShape:
    return PorepShape(**asdict(shape), layers=layers, min_challenges=min_challenges, partitions=partitions)


def porep_shape(sector_bytes: int) -> PorepShape:
    """Raises InputError for a size that no circuit is defined for."""
    return of_size(porep_shapes(), sector_bytes, f"{SHORT[POREP]} proof")
