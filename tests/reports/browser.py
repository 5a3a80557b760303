"""A headless Chromium driven over its debugging pipe: no driver and no port, only the browser."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "chrome-headless-shell")


def chromium() -> str | None:
    """The browser's program, where one is installed."""
    return next((found for found in map(shutil.which, NAMES) if found), None)


class Browser:
    """One page of one headless browser."""

    def __init__(self, folder: Path) -> None:
        program = chromium()
        assert program is not None
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()

        def pipes() -> None:
            keep_in, keep_out = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(keep_in, 3)
            os.dup2(keep_out, 4)

        self._process = subprocess.Popen(
            [
                program,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                f"--user-data-dir={folder / 'profile'}",
                "--remote-debugging-pipe",
                "about:blank",
            ],
            close_fds=False,
            preexec_fn=pipes,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self._in, self._out = os.fdopen(ours_in, "rb"), os.fdopen(ours_out, "wb", buffering=0)
        self._number = 0
        self._rest = b""
        self.events: list[dict[str, Any]] = []
        self._session: str | None = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def close(self) -> None:
        self._out.close()
        self._in.close()
        self._process.kill()
        self._process.wait()

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """One command and its answer; events that come meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params} | (
            {"sessionId": self._session} if self._session else {}
        )
        self._out.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer["error"]
                return answer["result"]
            self.events.append(answer)

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._in.fileno(), 1 << 16)
            assert more, "the browser ended"
            self._rest += more
        one, _, self._rest = self._rest.partition(b"\0")
        return json.loads(one)

    def open(self, page: Path, width: int = 1200, height: int = 900) -> None:
        """Opens a file and waits until it has loaded; only its own events are kept."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.events.clear()
        self.send("Page.navigate", url=page.as_uri())
        while not any(one.get("method") == "Page.loadEventFired" for one in self.events):
            self.events.append(self._read())

    def run(self, script: str) -> Any:
        """The value of an expression in the page, awaited."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def until(self, script: str) -> Any:
        """The value of an expression once it is true; false after five seconds of waiting."""
        return self.run(
            f"(async () => {{ for (let i = 0; i < 100 && !({script}); i++) await new Promise(r "
            f"=> setTimeout(r, 50)); return {script}; }})()"
        )

    def key(self, name: str, text: str = "") -> None:
        """Presses a key."""
        self.send("Input.dispatchKeyEvent", type="keyDown", key=name, code=name, **({"text": text} if text else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", key=name, code=name)

    def click(self, selector: str) -> None:
        """Presses the mouse in the middle of an element."""
        x, y = self.run(
            f"(e => {{ e.scrollIntoView({{block: 'center', behavior: 'instant'}}); "
            "const b = e.getBoundingClientRect(); "
            f"return [b.x + b.width / 2, b.y + b.height / 2]; }})(document.querySelector({selector!r}))"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def complaints(self) -> list[str]:
        """What the console or the log said at warning level or above, exceptions, and every request to anything but
        a file.
        """
        said: list[str] = []
        for one in self.events:
            params = one.get("params", {})
            if one.get("method") == "Runtime.exceptionThrown":
                said.append(json.dumps(params["exceptionDetails"]))
            elif one.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("warning", "error"):
                said.append(params["entry"]["text"])
            elif one.get("method") == "Runtime.consoleAPICalled" and params["type"] in ("warning", "error", "assert"):
                said.append(json.dumps(params["args"]))
            elif one.get("method") == "Network.requestWillBeSent" and not params["request"]["url"].startswith(
                ("file:", "data:")
            ):
                said.append(params["request"]["url"])
            elif one.get("method") == "Page.javascriptDialogOpening":
                said.append(params["message"])
        return said
