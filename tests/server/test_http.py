"""The daemon's other door: what it answers to whom, what others may not read, and who is sent away."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
import threading
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import tomli
from aiohttp import web

from cuzk.server.access import Access
from cuzk.server.door import Door
from cuzk.server.http import MOST_READERS, StatusServer
from cuzk.server.observation import Surroundings
from tests.engine.fakes import stalls
from tests.server.playing import Playing
from tests.server.test_access import made

SOON_S = 20.0
PATHS = ("/", "/healthz", "/readyz", "/metrics", "/status", "/api/status", "/events")
Scenario = Callable[[aiohttp.ClientSession, Playing], Awaitable[None]]


@asynccontextmanager
async def served(playing: Playing, **given: Any) -> AsyncIterator[tuple[str, StatusServer]]:
    server = StatusServer(playing.observation, **given)
    port = await server.open("127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{port}", server
    finally:
        await server.close()


def played(scenario: Scenario, surroundings: Surroundings | None = None, **given: Any) -> None:
    async def play() -> None:
        with Playing(surroundings=surroundings) as playing:
            async with served(playing, **given) as (url, _), aiohttp.ClientSession(url) as session:
                await asyncio.wait_for(scenario(session, playing), SOON_S)

    asyncio.run(play())


async def event(response: aiohttp.ClientResponse) -> tuple[str, dict[str, Any]]:
    """The next one."""
    name = (await response.content.readline()).decode()
    data = (await response.content.readline()).decode()
    assert await response.content.readline() == b"\n"
    assert name.startswith("event: ") and data.startswith("data: "), (name, data)
    return name[7:-1], json.loads(data[6:])


# ---- answers ----


@pytest.mark.parametrize(
    ("path", "type_"),
    [
        ("/", "text/html; charset=utf-8"),
        ("/healthz", "text/plain; charset=utf-8"),
        ("/readyz", "text/plain; charset=utf-8"),
        ("/metrics", "text/plain; version=0.0.4; charset=utf-8"),
        ("/status", "application/json"),
        ("/status?poll=1", "application/json"),
        ("/statusanything", "application/json"),
        ("/api/status", "application/json"),
        ("/events", "text/event-stream"),
    ],
)
def test_every_path_answers_with_its_type(path: str, type_: str) -> None:
    async def scenario(session: aiohttp.ClientSession, playing: Playing) -> None:
        async with session.get(path) as response:
            assert (response.status, response.headers["Content-Type"]) == (200, type_)

    played(scenario)


@pytest.mark.parametrize("path", [*PATHS, "/nowhere"])
def test_nothing_may_be_read_framed_sniffed_or_kept_by_others(path: str) -> None:
    async def scenario(session: aiohttp.ClientSession, playing: Playing) -> None:
        async with session.get(path, headers={"Origin": "http://evil.example"}) as response:
            headers = response.headers
            assert not [name for name in headers if name.startswith("Access-Control-")]
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["X-Frame-Options"] == "DENY"
            assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
            assert headers["Cache-Control"] == "no-store"
            assert headers["Referrer-Policy"] == "no-referrer"
            assert headers["Server"] == "cuzk"

    played(scenario)


def test_the_page_allows_its_own_script_and_style_by_digest_and_nothing_else() -> None:
    async def scenario(session: aiohttp.ClientSession, playing: Playing) -> None:
        async with session.get("/") as response:
            policy, text = response.headers["Content-Security-Policy"], await response.text()
        assert "default-src 'none'" in policy and "unsafe" not in policy
        assert "http://" not in text.replace("http://www.w3.org/2000/svg", "") and "https://" not in text
        assert "/*STYLE*/" not in text and "/*SCRIPT*/" not in text
        assert text.count("<script>") == 1 and text.count("<style>") == 1

    played(scenario)


def test_every_file_of_the_page_is_part_of_the_package() -> None:
    root = Path(__file__).resolve().parents[2]
    with (root / "pyproject.toml").open("rb") as file:
        patterns = tomli.load(file)["tool"]["setuptools"]["package-data"]["cuzk.server"]
    names = [f"page/{path.name}" for path in (root / "cuzk/server/page").iterdir()]
    assert [name for name in names if not any(fnmatch(name, pattern) for pattern in patterns)] == []
    assert {"page/page.html", "page/style.css", "page/main.js"} <= set(names)


@pytest.mark.parametrize(("method", "path", "status"), [
    ("GET", "/nowhere", 404), ("GET", "/favicon.ico", 404), ("POST", "/status", 405), ("PUT", "/", 405),
    ("GET", "/../etc/passwd", 404),
])  # fmt: skip
def test_what_is_not_there_is_a_short_plain_answer(method: str, path: str, status: int) -> None:
    async def scenario(session: aiohttp.ClientSession, playing: Playing) -> None:
        async with session.request(method, path) as response:
            assert response.status == status
            assert response.headers["Content-Type"].startswith("text/plain")
            if status == 404:
                assert await response.text() == "404 Not Found\n"

    played(scenario)


def test_a_status_of_jobs_under_way_comes_in_both_forms() -> None:
    async def scenario(session: aiohttp.ClientSession, playing: Playing) -> None:
        go_on = threading.Event()
        playing.setup.fates["cuda:0"] = deque([stalls(go_on)])
        playing.submit("porep-1000-7", 5)
        while not any(worker.job_id for worker in playing.status().devices[0].workers):
            await asyncio.sleep(0.01)
        async with session.get("/status") as response:
            theirs = await response.json()
        async with session.get("/api/status") as response:
            own = await response.json()
        assert [pipeline["job_id"] for pipeline in theirs["pipelines"]] == ["porep-1000-7"]
        assert [job["job_id"] for job in own["jobs"]] == ["porep-1000-7"]
        assert len(own["jobs"][0]["partitions"]) == 5
        assert {worker["job_id"] for worker in own["devices"][0]["workers"]} >= {"porep-1000-7"}
        go_on.set()

    played(scenario)


def test_readiness_says_why_not() -> None:
    why: list[str | None] = ["parameters are being loaded"]

    async def scenario(session: aiohttp.ClientSession, playing: Playing) -> None:
        async with session.get("/readyz") as response:
            assert (response.status, await response.text()) == (503, "parameters are being loaded\n")
        async with session.get("/healthz") as response:
            assert response.status == 200
        why[0] = None
        async with session.get("/readyz") as response:
            assert (response.status, await response.text()) == (200, "ready\n")

    played(scenario, Surroundings(not_ready=lambda: why[0]))


# ---- who may ----


@pytest.mark.parametrize("path", PATHS)
def test_with_a_token_only_the_page_and_health_are_for_everyone(path: str) -> None:
    async def scenario(session: aiohttp.ClientSession, playing: Playing) -> None:
        is_open = path in ("/", "/healthz", "/readyz")
        wrong = [(given, is_open) for given in (None, "Bearer wrong", "Bearer é", "right")]
        for given, may in (*wrong, ("Bearer right", True)):
            headers = {} if given is None else {"Authorization": given}
            async with session.get(path, headers=headers) as response:
                assert response.status == (200 if may else 401), given
                assert may or response.headers["WWW-Authenticate"].startswith("Bearer")

    played(scenario, token="right")


@pytest.mark.parametrize("given", [b"Bearer \xff", b"\x80", b"Bearer right\xc3", b"\xed\xa0\x80"])
def test_a_token_of_any_bytes_is_just_a_wrong_one(given: bytes) -> None:
    async def play() -> None:
        with Playing() as playing:
            async with (
                served(playing, token="right") as (url, _),
                lines(port_of(url), 1) as [(reader, writer)],
            ):
                request = b"GET /status HTTP/1.1\r\nHost: x\r\nAuthorization: " + given
                writer.write(request + b"\r\n\r\n")
                assert (await asyncio.wait_for(reader.readline(), SOON_S)).split()[1] == b"401"

    asyncio.run(play())


# ---- events ----


def test_events_tell_the_state_and_each_span_once() -> None:
    async def scenario(session: aiohttp.ClientSession, playing: Playing) -> None:
        async with session.get("/events") as response:
            spans: list[Any] = []
            playing.submit("a", 4)
            completed = 0
            while not completed:
                name, document = await event(response)
                assert name == "spans"
                spans += [[document["jobs"][row[3]], *row] for row in document["ended"]]
                name, document = await event(response)
                assert name == "state"
                completed = document["totals"]["COMPLETED"]
            _, last = await event(response)
            spans += [[last["jobs"][row[3]], *row] for row in last["ended"]]
        for kind in ("synthesis", "call", "kernel"):
            assert sorted(row[5] for row in spans if row[1] == kind) == [0, 1, 2, 3]
        assert {row[0] for row in spans} == {"a"}

    played(scenario, every_s=0.02)


def test_who_comes_late_gets_what_was() -> None:
    async def scenario(session: aiohttp.ClientSession, playing: Playing) -> None:
        assert playing.submit("a", 2).wait(SOON_S) is not None
        async with session.get("/events") as response:
            _, document = await event(response)
        assert {row[0] for row in document["ended"]} >= {"synthesis", "call", "kernel"}

    played(scenario)


def test_a_reader_too_many_is_told_to_come_again() -> None:
    async def scenario(session: aiohttp.ClientSession, playing: Playing) -> None:
        readers = [await session.get("/events") for _ in range(MOST_READERS)]
        async with session.get("/events") as response:
            assert (response.status, response.headers["Retry-After"]) == (503, "10")
        async with session.get("/status") as response:
            assert response.status == 200
        readers.pop().close()
        while True:
            async with session.get("/events") as response:
                if response.status == 200:
                    break
            await asyncio.sleep(0.02)
        for reader in readers:
            reader.close()

    async def play() -> None:
        with Playing() as playing:
            async with served(playing, every_s=0.02) as (url, _):
                connector = aiohttp.TCPConnector(limit=0)
                async with aiohttp.ClientSession(url, connector=connector) as session:
                    await asyncio.wait_for(scenario(session, playing), SOON_S)

    asyncio.run(play())


def test_a_reader_that_takes_nothing_is_sent_away_and_nobody_else_notices() -> None:
    async def play() -> None:
        with Playing() as playing:
            async with served(playing, every_s=0.0, patience_s=0.3) as (url, server):
                port = port_of(url)
                # Connections have little room, as the listening socket: megabytes would take seconds to fill.
                server._door._listeners[0].setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
                stuck = socket.socket()
                stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                stuck.setblocking(False)
                loop = asyncio.get_running_loop()
                await loop.sock_connect(stuck, ("127.0.0.1", port))
                await loop.sock_sendall(stuck, b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n")
                async with aiohttp.ClientSession(url) as session, session.get("/events") as response:
                    end = loop.time() + SOON_S
                    while not server.dropped:
                        assert (await event(response))[0] in ("spans", "state")
                        assert loop.time() < end
                assert server.dropped == 1
                stuck.close()

    asyncio.run(play())


def test_readers_go_when_the_server_closes() -> None:
    async def play() -> None:
        with Playing() as playing:
            async with aiohttp.ClientSession() as session:
                async with served(playing, every_s=60.0) as (url, server):
                    response = await session.get(f"{url}/events")
                    await event(response)
                    begin = asyncio.get_running_loop().time()
                    await server.close()
                    assert asyncio.get_running_loop().time() - begin < 5
                with pytest.raises(aiohttp.ClientError):
                    while await response.content.read(1 << 16):
                        pass
                    raise aiohttp.ClientError("it ended")
                response.close()

    asyncio.run(play())


# ---- the door ----


@asynccontextmanager
async def door(*, tls: ssl.SSLContext | None = None, **given: Any) -> AsyncIterator[int]:
    async def hello(request: web.Request) -> web.Response:
        return web.Response(text="hello")

    app = web.Application()
    app.router.add_get("/", hello)
    opened = Door(app, **given)
    port = await opened.open("127.0.0.1", 0, tls=tls)
    try:
        yield port
    finally:
        await opened.close()


Line = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@asynccontextmanager
async def lines(port: int, count: int) -> AsyncIterator[list[Line]]:
    """So many connections."""
    found = [await asyncio.open_connection("127.0.0.1", port) for _ in range(count)]
    try:
        yield found
    finally:
        for _, writer in found:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for _, writer in found), return_exceptions=True)


def port_of(url: str) -> int:
    return int(url.rsplit(":", 1)[1])


async def is_closed(reader: asyncio.StreamReader) -> bool:
    try:
        return await asyncio.wait_for(reader.read(1), SOON_S) == b""
    except ConnectionError:
        return True


async def answers(port: int) -> bool:
    async with aiohttp.ClientSession() as session, session.get(f"http://127.0.0.1:{port}/") as response:
        return await response.text() == "hello"


def test_a_connection_that_asks_for_nothing_is_closed_and_one_that_asked_is_not() -> None:
    async def play() -> None:
        async with door(first_request_s=0.3) as port:
            request = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
            # The server is of this thread: what is sent now is there before it takes a connection.
            taken = [socket.create_connection(("127.0.0.1", port)) for _ in range(3)]
            for line, sent in zip(taken, (b"", request, b"GET / HTT"), strict=True):
                line.sendall(sent)
            (silent, _), (asking, writer), (half, _) = found = [
                await asyncio.open_connection(sock=line) for line in taken
            ]
            assert b"200 OK" in await asking.readuntil(b"hello")
            assert await is_closed(silent) and await is_closed(half)
            writer.write(request)
            assert b"200 OK" in await asking.readuntil(b"hello")
            for _, line in found:
                line.close()

    asyncio.run(play())


def test_more_connections_than_there_is_room_for_are_refused_until_there_is() -> None:
    async def play() -> None:
        async with door(most=20, first_request_s=1.0) as port, lines(port, 200) as junk:
            assert all(await asyncio.gather(*(is_closed(reader) for reader, _ in junk[20:])))
            while True:  # the silent ones go, and there is room again
                try:
                    assert await answers(port)
                    break
                except aiohttp.ClientError:
                    await asyncio.sleep(0.05)

    asyncio.run(asyncio.wait_for(play(), SOON_S))


def test_an_address_that_is_taken_is_an_error_at_once() -> None:
    async def play() -> None:
        async with door() as port:
            with pytest.raises(OSError):
                await Door(web.Application()).open("127.0.0.1", port)

    asyncio.run(play())


def test_connections_that_do_not_shake_hands_count_and_are_closed(tmp_path: Path) -> None:
    made(tmp_path, "localhost")
    tls = Access(certificate=tmp_path / "localhost.pem", key=tmp_path / "localhost.key").context()
    known = ssl.create_default_context(cafile=str(tmp_path / "localhost.pem"))

    async def answered(port: int) -> bool:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"https://localhost:{port}/", ssl=known) as response,
        ):
            return await response.text() == "hello"

    async def play() -> None:
        async with door(most=5, first_request_s=2 * SOON_S, tls=tls) as port:
            assert await answered(port)
            async with lines(port, 20) as silent:
                assert all(await asyncio.gather(*(is_closed(reader) for reader, _ in silent[5:])))
                with pytest.raises(aiohttp.ClientError):
                    await answered(port)
            while True:  # the others went by themselves, and there is room again
                with suppress(aiohttp.ClientError):
                    assert await answered(port)
                    break
                await asyncio.sleep(0.02)
        async with door(first_request_s=0.1, tls=tls) as port, lines(port, 3) as silent:
            assert all(await asyncio.gather(*(is_closed(reader) for reader, _ in silent)))

    asyncio.run(asyncio.wait_for(play(), SOON_S))


def test_who_shakes_hands_and_asks_for_nothing_is_closed_too(tmp_path: Path) -> None:
    made(tmp_path, "localhost")
    tls = Access(certificate=tmp_path / "localhost.pem", key=tmp_path / "localhost.key").context()
    known = ssl.create_default_context(cafile=str(tmp_path / "localhost.pem"))

    async def play() -> None:
        async with door(first_request_s=0.3, tls=tls) as port:
            reader, writer = await asyncio.open_connection("localhost", port, ssl=known)
            assert await is_closed(reader)
            writer.close()

    asyncio.run(asyncio.wait_for(play(), SOON_S))


def test_a_name_is_served_where_this_machine_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def places(*hosts: str) -> None:
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, 0)) for host in hosts]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)

    async def play() -> None:
        opened = Door(web.Application())
        places("203.0.113.9", "127.0.0.1")
        async with lines(await opened.open("host", 0), 1):
            await opened.close()
        nowhere = Door(web.Application())
        places("203.0.113.9")
        with pytest.raises(OSError, match="Cannot assign requested address"):
            await nowhere.open("host", 0)
        await nowhere.close()

    asyncio.run(asyncio.wait_for(play(), SOON_S))


@pytest.mark.parametrize("sent", [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\nno colon\r\n\r\n"])
def test_what_is_no_http_is_one_line_of_the_log(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    """A client of gRPC that was given the wrong port, for one."""

    async def play() -> None:
        opened = Door(web.Application())
        async with lines(await opened.open("127.0.0.1", 0), 1) as [(reader, writer)]:
            writer.write(sent)
            await asyncio.wait_for(reader.read(), SOON_S)
        await opened.close()

    with caplog.at_level("INFO"):
        asyncio.run(play())
    [record] = [record for record in caplog.records if record.name.startswith(("aiohttp", "cuzk"))]
    assert record.levelname == "INFO" and record.exc_info is None
    assert "\n" not in record.getMessage() and "no request of HTTP/1.1" in record.getMessage()


def test_a_port_for_tls_speaks_nothing_else() -> None:
    async def play() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        opened = Door(web.Application())
        port = await opened.open("127.0.0.1", 0, tls=context)
        async with lines(port, 1) as [(reader, writer)]:
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"HTTP" not in await asyncio.wait_for(reader.read(), SOON_S)
        await opened.close()

    asyncio.run(play())
