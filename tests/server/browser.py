"""Chromium without a window, driven over its DevTools protocol: pages loaded, looked into, photographed."""

from __future__ import annotations

import asyncio
import base64
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)
_START_S = 60.0


class Tab:
    """One page. `errors` are exceptions and messages of its console that should not be there."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._answers: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._number = 0
        self.errors: list[str] = []
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        async for message in self._socket:
            said = message.json()
            if "id" in said:
                self._answers.pop(said["id"]).set_result(said)
            elif said["method"] == "Runtime.exceptionThrown":
                self.errors.append(str(said["params"]["exceptionDetails"]))
            elif said["method"] == "Log.entryAdded" and said["params"]["entry"]["level"] == "error":
                self.errors.append(str(said["params"]["entry"]))

    async def do(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        answer = self._answers[self._number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": self._number, "method": method, "params": params})
        said = await asyncio.wait_for(answer, _START_S)
        assert "error" not in said, said
        result: dict[str, Any] = said["result"]
        return result

    async def open(self, url: str) -> None:
        for domain in ("Page", "Runtime", "Log"):
            await self.do(f"{domain}.enable")
        await self.do("Page.navigate", url=url)

    async def ask(self, expression: str) -> Any:
        """The value of a JavaScript expression."""
        said = await self.do("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    async def text(self, selector: str) -> str:
        """What a reader sees of an element."""
        return str(await self.ask(f"document.querySelector({selector!r}).innerText"))

    async def until(self, expression: str, seconds: float = 30.0) -> None:
        """Waits until an expression is true."""
        end = asyncio.get_running_loop().time() + seconds
        while not await self.ask(expression):
            assert asyncio.get_running_loop().time() < end, f"it never came: {expression}"
            await asyncio.sleep(0.05)

    async def look(
        self, *, width: int = 1440, height: int = 900, dark: bool = False, still: bool = False
    ) -> None:
        """As a window of that size, in a scheme of colours, perhaps without motion."""
        await self.do(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip
        features = [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"},
        ]
        await self.do("Emulation.setEmulatedMedia", features=features)

    async def key(self, name: str) -> None:
        """A key pressed and let go."""
        for kind in ("keyDown", "keyUp"):
            await self.do("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    async def picture(self, *, whole: bool = False) -> bytes:
        """PNG of the window, or of the whole page."""
        said = await self.do("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(said["data"])

    async def close(self) -> None:
        await self._socket.close()
        await self._reading


@asynccontextmanager
async def chromium() -> AsyncIterator[Tab]:
    """A browser with one empty page, ended afterwards."""
    assert CHROMIUM is not None
    with tempfile.TemporaryDirectory(prefix="cuzk-chromium-", ignore_cleanup_errors=True) as folder:
        process = await asyncio.create_subprocess_exec(
            CHROMIUM, *_FLAGS, f"--user-data-dir={folder}", "about:blank",
            stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            port = await _port(Path(folder) / "DevToolsActivePort")
            async with aiohttp.ClientSession() as session:
                async with session.get(f"http://127.0.0.1:{port}/json") as response:
                    pages = [page for page in await response.json() if page["type"] == "page"]
                socket = await session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=1 << 27)
                tab = Tab(socket)
                yield tab
                await tab.close()
        finally:
            process.terminate()
            await process.wait()


async def _port(file: Path) -> int:
    end = asyncio.get_running_loop().time() + _START_S
    while not (file.exists() and (lines := file.read_text().split())):
        assert asyncio.get_running_loop().time() < end, "the browser did not start"
        await asyncio.sleep(0.05)
    return int(lines[0])
