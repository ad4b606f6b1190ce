"""Kernels of the GPU compiled without one, and the folder that keeps their code."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import warnings
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numba
import pytest
from numba.core.types import uint32, uint64

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from cuzk.errors import DeviceError
from cuzk.kernels import jit as jit_module
from cuzk.kernels.gpu import jit as cuda_jit_module
from cuzk.kernels.gpu.compiler import compiler_version, cuda, pointer
from cuzk.kernels.gpu.cubin import assemble
from cuzk.kernels.gpu.jit import CudaKernel, cuda_jit
from cuzk.kernels.jit import CacheWarning

ROOT = Path(__file__).resolve().parents[3]
CAPABILITIES = [(7, 5), (8, 0), (8, 6), (8, 9), (9, 0), (10, 0), (12, 0)]


@numba.njit
def square(x):
    return x * x


@cuda_jit(pointer(uint64), pointer(uint64), uint32, launch_bounds=(256, 2))
def squares(source, target, n):
    """Squares of n values."""
    i = cuda.grid(1)
    if i < n:
        target[i] = square(source[i])


def scaled(factor: int) -> CudaKernel:
    """A kernel that closes over a number."""

    @cuda_jit(pointer(uint64))
    def scale(values):
        values[cuda.grid(1)] *= factor

    return scale


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for compiled code, which need not exist yet."""
    monkeypatch.setattr(cuda_jit_module, "compiled_folder", lambda: tmp_path / "compiled")
    monkeypatch.setattr(jit_module, "_warned", False)
    return tmp_path / "compiled"


@pytest.fixture
def fresh(folder: Path) -> CudaKernel:
    """`squares`, as a process finds it that has not used it yet."""
    return CudaKernel(squares.function, squares.argument_types, squares.launch_bounds, squares.max_registers)


@pytest.mark.parametrize("capability", CAPABILITIES)
def test_a_kernel_compiles_for_every_capability_without_a_gpu(capability: tuple[int, int]) -> None:
    compiled = squares.compile(capability)
    assert f".target sm_{capability[0]}{capability[1]}" in compiled.ptx
    assert compiled.cubin.startswith(b"\x7fELF")
    assert 4 < compiled.registers <= 32
    assert compiled.spill_bytes == compiled.stack_bytes == compiled.shared_bytes == 0


def test_pointers_are_one_parameter_each_and_indexing_has_no_test_for_negative_indices() -> None:
    ptx = squares.compile((9, 0)).ptx
    head, body = ptx.split(".visible .entry squares(")[1].split(")", 1)
    assert [line.split()[1] for line in head.strip().splitlines()] == [".u64", ".u64", ".u32"]
    assert ".maxntid 256, 1, 1" in body and ".minnctapersm 2" in body
    assert body.count("ld.global.u64") == body.count("st.global.u64") == 1
    assert "shr.s64" not in body and "selp" not in body


def test_spills_stack_and_shared_memory_are_reported() -> None:
    @cuda_jit(pointer(uint64), uint32)
    def hungry(values, n):
        i = cuda.threadIdx.x
        shared = cuda.shared.array(128, uint64)
        local = cuda.local.array(40, uint64)
        for k in range(40):
            local[k] = values[i + k * n]
        shared[i] = local[n]
        cuda.syncthreads()
        values[i] = shared[127 - i]

    compiled = hungry.compile((9, 0))
    assert compiled.shared_bytes == 128 * 8
    assert compiled.stack_bytes == 40 * 8
    assert compiled.spill_bytes == 0

    @cuda_jit(pointer(uint64), uint64, max_registers=24)
    def squeezed(values, n):
        i = cuda.grid(1)
        a, b, c, d = values[i], values[i + n], values[i + 2 * n], values[i + 3 * n]
        e, f, g, h = values[i + 4 * n], values[i + 5 * n], values[i + 6 * n], values[i + 7 * n]
        p, q, r, s = values[i + 8 * n], values[i + 9 * n], values[i + 10 * n], values[i + 11 * n]
        for _ in range(n):
            a, b, c, d, e, f, g, h = b * p, c * q, d * r, e * s, f + a, g + b, h + c, a + d
            p, q, r, s = q ^ a, r ^ b, s ^ c, p ^ d
        values[i] = a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ p ^ q ^ r ^ s

    assert squeezed.compile((9, 0)).registers <= 24
    assert squeezed.compile((9, 0)).spill_bytes > 0


def test_a_capability_that_the_compiler_does_not_know_is_refused() -> None:
    ptx = squares.compile((9, 0)).ptx
    with pytest.raises(DeviceError, match=r"makes no code for compute capability 99\.0"):
        assemble(ptx, (99, 0))
    with pytest.raises(DeviceError, match="makes no code"):
        assemble(ptx.replace("ld.global.u64", "ld.glob.u64"), (9, 0))


def test_the_compiler_tells_its_version() -> None:
    assert compiler_version() >= (12, 3)


def test_a_kernel_is_no_function() -> None:
    assert squares.__doc__ == "Squares of n values."
    with pytest.raises(TypeError, match="load it on a CudaDevice"):
        squares(1, 2, 3)


def test_code_is_kept_and_not_compiled_again(
    fresh: CudaKernel, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = fresh.cubin((9, 0))
    assert [file.name[:12] for file in folder.iterdir()] == ["squares-sm90"]
    monkeypatch.setattr(CudaKernel, "compile", lambda *_: pytest.fail("compiled again"))
    assert fresh.cubin((9, 0)) == code
    next_process = CudaKernel(fresh.function, fresh.argument_types, fresh.launch_bounds, None)
    assert next_process.cubin((9, 0)) == code


@pytest.mark.parametrize("damage", [b"", b"\x7fELF", b"x" * 5000])
def test_damaged_code_is_compiled_again(fresh: CudaKernel, folder: Path, damage: bytes) -> None:
    folder.mkdir()
    fresh.cache_file((9, 0)).write_bytes(damage)
    code = fresh.cubin((9, 0))
    assert code.startswith(b"\x7fELF")
    assert fresh.cache_file((9, 0)).read_bytes().endswith(code)


def test_each_variant_has_a_file_of_its_own(folder: Path) -> None:
    bounded = [
        CudaKernel(squares.function, squares.argument_types, bounds, None)
        for bounds in (None, (128,), (256,))
    ]
    others = [
        CudaKernel(squares.function, (pointer(uint32), pointer(uint32), uint32), None, None),
        scaled(3),
        scaled(4),
    ]
    files = [kernel.cache_file((9, 0)) for kernel in (*bounded, *others)] + [squares.cache_file((8, 0))]
    assert len(set(files)) == len(files)
    assert scaled(3).cache_file((9, 0)) == scaled(3).cache_file((9, 0))


def test_what_cannot_be_told_apart_in_another_process_is_refused() -> None:
    with pytest.raises(TypeError, match="closes over"):
        scaled(object()).cache_file((9, 0))  # type: ignore[arg-type]


def test_a_folder_that_cannot_be_written_is_a_warning(fresh: CudaKernel, folder: Path) -> None:
    folder.write_text("a file is in the way")
    with pytest.warns(CacheWarning, match="every start compiles again"):
        assert fresh.cubin((9, 0)).startswith(b"\x7fELF")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is said once
        assert fresh.cubin((8, 0)).startswith(b"\x7fELF")


def test_another_process_finds_the_same_file(tmp_path: Path) -> None:
    """Keys must not hold what changes from run to run, as addresses and hashes of text do."""
    module = tmp_path / "kernels_elsewhere.py"
    module.write_text(
        textwrap.dedent("""
        from numba.core.types import uint64
        from cuzk.kernels.gpu.compiler import cuda, pointer
        from cuzk.kernels.gpu.jit import cuda_jit

        def made(factor, helper):
            @cuda_jit(pointer(uint64))
            def scale(values):
                values[cuda.grid(1)] *= helper(factor)
            return scale

        print(made(3, lambda x: x + 1).cache_file((9, 0)))
        """)
    )
    environment = os.environ | {"XDG_CACHE_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    said = {
        subprocess.run(
            [sys.executable, module], env=environment, check=True, capture_output=True, timeout=120
        ).stdout
        for _ in range(2)
    }
    assert len(said) == 1


def test_numba_cuda_can_be_imported_where_numpy_lacks_row_stack() -> None:
    script = """
import numpy
if hasattr(numpy, "row_stack"):
    del numpy.row_stack
from cuzk.kernels.gpu.cubin import cuda
print(cuda.grid)
"""
    subprocess.run([sys.executable, "-c", script], check=True, cwd=ROOT, capture_output=True, timeout=120)


def test_numba_cuda_is_imported_by_the_first_compilation_only() -> None:
    script = """
import sys
import cuzk.groth16.gpu.target, cuzk.proofs.warm_up_gpu
from cuzk.kernels.gpu import ntt_kernels
ntt_kernels.ntt_fill_table.cache_file((9, 0))
assert "numba.cuda" not in sys.modules
ntt_kernels.ntt_fill_table.compile((9, 0))
assert ntt_kernels.cuda is sys.modules["numba.cuda"]
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr


def test_forms_and_functions_in_closures_tell_kernels_apart() -> None:
    @dataclass(frozen=True)
    class Form:
        name: str
        words: int

    def times(form: object) -> Path:
        @cuda_jit(pointer(uint64))
        def scale(values):
            values[0] = form.words  # type: ignore[attr-defined]

        return scale.cache_file((9, 0))

    assert times(Form("a", 4)) == times(Form("a", 4))
    assert (
        len({times(Form("a", 4)), times(Form("a", 6)), times(Form("b", 4)), times(square), times((1, 2))})
        == 5
    )
