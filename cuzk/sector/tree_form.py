"""How a document names the parts of an inclusion path: a small tree has one, joined base trees have more."""

from __future__ import annotations

from dataclasses import dataclass

from cuzk.sector.shape import BASE_ARITY, SectorShape


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeForm:
    """Name of a path's variant, and the arities in each of its parts, leaf level first."""

    variant: str
    parts: tuple[tuple[str, tuple[int, ...]], ...]


def d_form(shape: SectorShape) -> TreeForm:
    return TreeForm(variant="Single", parts=(("path", shape.d_arities),))


def c_and_r_form(shape: SectorShape) -> TreeForm:
    """The form of trees C and R_last."""
    base = (BASE_ARITY,) * shape.base_levels
    if not shape.sub_arity:
        return TreeForm(variant="Single", parts=(("path", base),))
    lower = (("base_proof", base), ("sub_proof", (shape.sub_arity,)))
    if not shape.top_arity:
        return TreeForm(variant="Sub", parts=lower)
    return TreeForm(variant="Top", parts=(*lower, ("top_proof", (shape.top_arity,))))
