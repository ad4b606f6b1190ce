"""The keys of the configuration file: what each may say, and what it sets.

Beside cuzk's own, the keys of Curio's daemon are understood, so that its file can be used as it is: where
both have the same thing under two names, either sets it; where cuzk does without, a value that asks for
something is answered with a warning. docs/configuration.md has the same table, and a test compares both.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cuzk.engine.settings import GPU_LOCKS, Settings
from cuzk.server.address import parse_address, require_tcp
from cuzk.server.directives import LEVELS, parse_directives
from cuzk.units import parse_duration, parse_size

_SETTINGS = Settings()


def _as_it_is(value: Any) -> Any:
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """A key.

    kinds    types that TOML may give
    meaning  for people; of a key without a field, why it sets nothing
    field    of `Config` that it sets
    default  what it says if the file is silent, as TOML would have it; None where words must do: `silent`
    parse    from TOML's value to the field's; raises ValueError with a message for users, or UsageError
    alias    it is another name of that key, whose `meaning` holds
    warning  said whenever the key is given: it is honoured, but on its way out
    asks     whether a value of a key that sets nothing asks for something that will not happen
    """

    kinds: tuple[type, ...]
    meaning: str
    field: str | None = None
    default: Any = None
    silent: str = ""
    parse: Callable[[Any], Any] = _as_it_is
    alias: str | None = None
    warning: str | None = None
    asks: Callable[[Any], bool] = lambda value: True

    def sets(self, name: str) -> bool:
        """Whether it is the key of that name, or another name of it."""
        return KEYS[name] is self or self.alias == name


# ---- what values may be ----


def _positive(value: int) -> int:
    if value < 1:
        raise ValueError(f"is {value}; at least 1 is needed")
    return value


def _positive_or_default(value: int) -> int | None:
    """0 leaves the choice to the program, as Curio's daemon has it."""
    if value < 0:
        raise ValueError(f"is {value}; 0 or more is needed")
    return value or None


def _devices(value: list[Any]) -> tuple[str, ...]:
    if not all(type(one) in (str, int) for one in value):
        raise ValueError("has an entry that is neither a name nor a number of a device")
    return tuple(f"cuda:{one}" if isinstance(one, int) else _device(one) for one in value)


def _device(value: str) -> str:
    from cuzk.kernels.device.cuda_card import names_a_card

    if not names_a_card(value) and value not in ("auto", "cpu"):
        from cuzk.kernels.device.choose import choose_host  # which takes its time to load

        choose_host(value)
    return value


def _circuits(value: list[Any]) -> tuple[str, ...]:
    if not all(isinstance(one, str) for one in value):
        raise ValueError("has an entry that is no string")
    if value:
        from cuzk.server.circuits import circuit_named  # which takes its time to load

        for one in value:
            circuit_named(one)
    return tuple(value)


def _address(value: str) -> str:
    parse_address(value)
    return value


def _tcp_address_or_none(value: str) -> str:
    if value:
        require_tcp(parse_address(value))
    return value


def _gateway(value: str) -> str:
    from cuzk.groth16.parameters.fetch import is_gateway  # which takes its time to load

    if not is_gateway(value):
        raise ValueError(f"is {value!r}, no URL such as https://host/path/")
    return value


def _one_of(*known: str) -> Callable[[str], str]:
    def parse(value: str) -> str:
        if value not in known:
            raise ValueError(f"is {value!r}; known are {', '.join(known)}")
        return value

    return parse


def _size(value: str | int) -> int:
    if isinstance(value, str):
        return parse_size(value)
    return _positive(value)


def _size_or_auto(value: str | int) -> int | None:
    return None if value == "auto" else _size(value)


def _seconds(value: str | float) -> float:
    seconds = parse_duration(value) if isinstance(value, str) else float(value)
    if not 0 < seconds < float("inf"):
        raise ValueError(f"is {value!r}; more than nothing is needed")
    return seconds


def _mode(value: str) -> int:
    if not value or set(value) - set("01234567") or int(value, 8) > 0o777:
        raise ValueError(f"is {value!r}, not three octal digits such as 0660")
    return int(value, 8)


def _directives(value: str) -> str:
    parse_directives(value)
    return value


def _folder(value: str) -> Path:
    return Path(value).expanduser()


def _other_than(*values: Any) -> Callable[[Any], bool]:
    return lambda value: value not in values


# ---- the keys, by table.key ----

_SIZES, _DURATIONS = (str, int), (str, int, float)

KEYS: dict[str, Key] = {
    "prover.device": Key(
        field="device", kinds=(str,), default="auto", parse=_device,
        meaning='where one sector is proven, as after `--device`: "auto", "cpu", "cuda:0", a UUID',
    ),
    "prover.threads": Key(
        field="threads", kinds=(int,), parse=_positive, silent="every core", meaning="threads of the host",
    ),
    "parameters.folder": Key(
        field="params", kinds=(str,), parse=_folder, silent="where other software keeps them",
        meaning="folder that is searched first for Groth16 parameters, as `--params`",
    ),
    "parameters.gateway": Key(
        field="gateway", kinds=(str,), parse=_gateway, silent="the public one",
        meaning="URL that `cuzk params fetch` downloads from",
    ),
    "gpus.devices": Key(
        field="devices", kinds=(list,), default=[], parse=_devices,
        meaning='of an engine, by name or number: ["cuda:0", 2]; none named: every GPU, or else the CPU',
    ),
    "gpus.gpu_workers_per_device": Key(
        field="gpu_workers_per_device", kinds=(int,), parse=_positive,
        default=_SETTINGS.gpu_workers_per_device, meaning="one computes while the others prepare",
    ),
    "gpus.gpu_lock": Key(
        field="gpu_lock", kinds=(str,), parse=_one_of(*GPU_LOCKS), default=_SETTINGS.gpu_lock,
        meaning='what its workers exclude each other from: "narrow" kernels, "coarse" whole proofs, "none"',
    ),
    "gpus.stall_after": Key(
        field="stall_after_s", kinds=_DURATIONS, parse=_seconds, default="5m",
        meaning="a partition that is on a device for so long is reported",
    ),
    "gpus.gpu_threads": Key(
        kinds=(int,), asks=_other_than(0), meaning="the host's threads serve all devices: prover.threads",
    ),
    "synthesis.partition_workers": Key(
        field="partition_workers", kinds=(int,), parse=_positive, default=_SETTINGS.partition_workers,
        meaning="threads that prepare partitions",
    ),
    "synthesis.threads": Key(
        kinds=(int,), parse=_positive_or_default, alias="prover.threads", field="threads", meaning="",
    ),
    "pipeline.synthesis_lookahead": Key(
        field="synthesis_lookahead", kinds=(int,), parse=_positive, default=_SETTINGS.synthesis_lookahead,
        meaning="prepared partitions that may wait for each device",
    ),
    "pipeline.setup_batch": Key(
        field="setup_batch_s", kinds=_DURATIONS, parse=_seconds, default="5m",
        meaning="jobs of a circuit go together if they come within this, where circuits do not share a card",
    ),
    "pipeline.max_parallel_synthesis": Key(
        field="max_parallel_synthesis", kinds=(int,), parse=_positive_or_default, default=0,
        meaning="partition_workers is at most this; 0: no bound",
    ),
    "pipeline.enabled": Key(
        kinds=(bool,), asks=_other_than(True), meaning="partitions always go through a pipeline",
    ),
    "pipeline.synthesis_concurrency": Key(
        kinds=(int,), asks=_other_than(0, 1), meaning="partition_workers prepare for all jobs",
    ),
    "pipeline.slot_size": Key(
        kinds=(int,), asks=_other_than(0), meaning="a partition is always a unit by itself",
    ),
    "pipeline.max_gpu_queue_depth": Key(
        kinds=(int,), asks=_other_than(0), meaning="synthesis_lookahead bounds what waits for a device",
    ),
    "memory.total_budget": Key(
        field="memory", kinds=_SIZES, default="auto", parse=_size_or_auto,
        meaning='of the host for all jobs: "256GiB"; "auto": what is free at the start, less the margin',
    ),
    "memory.safety_margin": Key(
        field="safety_margin", kinds=_SIZES, parse=_size, silent="5GiB, or if less a tenth of what is free",
        meaning='memory of the host that is left alone when the budget is "auto"',
    ),
    "memory.eviction_min_idle": Key(
        kinds=_DURATIONS, parse=_seconds, asks=_other_than("5m"),
        meaning="parameters that nobody uses stay until their room is needed, however long that is",
    ),
    "memory.pinned_budget": Key(
        kinds=_SIZES, parse=_size, alias="memory.total_budget", meaning="",
        warning="is out of date: with working_memory_budget it sums up to memory.total_budget",
    ),
    "memory.working_memory_budget": Key(
        kinds=_SIZES, parse=_size, alias="memory.total_budget", meaning="",
        warning="is out of date: with pinned_budget it sums up to memory.total_budget",
    ),
    "scheduler.max_batch_size": Key(
        kinds=(int,), asks=_other_than(0, 1), meaning="no batches are needed: all jobs share all devices",
    ),
    "scheduler.max_batch_wait_ms": Key(
        kinds=(int,), asks=_other_than(10000), meaning="no job waits for others to fill a batch",
    ),
    "scheduler.sort_by_type": Key(
        kinds=(bool,), asks=_other_than(True), meaning="jobs go by priority and age",
    ),
    "srs.param_cache": Key(
        field="params", kinds=(str,), parse=_folder, alias="parameters.folder", meaning="",
    ),
    "srs.preload": Key(
        field="preload", kinds=(list,), default=[], parse=_circuits,
        meaning='circuits whose parameters `cuzk serve` opens before it is ready: ["porep-32g"]',
    ),
    "daemon.listen": Key(
        field="listen", kinds=(str,), default="unix:///run/curio/cuzk.sock", parse=_address,
        meaning='where `cuzk serve` answers: "unix:///path", "host:port"',
    ),
    "daemon.status_listen": Key(
        field="status_listen", kinds=(str,), default="", parse=_tcp_address_or_none,
        meaning="host:port of its status over HTTP; empty: none",
    ),
    "daemon.socket_mode": Key(
        field="socket_mode", kinds=(str,), default="0660", parse=_mode,
        meaning="who may use a unix socket, in octal digits as of chmod",
    ),
    "daemon.socket_group": Key(
        field="socket_group", kinds=(str,), silent="that of the process", meaning="group of a unix socket",
    ),
    "daemon.tls_certificate": Key(
        field="tls_certificate", kinds=(str,), parse=_folder, silent="none: no TLS",
        meaning="file of the server's certificate, PEM; for status over HTTP as well",
    ),
    "daemon.tls_key": Key(
        field="tls_key", kinds=(str,), parse=_folder, silent="none", meaning="file of its key, PEM",
    ),
    "daemon.tls_client_ca": Key(
        field="tls_client_ca", kinds=(str,), parse=_folder, silent="none",
        meaning="clients must show a certificate that this one signed, PEM",
    ),
    "daemon.token_file": Key(
        field="token_file", kinds=(str,), parse=_folder, silent="none",
        meaning="file with a token that clients must send: `authorization: Bearer TOKEN`",
    ),
    "daemon.journal": Key(
        field="journal", kinds=(str,), default="auto",
        meaning="folder of accepted jobs, which outlive the process;"
        ' "auto": the service\'s or user\'s; "": none',
    ),
    "daemon.journal_size": Key(
        field="journal_bytes", kinds=_SIZES, parse=_size, default="32GiB",
        meaning="that inputs of jobs which wait may take there",
    ),
    "daemon.queue_memory": Key(
        field="queue_memory", kinds=_SIZES, parse=_size, default="4GiB",
        meaning="that they may take in memory if the journal has no room",
    ),
    "daemon.drain_timeout": Key(
        field="drain_s", kinds=_DURATIONS, parse=_seconds, default="5m",
        meaning="after a signal, jobs that run may take so long to end; then they are handed back",
    ),
    "daemon.results": Key(
        field="results_kept", kinds=(int,), parse=_positive, default=1000,
        meaning="so many results are kept for clients who ask again",
    ),
    "daemon.results_age": Key(
        field="results_s", kinds=_DURATIONS, parse=_seconds, default="1h", meaning="and so long",
    ),
    "daemon.waiting_age": Key(
        field="waiting_s", kinds=_DURATIONS, parse=_seconds, default="168h",
        meaning="jobs of SubmitProof that were accepted longer ago do not outlive a restart of the daemon",
    ),
    "daemon.readers": Key(
        field="readers", kinds=(int,), parse=_positive, default=2,
        meaning="processes that read and check what clients send",
    ),
    "logging.level": Key(
        field="log_level", kinds=(str,), default="info", parse=_directives,
        meaning=f"of `cuzk serve`: {', '.join(LEVELS)}; or by target, as in `info,cuzk_core=debug`",
    ),
    "logging.format": Key(
        field="log_format", kinds=(str,), default="text", parse=_one_of("text", "json"),
        meaning='of the lines of `cuzk serve`: "text" or "json"',
    ),
}  # fmt: skip
TABLES = sorted({key.partition(".")[0] for key in KEYS})
