"""The shape of a sector: the trees over it, which its size alone decides.

A tree over n nodes is made of *base* trees (arity 8), joined by one level of arity `sub_arity`, then by one
of arity `top_arity`; an arity of 0 means that the level is absent. Trees C and R_last have this form
(Poseidon); tree D is binary (SHA-256).
Sources: filecoin-proofs, constants.rs; storage-proofs-core, parameter_cache.rs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Protocol, TypeVar

from cuzk.errors import InputError

NODE_BYTES = 32
BASE_ARITY = 8
BINARY = 2
"""The arity of tree D."""

PARAMETER_VERSION = "v28"

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class SectorShape:
    """Everything that follows from a sector's size, whatever is proven of it."""

    sector_bytes: int
    sub_arity: int
    top_arity: int

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
    def d_arities(self) -> tuple[int, ...]:
        """Arity of every level of a path in tree D."""
        return (BINARY,) * self.d_levels

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
    def name(self) -> str:
        """`2KiB`, `32GiB`: as registered proofs spell it."""
        return size_name(self.sector_bytes)

    @property
    def tree_name(self) -> str:
        return f"merkletree-poseidon_hasher-{BASE_ARITY}-{self.sub_arity}-{self.top_arity}"


def size_name(sector_bytes: int) -> str:
    """`2KiB`, `32GiB`; what is no whole number of KiB in bytes."""
    for unit, bytes_ in (("GiB", GIB), ("MiB", MIB), ("KiB", KIB)):
        if sector_bytes and sector_bytes % bytes_ == 0:
            return f"{sector_bytes // bytes_}{unit}"
    return f"{sector_bytes} bytes"


def parameter_name(what: str, identifier: str) -> str:
    """Name of parameter files without `.params`, `.vk` or `.meta`; `identifier` describes the circuit."""
    return f"{PARAMETER_VERSION}-{what}-{sha256(identifier.encode()).hexdigest()}"


@cache
def all_shapes() -> tuple[SectorShape, ...]:
    """Every size that a circuit knows, ascending."""
    sizes = (
        (2 * KIB, 0, 0),
        (4 * KIB, 2, 0),
        (16 * KIB, 8, 0),
        (32 * KIB, 8, 2),
        (8 * MIB, 0, 0),
        (16 * MIB, 2, 0),
        (512 * MIB, 0, 0),
        (1 * GIB, 2, 0),
        (32 * GIB, 8, 0),
        (64 * GIB, 8, 2),
    )
    return tuple(SectorShape(sector_bytes=n, sub_arity=sub, top_arity=top) for n, sub, top in sizes)


def shape_of(sector_bytes: int) -> SectorShape:
    """The shape of a sector size. Raises InputError for a size that no circuit is defined for."""
    return of_size(all_shapes(), sector_bytes, "sector")


class _HasSize(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def sector_bytes(self) -> int: ...


_Shape = TypeVar("_Shape", bound=_HasSize)


def of_size(shapes: Sequence[_Shape], sector_bytes: int, what: str) -> _Shape:
    """The one of a sector size. Raises InputError when there is none; `what` says of what."""
    for shape in shapes:
        if shape.sector_bytes == sector_bytes:
            return shape
    known = ", ".join(shape.name for shape in shapes)
    raise InputError(f"there is no {what} of {size_name(sector_bytes)}", next=f"sizes are {known}")
