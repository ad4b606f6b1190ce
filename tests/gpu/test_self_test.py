"""`cuzk doctor --self-test` on a real card: all families are right; one that is not is told."""

from __future__ import annotations

import json
from importlib.util import find_spec
from typing import Any

import pytest

if find_spec("numba_cuda") is None:
    pytest.skip("numba-cuda is not installed: pip install 'cuzk[cuda]'", allow_module_level=True)

from cuzk.kernels.device.cpu import CpuDevice
from cuzk.kernels.device.cuda import CudaDevice
from cuzk.kernels.gpu import self_test as of_kernels
from cuzk.reports.self_test import families
from tests.cli.running import run

FAMILIES = 8


def test_every_family_computes_what_it_should(device: CudaDevice) -> None:
    verdicts = dict(families(CpuDevice(), device))
    assert len(verdicts) == FAMILIES
    assert [family for family, is_right in verdicts.items() if not is_right] == []


def test_the_command_says_so_in_words_and_in_json(device: CudaDevice) -> None:
    result = run("doctor", "--self-test", "--device", "cuda:0")
    assert result.exit_code == 0, result.output
    print(result.stdout)
    answer = run("doctor", "--self-test", "--device", "cuda:0", "--json")
    verdicts = json.loads(answer.stdout)["self_test"]
    assert len(verdicts) == FAMILIES
    assert all(verdict.startswith("ok, ") for verdict in verdicts.values())


def test_a_family_that_is_wrong_is_named_and_the_command_ends_with_1(
    device: CudaDevice, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*arguments: Any) -> None:
        return None

    monkeypatch.setattr(of_kernels, "_selected", wrong)
    answer = run("doctor", "--self-test", "--device", "cuda:0", "--json")
    assert answer.exit_code == 1
    verdicts = json.loads(answer.stdout)["self_test"]
    wrong_ones = [family for family, verdict in verdicts.items() if verdict.startswith("WRONG")]
    assert wrong_ones == ["sums over bits, G1", "sums over bits, G2"]
