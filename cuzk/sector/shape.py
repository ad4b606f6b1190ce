"""The shape of a sector: what its size alone decides, and so what its circuit and its parameter files are.

A tree over n nodes is made of *base* trees (arity 8), joined by one level of arity `sub_arity`, then by one
of arity `top_arity`; an arity of 0 means that the level is absent. Trees C and R_last have this form
(Poseidon); tree D is binary (SHA-256). Version and feature of a registered proof change neither circuit nor
parameters.
Sources: filecoin-proofs, constants.rs; storage-proofs-core, parameter_cache.rs; storage-proofs-porep,
stacked/vanilla/params.rs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from hashlib import sha256

from cuzk.errors import InputError

NODE_BYTES = 32
DRG_DEGREE = 6
EXPANDER_DEGREE = 8
PARENTS = DRG_DEGREE + EXPANDER_DEGREE
LABEL_PARENTS = 37
"""Entries of a label's preimage: the parents, repeated to this number."""

BASE_ARITY = 8
PARAMETER_VERSION = "v28"

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class SectorShape:
    """Everything that follows from a sector's size. `challenges` is the number in each partition."""

    sector_bytes: int
    sub_arity: int
    top_arity: int
    layers: int
    min_challenges: int
    partitions: int
    published: bool

    def __post_init__(self) -> None:
        leaves = BASE_ARITY**self.base_levels * max(self.sub_arity, 1) * max(self.top_arity, 1)
        assert leaves == self.nodes == 1 << self.d_levels, (self.sector_bytes, leaves)

    @property
    def nodes(self) -> int:
        return self.sector_bytes // NODE_BYTES

    @property
    def d_levels(self) -> int:
        """Levels of a path in tree D (binary)."""
        return self.nodes.bit_length() - 1

    @property
    def base_levels(self) -> int:
        """Levels of arity 8 in a path of trees C and R_last."""
        base_leaves = self.nodes // max(self.sub_arity, 1) // max(self.top_arity, 1)
        return (base_leaves.bit_length() - 1) // 3

    @property
    def path_arities(self) -> tuple[int, ...]:
        """Arity of every level of a path in trees C and R_last, leaf level first."""
        upper = tuple(arity for arity in (self.sub_arity, self.top_arity) if arity)
        return (BASE_ARITY,) * self.base_levels + upper

    @property
    def challenges(self) -> int:
        """Challenges of one partition, the same for every version and feature."""
        return -(-self.min_challenges // self.partitions)

    @property
    def name(self) -> str:
        """`2KiB`, `32GiB`: as registered proofs spell it."""
        for unit, bytes_ in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
            if self.sector_bytes >= bytes_:
                return f"{self.sector_bytes // bytes_}{unit}"
        raise AssertionError(self.sector_bytes)

    @property
    def tree_name(self) -> str:
        return f"merkletree-poseidon_hasher-{BASE_ARITY}-{self.sub_arity}-{self.top_arity}"

    @property
    def identifier(self) -> str:
        """The text whose SHA-256 names the parameters."""
        return (
            "layered_drgporep::PublicParams{ graph: stacked_graph::StackedGraph{"
            f"expansion_degree: {EXPANDER_DEGREE} base_graph: drgraph::BucketGraph{{size: {self.nodes}; "
            f"degree: {DRG_DEGREE}; hasher: poseidon_hasher}} }}, challenges: LayerChallenges {{ "
            f"layers: {self.layers}, max_count: {self.challenges} }}, tree: {self.tree_name} }}"
        )

    @property
    def cache_id(self) -> str:
        digest = sha256(self.identifier.encode()).hexdigest()
        return f"stacked-proof-of-replication-{self.tree_name}-sha256_hasher-{digest}"

    @property
    def parameter_stem(self) -> str:
        """Name of the parameter files without `.params`, `.vk` or `.meta`."""
        return f"{PARAMETER_VERSION}-{self.cache_id}"


def _small(sector_bytes: int, sub_arity: int, top_arity: int, *, published: bool) -> SectorShape:
    return SectorShape(
        sector_bytes=sector_bytes,
        sub_arity=sub_arity,
        top_arity=top_arity,
        layers=2,
        min_challenges=2,
        partitions=1,
        published=published,
    )


def _large(sector_bytes: int, sub_arity: int, top_arity: int) -> SectorShape:
    return SectorShape(
        sector_bytes=sector_bytes,
        sub_arity=sub_arity,
        top_arity=top_arity,
        layers=11,
        min_challenges=176,
        partitions=10,
        published=True,
    )


@cache
def all_shapes() -> tuple[SectorShape, ...]:
    """Every size that the circuit knows, ascending; a network accepts proofs of the `published` ones."""
    return (
        _small(2 * KIB, 0, 0, published=True),
        _small(4 * KIB, 2, 0, published=False),
        _small(16 * KIB, 8, 0, published=False),
        _small(32 * KIB, 8, 2, published=False),
        _small(8 * MIB, 0, 0, published=True),
        _small(16 * MIB, 2, 0, published=False),
        _small(512 * MIB, 0, 0, published=True),
        _small(1 * GIB, 2, 0, published=False),
        _large(32 * GIB, 8, 0),
        _large(64 * GIB, 8, 2),
    )


def shape_of(sector_bytes: int) -> SectorShape:
    """The shape of a sector size. Raises InputError for a size that no circuit is defined for."""
    for shape in all_shapes():
        if shape.sector_bytes == sector_bytes:
            return shape
    known = ", ".join(shape.name for shape in all_shapes())
    raise InputError(f"no sector has {sector_bytes} bytes", next=f"sizes are {known}")
