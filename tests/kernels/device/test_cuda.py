"""CudaDevice over a stand-in driver: memory, copies, launches, graphs, and a driver that fails."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np
import pytest
from numba.core import types

from cuzk.errors import CuzkError, DeviceError, DeviceFault, ResourceError
from cuzk.kernels.device import cuda_memory
from cuzk.kernels.device.cuda import CudaDevice
from tests.kernels.device.fake_cuda import Code, FakeDriver, card

SECOND_CARD = card(uuid="00000000-0000-0000-0000-000000000000")
POINTER = types.CPointer(types.uint64)


class Kernel:
    """A kernel that needs no compiler: what it does is an effect of the driver."""

    name = "fill"
    argument_types = (POINTER, types.uint32, types.int64)

    def __init__(self) -> None:
        self.compiled_for: list[tuple[int, int]] = []

    def cubin(self, capability: tuple[int, int]) -> bytes:
        self.compiled_for.append(capability)
        return b"code"


def fill(grid: Any, block: Any, shared_bytes: int, parameters: int) -> None:
    """Writes its third parameter as often as its second says; reads each by its own size, like the driver."""
    places = (ctypes.c_void_p * 3).from_address(parameters)
    address, n, value = (
        kind.from_address(place).value
        for kind, place in zip((ctypes.c_uint64, ctypes.c_uint32, ctypes.c_int64), places, strict=True)
    )
    (ctypes.c_int64 * n).from_address(address)[:] = [value] * n


@pytest.fixture
def driver() -> FakeDriver:
    made = FakeDriver()
    made.effects["fill"] = fill
    return made


@pytest.fixture
def device(driver: FakeDriver) -> CudaDevice:
    """Its test must give everything back: what `close` leaves would be a leak."""
    with CudaDevice(api=driver) as made:
        yield made
    assert driver.held == {}


# Memory


def test_memory_is_counted_and_given_back(device: CudaDevice, driver: FakeDriver) -> None:
    before = device.open_handles
    with device.allocate((3, 4), np.uint64) as array, device.allocate(5, np.uint8):
        assert device.memory.used_bytes == 96 + 5
        assert array.address
    assert device.memory.used_bytes == 0
    assert device.memory.peak_bytes == 101
    assert device.open_handles == before
    assert driver.calls["cuMemFree"] == 2


def test_a_second_close_frees_nothing(device: CudaDevice, driver: FakeDriver) -> None:
    array = device.allocate(1, np.uint8)
    array.close()
    array.close()
    assert driver.calls["cuMemFree"] == 1
    assert device.memory.used_bytes == 0


def test_what_is_left_open_is_seen_and_closed_with_the_device(driver: FakeDriver) -> None:
    device = CudaDevice(api=driver)
    before = device.open_handles
    device.allocate(10, np.uint8)
    device.new_event()
    assert device.open_handles == before + 2
    device.close()
    device.close()
    assert driver.held == {}


def test_an_empty_array_takes_no_memory(device: CudaDevice, driver: FakeDriver) -> None:
    with device.allocate((0, 4), np.uint64) as array:
        assert (array.nbytes, array.address, driver.calls["cuMemAlloc"]) == (0, 0, 0)
    assert device.download(device.upload(np.empty((0, 4), np.uint64))).shape == (0, 4)


def test_the_budget_is_kept(driver: FakeDriver) -> None:
    with CudaDevice(api=driver, memory_limit=3 << 20) as device, device.allocate(2 << 20, np.uint8):
        assert device.free_memory() == 1 << 20
        with pytest.raises(ResourceError) as raised:
            device.allocate((1 << 20) + 1, np.uint8)
        assert "asked for 1.00 MiB, in use 2 MiB of a budget of 3 MiB" in raised.value.what
        assert raised.value.where == "cuda:0"
        with device.allocate(1 << 20, np.uint8):
            assert device.free_memory() == 0


def test_without_a_budget_what_is_free_now_is_the_budget() -> None:
    driver = FakeDriver(card(memory_bytes=100 << 20), taken=70 << 20)
    with CudaDevice(api=driver) as device:
        assert device.memory.limit_bytes == 30 << 20


def test_a_budget_beyond_the_card_is_refused_and_the_card_let_go(driver: FakeDriver) -> None:
    with pytest.raises(ResourceError, match="a budget of 2 GiB exceeds the GPU's memory, 1 GiB"):
        CudaDevice(api=driver, memory_limit=2 << 30)
    assert driver.held == {}


def test_another_process_that_took_the_memory_is_a_resource_error(
    device: CudaDevice, driver: FakeDriver
) -> None:
    driver.taken = (1 << 30) - (5 << 20)
    driver.fail("cuMemAlloc", "OUT_OF_MEMORY", at=2)
    with device.allocate(1 << 20, np.uint8):
        with pytest.raises(ResourceError, match="asked for 16 MiB.*the driver has 4 MiB of 1 GiB free"):
            device.allocate(16 << 20, np.uint8)
        assert device.memory.used_bytes == 1 << 20
    with device.allocate(1 << 20, np.uint8):  # and the device goes on
        assert device.is_usable


@pytest.mark.parametrize("failing", range(1, 6))
def test_an_allocation_that_fails_midway_leaves_nothing_behind(driver: FakeDriver, failing: int) -> None:
    with CudaDevice(api=driver) as device:
        before = device.open_handles
        driver.fail("cuMemAlloc", "OUT_OF_MEMORY", at=failing)
        with pytest.raises(ResourceError):
            nest(device, depth=5)
        assert (device.memory.used_bytes, device.open_handles) == (0, before)
        assert driver.calls["cuMemFree"] == failing - 1
    assert driver.held == {}


def nest(device: CudaDevice, depth: int) -> None:
    if depth:
        with device.allocate(100, np.uint64):
            nest(device, depth - 1)


def test_parts_share_the_memory_of_their_array(device: CudaDevice) -> None:
    values = np.arange(12, dtype=np.uint64).reshape(4, 3)
    with device.upload(values) as array:
        assert np.array_equal(device.download(array.rows(1, 3)), values[1:3])
        words = array.carve((2, 2), np.uint32, offset_bytes=8)
        assert device.download(words).tolist() == [[1, 0], [2, 0]]
        assert device.download(words.rows(1, 2).carve(1, np.uint32)).tolist() == [2]
        for beyond in (
            lambda: array.rows(0, 5),
            lambda: array.carve(13, np.uint64),
            lambda: array.rows(-1, 2),
        ):
            with pytest.raises(AssertionError):
                beyond()
    with pytest.raises(AssertionError, match="freed"):
        words.address  # noqa: B018


# Copies


@pytest.mark.parametrize("nbytes", [1, 999, 1000, 1001, 2000, 3005])
def test_ordinary_memory_goes_there_and_back(
    device: CudaDevice, monkeypatch: pytest.MonkeyPatch, nbytes: int
) -> None:
    monkeypatch.setattr(cuda_memory, "STAGE_BYTES", 1000)
    source = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8)
    kept = source.copy()
    with device.upload(source) as array:
        source[:] = 0  # the copy no longer needs it
        assert np.array_equal(device.download(array), kept)


def test_pinned_memory_is_copied_without_a_page_between(device: CudaDevice, driver: FakeDriver) -> None:
    with device.pinned((5, 4), np.uint32) as source, device.pinned(20, np.uint32) as target:
        source.array[:] = np.arange(20).reshape(5, 4)
        with device.upload(source) as array:
            assert device.download(array, into=target).tolist() == list(range(20))
        assert driver.calls["cuMemHostAlloc"] == 2


@pytest.mark.parametrize(
    "answer", ["SUCCESS", "PEER_ACCESS_ALREADY_ENABLED", "TOO_MANY_PEERS", "INVALID_DEVICE"]
)
def test_a_card_copies_from_another_and_asks_once_for_the_short_way(answer: str) -> None:
    driver = FakeDriver(card(), SECOND_CARD)
    driver.fail("cuCtxEnablePeerAccess", answer)
    with CudaDevice("cuda:0", api=driver) as first, CudaDevice("cuda:1", api=driver) as second:
        given = first.upload(np.arange(6, dtype=np.uint32))
        taken = second.allocate(6, np.uint32)
        for _ in range(2):
            second.clear(taken)
            second.copy_from(first, given, taken)
            assert second.download(taken).tolist() == [0, 1, 2, 3, 4, 5]
        second.copy_from(first, first.allocate(0, np.uint32), second.allocate(0, np.uint32))
    assert driver.calls["cuMemcpyPeerAsync"] == 2
    assert driver.calls["cuCtxEnablePeerAccess"] == 1
    assert driver.held == {}


def test_cards_that_do_not_reach_each_other_copy_all_the_same() -> None:
    """Here a card and itself: the driver says that it reaches no such peer."""
    driver = FakeDriver()
    with CudaDevice(api=driver) as first, CudaDevice(api=driver) as second:
        given, taken = first.upload(np.arange(3, dtype=np.uint8)), second.allocate(3, np.uint8)
        second.copy_from(first, given, taken)
        assert second.download(taken).tolist() == [0, 1, 2]
    assert driver.calls["cuCtxEnablePeerAccess"] == 0


def test_what_else_keeps_a_card_from_another_is_an_error(driver: FakeDriver) -> None:
    driver.cards += (SECOND_CARD,)
    driver.fail("cuCtxEnablePeerAccess", "NVLINK_UNCORRECTABLE")
    with CudaDevice("cuda:0", api=driver) as first, CudaDevice("cuda:1", api=driver) as second:
        given, taken = first.allocate(3, np.uint8), second.allocate(3, np.uint8)
        with pytest.raises(DeviceFault, match="NVLink") as raised:
            second.copy_from(first, given, taken)
        assert raised.value.where == "cuda:1"


class OtherCardBroken:
    """The driver as a card sees it when the other one has failed: copies between them do, nothing else."""

    def __init__(self, driver: FakeDriver) -> None:
        self._driver = driver

    def __getattr__(self, name: str) -> Any:
        return getattr(self._driver, name)

    def cuMemcpyPeerAsync(self, *_: Any) -> tuple[Code, None]:
        return Code.of("ECC_UNCORRECTABLE"), None


def test_a_fault_between_two_cards_is_that_of_the_card_that_has_it(driver: FakeDriver) -> None:
    driver.cards += (SECOND_CARD,)
    for is_own, broken in ((False, "cuda:0"), (True, "cuda:1")):
        api = driver if is_own else OtherCardBroken(driver)
        with CudaDevice("cuda:0", api=driver) as first, CudaDevice("cuda:1", api=api) as second:
            given, taken = first.allocate(3, np.uint8), second.allocate(3, np.uint8)
            driver.fail("cuMemcpyPeerAsync", "ECC_UNCORRECTABLE")
            with pytest.raises(DeviceFault, match="had an error beyond repair"):
                second.copy_from(first, given, taken)
            assert [device.name for device in (first, second) if not device.is_usable] == [broken]


def test_copies_into_given_arrays(device: CudaDevice) -> None:
    with device.allocate(6, np.int16) as first, device.allocate(6, np.int16) as second:
        device.clear(first)
        device.upload(np.array([-1, 2, -3], np.int16), into=first.rows(0, 3))
        device.copy(first, into=second)
        target = np.empty((2, 3), np.int16)
        assert device.download(second, into=target) is target
        assert target.tolist() == [[-1, 2, -3], [0, 0, 0]]


def test_an_upload_that_fails_frees_its_array(device: CudaDevice, driver: FakeDriver) -> None:
    driver.fail("cuMemHostAlloc", "OUT_OF_MEMORY")
    with pytest.raises(ResourceError, match="does not pin 16 MiB of host memory"):
        device.upload(np.zeros(3, np.uint8))
    assert device.memory.used_bytes == 0


def test_arrays_with_gaps_do_not_cross_the_bus(device: CudaDevice) -> None:
    with pytest.raises(AssertionError, match="C-contiguous"):
        device.upload(np.zeros((4, 4), np.uint8)[:, :2])
    assert device.memory.used_bytes == 0


# Launches and graphs


def test_a_kernel_is_compiled_and_loaded_once(device: CudaDevice, driver: FakeDriver) -> None:
    kernel = Kernel()
    assert device.load(kernel) is device.load(kernel)
    assert kernel.compiled_for == [(9, 0)]
    assert driver.calls["cuModuleLoadData"] == 1
    assert device.load(kernel).registers == 40
    assert device.load(kernel).blocks_at_once(256) == 8


@pytest.mark.parametrize("value", [0, 1, -1, 2**63 - 1, -(2**63)])
def test_arguments_reach_the_kernel(device: CudaDevice, value: int) -> None:
    with device.allocate(7, np.uint64) as array:
        device.clear(array)
        device.launch(Kernel(), 2, 128, array.rows(1, 7), np.uint32(5), value)
        assert device.download(array).view(np.int64).tolist() == [0, *[value] * 5, 0]


def test_a_prepared_launch_runs_again_and_takes_other_arguments(
    device: CudaDevice, driver: FakeDriver
) -> None:
    with device.allocate(4, np.uint64) as array:
        launch = device.load(Kernel()).prepare((1, 2), (32, 2, 1), array, 2, 8)
        launch.run(device.stream)
        launch.rebind(array.rows(2, 4), 2, 9)
        launch.run(device.stream)
        assert device.download(array).tolist() == [8, 8, 9, 9]
    assert driver.calls["cuLaunchKernel"] == 2


def test_an_empty_grid_launches_nothing(device: CudaDevice, driver: FakeDriver) -> None:
    with device.allocate(0, np.uint64) as array:
        device.launch(Kernel(), 0, 128, array, 0, 1)
    assert driver.calls["cuLaunchKernel"] == 0


@pytest.mark.parametrize(("n", "value"), [(-1, 0), (2**32, 0), (0, 2**63), (1.5, 0), (None, 0)])
def test_integers_that_do_not_fit_are_our_mistake(device: CudaDevice, n: Any, value: int) -> None:
    with device.allocate(1, np.uint64) as array, pytest.raises(AssertionError):
        device.launch(Kernel(), 1, 1, array, n, value)


def test_arrays_of_another_dtype_and_freed_ones_are_our_mistake(device: CudaDevice) -> None:
    loaded = device.load(Kernel())
    with device.allocate(2, np.uint32) as array, pytest.raises(AssertionError, match="uint32"):
        loaded.prepare(1, 1, array, 1, 1)
    freed = device.allocate(1, np.uint64)
    freed.close()
    with pytest.raises(AssertionError, match="freed"):
        loaded.prepare(1, 1, freed, 1, 1)


def test_much_shared_memory_is_asked_for(device: CudaDevice, driver: FakeDriver) -> None:
    with device.allocate(1, np.uint64) as array:
        loaded = device.load(Kernel())
        loaded.prepare(1, 1, array, 1, 1, shared_bytes=48 << 10)
        assert driver.function_attributes == {}
        for asked in (50 << 10, 100 << 10, 60 << 10):  # a launch that was granted more may still run
            loaded.prepare(1, 1, array, 1, 1, shared_bytes=asked)
    assert driver.function_attributes == {"CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES": 100 << 10}


def test_a_graph_runs_what_was_recorded_and_only_when_asked(device: CudaDevice) -> None:
    with device.allocate(4, np.uint64) as array:
        device.clear(array)
        launch = device.load(Kernel()).prepare(1, 1, array, 2, 8)
        with device.record(lambda: launch.run(device.stream)) as graph:
            assert device.download(array).tolist() == [0, 0, 0, 0]
            graph.run(device.stream)
            assert device.download(array).tolist() == [8, 8, 0, 0]


def test_a_recording_that_fails_leaves_the_stream_in_order(device: CudaDevice, driver: FakeDriver) -> None:
    before = device.open_handles
    with pytest.raises(ZeroDivisionError):
        device.record(lambda: 1 // 0)
    driver.fail("cuGraphInstantiate", "OUT_OF_MEMORY")
    with pytest.raises(ResourceError):
        device.record(lambda: None)
    assert device.open_handles == before
    assert set(driver.held.values()) == {"cuStreamDestroy", "cuDevicePrimaryCtxRelease"}
    device.record(lambda: None).close()


def test_events_tell_the_time_between_them(device: CudaDevice) -> None:
    with device.new_stream() as stream, device.new_event() as start, device.new_event() as end:
        start.record(stream)
        device.stream.wait(start)
        end.record(device.stream)
        assert end.elapsed_ms(start) == 0.25


# Faults


@pytest.mark.parametrize(
    ("call", "code", "error", "what"),
    [
        ("cuStreamSynchronize", "ILLEGAL_ADDRESS", DeviceFault, "touched memory that is not its own"),
        ("cuStreamSynchronize", "LAUNCH_FAILED", DeviceFault, "failed while it ran"),
        ("cuStreamSynchronize", "ECC_UNCORRECTABLE", DeviceFault, "memory had an error beyond repair"),
        ("cuStreamSynchronize", "UNKNOWN", DeviceFault, "the GPU may be lost"),
        (
            "cuStreamSynchronize",
            "INVALID_VALUE",
            DeviceError,
            "refused cuStreamSynchronize: CUDA_ERROR_INVALID_VALUE",
        ),
        ("cuLaunchKernel", "LAUNCH_OUT_OF_RESOURCES", DeviceError, "more registers or shared memory"),
        ("cuModuleLoadData", "INVALID_IMAGE", DeviceError, "does not understand the compiled code"),
        ("cuModuleLoadData", "OUT_OF_MEMORY", ResourceError, "no memory left"),
    ],
)
def test_every_error_of_the_driver_is_typed(
    driver: FakeDriver, call: str, code: str, error: type[CuzkError], what: str
) -> None:
    with CudaDevice(api=driver) as device, device.allocate(4, np.uint64) as array:
        driver.fail(call, code)
        with pytest.raises(error, match=what) as raised:
            device.launch(Kernel(), 1, 1, array, 4, 1)
            device.stream.synchronise()
        assert type(raised.value) is error
        assert raised.value.where == "cuda:0" + ("" if "Stream" in call else ", kernel fill")
        assert raised.value.next
        assert device.is_usable == (error is not DeviceFault)
    assert set(driver.held.values()) <= (
        {"cuMemFree", "cuStreamDestroy", "cuModuleUnload"} if error is DeviceFault else set()
    )


def test_after_a_fault_the_device_says_so_and_the_process_goes_on(driver: FakeDriver) -> None:
    device = CudaDevice(api=driver)
    with device.allocate(4, np.uint64) as array:
        driver.fail("cuCtxSynchronize", "ILLEGAL_ADDRESS")
        with pytest.raises(DeviceFault, match="not its own"):
            device.synchronise()
        made = driver.calls.total()
        for work in (
            lambda: device.allocate(1, np.uint8),
            lambda: device.download(array),
            lambda: device.launch(Kernel(), 1, 1, array, 1, 1),
            device.free_memory,
            device.synchronise,
        ):
            with pytest.raises(
                DeviceFault, match="unusable in this process since an earlier fault: .*not its own"
            ):
                work()
    assert not device.is_usable
    assert device.memory.used_bytes == 0
    assert driver.calls.total() == made  # the driver was left alone
    device.close()
    assert driver.calls["cuDevicePrimaryCtxRelease"] == 1
    with CudaDevice(api=FakeDriver()) as other:
        assert other.is_usable


def test_a_fault_found_while_closing_ends_there(driver: FakeDriver) -> None:
    device = CudaDevice(api=driver)
    device.allocate(4, np.uint64)
    device.allocate(4, np.uint64)
    driver.fail("cuMemFree", "LAUNCH_FAILED")
    device.close()
    assert driver.calls["cuDevicePrimaryCtxRelease"] == 1


def test_a_fault_found_while_freeing_is_raised_and_counted(driver: FakeDriver) -> None:
    device = CudaDevice(api=driver)
    driver.fail("cuMemFree", "LAUNCH_FAILED")
    with pytest.raises(DeviceFault), device.allocate(4, np.uint64):
        pass
    assert device.memory.used_bytes == 0
    device.close()


# Threads


def test_the_card_is_current_in_each_thread_that_uses_it(driver: FakeDriver) -> None:
    with CudaDevice("cuda:0", api=driver) as one:
        made = driver.calls["cuCtxSetCurrent"]
        one.synchronise()
        assert driver.calls["cuCtxSetCurrent"] == made  # here it is current already
        thread = threading.Thread(target=one.synchronise)
        thread.start()
        thread.join()
        assert driver.calls["cuCtxSetCurrent"] == made + 1
        with CudaDevice("cuda:0", api=driver) as two:
            two.synchronise()
        one.synchronise()
        assert driver.calls["cuCtxSetCurrent"] == made + 3
