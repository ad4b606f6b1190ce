"""An engine for Filecoin proofs: vanilla proofs in, verified proofs out, many at once on all devices.

What `cuzk.prove` does for one input, step by step, is done here by threads that are at different inputs:
`engine.pipeline` decides who does what, `jobs` says how.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from cuzk.engine.events import Subscription
from cuzk.engine.jobs import Job, Priority
from cuzk.engine.pipeline import DevicePlace, Pipeline
from cuzk.engine.recorder import Recorder
from cuzk.engine.settings import Settings
from cuzk.engine.status import EngineStatus
from cuzk.errors import UsageError
from cuzk.events import Notice, OnEvent, ignore, one_at_a_time
from cuzk.groth16.memory_limits import available_memory
from cuzk.groth16.prove import Randomizers
from cuzk.kernels.device.choose import Choice, choose_all, require_gpu_for_limit
from cuzk.proofs.jobs import ProofWork
from cuzk.proofs.kinds import POREP, kind_named, setup_name
from cuzk.proofs.setups import FileSetups, Setups, SyntheticSetups
from cuzk.proofs.sources import InputSource, chosen_partitions, read_input, require_randomizers
from cuzk.sector.pieces import SideInputs

_GIB = 1 << 30
_MOST_MARGIN_BYTES = 5 * _GIB
_MARGIN_SHARE = 10


def usable_host_bytes(margin: int | None = None) -> int:
    """What an engine takes of the host's memory unless it is told: what is free, but for a margin."""
    available = available_memory()
    if margin is None:
        margin = min(_MOST_MARGIN_BYTES, available // _MARGIN_SHARE)
    return max(0, available - margin)


def free_bytes(choice: Choice, limit: int | None) -> int:
    """Of a card, now, up to a limit; 0 where there is none."""
    if choice.card is None:
        return 0
    from cuzk.kernels.device.cuda import CudaDevice

    with CudaDevice(choice.card.uuid, memory_limit=limit) as opened:
        return opened.free_memory()


class Engine:
    """Proves inputs of every kind, as many at once as memory and devices allow.

        with cuzk.Engine(devices=["cuda:0", "cuda:1"]) as engine:
            jobs = [engine.submit(path) for path in paths]
            proofs = [job.wait().require_proof() for job in jobs]

    devices     as after --device; without any, every GPU, or the CPU if there is none
    params      folder that is searched first for Groth16 parameters
    threads     of the host
    memory      bytes of the host that jobs and parameters may take; without it what is free now, less
                `safety_margin`, which without it is 5 GiB, or a tenth of what is free if that is less
    vram_limit  bytes of each GPU's memory that may be taken, if not all that is free
    synthetic   prove under parameters made for this engine, in memory, on GPUs only: for benchmarks
    recorder    hears what is done to partitions: `timeline.record.Timeline` writes it down
    on_event    hears what is prepared at the first input of a kind and size, from one thread or another

    `with` closes it: after a normal end it finishes what is under way, after an exception it cancels that.
    Calls come from any thread. Raises DeviceError, UsageError, ResourceError.
    """

    def __init__(
        self,
        *,
        devices: Sequence[str] = (),
        params: Path | None = None,
        threads: int | None = None,
        memory: int | None = None,
        safety_margin: int | None = None,
        vram_limit: int | None = None,
        settings: Settings | None = None,
        synthetic: bool = False,
        recorder: Recorder | None = None,
        on_event: OnEvent = ignore,
    ) -> None:
        choices = {choice.name: choice for choice in choose_all(devices, threads)}
        if len(choices) < len(devices):
            raise UsageError("a device is named twice", where=", ".join(devices), next="name each once")
        #: UUIDs of GPUs by the names of their devices, as the status has them.
        self.cards = {name: choice.card.uuid for name, choice in choices.items() if choice.card is not None}
        first = next(iter(choices.values()))
        if first.why:
            on_event(Notice(level="info", text=first.why))
        self.settings, self._host = settings or Settings(), first.host
        self._on_event = one_at_a_time(on_event)
        require_gpu_for_limit(first, vram_limit)
        card_bytes = {name: free_bytes(choice, vram_limit) for name, choice in choices.items()}
        self._setups: Setups = (
            SyntheticSetups(choices, card_bytes, self._on_event)
            if synthetic
            else FileSetups(choices, card_bytes, self._on_event, params)
        )
        self._pipeline = Pipeline(
            [DevicePlace(name=name, memory_bytes=nbytes) for name, nbytes in card_bytes.items()],
            host_bytes=usable_host_bytes(safety_margin) if memory is None else memory,
            settings=self.settings,
            recorder=recorder,
        )

    def submit(
        self,
        source: InputSource,
        *,
        beside: SideInputs | None = None,
        request_id: str = "",
        priority: Priority | None = None,
        deadline_s: float | None = None,
        partitions: Sequence[int] | None = None,
        insecure_rs: tuple[int, int] | None = None,
        is_checked: bool = False,
    ) -> Job:
        """A job for an input, which is read and its statement checked.

        source      as of `cuzk.prove`, and so are beside, partitions and insecure_rs
        priority    that of its kind, if none is given
        request_id  a name for the request; the same inputs under the same name are proven once
        deadline_s  seconds from now after which nobody needs the proof
        is_checked  the input has passed `sources.check_input`: that is not done again
        Raises InputError, ParameterError, UsageError; what `engine.pipeline.Pipeline.submit` raises.
        """
        self._pipeline.require_open()
        given = read_input(source, beside)
        if not is_checked:
            given.check_statement()
        chosen = chosen_partitions(given, partitions)
        randomizers = None
        if insecure_rs is not None:
            require_randomizers(insecure_rs, self._on_event)
            randomizers = Randomizers(r=insecure_rs[0], s=insecure_rs[1])
        work = ProofWork(
            given, chosen, self._setups.of(given.shape), self._host, randomizers, is_checked=is_checked
        )
        if priority is None:
            priority = kind_named(given.shape.kind).priority
        return self._pipeline.submit(work, request_id=request_id, priority=priority, deadline_s=deadline_s)

    def preload(self, sector_size: int, *, kind: str = POREP.name, timeout_s: float | None = None) -> bool:
        """Have a kind's parameters of a size ready on every device before there is work. False if they were.

        Raises as `submit` does; ResourceError when it takes longer than the timeout.
        """
        self._pipeline.require_open()
        return self._pipeline.preload(
            self._setups.of(kind_named(kind).shape(sector_size)), timeout_s=timeout_s
        )

    def evict(self, sector_size: int, *, kind: str = POREP.name, timeout_s: float | None = None) -> bool:
        """Give a kind's parameters of a size back, unless jobs use them. False if they were on no device."""
        return self._pipeline.evict(setup_name(kind_named(kind).shape(sector_size)), timeout_s=timeout_s)

    def find(self, job_id: str) -> Job | None:
        """One more handle on a job that is under way or whose result is kept."""
        return self._pipeline.find(job_id)

    def urge(self, job: Job, priority: Priority) -> None:
        """Give a job a higher priority, if it is under way."""
        self._pipeline.urge(job, priority)

    def cancel(self, job_id: str) -> bool:
        """End a job for everyone who waits for it; False if it is not under way."""
        return self._pipeline.cancel(job_id)

    def status(self) -> EngineStatus:
        return self._pipeline.status()

    def events(self, *, limit: int = 1000) -> Subscription:
        """What happens from now on, of which at most `limit` events wait to be taken."""
        return self._pipeline.events(limit=limit)

    def close(self, *, drain: bool = True, timeout_s: float | None = None) -> bool:
        """As `engine.pipeline.Pipeline.close`. Parameters are given back then, also if the engine is kept."""
        is_closed = self._pipeline.close(drain=drain, timeout_s=timeout_s)
        if is_closed:
            self._setups.let_go()
        return is_closed

    def __enter__(self) -> Engine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close(drain=error is None)
