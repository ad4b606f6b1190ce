"""What users see of long work: events as plain lines, or as a drawing on a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from cuzk import view
from cuzk.events import Notice, OnEvent, StageAdvanced, StageDone, StageStarted, stage
from cuzk.view import progress


def work(on_event: OnEvent) -> None:
    """A stage that counts, one that does not, and a notice that looks like markup."""
    on_event(Notice(level="warning", text="not for [bold]networks[/bold]"))
    with stage(on_event, "read"):
        pass
    with stage(on_event, "rows", total=2_687_961, unit="rows") as progress:
        progress(1_000_000, 2_687_961)
        progress(2_687_961, 2_687_961)


def drawn() -> str:
    console = Console(file=io.StringIO(), force_terminal=True, width=120, color_system=None)
    with progress.drawing(console) as on_event:
        work(on_event)
    return console.file.getvalue()


def test_without_a_terminal_each_stage_ends_as_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with view.live() as on_event:
        work(on_event)
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert lines[0] == "warning: not for [bold]networks[/bold]"
    assert [line.partition(":")[0] for line in lines[1:]] == ["read", "rows"]
    assert "\x1b" not in err


def test_a_long_stage_speaks_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 1.0, 20.0, 20.0, 20.0])
    monkeypatch.setattr(progress, "monotonic", lambda: next(clock))
    with view.live() as on_event:
        on_event(StageStarted(name="msm", unit="points"))
        on_event(StageAdvanced(name="msm", done=1, total=2_000_000))
        on_event(StageAdvanced(name="msm", done=500_000, total=2_000_000))
    assert capsys.readouterr().err == "msm: 500 k / 2.00 M points, 25.0 k/s, ETA 1 min 00 s\n"


def test_a_drawing_ends_with_every_stage_and_leaves_the_users_text_alone() -> None:
    text = drawn()
    last = text.rsplit("\r", 1)[-1]
    assert "warning: not for [bold]networks[/bold]" in text
    assert "✓ read" in last and "✓ rows" in last and "2.69 M rows" in last


def test_a_failure_inside_passes_through_the_drawing() -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=120)
    with pytest.raises(KeyboardInterrupt), progress.drawing(console) as on_event, stage(on_event, "msm"):
        raise KeyboardInterrupt


def test_a_stage_that_fails_is_not_reported_as_done() -> None:
    events: list[object] = []
    with pytest.raises(ValueError), stage(events.append, "read"):
        raise ValueError
    assert events == [StageStarted(name="read")]


def test_a_stage_reports_start_progress_and_end() -> None:
    events: list[object] = []
    with stage(events.append, "rows", total=2, unit="rows") as progress:
        progress(1, 2)
    assert events[:2] == [
        StageStarted(name="rows", total=2, unit="rows"),
        StageAdvanced(name="rows", done=1, total=2),
    ]
    assert isinstance(events[2], StageDone) and events[2].seconds >= 0
