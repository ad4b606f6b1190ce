"""Sectors of 2 KiB, the proofs that upstream makes of them with r = 13 and s = 17, by file; parameters."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cuzk

POREP = Path(__file__).resolve().parents[1] / "vectors" / "porep"
UPSTREAM = {
    case["file"]: case["proof_r13_s17"]
    for case in json.loads((POREP / "vectors.json").read_text())["cases"]
    if "proof_r13_s17" in case
}


def parameters_in(folder: Path, **how: Any) -> Iterator[Path]:
    """Of the trapdoors 2, 3, 5, 7, 11 for 2 KiB, in a folder of their own; cards and folder end empty."""
    from cuzk.groth16.gpu.target import release  # needs numba-cuda

    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        environment.setenv("FIL_PROOFS_PARAMETER_CACHE", str(folder / "none"))
        release()
        cuzk.generate_parameters(2048, trapdoors=(2, 3, 5, 7, 11), out=folder / "parameters", **how)
        yield folder / "parameters"
    release()
    shutil.rmtree(folder)
