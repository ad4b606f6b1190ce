"""The configuration file: TOML in, a validated `Config` out. Options on the command line win over it.

    [prover]
    device = "auto"            # as --device
    threads = 8                # as --threads

    [parameters]
    folder = "/data/params"    # as --params
    gateway = "https://..."    # where `params fetch` downloads from

Read from --config, else from cuzk.toml in the user's configuration folder (~/.config/cuzk); without either,
all is default.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli

from cuzk.errors import InputError
from cuzk.folders import config_folder


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the file may set; None means that the file is silent and the program decides."""

    device: str = "auto"
    threads: int | None = None
    params: Path | None = None
    gateway: str | None = None

    def __post_init__(self) -> None:
        if self.threads is not None and self.threads < 1:
            raise ValueError(f"prover.threads is {self.threads}; at least one thread is needed")


#: table.key -> field of Config, type in the file
KEYS: dict[str, tuple[str, type]] = {
    "prover.device": ("device", str),
    "prover.threads": ("threads", int),
    "parameters.folder": ("params", str),
    "parameters.gateway": ("gateway", str),
}
_KINDS = {str: "a string", int: "an integer", bool: "a boolean", float: "a float"}
TABLES = sorted({key.partition(".")[0] for key in KEYS})


def default_path() -> Path:
    """cuzk.toml in the user's configuration folder."""
    return config_folder() / "cuzk.toml"


def load(path: Path | None = None) -> Config:
    """The configuration at `path`, which must exist; without `path` the default file, which need not."""
    if path is None:
        path = default_path()
        if not path.exists():
            return Config()
    try:
        text = path.read_text(encoding="utf-8")
        document = tomli.loads(text)
    except OSError as error:
        raise InputError(
            f"the configuration cannot be read: {error.strerror}", where=str(path), next="check --config"
        ) from error
    except (UnicodeDecodeError, tomli.TOMLDecodeError) as error:
        raise InputError(f"this is not TOML: {error}", where=str(path), next="mend that line") from error
    return _build(document, text, path)


def _build(document: dict[str, Any], text: str, path: Path) -> Config:
    values: dict[str, Any] = {}
    for table, content in document.items():
        if table not in TABLES or not isinstance(content, dict):
            raise InputError(
                f"there is no table [{table}]",
                where=_place(path, text, table),
                next=_suggest(table, TABLES),
            )
        for name, value in content.items():
            key = f"{table}.{name}"
            where = _place(path, text, table, name)
            if key not in KEYS:
                raise InputError(f"there is no key {key}", where=where, next=_suggest(key, list(KEYS)))
            field, kind = KEYS[key]
            if type(value) is not kind:
                raise InputError(
                    f"{key} is {_KINDS.get(type(value), 'no plain value')}",
                    where=where,
                    next=f"give {_KINDS[kind]}",
                )
            values[field] = value
    if "params" in values:
        values["params"] = Path(values["params"]).expanduser()
    try:
        return Config(**values)
    except ValueError as error:
        raise InputError(str(error), where=str(path), next="mend that value") from error


def _suggest(given: str, known: list[str]) -> str:
    near = difflib.get_close_matches(given, known, n=1)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"


def _place(path: Path, text: str, table: str, name: str | None = None) -> str:
    """path:line of a table or key; just the path where the file spells it in a form we do not search for."""
    inside = False
    for number, line in enumerate(text.splitlines(), start=1):
        header = re.match(r"\s*\[\s*([^\]]+?)\s*\]", line)
        if header:
            inside = header[1] == table
        found = inside if name is None else inside and re.match(rf"\s*{re.escape(name)}\s*=", line)
        if found or (name is None and re.match(rf"\s*{re.escape(table)}\s*[.=]", line)):
            return f"{path}:{number}"
    return str(path)
