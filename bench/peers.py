"""Other programs' times for the same work, each with its source. They were not measured by this run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

_ON = "two vCPUs of a Xeon, family 6 model 207 (Emerald Rapids class), November 2026"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """times: what the peer takes by n, in words; for n = 0 its rate, which holds for every n."""

    name: str
    source: str
    times: Mapping[int, str]

    def time(self, n: int) -> str:
        return self.times.get(n, self.times.get(0, ""))


def _blst(times: Mapping[int, str]) -> Peer:
    return Peer(name="blst", source=f"0.3, assembly, called from a Rust loop on {_ON}", times=times)


def _bellperson(times: Mapping[int, str]) -> Peer:
    return Peer(name="bellperson", source=f"0.27 on the CPU, {_ON}", times=times)


FQ_PRODUCT = _blst({0: "22.9 M/s"})
FQ_SQUARE = _blst({0: "24.6 M/s"})
FR_PRODUCT = _blst({0: "28.2 M/s"})
FQ_SUM = _blst({0: "64.5 M/s"})
FQ_INVERSION = _blst({0: "278 k/s"})
MSM_G1 = _blst({1 << 16: "0.374 s", 1 << 18: "1.36 s", 1 << 20: "5.64 s", 1 << 22: "15.0 s"})
MSM_G2 = _blst({1 << 12: "0.18 s", 1 << 14: "0.57 s"})
SELECTED_SUM = _blst({1 << 20: "0.442 s"})
GENERATION = _bellperson({2048: "27.5 min"})
PROOF = _bellperson({2048: "117-150 s"})


def _sppark(times: Mapping[int, str]) -> Peer:
    return Peer(name="sppark", source="CUDA C++, data on the card, on an H200 as well", times=times)


SPPARK_FIELDS = {
    "Fq product": _sppark({0: "27.2 G/s"}),
    "Fq square": _sppark({0: "33.9 G/s"}),
    "Fq sum": _sppark({0: "418 G/s"}),
    "Fq difference": _sppark({0: "439 G/s"}),
    "Fr product": _sppark({0: "59.7 G/s"}),
    "Fr square": _sppark({0: "72 G/s"}),
}
SPPARK_MIXED_ADDITION = _sppark({0: "2.5 G/s"})
SPPARK_NTT = _sppark(
    {1 << 20: "0.26 ms", 1 << 22: "1.05 ms", 1 << 24: "4.4 ms", 1 << 26: "20.9 ms", 1 << 27: "42.3 ms"}
)
SPPARK_MSM_G1 = _sppark(
    {
        1 << 16: "7.4 ms",
        1 << 18: "21.2 ms",
        1 << 20: "20.9 ms",
        1 << 22: "52.7 ms",
        1 << 24: "155 ms",
        1 << 26: "555 ms",
    }
)
SPPARK_MSM_G2 = _sppark({1 << 16: "10.1 ms", 1 << 18: "29.3 ms", 1 << 20: "47.7 ms"})
SPPARK_SELECTED = _sppark({0: "1.9-2.2 G/s"})
