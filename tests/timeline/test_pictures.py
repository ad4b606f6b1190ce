"""The pictures: whole XML, every span in its lane, readable in light and dark, small for long logs."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from cuzk.timeline.analyze import Report
from cuzk.timeline.page import page
from cuzk.timeline.svg import LEFT, RIGHT, WIDTH, svg
from tests.timeline.logs import Written, call, report_of, synthesis

SVG = "{http://www.w3.org/2000/svg}"


def drawn(report: Report) -> ElementTree.Element:
    return ElementTree.fromstring(svg(report))


def words(root: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}text")]


def tips(root: ElementTree.Element) -> list[str]:
    return [element.text or "" for element in root.iter(f"{SVG}title")]


def looks(root: ElementTree.Element) -> set[str]:
    return {element.get("class", "") for element in root.iter(f"{SVG}rect")}


def test_the_picture_of_the_documentation_is_the_one_that_is_drawn_today(published: Report) -> None:
    """After a change: cuzk timeline plot tests/vectors/timeline/phase7.log --out docs/figures/timeline.svg"""
    figure = Path(__file__).resolve().parents[2] / "docs/figures/timeline.svg"
    assert figure.read_text(encoding="utf-8") == svg(published)


def test_every_call_and_synthesis_has_a_bar_with_a_tooltip(published: Report) -> None:
    shown = tips(drawn(published))
    assert sum(tip.startswith("call: ") for tip in shown) == 110
    assert sum(tip.startswith("synthesis: ") for tip in shown) == 110
    job = "df703017-04c9-478d-82b3-359986048719"
    assert f"call: 61.542 to 65.514 s (3.972 s)\n{job}, partition 6" in shown


def test_lanes_are_named_and_the_axis_counts_seconds(published: Report) -> None:
    shown = words(drawn(published))
    expected = {
        "phase7.log",
        "GPU 0, 64.3 % busy",
        "worker 0",
        "queue",
        "synthesis 1",
        "synthesis 11",
        "seconds",
    }
    assert expected <= set(shown) and "synthesis 12" not in shown
    assert [text for text in shown if text.isdigit()][:8] == [
        "0",
        "100",
        "200",
        "300",
        "400",
        "500",
        "600",
        "700",
    ]


def test_bars_stay_in_their_lanes_and_in_the_picture(published: Report) -> None:
    root = drawn(published)
    rows: dict[str, list[tuple[float, float]]] = {}
    for rect in root.iter(f"{SVG}rect"):
        if re.match(r"j\d", rect.get("class", "")):
            x, width = float(rect.get("x", "")), float(rect.get("width", ""))
            assert x >= LEFT and x + width <= WIDTH - RIGHT + 0.2
            rows.setdefault(rect.get("y", ""), []).append((x, x + width))
    assert len(rows) == 12  # a worker and eleven syntheses at once
    for bars in rows.values():
        bars.sort()
        assert all(end <= start + 0.02 for (_, end), (start, _) in zip(bars, bars[1:], strict=False))


def test_what_failed_or_has_no_end_is_marked() -> None:
    events: list[Written] = [
        (0, "SYNTH_START", "j", "partition=0"),
        (10, "FAILED", "j", "partition=0"),
        *call(20, 40, 1),
        (50, "GPU_START", "j", "worker=0,partition=2"),
        (90, "SYNTH_START", "k", "partition=0"),
    ]
    root = drawn(report_of(*events))
    assert {"j0 failed", "j0 open", "j1 open"} <= looks(root)
    assert "call: from 0.050 s, open\nj, partition 2" in tips(root)


def test_waiting_and_kernels_are_drawn_where_the_log_has_them() -> None:
    ids = "worker=0,partition=0"
    inner: list[Written] = [
        (110, "LOCK_WAIT", "j", ids),
        (120, "LOCK_START", "j", ids),
        (121, "KERNEL_START", "j", ids),
        (180, "KERNEL_END", "j", ids),
        (181, "LOCK_END", "j", ids),
    ]
    root = drawn(report_of(*synthesis(0, 100, 0), *call(100, 200, 0), *inner))
    assert {"wait", "kernel"} <= looks(root)
    assert {"kernels 59.0 %", "paler: waiting for the lock", "kernels"} <= set(words(root))
    plain = drawn(report_of(*call(100, 200, 0)))
    assert not {"wait", "kernel"} & looks(plain)


def test_names_that_look_like_markup_stay_text() -> None:
    job = '<b>&"x"</b>'
    events: list[Written] = [
        (0, "GPU_START", job, "worker=0,partition=1"),
        (9, "GPU_END", job, "worker=0,partition=1"),
    ]
    report = report_of(*events)
    assert f"call: 0.000 to 0.009 s (0.009 s)\n{job}, partition 1" in tips(drawn(report))
    assert "<b>" not in page(report, 200)


def test_a_call_of_no_time_has_no_percentage() -> None:
    report = report_of(*call(5, 5, 0))
    assert "GPU 0, - busy" in words(drawn(report)) and "None" not in page(report, 200)


def test_calls_of_one_worker_that_overlap_get_lanes_of_their_own() -> None:
    shown = words(drawn(report_of(*call(0, 50, 1), *call(30, 80, 2), *call(60, 90, 3))))
    assert shown.count("worker 0") == 2


def test_syntheses_that_follow_each_other_share_a_lane() -> None:
    shown = words(drawn(report_of(*synthesis(0, 10, 0), *synthesis(10, 20, 1), *synthesis(20, 30, 2))))
    assert "synthesis 1" in shown and "synthesis 2" not in shown


def test_a_panel_is_drawn_for_each_run() -> None:
    once = [*synthesis(0, 20_000, 0), *call(20_000, 24_000, 0)]
    shown = words(drawn(report_of(*once, *once)))
    assert {"made.log, run 1 of 2", "made.log, run 2 of 2"} <= set(shown)


@pytest.mark.parametrize(
    ("start", "end", "ticks"),
    [
        (0, 0, ["0", "0.0001"]),
        (100, 170, ["0.1", "0.11", "0.12"]),
        (500_000, 500_900, ["500", "500.1", "500.2"]),
        (0, 3_600_000, ["0", "500", "1000"]),
    ],
)
def test_ticks_are_round_numbers_for_runs_of_any_length(start: int, end: int, ticks: list[str]) -> None:
    shown = words(drawn(report_of(*call(start, end, 0))))
    numbers = [text for text in shown if re.fullmatch(r"[\d.]+", text)]
    assert numbers[: len(ticks)] == ticks and len(numbers) <= 13


def test_a_long_log_makes_no_longer_picture() -> None:
    calls = [event for k in range(20_000) for event in call(10 * k, 10 * k + 8, k % 10)]
    picture = svg(report_of(*calls))
    assert len(picture) < 500_000
    assert "too short to be told apart here" in picture


def test_every_colour_is_set_for_light_and_for_dark(published: Report) -> None:
    style = drawn(published).findtext(f"{SVG}style") or ""
    light, dark = style.split("@media (prefers-color-scheme: dark)")
    filled = set(re.findall(r"\.(\w+) \{ fill: #", light))
    same_in_both = {"synthesis"}
    assert filled - set(re.findall(r"\.(\w+) \{ fill: #", dark)) == same_in_both
    used = {look for rect in drawn(published).iter(f"{SVG}rect") for look in rect.get("class", "").split()}
    assert used <= filled | {"ground"}


class Tags(HTMLParser):
    """Opened and closed tags of a page, and all that it would load."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)
        self.loads += [str(value) for name, value in attrs if name in ("src", "href")]

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_loads_nothing(published: Report) -> None:
    text = page(published, 200)
    tags = Tags()
    tags.feed(text)
    assert (tags.open, tags.loads) == ([], [])
    assert "url(" not in text and "<script" not in text and svg(published) in text
    rows = re.findall(r"<tr>(?:<td>.*?</td>)+</tr>", text)
    assert len(rows) == 1 + 15
    assert re.findall("<td>(.*?)</td>", rows[0])[2:6] == ["110", "453.1", "251.9", "64.3 %"]
    assert all(html.escape(advice) in text for advice in published.advice)
