"""Headless Chromium, driven through its DevTools: just enough to use a page as a person does."""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import struct
import subprocess
import time
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
_SECONDS = 60.0  # only a page that never gets there waits so long

_KEYS = {
    "Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39,
    "ArrowDown": 40, " ": 32,
}  # fmt: skip


class _Socket:
    """A websocket as RFC 6455 has it, for text."""

    def __init__(self, address: str) -> None:
        host, _, path = address.removeprefix("ws://").partition("/")
        name, _, port = host.partition(":")
        self._socket = socket.create_connection((name, int(port)), timeout=_SECONDS)
        key = base64.b64encode(os.urandom(16)).decode()
        head = (
            f"GET /{path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        )
        self._socket.sendall(
            f"{head}Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        self._file = self._socket.makefile("rb")
        assert b"101" in self._file.readline()
        while self._file.readline().strip():
            pass

    def send(self, text: str) -> None:
        payload, mask = text.encode(), os.urandom(4)
        size = len(payload)
        head = (
            struct.pack("!BBH", 0x81, 0xFE, size)
            if size < 1 << 16
            else struct.pack("!BBQ", 0x81, 0xFF, size)
        )
        masked = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
        self._socket.sendall(head + mask + masked)

    def receive(self) -> str:
        parts = b""
        while True:
            first, size = self._file.read(2)
            if size == 126:
                [size] = struct.unpack("!H", self._file.read(2))
            elif size == 127:
                [size] = struct.unpack("!Q", self._file.read(8))
            content = self._file.read(size)
            if first & 0x0F in (0, 1):
                parts += content
                if first & 0x80:
                    return parts.decode()

    def close(self) -> None:
        self._file.close()
        self._socket.close()


class Browser:
    """One tab. It remembers what the console said, and which addresses were asked for."""

    def __init__(self, folder: Path, *, width: int = 1100, height: int = 900) -> None:
        assert CHROMIUM is not None
        self.console: list[str] = []
        self.requests: list[str] = []
        self._number = 0
        profile = folder / "profile"
        self._process = subprocess.Popen(
            [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--remote-debugging-port=0",
             f"--window-size={width},{height}", f"--user-data-dir={profile}", "about:blank"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        port = self._wait_for(lambda: _first_line(profile / "DevToolsActivePort"))
        asked = Request(f"http://127.0.0.1:{port}/json/new?about:blank", method="PUT")
        with urlopen(asked, timeout=_SECONDS) as reply:
            self._socket = _Socket(json.load(reply)["webSocketDebuggerUrl"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.do(f"{domain}.enable")
        self.size(width, height)

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._process.terminate()
        self._process.wait()

    def _wait_for(self, what: Any) -> Any:
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            if made := what():
                return made
            time.sleep(0.02)
        raise TimeoutError("the browser did not get there")

    def do(self, method: str, **given: Any) -> dict[str, Any]:
        """A command of DevTools, and its result; events that come before it are remembered."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": given}))
        while True:
            message = json.loads(self._socket.receive())
            if message.get("id") == self._number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result
            self._remember(message.get("method", ""), message.get("params", {}))

    def _remember(self, event: str, about: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.requests.append(about["request"]["url"])
        elif event == "Log.entryAdded":
            self.console.append(about["entry"]["text"])
        elif event == "Runtime.consoleAPICalled":
            self.console.append(str(about["args"]))
        elif event == "Runtime.exceptionThrown":
            self.console.append(str(about["exceptionDetails"]))

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        made = self.do("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in made, made["exceptionDetails"]
        return made["result"].get("value")

    def wait(self, script: str) -> None:
        """Wait until an expression is true."""
        self._wait_for(lambda: self.run(f"Boolean({script})"))

    def clear(self) -> None:
        """Leave the page, whose server may have gone, and forget what was said until then."""
        self._leave()
        self.console.clear()
        self.requests.clear()

    def _leave(self) -> None:
        self.do("Page.navigate", url="about:blank")
        self.wait("location.href === 'about:blank'")

    def open(self, address: str, ready: str = "document.body.dataset.ready === 'yes'") -> None:
        """Open an address, in a new document."""
        self._leave()
        self.do("Page.navigate", url=address)
        self.wait(f"location.href !== 'about:blank' && document.body !== null && ({ready})")

    def key(self, *names: str) -> None:
        """Press keys, one after the other."""
        for name in names:
            code = {"key": name, "code": name, "windowsVirtualKeyCode": _KEYS[name]}
            text = {"Enter": "\r", " ": " "}.get(name)
            more = {"text": text} if text else {}
            self.do("Input.dispatchKeyEvent", type="keyDown", **code, **more)
            self.do("Input.dispatchKeyEvent", type="keyUp", **code)

    def type(self, text: str) -> None:
        """Text as a keyboard gives it."""
        self.do("Input.insertText", text=text)

    def click(self, script: str) -> None:
        """Click with the mouse on the element that an expression gives."""
        x, y = self.run(
            f"(() => {{ const e = {script}; e.scrollIntoView({{block: 'center'}});"
            " const box = e.getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.do("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def size(self, width: int, height: int) -> None:
        """The size of the window."""
        self.do(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip

    def scheme(self, name: str) -> None:
        """Dark or light."""
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.do("Emulation.setEmulatedMedia", features=features)

    def picture(self, path: Path) -> None:
        """The whole page."""
        made = self.do("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(made["data"]))


def _first_line(path: Path) -> str:
    try:
        return path.read_text().partition("\n")[0]
    except OSError:
        return ""
