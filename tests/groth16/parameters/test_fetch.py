"""Downloads from a gateway on this machine: whole, resumed, interrupted, corrupted."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cuzk.errors import CuzkError, ParameterError, ResourceError
from cuzk.groth16.parameters.fetch import fetch
from cuzk.groth16.parameters.manifest import ManifestEntry

CONTENT = bytes(i * i >> 3 & 0xFF for i in range(3_000_000))
ENTRY = ManifestEntry(
    name="toy.params", cid="QmToy", digest=hashlib.blake2b(CONTENT).hexdigest()[:32], sector_bytes=0
)


@dataclass
class Gateway:
    """What the server does, and the Range headers it was asked with."""

    content: bytes = CONTENT
    resumes: bool = True
    status: int = 0
    cut_after: int | None = None
    says_length: bool = True
    asked: list[str | None] = field(default_factory=list)
    url: str = ""

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        wanted = handler.headers.get("Range")
        self.asked.append(wanted)
        if self.status or handler.path != "/ipfs/QmToy":
            handler.send_error(self.status or 404)
            return
        start = int(wanted[len("bytes=") : -1]) if wanted and self.resumes else 0
        if start >= len(self.content):
            handler.send_error(416)
            return
        body = self.content[start:]
        handler.send_response(206 if wanted and self.resumes else 200)
        if wanted and self.resumes:
            size = len(self.content)
            handler.send_header("Content-Range", f"bytes {start}-{size - 1}/{size}")
        if self.says_length:
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body[: self.cut_after])


@pytest.fixture
def gateway() -> Iterator[Gateway]:
    behaviour = Gateway()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with contextlib.suppress(ConnectionError):  # a client that has seen enough hangs up
                behaviour.answer(self)

        def log_message(self, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        behaviour.url = f"http://127.0.0.1:{server.server_port}/ipfs"
        yield behaviour
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def names(folder: Path) -> list[str]:
    return sorted(file.name for file in folder.iterdir())


@pytest.mark.parametrize("slash", ["", "/"])
def test_file_arrives_whole_with_progress(slash: str, gateway: Gateway, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    checked: list[tuple[int, int]] = []
    path = fetch(
        ENTRY,
        tmp_path / "new",
        gateway=gateway.url + slash,
        progress=lambda *step: seen.append(step),
        digest_progress=lambda *step: checked.append(step),
    )
    assert path.read_bytes() == CONTENT and names(path.parent) == ["toy.params"]
    assert seen == sorted(seen) and seen[-1] == checked[-1] == (len(CONTENT), len(CONTENT))
    assert gateway.asked == [None]


def test_a_cut_download_goes_on_where_it_stopped(gateway: Gateway, tmp_path: Path) -> None:
    gateway.cut_after = 1_234_567
    with pytest.raises(ResourceError, match=r"ended after 1,234,567 of 3,000,000 bytes") as raised:
        fetch(ENTRY, tmp_path, gateway=gateway.url)
    assert "goes on" in str(raised.value.next) and names(tmp_path) == ["toy.params.part"]
    gateway.cut_after = None
    seen: list[tuple[int, int]] = []
    path = fetch(ENTRY, tmp_path, gateway=gateway.url, progress=lambda *step: seen.append(step))
    assert path.read_bytes() == CONTENT and names(tmp_path) == ["toy.params"]
    assert gateway.asked == [None, "bytes=1234566-"] and seen[0][0] > 1_234_567


def test_a_gateway_that_does_not_resume_is_read_from_the_start(gateway: Gateway, tmp_path: Path) -> None:
    (tmp_path / "toy.params.part").write_bytes(b"something else" * 1000)
    gateway.resumes = False
    assert fetch(ENTRY, tmp_path, gateway=gateway.url).read_bytes() == CONTENT


def test_a_complete_part_is_checked_and_named(gateway: Gateway, tmp_path: Path) -> None:
    (tmp_path / "toy.params.part").write_bytes(CONTENT)
    assert fetch(ENTRY, tmp_path, gateway=gateway.url).read_bytes() == CONTENT
    assert gateway.asked == [f"bytes={len(CONTENT) - 1}-"]


def test_a_part_longer_than_the_file_is_begun_anew(gateway: Gateway, tmp_path: Path) -> None:
    (tmp_path / "toy.params.part").write_bytes(CONTENT + b"more")
    assert fetch(ENTRY, tmp_path, gateway=gateway.url).read_bytes() == CONTENT


def test_corrupted_content_is_discarded(gateway: Gateway, tmp_path: Path) -> None:
    gateway.content = CONTENT[:-1] + b"\0"
    with pytest.raises(ParameterError, match="the gateway sent something else") as raised:
        fetch(ENTRY, tmp_path, gateway=gateway.url)
    assert raised.value.where == gateway.url + "/QmToy" and names(tmp_path) == []


def test_a_corrupted_part_does_not_come_back(gateway: Gateway, tmp_path: Path) -> None:
    (tmp_path / "toy.params.part").write_bytes(b"\1" + CONTENT[1:1000])
    with pytest.raises(ParameterError, match="something else"):
        fetch(ENTRY, tmp_path, gateway=gateway.url)
    assert fetch(ENTRY, tmp_path, gateway=gateway.url).read_bytes() == CONTENT


def test_an_older_file_stays_until_the_new_one_is_whole(gateway: Gateway, tmp_path: Path) -> None:
    (tmp_path / "toy.params").write_bytes(b"older")
    gateway.content = CONTENT[:-1] + b"\0"
    with pytest.raises(ParameterError):
        fetch(ENTRY, tmp_path, gateway=gateway.url)
    assert (tmp_path / "toy.params").read_bytes() == b"older"
    gateway.content = CONTENT
    fetch(ENTRY, tmp_path, gateway=gateway.url)
    assert (tmp_path / "toy.params").read_bytes() == CONTENT


@pytest.mark.parametrize("status", [404, 429, 500, 503])
def test_an_http_error_is_told_and_keeps_what_is_there(status: int, gateway: Gateway, tmp_path: Path) -> None:
    (tmp_path / "toy.params.part").write_bytes(CONTENT[:10])
    gateway.status = status
    with pytest.raises(ResourceError, match=f"the gateway answers {status}"):
        fetch(ENTRY, tmp_path, gateway=gateway.url)
    assert (tmp_path / "toy.params.part").read_bytes() == CONTENT[:10]


def test_an_answer_without_length_is_refused(gateway: Gateway, tmp_path: Path) -> None:
    gateway.says_length = False
    with pytest.raises(ResourceError, match="without saying how long"):
        fetch(ENTRY, tmp_path, gateway=gateway.url)


@pytest.mark.parametrize("url", ["http://127.0.0.1:9/ipfs", "http://127.0.0.1:x"])
def test_an_unreachable_gateway_is_told(url: str, tmp_path: Path) -> None:
    with pytest.raises(ResourceError, match="the gateway cannot be reached") as raised:
        fetch(ENTRY, tmp_path, gateway=url)
    assert raised.value.where == f"{url}/QmToy"


def test_too_little_room_is_told_before_the_download(
    gateway: Gateway, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: shutil._ntuple_diskusage(10**9, 10**9, 1234))
    with pytest.raises(ResourceError, match=r"3,000,000 bytes are needed and 1,234 are free"):
        fetch(ENTRY, tmp_path, gateway=gateway.url)


def test_two_downloads_of_one_file_do_not_mix(gateway: Gateway, tmp_path: Path) -> None:
    refused: list[CuzkError] = []

    def try_again(done: int, total: int) -> None:
        with pytest.raises(ResourceError, match="another process is downloading") as raised:
            fetch(ENTRY, tmp_path, gateway=gateway.url)
        refused.append(raised.value)

    assert fetch(ENTRY, tmp_path, gateway=gateway.url, progress=try_again).read_bytes() == CONTENT
    assert refused
