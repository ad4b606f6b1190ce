"""Modules that are loaded without looking for garbage, neither meanwhile nor later."""

from __future__ import annotations

import gc
import sys
from pathlib import Path

import pytest

from cuzk.garbage import load


def test_what_a_module_brings_is_not_looked_at_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = "import gc\ncollected = gc.isenabled()\ntable = [[k] for k in range(999)]\n"
    (tmp_path / "brought.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert gc.isenabled()
    try:
        frozen = gc.get_freeze_count()
        module = load("brought")
        assert not module.collected and gc.isenabled()
        assert gc.get_freeze_count() - frozen > 999
        gc.unfreeze()
        assert load("brought") is module
        assert gc.get_freeze_count() == 0
    finally:
        gc.unfreeze()
        sys.modules.pop("brought", None)
