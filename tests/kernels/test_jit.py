"""Compiled code on disk: read wherever it lies, made anew when it is damaged, and never in the way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

#: One compiled function, in a folder of its own.
MODULE = """
from cuzk.kernels.jit import jit

@jit
def scaled(array):
    return array[0] * 3
"""
CALL = """
import json, sys, warnings
warnings.simplefilter("always")
with warnings.catch_warnings(record=True) as heard:
    import numpy as np
    from cuzk.kernels.jit import cache_is_writable
    from scaling import scaled
    results = [int(scaled(np.array([7], dtype))) for dtype in (np.int64, np.int32)]
print(json.dumps({
    "results": results,
    "loaded": sum(scaled.stats.cache_hits.values()),
    "compiled": sum(scaled.stats.cache_misses.values()),
    "heard": [str(warning.message) for warning in heard],
    "writable": cache_is_writable(),
    "modules": len(sys.modules),
}))
"""
#: Every attempt to change something under sys.argv[1] fails as on a read-only disk, root's too.
READ_ONLY = """
import errno, os, sys
def refuse(event, args):
    changes = event in ("os.mkdir", "os.remove", "os.rename") or (
        event == "open" and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
    if changes and str(args[0]).startswith(sys.argv[1]):
        raise OSError(errno.EROFS, "Read-only file system", args[0])
sys.addaudithook(refuse)
os.access = lambda path, mode: not mode & os.W_OK
"""


def call(home: Path, cache: Path, before: str = "") -> dict[str, Any]:
    """What a new process says that calls home's function for two types."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "PYTHONPATH": f"{ROOT}:{home}"}
    command = [sys.executable, "-c", before + CALL, str(cache)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=home)
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def counts(answer: dict[str, Any]) -> tuple[int, int]:
    return answer["loaded"], answer["compiled"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("home")
    (folder / "scaling.py").write_text(MODULE)
    return folder


@pytest.fixture(scope="module")
def first(home: Path) -> dict[str, Any]:
    """The first call, with an empty cache."""
    return call(home, home / "cache")


@pytest.fixture
def cache(home: Path, first: dict[str, Any], tmp_path: Path) -> Path:
    """A copy of the cache after the first call."""
    return Path(shutil.copytree(home / "cache", tmp_path / "cache"))


def test_the_second_process_loads_what_the_first_compiled(
    home: Path, first: dict[str, Any], cache: Path
) -> None:
    second = call(home, cache)
    assert (first["results"], counts(first), first["heard"]) == ([21, 21], (0, 2), [])
    assert (second["results"], counts(second), second["heard"]) == ([21, 21], (2, 0), [])
    assert second["modules"] < first["modules"] - 40  # what only compiling needs is not imported


def test_a_changed_file_is_compiled_again(tmp_path: Path) -> None:
    for factor in (3, 5):
        module = tmp_path / "scaling.py"
        module.write_text(MODULE.replace("3", str(factor)))
        os.utime(module, (factor, factor))  # Python's own bytecode is of a second and a size
        answer = call(tmp_path, tmp_path / "cache")
        assert (answer["results"], counts(answer)) == ([7 * factor] * 2, (0, 2))


def test_a_read_only_folder_is_read(home: Path, cache: Path) -> None:
    second = call(home, cache, READ_ONLY)
    assert (second["results"], counts(second)) == ([21, 21], (2, 0))
    assert (second["heard"], second["writable"]) == ([], False)


def test_a_read_only_folder_without_the_code_is_one_warning(home: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    answer = call(home, tmp_path / "cache", READ_ONLY)
    assert (answer["results"], counts(answer), answer["writable"]) == ([21, 21], (0, 2), False)
    [warning] = answer["heard"]
    assert "compiled code is not kept" in warning and "Read-only" in warning
    assert list((tmp_path / "cache").iterdir()) == []


def truncated(data: bytes) -> bytes:
    return data[: len(data) // 2]


def scrambled(data: bytes) -> bytes:
    return bytes(byte ^ 0x5A for byte in data)


@pytest.mark.parametrize(
    ("suffix", "damage"), [("nbi", truncated), ("nbc", scrambled), ("nbi", lambda data: b"")]
)
def test_damaged_code_is_compiled_again_with_a_warning(
    suffix: str, damage: Callable[[bytes], bytes], home: Path, cache: Path
) -> None:
    for file in cache.rglob(f"*.{suffix}"):
        file.write_bytes(damage(file.read_bytes()))
    second, third = call(home, cache), call(home, cache)
    assert (second["results"], counts(second)) == ([21, 21], (0, 2))
    assert second["heard"] and all("is damaged" in warning for warning in second["heard"])
    assert (third["results"], counts(third), third["heard"]) == ([21, 21], (2, 0), [])
