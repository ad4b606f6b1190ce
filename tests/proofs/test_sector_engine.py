"""Sectors through an engine: real proofs on the CPU, and what is refused before any work."""

from __future__ import annotations

import io
import json
import time
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import cuzk
from cuzk.cli.engine import EngineFlags
from cuzk.config import Config
from cuzk.engine.recorder import NoRecorder
from cuzk.engine.settings import Settings
from cuzk.engine.status import EngineStatus
from cuzk.errors import DeviceError, EngineError, InputError, ParameterError, UsageError
from cuzk.events import ignore
from cuzk.groth16.parameters.params_file import ParameterFile, open_parameters
from cuzk.proofs import setups
from cuzk.proofs.sector_engine import usable_host_bytes
from cuzk.sector.claim import WINNING
from cuzk.sector.porep.c1_reader import read_c1
from cuzk.timeline.read import parse_log
from cuzk.timeline.record import Timeline
from tests.sector.other_vectors import EXPECT, pieces_of

POREP = Path(__file__).parents[1] / "vectors" / "porep"
C1 = POREP / "2k-random.json"
UPSTREAM = {
    case["file"]: case["proof_r13_s17"]
    for case in json.loads((POREP / "vectors.json").read_text())["cases"]
    if "proof_r13_s17" in case
}


@pytest.mark.slow
def test_sectors_that_are_proven_at_once_give_upstreams_proofs(
    sector_params: Path, home_of_old: Path
) -> None:
    log = io.BytesIO()
    with cuzk.Engine(params=sector_params, devices=["cpu"], recorder=Timeline(log)) as engine:
        jobs = {
            file: engine.submit(POREP / file, insecure_rs=(13, 17), priority=cuzk.Priority.HIGH)
            for file in UPSTREAM
        }
        again = engine.submit(C1.read_bytes(), insecure_rs=(13, 17))
        for file, job in jobs.items():
            result = job.wait()
            assert result is not None
            assert result.require_proof().hex() == UPSTREAM[file]
            took = result.timings
            assert 0 < took.synth_ms + took.gpu_ms <= took.total_ms
        assert again.wait() is not None and again.id == jobs[C1.name].id
        status = engine.status()
    assert [[setup.name for setup in device.opened] for device in status.devices] == [["porep-2KiB"]]
    [events] = parse_log(io.TextIOWrapper(io.BytesIO(log.getvalue())), name="log").runs
    assert sum(event.name == "GPU_END" for event in events) == len(UPSTREAM)


@pytest.mark.slow
def test_fresh_proofs_of_one_sector_under_two_names_differ_and_hold(
    sector_params: Path, home_of_old: Path
) -> None:
    with cuzk.Engine(params=sector_params, devices=["cpu"]) as engine:
        jobs = [engine.submit(C1, request_id=str(k)) for k in range(2)]
        proofs = [job.wait().require_proof() for job in jobs]  # type: ignore[union-attr]
    assert proofs[0] != proofs[1]
    for proof in proofs:
        assert cuzk.verify(C1, proof, params=sector_params).partitions == 1


@pytest.mark.slow
def test_an_urgent_proof_of_another_kind_comes_in_between_and_both_are_upstreams(
    sector_params: Path, home_of_old: Path
) -> None:
    """Both workers have a sector, when an election must be proven: it ends before either sector does."""
    cuzk.generate_parameters(2048, kind=WINNING, trapdoors=(2, 3, 5, 7, 11), device="cpu")
    log = io.BytesIO()
    with cuzk.Engine(params=sector_params, devices=["cpu"], recorder=Timeline(log)) as engine:
        first = engine.submit(pieces_of("winning-2k"), request_id="first").wait()
        assert first is not None and first.require_proof()
        jobs = [engine.submit(C1, insecure_rs=(13, 17), request_id=f"sector {k}") for k in range(2)]
        while sum(worker.job_id is not None for worker in engine.status().devices[0].workers) < 2:
            time.sleep(0.01)
        urgent = engine.submit(pieces_of("winning-2k"), insecure_rs=(13, 17), request_id="urgent").wait()
        assert urgent is not None
        assert urgent.require_proof().hex() == EXPECT["vectors"]["winning-2k"]["proof"]["bytes"]
        for job in jobs:
            result = job.wait()
            assert result is not None and result.require_proof().hex() == UPSTREAM[C1.name]
    [events] = parse_log(io.TextIOWrapper(io.BytesIO(log.getvalue())), name="log").runs
    ended = [event.job for event in events if event.name == "ASSEMBLED"]
    assert ended == ["first", "urgent", "sector 0", "sector 1"]
    given_away = [event.job for event in events if event.name == "LOCK_START"]
    assert given_away.count("sector 0") == 2  # once more after the urgent one


@pytest.mark.slow
@pytest.mark.usefixtures("no_garbage_collection")
def test_parameters_are_gone_when_the_engine_has_closed_whoever_keeps_it(
    sector_params: Path, home_of_old: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[weakref.ref[Any]] = []  # of the points of h

    def open_noted(path: Path) -> ParameterFile:
        parameters = open_parameters(path)
        held.append(weakref.ref(parameters.h))
        return parameters

    monkeypatch.setattr(setups, "open_parameters", open_noted)
    with cuzk.Engine(params=sector_params, devices=["cpu"]) as engine:
        job = engine.submit(C1)
        result = job.wait()
        [points] = held
        assert result is not None and result.require_proof() and points() is not None
    assert points() is None
    with pytest.raises(EngineError, match="closing"):
        engine.submit(C1)
    assert len(held) == 1, "parameters were opened for an engine that takes no work"


@pytest.mark.slow
def test_a_bad_path_fails_its_job_with_the_place_and_no_other(sector_params: Path, home_of_old: Path) -> None:
    good = read_c1(C1)
    [partition] = good.partitions
    columns = partition.columns.copy()
    columns[0, 3, 1] ^= np.uint8(1)
    bad = replace(good, partitions=(replace(partition, columns=columns),))
    with cuzk.Engine(params=sector_params, devices=["cpu"]) as engine:
        jobs = [engine.submit(c1, insecure_rs=(13, 17)) for c1 in (bad, good)]
        failed, proven = [job.wait() for job in jobs]
    assert failed is not None and isinstance(failed.error, InputError)
    assert failed.error.where is not None and "partition 0, challenge 0" in failed.error.where
    assert proven is not None and proven.require_proof().hex() == UPSTREAM[C1.name]


def engine_of(**options: object) -> EngineStatus:
    with cuzk.Engine(**options) as engine:  # type: ignore[arg-type]
        return engine.status()


def test_an_engine_without_devices_named_takes_what_there_is(own_home: Path) -> None:
    status = engine_of(threads=2)
    assert [device.name.partition(":")[0] for device in status.devices] in (["cpu"], ["cuda"])
    assert sum(memory.total for memory in status.memory) <= usable_host_bytes() * 1.1


def test_budgets_are_what_was_asked_for(own_home: Path) -> None:
    status = engine_of(devices=["cpu"], memory=8 << 30)
    assert [memory.total for memory in status.memory] == [7 << 30, 1 << 30]


@pytest.mark.parametrize(
    ("options", "error", "says"),
    [
        ({"devices": ["cpu", "cpu"]}, UsageError, "named twice"),
        ({"devices": ["gpu"]}, UsageError, "names no device"),
        ({"devices": ["cpu", "cuda:99"]}, DeviceError, "GPU|CUDA|cuda"),
        ({"devices": ["cpu"], "vram_limit": 1 << 30}, UsageError, "mean nothing"),
    ],
    ids=str,
)
def test_devices_that_cannot_be_had_are_refused(
    options: dict[str, object], error: type[Exception], says: str, own_home: Path
) -> None:
    with pytest.raises(error, match=says):
        engine_of(**options)


def test_what_is_no_sector_or_has_no_parameters_is_refused_at_submission(own_home: Path) -> None:
    with cuzk.Engine(devices=["cpu"]) as engine:
        with pytest.raises(InputError):
            engine.submit(b"{}")
        with pytest.raises(InputError):
            engine.submit(own_home / "none.json")
        with pytest.raises(UsageError, match="no partition"):
            engine.submit(C1, partitions=[1])
        with pytest.raises(UsageError, match="R and S"):
            engine.submit(C1, insecure_rs=(-1, 0))
        with pytest.raises(ParameterError, match="is missing"):
            engine.submit(C1)
        assert engine.status().jobs == ()


def test_parameters_in_memory_need_gpus(own_home: Path) -> None:
    with (
        cuzk.Engine(devices=["cpu"], synthetic=True) as engine,
        pytest.raises(DeviceError, match="need a GPU"),
    ):
        engine.submit(C1)


def test_the_command_line_wins_over_the_configuration(own_home: Path) -> None:
    silent = dict.fromkeys(EngineFlags.__dataclass_fields__)
    config = Config(
        devices=("cpu",), gpu_workers_per_device=3, gpu_lock="coarse", partition_workers=4,
        synthesis_lookahead=5, memory=8 << 30,
    )  # fmt: skip
    flags = EngineFlags(**{**silent, "devices": ()})  # type: ignore[arg-type]
    with flags.engine(config, NoRecorder(), ignore) as engine:
        assert engine.settings == Settings(
            gpu_workers_per_device=3, gpu_lock="coarse", partition_workers=4, synthesis_lookahead=5
        )
        assert len(engine.status().devices[0].workers) == 3
    flags = EngineFlags(**{**silent, "devices": (), "gpu_lock": "none", "lookahead": 9})  # type: ignore[arg-type]
    with flags.engine(config, NoRecorder(), ignore) as engine:
        assert (engine.settings.gpu_lock, engine.settings.synthesis_lookahead) == ("none", 9)
        assert engine.settings.partition_workers == 4
