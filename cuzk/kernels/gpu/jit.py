"""The one decorator for kernels of the GPU: compiled when first needed, and kept in the package's folder.

    @cuda_jit(pointer(uint64), pointer(uint64), uint32, launch_bounds=(256, 2))
    def double(source, target, n):
        i = cuda.grid(1)
        if i < n:
            target[i] = 2 * source[i]

A kernel belongs to no card: `CudaDevice.load` puts it on one. The folder is that of `kernels.jit`, whose
name is a hash of all kernel sources; a file in it holds one kernel for one capability and signature. Numba's
own cache is not used: it keys by one file's time stamp, pickles its compiler's objects, and needs a GPU.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numba.core import types

from cuzk.kernels.gpu.compiler import compile_kernel, toolchain
from cuzk.kernels.jit import compiled_folder, warn_once

if TYPE_CHECKING:
    from cuzk.kernels.gpu.cubin import Compiled

_DIGEST_BYTES = hashlib.sha256().digest_size
_KEY_LENGTH = 16


class CudaKernel:
    """A Python function as a kernel: its types, and its code for any compute capability.

    name            of the function, which is also the entry's
    argument_types  pointers and integers, see `device.cuda_launch`
    """

    def __init__(
        self,
        function: Callable[..., None],
        argument_types: tuple[types.Type, ...],
        launch_bounds: tuple[int, ...] | None,
        max_registers: int | None,
    ) -> None:
        self.function = function
        self.name = function.__name__
        self.argument_types = argument_types
        self.launch_bounds = launch_bounds
        self.max_registers = max_registers
        self.__doc__ = function.__doc__
        self._cubins: dict[tuple[int, int], bytes] = {}  # guarded by _lock
        self._lock = threading.Lock()

    def compile(self, capability: tuple[int, int]) -> Compiled:
        """Compile anew, without the cache: for tests and for those who want to see the PTX."""
        return compile_kernel(
            self.function,
            self.argument_types,
            capability,
            launch_bounds=self.launch_bounds,
            max_registers=self.max_registers,
        )

    def cubin(self, capability: tuple[int, int]) -> bytes:
        """The code for a card: from memory, from the folder, or compiled and kept in both."""
        with self._lock:
            if capability not in self._cubins:
                file = self.cache_file(capability)
                code = _read(file)
                if code is None:
                    code = self.compile(capability).cubin
                    _keep(file, code)
                self._cubins[capability] = code
            return self._cubins[capability]

    def cache_file(self, capability: tuple[int, int]) -> Path:
        """Where the code for a capability is kept; its name holds all that the code depends on."""
        key = hashlib.sha256(
            repr(
                (
                    self.argument_types,
                    capability,
                    self.launch_bounds,
                    self.max_registers,
                    sorted(toolchain().items()),
                    _identity(self.function),
                )
            ).encode()
        )
        key.update(Path(inspect.getfile(self.function)).read_bytes())  # it may lie outside the package
        target = f"sm{capability[0]}{capability[1]}"
        return compiled_folder() / f"{self.name}-{target}-{key.hexdigest()[:_KEY_LENGTH]}.cubin"

    def __call__(self, *_: Any) -> None:
        raise TypeError(f"{self.name} is a kernel of the GPU: load it on a CudaDevice and launch it there")


def cuda_jit(
    *argument_types: types.Type,
    launch_bounds: tuple[int, ...] | None = None,
    max_registers: int | None = None,
) -> Callable[[Callable[..., None]], CudaKernel]:
    """Make a function a kernel with parameters of these types. For the rest see `compile_kernel`."""
    return lambda function: CudaKernel(function, argument_types, launch_bounds, max_registers)


def _identity(value: Any) -> Any:
    """What stands for a value that a kernel closes over, the same in every process."""
    if isinstance(value, int | str | bytes | None):
        return value
    if isinstance(value, tuple | list):
        return [_identity(item) for item in value]
    function = getattr(value, "py_func", value)  # of a compiled function
    if inspect.isfunction(function):
        cells = [_identity(cell.cell_contents) for cell in function.__closure__ or ()]
        return [function.__module__, function.__qualname__, cells]
    if isinstance(value, types.Type):
        return repr(value)
    if is_dataclass(value):  # forms of fields
        return [type(value).__qualname__, *(_identity(getattr(value, field.name)) for field in fields(value))]
    raise TypeError(f"a kernel closes over {value!r:.80}, which has no name that lasts")


def _read(file: Path) -> bytes | None:
    """The code in a file, or None when there is none or it is damaged: the digest before it tells."""
    try:
        held = file.read_bytes()
    except OSError:
        return None
    digest, code = held[:_DIGEST_BYTES], held[_DIGEST_BYTES:]
    return code if hashlib.sha256(code).digest() == digest else None


def _keep(file: Path, code: bytes) -> None:
    """Write by rename, so that processes may start at once. A folder that cannot be written is a warning."""
    part = file.with_suffix(f".{os.getpid()}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(hashlib.sha256(code).digest() + code)
        part.replace(file)
    except OSError as error:
        with suppress(OSError):
            part.unlink()
        warn_once(error)
