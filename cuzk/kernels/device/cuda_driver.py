"""The CUDA driver: finding it, calling it in the context of one card, and its errors as ours.

`load_api` gives the module of raw calls (`cuda.bindings.driver`), which return an error code and then values.
Tests put another object with the same calls in its place. `checked` is the one place that looks at codes.

A fault of a kernel or of the card spoils its context for good: the driver answers every later call with the
same error. `Context` remembers the first and from then on says so without asking; the process lives on.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import Any, NamedTuple
from weakref import WeakSet

from cuzk.errors import CuzkError, DeviceError, DeviceFault, ResourceError


class Meaning(NamedTuple):
    """What a driver's error means to a user: the class it becomes, one sentence, what to do next."""

    error: type[CuzkError]
    what: str
    next: str


_DEVICES = "`cuzk doctor` shows what there is"
_DRIVER = "install a newer NVIDIA driver, or a numba-cuda for the driver that is there"
_SMALLER = "end other programs on the GPU, or choose a smaller plan"
_REPORT = "report this together with the input"
_CARD = "look for its cause in the system log (dmesg, nvidia-smi -q); use another device meanwhile"

_CANNOT_BE_HAD = {
    "NO_DEVICE": "there is no NVIDIA GPU, or CUDA_VISIBLE_DEVICES hides it",
    "INVALID_DEVICE": "there is no such GPU",
    "DEVICE_UNAVAILABLE": "another process holds the GPU for itself",
    "SYSTEM_NOT_READY": "the GPU's fabric is not ready: its manager does not run yet",
}
_DRIVER_DOES_NOT_FIT = {
    "STUB_LIBRARY": "libcuda is the stub of a toolkit, not a driver",
    "SYSTEM_DRIVER_MISMATCH": "libcuda and the kernel's module differ in version: the driver was updated",
    "COMPAT_NOT_SUPPORTED_ON_DEVICE": "CUDA's compatibility libraries do not support this GPU",
    "UNSUPPORTED_PTX_VERSION": "the driver is older than the compiler",
    "INVALID_IMAGE": "the driver does not understand the compiled code",
    "NO_BINARY_FOR_GPU": "the code was compiled for another kind of GPU",
}
_KERNEL_FAILED = {
    "ILLEGAL_ADDRESS": "a kernel touched memory that is not its own",
    "MISALIGNED_ADDRESS": "a kernel touched memory at an address that its type does not allow",
    "INVALID_ADDRESS_SPACE": "a kernel mixed up kinds of memory",
    "ILLEGAL_INSTRUCTION": "a kernel met an instruction that is none",
    "INVALID_PC": "a kernel jumped out of its code",
    "HARDWARE_STACK_ERROR": "a kernel spoilt its stack",
    "ASSERT": "a kernel found an assertion broken",
    "LAUNCH_FAILED": "a kernel failed while it ran",
    "LAUNCH_TIMEOUT": "a kernel ran longer than a GPU with a display allows",
}
_CARD_FAILED = {
    "ECC_UNCORRECTABLE": "the GPU's memory had an error beyond repair",
    "CONTAINED": "the GPU's memory had an error beyond repair, which it contained",
    "NVLINK_UNCORRECTABLE": "an NVLink had an error beyond repair",
    "EXTERNAL_DEVICE": "another device on the bus failed",
    "CONTEXT_IS_DESTROYED": "something else destroyed the GPU's context",
    "MPS_CLIENT_TERMINATED": "the MPS server ended this process's work",
    "DEINITIALIZED": "the driver is shutting down",
    "UNKNOWN": "the driver failed without a reason: the GPU may be lost",
}
_TOO_MUCH = "the kernel needs more registers or shared memory than a block gets on this GPU"

#: By the driver's names. What is a DeviceFault here leaves the context unusable.
MEANINGS = {
    "OUT_OF_MEMORY": Meaning(ResourceError, "the GPU has no memory left for this", _SMALLER),
    "LAUNCH_OUT_OF_RESOURCES": Meaning(DeviceError, _TOO_MUCH, _REPORT),
    **{code: Meaning(DeviceError, what, _DEVICES) for code, what in _CANNOT_BE_HAD.items()},
    **{code: Meaning(DeviceError, what, _DRIVER) for code, what in _DRIVER_DOES_NOT_FIT.items()},
    **{code: Meaning(DeviceFault, what, _REPORT) for code, what in _KERNEL_FAILED.items()},
    **{code: Meaning(DeviceFault, what, _CARD) for code, what in _CARD_FAILED.items()},
}


def load_api() -> Any:
    """The driver's calls, initialised. Raises DeviceError when bindings, driver or every GPU is missing."""
    try:
        from cuda.bindings import driver as api
    except ImportError as error:
        raise DeviceError(
            "numba-cuda is not installed", where="CUDA", next="pip install 'cuzk[cuda]', or use --device cpu"
        ) from error
    try:
        checked(api, "CUDA", "cuInit", 0)
    except RuntimeError as error:  # the binding's own, when it finds no libcuda
        raise DeviceError(
            "no NVIDIA driver is installed", where="CUDA", next="install the driver, or use --device cpu"
        ) from error
    return api


def checked(api: Any, where: str, name: str, *args: Any) -> Any:
    """What the call of that name gives: its value, or a tuple where it gives none or several."""
    code, *values = getattr(api, name)(*args)
    if code:
        raise translate(code.name, where, name)
    return values[0] if len(values) == 1 else tuple(values)


def translate(code: str, where: str, call: str) -> CuzkError:
    """The typed error for a driver's code; codes that mean misuse of the driver by us name the call."""
    meaning = MEANINGS.get(code.removeprefix("CUDA_ERROR_"))
    if meaning is None:
        return DeviceError(f"the driver refused {call}: {code}", where=where, next=_REPORT)
    return meaning.error(f"{meaning.what} ({code})", where=where, next=meaning.next)


_thread = threading.local()  # .context: the one that this thread made current


class Context:
    """The primary context of one card, through which all its calls go; other libraries share it.

    value    the driver's, the same for all that share it
    label    names the device in errors, "cuda:0"
    fault    the first error that made the context unusable, or None
    handles  what the driver made here and has not got back; guarded by _lock
    """

    def __init__(self, api: Any, device: Any, label: str) -> None:
        self.api = api
        self.label = label
        self.fault: DeviceFault | None = None
        self.handles: set[Handle] = set()
        self._device = device
        self._lock = threading.Lock()
        self._open = True
        self._reached: WeakSet[Context] = WeakSet()  # guarded by _lock
        self.value = checked(api, label, "cuDevicePrimaryCtxRetain", device)

    def call(self, name: str, *args: Any, about: str = "") -> Any:
        """Like `checked`, in this context. A fault is remembered; after one, nothing but its echo comes back.

        about  names what the call is for, a kernel for example, beside the device
        """
        if self.fault is not None:
            raise DeviceFault(
                f"this GPU is unusable in this process since an earlier fault: {self.fault.what}",
                where=self.label,
                next="start cuzk again, or use another device",
            )
        assert self._open, f"{name} after {self.label} was closed"
        if getattr(_thread, "context", None) is not self:
            checked(self.api, self.label, "cuCtxSetCurrent", self.value)
            _thread.context = self
        try:
            return checked(self.api, f"{self.label}, {about}" if about else self.label, name, *args)
        except DeviceFault as fault:
            self.fault = fault
            raise

    def reach(self, other: Context) -> None:
        """From now on copies from that one's card come directly, if the driver grants it: else by the host.

        It refuses where somebody has asked before, and where a card reaches as many as it can.
        """
        with self._lock:
            if other in self._reached:
                return
            if self.call("cuDeviceCanAccessPeer", self._device, other._device):
                code, *_ = self.api.cuCtxEnablePeerAccess(other.value, 0)
                refused = translate(code.name, self.label, "cuCtxEnablePeerAccess") if code else None
                if isinstance(refused, DeviceFault):
                    raise refused
            self._reached.add(other)

    def call_between(self, other: Context, name: str, *args: Any) -> Any:
        """Like `call`, for what touches that one's card too: a fault is remembered of the one that has it."""
        try:
            return self.call(name, *args)
        except DeviceFault as fault:
            code, *_ = self.api.cuCtxSynchronize()  # this one is current here
            if not code:
                self.fault, other.fault = None, other.fault or fault
            raise

    def give_back(self, name: str, *args: Any) -> None:
        """Call something that releases; in an unusable or closed context there is nothing to release."""
        if self._open and self.fault is None:
            self.call(name, *args)

    def adopt(self, handle: Handle) -> None:
        with self._lock:
            self.handles.add(handle)

    def forget(self, handle: Handle) -> None:
        with self._lock:
            self.handles.discard(handle)

    def close(self) -> None:
        """Give back every handle and the context; errors of a broken card end here."""
        if not self._open:
            return
        for handle in list(self.handles):
            with suppress(DeviceFault):  # from then on there is nothing left to give back one by one
                handle.close()
        self._open = False
        if getattr(_thread, "context", None) is self:
            _thread.context = None
        self.api.cuDevicePrimaryCtxRelease(self._device)  # frees what a faulted context still held


class Handle:
    """Something that the driver made in a context: given back once, by `close`, `with`, or its device."""

    def __init__(self, context: Context, value: Any, destroy: str) -> None:
        self.context = context
        self.value = value
        self._destroy = destroy
        context.adopt(self)

    def close(self) -> None:
        if self.value is not None:
            value, self.value = self.value, None
            self.context.forget(self)
            self.context.give_back(self._destroy, value)

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
