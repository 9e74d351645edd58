"""A page in headless Chromium, over the pipe of its DevTools protocol: a real layout, real keys."""

import json
import os
import shutil
import subprocess
from base64 import b64decode
from contextlib import suppress
from fcntl import F_DUPFD, fcntl

NAMES = ("chromium", "chromium-browser", "google-chrome")
FREE = 20  # from which number on files of a process are


def chromium():
    """The browser's program, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


def _pipe():
    """The two ends of a pipe, away from 3 and 4, which the browser knows its own ends by."""
    low = os.pipe()
    ends = [fcntl(end, F_DUPFD, FREE) for end in low]
    for end in low:
        os.close(end)
    return ends


class Browser:
    """One tab. `complaints`: what the console was told, and what was thrown."""

    def __init__(self, program, profile):
        (ours_in, theirs_out), (theirs_in, ours_out) = _pipe(), _pipe()
        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        options += ["--no-first-run", f"--user-data-dir={profile}", "--remote-debugging-pipe"]
        pipes = f'exec "$0" "$@" 3<&{theirs_in} 4>&{theirs_out} {theirs_in}<&- {theirs_out}>&-'
        self.process = subprocess.Popen(
            ["bash", "-c", pipes, program, *options, "about:blank"],
            pass_fds=(theirs_in, theirs_out),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.incoming, self.outgoing = os.fdopen(ours_in, "rb"), os.fdopen(ours_out, "wb")
        self.numbers, self.tab, self.complaints, self.events = 0, None, [], []
        targets = self.send("Target.getTargets")["targetInfos"]
        target = next(t["targetId"] for t in targets if t["type"] == "page")
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self.tab = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")
        self.send("Emulation.setFocusEmulationEnabled", enabled=True)

    def close(self):
        with suppress(OSError):
            self.outgoing.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.incoming.close()

    def send(self, method, **params):
        """Say something, and wait for the answer."""
        self.numbers += 1
        said = {"id": self.numbers, "method": method, "params": params}
        if self.tab:
            said["sessionId"] = self.tab
        self.outgoing.write(json.dumps(said).encode() + b"\0")
        self.outgoing.flush()
        while True:
            heard = self._heard()
            if heard.get("id") == self.numbers:
                assert "error" not in heard, heard
                return heard["result"]

    def _heard(self):
        data = bytearray()
        while (byte := self.incoming.read(1)) != b"\0":
            assert byte, "the browser has gone"
            data += byte
        heard = json.loads(data)
        method, params = heard.get("method", ""), heard.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.complaints.append(params["exceptionDetails"])
        if method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.complaints.append(params["args"])
        if method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"])
        self.events.append(method)
        return heard

    def open(self, url, width=1400, height=900, dark=False):
        """A page in a window of some size."""
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        for each in ("about:blank", url):  # otherwise what differs behind # alone is not loaded
            self.events.clear()
            self.send("Page.navigate", url=each)
            while "Page.loadEventFired" not in self.events:
                self._heard()

    def run(self, script):
        """What an expression of JavaScript comes to."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key, times=1, shift=False):
        """A key, as from a keyboard."""
        codes = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowRight": 39, "End": 35, "Home": 36}
        of = {"key": key, "code": key, "windowsVirtualKeyCode": codes[key], "modifiers": 8 * shift}
        text = {"text": "\r"} if key == "Enter" else {}
        for _ in range(times):
            self.send("Input.dispatchKeyEvent", type="keyDown", **of, **text)
            self.send("Input.dispatchKeyEvent", type="keyUp", **of)

    def type(self, text):
        self.send("Input.insertText", text=text)

    def picture(self, file, whole=False):
        """A PNG of the window, or of the whole page."""
        found = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        file.write_bytes(b64decode(found["data"]))
