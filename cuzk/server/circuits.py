"""Circuits as clients name them: porep-32g, snap-32g, wpost-32g, winning-32g, and other sizes."""

from __future__ import annotations

from cuzk.errors import UsageError
from cuzk.proofs.kinds import KINDS, setup_name
from cuzk.sector.claim import CircuitShape


def circuit_id(setup: str) -> str:
    """Clients' name for the parameters that an engine calls so: porep-32g for porep-32GiB."""
    return setup.lower().removesuffix("ib")


_SHAPES = {circuit_id(setup_name(shape)): shape for kind in KINDS for shape in kind.shapes()}


def circuit_named(name: str) -> CircuitShape:
    """Raises UsageError for a name that is none."""
    if name not in _SHAPES:
        raise UsageError(f"unknown circuit ID: {name}", next=f"known are {', '.join(_SHAPES)}")
    return _SHAPES[name]
