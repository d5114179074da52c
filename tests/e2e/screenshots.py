"""Writes the live page as PNG files: light, dark, and narrow. Called by ./dev screenshots.

    screenshots.py DIRECTORY [--seconds N]     N seconds of load first, 300 by default
"""

import argparse
import pathlib
import random
import sys
import threading
import time

from browser import Page
from client import Client, NoResponse
from harness import Case, free_port
from origin import Origin, fresh, response

CLIENTS = 6
OBJECTS, SHAPE = 4000, 0.9
HOSTS = ("packages.example.org", "images.example.com", "www.example.com", "static.example.net")
KINDS = {"/account": response(b"yours", Cache_Control="private"),
         "/search": response(b"found", Cache_Control="no-store"),
         "/broken": response(b"no", "502 Bad Gateway")}


class Screenshots(Case):
    """As a test has it: a folder of its own, and everything ended."""

    directory_out, seconds = None, 300

    def answer(self, exchange):
        path = exchange.request.target.partition("?")[0]
        if path in KINDS:
            return KINDS[path]
        size = int(2 ** random.Random(path).gauss(14, 2.2))
        return fresh(b"x" * min(size, 2_000_000), seconds=600)

    def load(self, port, number, until):
        draw = random.Random(number)
        while time.monotonic() < until:
            try:
                with Client(port) as client:
                    for _ in range(draw.randrange(20, 200)):
                        rank = int(OBJECTS * draw.random() ** (1 / (1 - SHAPE) / 3))
                        chance = draw.random()
                        path = (f"/object/{rank}" if chance < 0.8 else
                                f"/once/{draw.randrange(10 ** 9)}?session=1" if chance < 0.93 else
                                draw.choice(("/account", "/search", "/search", "/broken")))
                        host = HOSTS[(rank * 7 if chance < 0.8 else draw.randrange(8)) % 5 % 4]
                        client.send(f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")
                        client.read_response()
                        time.sleep(draw.expovariate(60))
            except (OSError, NoResponse):
                continue

    def runTest(self):
        servers = [Origin(self, default=self.answer).url("") for _ in range(2)]
        port = free_port()
        encore = self.encore(
            listen=[{"address": f"127.0.0.1:{port}", "mode": "reverse"}],
            origin=[{"host": "*", "servers": servers}], cache={"memory": "24MiB"},
            admission={"capacity": 4000, "fpr": 0.01})
        until = time.monotonic() + self.seconds
        threads = [threading.Thread(target=self.load, args=(port, number, until))
                   for number in range(CLIENTS)]
        for thread in threads:
            thread.start()
        page = Page(self.directory)
        self.addCleanup(page.close)
        page.resize(1360, 900)
        page.prefer("light")
        page.open(f"http://127.0.0.1:{encore.admin_port}/")
        time.sleep(max(0, until - time.monotonic() - 3))  # under load, to the end
        shots = (("light", 1360, 900, False), ("dark", 1360, 900, False),
                 ("light-whole", 1360, 900, True), ("dark-whole", 1360, 900, True),
                 ("narrow", 400, 800, False), ("narrow-whole", 400, 800, True))
        for name, width, height, whole in shots:
            page.resize(width, height)
            page.prefer("dark" if name.startswith("dark") else "light")
            # Two frames, so that what was resized is drawn.
            page.evaluate("new Promise(r => requestAnimationFrame(() => requestAnimationFrame(r)))")
            page.evaluate("drawCharts(true)")
            page.screenshot(self.directory_out / f"live-page-{name}.png", whole)
        for thread in threads:
            thread.join()


def main():
    parser = argparse.ArgumentParser(description="Writes the live page as PNG files.")
    parser.add_argument("directory", type=pathlib.Path)
    parser.add_argument("--seconds", type=int, default=300)
    arguments = parser.parse_args()
    arguments.directory.mkdir(parents=True, exist_ok=True)
    case = Screenshots()
    case.directory_out, case.seconds = arguments.directory, arguments.seconds
    result = case.run()
    for _, trouble in result.failures + result.errors:
        print(trouble, file=sys.stderr)
    for kind in result.skipped:
        print(kind[1], file=sys.stderr)
    if result.wasSuccessful() and not result.skipped:
        print("\n".join(map(str, sorted(arguments.directory.glob("live-page-*.png")))))
        return 0
    return 1


if __name__ == "__main__":
    sys.exit(main())
