"""Shared parts of the tests of compression: texts with versions, an origin that sends them, and a
proxy that compresses."""

import functools
import random
import signal
import threading

from client import Client, field
from codings import decoded
from harness import Case, eventually
from origin import Origin, fresh

CODINGS = ["zstd", "br", "gzip"]
TYPE = {"Content_Type": "text/plain; charset=utf-8"}


@functools.cache
def text(name, version, size):
    """A content that names itself and its version on each line, and is made of words."""
    rng = random.Random(f"{name} {version}")
    line = f"{name} version {version} "
    lines, made = [], 0
    while made < size:
        words = rng.choices(("red", "green", "blue", "black", "white"), k=12)
        lines.append(f"{line}{' '.join(words)} {rng.random()}\n")
        made += len(lines[-1])
    return "".join(lines)[:size].encode()


def accepts(*codings):
    return [("Accept-Encoding", ", ".join(codings))] if codings else []


class CompressionCase(Case):
    """Names are paths that end in "-SIZE"; each has a version, which is its entity tag."""

    compression = {"codings": CODINGS}
    cache = {}

    def setUp(self):
        super().setUp()
        self.versions, self.seconds, self.lock = {}, 6000, threading.Lock()
        self.origin = Origin(self, default=self.answer)

    def start_proxy(self, **sections):
        self.proxy = self.encore(**{
            "admission": {"policy": "always"}, "compression": self.compression,
            "cache": {"memory": "64MiB", **self.cache}, **sections})

    def answer(self, exchange):
        name = exchange.request.target
        with self.lock:
            version = self.versions.get(name, 1)
        if dict(exchange.request.fields).get("if-none-match") == f'"{version}"':
            return fresh(b"", self.seconds, ETag=f'"{version}"').replace(
                b"200 OK", b"304 Not Modified").replace(b"Content-Length: 0\r\n", b"")
        return fresh(self.content(name, version), self.seconds, ETag=f'"{version}"',
                     Accept_Ranges="bytes", Last_Modified="Mon, 01 Jan 2024 00:00:00 GMT", **TYPE)

    @staticmethod
    def content(name, version=1):
        return text(name, version, int(name.rpartition("-")[2]))

    def get(self, name, *codings, fields=(), port=None, **options):
        with Client(port or self.proxy.port) as client:
            return client.ask(self.origin.url(name), fields=[*accepts(*codings), *fields],
                              **options)

    def check(self, name, answer, coding=None, version=1):
        """It is this version, whole, in this coding, and says what goes with that."""
        self.assertEqual(200, answer.status, answer)
        self.assertEqual(coding, field(answer, "Content-Encoding"), answer.fields)
        self.assertEqual(self.content(name, version), decoded(answer), name)
        weak = "W/" if coding else ""
        self.assertEqual(f'{weak}"{version}"', field(answer, "ETag"))
        self.assertIn("Accept-Encoding", field(answer, "Vary") or "")
        self.assertEqual(None if coding else "bytes", field(answer, "Accept-Ranges"))
        return answer

    def is_hit(self, answer):
        return "; hit" in field(answer, "Cache-Status")

    def metric(self, name):
        return int(self.proxy.metrics()[f"encore_{name}"])

    def work(self, coding):
        """(responses, bytes compressed, bytes made) of a coding."""
        return tuple(self.metric(f"compressed_{coding}_{what}_total")
                     for what in ("responses", "read_bytes", "made_bytes"))

    def reload(self, **compression):
        self.proxy.sections["compression"] = compression
        self.proxy.write_config()
        before = self.proxy.stats()["reloads"]
        self.proxy.signal(signal.SIGHUP)
        eventually(lambda: self.proxy.stats()["reloads"] > before, "the reload is done")
