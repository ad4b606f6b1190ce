"""Made-up cards through a real engine: `python3 -m bench.many_cards [--cards 1,2,4,8] [--switch-ms 5]`.

What one Python process costs many cards. Kernels are sleep; what stands around them in a real proof is there:
calls that let go of Python's lock and take it again, preparation, the end of a proof and its check, each with
some of Python's own work. Sectors of as many partitions as there are cards come all at once, sectors of ten
one after another. A card is idle from the end of one kernel to the begin of the next.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import mean
from typing import Any

from bench.tables import markdown
from cuzk.engine.pipeline import DevicePlace, Pipeline
from cuzk.engine.settings import Settings
from cuzk.engine.turn import Turn
from tests.engine.fakes import FakeProver, FakeSetup, FakeWork, fake_proof

#: As often as a proof of a 32 GiB partition does, more or less: calls of a driver before its first kernel and
#: before each other part; parts between which the host waits for the card.
CALLS, PARTS = (20, 3), 7
CALL_US, AFTER_CALL_S = 20, 5e-6
#: Preparation and check change this often between Python and code that needs no lock.
PIECE_S = 0.003
PARTITIONS = 10
_libc = ctypes.CDLL(None)
_PR_SET_TIMERSLACK = 29


@dataclass(frozen=True, kw_only=True)
class Load:
    """Seconds of a partition; `share` of preparation and check is Python, and all of the end."""

    kernels: float = 0.805
    prepare: float = 0.030
    end: float = 0.008
    check: float = 0.020
    share: float = 0.66

    @property
    def python(self) -> float:
        return self.end + self.share * (self.prepare + self.check)


@dataclass(frozen=True, kw_only=True)
class Facts:
    """`ran`: of the time between the first and the last kernel of each card; seconds."""

    cards: int
    ran: float
    least_ran: float
    pause: float
    longest_pause: float
    alone: float


def compute(seconds: float) -> None:
    """In Python, holding its lock whenever nobody else has it; of this thread's own time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


def host_work(seconds: float, share: float) -> None:
    pieces = max(1, round(seconds / PIECE_S))
    for _ in range(pieces):
        compute(seconds * share / pieces)
        time.sleep(seconds * (1 - share) / pieces)


class Card(FakeProver):
    """kernels: begin and end of each; pauses: of a proof, between the device's lock and the last kernel."""

    def __init__(self, setup: Cards, device: str) -> None:
        super().__init__(setup, device)
        self._load = setup.load
        self.kernels: list[tuple[float, float]] = []
        self.pauses: list[float] = []

    def prove(self, prepared: tuple[str, int], turn: Turn) -> bytes:
        took = self._load.kernels / PARTS
        with turn.on_device():
            begun = time.perf_counter()
            for k in range(PARTS):
                for _ in range(CALLS[min(k, 1)]):
                    _libc.usleep(CALL_US)
                    compute(AFTER_CALL_S)
                begin = time.perf_counter()
                _libc.usleep(round(took * 1e6))
                self.kernels.append((begin, begin + took))
                turn.boundary()
            self.pauses.append(time.perf_counter() - begun - self._load.kernels)
        compute(self._load.end)
        return fake_proof(*prepared)

    def close(self) -> None:
        """What it noted stays."""


class Cards(FakeSetup):
    def __init__(self, load: Load) -> None:
        super().__init__()
        self.load, self.provers = load, dict[str, Card]()

    def open(self, device: str) -> Card:
        return self.provers.setdefault(device, Card(self, device))


class Sector(FakeWork):
    setup: Cards

    def prepare(self, partition: int) -> Any:
        host_work(self.setup.load.prepare, self.setup.load.share)
        return super().prepare(partition)

    def holds(self, partition: int, proof: bytes) -> bool:
        host_work(self.setup.load.check, self.setup.load.share)
        return super().holds(partition, proof)


def measured(cards: int, load: Load, settings: Settings, *, sectors: int, switch_s: float | None) -> Facts:
    setup, walls = Cards(load), list[float]()
    places = [DevicePlace(name=f"card {k}", memory_bytes=0) for k in range(cards)]
    before = sys.getswitchinterval()
    with Pipeline(places, host_bytes=1 << 20, settings=settings) as engine:
        if switch_s is not None:
            sys.setswitchinterval(switch_s)
        engine.preload(setup)
        for k in range(max(1, sectors // 3)):
            begin = time.perf_counter()
            require(engine, [Sector(f"alone {k}", tuple(range(PARTITIONS)), setup)])
            walls.append(time.perf_counter() - begin)
        for card in setup.provers.values():
            card.kernels.clear()
            card.pauses.clear()
        require(engine, [Sector(f"sector {k}", tuple(range(cards)), setup) for k in range(sectors)])
    sys.setswitchinterval(before)
    ran = [share_of_time(card.kernels) for card in setup.provers.values()]
    pauses = [pause for card in setup.provers.values() for pause in card.pauses]
    rounds = -(-PARTITIONS // cards)
    return Facts(
        cards=cards,
        ran=mean(ran),
        least_ran=min(ran),
        pause=mean(pauses),
        longest_pause=max(pauses),
        alone=mean(walls) / (rounds * load.kernels),
    )


def require(engine: Pipeline, sectors: Iterable[Sector]) -> None:
    """All of them at once, each proven."""
    for sector, job in [(sector, engine.submit(sector)) for sector in sectors]:
        result = job.wait()
        assert result is not None and result.require_proof() == sector.whole_proof


def share_of_time(kernels: list[tuple[float, float]]) -> float:
    return sum(end - begin for begin, end in kernels) / (kernels[-1][1] - kernels[0][0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--cards", type=lambda text: [int(one) for one in text.split(",")], default=[1, 2, 4, 8]
    )
    parser.add_argument("--sectors", type=int, default=10, help="as many as partitions for each card")
    parser.add_argument("--partition-workers", type=int, default=Settings().partition_workers)
    parser.add_argument("--switch-ms", type=float, help="instead of the engine's own interval")
    for name in ("prepare", "end", "check"):
        parser.add_argument(f"--{name}-ms", type=float, default=getattr(Load, name) * 1000)
    parser.add_argument("--share", type=float, default=Load.share, help="of Python in preparation and check")
    options = parser.parse_args()
    load = Load(
        prepare=options.prepare_ms / 1000,
        end=options.end_ms / 1000,
        check=options.check_ms / 1000,
        share=options.share,
    )
    _libc.prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)  # threads to come inherit it: sleep ends when it should
    settings = Settings(partition_workers=options.partition_workers)
    switch_s = None if options.switch_ms is None else options.switch_ms / 1000
    rows = [
        row_of(measured(cards, load, settings, sectors=options.sectors, switch_s=switch_s))
        for cards in options.cards
    ]
    print(f"{load.kernels * 1000:.0f} ms of kernels, {load.python * 1000:.0f} ms of Python a partition\n")
    heads = ["cards", "kernels ran", "least", "pauses in a proof", "longest", "ten alone, by their kernels"]
    print(markdown(heads, rows))


def row_of(facts: Facts) -> list[str]:
    return [
        str(facts.cards),
        f"{facts.ran:.1%}",
        f"{facts.least_ran:.1%}",
        f"{facts.pause * 1000:.1f} ms",
        f"{facts.longest_pause * 1000:.0f} ms",
        f"{facts.alone:.3f}",
    ]


if __name__ == "__main__":
    main()
