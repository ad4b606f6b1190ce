"""A GPU's kernels, family by family, against plain integers and the CPU: for `cuzk doctor --self-test`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from cuzk.circuit.rows import evaluate_side
from cuzk.circuit.witness import assign
from cuzk.errors import DeviceError
from cuzk.events import OnEvent, stage
from cuzk.groth16.query import selections
from cuzk.kernels.device.choose import choose
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.proofs.kinds import circuit_of, free_values
from cuzk.proofs.warm_up import TO_CHECK, TO_PROVE_BESIDE_GPU, warm_up
from cuzk.sector.porep.registered_proof import registered_proof_of_size
from cuzk.sector.porep.synthesize import synthesize

if TYPE_CHECKING:
    from cuzk.kernels.device.cuda import CudaDevice
    from cuzk.kernels.device.cuda_memory import DeviceArray

WRONG = "WRONG"
"""How the verdict on kernels begins that did not compute what they should."""
_SECTOR_BYTES = 2048
_GROUPS = (*TO_CHECK, *TO_PROVE_BESIDE_GPU, "witness", "rows")


def self_test(device: str, threads: int | None, on_event: OnEvent) -> dict[str, str]:
    """Each family of kernels with its verdict and time; kernels are compiled first, if need be.

    device  as after --device. Raises DeviceError when it is no GPU, or one that cannot be had.
    """
    choice = choose(device, threads)
    if choice.card is None:
        raise DeviceError(
            choice.why or f"{choice.host.name} has no self-test: the tests of the package are its test",
            where=device,
            next="name a GPU: --device cuda:0",
        )
    from cuzk.kernels.device.cuda import CudaDevice
    from cuzk.kernels.gpu.self_test import TRANSFORM_LOG2
    from cuzk.proofs.warm_up_gpu import TASKS, warm_up_gpu

    warm_up(choice.host, _GROUPS, on_event)
    for task in TASKS:
        warm_up_gpu(choice.host, choice.card, task, TRANSFORM_LOG2, on_event)
    verdicts: dict[str, str] = {}
    with stage(on_event, f"self-test of {choice.card.label}"), CudaDevice(choice.card.uuid) as card:
        begin = time.perf_counter()
        for family, is_right in families(choice.host, card):
            took, begin = time.perf_counter() - begin, time.perf_counter()
            verdicts[family] = f"{'ok' if is_right else WRONG}, {1000 * took:.0f} ms"
    return verdicts


def families(host: CpuDevice, card: CudaDevice) -> Iterator[tuple[str, bool]]:
    """Each family's name, and whether its kernels computed what they should. Raises what the card raises."""
    from cuzk.kernels.gpu import self_test as of_kernels

    yield from of_kernels.self_test(card)
    yield "variables, rows and scalars", _synthesis_is_right(host, card)


def _synthesis_is_right(host: CpuDevice, card: CudaDevice) -> bool:
    """All that a GPU makes of a small synthetic sector, byte for byte what the CPU makes of it."""
    from cuzk.groth16.gpu.synthesis import DeviceSynthesis

    registered = registered_proof_of_size(_SECTOR_BYTES)
    c1 = synthesize(registered, seed=0, device=host, progress=lambda done, total: None)
    circuit = circuit_of(c1.shape)
    free = free_values(c1, 0)
    expected = assign(host, circuit, free)
    with closing(DeviceSynthesis(card, circuit)) as synthesis:
        synthesis.assign(free)
        synthesis.synchronise()
        pairs: list[tuple[DeviceArray, NDArray[Any]]] = [
            (synthesis.bits, expected.bits),
            (synthesis.values, expected.values),
        ]
        for section, held in synthesis.scalars.items():
            query = selections(circuit).of(section).query(expected)
            pairs += [(held.bits, query.bits), (held.full_scalars, query.full_scalars)]
        is_right = all(np.array_equal(card.download(there), here) for there, here in pairs)
        with card.allocate((circuit.num_constraints, 4), np.uint64) as rows:
            for side in range(3):
                synthesis.rows(side, rows)
                synthesis.synchronise()
                here = evaluate_side(host, circuit, expected, side)
                is_right &= np.array_equal(card.download(rows), here)
        return is_right and synthesis.unsatisfied_row() is None
