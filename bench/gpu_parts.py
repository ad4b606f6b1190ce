"""Parts of a benchmark that run one after another on a GPU: facts are kept, failures too."""

from __future__ import annotations

import time
import traceback
from collections.abc import Callable
from typing import Any

RESULTS: list[dict[str, Any]] = []
_BASE = {"seconds": 170.0, "start": time.time()}


def limit_seconds(seconds: float) -> None:
    """No part begins later than this, counted from the start of the process."""
    _BASE["seconds"] = seconds


def report(**facts: Any) -> None:
    RESULTS.append(facts)
    shown = "  ".join(
        f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}" for key, value in facts.items()
    )
    print(f"[{time.time() - _BASE['start']:6.1f}] {shown}", flush=True)


def attempt(name: str, part: Callable[[], None]) -> None:
    if time.time() - _BASE["start"] > _BASE["seconds"]:
        print(f"-- {name}: no time left", flush=True)
        return
    try:
        part()
    except Exception:
        report(part=name, failed=traceback.format_exc(limit=-4).replace("\n", " | "))
