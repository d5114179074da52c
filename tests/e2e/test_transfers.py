"""Transfers in flight: joined, streamed, abandoned, cut short, and far larger than memory."""

import os
import threading
import time
import unittest

from client import Client, NoResponse, field, get
from harness import Case, eventually, sanitized
from origin import Closed, Origin, fresh, response

MIB = 1 << 20
GIB = 1 << 30
# The whole process: cache of 64 MiB within 1.05, filter, 32 MiB, and room for buffers.
RESIDENT_LIMIT = 160 * MIB


class Stalled:
    """A route that sends the head, waits, and then sends the rest."""

    def __init__(self, body, before=0, **fields):
        self.answer = fresh(body, **fields)
        self.before = before  # bytes of the body sent before the wait; None: not even the head
        self.started, self.go = threading.Event(), threading.Event()

    def __call__(self, exchange):
        cut = 0 if self.before is None else self.answer.index(b"\r\n\r\n") + 4 + self.before
        exchange.send(self.answer[:cut])
        self.started.set()
        exchange.wait(self.go)
        exchange.send(self.answer[cut:])


class Readers:
    """Clients on threads of their own that ask for one URL."""

    def __init__(self, port, url, count):
        self.answers = [None] * count
        self.threads = [threading.Thread(target=self._run, args=(port, url, n))
                        for n in range(count)]
        for thread in self.threads:
            thread.start()

    def _run(self, port, url, number):
        try:
            self.answers[number] = get(port, url)
        except (NoResponse, OSError) as error:
            self.answers[number] = error

    def join(self):
        for thread in self.threads:
            thread.join(120)
        return self.answers


class Joined(Case):
    def test_concurrent_requests_share_one_fetch_and_store_it(self):
        body = os.urandom(300_000)
        route = Stalled(body, before=None)
        origin = Origin(self, {"/page": route})
        encore = self.encore()
        readers = Readers(encore.port, origin.url("/page"), 30)
        eventually(lambda: encore.metrics().get("encore_client_connections", 0) >= 30,
                   "30 clients are connected")
        route.go.set()
        answers = readers.join()
        self.assertEqual([body] * 30, [getattr(a, "body", a) for a in answers])
        self.assertEqual(1, origin.count())
        self.assertIn("; hit", field(get(encore.port, origin.url("/page")), "Cache-Status"))
        said = [field(a, "Cache-Status") for a in answers]
        self.assertTrue(any("collapsed" in text for text in said), said)

    def test_a_body_reaches_its_readers_while_it_arrives(self):
        body = os.urandom(200_000)
        route = Stalled(body, before=100_000)
        origin = Origin(self, {"/page": route})
        encore = self.encore()
        with Client(encore.port) as client:
            client.request(origin.url("/page"))
            client.read_head()
            self.assertEqual(body[:100_000], client.read_exactly(100_000))
            route.go.set()
            self.assertEqual(body[100_000:], client.read_exactly(100_000))

    def test_a_reader_that_leaves_does_not_end_the_transfer_of_the_others(self):
        body = os.urandom(500_000)
        route = Stalled(body, before=None)
        origin = Origin(self, {"/page": route})
        encore = self.encore()
        leaver = Client(encore.port)
        leaver.request(origin.url("/page"))
        eventually(lambda: origin.count(), "the origin is asked")
        readers = Readers(encore.port, origin.url("/page"), 5)
        eventually(lambda: encore.metrics().get("encore_client_connections", 0) >= 6, "6 clients")
        leaver.reset()
        eventually(lambda: encore.metrics().get("encore_client_connections", 9) <= 5,
                   "the leaver is gone")
        route.go.set()
        self.assertEqual([body] * 5, [getattr(a, "body", a) for a in readers.join()])

    def test_a_slow_reader_does_not_hold_up_a_quick_one(self):
        body = os.urandom(6 * MIB)
        origin = Origin(self, {"/page": fresh(body)})
        encore = self.encore()
        get(encore.port, origin.url("/page"))
        slow = Client(encore.port, receive_buffer=4096)
        self.addCleanup(slow.close)
        slow.request(origin.url("/page"))
        slow.read_head()
        self.assertEqual(body, get(encore.port, origin.url("/page")).body)
        self.assertEqual(body, slow.read_exactly(len(body)))

    def test_waiters_of_a_private_response_each_get_their_own(self):
        first, go = threading.Event(), threading.Event()

        def page(exchange):
            if not first.is_set():
                first.set()
                exchange.wait(go)
            return response(b"%d" % origin.count(), Cache_Control="private")
        origin = Origin(self, {"/page": page})
        encore = self.encore()
        readers = Readers(encore.port, origin.url("/page"), 10)
        eventually(lambda: encore.metrics().get("encore_client_connections", 0) >= 10, "10 clients")
        go.set()
        answers = readers.join()
        self.assertEqual([200] * 10, [getattr(a, "status", a) for a in answers])
        self.assertEqual(10, origin.count())

    def test_requests_for_what_is_known_to_be_private_do_not_wait_for_each_other(self):
        go = threading.Event()

        def page(exchange):
            if origin.count("/page") > 1:
                exchange.wait(go)
            return response(b"mine", Cache_Control="no-store")
        origin = Origin(self, {"/page": page})
        encore = self.encore()
        get(encore.port, origin.url("/page"))
        readers = Readers(encore.port, origin.url("/page"), 8)
        eventually(lambda: origin.count("/page") == 9, "all eight are at the origin at once")
        go.set()
        self.assertEqual([b"mine"] * 8, [getattr(a, "body", a) for a in readers.join()])


class Abandoned(Case):
    def test_a_stored_transfer_is_finished_when_its_client_leaves(self):
        body = os.urandom(1_000_000)
        route = Stalled(body, before=1000)
        origin = Origin(self, {"/page": lambda x: fresh(body) if origin.count() == 1 else route(x)})
        encore = self.encore()
        get(encore.port, origin.url("/page"))
        with Client(encore.port) as client:
            client.request(origin.url("/page"))
            client.read_head()
            route.started.wait(60)
        route.go.set()
        self.assertEqual(body, get(encore.port, origin.url("/page")).body)
        self.assertEqual(body, get(encore.port, origin.url("/page")).body)
        self.assertLessEqual(origin.count(), 3)

    def test_a_transfer_that_nobody_wants_is_ended(self):
        ended = threading.Event()

        def endless(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n\r\n")
            try:
                while not exchange.origin.stopped:
                    exchange.send(b"x" * 65536)
            except Closed:
                ended.set()
        origin = Origin(self, {"/endless": endless})
        encore = self.encore()
        with Client(encore.port) as client:
            client.request(origin.url("/endless"))
            client.read_head()
        self.assertTrue(ended.wait(60), "the origin still sends")

    def test_an_origin_that_dies_midway_leaves_nothing_in_the_cache(self):
        def dying(exchange):
            if origin.count() < 3:
                exchange.send(fresh(b"x" * 1_000_000)[:600_000])
                exchange.reset()
                return None
            return fresh(b"whole")
        origin = Origin(self, {"/page": dying})
        encore = self.encore()
        for _ in range(2):
            try:
                self.assertEqual(502, get(encore.port, origin.url("/page")).status)
            except NoResponse:
                pass
        for _ in range(3):
            self.assertEqual(b"whole", get(encore.port, origin.url("/page")).body)

    def test_a_load_of_everything_at_once_leaves_nothing_behind(self):
        # Hits, misses, joined transfers, clients and origins that leave midway. A leak or a race is
        # reported when encore ends.
        def moody(exchange):
            number = int(exchange.request.target.rpartition("/")[2])
            if number % 7 == 0:
                exchange.send(fresh(b"x" * 50_000)[:20_000])
                exchange.reset()
                return None
            if number % 5 == 0:
                return response(b"p" * 3000, Cache_Control="no-store")
            return fresh(b"c" * 30_000)
        origin = Origin(self)
        for number in range(40):
            origin.routes[f"/{number}"] = moody
        encore = self.encore()

        def client(seed):
            for step in range(80):
                number = (seed * 31 + step * 17) % 40
                try:
                    if step % 9 == seed % 9:
                        with Client(encore.port) as leaver:
                            leaver.request(origin.url(f"/{number}"))
                        continue
                    answer = get(encore.port, origin.url(f"/{number}"))
                    if answer.status == 200 and set(answer.body) not in ({ord("p")}, {ord("c")}):
                        wrong.append(number)
                except (NoResponse, OSError):
                    if number % 7:
                        wrong.append(number)
        wrong = []
        threads = [threading.Thread(target=client, args=(seed,)) for seed in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], wrong)
        eventually(lambda: encore.metrics().get("encore_transfers", 0) == 0, "no transfer is left")
        self.assertEqual(200, encore.admin("/healthz")[0])


class Large(Case):
    def body_of(self, size):
        block = os.urandom(MIB)

        def send(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\n"
                          b"Content-Length: %d\r\n\r\n" % size)
            sent = 0
            while sent < size:
                exchange.send(block[:size - sent])
                sent += len(block)
                self.sent = min(sent, size)
        return send

    def drain(self, client, size):
        client.buffer, left = b"", size - len(client.buffer)
        buffer = bytearray(MIB)
        while left > 0:
            got = client.sock.recv_into(buffer, min(left, MIB))
            self.assertGreater(got, 0, f"{left} bytes are missing")
            left -= got

    def ask(self, encore, origin, path):
        client = Client(encore.port)
        self.addCleanup(client.close)
        client.request(origin.url(path))
        client.read_head()
        return client

    def test_a_body_larger_than_the_cache_passes_in_bounded_memory(self):
        size = int(os.environ.get("ENCORE_SOAK_GIB", "1")) * GIB
        origin = Origin(self, {"/big": self.body_of(size)})
        encore = self.encore()
        for _ in range(2):  # the second time it would be stored, were it not too large
            self.drain(self.ask(encore, origin, "/big"), size)
        if not sanitized():
            self.assertLess(encore.peak_resident_bytes(), RESIDENT_LIMIT)

    def test_a_slow_client_does_not_pull_the_body_into_memory(self):
        size = 300 * MIB
        origin = Origin(self, {"/big": self.body_of(size)})
        encore = self.encore()
        client = self.ask(encore, origin, "/big")
        before, steady = -1, 0
        while steady < 20:  # until the origin could send nothing more for 20 looks
            time.sleep(0.02)
            steady = steady + 1 if self.sent == before else 0
            before = self.sent
        self.assertLess(self.sent, 64 * MIB)
        if not sanitized():
            self.assertLess(encore.peak_resident_bytes(), RESIDENT_LIMIT)
        self.drain(client, size)

    def test_an_upload_larger_than_memory_allows_passes_in_bounded_memory(self):
        size = 256 * MIB
        origin = Origin(self)
        counted = {}

        def serve_upload(exchange):
            counted["bytes"] = len(exchange.request.body)
            return response(b"thanks")
        origin.routes["/upload"] = serve_upload
        encore = self.encore()
        block = bytes(MIB)
        with Client(encore.port) as client:
            client.send(f"POST {origin.url('/upload')} HTTP/1.1\r\nHost: {origin.authority}\r\n"
                        f"Content-Length: {size}\r\n\r\n")
            for _ in range(size // MIB):
                client.send(block)
            self.assertEqual(b"thanks", client.read_response().body)
        self.assertEqual(size, counted["bytes"])
        if not sanitized():
            self.assertLess(encore.peak_resident_bytes(), RESIDENT_LIMIT)

    def test_the_cache_keeps_within_its_memory(self):
        origin = Origin(self, default=fresh(os.urandom(100_000)))
        encore = self.encore(cache={"memory": "16MiB"})
        with Client(encore.port) as client:
            for number in range(600):
                for _ in range(2):
                    self.assertEqual(100_000, len(client.ask(origin.url(f"/{number}")).body))
        if not sanitized():
            self.assertLess(encore.peak_resident_bytes(), (17 + 32 + 16) * MIB)


if __name__ == "__main__":
    unittest.main()
