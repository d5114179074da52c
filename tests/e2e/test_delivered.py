"""The record of a response has the bytes that went out to its client. A client that leaves in the
middle did not get the rest, whatever the kernel had taken of it."""

import os
import pathlib
import signal
import unittest

from client import Client
from harness import Case, eventually
from intercept import InterceptCase
from origin import Origin, fresh
from tls import TlsCase

KIB = 1 << 10
SIZES = (1 << 20, 3 << 20)
TAKEN = 5000
BLOCK = os.urandom(1 << 20)
# A receive buffer is small, but the first bytes come by more than one of it.
SLACK = 512 * KIB


def body(size):
    return (BLOCK * (size // len(BLOCK) + 1))[:size]


def by_size(exchange):
    return fresh(body(int(exchange.request.target[1:])))


class Left:
    """Mixed into a case: a client takes some of what it asked for, and resets."""

    asked = 0  # requests, each of which is logged
    connect_bytes = 0

    def next_record(self, encore):
        self.asked += 1

        def logged():
            records = [each for each in encore.access_records(0) if each["method"] != "CONNECT"]
            return records[self.asked - 1] if len(records) >= self.asked else None
        return eventually(logged, f"request {self.asked} is logged")

    def check_left(self, encore, size, connect, ask):
        client = connect()
        sent = self.sent(encore)
        client.send(ask)
        client.read_until(b"\r\n\r\n")
        client.read_exactly(TAKEN)
        client.reset()
        record = self.next_record(encore)
        self.assertEqual("client-aborted", record["outcome"], record)
        self.assertEqual("reset", record["detail"])
        self.assertTrue(TAKEN <= record["body_bytes"] < min(size, TAKEN + SLACK), (size, record))
        self.assertTrue(record["body_bytes"] < record["bytes"] < size, record)
        # The answer to a CONNECT around it may be counted meanwhile.
        self.assertIn(self.sent(encore) - sent - record["bytes"], (0, self.connect_bytes))

    def check_taken(self, encore, size, connect, ask):
        """A client that takes all of it gets it, and is recorded so; twice on one connection."""
        client = connect()
        for _ in range(2):
            client.send(ask)
            answer = client.read_response()
            self.assertEqual(size, len(answer.body))
            record = self.next_record(encore)
            self.assertEqual((size, True), (record["body_bytes"], record["bytes"] > size))
            self.assertNotEqual("client-aborted", record["outcome"])
        client.close()

    def sent(self, encore):
        return int(encore.metrics()["encore_client_sent_bytes_total"])


class Plain(Left, Case):
    def start(self, default=by_size, **sections):
        self.origin = Origin(self, default=default)
        sections.setdefault("admission", {"policy": "always"})
        return self.encore(**sections)

    def ask(self, name, fields=""):
        url = self.origin.url(name)
        return f"GET {url} HTTP/1.1\r\nHost: {self.origin.authority}\r\n{fields}\r\n"

    def connect(self, encore):
        client = Client(encore.port, receive_buffer=4096)
        self.addCleanup(client.close)
        return client

    def check(self, encore, size, name, fields=""):
        ask = self.ask(name, fields)
        self.check_left(encore, size, lambda: self.connect(encore), ask)

    def fill(self, encore, name, fields=""):
        with Client(encore.port) as client:
            client.send(self.ask(name, fields))
            answer = client.read_response()
            self.next_record(encore)
            return answer

    def test_hits_in_memory(self):
        encore = self.start(cache={"memory": "64MiB"})
        for size in SIZES:
            self.fill(encore, f"/{size}")
            self.check(encore, size, f"/{size}")
            self.check_taken(encore, size, lambda: Client(encore.port), self.ask(f"/{size}"))

    def test_misses_and_what_is_passed_on(self):
        encore = self.start(admission={"policy": "never"})
        for size in SIZES:
            self.check(encore, size, f"/{size}")
            self.check_taken(encore, size, lambda: Client(encore.port), self.ask(f"/{size}"))

    def test_a_part(self):
        encore = self.start(cache={"memory": "64MiB"})
        self.fill(encore, "/3000000")
        self.check(encore, 2_000_000, "/3000000", "Range: bytes=100-2000099\r\n")

    def test_hits_on_disk(self):
        encore = self.start(cache={"memory": "4MiB"}, disk=[
            {"path": str(self.directory / "disk"), "size": "128MiB"}])
        for size in SIZES:
            self.fill(encore, f"/{size}")
        encore.stop()
        encore.start()
        for size in SIZES:
            self.check(encore, size, f"/{size}")
        self.assertEqual(len(SIZES), self.origin.count())

    def test_coded(self):
        text = b" ".join(BLOCK[i:i + 30].hex().encode() for i in range(0, len(BLOCK), 30))

        def page(exchange):
            return fresh(text, Content_Type="text/plain")
        encore = self.start(page, cache={"memory": "64MiB"},
                            compression={"codings": ["gzip"], "types": ["text/plain"]})
        coded = len(self.fill(encore, "/page", "Accept-Encoding: gzip\r\n").body)
        self.assertTrue(SLACK < coded < len(text))
        for _ in range(2):
            self.check(encore, coded, "/page", "Accept-Encoding: gzip\r\n")

    def test_a_client_that_had_gone_before_it_was_answered(self):
        encore = self.start(cache={"memory": "64MiB"})
        self.fill(encore, "/100")
        sent = self.sent(encore)
        client = self.connect(encore)
        client.send(self.ask("/100"))
        self.assertEqual(200, client.read_response().status)
        self.next_record(encore)
        one = self.sent(encore) - sent
        encore.signal(signal.SIGSTOP)
        tasks = pathlib.Path(f"/proc/{encore.process.pid}/task")
        eventually(lambda: all("State:\tT" in (task / "status").read_text()
                               for task in tasks.iterdir()), "all threads stand still")
        client.send(self.ask("/100"))
        client.reset()
        encore.signal(signal.SIGCONT)
        record = self.next_record(encore)
        self.assertEqual(("client-aborted", 0, 0),
                         (record["outcome"], record["bytes"], record["body_bytes"]))
        self.assertEqual(one, self.sent(encore) - sent)

    def test_one_that_ends_its_side_gets_all_of_it(self):
        encore = self.start(cache={"memory": "64MiB"})
        self.fill(encore, "/1000000")
        client = self.connect(encore)
        client.send(self.ask("/1000000", "Connection: close\r\n"))
        client.shutdown()
        self.assertEqual(1_000_000, len(client.read_response().body))
        record = self.next_record(encore)
        self.assertEqual(("hit", 1_000_000), (record["outcome"], record["body_bytes"]))

    def test_one_that_closes_and_reads_no_more(self):
        encore = self.start(cache={"memory": "64MiB"})
        self.fill(encore, "/1000000")
        client = self.connect(encore)
        client.send(self.ask("/1000000"))
        client.read_until(b"\r\n\r\n")
        client.close()  # with bytes unread, which the kernel tells by a reset
        record = self.next_record(encore)
        self.assertEqual("client-aborted", record["outcome"])
        self.assertLess(record["body_bytes"], 800_000)


class Secure(Left, TlsCase):
    def test_hits(self):
        self.serve(admission={"policy": "always"}, cache={"memory": "64MiB"})
        self.origin.default = by_size
        for size in SIZES:
            self.ask(f"/{size}")
            self.next_record(self.proxy)
            ask = f"GET /{size} HTTP/1.1\r\nHost: www.example\r\n\r\n"
            self.check_left(self.proxy, size, lambda: self.client(receive_buffer=4096), ask)
            self.check_taken(self.proxy, size, self.client, ask)


class Intercepted(Left, InterceptCase):
    connect_bytes = len("HTTP/1.1 200 Connection established\r\n\r\n")

    def test_hits(self):
        origin = self.start_origin(default=by_size)
        encore = self.proxy(origin, cache={"memory": "64MiB"})
        for size in SIZES:
            self.inside(encore, origin).get(f"/{size}")
            ask = f"GET /{size} HTTP/1.1\r\nHost: packages.example:{origin.port}\r\n\r\n"
            self.next_record(encore)
            client = self.inside(encore, origin)
            self.check_left(encore, size, lambda: client, ask)


if __name__ == "__main__":
    unittest.main()
