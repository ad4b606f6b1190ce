"""What a sector's size decides about proofs of spacetime, winning and window: the circuit and its parameters.

One circuit serves both: so many sectors with so many challenges each. A winning proof of 66 challenges of one
sector is in it 66 sectors of one challenge.
Sources: filecoin-proofs, constants.rs; storage-proofs-post, fallback/vanilla.rs.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

from cuzk.sector.claim import SHORT, WINDOW, WINNING
from cuzk.sector.shape import GIB, SectorShape, all_shapes, of_size, parameter_name

WINNING_CHALLENGES = 66
WINDOW_CHALLENGES = 10
_WINDOW_SECTORS = {32 * GIB: 2349, 64 * GIB: 2300}
_FEW_WINDOW_SECTORS = 2  # at all other sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class PostShape(SectorShape):
    """See `claim.CircuitShape`.

    sector_count, challenge_count  of the circuit: sectors, and challenges of each
    """

    kind: str
    sector_count: int
    challenge_count: int

    @property
    def is_winning(self) -> bool:
        return self.kind == WINNING

    @property
    def most_sectors(self) -> int:
        """That a proof is given."""
        return 1 if self.is_winning else self.sector_count

    @property
    def challenges(self) -> int:
        """Of each sector that a proof is given."""
        return WINNING_CHALLENGES if self.is_winning else WINDOW_CHALLENGES

    @property
    def parameter_stem(self) -> str:
        """Name of the parameter files without `.params`, `.vk` or `.meta`."""
        identifier = (
            f"FallbackPoSt::PublicParams{{sector_size: {self.sector_bytes}, "
            f"challenge_count: {self.challenge_count}, sector_count: {self.sector_count}}}"
        )
        return parameter_name(f"proof-of-spacetime-fallback-{self.tree_name}", identifier)


def post_shapes(kind: str) -> tuple[PostShape, ...]:
    """Of every sector size, ascending; `kind` is WINNING or WINDOW."""
    return tuple(_shape(kind, sector) for sector in all_shapes())


def post_shape(kind: str, sector_bytes: int) -> PostShape:
    """Raises InputError for a size that no circuit is defined for."""
    return of_size(post_shapes(kind), sector_bytes, f"{SHORT[kind]} proof")


def _shape(kind: str, sector: SectorShape) -> PostShape:
    if kind == WINNING:
        sectors, challenges = WINNING_CHALLENGES, 1
    else:
        assert kind == WINDOW, kind
        sectors = _WINDOW_SECTORS.get(sector.sector_bytes, _FEW_WINDOW_SECTORS)
        challenges = WINDOW_CHALLENGES
    return PostShape(**asdict(sector), kind=kind, sector_count=sectors, challenge_count=challenges)
