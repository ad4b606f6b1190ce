"""Keys put into the text of a configuration file, everything else in it left as it stands."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import tomli

from cuzk.errors import InputError


def with_keys(text: str, keys: Mapping[str, Any], *, where: str) -> str:
    """The text with each table.key at that value: its line replaced, or put below its table's, or at the end.

    values are strings and integers. Raises InputError for a file that spells tables in another way.
    """
    lines = text.splitlines()
    for name, value in keys.items():
        table, _, key = name.partition(".")
        line = f"{key} = {json.dumps(value, ensure_ascii=False)}"
        header = _find(lines, rf"\s*\[\s*{re.escape(table)}\s*\]", 0, len(lines))
        if header is None:
            lines += ([""] if lines else []) + [f"[{table}]", line]
            continue
        end = _find(lines, r"\s*\[", header + 1, len(lines)) or len(lines)
        there = _find(lines, rf"\s*{re.escape(key)}\s*=", header + 1, end)
        if there is None:
            lines.insert(header + 1, line)
        else:
            lines[there] = line
    edited = "\n".join(lines) + "\n"
    if not _says(edited, keys):
        wanted = ", ".join(f"{name} = {json.dumps(value)}" for name, value in keys.items())
        raise InputError(
            "the file is written in a way that is not edited here",
            where=where,
            next=f"write yourself: {wanted}",
        )
    return edited


def _find(lines: list[str], pattern: str, begin: int, end: int) -> int | None:
    return next((k for k in range(begin, end) if re.match(pattern, lines[k])), None)


def _says(text: str, keys: Mapping[str, Any]) -> bool:
    try:
        document = tomli.loads(text)
    except tomli.TOMLDecodeError:
        return False
    tables = {name: document.get(name.partition(".")[0]) for name in keys}
    return all(
        isinstance(table, dict) and table.get(name.partition(".")[2]) == keys[name]
        for name, table in tables.items()
    )
