"""Parameters of the toy circuit against upstream's bytes; trapdoors that cannot serve; interruptions."""

from __future__ import annotations

import errno
import hashlib
import os
from pathlib import Path

import pytest
from py_ecc import optimized_bls12_381 as oracle

from cuzk.circuit.builder import Circuit
from cuzk.errors import ResourceError, UsageError
from cuzk.events import Event, OnEvent, StageAdvanced, StageStarted, ignore
from cuzk.groth16.files import file_digest
from cuzk.groth16.generate import generate, generate_key
from cuzk.groth16.parameters.params_file import open_parameters, read_key_of
from cuzk.groth16.qap import point_counts
from cuzk.groth16.values_at_tau import Trapdoors
from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.modulus import FR
from cuzk.whole_files import NewFile

#: Upstream's figures for the trapdoors 2, 3, 5, 7, 11 and the standard generators (bellperson 0.26, neptune).
VK_BYTES, VK_SHA256 = 1060, "f8a4fdd423d36ef0cd9eb22a8c0ecaa55b59bb44cb748551ed46c7bd8acaeb47"
PARAMS_BYTES, PARAMS_SHA256 = 170_520, "64aa6dc30f12ca413c0ffd6bd8ba2f687ef5ac3e3fb13a8a7f59c80584b0e7fc"
PARAMS_DIGEST = "0fa2271840e0dda9fef11a997e2b76f6"
DOMAIN = 512


def generate_toy(
    device: CpuDevice, toy: Circuit, folder: Path, trapdoors: Trapdoors, on_event: OnEvent = ignore
) -> Path:
    return generate(
        device, toy, trapdoors, folder=folder, stem="toy", sector_bytes=0, given=False, on_event=on_event
    )


def test_the_files_are_upstreams_to_the_byte(toy_params: Path) -> None:
    vk, params = toy_params.with_suffix(".vk").read_bytes(), toy_params.read_bytes()
    assert (len(vk), hashlib.sha256(vk).hexdigest()) == (VK_BYTES, VK_SHA256)
    assert (len(params), hashlib.sha256(params).hexdigest()) == (PARAMS_BYTES, PARAMS_SHA256)
    assert file_digest(toy_params) == PARAMS_DIGEST


def test_the_key_alone_is_that_of_the_parameters(device: CpuDevice, toy: Circuit, toy_params: Path) -> None:
    key = generate_key(device, toy, Trapdoors.of([2, 3, 5, 7, 11]))
    assert hashlib.sha256(key.to_bytes()).hexdigest() == VK_SHA256
    assert key == read_key_of(toy_params)


def test_the_sections_have_upstreams_counts(toy_params: Path, toy: Circuit) -> None:
    counts = open_parameters(toy_params, point_counts(toy)).counts
    assert (counts.h, counts.l, counts.a, counts.b, counts.ic) == (511, 313, 236, 235, 2)


def test_h_is_the_powers_of_tau_times_the_vanishing_polynomial_over_delta(
    device: CpuDevice, toy: Circuit, tmp_path: Path
) -> None:
    """With trapdoors at the edges of their range, where upstream's file says nothing."""
    alpha, beta, gamma, delta, tau = FR.p - 1, FR.p - 2, 1, FR.p - 1, (FR.p - 1) // 2
    path = generate_toy(device, toy, tmp_path, Trapdoors.of([alpha, beta, gamma, delta, tau]))
    t = pow(tau, DOMAIN, FR.p) - 1
    h = open_parameters(path).h
    for i in (0, 1, 7, 8, 510):
        scalar = pow(tau, i, FR.p) * t * pow(delta, -1, FR.p) % FR.p
        x, y = oracle.normalize(oracle.multiply(oracle.G1, scalar))
        assert h[i].tobytes() == int(x).to_bytes(48, "big") + int(y).to_bytes(48, "big")


@pytest.mark.parametrize("name", ["alpha", "beta", "gamma", "delta", "tau"])
@pytest.mark.parametrize("value", [0, -1, FR.p, FR.p + 2])
def test_a_trapdoor_outside_its_range_is_named(name: str, value: int) -> None:
    with pytest.raises(UsageError, match=rf"not in \[1, r\): {name}"):
        Trapdoors(**{"alpha": 2, "beta": 3, "gamma": 5, "delta": 7, "tau": 11, name: value})


@pytest.mark.parametrize("exponent", [0, 1, DOMAIN // 2, DOMAIN - 1])
def test_a_tau_in_the_domain_is_refused_and_nothing_written(
    device: CpuDevice, toy: Circuit, tmp_path: Path, exponent: int
) -> None:
    root = pow(7, (FR.p - 1) // DOMAIN, FR.p)  # 7 generates the multiplicative group
    trapdoors = Trapdoors.of([2, 3, 5, 7, pow(root, exponent, FR.p)])
    with pytest.raises(UsageError, match="root of the domain"):
        generate_toy(device, toy, tmp_path, trapdoors)
    assert list(tmp_path.iterdir()) == []


def test_random_trapdoors_are_in_range_and_differ() -> None:
    first, second = Trapdoors.random(), Trapdoors.random()
    assert first != second
    assert len({first.alpha, first.beta, first.gamma, first.delta, first.tau}) == 5


@pytest.mark.parametrize("stage", ["values at tau", "points h", "points l", "points b_g2"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, MemoryError])
def test_an_interruption_at_any_stage_leaves_nothing_behind(
    stage: str, error: type[BaseException], device: CpuDevice, toy: Circuit, tmp_path: Path
) -> None:
    def interrupt(event: Event) -> None:
        if isinstance(event, StageStarted | StageAdvanced) and event.name == stage:
            raise error

    with pytest.raises(error):
        generate_toy(device, toy, tmp_path, Trapdoors.random(), interrupt)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_in_the_writing_thread_leaves_nothing_behind(
    device: CpuDevice, toy: Circuit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = NewFile.write

    def fill_up(self: NewFile, data: bytes | memoryview) -> None:
        if self.file.tell() > PARAMS_BYTES // 2:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(self, data)

    monkeypatch.setattr(NewFile, "write", fill_up)
    with pytest.raises(ResourceError, match="the disk is full"):
        generate_toy(device, toy, tmp_path, Trapdoors.random())
    assert list(tmp_path.iterdir()) == []
