"""What a picture shows, before it has pixels: rows for the GPUs, their workers, the queue, the syntheses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from cuzk.timeline.analyze import Run
from cuzk.timeline.devices import Cause, Device, percent_text
from cuzk.timeline.spans import Kind, Span
from cuzk.timeline.tracks import Track, end_of, gpu_tracks, queue_depth, synthesis_tracks

#: Jobs take turns with so many colours; looks are j0, j1, ...
JOB_COLOURS = 8
CAUSE_WORDS: Mapping[Cause, str] = {
    Cause.NO_WORK: "nothing to prove",
    Cause.SYNTHESIS: "waiting for synthesis",
    Cause.OVERHEAD: "a partition was ready",
    Cause.UNKNOWN: "unknown",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """`look` names what it is: busy, a cause, a job's colour, wait, kernel, with `failed` or `open` added."""

    start_ms: int
    end_ms: int
    look: str
    tip: str
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lane:
    """A row of the picture. `size` is small, middle or large; `inner` bars lie over the others."""

    label: str
    size: str
    bars: list[Bar]
    inner: list[Bar] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """A row that counts: (moment, how many from then on)."""

    label: str
    steps: list[tuple[int, int]]


Row = Lane | Depth


def groups_of(run: Run) -> list[list[Row]]:
    """The rows of a run: a group for each GPU, one for the queue, one for the syntheses."""
    colours = {job.job: f"j{k % JOB_COLOURS}" for k, job in enumerate(run.jobs)}
    devices = {device.device: device for device in run.devices}
    groups: list[list[Row]] = []
    for number, tracks in gpu_tracks(run).items():
        head = _device_lanes(devices[number]) if number in devices else ()
        groups.append([*head, *(_lane(track, "large", run, colours) for track in tracks)])
    if run.work.ended[Kind.QUEUE]:
        groups.append([Depth(label="queue", steps=queue_depth(run))])
    groups.append([_lane(track, "small", run, colours) for track in synthesis_tracks(run)])
    return [group for group in groups if group]


def _device_lanes(device: Device) -> Iterator[Lane]:
    """Merged brackets, each gap cut into what its time went to, as that mostly follows; merged kernels."""
    bars = [
        Bar(start_ms=start, end_ms=end, look="busy", tip=f"busy: {seconds(start, end)}")
        for start, end in device.busy.pieces
    ]
    for gap in device.gaps:
        parts = [(cause, took) for cause, took in gap.parts_ms.items() if took]
        words = "\n".join(f"{took / 1000:.3f} s: {CAUSE_WORDS[cause]}" for cause, took in parts)
        moment = gap.end_ms
        for cause, took in parts:
            tip = f"idle: {seconds(gap.end_ms, gap.start_ms)}\n{words}"
            bars.append(Bar(start_ms=moment, end_ms=moment + took, look=cause.value, tip=tip))
            moment += took
    busy = percent_text(device.percent(device.busy.total))
    bars.sort(key=lambda bar: bar.start_ms)
    yield Lane(label=f"GPU {device.device}, {busy} busy", size="middle", bars=bars)
    if device.kernels is not None and device.kernel_ms is not None:
        bars = [
            Bar(start_ms=start, end_ms=end, look="kernel", tip=f"kernels: {seconds(start, end)}")
            for start, end in device.kernels.pieces
        ]
        kernels = percent_text(device.percent(device.kernel_ms))
        yield Lane(label=f"kernels {kernels}", size="small", bars=bars)


def _lane(track: Track, size: str, run: Run, colours: Mapping[str, str]) -> Lane:
    shown = (Kind.WAIT, Kind.KERNEL)
    return Lane(
        label=track.label,
        size=size,
        bars=[_bar(span, run, colours) for span in track.spans],
        inner=[_inner_bar(span, run) for span in track.inner if span.kind in shown],
    )


def _bar(span: Span, run: Run, colours: Mapping[str, str]) -> Bar:
    state = " open" if span.end_ms is None else " failed" if span.failed else ""
    return Bar(
        start_ms=span.start_ms,
        end_ms=end_of(span, run),
        look=colours[span.job] + state,
        tip=f"{span.kind.value}: {seconds(span.start_ms, span.end_ms)}{state and f',{state}'}\n{_name(span)}",
        label="" if span.partition is None else str(span.partition),
    )


def _inner_bar(span: Span, run: Run) -> Bar:
    words = "waiting for the lock" if span.kind is Kind.WAIT else "kernels"
    return Bar(
        start_ms=span.start_ms,
        end_ms=end_of(span, run),
        look=span.kind.value,
        tip=f"{words}: {seconds(span.start_ms, span.end_ms)}\n{_name(span)}",
    )


def _name(span: Span) -> str:
    return span.job if span.partition is None else f"{span.job}, partition {span.partition}"


def seconds(start_ms: int, end_ms: int | None) -> str:
    """ "12.345 to 13.456 s (1.111 s)"."""
    if end_ms is None:
        return f"from {start_ms / 1000:.3f} s"
    return f"{start_ms / 1000:.3f} to {end_ms / 1000:.3f} s ({(end_ms - start_ms) / 1000:.3f} s)"
