"""Headless Chromium, driven through its DevTools protocol with Python's standard library."""

import base64
import http.client
import itertools
import json
import os
import pathlib
import shutil
import socket
import subprocess
import time
import unittest

import websocket
from harness import DEADLINE, clean_environment, die_with_parent, eventually, find_program

ARGUMENTS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-default-apps", "--disable-extensions", "--disable-dev-shm-usage",
    "--disable-features=Translate,OptimizationHints,MediaRouter", "--hide-scrollbars",
    "--no-proxy-server", "--remote-debugging-port=0", "--js-flags=--expose-gc",
    # The timers of a headless browser are to run as those of a visible one.
    "--disable-background-timer-throttling", "--disable-renderer-backgrounding",
    "--disable-backgrounding-occluded-windows",
]


def need_chromium():
    for name in ("chromium", "chromium-browser", "google-chrome"):
        program = find_program(name)
        if program:
            return program
    raise unittest.SkipTest("chromium is not installed")


class Page:
    """One page of a Chromium that is started for it, in a profile below `directory`."""

    def __init__(self, directory, width=1360, height=900):
        self.profile = pathlib.Path(directory) / f"chromium-{id(self)}"
        self.profile.mkdir()
        self.log = open(self.profile / "log", "ab")
        self.process = subprocess.Popen(
            [need_chromium(), *ARGUMENTS, f"--window-size={width},{height}",
             f"--user-data-dir={self.profile}", "about:blank"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log,
            env=clean_environment(HOME=self.profile), preexec_fn=die_with_parent)
        self.numbers = itertools.count(1)
        self.events = []
        try:
            self.socket = self._connect()
            self.read = websocket.exact_reader(self.socket)
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.call(f"{domain}.enable")
        except BaseException:
            self.close()
            raise

    def _connect(self):
        """To the one page that there is."""
        ports = self.profile / "DevToolsActivePort"
        eventually(lambda: ports.exists() and ports.read_text().count("\n") >= 1
                   or self.process.poll() is not None, "chromium listens")
        if self.process.poll() is not None:
            raise AssertionError((self.profile / "log").read_text(errors="replace")[-2000:])
        port = int(ports.read_text().split()[0])

        def target():
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE)
            connection.request("GET", "/json/list")
            pages = json.loads(connection.getresponse().read())
            connection.close()
            return next((p for p in pages if p["type"] == "page"), None)
        path = eventually(target, "chromium has a page")["webSocketDebuggerUrl"].split("/", 3)[3]
        sock = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
        key = base64.b64encode(os.urandom(16)).decode()
        fields = "".join(f"{k}: {v}\r\n" for k, v in websocket.handshake_fields(key))
        sock.sendall(f"GET /{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{fields}\r\n".encode())
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            head += sock.recv(1)
        assert b" 101 " in head, head
        return sock

    def _message(self):
        """The next one; of frames that belong together all."""
        whole = b""
        while True:
            first, second = self.read(2)
            size = second & 0x7f
            if size == 126:
                size = int.from_bytes(self.read(2), "big")
            elif size == 127:
                size = int.from_bytes(self.read(8), "big")
            whole += self.read(size)
            if first & 0x80:
                return json.loads(whole)

    def call(self, method, **parameters):
        number = next(self.numbers)
        text = json.dumps({"id": number, "method": method, "params": parameters}).encode()
        self.socket.sendall(websocket.frame(text, websocket.TEXT, masked=True))
        while True:
            message = self._message()
            if message.get("id") != number:
                self.events.append(message)
                continue
            if "error" in message:
                raise AssertionError(f"{method}: {message['error']}")
            return message["result"]

    def evaluate(self, expression):
        """Returns the value of an expression in the page; for a promise its result."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True,
                           returnByValue=True)
        if "exceptionDetails" in result:
            raise AssertionError(f"{expression[:200]}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def open(self, url):
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def until(self, expression, what=None):
        return eventually(lambda: self.evaluate(expression), what or expression)

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)}).textContent")

    def click(self, selector):
        """As a finger does: where it is, with whatever lies there."""
        place = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center', behavior: 'instant'});"
            " const r = e.getBoundingClientRect();"
            " return [r.x + r.width / 2, r.y + r.height / 2]; })()")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left",
                      clickCount=1)

    def type(self, selector, text):
        self.evaluate(f"document.querySelector({json.dumps(selector)}).focus()")
        self.call("Input.insertText", text=text)

    def key(self, name, code):
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name,
                      windowsVirtualKeyCode=code)

    def resize(self, width, height, scale=1):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=scale, mobile=False)

    def prefer(self, scheme):
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path, whole=True):
        """As PNG; of all of the page, or of what is in the window."""
        taken = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        pathlib.Path(path).write_bytes(base64.b64decode(taken["data"]))

    def heap_bytes(self):
        for _ in range(3):
            self.call("HeapProfiler.collectGarbage")
        return self.call("Runtime.getHeapUsage")["usedSize"]

    def complaints(self):
        """Errors and warnings of the console, exceptions, and what the browser refused."""
        found = []
        for event in self.events:
            method, given = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(given["exceptionDetails"])
            elif method == "Runtime.consoleAPICalled" and given["type"] in ("error", "warning"):
                found.append(given["args"])
            elif method == "Log.entryAdded" and given["entry"]["level"] in ("error", "warning"):
                found.append(given["entry"])
        return found

    def requested(self):
        return [event["params"]["request"]["url"] for event in self.events
                if event.get("method") == "Network.requestWillBeSent"]

    def close(self):
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        # Its helpers end a moment after it, and write until then.
        end = time.monotonic() + 10
        while self.profile.exists() and time.monotonic() < end:
            shutil.rmtree(self.profile, ignore_errors=True)
