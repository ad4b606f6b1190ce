"""The floors of the house, read from the imports: arrows run downward only, and the front door is light."""

from __future__ import annotations

import ast
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "cuzk"

#: Lowest first. A module may import its own floor and those before it.
FLOORS = ("timeline", "kernels", "sector", "circuit", "groth16", "engine", "proofs", "api", "server", "cli")
#: Modules and packages at the top that share a floor.
ROOMS = {
    "api": {"api", "parameters", "benchmarks"},
    "cli": {"cli", "view", "reports", "config"},
}
#: These import nothing of ours, and every floor may import them.
SERVANTS = {"errors", "events", "folders", "garbage", "units", "whole_files"}
#: What only `kernels` may import: it compiles, or takes its time to load.
COMPILERS = {"numba", "llvmlite"}


def modules() -> dict[str, str]:
    """Dotted name -> source of every module of the package."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    return found


def imports(name: str, source: str) -> set[str]:
    """Dotted names that a module imports anywhere in it, inside functions and type checks too."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name} imports relatively: write the whole name"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def area(dotted: str) -> str:
    """The second part of cuzk.AREA...; empty for the package's own front door."""
    part = (dotted.split(".") + [""])[1]
    return next((floor for floor, rooms in ROOMS.items() if part in rooms), part)


def offences(name: str, source: str) -> list[str]:
    """What a module imports against the rules, in words."""
    own, wrong = area(name), []
    for target in sorted(imports(name, source)):
        if target.split(".")[0] in COMPILERS and own != "kernels":
            wrong.append(f"{name} imports {target}: only kernels may")
        if target.split(".")[0] != "cuzk" or own == "":
            continue
        there = area(target)
        if own in SERVANTS:
            wrong.append(f"{name} imports {target}: it serves every floor and imports none")
        elif there in FLOORS and FLOORS.index(there) > FLOORS.index(own):
            wrong.append(f"{name} imports {target}: upward")
    return wrong


@pytest.mark.parametrize("name", modules())
def test_arrows_run_downward_only(name: str) -> None:
    assert offences(name, modules()[name]) == []


def circle(sources: dict[str, str]) -> list[str]:
    """Modules each of which the next one imports, the first being the last again; empty if there are none."""
    graph = {
        name: {target if target in sources else target.rpartition(".")[0] for target in imports(name, source)}
        for name, source in sources.items()
    }
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert circle(modules()) == []


@pytest.mark.parametrize(
    ("b", "found"),
    [
        ("import cuzk.c", []),
        ("import cuzk.a", ["cuzk.a", "cuzk.b"]),
        ("def late():\n    from cuzk.a import x", ["cuzk.a", "cuzk.b"]),
        ("if TYPE_CHECKING:\n    from cuzk import c", ["cuzk.a", "cuzk.b", "cuzk.c"]),
    ],
)
def test_a_circle_is_found_wherever_it_is_hidden(b: str, found: list[str]) -> None:
    c = "from cuzk.a import x" if "cuzk.c" in found else ""
    assert sorted(set(circle({"cuzk.a": "from cuzk.b import y", "cuzk.b": b, "cuzk.c": c}))) == found


def test_the_engine_knows_nothing_of_what_is_proven() -> None:
    """It stands above the floors that prove, and needs none of them."""
    known = {area(target) for name, source in modules().items() if area(name) == "engine"
             for target in imports(name, source) if target.split(".")[0] == "cuzk"}  # fmt: skip
    assert known <= {"engine", *SERVANTS}


def test_parameter_files_know_nothing_of_proofs() -> None:
    """Their folder needs of its own floor points as bytes and errors of files."""
    room = "cuzk.groth16.parameters"
    known = {target for name, source in modules().items() if name.startswith(room)
             for target in imports(name, source) if target.startswith("cuzk.groth16.")}  # fmt: skip
    outside = {target.split(".")[2] for target in known if not target.startswith(f"{room}.")}
    assert outside == {"encoding", "files"}


def test_other_kinds_need_nothing_of_porep_to_be_read() -> None:
    """What they share with it lies beside its folder."""
    room = "cuzk.sector.porep"
    for name, source in modules().items():
        if area(name) == "sector" and not name.startswith(room):
            assert not any(target.startswith(room) for target in imports(name, source)), name


def test_every_module_stands_on_a_floor() -> None:
    assert {area(name) for name in modules()} <= {*FLOORS, *SERVANTS, ""}


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("cuzk.sector.porep.c1_reader", "from cuzk.groth16 import prove"),
        ("cuzk.sector.porep.c1_reader", "import cuzk.circuit.porep"),
        ("cuzk.groth16.prove", "def late():\n    from cuzk import view"),
        ("cuzk.groth16.prove", "from cuzk.config import Config"),
        ("cuzk.engine.worker", "from cuzk import api"),
        ("cuzk.engine.worker", "from cuzk.proofs.jobs import ProofWork"),
        ("cuzk.proofs.jobs", "from cuzk.api import prove"),
        ("cuzk.benchmarks.jobs", "from cuzk import view"),
        ("cuzk.circuit.porep", "import numba"),
        ("cuzk.view", "from llvmlite import ir"),
        ("cuzk.errors", "from cuzk.units import parse_size"),
    ],
)
def test_the_rules_catch_each_offence(name: str, source: str) -> None:
    assert len(offences(name, source)) == 1


def loaded_after(code: str) -> set[str]:
    """Top-level names of all modules that a fresh interpreter holds after `code`."""
    script = f"{code}\nimport sys; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT, timeout=60
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.parametrize(
    "code",
    [
        "import cuzk",
        "import cuzk.cli\ntry: cuzk.cli.main(['--help'])\nexcept SystemExit: pass",
        "import cuzk.cli\ntry: cuzk.cli.main(['prove', '--help'])\nexcept SystemExit: pass",
        "import cuzk.timeline.page, cuzk.timeline.chrome, cuzk.timeline.record",
        "import cuzk.server.client",
    ],
)
def test_the_front_door_loads_no_heavy_library(code: str) -> None:
    assert loaded_after(code) & {"numba", "llvmlite", "numpy", "rich"} == set()


def test_the_command_line_loads_neither_openssl_nor_logging() -> None:
    """OpenSSL and logging took 18 ms of the 98 that --help took."""
    assert loaded_after("import cuzk.cli") & {"hashlib", "logging"} == set()


VERIFYING = """
import json
import cuzk.api
from pathlib import Path
from cuzk.groth16.proof import split_proofs
from cuzk.groth16.verify import Verifier
from cuzk.groth16.parameters.verifying_key import read_verifying_key
from cuzk.sector.porep.c1_reader import read_c1
porep = Path("tests/vectors/porep")
cases = json.loads((porep / "vectors.json").read_text())["cases"]
case = next(case for case in cases if "proof_r13_s17" in case)
c1 = read_c1(porep / case["file"])
c1.check_statement()
[proof] = split_proofs(bytes.fromhex(case["proof_r13_s17"]), where="upstream")
assert Verifier(read_verifying_key(porep / "2k.vk")).verify_partition(c1.public_inputs(0), proof)
"""


def test_kernels_of_the_cpu_and_devices_load_none_of_a_gpu() -> None:
    """Without numba-cuda those could not be imported."""
    theirs = "cuzk.kernels.gpu"
    others = [name for name in modules() if name.startswith("cuzk.kernels") and not name.startswith(theirs)]
    script = f"import sys, {', '.join(others)}; sys.exit({theirs!r} in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], cwd=ROOT, timeout=60).returncode == 0


def test_verifying_and_reading_a_sector_load_no_compiler() -> None:
    assert loaded_after(VERIFYING) & COMPILERS == set()
