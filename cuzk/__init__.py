"""cuzk: a Groth16 prover for Filecoin in pure Python (Numba).

Importing this package compiles nothing and loads no kernel: what it offers is loaded at its first use.
docs/architecture.md draws the floors of the house.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cuzk.garbage import load

if TYPE_CHECKING:
    from cuzk.api import ProveResult, VerifyResult, prove, synthesize, verify
    from cuzk.engine.jobs import Job, JobResult, Priority
    from cuzk.engine.settings import Settings as EngineSettings
    from cuzk.errors import CuzkError
    from cuzk.parameters import fetch_parameters, generate_parameters, verify_parameters
    from cuzk.proofs.sector_engine import Engine
    from cuzk.sector.pieces import Pieces, SideInputs

__version__ = "0.1.0"

_HOMES = {
    "CuzkError": "cuzk.errors",
    "Engine": "cuzk.proofs.sector_engine",
    "EngineSettings": "cuzk.engine.settings:Settings",
    "Job": "cuzk.engine.jobs",
    "JobResult": "cuzk.engine.jobs",
    "Pieces": "cuzk.sector.pieces",
    "Priority": "cuzk.engine.jobs",
    "SideInputs": "cuzk.sector.pieces",
    "ProveResult": "cuzk.api",
    "VerifyResult": "cuzk.api",
    "prove": "cuzk.api",
    "synthesize": "cuzk.api",
    "verify": "cuzk.api",
    "fetch_parameters": "cuzk.parameters",
    "generate_parameters": "cuzk.parameters",
    "verify_parameters": "cuzk.parameters",
}
__all__ = [
    "CuzkError",
    "Engine",
    "EngineSettings",
    "Job",
    "JobResult",
    "Pieces",
    "Priority",
    "ProveResult",
    "SideInputs",
    "VerifyResult",
    "fetch_parameters",
    "generate_parameters",
    "prove",
    "synthesize",
    "verify",
    "verify_parameters",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, _, attribute = _HOMES[name].partition(":")
    return getattr(load(module), attribute or name)
