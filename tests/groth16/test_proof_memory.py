"""Memory that is made ready ahead: touched once, without the compiler, and used where it was touched."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from cuzk.groth16.parameters.params_file import PointCounts, open_parameters
from cuzk.groth16.point_rows import words_of_rows
from cuzk.groth16.proof_memory import ProofMemory
from cuzk.groth16.target_cpu import CpuTarget
from cuzk.kernels.device.cpu import CpuDevice

ROOT = Path(__file__).resolve().parents[2]
M = 1 << 18
VECTOR_BYTES = 32 * M


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) << 12


def address(array: np.ndarray) -> int:
    return int(array.ctypes.data)


def test_it_is_made_ready_without_the_compiler() -> None:
    code = (
        "import sys; from cuzk.groth16.proof_memory import ProofMemory; "
        "memory = ProofMemory(1 << 12); memory.touch_ahead(); memory.vector.take((1 << 12, 4)); "
        "assert not {'numba', 'llvmlite'} & set(sys.modules), 'the compiler was loaded'"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_what_was_touched_is_what_is_used() -> None:
    before = resident_bytes()
    memory = ProofMemory(M)
    memory.touch_ahead()
    (vector,) = memory.vector.take((M, 4))
    in_turn = memory.arena.take((M, 4), (M, 4), (M, 4))
    touched = resident_bytes() - before
    assert 2 * VECTOR_BYTES <= touched < 5 * VECTOR_BYTES  # four, less what the process gave back meanwhile
    for array in (vector, *in_turn):
        array[:] = 7
    assert resident_bytes() - before < touched + VECTOR_BYTES // 4
    assert (vector == 7).all()
    assert len({address(array) for array in (vector, *in_turn)}) == 4


def test_to_touch_it_again_does_nothing() -> None:
    memory = ProofMemory(M)
    memory.touch_ahead()
    (first,) = memory.arena.take((M, 4))
    first[0] = 5
    memory.touch_ahead()
    (second,) = memory.arena.take((M, 4))
    assert address(first) == address(second) and second[0, 0] == 5


def test_memory_that_was_not_touched_ahead_is_there_as_well() -> None:
    memory = ProofMemory(M, words_of_rows=40 * M)
    (rows,) = memory.arena.take((5 * M, 8))
    (vector,) = memory.vector.take((M, 4))
    rows[:], vector[:] = 1, 2
    assert (rows == 1).all() and (vector == 2).all()


def test_room_is_left_for_the_rows_of_the_smallest_sector(device: CpuDevice) -> None:
    """What is touched before anybody knows the device need not be given up for a larger block."""
    counts = PointCounts(ic=40, h=(1 << 22) - 1, l=2_685_673, a=2_674_948, b=685_522)
    memory = ProofMemory(counts.h + 1)
    before = resident_bytes()
    (block,) = memory.arena.take((1, 4))
    (rows,) = memory.arena.take((words_of_rows(device, counts), 1))
    assert address(block) == address(rows)
    assert resident_bytes() - before < VECTOR_BYTES  # room costs nothing


def test_a_target_works_in_the_memory_that_it_is_given(device: CpuDevice, toy_params: Path) -> None:
    parameters = open_parameters(toy_params)
    memory = ProofMemory(parameters.counts.h + 1)
    target = CpuTarget(device, parameters, memory)
    target.prepare()
    (vector,) = memory.vector.take((parameters.counts.h + 1, 4))
    assert target._memory is memory and target._points._arena is memory.arena
    assert address(vector) % 64 == 0
