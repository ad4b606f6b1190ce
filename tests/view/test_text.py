"""What every command shows with."""

from __future__ import annotations

import pytest

from cuzk import view


def test_a_table_keeps_its_columns_apart(capsys: pytest.CaptureFixture[str]) -> None:
    view.show_table(("sector", "rows"), [("2KiB", 7), ("32GiB", 12345)])
    assert capsys.readouterr().out == "  sector   rows\n  2KiB        7\n  32GiB   12345\n"
