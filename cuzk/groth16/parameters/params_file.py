"""A `.params` file: its layout, and its points, read by position or mapped.

    verifying key | n h | n l | n a | n b_g1 | n b_g2    n: u32, big-endian; points uncompressed

    h     m - 1 points           the quotient polynomial; m rows rounded up to a power of two
    l     one a witness variable
    a     inputs, then the witness variables that occur in A
    b     ONE, then the witness variables that occur in B, in G1 and again in G2

Opening a file checks that its sizes fit together and, given the circuit's counts, that it belongs to the
circuit; the few points of its key are decoded. Whether the millions of others lie on the curve is the
kernels' business. Source: bellperson, groth16/params.rs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

from cuzk.errors import ParameterError
from cuzk.groth16.encoding import G1_BYTES, G2_BYTES
from cuzk.groth16.files import reading
from cuzk.groth16.parameters.verifying_key import COUNT_BYTES, HEAD_BYTES, NEXT, VerifyingKey, key_bytes
from cuzk.groth16.parameters.watched_file import WatchedFile

SectionName = Literal["h", "l", "a", "b_g1", "b_g2"]
#: The sections after the key, in the order of the file, with the bytes of one point.
SECTIONS: tuple[tuple[SectionName, int], ...] = (
    ("h", G1_BYTES),
    ("l", G1_BYTES),
    ("a", G1_BYTES),
    ("b_g1", G1_BYTES),
    ("b_g2", G2_BYTES),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PointCounts:
    """How many points each section has; `b` serves both groups. A circuit knows its own, a file tells its."""

    ic: int
    h: int
    l: int  # noqa: E741  the format's own name
    a: int
    b: int

    def of(self, section: SectionName | Literal["ic"]) -> int:
        return {"ic": self.ic, "h": self.h, "l": self.l, "a": self.a, "b_g1": self.b, "b_g2": self.b}[section]

    @property
    def domain_log2(self) -> int:
        """log2 of the rows: h has a point for each but one."""
        return self.h.bit_length()

    @property
    def key_bytes(self) -> int:
        return HEAD_BYTES + G1_BYTES * self.ic

    @property
    def file_bytes(self) -> int:
        """Length of the whole `.params` file."""
        return self.key_bytes + sum(COUNT_BYTES + size * self.of(name) for name, size in SECTIONS)


class Parameters(Protocol):
    """What a prover must know of parameters beside their points; `where` names them in messages."""

    @property
    def where(self) -> str: ...

    @property
    def key(self) -> VerifyingKey: ...

    @property
    def counts(self) -> PointCounts: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterFile:
    """An open file. G1 sections are (n, 96) uint8, `b_g2` is (n, 192) uint8: read-only views of a mapping.

    Before points of a view are used, `require_readable` must have been asked for them.

    first_bytes  where each section's points begin
    """

    file: WatchedFile
    key: VerifyingKey
    counts: PointCounts
    first_bytes: Mapping[SectionName, int]
    h: npt.NDArray[np.uint8]
    l: npt.NDArray[np.uint8]  # noqa: E741
    a: npt.NDArray[np.uint8]
    b_g1: npt.NDArray[np.uint8]
    b_g2: npt.NDArray[np.uint8]

    @property
    def path(self) -> Path:
        return self.file.path

    @property
    def where(self) -> str:
        return str(self.path)

    def section(self, name: SectionName) -> npt.NDArray[np.uint8]:
        """The points of a section."""
        points: npt.NDArray[np.uint8] = getattr(self, name)
        return points

    def first_byte(self, name: SectionName, point: int) -> int:
        """Where the encoding of a point begins."""
        return self.first_bytes[name] + dict(SECTIONS)[name] * point

    def require_readable(self, name: SectionName, first: int, last: int) -> None:
        """Raises as `WatchedFile.read_into` unless the points first to last of the view can be used."""
        self.file.require_readable(self.section(name)[first : last + 1], self.first_byte(name, first))

    def require(self, expected: PointCounts) -> None:
        """Raises ParameterError unless the file has the points of a circuit with these counts."""
        names: list[SectionName | Literal["ic"]] = ["ic", *(name for name, _ in SECTIONS)]
        for name in names:
            if self.counts.of(name) != expected.of(name):
                raise _other_circuit(self.path, name, self.counts.of(name), expected.of(name))


def open_parameters(path: Path, expected: PointCounts | None = None) -> ParameterFile:
    """Open a `.params` file, checked against itself and against the counts of the circuit it should serve.

    Raises ParameterError when it is missing, empty, truncated, too long, of another circuit, or its key is
    unusable; ResourceError when it cannot be read.
    """
    file = WatchedFile(path)
    if not file.nbytes:
        raise ParameterError("the file is empty", where=str(path), next=NEXT)
    key_end = key_bytes(file.read(0, min(HEAD_BYTES, file.nbytes)), where=str(path))
    if file.nbytes < key_end:
        raise _truncated(path, "verifying key", key_end, file.nbytes)
    if expected is not None and key_end != expected.key_bytes:
        raise _other_circuit(path, "ic", (key_end - HEAD_BYTES) // G1_BYTES, expected.ic)
    places = {name: (first, count) for name, first, count in _sections_of(file, key_end, expected)}
    found = {name: count for name, (_, count) in places.items()}
    if found["b_g1"] != found["b_g2"]:
        raise ParameterError(
            f"the file is damaged: {found['b_g1']} points b_g1, but {found['b_g2']} b_g2",
            where=str(path),
            next=NEXT,
        )
    key, mapped = VerifyingKey.from_bytes(file.read(0, key_end), where=str(path)), file.mapped()
    return ParameterFile(
        file=file,
        key=key,
        counts=PointCounts(ic=len(key.ic), h=found["h"], l=found["l"], a=found["a"], b=found["b_g1"]),
        first_bytes={name: first for name, (first, _) in places.items()},
        **{
            name: mapped[places[name][0] :][: nbytes * found[name]].reshape(-1, nbytes)
            for name, nbytes in SECTIONS
        },
    )


def read_key_of(path: Path) -> VerifyingKey:
    """The checked key that a `.params` file begins with; the rest is not looked at. Raises likewise."""
    with reading(path), path.open("rb") as file:
        head = file.read(HEAD_BYTES)
        key_end = key_bytes(head, where=str(path))
        data = head + file.read(key_end - HEAD_BYTES)
    if len(data) < key_end:
        raise _truncated(path, "verifying key", key_end, len(data))
    return VerifyingKey.from_bytes(data, where=str(path))


def _sections_of(
    file: WatchedFile, start: int, expected: PointCounts | None
) -> Iterator[tuple[SectionName, int, int]]:
    """Name, first byte and count of every section; the last one ends where the file does."""
    path, size = file.path, file.nbytes
    for name, point_bytes in SECTIONS:
        first_point = start + COUNT_BYTES
        if first_point > size:
            raise _truncated(path, f"count of section {name}", first_point, size)
        count = int.from_bytes(file.read(start, COUNT_BYTES), "big")
        if expected is not None and count != expected.of(name):
            raise _other_circuit(path, name, count, expected.of(name))
        start = first_point + count * point_bytes
        if start > size:
            raise _truncated(path, f"section {name}", start, size)
        yield name, first_point, count
    if start < size:
        raise ParameterError(
            f"the file is damaged: {size - start:,} bytes follow its last point",
            where=str(path),
            next=NEXT,
        )


def _truncated(path: Path, part: str, end: int, size: int) -> ParameterError:
    return ParameterError(
        f"the file is truncated: its {part} should end at byte {end:,}, the file ends at {size:,}",
        where=str(path),
        next=NEXT,
    )


def _other_circuit(path: Path, part: str, count: int, expected: int) -> ParameterError:
    return ParameterError(
        f"the parameters belong to another circuit: {count:,} points {part}, where this one has {expected:,}",
        where=str(path),
        next=NEXT,
    )
