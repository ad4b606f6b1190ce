"""What a configuration file names that this machine does not have: it may be meant for another one."""

from __future__ import annotations

import grp
import os
from collections.abc import Iterator
from pathlib import Path

from cuzk.config import Reading
from cuzk.config.keys import KEYS


def missing(reading: Reading) -> Iterator[str]:
    """Sentences as `Reading.warnings` has them, of keys that are right."""
    for name, given in reading.given.items():
        value = KEYS[name].parse(given.value)
        if isinstance(value, Path) and not os.path.exists(value):
            yield f"{given.where}: {name} does not exist on this machine: {value}"
        elif name == "daemon.socket_group" and not _is_group(value):
            yield f"{given.where}: {name}: there is no group {value} on this machine"


def _is_group(name: str) -> bool:
    try:
        grp.getgrnam(name)
    except KeyError:
        return False
    return True
