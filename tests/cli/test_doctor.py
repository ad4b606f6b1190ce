"""`cuzk doctor`: what it says of any machine."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.running import run


def test_doctor_says_the_same_in_words_and_in_json(own_home: Path) -> None:
    words, facts = run("doctor"), json.loads(run("doctor", "--json").stdout)
    assert words.exit_code == 0
    assert {"software", "processor", "memory", "gpu", "compiled code", "parameters"} <= facts.keys()
    for section in ("software", "processor"):
        for value in facts[section].values():
            assert str(value) in words.stdout
    assert str(own_home / "parameters") in facts["parameters"]
