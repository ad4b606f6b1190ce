"""A user's folders, as the XDG base directory rules name them. None of them is made here."""

from __future__ import annotations

import os
from pathlib import Path


def config_folder() -> Path:
    """What the user wrote: `$XDG_CONFIG_HOME/cuzk`, or `~/.config/cuzk`."""
    return _folder("XDG_CONFIG_HOME", ".config")


def data_folder() -> Path:
    """What cuzk made for the user: `$XDG_DATA_HOME/cuzk`, or `~/.local/share/cuzk`."""
    return _folder("XDG_DATA_HOME", ".local/share")


def cache_folder() -> Path:
    """What can be made again: `$XDG_CACHE_HOME/cuzk`, or `~/.cache/cuzk`."""
    return _folder("XDG_CACHE_HOME", ".cache")


def _folder(variable: str, usual: str) -> Path:
    return Path(os.environ.get(variable) or Path.home() / usual) / "cuzk"
