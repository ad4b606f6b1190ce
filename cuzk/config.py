"""The configuration file: TOML in, a validated `Config` out. Options on the command line win over it.

    [prover]
    device = "auto"            # as --device
    threads = 8                # as --threads

    [parameters]
    folder = "/data/params"    # as --params
    gateway = "https://..."    # where `params fetch` downloads from

    [gpus]                     # of an engine, which proves many sectors at once
    devices = ["cuda:0", 1]    # without it every GPU, or else the CPU; 1 is "cuda:1"
    gpu_workers_per_device = 2
    gpu_lock = "narrow"        # or "coarse", "none"

    [synthesis]
    partition_workers = 2

    [pipeline]
    synthesis_lookahead = 2    # partitions that may wait for each device

    [memory]
    total_budget = "auto"      # or a size: "256GiB"

Read from --config, else from cuzk.toml in the user's configuration folder (~/.config/cuzk); without either,
all is default.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomli

from cuzk.engine.settings import GPU_LOCKS
from cuzk.errors import InputError
from cuzk.folders import config_folder
from cuzk.units import parse_size


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the file may set; None means that the file is silent and the program decides."""

    device: str = "auto"
    threads: int | None = None
    params: Path | None = None
    gateway: str | None = None
    devices: tuple[str, ...] = ()
    gpu_workers_per_device: int | None = None
    gpu_lock: str | None = None
    partition_workers: int | None = None
    synthesis_lookahead: int | None = None
    memory: int | None = None


@dataclass(frozen=True, slots=True)
class _Key:
    """Where a key's value goes, what type it has in the file, and what is made of it.

    `parse` raises ValueError, with a message for users, for what makes no sense.
    """

    field: str
    kind: type
    parse: Callable[[Any], Any] = lambda value: value


def _positive(value: int) -> int:
    if value < 1:
        raise ValueError(f"is {value}; at least 1 is needed")
    return value


def _devices(value: list[Any]) -> tuple[str, ...]:
    if not all(type(one) in (str, int) for one in value):
        raise ValueError("has an entry that is neither a name nor a number of a device")
    return tuple(f"cuda:{one}" if isinstance(one, int) else one for one in value)


def _lock(value: str) -> str:
    if value not in GPU_LOCKS:
        raise ValueError(f"is {value!r}; known are {', '.join(GPU_LOCKS)}")
    return value


def _size(value: str) -> int | None:
    return None if value == "auto" else parse_size(value)


#: By table.key.
KEYS: dict[str, _Key] = {
    "prover.device": _Key("device", str),
    "prover.threads": _Key("threads", int, _positive),
    "parameters.folder": _Key("params", str, lambda value: Path(value).expanduser()),
    "parameters.gateway": _Key("gateway", str),
    "gpus.devices": _Key("devices", list, _devices),
    "gpus.gpu_workers_per_device": _Key("gpu_workers_per_device", int, _positive),
    "gpus.gpu_lock": _Key("gpu_lock", str, _lock),
    "synthesis.partition_workers": _Key("partition_workers", int, _positive),
    "pipeline.synthesis_lookahead": _Key("synthesis_lookahead", int, _positive),
    "memory.total_budget": _Key("memory", str, _size),
}
_KINDS = {str: "a string", int: "an integer", bool: "a boolean", float: "a float", list: "a list"}
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
            kind = KEYS[key].kind
            if type(value) is not kind:
                raise InputError(
                    f"{key} is {_KINDS.get(type(value), 'no plain value')}",
                    where=where,
                    next=f"give {_KINDS[kind]}",
                )
            try:
                values[KEYS[key].field] = KEYS[key].parse(value)
            except ValueError as error:
                raise InputError(f"{key} {error}", where=where, next="mend that value") from error
    return Config(**values)


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
