"""Headless Chromium, driven over a pipe with its DevTools protocol; no package is needed."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
KEYS = {"Tab": 9, "Enter": 13, "ArrowUp": 38, "ArrowDown": 40}
PATIENCE = 60.0  # seconds for one answer: a busy machine starts the browser slowly


def executable() -> str | None:
    """The browser of this machine; the variable CHROMIUM names another one."""
    found = (shutil.which(name) for name in (os.environ.get("CHROMIUM", ""), *NAMES) if name)
    return next((path for path in found if path), None)


class Browser:
    """One page of a headless browser. ``problems`` collects what its console complains of."""

    def __init__(self, profile: Path) -> None:
        command = [
            str(executable()),
            *("--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-quic"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *("--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"),
            f"--user-data-dir={profile}",
            "about:blank",
        ]
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()

        def numbers() -> None:
            # the protocol's pipes are descriptors 3 (in) and 4 (out) of the browser
            spare = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(spare[0], 3)
            os.dup2(spare[1], 4)

        self.process = subprocess.Popen(
            command,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=numbers,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.input, self.output = ours_in, ours_out
        self.rest = b""
        self.last = 0
        self.session: str | None = None
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.events: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        os.close(self.input)
        os.close(self.output)

    def call(self, method: str, **parameters):
        """Send a command and return its result."""
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.output, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._read()
            if answer.get("id") == self.last:
                assert "error" not in answer, (method, answer["error"])
                return answer["result"]

    def open(self, path: Path) -> None:
        """Load a file and wait until it is there."""
        self.problems.clear()
        self.requests.clear()
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        while "Page.loadEventFired" not in self.events:
            self._read()

    def ask(self, expression: str):
        """The value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def press(self, key: str) -> None:
        """Press and release one key."""
        known = {"key": key, "code": key, "windowsVirtualKeyCode": KEYS[key]}
        text = {"text": "\r"} if key == "Enter" else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", **known, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", **known)

    def dress(self, *, width: int, scheme: str = "light", medium: str = "") -> None:
        """Set the width of the window, the color scheme and the medium."""
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        wanted = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=medium, features=wanted)

    def screenshot(self, path: Path) -> None:
        """Write the whole page as a picture."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(shot["data"]))

    def _read(self):
        """The next message; complaints and requests are noted on the way."""
        deadline = time.monotonic() + PATIENCE
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.input], [], [], max(deadline - time.monotonic(), 0))
            assert ready, f"the browser gave no answer in {PATIENCE} s"
            block = os.read(self.input, 1 << 20)
            assert block, "the browser has ended"
            self.rest += block
        text, _, self.rest = self.rest.partition(b"\0")
        message = json.loads(text)
        method, parameters = message.get("method", ""), message.get("params", {})
        self.events.append(method)
        if method in ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded"):
            self.problems.append(json.dumps(parameters))
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        return message
