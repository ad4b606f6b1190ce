"""Upstream's c1 files as Python objects, and back to the bytes of a file: what tests damage and reorder."""

import base64
import json
from pathlib import Path

from cuzk.sector.api_version import ApiVersion
from cuzk.sector.porep.registered_proof import Feature, RegisteredProof

POREP = Path(__file__).parents[2] / "vectors" / "porep"
VECTORS = json.loads((POREP / "vectors.json").read_text())
CASES = {case["file"]: case for case in VECTORS["cases"]}

#: What upstream sealed the two sizes as that have no registered proof: number 99 in the porep id.
MADE_UP = {
    file: RegisteredProof(
        number=99,
        name=CASES[file]["registered_proof"],
        sector_bytes=CASES[file]["sector_size"],
        api_version=ApiVersion.V1_1,
        feature=Feature.INTERACTIVE,
    )
    for file in ("shape-4k.json", "shape-16k.json")
}


def outer(file):
    """The wrapper as an object; Phase1Out is still base64."""
    return json.loads((POREP / file).read_bytes())


def inner(file):
    """The inner document as an object."""
    return json.loads(base64.b64decode(outer(file)["Phase1Out"]))


def compact(document):
    return json.dumps(document, separators=(",", ":")).encode()


def wrapped(document, **changes):
    """The bytes of a c1 file around an inner document."""
    wrapper = {"SectorNum": 1, "Phase1Out": base64.b64encode(compact(document)).decode(), "SectorSize": 2048}
    return compact(wrapper | changes)
