"""What ties the stand-in for the driver, and our calls, to the real binding; and life without any binding."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.kernels.device.fake_cuda import CODES, FakeDriver

ROOT = Path(__file__).resolve().parents[3]
DEVICE = ROOT / "cuzk/kernels/device"

needs_binding = pytest.mark.skipif(find_spec("cuda") is None, reason="cuda.bindings is not installed")


def words_in_use() -> set[str]:
    """Calls and constants of the driver that appear in our sources, as text or as attributes."""
    found = set()
    for path in DEVICE.glob("cuda*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.add(node.value)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
    return {
        word
        for word in found
        if re.fullmatch(r"cu[A-Z]\w+|CU_\w+[A-Z0-9]|CU[a-z]\w+_\w+|CU[a-z]\w+[A-Z]\w+", word)
    }


def calls_in_use() -> list[str]:
    return sorted(word for word in words_in_use() if word.startswith("cu"))


def test_the_stand_in_has_every_call_and_no_other() -> None:
    assert calls_in_use() == sorted(name for name in vars(FakeDriver) if name.startswith("cu"))


@needs_binding
@pytest.mark.parametrize("name", calls_in_use())
def test_the_stand_in_takes_what_the_binding_takes(name: str) -> None:
    from cuda.bindings import driver

    signature = (getattr(driver, name).__doc__ or "").splitlines()[0]
    inside = re.fullmatch(rf"{name}\((.*)\)", signature)
    assert inside is not None, signature
    expected = [part for part in inside[1].split(",") if part.strip()]
    code = vars(FakeDriver)[name].__code__
    assert code.co_argcount - 1 == len(expected), signature


@needs_binding
def test_every_constant_exists() -> None:
    from cuda.bindings import driver

    from cuzk.kernels.device.cuda_driver import MEANINGS

    for code in MEANINGS:
        assert hasattr(driver.CUresult, f"CUDA_ERROR_{code}"), code
    for code, number in CODES.items():
        assert driver.CUresult(number).name in (f"CUDA_ERROR_{code}", f"CUDA_{code}")
    enumerations = (driver.CUdevice_attribute, driver.CUfunction_attribute, driver.CUstreamCaptureMode)
    source = "".join(path.read_text(encoding="utf-8") for path in DEVICE.glob("cuda*.py"))
    names = {word for word in words_in_use() if word.startswith("CU_")}
    names |= {f"CU_DEVICE_ATTRIBUTE_{word}" for word in re.findall(r'(?<!_)attribute\("(\w+)"\)', source)}
    names |= {f"CU_FUNC_ATTRIBUTE_{word}" for word in re.findall(r'_attribute\("(\w+)"\)', source)}
    assert len(names) > 12
    for name in names:
        assert any(hasattr(enumeration, name) for enumeration in enumerations), name


def test_the_package_and_its_cpu_need_no_cuda() -> None:
    """With NVIDIA's packages hidden all floors can be imported, and what compiles for CUDA says why not."""
    script = """
import importlib, sys
for hidden in ("cuda", "cuda.bindings", "numba_cuda"):
    sys.modules[hidden] = None
for name in ("api", "proofs.warm_up", "cli.doctor", "reports.machine", "kernels.device.cuda"):
    importlib.import_module(f"cuzk.{name}")
from cuzk.errors import DeviceError
try:
    import cuzk.kernels.gpu.jit
except DeviceError as error:
    assert error.next == "pip install 'cuzk[cuda]'", error
from cuzk.kernels.device.choose import choose_device
print(choose_device("auto").name)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("cpu:")
