"""What marks parameters as development ones: a small file beside them, `<stem>.insecure-dev.json`.

Development parameters carry the published names, so that other software finds them, but whoever generated
them could forge proofs, and no network accepts a proof made with them. The mark names the digest of the
verifying key, with which both `.vk` and `.params` begin, so that a mark left behind says nothing about other
parameters that later take the same name. Trapdoors are recorded only if the user gave them; random ones are
never stored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from cuzk.groth16.parameters.verifying_key import VerifyingKey

MARK_SUFFIX = ".insecure-dev.json"


def mark_content(key: VerifyingKey, given_trapdoors: Mapping[str, int] | None) -> bytes:
    """The mark of parameters that begin with `key`; no `given_trapdoors` means that they were random."""
    given = {name: str(value) for name, value in (given_trapdoors or {}).items()}
    content = {
        "warning": "Insecure development parameters: no network accepts proofs made with them.",
        "verifying_key_digest": key.digest,
        "trapdoors": given or "random",
    }
    return json.dumps(content, indent=2).encode() + b"\n"


def is_marked(folder: Path, stem: str, key_digest: str) -> bool:
    """Whether the parameters `stem` in `folder` that begin with this key are marked as development ones."""
    try:
        content = json.loads((folder / (stem + MARK_SUFFIX)).read_bytes())
    except (OSError, ValueError):  # no mark, or none that says anything
        return False
    return isinstance(content, dict) and content.get("verifying_key_digest") == key_digest
