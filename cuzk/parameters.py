"""Parameters of a kind and sector size as a whole: what the `params` commands do, for Python programs too."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cuzk.api import synthesize
from cuzk.errors import ParameterError
from cuzk.events import Notice, OnEvent, Stopwatch, ignore, one_at_a_time, stage
from cuzk.groth16.files import make_folder
from cuzk.groth16.generate import generate, generate_key
from cuzk.groth16.memory_limits import available_memory
from cuzk.groth16.memory_plan import GenerationPlan
from cuzk.groth16.parameters.checked import CheckedFiles
from cuzk.groth16.parameters.fetch import DEFAULT_GATEWAY, fetch
from cuzk.groth16.parameters.locate import (
    development_folder,
    find_parameters,
    how_to_generate,
    search_folders,
)
from cuzk.groth16.parameters.manifest import ManifestEntry, entry_of
from cuzk.groth16.parameters.params_file import PointCounts, open_parameters
from cuzk.groth16.parameters.verifying_key import VerifyingKey
from cuzk.groth16.parameters.writer import prepare_folder, write_key
from cuzk.groth16.point_rows import PointRows, require_good_points
from cuzk.groth16.qap import point_counts
from cuzk.groth16.values_at_tau import Trapdoors
from cuzk.kernels.device.choose import Choice, choose, choose_device
from cuzk.proofs.kinds import POREP, circuit_of, kind_named
from cuzk.proofs.proving import compute_partition
from cuzk.proofs.sources import read_input
from cuzk.proofs.targets import card_for_ephemeral, ephemeral_target
from cuzk.proofs.warm_up import TO_CHECK_POINTS, TO_GENERATE, TO_GENERATE_BESIDE_GPU, warm_up
from cuzk.sector.claim import SHORT, CircuitShape

if TYPE_CHECKING:
    from cuzk.kernels.device.cuda import CudaDevice


def generate_parameters(
    sector_size: int,
    *,
    kind: str = POREP.name,
    trapdoors: Sequence[int] | None = None,
    out: Path | None = None,
    vk_only: bool = False,
    device: str = "auto",
    threads: int | None = None,
    on_event: OnEvent = ignore,
) -> list[Path]:
    """Insecure development parameters for a sector size: the paths of .params, .vk and .meta.

    kind       of proof, by any of its names
    trapdoors  alpha, beta, gamma, delta, tau; without them random ones, which are forgotten
    out        the folder; without it cuzk's own for development parameters
    vk_only    the key alone, without .params: what others need to check proofs, made in less time and room
    device     auto, cpu, cpu:ifma, cpu:scalar, cuda:N, a PCI id or a UUID; auto is a GPU if there is one
    """
    shape = kind_named(kind).shape(sector_size)
    secrets = Trapdoors.random() if trapdoors is None else Trapdoors.of(trapdoors)
    choice = choose(device, threads)
    if choice.why:
        on_event(Notice(level="info", text=choice.why))
    folder = out or development_folder()
    with stage(on_event, "circuit"):
        circuit = circuit_of(shape)
        counts = point_counts(circuit)
    plan = GenerationPlan.of(None if choice.card else choice.host, counts)
    (plan.of_key if vk_only else plan).require(available_memory())
    if vk_only:
        make_folder(folder)
    else:
        prepare_folder(folder, counts)
    _compile_ahead(choice, counts, on_event)
    with _gpu(choice) as gpu:
        if vk_only:
            key = generate_key(choice.host, circuit, secrets, gpu=gpu, on_event=on_event)
            return _write_key(shape, key, folder, trapdoors)
        path = generate(
            choice.host,
            circuit,
            secrets,
            gpu=gpu,
            folder=folder,
            stem=shape.parameter_stem,
            sector_bytes=sector_size,
            given=trapdoors is not None,
            on_event=on_event,
        )
    checked = CheckedFiles()
    checked.points_are_good(path, as_of=checked.of(path))
    return [path, path.with_suffix(".vk"), path.with_suffix(".meta")]


def _write_key(
    shape: CircuitShape, key: VerifyingKey, folder: Path, trapdoors: Sequence[int] | None
) -> list[Path]:
    return write_key(
        folder,
        shape.parameter_stem,
        key,
        sector_bytes=shape.sector_bytes,
        given_trapdoors=None if trapdoors is None else asdict(Trapdoors.of(trapdoors)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedParameters:
    """Parameters that were good: seconds of each stage and of all, files that remain."""

    device: str
    seconds: dict[str, float]
    total_s: float
    written: tuple[Path, ...]


def try_parameters(
    sector_size: int,
    *,
    kind: str = POREP.name,
    trapdoors: Sequence[int] | None = None,
    out: Path | None = None,
    device: str = "auto",
    vram_limit: int | None = None,
    threads: int | None = None,
    on_event: OnEvent = ignore,
) -> TriedParameters:
    """Development parameters in the memory of a GPU alone, tried and given up: of them the key may be kept.

    Every point is checked to be of order r, and one proof of a made-up input verifies under the key, all rows
    of its circuit checked: whoever proves on this card under such parameters finds all of it in order.

    out     the folder for .vk and .meta; without it nothing is written
    The rest as for `generate_parameters`. Raises DeviceError without a GPU, ProofError when the proof fails.
    """
    choice, begin = choose(device, threads), time.perf_counter()
    card, stages = card_for_ephemeral(choice), Stopwatch(on_event)
    on_event = one_at_a_time(stages.hear)
    if out is not None:
        make_folder(out)  # before the work, not after it
    given = read_input(synthesize(sector_size, kind=kind, threads=threads, on_event=on_event))
    with stage(on_event, "circuit"):
        circuit = circuit_of(given.shape)
    GenerationPlan.of(None, point_counts(circuit)).of_key.require(available_memory())
    secrets = None if trapdoors is None else Trapdoors.of(trapdoors)
    with ephemeral_target(choice.host, card, circuit, vram_limit, on_event, secrets) as (parameters, target):
        target.require_good_points(on_event)
        with stage(on_event, "check"):
            given.check_partition(0, choice.host)
        compute_partition(target, given, 0, circuit, parameters, None, True, on_event)()
    written = [] if out is None else _write_key(given.shape, parameters.key, out, trapdoors)
    return TriedParameters(
        device=card.label,
        seconds=stages.seconds,
        total_s=time.perf_counter() - begin,
        written=tuple(written),
    )


def _compile_ahead(choice: Choice, counts: PointCounts, on_event: OnEvent) -> None:
    if choice.card is None:
        warm_up(choice.host, TO_GENERATE, on_event)
        return
    from cuzk.proofs.warm_up_gpu import warm_up_gpu

    warm_up(choice.host, TO_GENERATE_BESIDE_GPU, on_event)
    warm_up_gpu(choice.host, choice.card, "generate", counts.domain_log2, on_event)


@contextmanager
def _gpu(choice: Choice) -> Iterator[CudaDevice | None]:
    """The card that was chosen, opened, if one was."""
    if choice.card is None:
        yield None
        return
    from cuzk.kernels.device.cuda import CudaDevice

    with CudaDevice(choice.card.uuid) as gpu:
        yield gpu


def verify_parameters(
    sector_size: int,
    *,
    kind: str = POREP.name,
    params: Path | None = None,
    device: str = "auto",
    threads: int | None = None,
    on_event: OnEvent = ignore,
) -> Path:
    """Check the parameters that a search finds for a sector size, whatever is remembered of them; their path.

    Sizes against the circuit, the digest of a published file, every point on the curve and of order r.
    """
    shape = kind_named(kind).shape(sector_size)
    machine = choose_device(device, threads)
    found = find_parameters(shape, explicit=params)
    with stage(on_event, "circuit"):
        parameters = open_parameters(found.path, point_counts(circuit_of(shape)))
    warm_up(machine, TO_CHECK_POINTS, on_event)
    checked = CheckedFiles()
    checked.forget(found.path)
    known = checked.of(found.path)
    entry = entry_of(found.path.name)
    if entry is not None and not found.is_development:
        with stage(on_event, "digest", unit="bytes") as progress:
            checked.require_digest(found.path, entry, progress)
    require_good_points(PointRows(machine, parameters), on_event)
    checked.points_are_good(found.path, as_of=known)
    return found.path


def fetch_parameters(
    sector_size: int,
    *,
    kind: str = POREP.name,
    out: Path | None = None,
    gateway: str | None = None,
    on_event: OnEvent = ignore,
) -> list[Path]:
    """The published files of a sector size, downloaded unless they are in the folder and whole.

    out      the folder; without it the one where other software looks for them
    gateway  the address before a content id
    Raises ParameterError for a size that has no published parameters, else as `groth16.parameters.fetch`.
    """
    folder = out or search_folders()[0]
    return [
        _fetch_missing(entry, folder, gateway or DEFAULT_GATEWAY, on_event)
        for entry in _published(kind_named(kind).shape(sector_size))
    ]


def _published(shape: CircuitShape) -> list[ManifestEntry]:
    entries = [entry_of(shape.parameter_stem + suffix) for suffix in (".vk", ".params")]
    found = [entry for entry in entries if entry is not None]
    if len(found) < len(entries):
        raise ParameterError(
            f"nobody has published parameters for {SHORT[shape.kind]} proofs of {shape.name}",
            next=how_to_generate(shape),
        )
    return found


def _fetch_missing(entry: ManifestEntry, folder: Path, gateway: str, on_event: OnEvent) -> Path:
    path, kind = folder / entry.name, Path(entry.name).suffix
    if path.is_file():
        with stage(on_event, f"digest of {kind}", unit="bytes") as progress:
            whole = CheckedFiles().digest(path, progress) == entry.digest
        if whole:
            on_event(Notice(level="info", text=f"{path} is there already"))
            return path
    with stage(on_event, f"fetch {kind}", unit="bytes") as progress:
        return fetch(entry, folder, gateway=gateway, progress=progress)
