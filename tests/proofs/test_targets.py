"""What must be known of a parameter file before its first proof."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuzk.events import ignore
from cuzk.groth16.parameters.checked import CheckedFiles
from cuzk.proofs.targets import FirstUse


class Target:
    """Counts how often its points are checked."""

    def __init__(self) -> None:
        self.checks = 0

    def require_good_points(self, on_event: Any) -> None:
        self.checks += 1


def test_points_are_checked_once_by_whichever_target_is_opened_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "some.params"
    path.write_bytes(b"points")
    first_use = FirstUse(path=path, known=CheckedFiles().of(path), is_unknown=True)
    targets: list[Any] = [Target(), Target()]
    for target in (*targets, targets[0]):
        first_use.check(target, ignore)
    assert [target.checks for target in targets] == [1, 0]
    path.write_bytes(b"other points")
    first_use.check(targets[1], ignore)
    assert targets[1].checks == 1, "another file now"
