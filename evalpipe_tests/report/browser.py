"""A headless Chromium over its debugging pipe: just enough to look at a page. No network, no driver."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
    "--disable-background-networking", "--disable-sync", "--disable-component-update", "--no-first-run",
    "--disable-dev-shm-usage", "--disable-extensions", "--proxy-server=127.0.0.1:9", "--force-color-profile=srgb",
)  # fmt: skip


def find() -> str | None:
    """Path of a Chromium, or None; EVALPIPE_CHROMIUM names one."""
    return os.environ.get("EVALPIPE_CHROMIUM") or next((p for n in NAMES if (p := shutil.which(n))), None)


class Browser:
    """One Chromium with one page."""

    def __init__(self, path: str) -> None:
        self._profile = tempfile.mkdtemp(prefix="evalpipe-chromium-")
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def wire() -> None:
            # The protocol wants descriptors 3 and 4; park ours above them first.
            a, b = os.dup(to_browser), os.dup(from_browser)
            os.dup2(a, 3)
            os.dup2(b, 4)

        self._process = subprocess.Popen(
            [path, *FLAGS, f"--user-data-dir={self._profile}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=wire, close_fds=False,
        )  # fmt: skip
        os.close(to_browser)
        os.close(from_browser)
        self._buffer, self._next = b"", 0
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session: str | None = None
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    _session = None

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)
        shutil.rmtree(self._profile, ignore_errors=True)

    def _message(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, until - time.monotonic()))
            chunk = os.read(self._read, 1 << 20) if ready else b""
            if not chunk:
                raise TimeoutError("the browser did not answer")
            self._buffer += chunk
        raw, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(raw)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self._next += 1
        message: dict[str, Any] = {"id": self._next, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + 40
        while True:
            got = self._message(until)
            if got.get("id") == self._next:
                if "error" in got:
                    raise RuntimeError(got["error"]["message"])
                return got["result"]
            self.events.append(got)

    def open(self, path: Path, width: int = 1280, height: int = 1000, theme: str = "light") -> None:
        self.events.clear()
        self.size(width, height)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": theme}])
        self.call("Page.navigate", url=path.as_uri())
        until = time.monotonic() + 40
        while not any(e.get("method") == "Page.loadEventFired" for e in self.events):
            self.events.append(self._message(until))

    def size(self, width: int, height: int = 1000) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )

    def run(self, script: str) -> Any:
        result = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["text"])
        return result["result"].get("value")

    def key(self, name: str) -> None:
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name)

    def messages(self) -> list[str]:
        """Console messages, exceptions and log entries since the page was opened."""
        kinds = ("Runtime.consoleAPICalled", "Runtime.exceptionThrown", "Log.entryAdded")
        return [json.dumps(e["params"])[:400] for e in self.events if e.get("method") in kinds]

    def requests(self) -> list[str]:
        return [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]

    def picture(self, path: Path, clip: tuple[int, int, int, int] | None = None) -> None:
        params: dict[str, Any] = {"captureBeyondViewport": True}
        if clip:
            x, y, width, height = clip
            params["clip"] = {"x": x, "y": y, "width": width, "height": height, "scale": 1}
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", **params)["data"]))

    def pdf(self) -> bytes:
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])
