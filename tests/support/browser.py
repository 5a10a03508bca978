"""Drives headless Chromium through its debugging pipe, without a driver program or a network."""

import base64
import fcntl
import itertools
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import types
from typing import Any

Json = dict[str, Any]
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
KEYS = {"Enter": 13, "Escape": 27, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38,
        "ArrowRight": 39, "ArrowDown": 40, "Tab": 9, "Space": 32, "PageUp": 33,
        "PageDown": 34, "+": 187, "-": 189}


def program() -> str | None:
    """Returns the path of Chromium; None if it is not installed."""
    return next(filter(None, map(shutil.which, PROGRAMS)), None)


class Browser:
    """Shows one page at a time. Records its errors and warnings and the URLs that it requests."""

    def __init__(self) -> None:
        found = program()
        assert found is not None
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_browser, self.writes = os.pipe()
        self.reads, from_browser = os.pipe()

        def pipes() -> None:  # Chromium reads from descriptor 3 and writes to 4
            ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (to_browser, from_browser)]
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self.process = subprocess.Popen(
            [found, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
             "--remote-debugging-pipe", f"--user-data-dir={self.folder.name}",
             "--disable-background-networking", "--no-first-run", "about:blank"],
            preexec_fn=pipes, close_fds=False, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.numbers = itertools.count(1)
        self.buffer = b""
        self.session: str | None = None
        self.problems: list[str] = []
        self.requests: list[str] = []
        self.loaded = False
        page = self.call("Target.createTarget", url="about:blank")["targetId"]
        attached = self.call("Target.attachToTarget", targetId=page, flatten=True)
        self.session = str(attached["sessionId"])
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: types.TracebackType | None) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.writes)
        os.close(self.reads)
        self.folder.cleanup()

    def call(self, method: str, **params: Any) -> Json:
        """Sends a command and returns its result; records the events received before the result."""
        number = next(self.numbers)
        message: Json = {"id": number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writes, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.next_message()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                result: Json = answer["result"]
                return result
            self.note(answer)

    def next_message(self) -> Json:
        while b"\0" not in self.buffer:
            more = os.read(self.reads, 1 << 20)
            if not more:
                raise RuntimeError("Chromium exited")
            self.buffer += more
        text, self.buffer = self.buffer.split(b"\0", 1)
        message: Json = json.loads(text)
        return message

    def note(self, event: Json) -> None:
        method, params = event.get("method"), event.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.problems.append(str(params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.problems.append(str(params["entry"]["text"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(str(params["request"]["url"])[:100])
        elif method == "Page.loadEventFired":
            self.loaded = True

    def open(self, file: pathlib.Path, width: int = 1200, height: int = 900, dark: bool = False,
             scripts: bool = True, media: str = "") -> None:
        """Loads a file and waits until the page is loaded."""
        self.problems, self.requests, self.loaded = [], [], False
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme])
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call("Page.navigate", url=file.resolve().as_uri())
        while not self.loaded:
            self.note(self.next_message())

    def evaluate(self, expression: str) -> Any:
        """Returns the value of a JavaScript expression after the next frame."""
        wrapped = ("new Promise(done => requestAnimationFrame(() => setTimeout(() => done("
                   f"{expression}))))")
        answer = self.call("Runtime.evaluate", expression=wrapped, awaitPromise=True,
                           returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(str(answer["exceptionDetails"]))
        return answer["result"].get("value")

    def press(self, *keys: str) -> None:
        for key in keys:
            name = " " if key == "Space" else key
            text = {"Enter": "\r", "Space": " "}.get(key)
            event: Json = {"key": name, "code": key, "windowsVirtualKeyCode": KEYS[key]}
            if text:
                event["text"] = text
            self.call("Input.dispatchKeyEvent", type="keyDown", **event)
            self.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def screenshot(self, file: pathlib.Path, whole: bool = True) -> None:
        shot = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(shot["data"]))
