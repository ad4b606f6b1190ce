"""Bincode of vanilla proofs: every piece of a kind and sector size has the same bytes but for its values.

Numbers are little-endian of fixed width, a list is its count (u64) and its items, a variant its tag (u32).
All counts and tags are known beforehand, so a piece is a NumPy record: `read` compares them at once, and
`blank` writes them. What the values must satisfy is not asked here.
Sources: bincode 1.x; filecoin-proofs, types/mod.rs; storage-proofs-core, merkle/proof.rs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cuzk.errors import InputError
from cuzk.sector.arrays import read_only, reshaped_view
from cuzk.sector.merkle import Paths
from cuzk.sector.shape import NODE_BYTES
from cuzk.sector.tree_form import TreeForm

Records = NDArray[np.void]
"""(n,) pieces of one form; fields and items of lists as the form names them."""

COPY_AGAIN = "make the vanilla proof again, or copy it again"
"""What to do about a damaged piece."""

_WORD_BYTES = 4
_VARIANTS = ("Single", "Sub", "Top")  # of a MerkleProof, by tag


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A number that every piece has at the same place: `value` of `noun`, or a variant's tag."""

    offset: int
    nbytes: int
    value: int
    noun: str
    where: str = ""

    def inside(self, place: str, offset: int) -> Constant:
        where = ", ".join(part for part in (place, self.where) if part)
        return replace(self, offset=self.offset + offset, where=where)

    def complaint(self, data: bytes) -> str:
        """What is wrong in a piece that has another number here."""
        found = int.from_bytes(data[self.offset : self.offset + self.nbytes], "little")
        if self.noun == "tag":
            named = _VARIANTS[found] if found < len(_VARIANTS) else f"variant {found}"
            return f"the path says {named} where {_VARIANTS[self.value]} is expected"
        return f"{found} {self.noun} where {self.value} are expected"


@dataclass(frozen=True, kw_only=True, eq=False)
class Form:
    """The bytes of one value: fields and lists as NumPy reads them, and the constants among them in order."""

    dtype: np.dtype[Any]
    constants: tuple[Constant, ...] = ()

    @cached_property
    def fixed_words(self) -> NDArray[np.int64]:
        """(n,) the words of four bytes that belong to constants: each part of a piece is some words."""
        assert not self.dtype.itemsize % _WORD_BYTES, self.dtype
        fixed = np.zeros(self.dtype.itemsize // _WORD_BYTES, np.bool_)
        for constant in self.constants:
            end = constant.offset + constant.nbytes
            fixed[constant.offset // _WORD_BYTES : end // _WORD_BYTES] = True
        return np.flatnonzero(fixed)

    @cached_property
    def blank_bytes(self) -> NDArray[np.uint8]:
        """(nbytes,) a piece of zeros, but for its constants."""
        piece = np.zeros(self.dtype.itemsize, np.uint8)
        for constant in self.constants:
            value = constant.value.to_bytes(constant.nbytes, "little")
            piece[constant.offset : constant.offset + constant.nbytes] = np.frombuffer(value, np.uint8)
        return piece


U64 = Form(dtype=np.dtype("<u8"))
HASH = Form(dtype=np.dtype((np.uint8, NODE_BYTES)))


def struct(*fields: tuple[str, Form, str]) -> Form:
    """Fields one after another: name, form, and what messages call the place ("" for none)."""
    offset, constants = 0, []
    for _, form, place in fields:
        constants += [constant.inside(place, offset) for constant in form.constants]
        offset += form.dtype.itemsize
    return Form(dtype=np.dtype([(name, form.dtype) for name, form, _ in fields]), constants=tuple(constants))


def items(count: int, item: Form, *, noun: str, place: str = "", first: int = 0) -> Form:
    """A list of `count` (fields `count`, `items`); an item is at "`place` i", i from `first` on."""
    own = Constant(offset=0, nbytes=U64.dtype.itemsize, value=count, noun=noun)
    places = [f"{place} {i}" if place else "" for i in range(first, first + count)]
    constants = [
        constant.inside(where, own.nbytes + i * item.dtype.itemsize)
        for i, where in enumerate(places)
        for constant in item.constants
    ]
    dtype = np.dtype([("count", U64.dtype), ("items", item.dtype, (count,))])
    return Form(dtype=dtype, constants=(own, *constants))


def merkle_proof(form: TreeForm) -> Form:
    """A MerkleProof in a tree of that form: `tag`, `root`, `leaf`, and the path's parts by their names."""
    tag = _VARIANTS.index(form.variant)
    variant = Form(dtype=np.dtype("<u4"), constants=(Constant(offset=0, nbytes=4, value=tag, noun="tag"),))
    parts, level = [], 0
    for name, arities in form.parts:
        element = struct(
            ("hashes", items(arities[0] - 1, HASH, noun="siblings"), ""), ("index", U64, "")
        )  # a part's levels are alike
        assert set(arities) == {arities[0]}, form
        parts.append((name, items(len(arities), element, noun="levels", place="level", first=level), ""))
        level += len(arities)
    ends = [("root", HASH, ""), ("leaf", HASH, "")]
    body = [*ends, *parts] if form.variant == "Single" else [*parts, *ends]
    return struct(("tag", variant, ""), *body)


def read(form: Form, pieces: Sequence[bytes], name: Callable[[int], str]) -> Records:
    """The pieces as records, read-only. `name(i)` says which piece this is.

    Raises InputError at the first count or tag that is not the form's, or for a piece of another length.
    """
    size = form.dtype.itemsize
    for number, piece in enumerate(pieces):
        if len(piece) != size:
            _fail_at_constant(form, piece, name(number))
            what = f"the piece has {len(piece)} bytes where {size} are expected"
            raise InputError(what, where=name(number), next=COPY_AGAIN)
    flat = np.empty((len(pieces), size), np.uint8)
    for row, piece in zip(flat, pieces, strict=True):
        row[:] = np.frombuffer(piece, np.uint8)
    expected = form.blank_bytes.view("<u4")[form.fixed_words]
    wrong = (flat.view("<u4")[:, form.fixed_words] != expected).any(axis=1)
    if wrong.any():
        number = int(np.argmax(wrong))
        _fail_at_constant(form, pieces[number], name(number))
    flat.flags.writeable = False
    return flat.view(form.dtype).reshape(len(pieces))


def _fail_at_constant(form: Form, piece: bytes, where: str) -> None:
    """Raises InputError for the first constant that the piece has wrong, if it reaches one."""
    for constant in form.constants:
        if len(piece) < constant.offset + constant.nbytes:
            return
        found = piece[constant.offset : constant.offset + constant.nbytes]
        if int.from_bytes(found, "little") != constant.value:
            place = ", ".join(part for part in (where, constant.where) if part)
            raise InputError(constant.complaint(piece), where=place, next=COPY_AGAIN)


def blank(form: Form, count: int) -> Records:
    """So many pieces of that form, all values 0; fields can be set."""
    return np.tile(form.blank_bytes, (count, 1)).view(form.dtype).reshape(count)


def encoded(records: Records) -> list[bytes]:
    """The pieces, one a record."""
    return [record.tobytes() for record in records]


def paths_of(records: Records, form: TreeForm) -> Paths:
    """Records of `merkle_proof` as paths of the same axes. Indices are as they come, up to 2^63 - 1."""
    axes, counts = records.shape, [len(arities) * (arities[0] - 1) for _, arities in form.parts]
    siblings, sibling = np.empty((*axes, sum(counts), NODE_BYTES), np.uint8), 0
    for (name, arities), count in zip(form.parts, counts, strict=True):
        part = siblings[..., sibling : sibling + count, :]
        into = reshaped_view(part, *axes, len(arities), -1, NODE_BYTES)
        into[:] = records[name]["items"]["hashes"]["items"]
        sibling += count
    indices = np.concatenate([records[name]["items"]["index"] for name, _ in form.parts], axis=-1)
    return Paths(
        roots=read_only(records["root"]),
        leaves=read_only(records["leaf"]),
        siblings=read_only(siblings),
        indices=read_only(np.minimum(indices, np.iinfo(np.int64).max).astype(np.int64)),
    )


def place_paths(paths: Paths, form: TreeForm, into: Records) -> None:
    """The reverse: writes paths into records of `merkle_proof` of the same axes."""
    axes = into.shape
    into["root"], into["leaf"] = paths.roots, paths.leaves
    level = sibling = 0
    for name, arities in form.parts:
        element = into[name]["items"]
        count = len(arities) * (arities[0] - 1)
        hashes = paths.siblings[..., sibling : sibling + count, :]
        element["hashes"]["items"] = hashes.reshape(*axes, len(arities), arities[0] - 1, NODE_BYTES)
        element["index"] = paths.indices[..., level : level + len(arities)]
        level, sibling = level + len(arities), sibling + count
