"""What tests of figures and of pictures share."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuzk.timeline.analyze import Report, analyze
from cuzk.timeline.read import read_log


@pytest.fixture(scope="session")
def published(vectors: Path) -> Report:
    """Of the log whose figures were published."""
    return analyze(read_log(vectors / "timeline" / "phase7.log"))
