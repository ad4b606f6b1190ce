"""The page in a real browser, over a server whose engine plays proving: what a storage provider sees."""

from __future__ import annotations

import asyncio
import threading
import zlib
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from cuzk.engine.jobs import Priority
from cuzk.errors import DeviceFault, InputError
from cuzk.server.card_readings import CardReading, CardReadings
from cuzk.server.http import StatusServer
from tests.engine.fakes import raises, stalls, wrong
from tests.server.browser import CHROMIUM, Browser, Tab
from tests.server.playing import Playing
from tests.server.sights import CARD

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium is installed: apt-get install chromium")

Scenario = Callable[[Tab, Playing, StatusServer], Awaitable[None]]
CHECKS = (Path(__file__).parent / "checks.js").read_text(encoding="utf-8")
#: An id that is code if anything treats it as such.
EVIL = "<img src=x onerror=alert(1)>,\"'&[1 2]"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as started:
        yield started


class Cards(CardReadings):
    """Readings that are always there."""

    def __init__(self) -> None:
        super().__init__({})

    def latest(self) -> dict[str, CardReading]:
        return {"cuda:0": CARD}


@asynccontextmanager
async def opened(browser: Browser, **given: Any) -> AsyncIterator[tuple[Tab, Playing, StatusServer]]:
    settings = {name: given.pop(name) for name in list(given) if name in ("every_s", "token")}
    with Playing(["cuda:0", "cuda:1"], cards=Cards(), **given) as playing:
        server = StatusServer(playing.observation, **{"every_s": 0.1, **settings})
        port = await server.open("127.0.0.1", 0)
        async with browser.tab() as tab:
            await tab.look()
            await tab.open(f"http://127.0.0.1:{port}/")
            yield tab, playing, server
        await server.close()


def seen(browser: Browser, scenario: Scenario, **given: Any) -> None:
    async def play() -> None:
        async with opened(browser, **given) as (tab, playing, server):
            await scenario(tab, playing, server)
            assert tab.errors == []

    asyncio.run(play())


def shows(text: str, where: str = "body") -> str:
    return f"document.querySelector({where!r})?.innerText.includes({text!r})"


LIVE = shows("live", "#link")


def colour(png: bytes) -> tuple[int, ...]:
    """Of a screenshot of one pixel."""
    at = png.index(b"IDAT") + 4
    length = int.from_bytes(png[at - 8 : at - 4], "big")
    raw = zlib.decompressobj().decompress(png[at : at + length])
    return tuple(raw[1:4])  # behind the filter, which changes nothing here


# ---- live ----


def test_jobs_move_through_the_page_as_they_move_through_the_engine(browser: Browser) -> None:
    async def scenario(tab: Tab, playing: Playing, server: StatusServer) -> None:
        await tab.until(LIVE)
        assert await tab.text("#attention ul") == "✓\nNothing needs attention."
        assert "Nothing to prove." in await tab.text("#jobs")
        playing.setup.compute_s, go_on = 0.3, threading.Event()
        playing.setup.fates = {device: deque([stalls(go_on)]) for device in ("cuda:0", "cuda:1")}
        playing.submit("porep-1000-7", 10, priority=Priority.HIGH)
        await tab.until(shows("porep-1000-7", "#jobs"))
        await tab.until("document.querySelectorAll('#jobs .strip .cell.proving').length >= 1")
        assert await tab.ask("document.querySelectorAll('#jobs .strip .cell').length") == 10
        label = await tab.ask("document.querySelector('#jobs .strip').getAttribute('aria-label')")
        assert label.startswith("10 partitions: ")
        assert "high" in await tab.text("#jobs")
        await tab.until(shows("at work", "#devices"))
        await tab.until(shows("porep-1000-7", "#devices"))
        go_on.set()
        await tab.until(shows("porep-1000-7", "#results"))
        row = (await tab.text("#results tbody")).split()
        assert row[1:4] == ["porep-1000-7", "porep-c2", "proven"] and "s" in row
        await tab.until("document.querySelectorAll('#jobs ol li').length === 0")
        await tab.until("/[1-9][0-9.]* %/.test(document.querySelector('#figures').innerText)")
        assert "GPU efficiency" in await tab.text("#figures")

    seen(browser, scenario)


def test_memory_cards_and_parts_of_time_are_shown_with_words_for_every_bar(browser: Browser) -> None:
    async def scenario(tab: Tab, playing: Playing, server: StatusServer) -> None:
        await tab.until(LIVE)
        playing.setup.compute_s = 0.3
        job = playing.submit("a", 4)
        await asyncio.to_thread(job.wait)
        await tab.until(shows("efficiency", "#devices"))
        devices = await tab.text("#devices")
        assert "61 °C" in devices and "513 W" in devices and "NVIDIA H200" in devices
        await tab.until(shows("parameters porep-32GiB 60.0 GiB", "#devices"))
        await tab.until(shows("kernels", "#devices"))
        assert "%" in (await tab.text("#devices .share"))
        assert "host memory" in await tab.text("#memory")

    seen(browser, scenario)


def test_failures_and_sick_devices_cannot_be_overlooked(browser: Browser) -> None:
    ended = threading.Event()

    async def scenario(tab: Tab, playing: Playing, server: StatusServer) -> None:
        await tab.until(LIVE)
        work = playing.work("porep-1000-8", 2)

        def refuse(partition: int) -> None:
            raise InputError("column does not hash to comm_c", where="partition 3", next="run C1 again")

        work.preparing = refuse
        playing.prove(work)
        await tab.until(shows("1 job failed in the last 15 minutes", "#attention"))
        failures = await tab.text("#failures")
        for words in (
            "input",
            "porep-1000-8",
            "column does not hash to comm_c",
            "partition 3",
            "run C1 again",
        ):
            assert words in failures
        fault = DeviceFault("the memory of the card is damaged")
        playing.setup.fates["cuda:0"] = deque([raises(fault)])
        playing.setup.fates["cuda:1"] = deque([stalls(ended)])
        playing.submit("b", 4)
        await tab.until(shows("cuda:0 gets no more work: the memory of the card is damaged", "#attention"))
        await tab.until(shows("of b does not end", "#attention"))
        assert "set aside" in await tab.text("#devices") and "set aside" in await tab.text("#incidents")
        assert "⚠" in await tab.ask("document.title")
        assert await tab.ask("document.querySelector('#attention ul').ariaLive") == "polite"
        ended.set()

    seen(browser, scenario, stall_after_s=0.3)


def test_requests_that_were_refused_are_told_with_their_reasons(browser: Browser) -> None:
    async def scenario(tab: Tab, playing: Playing, server: StatusServer) -> None:
        await tab.until(LIVE)
        error = InputError("replica_id is not that of miner 1000", where="porep-1000-9", next="seal it again")
        playing.observation.history.refuse(error)
        await tab.until(shows("1 request refused in the last 15 minutes", "#attention"))
        failures = await tab.text("#failures")
        told = (
            "refused",
            "replica_id is not that of miner 1000",
            "porep-1000-9",
            "What to do: seal it again",
        )
        assert [words for words in told if words not in failures] == []
        assert "⚠" not in await tab.ask("document.title")  # nothing is wrong here

    seen(browser, scenario)


def test_a_wrong_proof_is_told_though_the_job_went_well(browser: Browser) -> None:
    async def scenario(tab: Tab, playing: Playing, server: StatusServer) -> None:
        await tab.until(LIVE)
        playing.setup.fates["cuda:0"] = deque([wrong])
        playing.submit("a", 20)
        await tab.until(shows("cuda:0 made 1 wrong proof in the last 15 minutes; none", "#attention"))
        await tab.until(shows("proven", "#results"))
        assert "1 wrong proof, none handed out" in await tab.text("#devices")

    seen(browser, scenario)


def test_names_that_clients_choose_are_text_and_nothing_else(browser: Browser) -> None:
    async def scenario(tab: Tab, playing: Playing, server: StatusServer) -> None:
        await tab.until(LIVE)
        playing.setup.compute_s = 0.2
        playing.submit(EVIL, 3)
        await tab.until(shows(EVIL, "#results"))
        assert EVIL in await tab.text("#results") and await tab.ask("document.images.length") == 0

    seen(browser, scenario)


# ---- the connection ----


def test_a_lost_connection_is_said_at_once_and_mended_without_a_hand(browser: Browser) -> None:
    async def scenario(tab: Tab, playing: Playing, server: StatusServer) -> None:
        await tab.until(LIVE)
        port = int(await tab.ask("location.port"))
        await server.close()
        await tab.until(shows("Connection lost. What is below was so at", "#lost"))
        assert "connection lost" in await tab.text("#link") and await tab.ask(
            shows("Trying again in", "#lost")
        )
        assert await tab.ask("document.body.classList.contains('old')")
        assert "connection lost" in await tab.ask("document.title")
        again = StatusServer(playing.observation, every_s=0.1)
        await again.open("127.0.0.1", port)
        playing.submit("later", 1)
        await tab.until(LIVE)
        await tab.until(shows("later", "#results"))
        assert await tab.ask("document.querySelector('#lost').hidden")
        assert not await tab.ask("document.body.classList.contains('old')")
        await again.close()
        tab.errors.clear()  # of the connections that were refused

    seen(browser, scenario)


@pytest.mark.slow
def test_a_server_that_says_nothing_any_more_is_lost_too(browser: Browser) -> None:
    async def scenario(tab: Tab, playing: Playing, server: StatusServer) -> None:
        await tab.until(LIVE)
        await tab.until(shows("Connection lost", "#lost"))
        tab.errors.clear()

    seen(browser, scenario, every_s=60.0)


def test_a_token_is_asked_for_and_kept_for_the_session(browser: Browser) -> None:
    async def scenario(tab: Tab, playing: Playing, server: StatusServer) -> None:
        await tab.until(shows("This daemon asks for a token"))
        assert not await tab.ask(shows("GPU efficiency"))
        for token in ("wrong", "right"):
            await tab.ask(f"document.querySelector('#token').value = {token!r}")
            await tab.ask("document.querySelector('#access').requestSubmit()")
        await tab.until(LIVE)
        assert await tab.ask("document.querySelector('#access').hidden") and await tab.ask(
            shows("GPU efficiency")
        )
        tab.errors.clear()  # of the requests without it

    seen(browser, scenario, token="right")


# ---- for all eyes and hands ----


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_stands_out_from_its_ground_in_both_schemes(browser: Browser, dark: bool) -> None:
    """The ratio of WCAG for every visible text: at least 4.5 to 1."""

    async def scenario(tab: Tab, playing: Playing, server: StatusServer) -> None:
        await tab.look(dark=dark)
        await tab.until(LIVE)
        await asyncio.to_thread(playing.submit("a", 3).wait)
        await tab.until(shows("proven", "#results"))
        many, poor = await tab.ask(f"{CHECKS} poorContrast()")
        assert many > 40 and poor == []
        ground = colour(await tab.picture(width=1, height=1))
        assert max(ground) < 40 if dark else min(ground) > 220

    seen(browser, scenario)


@pytest.mark.slow
def test_the_timeline_is_drawn_in_the_colours_of_kernels_and_jobs(browser: Browser) -> None:
    async def scenario(tab: Tab, playing: Playing, server: StatusServer) -> None:
        await tab.until(LIVE)
        await tab.ask("document.querySelector('[name=minutes][value=\"1\"]').click()")
        playing.setup.compute_s = 0.4
        playing.submit("a", 6)
        await tab.until(shows("a", "#results tbody"))
        colours = await tab.ask(f"{CHECKS} laneColours()")
        kernels, first_job = "45,164,78", "78,121,167"  # --kernel and --j0
        # two GPUs computed 2.2 of 60 seconds between them: of 1,260 pixels for a minute about 46, 12 high
        assert 200 < colours.get(kernels, 0) < 2000 and colours.get(first_job, 0) > 200
        label = await tab.ask("document.querySelector('#lanes').getAttribute('aria-label')")
        assert label.startswith("Timeline of 2 devices. cuda:0 computed ")

    seen(browser, scenario)


def test_everything_can_be_reached_and_read_with_the_keyboard(browser: Browser) -> None:
    async def scenario(tab: Tab, playing: Playing, server: StatusServer) -> None:
        await tab.until(LIVE)
        playing.setup.compute_s = 0.2
        await asyncio.to_thread(playing.submit("porep-1000-9", 4).wait)
        await tab.until(shows("porep-1000-9", "#results"))
        stops = []
        for _ in range(4):
            await tab.key("Tab")
            stops.append(await tab.ask("document.activeElement.id || document.activeElement.className || "
                                       "document.activeElement.name"))  # fmt: skip
        assert stops[:3] == ["skip", "minutes", "lanes"]
        await tab.ask("document.querySelector('#lanes').focus()")
        await tab.key("ArrowRight")
        await tab.until(shows("kernels", "#tip"))
        first = await tab.text("#lanes-said")
        await tab.key("ArrowDown")
        await tab.until("document.querySelector('#lanes-said').textContent.includes('porep-1000-9')")
        assert "since" in first and await tab.text("#lanes-said") != first
        await tab.key("Escape")
        assert await tab.ask("document.querySelector('#tip').hidden")

    seen(browser, scenario)


@pytest.mark.parametrize("width", [390, *(pytest.param(n, marks=pytest.mark.slow) for n in (320, 768, 1440))])
def test_nothing_is_wider_than_the_window(browser: Browser, width: int) -> None:
    async def scenario(tab: Tab, playing: Playing, server: StatusServer) -> None:
        await tab.look(width=width, height=844)
        await tab.until(LIVE)
        playing.submit("wdpost-1000000-0-[104 25 255 8 77 13 1 209]-and-a-name-that-does-not-end", 40)
        await tab.until(shows("proven", "#results"))
        assert await tab.ask("document.documentElement.scrollWidth") <= width
        assert await tab.ask(f"{CHECKS} tooWide()") == []

    seen(browser, scenario)


@pytest.mark.slow
def test_who_wants_no_motion_gets_none(browser: Browser) -> None:
    async def scenario(tab: Tab, playing: Playing, server: StatusServer) -> None:
        await tab.until(LIVE)
        playing.setup.compute_s = 0.5
        playing.submit("a", 8)
        moving = "document.getAnimations().length"
        await tab.until(f"document.querySelectorAll('.cell.proving').length > 0 && {moving} > 0")
        await tab.look(still=True)
        await tab.until(f"document.querySelectorAll('.cell.proving').length > 0 && {moving} === 0")

    seen(browser, scenario)


def test_marks_say_without_colour_what_they_mean(browser: Browser) -> None:
    """Headings, landmarks, names: what a screen reader goes by."""

    async def scenario(tab: Tab, playing: Playing, server: StatusServer) -> None:
        await tab.until(LIVE)
        assert await tab.ask("document.documentElement.lang") == "en"
        assert await tab.ask("document.querySelectorAll('main, header, h1').length") == 3
        await asyncio.to_thread(playing.submit("a", 2).wait)
        await tab.until(shows("proven", "#results"))
        assert await tab.ask(f"{CHECKS} nameless()") == []

    seen(browser, scenario)
