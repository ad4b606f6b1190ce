"""Numbers as people write them: sizes ("2KiB", "32GiB"), counts ("10.2 M"), durations ("1 min 05 s", "5m").

Parsing refuses what it does not understand with a ValueError whose message is fit for users.
"""

from __future__ import annotations

import re
from fractions import Fraction

BINARY = ("B", "KiB", "MiB", "GiB", "TiB")
_FACTORS = {unit: 1024**power for power, unit in enumerate(BINARY)}
_FACTORS |= {unit: 1000**power for power, unit in enumerate(("KB", "MB", "GB", "TB"), start=1)}
_NUMBER = r"\d+(?:\.\d+)?"
_SIZE = re.compile(rf"({_NUMBER}) ?([KMGT]i?B|B)?", re.ASCII)
_SECONDS = {"h": Fraction(3600), "m": Fraction(60), "s": Fraction(1), "ms": Fraction(1, 1000)}
_DURATION = re.compile(rf"(?:{_NUMBER} ?(?:h|ms|m|s) ?)+", re.ASCII)
_DURATION_PART = re.compile(rf"({_NUMBER}) ?(h|ms|m|s)", re.ASCII)


def parse_size(text: str) -> int:
    """Bytes of "2KiB", "32 GiB", "1.5GiB", "500MB" or "2048". Fractions must come out as whole bytes."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size; write for example 2048, 2KiB, 512MiB or 32GiB")
    size = Fraction(match[1]) * _FACTORS[match[2] or "B"]
    if size.denominator != 1:
        raise ValueError(f"{text!r} is not a whole number of bytes")
    return int(size)


def parse_duration(text: str) -> float:
    """Seconds of "5m", "1h30m", "1.5 h", "500ms" or "300"."""
    text = text.strip()
    if re.fullmatch(_NUMBER, text, re.ASCII):
        return float(text)
    if not _DURATION.fullmatch(text):
        raise ValueError(f"{text!r} is not a duration; write for example 300, 5m, 1h30m or 500ms")
    return float(sum(Fraction(number) * _SECONDS[unit] for number, unit in _DURATION_PART.findall(text)))


def format_size(size: int) -> str:
    """The largest binary unit: "2 KiB" where it is exact, else three digits, "1.04 GiB"."""
    power = min(max(size.bit_length() - 1, 0) // 10, len(BINARY) - 1)
    factor = 1024**power
    if size % factor == 0:
        return f"{size // factor} {BINARY[power]}"
    return f"{_three_digits(size / factor)} {BINARY[power]}"


def format_count(count: float, unit: str = "") -> str:
    """Counts and rates: "313", "10.2 M points"; bytes take binary units."""
    if unit == "bytes":
        return format_size(round(count))
    for factor, prefix in ((1e9, " G"), (1e6, " M"), (1e4, " k")):
        if count >= factor:
            scale = 1e3 if prefix == " k" else factor
            return f"{_three_digits(count / scale)}{prefix} {unit}".rstrip()
    return f"{count:.0f} {unit}".rstrip()


def format_duration(seconds: float) -> str:
    """ "12 ms", "3.21 s", "1 min 05 s", "2 h 03 min"."""
    if seconds < 0.0995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 59.95:
        return f"{_three_digits(seconds)} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def _three_digits(value: float) -> str:
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f}"
