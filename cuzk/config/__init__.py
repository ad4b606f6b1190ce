"""The configuration file: TOML in, a validated `Config` out. Options on the command line win over it.

    [prover]
    device = "auto"

    [gpus]
    devices = ["cuda:0", 2]

    [memory]
    total_budget = "256GiB"

`keys` has all keys. Read from --config, else from the first of `default_places` that exists; without
any, all is default.
"""

from __future__ import annotations

import difflib
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli

from cuzk.config.keys import KEYS, TABLES, Key
from cuzk.engine.settings import GpuLock, Settings
from cuzk.errors import CuzkError, InputError
from cuzk.folders import config_folder

#: Where Curio's daemon looks for its file.
DAEMONS_PLACE = Path("/data/zk/cuzk.toml")
_SETTINGS = Settings()
_KINDS = {str: "a string", int: "an integer", bool: "a boolean", float: "a float", list: "a list"}
_OUT_OF_DATE_BUDGETS = ("memory.pinned_budget", "memory.working_memory_budget")


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What the file may set, with what holds where it is silent; None: the program decides when it runs.

    Fields are those of `keys.KEYS`, which explain them; sizes are bytes.
    """

    device: str = "auto"
    threads: int | None = None
    params: Path | None = None
    gateway: str | None = None
    devices: tuple[str, ...] = ()
    gpu_workers_per_device: int = _SETTINGS.gpu_workers_per_device
    gpu_lock: GpuLock = _SETTINGS.gpu_lock
    stall_after_s: float = _SETTINGS.stall_after_s
    partition_workers: int = _SETTINGS.partition_workers
    synthesis_lookahead: int = _SETTINGS.synthesis_lookahead
    setup_batch_s: float = _SETTINGS.setup_batch_s
    max_parallel_synthesis: int | None = None
    memory: int | None = None
    safety_margin: int | None = None
    preload: tuple[str, ...] = ()
    listen: str = "unix:///run/curio/cuzk.sock"
    status_listen: str = ""
    socket_mode: int = 0o660
    socket_group: str | None = None
    tls_certificate: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    token_file: Path | None = None
    journal: str = "auto"
    journal_bytes: int = 32 << 30
    queue_memory: int = 4 << 30
    drain_s: float = 300.0
    results_kept: int = 1000
    results_s: float = 3600.0
    waiting_s: float = 7 * 24 * 3600.0
    readers: int = 2
    log_level: str = "info"
    log_format: str = "text"

    @property
    def bounded_partition_workers(self) -> int:
        return min(self.partition_workers, self.max_parallel_synthesis or self.partition_workers)


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """A key that the file has: TOML's value, and path:line."""

    value: Any
    where: str


@dataclass(slots=True, kw_only=True)
class Reading:
    """All that can be said of a file.

    path      None where there is no file
    given     its keys that are right, by table.key, in the file's order
    problems  mistakes, in the file's order; then those of several keys together
    warnings  sentences, each with its place
    """

    path: Path | None = None
    given: dict[str, Given] = field(default_factory=dict)
    problems: list[InputError] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def require_right(self) -> None:
        """Raises InputError for the first mistake."""
        if not self.problems:
            return
        first, count = self.problems[0], len(self.problems)
        if count == 1:
            raise first
        every = f"{first.next}; `cuzk config check {self.path}` names all {count} mistakes"
        raise InputError(first.what, where=first.where, next=every) from first

    def config(self) -> Config:
        """What the right keys set."""
        values: dict[str, Any] = {}
        for name, given in self.given.items():
            key = KEYS[name]
            if key.field is not None:
                values[key.field] = key.parse(given.value)
        budgets = [name for name in _OUT_OF_DATE_BUDGETS if name in self.given]
        if budgets and "memory.total_budget" not in self.given:
            values["memory"] = sum(KEYS[name].parse(self.given[name].value) for name in budgets)
        return Config(**values)

    def effective(self) -> Iterator[tuple[str, Any, str]]:
        """Every key that has a field: table.key, what holds as TOML has it, and where that was said.

        The value is None where the program decides, the place empty where it is the default.
        """
        config = self.config()
        for name, key in KEYS.items():
            if key.field is None or key.alias is not None:
                continue
            names = (name, *self.given)  # its own name goes before what is out of date
            said = next((one for one in names if one in self.given and KEYS[one].sets(name)), None)
            if said is None or getattr(config, key.field) is None:
                yield name, key.default, "" if said is None else self.given[said].where
            else:
                total = said in _OUT_OF_DATE_BUDGETS
                yield name, config.memory if total else self.given[said].value, self.given[said].where


def default_places() -> tuple[Path, ...]:
    """cuzk.toml in the user's configuration folder, then where Curio's daemon has it."""
    return config_folder() / "cuzk.toml", DAEMONS_PLACE


def load(path: Path | None = None) -> Config:
    """The configuration at `path`, which must exist; without `path` the first default place that does.

    Raises InputError for the first mistake; warnings are Python's.
    """
    reading = read(path)
    reading.require_right()
    for text in reading.warnings:
        warnings.warn(text, stacklevel=2)
    return reading.config()


def read(path: Path | None = None) -> Reading:
    """As `load`, but mistakes are collected. Raises InputError only for what cannot be read or is no TOML."""
    path = path or next((place for place in default_places() if place.exists()), None)
    if path is None:
        return Reading()
    try:
        text = path.read_text(encoding="utf-8")
        document = tomli.loads(text)
    except OSError as error:
        raise InputError(
            f"the configuration cannot be read: {error.strerror}",
            where=str(path),
            next="check its path and permissions",
        ) from error
    except (UnicodeDecodeError, tomli.TOMLDecodeError) as error:
        line = re.search(r"\(at line (\d+),", str(error))
        where = f"{path}:{line[1]}" if line else str(path)
        raise InputError(f"this is not TOML: {error}", where=where, next="mend that line") from error
    reading = Reading(path=path)
    for name, given in _entries(document, text, path, reading.problems):
        try:
            _check(name, given, reading)
        except InputError as error:
            reading.problems.append(error)
        else:
            reading.given[name] = given
    reading.problems.extend(_tls_without_its_pair(reading))
    return reading


def _tls_without_its_pair(reading: Reading) -> Iterator[InputError]:
    pair = [name for name in ("daemon.tls_certificate", "daemon.tls_key") if name in reading.given]
    said = [name for name in (*pair, "daemon.tls_client_ca") if name in reading.given]
    if said and len(pair) < 2:
        yield InputError(
            "TLS needs a certificate and its key",
            where=reading.given[said[0]].where,
            next="set daemon.tls_certificate and daemon.tls_key, or no key of TLS",
        )


def _entries(
    document: dict[str, Any], text: str, path: Path, problems: list[InputError]
) -> Iterator[tuple[str, Given]]:
    """table.key and what is there, of all tables that exist; others are problems."""
    for table, content in document.items():
        if table in TABLES and isinstance(content, dict):
            for name, value in content.items():
                yield f"{table}.{name}", Given(value=value, where=_place(path, text, table, name))
        else:
            problems.append(_no_table(table, content, _place(path, text, table)))


def _no_table(name: str, content: Any, where: str) -> InputError:
    """Of a table that does not exist, or of a value where a table must be."""
    if isinstance(content, dict):
        return InputError(f"there is no table [{name}]", where=where, next=_suggest(name, TABLES))
    if name in TABLES:
        return InputError(f"{name} is no table", where=where, next=f"write [{name}], and its keys below")
    full = next((key for key in KEYS if key.partition(".")[2] == name), None)
    hint = "put it below the [table] that it belongs to" if full is None else f"did you mean {full}?"
    return InputError(f"{name} is a key outside of a table", where=where, next=hint)


def _check(name: str, given: Given, reading: Reading) -> None:
    """Raises InputError for what makes no sense; notes what deserves a warning."""
    key, value, where = KEYS.get(name), given.value, given.where
    if key is None:
        raise InputError(f"there is no key {name}", where=where, next=_suggest(name, list(KEYS)))
    if type(value) not in key.kinds:
        raise InputError(
            f"{name} is {_KINDS.get(type(value), 'no plain value')}",
            where=where,
            next=f"give {' or '.join(_KINDS[kind] for kind in key.kinds)}",
        )
    try:
        key.parse(value)
    except ValueError as error:
        raise InputError(f"{name} {error}", where=where, next="mend that value") from error
    except CuzkError as error:
        raise InputError(f"{name}: {error.what}", where=where, next=error.next) from error
    _require_one_name(name, key, where, reading)
    if key.warning is not None:
        reading.warnings.append(f"{where}: {name} {key.warning}")
    elif key.field is None and key.asks(value):
        reading.warnings.append(f"{where}: {name} has no effect: {key.meaning}")


def _require_one_name(name: str, key: Key, where: str, reading: Reading) -> None:
    """Raises InputError where the same thing was said before by its other name."""
    if key.field is None:
        return
    for other in reading.given:
        if KEYS[other].field == key.field:
            raise InputError(
                f"{name} says what {other} has said", where=where, next=f"keep one: {key.alias or name}"
            )


def _suggest(given: str, known: list[str]) -> str:
    near = difflib.get_close_matches(given, known, n=1)
    return f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}"


def _place(path: Path, text: str, table: str, name: str | None = None) -> str:
    """path:line of a table or key; just the path where the file spells it in a form we do not search for.

    A key of a table that is written on one line is where that is.
    """
    key, of_table, inside = table if name is None else f"{table}.{name}", "", ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := re.match(r"\s*\[\[?\s*([^\]]+?)\s*\]", line):
            inside, found = f"{header[1]}.", header[1]
        else:
            found = inside + "".join(line.partition("=")[0].split())
        if found == key or (name is None and found.startswith(f"{table}.") and not inside):
            return f"{path}:{number}"
        if found == table and not header:
            of_table = f":{number}"
    return f"{path}{of_table}"
