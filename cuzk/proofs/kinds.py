"""Kinds of proof: what a name stands for, and which circuit and input are behind it.

A kind is a file of `sector`, which has its shapes and reads and checks its input (`sector.claim`), and a file
of `circuit`, which has `build(builder, shape)` and `free_values(input, partition)`. Everything else is the
same for all kinds, and finds them here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Protocol

from cuzk.engine.jobs import Priority
from cuzk.errors import UsageError, blamed_on
from cuzk.sector.claim import SHORT, SNAP, WINDOW, WINNING, CircuitShape, ProofInput
from cuzk.sector.pieces import Pieces
from cuzk.sector.porep.shape import PorepShape, porep_shapes
from cuzk.sector.post import read_post, synthesize_post
from cuzk.sector.post_shape import post_shapes
from cuzk.sector.shape import of_size
from cuzk.sector.update import read_update
from cuzk.sector.update_shape import UpdateShape, update_shapes

if TYPE_CHECKING:
    from cuzk.circuit.builder import Circuit, CircuitBuilder
    from cuzk.circuit.witness import FreeValues
    from cuzk.events import Progress
    from cuzk.kernels.device.cpu import CpuDevice


class Maker(Protocol):
    """Makes up an input of a shape, the same for a seed, that passes every check."""

    def __call__(self, shape: Any, /, *, seed: int, device: CpuDevice, progress: Progress) -> Pieces: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class InPieces:
    """How inputs of a kind that travels in pieces are read and made up."""

    read: Callable[[Pieces], ProofInput]
    make: Maker


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind.

    names      what users may write, the shortest first
    priority   of jobs that name none
    shapes     one for every sector size, ascending
    in_pieces  None where the input is a Commit 1 output
    """

    name: str
    names: tuple[str, ...]
    priority: Priority
    shapes: Callable[[], tuple[CircuitShape, ...]]
    in_pieces: InPieces | None = None

    def shape(self, sector_bytes: int) -> CircuitShape:
        """Raises UsageError for a size of which this kind has no circuit."""
        with blamed_on("--sector-size"):
            return of_size(self.shapes(), sector_bytes, f"{SHORT[self.name]} proof")


def _synthetic_update(shape: UpdateShape, /, *, seed: int, device: CpuDevice, progress: Progress) -> Pieces:
    from cuzk.sector.update_synthesis import synthesize_update  # loads the compiler

    return synthesize_update(shape, seed=seed, device=device, progress=progress)


_POST = InPieces(read=read_post, make=synthesize_post)

KINDS: tuple[Kind, ...] = (
    Kind(
        name=PorepShape.kind,
        names=(SHORT[PorepShape.kind], "porep-c2", "seal-commit"),
        priority=Priority.NORMAL,
        shapes=porep_shapes,
    ),
    Kind(
        name=SNAP,
        names=(SHORT[SNAP], "snap-deals", "update", "snap-update"),
        priority=Priority.NORMAL,
        shapes=update_shapes,
        in_pieces=InPieces(read=read_update, make=_synthetic_update),
    ),
    Kind(
        name=WINDOW,
        names=(SHORT[WINDOW], "window-post", "windowpost", "window"),
        priority=Priority.HIGH,
        shapes=partial(post_shapes, WINDOW),
        in_pieces=_POST,
    ),
    Kind(
        name=WINNING,
        names=(SHORT[WINNING], "winning-post", "winningpost"),
        priority=Priority.CRITICAL,
        shapes=partial(post_shapes, WINNING),
        in_pieces=_POST,
    ),
)
POREP = KINDS[0]


def kind_named(name: str, *, where: str = "--kind") -> Kind:
    """By one of its names, in any case. Raises UsageError at `where`, the option, if there is none."""
    for kind in KINDS:
        if name.lower() in kind.names:
            return kind
    known = ", ".join(SHORT.values())
    raise UsageError(f"there is no kind of proof {name!r:.80}", where=where, next=f"kinds are {known}")


def read_pieces(pieces: Pieces) -> ProofInput:
    """Raises InputError for pieces that are not those of their kind and size."""
    in_pieces = kind_named(pieces.kind).in_pieces
    assert in_pieces is not None, pieces.kind
    return in_pieces.read(pieces)


class _CircuitModule(Protocol):
    """What the file of a circuit has, for the shape and the input of its kind."""

    def build(self, builder: CircuitBuilder, shape: Any) -> None: ...

    def free_values(self, given: Any, partition: int, /) -> FreeValues: ...


def _module(kind: str) -> _CircuitModule:
    """It loads the compiler."""
    from cuzk.circuit import empty_sector_update, fallback_post, porep

    modules: dict[str, _CircuitModule] = {
        PorepShape.kind: porep,
        SNAP: empty_sector_update,
        WINDOW: fallback_post,
        WINNING: fallback_post,
    }
    return modules[kind]


@lru_cache(maxsize=4)
def circuit_of(shape: CircuitShape) -> Circuit:
    """The circuit of one partition, from disk if it was built before."""
    from cuzk.circuit.kept import kept

    return kept(f"{shape.kind} {shape.name}", lambda: built_circuit(shape))


def built_circuit(shape: CircuitShape) -> Circuit:
    """The same, built now."""
    from cuzk.circuit.builder import CircuitBuilder

    builder = CircuitBuilder(f"{shape.kind} {shape.name}")
    _module(shape.kind).build(builder, shape)
    return builder.circuit()


def free_values(given: ProofInput, partition: int) -> FreeValues:
    """Of the circuit's free variables, from one partition's vanilla proofs, which are not checked here."""
    return _module(given.shape.kind).free_values(given, partition)


def setup_name(shape: CircuitShape) -> str:
    """Of its parameters, as users read it: porep-32GiB."""
    return f"{SHORT[shape.kind]}-{shape.name}"
