"""The recorder: what an engine writes is what the reader gets, from one thread or many."""

from __future__ import annotations

import io
import threading
from pathlib import Path

import pytest

from cuzk.timeline.analyze import analyze
from cuzk.timeline.read import parse_log, read_log
from cuzk.timeline.record import Timeline


class Clock:
    """Nanoseconds that a test moves."""

    def __init__(self) -> None:
        self.now_ns = 5_000_000_000

    def __call__(self) -> int:
        return self.now_ns


def test_offsets_count_whole_milliseconds_from_the_start() -> None:
    clock, file = Clock(), io.BytesIO()
    timeline = Timeline(file, clock_ns=clock)
    timeline.record("SYNTH_START", "j", partition=3)
    clock.now_ns += 1_999_999
    timeline.record("SYNTH_END", "j", partition=3, synth_ms=1)
    assert file.getvalue().decode() == (
        "TIMELINE,0,SYNTH_START,j,partition=3\nTIMELINE,1,SYNTH_END,j,partition=3,synth_ms=1\n"
    )


def test_a_span_is_a_start_and_an_end_with_what_it_took() -> None:
    clock, file = Clock(), io.BytesIO()
    timeline = Timeline(file, clock_ns=clock)
    with timeline.span("GPU", "j", worker=1, partition=2):
        clock.now_ns += 40_000_000
    assert file.getvalue().decode() == (
        "TIMELINE,0,GPU_START,j,worker=1,partition=2\nTIMELINE,40,GPU_END,j,worker=1,partition=2,gpu_ms=40\n"
    )


def test_a_span_that_fails_has_no_end() -> None:
    file = io.BytesIO()
    with pytest.raises(ValueError), Timeline(file).span("SYNTH", "j", partition=2):
        raise ValueError
    assert [line.split(b",")[2] for line in file.getvalue().splitlines()] == [b"SYNTH_START"]


def test_an_event_may_be_told_later_than_it_was() -> None:
    clock, file = Clock(), io.BytesIO()
    timeline = Timeline(file, clock_ns=clock)
    clock.now_ns += 90_000_000
    end_ns = clock.now_ns
    timeline.record("KERNEL_START", "j", at_ns=end_ns - 60_000_000, worker=0, partition=1)
    timeline.record("KERNEL_END", "j", at_ns=end_ns, worker=0, partition=1)
    assert [line.split(b",")[1] for line in file.getvalue().splitlines()] == [b"30", b"90"]


def test_what_many_threads_record_is_read_back_whole_and_in_order(tmp_path: Path) -> None:
    path, threads, partitions = tmp_path / "timeline.log", 8, 50
    with path.open("ab", buffering=0) as file:
        timeline = Timeline(file)

        def work(worker: int) -> None:
            for partition in range(partitions):
                with timeline.span("SYNTH", f"job {worker}", partition=partition):
                    pass
                timeline.record("GPU_QUEUE", f"job {worker}", partition=partition)
                timeline.record("GPU_PICKUP", f"job {worker}", worker=worker, partition=partition)
                with timeline.span("GPU", f"job {worker}", worker=worker, partition=partition, device=worker):
                    pass

        running = [threading.Thread(target=work, args=(worker,)) for worker in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    lines = path.read_text().splitlines()
    offsets = [int(line.split(",")[1]) for line in lines]
    assert len(lines) == 6 * threads * partitions and offsets == sorted(offsets)
    report = analyze(read_log(path))
    assert (report.counts.garbled, report.notices) == (0, ())
    [run] = report.runs
    assert (len(run.jobs), [device.calls for device in run.devices]) == (threads, [partitions] * threads)
    assert all(job.state == "proven" for job in run.jobs)


def test_a_line_is_in_the_file_as_soon_as_it_is_recorded(tmp_path: Path) -> None:
    path = tmp_path / "timeline.log"
    with path.open("ab") as file:
        Timeline(file).record("SYNTH_START", "j", partition=1)
        assert path.read_text() == "TIMELINE,0,SYNTH_START,j,partition=1\n"


def test_any_name_of_a_job_comes_back() -> None:
    names = ["porep-1-2", "wdpost-1-0-[1 2 3]", "a,b\nTIMELINE,5,GPU_END,x,worker=0", "50 % \r", ""]
    file = io.BytesIO()
    timeline = Timeline(file)
    for name in names:
        timeline.record("SYNTH_START", name, partition=0)
    log = parse_log(io.StringIO(file.getvalue().decode()), name="made")
    assert [event.job for event in log.runs[0]] == names and log.counts.garbled == 0


class FullDisk(io.BytesIO):
    """Takes one line, then no more."""

    def write(self, data: object) -> int:  # type: ignore[override]
        if self.getvalue():
            raise OSError(28, "No space left on device")
        return super().write(data)  # type: ignore[arg-type]


def test_a_log_that_cannot_be_written_ends_the_recording_and_nothing_else() -> None:
    file = FullDisk()
    timeline = Timeline(file)
    timeline.record("SYNTH_START", "j", partition=0)
    assert timeline.failure is None
    timeline.record("SYNTH_START", "j", partition=1)
    timeline.record("SYNTH_START", "j", partition=2)
    assert file.getvalue().count(b"\n") == 1
    assert isinstance(timeline.failure, OSError) and timeline.failure.errno == 28


def test_an_event_that_does_not_exist_is_a_mistake_of_ours() -> None:
    with pytest.raises(AssertionError, match="GPU_STOP"):
        Timeline(io.BytesIO()).record("GPU_STOP", "j")
