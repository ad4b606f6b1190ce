"""The configuration file: what it may say, and what a mistake in it is answered with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from cuzk import config
from cuzk.config.keys import KEYS
from cuzk.errors import InputError
from tests.cli.running import run


@pytest.fixture
def written(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "cuzk.toml"
        path.write_text(text)
        return path

    return write


EVERY_KEY = """
[prover]
device = "cpu"
threads = 8
[parameters]
folder = "/data/params"
gateway = "https://g.example/"
[gpus]
devices = [0, "cpu"]
gpu_workers_per_device = 3
gpu_lock = "coarse"
stall_after = "1m30s"
[synthesis]
partition_workers = 7
[pipeline]
synthesis_lookahead = 4
setup_batch = "1h"
max_parallel_synthesis = 5
[memory]
total_budget = "256GiB"
safety_margin = "1.5GiB"
[srs]
preload = ["porep-32g"]
[daemon]
listen = "0.0.0.0:9820"
status_listen = "127.0.0.1:9821"
socket_mode = "600"
socket_group = "curio"
tls_certificate = "/etc/cuzk/server.pem"
tls_key = "/etc/cuzk/server.key"
tls_client_ca = "/etc/cuzk/clients.pem"
token_file = "/etc/cuzk/token"
journal = ""
journal_size = "1GiB"
queue_memory = "2GiB"
drain_timeout = "90s"
results = 5
results_age = "1m"
waiting_age = "24h"
readers = 3
[logging]
level = "warn"
format = "json"
"""


def test_every_key_reaches_its_field(written) -> None:
    loaded = config.load(written(EVERY_KEY))
    assert loaded == config.Config(
        device="cpu",
        threads=8,
        params=Path("/data/params"),
        gateway="https://g.example/",
        devices=("cuda:0", "cpu"),
        gpu_workers_per_device=3,
        gpu_lock="coarse",
        stall_after_s=90.0,
        partition_workers=7,
        synthesis_lookahead=4,
        setup_batch_s=3600.0,
        max_parallel_synthesis=5,
        memory=256 << 30,
        safety_margin=3 << 29,
        preload=("porep-32g",),
        listen="0.0.0.0:9820",
        status_listen="127.0.0.1:9821",
        socket_mode=0o600,
        socket_group="curio",
        tls_certificate=Path("/etc/cuzk/server.pem"),
        tls_key=Path("/etc/cuzk/server.key"),
        tls_client_ca=Path("/etc/cuzk/clients.pem"),
        token_file=Path("/etc/cuzk/token"),
        journal="",
        journal_bytes=1 << 30,
        queue_memory=2 << 30,
        drain_s=90.0,
        results_kept=5,
        results_s=60.0,
        waiting_s=86_400.0,
        readers=3,
        log_level="warn",
        log_format="json",
    )
    assert loaded.bounded_partition_workers == 5
    assert all(getattr(loaded, one.name) != one.default for one in fields(config.Config))


def test_every_field_has_a_key_and_every_key_its_field_or_a_reason() -> None:
    assert {key.field for key in KEYS.values() if key.field} == {one.name for one in fields(config.Config)}
    for key in KEYS.values():
        assert bool(key.meaning) is (key.alias is None), key
        assert key.alias is None or key.alias in KEYS


@pytest.mark.parametrize("name", [name for name, key in KEYS.items() if key.default is not None])
def test_the_default_that_is_shown_is_the_one_that_holds(name: str) -> None:
    key = KEYS[name]
    assert key.field is not None and key.parse(key.default) == getattr(config.Config(), key.field)


#: As published for Curio's daemon: the example file and the page for its users.
DAEMONS_FILE = """
[daemon]
listen = "0.0.0.0:9820"
[memory]
total_budget = "auto"
safety_margin = "5GiB"
eviction_min_idle = "5m"
[srs]
param_cache = "/data/zk/params"
[gpus]
devices = []
gpu_threads = 32
gpu_workers_per_device = 2
[scheduler]
max_batch_size = 1
max_batch_wait_ms = 10000
sort_by_type = true
[synthesis]
threads = 0
partition_workers = 12
[pipeline]
enabled = true
synthesis_lookahead = 1
synthesis_concurrency = 1
max_parallel_synthesis = 18
slot_size = 0
max_gpu_queue_depth = 0
[logging]
level = "info,cuzk_core=debug"
"""


def test_a_file_of_curios_daemon_is_read_as_it_is_with_a_warning_for_what_it_asks_in_vain(written) -> None:
    with pytest.warns(UserWarning) as said:
        loaded = config.load(written(DAEMONS_FILE))
    assert loaded == config.Config(
        listen="0.0.0.0:9820",
        safety_margin=5 << 30,
        params=Path("/data/zk/params"),
        log_level="info,cuzk_core=debug",
        partition_workers=12,
        synthesis_lookahead=1,
        max_parallel_synthesis=18,
    )
    [warning] = said
    assert "cuzk.toml:12: gpus.gpu_threads has no effect" in str(warning.message)


@pytest.mark.parametrize(
    ("text", "memory"),
    [
        ('pinned_budget = "50GiB"\nworking_memory_budget = "80GiB"\n', 130 << 30),
        ('working_memory_budget = "80GiB"\n', 80 << 30),
        ('pinned_budget = "50GiB"\ntotal_budget = "256GiB"\n', 256 << 30),
        ('pinned_budget = "50GiB"\ntotal_budget = "auto"\n', None),
    ],
)
def test_budgets_that_are_out_of_date_sum_up_to_the_one_that_is_not(
    written, text: str, memory: int | None
) -> None:
    with pytest.warns(UserWarning, match="_budget is out of date"):
        assert config.load(written("[memory]\n" + text)).memory == memory


def test_what_is_said_under_two_names_is_refused(written) -> None:
    path = written('[parameters]\nfolder = "/a"\n[srs]\nparam_cache = "/b"\n')
    with pytest.raises(InputError, match="srs.param_cache says what parameters.folder has said") as caught:
        config.load(path)
    assert str(caught.value.where).endswith(":4") and caught.value.next == "keep one: parameters.folder"


def test_all_mistakes_of_a_file_are_found_at_once(written) -> None:
    reading = config.read(written('[gpu]\nx = 1\n[memory]\ntotal_budget = "512G"\nsafty_margin = 1\n'))
    assert [str(one.where).rpartition(":")[2] for one in reading.problems] == ["1", "4", "5"]
    assert [one.next for one in reading.problems] == [
        "did you mean gpus?", "mend that value", "did you mean memory.safety_margin?",
    ]  # fmt: skip


def test_what_is_shown_as_effective_is_a_file_of_the_same_meaning(written, tmp_path: Path) -> None:
    for text in ("", EVERY_KEY, DAEMONS_FILE, '[memory]\npinned_budget = "50GiB"\n'):
        path = written(text)
        shown = run("config", "show", "--effective", "--config", str(path))
        assert shown.exit_code == 0, shown.stderr
        again = tmp_path / "again.toml"
        again.write_text(shown.stdout)
        assert config.read(again).config() == config.read(path).config()


def test_the_origin_of_each_value_is_shown(written) -> None:
    path = written('[srs]\n\nparam_cache = "/data/zk/params"\n')
    shown = run("config", "show", "--effective", "--config", str(path)).stdout
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert 'folder = "/data/zk/params" # line 3' in lines
    assert 'device = "auto" # default' in lines
    assert "# threads unset: every core # default" in lines
    plain = run("config", "show", "--config", str(path)).stdout
    assert plain.splitlines()[1:] == ["", "[srs]", 'param_cache = "/data/zk/params"  # line 3']
    as_json = run("config", "show", "--json", "--config", str(path)).stdout
    assert json.loads(as_json)["keys"] == {
        "srs.param_cache": {"value": "/data/zk/params", "where": f"{path}:3"}
    }


def test_the_origin_of_a_budget_is_that_of_the_name_which_counts(written) -> None:
    text = '[memory]\npinned_budget = "50GiB"\ntotal_budget = {}\n'
    for said, value in (('"256GiB"', "256GiB"), ('"auto"', "auto")):
        path = written(text.format(said))
        rows = {name: (shown, where) for name, shown, where in config.read(path).effective()}
        assert rows["memory.total_budget"] == (value, f"{path}:3")


def test_a_check_ends_with_one_where_there_is_a_mistake(written) -> None:
    good = run("config", "check", str(written("[prover]\nthreads = 2\n")))
    assert (good.exit_code, good.stderr) == (0, "")
    assert good.stdout.endswith("cuzk.toml: 1 keys, no mistake\n")
    bad = run("config", "check", "--json", str(written("[prover]\nthread = 2\n")))
    assert bad.exit_code == 1
    [problem] = json.loads(bad.stdout)["problems"]
    assert problem["where"].endswith("cuzk.toml:2")
    assert problem["next"] == "did you mean prover.threads?"


def test_a_check_warns_of_what_this_machine_does_not_have(written) -> None:
    text = '[parameters]\nfolder = "/nope"\n[daemon]\ntoken_file = "/none"\nsocket_group = "no-such-group"\n'
    checked = run("config", "check", written(text))
    assert checked.exit_code == 0
    said = " ".join(checked.stderr.split())
    assert "cuzk.toml:2: parameters.folder does not exist on this machine: /nope" in said
    assert "cuzk.toml:4: daemon.token_file does not exist on this machine: /none" in said
    assert "cuzk.toml:5: daemon.socket_group: there is no group no-such-group on this machine" in said


def test_the_first_mistake_says_how_to_see_all(written) -> None:
    path = written("[prover]\nthreads = 0\n[gpus]\ndevices = 1\n")
    for command in (("config", "show"), ("status", "-a", "unix:///none")):
        said = " ".join(run(*command, "--config", path).stderr.split())
        assert f"`cuzk config check {path}` names all 2 mistakes" in said
    one = run("config", "show", "--config", written("[prover]\nthreads = 0\n"))
    assert "config check" not in one.stderr


def test_a_file_that_is_not_there_is_blamed_on_no_option(tmp_path: Path) -> None:
    assert "--config" not in run("config", "check", tmp_path / "nope.toml").stderr


def test_parameters_that_are_opened_before_the_start_are_nothing_to_warn_of(written) -> None:
    for value in ("[]", '["porep-32g"]'):
        assert config.read(written(f"[srs]\npreload = {value}\n")).warnings == []


def test_the_page_has_every_key_as_the_program_has_it() -> None:
    page = Path(__file__).resolve().parents[1] / "docs" / "configuration.md"
    rows = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| `")]
    expected = [*_live_rows(), *_daemons_rows()]
    assert sorted(rows) == sorted(expected)


def _live_rows() -> Iterator[str]:
    for name, key in KEYS.items():
        if key.field is not None and key.alias is None:
            default = key.silent if key.default is None else f"`{json.dumps(key.default)}`"
            yield f"| `{name}` | {default} | {key.meaning} |"


def _daemons_rows() -> Iterator[str]:
    for name, key in KEYS.items():
        if key.warning is not None:
            yield f"| `{name}` | {key.warning} |"
        elif key.alias is not None:
            yield f"| `{name}` | another name of `{key.alias}` |"
        elif key.field is None:
            yield f"| `{name}` | no effect: {key.meaning} |"


def test_an_automatic_budget_is_none(written) -> None:
    assert config.load(written('[memory]\ntotal_budget = "auto"\n')).memory is None


def test_sizes_and_durations_may_be_bare_numbers(written) -> None:
    loaded = config.load(written("[memory]\ntotal_budget = 4096\n[gpus]\nstall_after = 90\n"))
    assert (loaded.memory, loaded.stall_after_s) == (4096, 90.0)


def test_an_empty_file_means_the_defaults(written) -> None:
    assert config.load(written("")) == config.Config()


def test_without_a_path_the_users_file_is_read_and_may_be_missing(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setattr(config, "DAEMONS_PLACE", tmp_path / "daemons.toml")
    assert config.load() == config.Config()
    (tmp_path / "daemons.toml").write_text("[prover]\nthreads = 7\n")
    assert config.load().threads == 7
    (tmp_path / "cuzk").mkdir()
    (tmp_path / "cuzk" / "cuzk.toml").write_text("[prover]\nthreads = 3\n")
    assert config.load().threads == 3


def test_a_home_folder_is_expanded(written) -> None:
    assert config.load(written('[parameters]\nfolder = "~/p"\n')).params == Path.home() / "p"


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("[prover]\n\nthread = 8\n", 3, "did you mean prover.threads?"),
        ("[prover]\nthreads = true\n", 2, "threads is a boolean"),
        ('[prover]\nthreads = "8"\n', 2, "give an integer"),
        ("# first\n[provers]\n", 2, "did you mean prover?"),
        ('device = "cpu"\n', 1, "device is a key outside of a table (did you mean prover.device?)"),
        ("colour = 1\n", 1, "colour is a key outside of a table (put it below the [table]"),
        ("# first\ngpus = 1\n", 2, "gpus is no table (write [gpus]"),
        ("\nprover.threads = 0\n", 2, "prover.threads is 0"),
        ("\nprover = { threads = 0 }\n", 2, "prover.threads is 0"),
        ("[prover]\nthreads = 1\n\ndevice = \n", 4, "this is not TOML"),
        ("[parameters]\n[prover]\ndevice = 1\n", 3, "prover.device is an integer"),
        ("[prover]\nthreads = 0\n", 2, "prover.threads is 0; at least 1 is needed"),
        ("[gpus]\n\ndevices = [1.5]\n", 3, "gpus.devices has an entry that is neither"),
        ("[gpus]\ndevices = 1\n", 2, "give a list"),
        ('[gpus]\ngpu_lock = "wide"\n', 2, "known are narrow, coarse, none"),
        ('[memory]\ntotal_budget = "1.5 elephants"\n', 2, "is not a size"),
        ("[memory]\ntotal_budget = 1.5\n", 2, "give a string or an integer"),
        ("[memory]\ntotal_budget = 0\n", 2, "at least 1 is needed"),
        ('[memory]\nsafety_margin = "512G"\n', 2, "is not a size"),
        ('[memory]\neviction_min_idle = "soon"\n', 2, "is not a duration"),
        ("[gpus]\nstall_after = 0\n", 2, "more than nothing is needed"),
        ('[logging]\nlevel = "loud"\n', 2, "known are trace, debug"),
        ("[srs]\npreload = [1]\n", 2, "an entry that is no string"),
        ('[srs]\npreload = ["porep-32g", "porep-33g"]\n', 2, "srs.preload: unknown circuit ID: porep-33g"),
        ('[prover]\ndevice = "banana"\n', 2, "prover.device: 'banana' names no device"),
        ('[gpus]\ndevices = ["banana"]\n', 2, "gpus.devices: 'banana' names no device"),
        ('[daemon]\nlisten = "somewhere"\n', 2, "daemon.listen: 'somewhere' is no address"),
        ('[daemon]\nlisten = ""\n', 2, "daemon.listen: '' is no address"),
        ('[daemon]\nstatus_listen = "12"\n', 2, "daemon.status_listen: '12' is no address"),
        ('[daemon]\nstatus_listen = "unix:///s"\n', 2, "status is served over TCP"),
        ('[daemon]\nresults = 1\ntls_key = "/k"\n', 3, "TLS needs a certificate and its key"),
        ('[daemon]\ntls_certificate = "/c"\n', 2, "TLS needs a certificate and its key"),
        ('[daemon]\ntls_client_ca = "/c"\n', 2, "TLS needs a certificate and its key"),
        ('[parameters]\ngateway = "x"\n', 2, "parameters.gateway is 'x', no URL"),
        ('[parameters]\ngateway = "http://[x"\n', 2, "no URL"),
        ('[parameters]\ngateway = "ftp://g.example/"\n', 2, "no URL"),
    ],
)
def test_a_mistake_is_named_with_its_line(written, text: str, line: int, says: str) -> None:
    with pytest.raises(InputError) as caught:
        config.load(written(text))
    assert str(caught.value.where).endswith(f"cuzk.toml:{line}")
    assert says in str(caught.value)


@pytest.mark.parametrize(
    "text", ["[prover\n", "threads = \n", "[prover]\nthreads = 0\n", "[prover]\nthreads = -1\n"]
)
def test_bad_toml_and_bad_values_are_input_errors(written, text: str) -> None:
    with pytest.raises(InputError):
        config.load(written(text))


def test_a_configuration_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        config.load(tmp_path / "none.toml")
