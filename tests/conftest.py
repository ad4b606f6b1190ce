"""What every test may use: the vectors' folder, and a home of its own that hides the user's files."""

from __future__ import annotations

import gc
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

import cuzk.kernels.jit  # noqa: F401  decides where compiled code lies, before a test moves the cache folder
from cuzk.events import ignore
from cuzk.kernels.device.cpu import CpuDevice, has_ifma
from cuzk.parameters import generate_parameters
from cuzk.proofs.warm_up import GROUPS, warm_up

settings.register_profile("cuzk", deadline=None, print_blob=True)  # a first call compiles
settings.load_profile("cuzk")


@pytest.fixture(scope="session")
def vectors() -> Path:
    """Upstream's own outputs; see the `origin` in each file."""
    return Path(__file__).parent / "vectors"


@pytest.fixture(scope="session")
def compiled() -> None:
    """All kernels, compiled on all cores: one after another they take minutes when sources have changed."""
    for lanes in (8, 1) if has_ifma() else (1,):
        warm_up(CpuDevice(lanes=lanes), tuple(GROUPS), ignore)


@pytest.fixture
def no_garbage_collection() -> Iterator[None]:
    """What is not in a cycle is freed at once all the same."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty folders for configuration, data, cache and parameters. Compiled code stays where it is."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("FIL_PROOFS_PARAMETER_CACHE", str(tmp_path / "parameters"))
    return tmp_path


@pytest.fixture(scope="session")
def sector_params(compiled: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of the 2 KiB parameters of the trapdoors 2, 3, 5, 7, 11: 1.1 GB, made once a session."""
    folder = tmp_path_factory.mktemp("sector")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_CACHE_HOME", str(folder / "cache"))
        generate_parameters(2048, trapdoors=(2, 3, 5, 7, 11), out=folder / "parameters")
    yield folder / "parameters"
    shutil.rmtree(folder)


@pytest.fixture
def home_of_old(own_home: Path, sector_params: Path) -> Path:
    """A home where `sector_params` have been used before: their points are known to be good."""
    shutil.copytree(sector_params.parent / "cache" / "cuzk", own_home / "cache" / "cuzk")
    return own_home
