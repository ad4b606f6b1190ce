"""The parameters of a sector size as a whole: what is fetched, what is left alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import partial
from hashlib import blake2b
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from cuzk import parameters
from cuzk.errors import ParameterError, ResourceError
from cuzk.events import Event, Notice
from cuzk.groth16.parameters.manifest import ManifestEntry

KIB = 1024
CONTENTS = {".vk": b"key" * 100, ".params": b"points" * 10_000}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[str]:
    """A gateway that has CONTENTS under content ids `.vk` and `.params`; unreachable afterwards."""
    served = tmp_path / "served"
    served.mkdir()
    for suffix, content in CONTENTS.items():
        (served / suffix).write_bytes(content)
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(served))) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.fixture
def manifest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A manifest whose every `.vk` and `.params` has CONTENTS."""

    def entry_of(name: str) -> ManifestEntry:
        suffix = Path(name).suffix
        digest = blake2b(CONTENTS[suffix]).hexdigest()[:32]
        return ManifestEntry(name=name, cid=suffix, digest=digest, sector_bytes=2 * KIB)

    monkeypatch.setattr(parameters, "entry_of", entry_of)
    monkeypatch.setenv("no_proxy", "*")


def test_both_files_arrive_where_other_software_looks(own_home: Path, manifest: None, gateway: str) -> None:
    paths = parameters.fetch_parameters(2 * KIB, gateway=gateway)
    assert [path.parent for path in paths] == [own_home / "parameters"] * 2
    assert {path.suffix: path.read_bytes() for path in paths} == CONTENTS


def test_what_is_there_and_whole_is_not_fetched_again(
    own_home: Path, manifest: None, gateway: str, tmp_path: Path
) -> None:
    vk, params = parameters.fetch_parameters(2 * KIB, out=tmp_path / "p", gateway=gateway)
    params.write_bytes(b"damaged")
    before = vk.stat().st_ino, params.stat().st_ino
    events: list[Event] = []
    parameters.fetch_parameters(2 * KIB, out=tmp_path / "p", gateway=gateway, on_event=events.append)
    assert vk.stat().st_ino == before[0]
    assert params.read_bytes() == CONTENTS[".params"]
    assert [event.text for event in events if isinstance(event, Notice)] == [f"{vk} is there already"]


def test_sizes_without_published_parameters_say_what_else_to_do(own_home: Path) -> None:
    with pytest.raises(ParameterError, match="params generate --kind porep --sector-size 4KiB"):
        parameters.fetch_parameters(4 * KIB)


def test_an_unreachable_gateway_is_named(own_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    with pytest.raises(ResourceError, match="http://127.0.0.1:1/ipfs"):
        parameters.fetch_parameters(2 * KIB, gateway="http://127.0.0.1:1/ipfs")
