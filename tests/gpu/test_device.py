"""CudaDevice on a real card: copies, launches, graphs, threads, memory that runs out, kernels that fail."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numba.core.types import int32, uint32, uint64

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from cuzk.errors import DeviceError, ResourceError
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.device.cuda_card import find_card
from cuzk.kernels.device.cuda_driver import load_api
from cuzk.kernels.device.cuda_memory import STAGE_BYTES
from cuzk.kernels.gpu.compiler import cuda, pointer
from cuzk.kernels.gpu.jit import cuda_jit

ROOT = Path(__file__).resolve().parents[2]
BLOCK = 256
N = 1_000_003


@cuda_jit(pointer(uint64), pointer(uint64), int32, uint32, launch_bounds=(BLOCK,))
def multiply_add(source, target, addend, n):
    i = cuda.grid(1)
    if i < n:
        target[i] = source[i] * source[i] + addend


@cuda_jit(pointer(uint32), uint32)
def increment(values, n):
    i = cuda.grid(1)
    if i < n:
        values[i] += 1


@cuda_jit(pointer(uint64), uint32)
def reverse_in_shared(values, n):
    """Reverses n values by way of dynamic shared memory; one block."""
    shared = cuda.shared.array(0, uint64)
    for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        shared[i] = values[i]
    cuda.syncthreads()
    for i in range(cuda.threadIdx.x, n, cuda.blockDim.x):
        values[i] = shared[n - 1 - i]


@cuda_jit(pointer(uint64), uint64)
def wide(values, n):
    """Keeps so much alive in a thread that a block of 1024 finds no registers."""
    i = cuda.grid(1)
    a, b, c, d = values[i], values[i + n], values[i + 2 * n], values[i + 3 * n]
    e, f, g, h = values[i + 4 * n], values[i + 5 * n], values[i + 6 * n], values[i + 7 * n]
    k, m, o, p = values[i + 8 * n], values[i + 9 * n], values[i + 10 * n], values[i + 11 * n]
    q, r, s, t = values[i + 12 * n], values[i + 13 * n], values[i + 14 * n], values[i + 15 * n]
    u, v, w, x = values[i + 16 * n], values[i + 17 * n], values[i + 18 * n], values[i + 19 * n]
    for _ in range(n):
        a, b, c, d, e, f, g, h = b * k, c * m, d * o, e * p, f + a, g + b, h + c, a + d
        k, m, o, p, q, r, s, t = m ^ q, o ^ r, p ^ s, k ^ t, r + a, s + b, t + c, q + d
        u, v, w, x = v * a, w * b, x * c, u * d
    values[i] = a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ k ^ m ^ o ^ p ^ q ^ r ^ s ^ t ^ u ^ v ^ w ^ x


def blocks(n: int) -> int:
    return -(-n // BLOCK)


def test_the_card_is_found_by_what_the_driver_says(device: CudaDevice) -> None:
    card = device.card
    print(card)
    api = load_api()
    for name in ("cuda", card.label, card.pci_id, card.uuid, f"GPU-{card.uuid}"):
        assert find_card(api, name) == card
    assert card.multiprocessors > 0 and card.clock_mhz > 100 and card.l2_bytes > 1 << 18
    assert 0 < device.free_memory() <= card.memory_bytes


@pytest.mark.parametrize("nbytes", [1, STAGE_BYTES, 3 * STAGE_BYTES + 5])
def test_copies_return_the_same_bytes(device: CudaDevice, nbytes: int) -> None:
    source = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
    kept = source.copy()
    with device.upload(source) as array, device.allocate(nbytes, np.uint8) as second:
        source[:] = 0
        device.copy(array, into=second)
        assert np.array_equal(device.download(second), kept)
        device.clear(second)
        assert not device.download(second).any()


def test_pinned_memory_is_copied_in_order_with_its_stream(device: CudaDevice) -> None:
    with (
        device.pinned(N, np.uint32) as source,
        device.pinned(N, np.uint32) as target,
        device.new_stream() as stream,
    ):
        source.array[:] = np.arange(N)
        with device.upload(source, stream=stream) as array:
            device.launch(increment, blocks(N), BLOCK, array, N, stream=stream)
            device.download(array, into=target, stream=stream)
            stream.synchronise()
        assert np.array_equal(target.array, np.arange(1, N + 1, dtype=np.uint32))


@pytest.mark.parametrize("n", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, N])
@pytest.mark.parametrize("addend", [0, -1, 2**31 - 1])
def test_a_kernel_computes_what_numpy_computes(device: CudaDevice, n: int, addend: int) -> None:
    values = np.random.default_rng(n).integers(0, 2**64, n, np.uint64)
    with device.upload(values) as source, device.allocate(n + 1, np.uint64) as target:
        device.clear(target)
        device.launch(multiply_add, blocks(n), BLOCK, source, target, addend, n)
        result = device.download(target)
    assert np.array_equal(result[:n], values * values + np.uint64(addend % 2**64))
    assert result[n] == 0


def test_the_driver_and_the_compiler_agree_on_a_kernel(device: CudaDevice) -> None:
    loaded, compiled = device.load(multiply_add), multiply_add.compile(device.card.capability)
    assert (loaded.registers, loaded.local_bytes) == (compiled.registers, compiled.stack_bytes)
    assert loaded.max_threads == BLOCK
    assert loaded.blocks_at_once(BLOCK) == device.card.threads_per_multiprocessor // BLOCK


def test_all_shared_memory_of_a_block_can_be_used(device: CudaDevice) -> None:
    nbytes = device.card.shared_per_block_bytes
    values = np.arange(nbytes // 8, dtype=np.uint64)
    with device.upload(values) as array:
        device.launch(reverse_in_shared, 1, 512, array, len(values), shared_bytes=nbytes)
        assert np.array_equal(device.download(array), values[::-1])


def test_a_prepared_launch_and_a_graph_are_cheap(device: CudaDevice) -> None:
    count = 500
    with device.allocate(1, np.uint32) as array:
        device.clear(array)
        launch = device.load(increment).prepare(1, 32, array, 1)

        def launch_often(times: int) -> None:
            for _ in range(times):
                launch.run(device.stream)

        with device.record(lambda: launch_often(100)) as graph:
            per_launch = shortest(device, lambda: launch_often(count)) / count
            per_graph = shortest(device, lambda: graph.run(device.stream))
        ran = int(device.download(array)[0])
    print(
        f"a launch takes {per_launch * 1e6:.2f} us to submit, a graph of 100 takes {per_graph * 1e6:.2f} us"
    )
    assert ran == 5 * count + 5 * 100
    assert per_launch < 10e-6  # Numba's own takes 14 to 29 us
    assert per_graph < 100e-6


def shortest(device: CudaDevice, submit: Callable[[], None]) -> float:
    """Seconds that the fastest of five submissions takes the host."""
    times = []
    for _ in range(5):
        device.synchronise()
        start = time.perf_counter()
        submit()
        times.append(time.perf_counter() - start)
    device.synchronise()
    return min(times)


def test_events_measure_the_card_and_order_streams(device: CudaDevice) -> None:
    n = 1 << 24
    with (
        device.allocate(n, np.uint32) as array,
        device.new_stream() as second,
        device.new_event() as start,
        device.new_event() as end,
    ):
        device.clear(array)
        start.record(device.stream)
        for _ in range(20):
            device.launch(increment, blocks(n), BLOCK, array, n)
        end.record(device.stream)
        second.wait(end)
        device.launch(increment, blocks(n), BLOCK, array, n, stream=second)
        second.synchronise()
        milliseconds = end.elapsed_ms(start)
        assert np.all(device.download(array) == 21)
    print(f"{20 * 2 * 4 * n / milliseconds / 1e6:.0f} GB/s")
    assert 0 < milliseconds < 1000


def test_threads_share_a_device(device: CudaDevice) -> None:
    results: dict[int, bool] = {}

    def work(number: int) -> None:
        values = np.full(N, number, np.uint64)
        with device.new_stream() as stream, device.allocate(N, np.uint64) as target:
            for _ in range(5):
                with device.upload(values, stream=stream) as source:
                    device.launch(multiply_add, blocks(N), BLOCK, source, target, number, N, stream=stream)
                    result = device.download(target, stream=stream)
            results[number] = bool(np.all(result == number * number + number))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == dict.fromkeys(range(4), True)


def test_a_recording_that_allocates_fails_and_the_device_goes_on(device: CudaDevice) -> None:
    with pytest.raises(DeviceError, match="refused cuMemAlloc: CUDA_ERROR_STREAM_CAPTURE"):
        device.record(lambda: device.allocate(1, np.uint8).close())
    device.synchronise()
    with device.upload(np.arange(3, dtype=np.uint32)) as array:
        device.launch(increment, 1, 32, array, 3)
        assert device.download(array).tolist() == [1, 2, 3]


def test_a_block_without_enough_registers_is_an_error_that_spoils_nothing(device: CudaDevice) -> None:
    loaded = device.load(wide)
    if loaded.max_threads >= 1024:
        pytest.skip(f"the compiler needs only {loaded.registers} registers: nothing is too much")
    with device.allocate(1 << 16, np.uint64) as array:
        with pytest.raises(DeviceError, match="kernel wide"):
            device.launch(wide, 1, 1024, array, 1)
        assert device.is_usable
        device.synchronise()


def test_more_memory_than_the_card_has_free_is_an_error_with_numbers(device: CudaDevice) -> None:
    with pytest.raises(ResourceError, match="asked for .* in use .* of a budget of .* free"):
        device.allocate(device.card.memory_bytes, np.uint8)
    with CudaDevice("cuda:0", memory_limit=device.card.memory_bytes) as greedy:
        assert greedy.free_memory() < device.card.memory_bytes  # a context takes some itself
        with pytest.raises(ResourceError, match="the GPU has too little free memory"):
            greedy.allocate(device.card.memory_bytes, np.uint8)  # the whole budget, and no more
        with greedy.allocate(1 << 20, np.uint8):  # the failure left nothing behind
            assert greedy.memory.used_bytes == 1 << 20


def test_memory_that_is_freed_returns_to_the_card(device: CudaDevice) -> None:
    before = device.free_memory()
    with device.allocate(1 << 30, np.uint8):
        assert before - device.free_memory() >= 1 << 30
    assert abs(device.free_memory() - before) < 64 << 20


HOLD_NEARLY_ALL = """
    import sys
    import numpy as np
    from cuzk.kernels.device.cuda import CudaDevice
    with CudaDevice("cuda:0") as device:
        with device.allocate(device.free_memory() - (1 << 30), np.uint8):
            print("held", flush=True)
            sys.stdin.read()
"""


def test_another_process_that_holds_the_memory_is_a_resource_error(device: CudaDevice) -> None:
    command = [sys.executable, "-c", textwrap.dedent(HOLD_NEARLY_ALL)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as other:
        assert other.stdout is not None and other.stdout.readline() == "held\n"
        with pytest.raises(ResourceError, match="the GPU has too little free memory"):
            device.allocate(4 << 30, np.uint8)
        other.communicate(timeout=60)
    with device.allocate(4 << 30, np.uint8):
        assert device.is_usable


FAULT = """
    import numpy as np
    from numba.core.types import uint64
    from cuzk.errors import DeviceError, DeviceFault
    from cuzk.kernels.gpu.compiler import cuda, pointer
    from cuzk.kernels.gpu.jit import cuda_jit
    from cuzk.kernels.device.cpu import CpuDevice
    from cuzk.kernels.device.cuda import CudaDevice

    @cuda_jit(pointer(uint64), uint64)
    def spoil(values, where):
        values[where] = 1

    device = CudaDevice("cuda:0")
    held = device.allocate(1 << 30, np.uint8)
    with device.allocate(1, np.uint64) as array:
        device.launch(spoil, 1, 1, array, 1 << 40)  # 8 TiB beyond
        try:
            device.synchronise()
        except DeviceFault as error:
            print("fault:", error)
    try:
        device.allocate(1, np.uint8)
    except DeviceFault as error:
        print("echo:", error)
    print("usable:", device.is_usable, "memory in use:", device.memory.used_bytes)
    device.close()
    try:
        with CudaDevice("cuda:0") as again:
            again.upload(np.zeros(1, np.uint8)).close()
            print("again: works")
    except DeviceError as error:
        print("again:", error)
    print("cpu:", CpuDevice(threads=2).map(abs, [-1, -2]))
"""


def test_a_kernel_that_fails_is_typed_and_its_process_goes_on(device: CudaDevice, tmp_path: Path) -> None:
    before = device.free_memory()
    script = tmp_path / "fault.py"
    script.write_text(textwrap.dedent(FAULT))
    done = subprocess.run(
        [sys.executable, script],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stderr
    said = dict(line.split(": ", 1) for line in done.stdout.splitlines())
    assert said["fault"].startswith("cuda:0: a kernel touched memory that is not its own")
    assert "unusable in this process since an earlier fault" in said["echo"]
    assert said["usable"] == f"False memory in use: {1 << 30}"
    assert said["cpu"] == "[1, 2]"
    assert "again" in said
    assert abs(device.free_memory() - before) < 64 << 20
    with device.upload(np.zeros(1, np.uint32)) as array:  # other processes are not touched by it
        device.launch(increment, 1, 1, array, 1)
        assert device.download(array).tolist() == [1]


@pytest.mark.parametrize(("visible", "name"), [("", "cuda:0"), ("0", "cuda:1")])
def test_hidden_cards_cannot_be_had(device: CudaDevice, visible: str, name: str) -> None:
    script = f"""
from cuzk.errors import DeviceError
from cuzk.kernels.device.cuda import CudaDevice
try:
    CudaDevice({name!r})
except DeviceError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=os.environ | {"CUDA_VISIBLE_DEVICES": visible},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert "CUDA_VISIBLE_DEVICES" in done.stdout, done.stdout + done.stderr
