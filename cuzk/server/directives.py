"""Which log records are said: a level, or filter directives as Curio's daemon takes them."""

from __future__ import annotations

LEVELS = ("trace", "debug", "info", "warn", "error", "off")


def parse_directives(text: str) -> dict[str, str]:
    """Levels by logger, from "info" or "info,cuzk_core=debug"; "" is everyone's. Raises ValueError."""
    levels = {}
    for directive in text.split(","):
        name, found, level = directive.strip().rpartition("=")
        if level.lower() not in LEVELS or (found and not name):
            raise ValueError(f"{directive.strip()!r} is no level; known are {', '.join(LEVELS)}")
        levels[name.replace("::", ".")] = level.lower()
    return levels
