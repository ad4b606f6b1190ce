"""Registered seal proofs: the names by which sectors are sealed, and what each name decides.

A name decides size, graph (API version), challenges (feature) and the number of partitions. Of these only the
size matters to the circuit.
Source: filecoin-proofs-api, registry.rs.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from functools import cache

from cuzk.errors import InputError, UsageError, blamed_on
from cuzk.sector.api_version import ApiVersion
from cuzk.sector.porep.shape import PorepShape, porep_shape
from cuzk.sector.shape import GIB, KIB, MIB, shape_of


class Feature(Enum):
    """Decides how challenges are drawn."""

    INTERACTIVE = "interactive"
    SYNTHETIC = "synthetic"
    NON_INTERACTIVE = "non-interactive"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredProof:
    """One entry of the registry. `number` is its position, which is also its number in Go and over gRPC."""

    number: int
    name: str
    sector_bytes: int
    api_version: ApiVersion
    feature: Feature

    @property
    def shape(self) -> PorepShape:
        return porep_shape(self.sector_bytes)

    @property
    def size_key(self) -> str:
        """The only key of `vanilla_proofs`: the plain V1 name, whatever version or feature."""
        return f"StackedDrg{self.shape.name}V1"

    @property
    def porep_id(self) -> bytes:
        """32 bytes: number, then a nonce of 0 (both u64 little-endian), then zeros."""
        return self.number.to_bytes(8, "little") + bytes(24)

    @property
    def partitions(self) -> int:
        if self.feature is Feature.NON_INTERACTIVE:
            return 126 if self.shape.layers == 11 else 13
        return self.shape.partitions


_SIZES = (2 * KIB, 8 * MIB, 512 * MIB, 32 * GIB, 64 * GIB)
_FAMILIES = (
    ("V1", ApiVersion.V1_0, Feature.INTERACTIVE),
    ("V1_1", ApiVersion.V1_1, Feature.INTERACTIVE),
    ("V1_1_Feat_SyntheticPoRep", ApiVersion.V1_2, Feature.SYNTHETIC),
    ("V1_2_Feat_NonInteractivePoRep", ApiVersion.V1_2, Feature.NON_INTERACTIVE),
)


@cache
def all_registered_proofs() -> tuple[RegisteredProof, ...]:
    """The registry in order of number."""
    return tuple(
        RegisteredProof(
            number=family * len(_SIZES) + position,
            name=f"StackedDrg{shape_of(sector_bytes).name}{suffix}",
            sector_bytes=sector_bytes,
            api_version=api_version,
            feature=feature,
        )
        for family, (suffix, api_version, feature) in enumerate(_FAMILIES)
        for position, sector_bytes in enumerate(_SIZES)
    )


def registered_proof(name: str, *, where: str = "registered_proof") -> RegisteredProof:
    """The entry of that name. Raises InputError, placed at `where`, if there is none."""
    for entry in all_registered_proofs():
        if entry.name == name:
            return entry
    sizes = ", ".join(shape_of(size).name for size in _SIZES)
    raise InputError(
        f"registered proof {name!r:.80} is unknown",
        where=where,
        next=f"known are StackedDrg<size>V1 and its V1_1, synthetic and non-interactive forms; sizes {sizes}",
    )


def registered_proof_of_size(sector_bytes: int, name: str | None = None) -> RegisteredProof:
    """The entry of that name, or the one of version 1.1.0. Raises UsageError for an unknown name or size, and
    when they contradict each other."""
    with blamed_on("--sector-size" if name is None else "--registered-proof"):
        size = shape_of(sector_bytes).name
        entry = registered_proof(name or f"StackedDrg{size}V1_1")
    if entry.sector_bytes != sector_bytes:
        raise UsageError(
            f"{entry.name} is not for sectors of {size}",
            where="--registered-proof",
            next="give the size that it names, or leave it out",
        )
    return entry
