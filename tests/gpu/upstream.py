"""Sectors of 2 KiB, and the proofs that upstream makes of them with r = 13 and s = 17, by file."""

from __future__ import annotations

import json
from pathlib import Path

POREP = Path(__file__).resolve().parents[1] / "vectors" / "porep"
UPSTREAM = {
    case["file"]: case["proof_r13_s17"]
    for case in json.loads((POREP / "vectors.json").read_text())["cases"]
    if "proof_r13_s17" in case
}
