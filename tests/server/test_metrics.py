"""Prometheus text: the names that Curio's operators have, in their order, and ours, each with its value."""

from __future__ import annotations

from collections import deque
from dataclasses import replace

from prometheus_client.parser import text_string_to_metric_families

from cuzk.engine.jobs import Status
from cuzk.errors import DeviceError, EngineError
from cuzk.server.history import Ended
from cuzk.server.metrics import Metrics, contract_text
from cuzk.server.observation import Observation
from cuzk.timeline.spans import Kind, Span
from tests.engine.fakes import wrong
from tests.server.playing import Playing
from tests.server.processes import until
from tests.server.sights import BUSY, CARD, device, idle, sight, told, took, worker

PROVEN = Ended(job_id="a", kind="porep-c2", status=Status.COMPLETED, timings=took(12_345))
FAILED = Ended(
    job_id="b", kind="snap-update", status=Status.FAILED, timings=took(5), error=DeviceError("gone")
)
LATE = Ended(job_id="c", kind="porep-c2", status=Status.TIMEOUT, timings=took(5), error=EngineError("late"))

#: In the contract's order: name and type.
CONTRACT = [
    ("cuzk_proofs_completed_total", "counter"),
    ("cuzk_proofs_failed_total", "counter"),
    ("cuzk_uptime_seconds", "gauge"),
    ("cuzk_queue_depth", "gauge"),
    ("cuzk_proofs_completed", "counter"),
    ("cuzk_proofs_failed", "counter"),
    ("cuzk_proof_duration_seconds", "summary"),
    ("cuzk_running_jobs", "gauge"),
    ("cuzk_gpu_workers", "gauge"),
]


def values(text: str) -> dict[str, float]:
    """Of every sample, by its name with labels as they are written."""
    lines = [line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#")]
    assert len(dict(lines)) == len(lines), "a sample is there twice"
    return {name: float(value) for name, value in lines}


def ours(sight_: object) -> dict[str, float]:
    """Samples of a sight that was put together by hand."""

    class Still(Observation):
        def look(self) -> object:  # type: ignore[override]
            return sight_

    return values(Metrics(Still()).text())


def test_the_contracts_metrics_come_first_under_their_names_and_types() -> None:
    text = contract_text(sight(told=told((0, PROVEN), (0, FAILED))))
    types = [tuple(line.split()[2:]) for line in text.splitlines() if line.startswith("# TYPE")]
    assert types == CONTRACT
    helps = [line.split()[2] for line in text.splitlines() if line.startswith("# HELP")]
    assert helps == [name for name, _ in CONTRACT]


def test_each_of_them_has_the_value_that_it_promises() -> None:
    text = contract_text(sight(told=told((0, PROVEN), (0, PROVEN), (0, FAILED), (0, LATE))))
    assert values(text) == {
        "cuzk_proofs_completed_total": 2,
        "cuzk_proofs_failed_total": 2,
        "cuzk_uptime_seconds": 400,
        "cuzk_queue_depth": 2,  # one in front of the engine, one that it has not begun
        'cuzk_proofs_completed{proof_kind="porep_c2"}': 2,
        'cuzk_proofs_failed{proof_kind="porep_c2"}': 1,
        'cuzk_proofs_failed{proof_kind="snap_update"}': 1,
        'cuzk_proof_duration_seconds_count{proof_kind="porep_c2"}': 2,
        'cuzk_proof_duration_seconds_sum{proof_kind="porep_c2"}': 24.69,
        "cuzk_running_jobs": 1,
        "cuzk_gpu_workers": 4,
    }


def test_before_the_first_proof_there_is_no_duration_but_every_other_family() -> None:
    text = contract_text(sight(idle(), waiting=()))
    assert "cuzk_proof_duration_seconds" not in text
    assert "# TYPE cuzk_proofs_completed counter" in text
    assert values(text)["cuzk_queue_depth"] == 0 and values(text)["cuzk_running_jobs"] == 0


def test_sums_of_durations_have_three_decimals() -> None:
    text = contract_text(sight(told=told((0, PROVEN))))
    assert 'cuzk_proof_duration_seconds_sum{proof_kind="porep_c2"} 12.345\n' in text


def test_ours_tell_jobs_partitions_failures_and_retries() -> None:
    found = ours(sight(told=told((0, PROVEN), (0, FAILED), (0, LATE))))
    assert found['cuzk_jobs{state="waiting"}'] == 2 and found['cuzk_jobs{state="running"}'] == 1
    stages = {stage: found[f'cuzk_partitions{{stage="{stage}"}}'] for stage in
              ("pending", "preparing", "ready", "proving", "proved")}  # fmt: skip
    assert stages == {"pending": 2, "preparing": 1, "ready": 1, "proving": 1, "proved": 1}
    assert found['cuzk_jobs_ended_total{proof_kind="porep_c2",status="timeout"}'] == 1
    assert found['cuzk_failures_total{cause="device"}'] == 1
    assert found['cuzk_failures_total{cause="wrong_proof"}'] == 0
    assert found['cuzk_retries_total{reason="wrong_proof"}'] == 0
    assert found["cuzk_requests_rejected_total"] == 4 and found["cuzk_ready"] == 1


def test_ours_tell_the_health_of_devices_and_what_their_time_went_to() -> None:
    sick = device(
        1, set_aside="3 failures in a row", strikes=3, wrong_proofs=2, workers=(worker(2, stalled=True),)
    )
    engine = replace(BUSY, devices=(device(0), sick))
    found = ours(sight(engine))
    assert [found[f'cuzk_device_healthy{{device="cuda:{k}"}}'] for k in (0, 1)] == [1, 0]
    assert found['cuzk_device_strikes{device="cuda:1"}'] == 3
    assert found['cuzk_device_wrong_proofs_total{device="cuda:1"}'] == 2
    assert found['cuzk_device_stalled_workers{device="cuda:1"}'] == 1
    assert found['cuzk_gpu_kernel_seconds_total{device="cuda:0"}'] == 150
    assert found['cuzk_gpu_efficiency_ratio{device="cuda:0"}'] == 0.5
    assert 'cuzk_gpu_efficiency_ratio{device="cuda:1"}' not in found  # it told of no kernel
    assert found['cuzk_gpu_time_ratio{device="cuda:1",part="nothing"}'] == 1


def test_ours_tell_memory_by_budget_and_purpose_and_cards_as_the_driver_does() -> None:
    found = ours(sight())
    assert found['cuzk_memory_reserved_bytes{budget="host memory",purpose="parameters porep-32GiB"}'] == 800
    assert found['cuzk_memory_used_bytes{budget="host memory for inputs"}'] == 70
    assert found['cuzk_memory_peak_bytes{budget="host memory"}'] == 950
    assert found['cuzk_memory_budget_bytes{budget="cuda:1"}'] == 4000
    assert found['cuzk_card_temperature_celsius{device="cuda:0"}'] == CARD.temperature_c
    assert found['cuzk_card_power_watts{device="cuda:0"}'] == CARD.power_w
    assert found['cuzk_card_memory_used_bytes{device="cuda:0"}'] == CARD.memory_used_bytes
    assert 'cuzk_card_power_watts{device="cuda:1"}' not in found
    assert found["process_resident_memory_bytes"] > 1 << 20


def test_stages_are_histograms_of_what_ended_well() -> None:
    observation = Observation()
    for end, failed in ((1500, False), (90_000, False), (1500, True)):
        observation.stages.hear(Span(Kind.CALL, "a", 0, 0, 0, 0, end, failed))
    observation.end(PROVEN)
    with Playing() as playing:
        observation.begin(playing)
        found = values(Metrics(observation).text())
        observation.close()
    call = {
        bound: found[f'cuzk_stage_seconds_bucket{{le="{bound}",stage="call"}}']
        for bound in ("1.0", "2.0", "90.0")
    }
    assert call == {"1.0": 0, "2.0": 1, "90.0": 2}
    assert found['cuzk_stage_seconds_sum{stage="call"}'] == 91.5
    assert found['cuzk_stage_seconds_count{stage="synthesis"}'] == 0
    assert found['cuzk_job_seconds_sum{proof_kind="porep_c2"}'] == 12.345


def test_an_engine_at_work_is_counted_as_it_is_and_prometheus_reads_it() -> None:
    with Playing(compute_s=0.01) as playing:
        playing.setup.fates["cuda:0"] = deque([wrong])
        playing.proven(*[playing.submit(f"porep-{k}", 3) for k in range(2)])
        history = playing.observation.history
        until(lambda: bool(history.look().retries))  # which are heard in a thread of their own
        text = Metrics(playing.observation).text()
    found = values(text)
    assert found["cuzk_proofs_completed_total"] == 2 and found["cuzk_proofs_failed_total"] == 0
    assert found['cuzk_retries_total{reason="wrong_proof"}'] == 1
    assert found['cuzk_stage_seconds_count{stage="kernels"}'] == 6
    assert found['cuzk_stage_seconds_count{stage="synthesis"}'] == 6
    assert 6 * 0.008 < found['cuzk_gpu_kernel_seconds_total{device="cuda:0"}'] < 6 * 0.01
    assert 0 < found['cuzk_gpu_efficiency_ratio{device="cuda:0"}'] < 1
    families = {family.name for family in text_string_to_metric_families(text)}
    assert {"cuzk_queue_depth", "cuzk_stage_seconds", "cuzk_gpu_efficiency_ratio"} <= families


def test_labels_that_clients_could_choose_are_never_job_ids() -> None:
    """A name of a request in a label would be a new series for each request."""
    with Playing() as playing:
        playing.proven(playing.submit('porep-1"}\nevil'))
        assert "evil" not in Metrics(playing.observation).text()
