"""Chromium without a window, driven over its DevTools protocol: pages loaded, looked into, photographed."""

from __future__ import annotations

import asyncio
import base64
import shutil
import subprocess
import tempfile
import time
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
_PATIENCE_S = 60.0


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
        said = await asyncio.wait_for(answer, _PATIENCE_S)
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

    async def picture(self, *, width: int, height: int) -> bytes:
        """PNG of the page from its top left corner."""
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        said = await self.do("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        return base64.b64decode(said["data"])

    async def close(self) -> None:
        await self.do("Page.close")
        await self._socket.close()
        await self._reading


class Browser:
    """One process, from `with`; every test has tabs of its own in it."""

    def __enter__(self) -> Browser:
        assert CHROMIUM is not None
        self._folder = tempfile.TemporaryDirectory(prefix="cuzk-chromium-", ignore_cleanup_errors=True)
        command = [CHROMIUM, *_FLAGS, f"--user-data-dir={self._folder.name}", "about:blank"]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        file, end = Path(self._folder.name) / "DevToolsActivePort", time.monotonic() + _PATIENCE_S
        while not (file.exists() and (lines := file.read_text().split())):
            assert time.monotonic() < end, "the browser did not start"
            time.sleep(0.05)
        self._url = f"http://127.0.0.1:{lines[0]}"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(_PATIENCE_S)
        self._folder.cleanup()

    @asynccontextmanager
    async def tab(self) -> AsyncIterator[Tab]:
        """A new one, with nothing stored, closed afterwards."""
        async with aiohttp.ClientSession() as session:
            async with session.put(f"{self._url}/json/new?about:blank") as response:
                page = await response.json()
            socket = await session.ws_connect(page["webSocketDebuggerUrl"], max_msg_size=1 << 27)
            tab = Tab(socket)
            try:
                yield tab
            finally:
                await tab.close()
