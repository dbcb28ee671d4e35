"""Debian's chromium, steered over its DevTools protocol: pages are opened, used by mouse and keys, photographed, and everything they complain about is kept.

`python -m testbed.browser` provides it: one that is there is taken, else `apt-get` installs it where that may be done.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import itertools
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import aiohttp

from testbed.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
HOW: Final = "run `make browser` to get one"
_LOOK: Final = 0.05
_KEYS: Final = {"Enter": ("\r", 13), "Tab": ("", 9), "Escape": ("", 27), "End": ("", 35), "Home": ("", 36), "ArrowLeft": ("", 37), "ArrowUp": ("", 38), "ArrowRight": ("", 39), "ArrowDown": ("", 40), "PageDown": ("", 34)}  # fmt: skip


class BrowserError(Exception):
    """A browser that cannot be had, or a page that did not do what was waited for."""


def find() -> str | None:
    """Return where a browser is; None if it has to be installed first."""
    given = os.environ.get("PUMICE_BROWSER", "")
    return given or next((path for name in NAMES if (path := shutil.which(name))), None)


def provide() -> str:
    """Return where a browser is; install it if need be."""
    if (found := find()) is not None:
        return found
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise BrowserError(
            "there is no chromium, and it can be installed by apt-get as root alone: install one yourself, or name it in PUMICE_BROWSER"
        )
    for command in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", "chromium", "fonts-dejavu-core"]):  # fmt: skip
        done = subprocess.run(["apt-get", *command], capture_output=True, text=True, check=False)
        if done.returncode:
            raise BrowserError(
                f"apt-get {command[0]} failed with status {done.returncode}: {done.stderr.strip()[-500:]}"
            )
    if (found := find()) is None:
        raise BrowserError("apt-get has installed chromium, and it is not on PATH")
    return found


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[Browser]:
    """Run a browser with a profile of its own while the body runs."""
    program = find()
    if program is None:
        raise BrowserError(f"there is no browser: {HOW}")
    with tempfile.TemporaryDirectory(prefix="pumice-browser-", ignore_cleanup_errors=True) as profile:
        sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []
        process = await asyncio.create_subprocess_exec(
            program,
            "--headless=new",
            "--remote-debugging-port=0",
            f"--user-data-dir={profile}",
            *sandbox,
            *(
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--disable-extensions",
                "--hide-scrollbars",
            ),
            *("--disable-background-networking", "--disable-component-update", "--force-color-profile=srgb"),
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            port, path = await _listening(Path(profile) / "DevToolsActivePort", process)
            async with (
                aiohttp.ClientSession() as session,
                session.ws_connect(f"ws://127.0.0.1:{port}{path}", max_msg_size=0) as socket,
            ):
                browser = Browser(socket)
                listening = asyncio.create_task(browser.listen())
                try:
                    yield browser
                finally:
                    listening.cancel()
        finally:
            if process.returncode is None:
                process.terminate()
                try:
                    await asyncio.wait_for(process.wait(), 10)
                except TimeoutError:
                    process.kill()
                    await process.wait()


async def _listening(file: Path, process: asyncio.subprocess.Process) -> tuple[str, str]:
    for _ in range(int(PATIENCE / _LOOK)):
        if process.returncode is not None:
            raise BrowserError(f"the browser ended with status {process.returncode} before it listened")
        lines = _lines(file)
        if len(lines) == 2:
            return lines[0], lines[1]
        await asyncio.sleep(_LOOK)
    raise BrowserError(f"the browser did not listen within {PATIENCE:g} s")


def _lines(file: Path) -> list[str]:
    return file.read_text().splitlines() if file.exists() else []


class Browser:
    """One browser; calls go over one socket."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._pages: dict[str, Page] = {}

    async def listen(self) -> None:
        """Take what the browser says."""
        async for message in self._socket:
            told = message.json()
            if "id" in told:
                waiting = self._waiting.pop(told["id"], None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(told)
            elif (page := self._pages.get(told.get("sessionId", ""))) is not None:
                page.hear(told["method"], told["params"])

    async def call(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol."""
        number = next(self._numbers)
        waiting = self._waiting[number] = asyncio.get_running_loop().create_future()
        message = {"id": number, "method": method, "params": parameters}
        await self._socket.send_json(message | ({"sessionId": session} if session else {}))
        answer = await asyncio.wait_for(waiting, PATIENCE)
        if "error" in answer:
            raise BrowserError(f"{method}: {answer['error'].get('message')}")
        result: dict[str, Any] = answer["result"]
        return result

    async def open(self, address: str, *, width: int = 1280, height: int = 900, dark: bool = False) -> Page:
        """Open a page of its own, and go to an address."""
        context = (await self.call("Target.createBrowserContext"))["browserContextId"]
        target = (await self.call("Target.createTarget", url="about:blank", browserContextId=context))["targetId"]
        session = (await self.call("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        page = self._pages[session] = Page(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            await page.call(f"{domain}.enable")
        await page.resize(width, height)
        scheme = "dark" if dark else "light"
        await page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        await page.call("Page.navigate", url=address)
        return page


class Page:
    """One page; `problems` is everything it complained about: errors in the console, exceptions, requests that its policy refused."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser = browser
        self._session = session
        self.problems: list[str] = []
        self.requests: list[str] = []

    def hear(self, method: str, told: dict[str, Any]) -> None:
        """Take an event."""
        if method == "Runtime.exceptionThrown":
            detail = told["exceptionDetails"]
            self.problems.append(str(detail.get("exception", {}).get("description") or detail["text"]))
        elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
            self.problems.append(" ".join(str(each.get("value", each.get("description"))) for each in told["args"]))
        elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol on this page."""
        return await self._browser.call(method, self._session, **parameters)

    async def resize(self, width: int, height: int) -> None:
        """Give the window another size."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    async def evaluate(self, expression: str) -> Any:
        """Evaluate JavaScript, and await what it promises."""
        told = await self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in told:
            detail = told["exceptionDetails"]
            raise BrowserError(f"{expression}: {detail.get('exception', {}).get('description', detail['text'])}")
        return told["result"].get("value")

    async def until(self, expression: str) -> Any:
        """Wait until JavaScript gives something true."""
        for _ in range(int(PATIENCE / _LOOK)):
            if found := await self.evaluate(f"((found) => found instanceof Node || found)({expression})"):
                return found
            await asyncio.sleep(_LOOK)
        text = await self.evaluate("document.body.innerText.slice(0, 2000)")
        raise BrowserError(f"{expression} did not become true; the page says: {text}; it complained: {self.problems}")

    async def text(self, words: str) -> None:
        """Wait until the page shows some words."""
        await self.until(f"document.body?.innerText.includes({words!r})")

    async def press(self, key: str, *, shift: bool = False) -> None:
        """Press a key, and let it go."""
        text, code = _KEYS.get(key, (key, 0))
        pressed = {"key": key, "windowsVirtualKeyCode": code or ord(key.upper()), "modifiers": 8 if shift else 0}
        await self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **pressed)
        await self.call("Input.dispatchKeyEvent", type="keyUp", **pressed)

    async def write(self, text: str) -> None:
        """Type into whatever has the focus."""
        await self.call("Input.insertText", text=text)

    async def click(self, selector: str) -> None:
        """Click in the middle of an element."""
        x, y = await self.until(
            f"(() => {{ const found = document.querySelector({selector!r}); if (!found) return null; found.scrollIntoView({{block: 'center'}});"
            " const box = found.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            await self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    async def screenshot(self) -> bytes:
        """Photograph what is in the window."""
        shot = await self.call("Page.captureScreenshot", format="png")
        return base64.b64decode(shot["data"])


def main() -> int:
    """Provide a browser; print where it is."""
    try:
        print(provide())
    except BrowserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
