"""The one decorator for compiled host code, and the folder where compiled code is kept.

`@jit` is Numba's `njit(nogil=True)`, compiled lazily and cached. Numba stamps only a kernel's own file, so an
edit of a callee or of the code generator would leave stale code behind: the folder's name is therefore a hash
of all kernel sources and of the compiler's versions. Numba writes its cache files by rename, so two processes
may start at once. A folder that cannot be written costs compile time, never a failure: it is reported once by
`warnings`.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import llvmlite
import numba
from numba.core import config
from numba.core.caching import FunctionCache

from cuzk.folders import cache_folder

F = TypeVar("F", bound=Callable[..., Any])
_HASH_LENGTH = 16


class CacheWarning(UserWarning):
    """Compiled code could not be kept: the next start compiles again."""


def _sources_hash() -> str:
    digest = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__}".encode())
    kernels = Path(__file__).parent
    for source in sorted(kernels.rglob("*.py")):
        digest.update(source.relative_to(kernels).as_posix().encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:_HASH_LENGTH]


def compiled_folder() -> Path:
    """The folder of compiled code that belongs to exactly these sources and this compiler."""
    return _COMPILED_FOLDER


def cache_is_writable() -> bool:
    """Whether compiled code can be kept for the next process."""
    return os.access(_COMPILED_FOLDER, os.W_OK)


_COMPILED_FOLDER = cache_folder() / f"compiled-{_sources_hash()}"


class _TolerantCache(FunctionCache):
    """Numba's cache, for which a full or read-only folder is a warning."""

    def save_overload(self, sig: Any, data: Any) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            warn_once(error)


_warned = False


def warn_once(error: Exception) -> None:
    """Say, the first time only, that compiled code cannot be kept."""
    global _warned
    if not _warned:
        _warned = True
        warnings.warn(
            f"compiled code is not kept in {_COMPILED_FOLDER}: {error}; every start compiles again",
            CacheWarning,
            stacklevel=3,
        )


def jit(function: F) -> F:
    """Compile `function` at its first call, without the GIL, and keep the result for the next process."""
    dispatcher = numba.njit(nogil=True)(function)
    try:
        dispatcher._cache = _open_cache(function)
    except (OSError, RuntimeError) as error:
        warn_once(error)
    return dispatcher  # type: ignore[no-any-return]


def _open_cache(function: F) -> FunctionCache:
    """Numba picks the folder when the cache is opened, from its global setting, which is put back at once."""
    before = config.CACHE_DIR
    try:
        _COMPILED_FOLDER.mkdir(parents=True, exist_ok=True)
        config.CACHE_DIR = str(_COMPILED_FOLDER)
        return _TolerantCache(function)
    finally:
        config.CACHE_DIR = before
