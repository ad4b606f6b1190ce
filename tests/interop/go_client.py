"""Curio's side of the contract as a process: the Go program in `curio/`, built once, driven by lines of JSON.

The Go side of proving.proto is made from the description that is checked in, by the plug-ins that go.mod
names: a clone needs Go, and no compiler of protobuf.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from google.protobuf.compiler.plugin_pb2 import CodeGeneratorRequest, CodeGeneratorResponse
from google.protobuf.descriptor_pb2 import FileDescriptorSet

ROOT = Path(__file__).resolve().parents[2]
SOURCES = Path(__file__).parent / "curio"
DESCRIPTION = ROOT / "cuzk" / "server" / "proving.desc"
PACKAGE = "cuzk/interop/proving"
PLUGINS = (
    "google.golang.org/protobuf/cmd/protoc-gen-go",
    "google.golang.org/grpc/cmd/protoc-gen-go-grpc",
)
BUILDING_S = 600.0  # of a machine that compiles gRPC for the first time


class NoGoError(Exception):
    """Why there can be no Go client here."""


def build(folder: Path) -> Path:
    """The program, made in that folder. Raises NoGoError without Go, or without its modules."""
    go = shutil.which("go") or shutil.which("go", path="/usr/local/go/bin")
    if go is None:
        raise NoGoError("Go is not installed")
    sources = folder / "curio"
    shutil.copytree(SOURCES, sources)
    fetched = _run([go, "mod", "download"], sources)
    if fetched.returncode:
        raise NoGoError(f"the modules of the Go client cannot be had: {fetched.stderr.decode().strip()}")
    for plugin in PLUGINS:
        _generate(go, plugin, sources)
    return _built(go, ".", sources)


def _generate(go: str, plugin: str, sources: Path) -> None:
    """What protoc does with a plug-in: a request on its stdin, files from its stdout."""
    described = FileDescriptorSet.FromString(DESCRIPTION.read_bytes())
    names = [file.name for file in described.file]
    request = CodeGeneratorRequest(
        file_to_generate=names,
        parameter=",".join(["paths=source_relative", *(f"M{name}={PACKAGE}" for name in names)]),
        proto_file=described.file,
    )
    program = _built(go, plugin, sources)
    made = subprocess.run([program], input=request.SerializeToString(), capture_output=True, check=True)
    answer = CodeGeneratorResponse.FromString(made.stdout)
    assert not answer.error, answer.error
    for file in answer.file:
        path = sources / "proving" / Path(file.name).name
        path.parent.mkdir(exist_ok=True)
        path.write_text(file.content)


def _built(go: str, package: str, sources: Path) -> Path:
    program = sources / "bin" / (Path(package).name or "curio")
    done = _run([go, "build", "-o", str(program), package], sources)
    assert done.returncode == 0, done.stderr.decode()
    return program


def _run(command: list[str], folder: Path) -> subprocess.CompletedProcess[bytes]:
    environment = {**os.environ, "GOFLAGS": "-mod=readonly -buildvcs=false", "GOWORK": "off"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, timeout=BUILDING_S)


class GoClient:
    """One process, one channel. Orders return at once; their answers are futures of dictionaries."""

    def __init__(self, program: Path, address: str, *, prove_timeout: str, max_pending: int) -> None:
        command = [program, "-prove-timeout", prove_timeout, "-max-pending", str(max_pending), address]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._answers: dict[str, Future[dict[str, Any]]] = {}
        self._number = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def prove(self, task: dict[str, Any]) -> Future[dict[str, Any]]:
        """Of a task as `curio/tasks.go` has it, with bytes as they are. The proof comes as bytes."""
        return self._order("prove", task)

    def has_capacity(self) -> Future[dict[str, Any]]:
        return self._order("capacity", {})

    def cancel(self, answer: Future[dict[str, Any]]) -> None:
        """Of an order under way, as a task that Curio stops."""
        [name] = [name for name, known in self._answers.items() if known is answer]
        self._send({"id": name, "do": "cancel"})

    def _order(self, do: str, task: dict[str, Any]) -> Future[dict[str, Any]]:
        self._number += 1
        name, answer = str(self._number), Future[dict[str, Any]]()
        self._answers[name] = answer
        self._send({"id": name, "do": do, "task": task})
        return answer

    def _send(self, order: dict[str, Any]) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        stdin.write(json.dumps(order, default=_base64).encode() + b"\n")
        stdin.flush()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            answer["proof"] = base64.b64decode(answer["proof"] or "")
            self._answers[answer["id"]].set_result(answer)

    def close(self) -> int:
        """Wait for what is under way; the exit code."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        code = self._process.wait()
        self._reader.join()
        self._process.stdout.close()
        return code

    def kill(self) -> None:
        """As a Curio that dies: its calls are not ended, its connections are."""
        self._process.kill()


@contextmanager
def connected(
    program: Path, address: str, *, prove_timeout: str = "30m", max_pending: int = 10
) -> Iterator[GoClient]:
    client = GoClient(program, address, prove_timeout=prove_timeout, max_pending=max_pending)
    try:
        yield client
    except BaseException:
        client.kill()
        raise
    finally:
        client.close()


def _base64(value: object) -> str:
    assert isinstance(value, bytes), value
    return base64.b64encode(value).decode()
