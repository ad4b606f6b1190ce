"""Draws docs/figures/prove.svg: a real proof of the bundled 2 KiB sector, as a terminal shows it.

Run after `make demo`, whose parameters it uses: .venv/bin/python docs/figures/terminal.py
"""

from __future__ import annotations

import io
import os
import re
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console

import cuzk
from cuzk.view.progress import drawing
from cuzk.view.proof import proof_block

ROOT = Path(__file__).resolve().parents[2]
WIDTH = 104
#: Rich names web fonts; a picture in a repository should load nothing.
TEMPLATE = re.sub(r"@font-face \{\{.*?\}\}\n", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def main() -> None:
    # Not a terminal itself, so that only the last state of the drawing is recorded, not every frame.
    console = Console(record=True, width=WIDTH, force_terminal=False, file=io.StringIO())
    os.chdir(ROOT)  # paths are shown as they are given: short
    console.print("[green]$ [/]cuzk prove c1.json", highlight=False)
    with drawing(console) as on_event:
        result = cuzk.prove(
            "tests/vectors/porep/2k-random.json",
            params=Path(".demo/parameters"),
            on_event=on_event,
        )
    console.print(proof_block(result), highlight=False, markup=False)
    picture = console.export_svg(title="cuzk", code_format=TEMPLATE)
    (ROOT / "docs/figures/prove.svg").write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    main()
