"""Commands that talk to a daemon, which `cuzk serve` or Curio's own may be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cuzk import view
from cuzk.cli.options import PATH, config_option, debug_option, json_option, with_options

if TYPE_CHECKING:
    from cuzk.config import Config
    from cuzk.server.client import Client


@dataclass(frozen=True, slots=True, kw_only=True)
class DaemonFlags:
    """How a daemon is reached; None where the command line is silent."""

    address: str | None
    token_file: Path | None
    authority: Path | None

    def connect(self, config: Config) -> Client:
        """By the command line, else where the configuration says that the daemon listens."""
        from cuzk.cli.daemon import require_libraries

        require_libraries("grpc")
        from cuzk.server.access import Access
        from cuzk.server.client import Client

        token = Access(token_file=self.token_file or config.token_file).token()
        return Client(self.address or config.listen, token=token, authority=self.authority)


_OPTIONS = (
    click.option("-a", "--addr", "address", metavar="ADDRESS",
                 help="Of the daemon: http://host:port, host:port or unix:///path."),
    click.option("--token-file", type=PATH, help="File with the token that the daemon asks for."),
    click.option("--tls-ca", "authority", type=PATH, help="Certificate that vouches for the daemon's."),
)  # fmt: skip


def daemon_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """All of them; the command gets them as `daemon`."""

    @wraps(function)
    def call(**given: Any) -> Any:
        flags = DaemonFlags(**{name: given.pop(name) for name in DaemonFlags.__dataclass_fields__})
        return function(daemon=flags, **given)

    return with_options(call, _OPTIONS)


def _command(name: str) -> Callable[[Callable[..., Any]], click.Command]:
    def wrap(function: Callable[..., Any]) -> click.Command:
        return click.command(name)(daemon_options(json_option(config_option(debug_option(function)))))

    return wrap


@_command("status")
def status(daemon: DaemonFlags, settings: Config, as_json: bool) -> None:
    """Show how the daemon stands."""
    from cuzk.view.daemon import facts, show_status

    with daemon.connect(settings) as client:
        answer = client.status()
    if as_json:
        view.show_json(facts(answer))
    else:
        show_status(answer)


@_command("metrics")
def metrics(daemon: DaemonFlags, settings: Config, as_json: bool) -> None:
    """Print the daemon's metrics, as Prometheus reads them."""
    with daemon.connect(settings) as client:
        text = client.metrics()
    if as_json:
        view.show_json({"prometheus_text": text})
    else:
        click.echo(text, nl=False)


def _circuit(function: Callable[..., Any]) -> Callable[..., Any]:
    """As an argument, or after the option that Curio's tool has."""

    @wraps(function)
    def call(*, circuit: str | None, option: str | None, **given: Any) -> Any:
        if (circuit is None) is (option is None):
            raise click.UsageError("name one circuit, for example porep-32g")
        return function(circuit=circuit or option, **given)

    named = click.option("-c", "--circuit-id", "option", metavar="ID", help="The same as the argument.")
    return click.argument("circuit", required=False)(named(call))


@_command("preload")
@_circuit
def preload(circuit: str, daemon: DaemonFlags, settings: Config, as_json: bool) -> None:
    """Have the parameters of CIRCUIT (porep-32g, snap-32g, wpost-32g, winning-32g) ready on every device."""
    with daemon.connect(settings) as client:
        answer = client.preload(circuit)
    if as_json:
        view.show_json({"already_loaded": answer.already_loaded, "load_time_ms": answer.load_time_ms})
    elif answer.already_loaded:
        click.echo(f"{circuit} already loaded")
    else:
        click.echo(f"{circuit} loaded in {answer.load_time_ms} ms")


@_command("evict")
@_circuit
def evict(circuit: str, daemon: DaemonFlags, settings: Config, as_json: bool) -> None:
    """Give the memory of CIRCUIT's parameters back, unless jobs use them."""
    with daemon.connect(settings) as client:
        answer = client.evict(circuit)
    if as_json:
        view.show_json({"was_loaded": answer.was_loaded, "freed_bytes": answer.freed_bytes})
    elif answer.was_loaded:
        click.echo(f"{circuit} evicted, {answer.freed_bytes} bytes freed")
    else:
        click.echo(f"{circuit} not loaded, or in use")


@_command("cancel")
@click.argument("job_id")
def cancel(job_id: str, daemon: DaemonFlags, settings: Config, as_json: bool) -> None:
    """End the job JOB_ID for everyone who waits for it."""
    with daemon.connect(settings) as client:
        was_running = client.cancel(job_id)
    if as_json:
        view.show_json({"was_running": was_running})
    else:
        click.echo(f"{job_id} cancelled" if was_running else f"{job_id} is not under way")


COMMANDS = (status, metrics, preload, evict, cancel)
