"""The one decorator for compiled host code, and the folder where compiled code is kept.

`@jit` is Numba's `njit(nogil=True)`, compiled lazily and cached. Numba stamps only a kernel's own file, so an
edit of a callee or of the code generator would leave stale code behind: the folder's name is therefore a hash
of all kernel sources and of the compiler's versions. Numba writes its cache files by rename, so two processes
may start at once. A folder that can only be read is read; where compiled code cannot be kept, that costs
compile time, never a failure, and is reported once by `warnings`.
"""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import llvmlite
import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache
from numba.core.runtime import rtsys

from cuzk.folders import cache_folder

F = TypeVar("F", bound=Callable[..., Any])
_HASH_LENGTH = 16


class CacheWarning(UserWarning):
    """Compiled code could not be kept: the next start compiles again."""


_KERNELS = Path(__file__).parent


def _sources_hash() -> str:
    digest = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__}".encode())
    for source in sorted(_KERNELS.rglob("*.py")):
        digest.update(source.relative_to(_KERNELS).as_posix().encode())
        digest.update(source.read_bytes())
    return digest.hexdigest()[:_HASH_LENGTH]


def compiled_folder() -> Path:
    """The folder of compiled code that belongs to exactly these sources and this compiler."""
    return _COMPILED_FOLDER


def cache_is_writable() -> bool:
    """Whether compiled code can be kept for the next process; the folder is made if it can be."""
    try:
        _COMPILED_FOLDER.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(_COMPILED_FOLDER, os.W_OK)


_COMPILED_FOLDER = cache_folder() / f"compiled-{_sources_hash()}"


class _Locator:
    """Where the versions of one function are kept, as Numba asks for it; nothing is written to find out.

    Functions of other folders (tests, benchmarks) are stamped with their own file besides.
    """

    def __init__(self, function: Callable[..., Any], file: str) -> None:
        self._line = function.__code__.co_firstlineno
        self._py_file = Path(file).resolve()
        self._is_kernel = self._py_file.is_relative_to(_KERNELS)

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> _Locator:
        return cls(function, file)

    def get_cache_path(self) -> str:
        if self._is_kernel:
            return str(_COMPILED_FOLDER / self._py_file.relative_to(_KERNELS).parent)
        return str(_COMPILED_FOLDER / hashlib.sha256(str(self._py_file).encode()).hexdigest()[:_HASH_LENGTH])

    def get_source_stamp(self) -> str:
        return "" if self._is_kernel else _file_hash(self._py_file)

    def get_disambiguator(self) -> str:
        return str(self._line)

    def ensure_cache_path(self) -> None:
        os.makedirs(self.get_cache_path(), exist_ok=True)


@cache
def _file_hash(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


class _CompiledCode(CompileResultCacheImpl):
    _locator_classes = [_Locator]


class _TolerantCache(FunctionCache):
    """Numba's cache, for which a full or read-only folder is a warning."""

    _impl_class = _CompiledCode

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """As Numba's, but without loading what only compiling needs: 0.2 s at every start.

        Damaged files are no files: what they held is compiled again.
        """
        rtsys.initialize(target_context)
        try:
            return self._load_overload(sig, target_context)
        except OSError:
            return None
        except Exception as error:  # pickles and object code fail in any way
            warnings.warn(
                f"compiled code in {self.cache_path} is damaged: {error!r}", CacheWarning, stacklevel=2
            )
            with suppress(OSError):
                self.flush()
            return None

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
    dispatcher._cache = _TolerantCache(function)
    return dispatcher  # type: ignore[no-any-return]
