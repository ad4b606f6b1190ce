"""The garbage collector, out of the way of code that makes objects by the million."""

from __future__ import annotations

import gc
import importlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType


@contextmanager
def without_garbage_collection() -> Iterator[None]:
    """A document or a log becomes a million objects and no cycle; looking for one triples the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def load(name: str) -> ModuleType:
    """The module of that name. Its classes and tables, and theirs, are never looked at again: they stay.

    A compiler's take a tenth of a second at each look, of which there would be several, and one at the end.
    """
    if name not in sys.modules:
        with without_garbage_collection():
            importlib.import_module(name)
            gc.freeze()
    return sys.modules[name]
