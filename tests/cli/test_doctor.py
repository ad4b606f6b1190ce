"""`cuzk doctor`: what it says of any machine."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from cuzk.units import format_size
from tests.cli.running import run


def test_doctor_says_the_same_in_words_and_in_json(own_home: Path) -> None:
    words, facts = run("doctor"), json.loads(run("doctor", "--json").stdout)
    assert words.exit_code == 0
    assert {"software", "processor", "memory", "gpu", "compiled_code", "parameters"} <= facts.keys()
    for value in facts["software"].values():
        assert value in words.stdout
    processor, memory = facts["processor"], facts["memory"]
    assert f"avx512_ifma: {'yes' if processor['avx512_ifma'] else 'no'}" in words.stdout
    installed = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert memory["installed_bytes"] == pytest.approx(installed, rel=0.02)
    assert re.search(rf"installed: +{re.escape(format_size(memory['installed_bytes']))}\n", words.stdout)
    assert "compiled code\n" in words.stdout
    assert str(own_home / "parameters") in facts["parameters"]
