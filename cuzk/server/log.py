"""Log lines as those of Curio's daemon, or as JSON: a time, a level, who speaks, a message, key=value fields.

2026-08-20T12:00:00.123456Z  INFO cuzk_server::service: Prove request_id=porep-1000-7 proof_kind=1
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any, TextIO

from cuzk.events import Event, Notice, StageDone, StageStarted
from cuzk.server.directives import parse_directives

_NUMBERS: dict[str, int] = {
    "trace": logging.DEBUG,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "error": logging.ERROR,
    "off": logging.CRITICAL + 1,
}
_NAMES = {logging.DEBUG: "DEBUG", logging.INFO: "INFO", logging.WARNING: "WARN", logging.ERROR: "ERROR"}
_COLOURS = {"DEBUG": "34", "INFO": "32", "WARN": "33", "ERROR": "31"}
_FIELDS = "cuzk_fields"
_LONGEST = 4096  # characters of a text that a client chose, which may have 256 million
_PLAIN = re.compile(r'[^\s"=]+')


class Log:
    """Who speaks, "cuzk_server.service"; a dot shows as `::`."""

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)

    def debug(self, message: str, **fields: Any) -> None:
        self._say(logging.DEBUG, message, fields)

    def info(self, message: str, **fields: Any) -> None:
        self._say(logging.INFO, message, fields)

    def warn(self, message: str, **fields: Any) -> None:
        self._say(logging.WARNING, message, fields)

    def error(self, message: str, **fields: Any) -> None:
        self._say(logging.ERROR, message, fields)

    def _say(self, level: int, message: str, fields: dict[str, Any]) -> None:
        self._logger.log(level, message, extra={_FIELDS: fields})


_WORK = Log("cuzk_core.engine")


def hear(event: Event) -> None:
    """What long work says, as log lines; how far it has come goes unsaid."""
    if isinstance(event, StageStarted):
        _WORK.info(f"{event.name} begins")
    elif isinstance(event, StageDone):
        _WORK.info(f"{event.name} done", seconds=f"{event.seconds:.1f}")
    elif isinstance(event, Notice):
        (_WORK.warn if event.level == "warning" else _WORK.info)(event.text)


class Lines(logging.Formatter):
    """One line a record; what would end it or a value, or steer a terminal, is as JSON has it in quotes."""

    def __init__(self, *, coloured: bool = False) -> None:
        super().__init__()
        self._coloured = coloured

    def format(self, record: logging.LogRecord) -> str:
        level, target = _NAMES.get(record.levelno, record.levelname), record.name.replace(".", "::")
        fields = "".join(f" {name}={_value(value)}" for name, value in _fields(record).items())
        time, message = _time(record), _printable(record.getMessage())
        if not self._coloured:
            return f"{time} {level:>5} {target}: {message}{fields}"
        shown = f"\x1b[2m{time}\x1b[0m \x1b[{_COLOURS[level]}m{level:>5}\x1b[0m"
        return f"{shown} \x1b[2m{target}:\x1b[0m {message}{fields}"


class JsonLines(logging.Formatter):
    """One JSON object a record."""

    def format(self, record: logging.LogRecord) -> str:
        facts = {
            "timestamp": _time(record),
            "level": _NAMES.get(record.levelno, record.levelname),
            "target": record.name.replace(".", "::"),
            "message": record.getMessage(),
            **_fields(record),
        }
        return json.dumps(facts, default=str)


def _time(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, timezone.utc)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    fields = {name: _short(value) for name, value in getattr(record, _FIELDS, {}).items()}
    if record.exc_info:
        fields["error"] = logging.Formatter().formatException(record.exc_info)
    return fields


def _value(value: Any) -> str:
    text = str(value)
    if _PLAIN.fullmatch(text) and text.isprintable():
        return text
    return _printable(json.dumps(text, ensure_ascii=False))


def _short(value: Any) -> Any:
    return f"{value[:_LONGEST]}..." if isinstance(value, str) and len(value) > _LONGEST else value


def _printable(text: str) -> str:
    """Clients choose what they call their jobs: controls, marks of direction, halves of surrogate pairs."""
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)


def set_up(level: str, *, as_json: bool = False, stream: TextIO | None = None) -> None:
    """From now on records of this process go to `stream`, else stdout. RUST_LOG wins where it is valid.

    level  or directives. Raises ValueError for a level that is none.
    """
    levels = parse_directives(level)
    with suppress(KeyError, ValueError):
        levels = parse_directives(os.environ["RUST_LOG"])
    stream = stream or sys.stdout
    handler = logging.StreamHandler(stream)
    coloured = stream.isatty() and not os.environ.get("NO_COLOR")
    handler.setFormatter(JsonLines() if as_json else Lines(coloured=coloured))
    logging.basicConfig(handlers=[handler], level=_NUMBERS[levels.pop("", "info")], force=True)
    for name, one in levels.items():
        logging.getLogger(name).setLevel(_NUMBERS[one])
