"""Photographs the status page for docs/status-page.md: real threads and browser, work and cards made up.

Takes a minute and a half and needs Chromium: .venv/bin/python docs/figures/status_page.py
"""

from __future__ import annotations

import asyncio
import base64
import struct
import sys
import time
import zlib
from collections import deque
from dataclasses import replace
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from cuzk.engine.jobs import Priority  # noqa: E402
from cuzk.errors import InputError  # noqa: E402
from cuzk.server.card_readings import CardReading, CardReadings  # noqa: E402
from cuzk.server.http import StatusServer  # noqa: E402
from tests.engine.fakes import wrong  # noqa: E402
from tests.server.browser import Browser, Tab  # noqa: E402
from tests.server.playing import GIB, Playing  # noqa: E402

PLAY_S = 66.0
COLOURS = 256
_CARD = CardReading(
    name="NVIDIA H200",
    memory_total_bytes=140 * GIB,
    memory_used_bytes=71 * GIB,
    utilisation_percent=98,
    temperature_c=61,
    power_w=534.0,
    power_limit_w=700.0,
)
#: RGBA of a PNG, by the browser that made it.
_DECODE = """(async () => {
  const data = Uint8Array.from(atob("%s"), (c) => c.charCodeAt(0));
  const picture = await createImageBitmap(new Blob([data]));
  const canvas = new OffscreenCanvas(picture.width, picture.height);
  const pen = canvas.getContext("2d");
  pen.drawImage(picture, 0, 0);
  const pixels = pen.getImageData(0, 0, picture.width, picture.height).data;
  let text = "";
  const size = 32768;
  for (let k = 0; k < pixels.length; k += size) text += String.fromCharCode(...pixels.subarray(k, k + size));
  return btoa(text);
})()"""


class MadeUp(CardReadings):
    """Two cards, a little apart."""

    def __init__(self) -> None:
        super().__init__({})

    def latest(self) -> dict[str, CardReading]:
        return {"cuda:0": _CARD, "cuda:1": replace(_CARD, temperature_c=64, power_w=541.0)}


async def main() -> None:
    with Browser() as browser, Playing(
        ["cuda:0", "cuda:1"], compute_s=1.9, finish_s=0.5, prepare_s=3.1, partition_workers=3, cards=MadeUp()
    ) as playing:  # fmt: skip
        server = StatusServer(playing.observation)
        port = await server.open("127.0.0.1", 0)
        async with browser.tab() as page, browser.tab() as decoder:
            await page.look(width=1280, height=900)
            await page.open(f"http://127.0.0.1:{port}/")
            await play(playing)
            await page.ask("document.querySelector('[name=minutes][value=\"1\"]').click()")
            height = int(await page.ask("document.documentElement.scrollHeight"))
            await asyncio.sleep(1.5)
            wide = await page.picture(width=1280, height=height)
            await page.look(width=390, height=844, dark=True)
            await asyncio.sleep(1.5)
            phone = await page.picture(width=390, height=844)
            await keep(decoder, wide, "status-page.png", width=1280, height=height)
            await keep(decoder, phone, "status-page-phone.png", width=390, height=844)
        await server.close()


async def play(playing: Playing) -> None:
    """A morning's work: sectors, one of which is damaged, one proof that does not hold, one urgent job."""
    playing.setup.fates["cuda:1"] = deque([wrong])
    damaged = playing.work("porep-1000-4811")

    def refuse(partition: int) -> None:
        raise InputError(
            "column does not hash to comm_c",
            where="partition 3, challenge 17, layer 11",
            next="run C1 for this sector again",
        )

    damaged.preparing = refuse
    playing.prove(damaged)
    end, number = time.monotonic() + PLAY_S, 4812
    while time.monotonic() < end:
        if len(playing.status().jobs) < 5:
            playing.submit(f"porep-1000-{number}")
            number += 1
        if number == 4818:
            number += 1
            playing.submit(
                "winpost-1000-68190b084dcb01d1", 1, kind="winning-post", priority=Priority.CRITICAL
            )
        await asyncio.sleep(0.2)


async def keep(decoder: Tab, png: bytes, name: str, *, width: int, height: int) -> None:
    raw = base64.b64decode(await decoder.ask(_DECODE % base64.b64encode(png).decode()))
    rgb = np.frombuffer(raw, np.uint8).reshape(height, width, 4)[:, :, :3]
    (ROOT / "docs/figures" / name).write_bytes(with_palette(rgb))


def with_palette(rgb: np.ndarray) -> bytes:
    """PNG of (h, w, 3) uint8 in its most frequent colours; each of the others becomes the nearest of them."""
    height, width, _ = rgb.shape
    found, which, counts = np.unique(rgb.reshape(-1, 3), axis=0, return_inverse=True, return_counts=True)
    palette = found[np.argsort(-counts)[:COLOURS]]
    nearest = np.empty(len(found), np.uint8)
    for k, colour in enumerate(found.astype(int)):
        nearest[k] = ((palette.astype(int) - colour) ** 2).sum(axis=1).argmin()
    rows = np.zeros((height, width + 1), np.uint8)  # each begins with its filter: none
    rows[:, 1:] = nearest[which].reshape(height, width)
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)),
        (b"PLTE", palette.astype(np.uint8).tobytes()),
        (b"IDAT", zlib.compress(rows.tobytes(), 9)),
        (b"IEND", b""),
    )
    parts = (
        struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
        for name, body in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


if __name__ == "__main__":
    asyncio.run(main())
