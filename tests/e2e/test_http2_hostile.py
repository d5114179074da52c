"""Clients of HTTP/2 that mean harm: each known attack meets a limit, which is counted, and nobody else
notices. Requests that would be another one over HTTP/1.1 reach no origin."""

import random
import struct
import threading
import unittest

import http2
from harness import eventually
from http2 import Http2Client
from origin import fresh, response
from test_http2 import Http2Case

CALM = http2.ENHANCE_YOUR_CALM
PRIORITY_UPDATE = 0x10


class Floods(Http2Case):
    def setUp(self):
        super().setUp()
        self.serve({"/hit": fresh(b"hit"), "/never": lambda e: e.wait_until_closed()},
                   timeouts={"client_header": "1s", "client_write": "1s"})
        with self.client() as client:
            for _ in range(2):
                client.ask("/hit")

    def check_honest(self):
        with self.client() as client:
            answer = client.ask("/hit")
            self.assertEqual((200, b"hit"), (answer.status, answer.body))
            self.assertIn("; hit", answer["cache-status"])

    def flood(self, attack, counter, **options):
        """`attack(client, i)` is done until the connection ends, and counted once there."""
        before = self.proxy.metrics()[f"encore_http2_{counter}"]
        with self.client(**options) as client, self.client() as honest:
            client.read_until(lambda: client.acknowledged)
            try:
                for i in range(30_000):
                    attack(client, i)
            except OSError:
                pass
            self.assertTrue(client.at_end())
            # The last words may be lost where more comes than is read.
            if client.goaways:
                self.assertEqual(CALM, client.goaways[-1][1], client.goaways)
            self.assertEqual(b"hit", honest.ask("/hit").body)
        self.check_honest()
        self.assertEqual(before + 1, self.proxy.metrics()[f"encore_http2_{counter}"])

    def test_rapid_reset(self):
        self.flood(lambda client, i: client.reset(client.request("/never")),
                   'floods_total{kind="reset-unanswered"}')
        eventually(lambda: self.proxy.metrics()["encore_http2_streams"] == 0, "no stream is left")

    def test_resets_that_we_are_made_to_send(self):
        def attack(client, i):
            client.open_window(client.request("/never"), 0)  # an error of the stream
        self.flood(attack, 'floods_total{kind="reset-unanswered"}')

    def test_malformed_requests_are_resets_too(self):
        self.flood(lambda client, i: client.request("/x", [("Upper", "x")]),
                   'floods_total{kind="reset-unanswered"}')

    def test_continuations(self):
        def attack(client, i):
            client.frame(http2.CONTINUATION if i else http2.HEADERS, 0, 1,
                         http2.encode([(f"x-{i}", "y")]))
        self.flood(attack, 'limits_total{limit="continuations"}')

    def test_settings(self):
        self.flood(lambda client, i: client.frame(http2.SETTINGS, 0, 0,
                                                  struct.pack(">HI", 4, 65535)),
                   'floods_total{kind="settings"}')

    def test_pings(self):
        self.flood(lambda client, i: client.frame(http2.PING, 0, 0, b"12345678"),
                   'floods_total{kind="ping"}')

    def test_priorities(self):
        self.flood(lambda client, i: client.frame(http2.PRIORITY, 0, 2 * i + 1, b"\0\0\0\0\x10"),
                   'floods_total{kind="priority"}')

    def test_priority_updates(self):
        self.flood(lambda client, i: client.frame(PRIORITY_UPDATE, 0, 0,
                                                  struct.pack(">I", 1) + b"u=1"),
                   'floods_total{kind="priority"}')

    def test_windows_that_open_by_a_byte(self):
        self.flood(lambda client, i: client.open_window(0, 1), 'floods_total{kind="window"}')

    def test_frames_of_unknown_types(self):
        self.flood(lambda client, i: client.frame(0x77, 0, 0, b"x"),
                   'floods_total{kind="unknown"}')

    def test_empty_content(self):
        def attack(client, i):
            if i == 0:
                client.request("/never", method="POST", end=False)
            client.frame(http2.DATA, 0, 1, b"")
        self.flood(attack, 'floods_total{kind="empty"}')

    def test_content_in_single_bytes(self):
        def attack(client, i):
            if i == 0:
                client.request("/never", method="POST", end=False)
            # Many in one write, or they would come too slowly to be a flood.
            client.sock.sendall(b"\0\0\1\0\0\0\0\0\1x" * 2000)
        self.flood(attack, 'floods_total{kind="tiny"}')

    def test_more_streams_than_allowed_again_and_again(self):
        def attack(client, i):
            client.request("/never")
        self.flood(attack, 'floods_total{kind="reset-unanswered"}')
        self.assertGreater(self.proxy.metrics()['encore_http2_limits_total{limit="streams-refused"}'],
                           50)

    def test_a_bomb_of_references(self):
        # A field of 4000 bytes enters the table; then it is named by one byte each time.
        value = b"x" * 3900
        bomb = (http2.encode([(":method", "GET"), (":scheme", "http"), (":path", "/hit"),
                              (":authority", "a")])
                + b"\x40\1a" + b"\x7f" + self.rest_of(3900 - 127) + value + b"\xbe" * 8000)

        def attack(client, i):
            client.frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, 2 * i + 1, bomb)
        self.flood(attack, 'limits_total{limit="head-bytes"}')

    @staticmethod
    def rest_of(size):
        out = b""
        while size >= 128:
            out += bytes([size % 128 + 128])
            size //= 128
        return out + bytes([size])

    def test_a_bomb_of_crumbs(self):
        # An empty cookie, named by one byte: 38 bytes as they are counted.
        bomb = http2.encode([(":method", "GET"), (":scheme", "http"), (":path", "/hit"),
                             (":authority", "a")]) + b"\xa0" * 9000

        def attack(client, i):
            client.frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, 2 * i + 1, bomb)
        self.flood(attack, 'limits_total{limit="head-fields"}')

    def test_a_header_block_that_never_ends(self):
        with self.client() as client, self.client() as honest:
            client.read_until(lambda: client.acknowledged)
            client.frame(http2.HEADERS, 0, 1, http2.encode([(":method", "GET")]))
            self.assertEqual(b"hit", honest.ask("/hit").body)
            self.assertTrue(client.at_end())
            self.assertEqual(CALM, client.goaways[-1][1])
        self.assertEqual(1, self.proxy.metrics()['encore_http2_limits_total{limit="head-time"}'])

    def test_windows_that_stay_shut(self):
        self.origin.routes["/large"] = fresh(bytes(100_000))
        with self.client(settings=[(http2.INITIAL_WINDOW_SIZE, 100)], window=None) as client:
            streams = [client.request("/large") for _ in range(3)]
            for stream in streams[:2]:
                self.assertEqual(100, len(client.response(stream).body))
            self.assertTrue(client.at_end())
            self.assertEqual(CALM, client.goaways[-1][1])
            self.assertEqual(2, sum(s.reset == http2.CANCEL for s in client.streams.values()))
        metrics = self.proxy.metrics()
        self.assertEqual(3, metrics['encore_http2_limits_total{limit="stalled-stream"}'])
        self.assertEqual(1, metrics['encore_http2_limits_total{limit="stalled-connection"}'])
        self.check_honest()

    def test_a_client_that_reads_nothing(self):
        self.origin.routes["/large"] = fresh(bytes(1_000_000))
        with self.client(settings=[(http2.INITIAL_WINDOW_SIZE, 0x7fffffff)]) as client:
            client.open_window(0, 0x7fffffff - 65535)
            for _ in range(20):
                client.request("/large")
            eventually(lambda: self.proxy.metrics()["encore_http2_connections"] == 0,
                       "its connection is ended")
        self.check_honest()


class HeadsUnderWay(Http2Case):
    def test_too_many_header_blocks_that_do_not_end_give_way(self):
        self.serve({"/hit": fresh(b"hit")}, limits={"unfinished_heads": 4})
        clients = [self.client() for _ in range(40)]
        for client in clients:
            client.read_until(lambda: client.acknowledged)
            client.frame(http2.HEADERS, 0, 1, http2.encode([(":method", "GET")]))
        eventually(lambda: self.proxy.metrics()["encore_client_heads_given_up_total"] >= 30,
                   "most of them are ended")
        with self.client() as honest:
            self.assertEqual(b"hit", honest.ask("/hit").body)


class BesideOthers(Http2Case):
    def test_attackers_and_honest_clients_at_once(self):
        body = random.Random(3).randbytes(200_000)
        self.serve({"/hit": fresh(body), "/never": lambda e: e.wait_until_closed()})
        with self.client() as client:
            for _ in range(2):
                client.ask("/hit")
        over = threading.Event()

        def attack(attempt):
            while not over.is_set():
                try:
                    with Http2Client(self.proxy.port) as client:
                        while not over.is_set():
                            attempt(client)
                except OSError:
                    pass
        attempts = [lambda c: c.reset(c.request("/never")),
                    lambda c: c.reset(c.request("/hit")),
                    lambda c: c.frame(http2.PING, 0, 0, bytes(8)),
                    lambda c: c.request("/x", [("Bad", "x")])]
        threads = [threading.Thread(target=attack, args=(each,)) for each in attempts]
        for thread in threads:
            thread.start()
        try:
            for _ in range(5):
                with self.client() as client:
                    streams = [client.request("/hit") for _ in range(10)]
                    for stream in streams:
                        answer = client.response(stream)
                        self.assertEqual((200, True), (answer.status, answer.body == body))
                    self.assertEqual([], client.goaways)
        finally:
            over.set()
            for thread in threads:
                thread.join()
        metrics = self.proxy.metrics()
        self.assertGreater(metrics['encore_http2_floods_total{kind="reset-unanswered"}'], 0)
        self.assertGreater(metrics['encore_http2_floods_total{kind="ping"}'], 0)


class Downgrades(Http2Case):
    """Requests that would be another request, or two of them, as text of HTTP/1.1."""

    def setUp(self):
        super().setUp()
        self.serve({"/sound": response(b"sound")})

    def check_refused(self, fields, content=None, wanted=(400,)):
        """It is reset as malformed, or refused with one of the statuses; no origin sees it."""
        before = len(self.origin.requests)
        with self.client() as client:
            client.read_until(lambda: client.acknowledged)
            stream = client.headers(fields, end=content is None)
            if content is not None:
                client.data(stream, content)
            answer = client.response(stream)
            if answer.reset is None:
                self.assertIn(answer.status, wanted, fields)
            else:
                self.assertEqual(http2.PROTOCOL_ERROR, answer.reset, fields)
            # The connection is as sound as before.
            self.assertEqual(b"sound", client.ask("/sound").body, fields)
        self.assertEqual(["/sound"], [each.target for each in self.origin.requests[before:]],
                         fields)

    @staticmethod
    def head(*more, **pseudo):
        said = {"method": "GET", "scheme": "http", "path": "/x", "authority": "www.example",
                **pseudo}
        return [(":" + name, value) for name, value in said.items() if value is not None] + list(
            more)

    def test_names_and_values_that_end_lines(self):
        for name in ("a\r\nb", "a\nb", "a b", "a:b", "a\0b", "", "A", "a\x7fb", "\xe4"):
            self.check_refused(self.head((name, "x")))
        for value in ("a\r\nb: c", "a\nb", "a\rb", "a\0b", "x\r\n\r\nGET /two HTTP/1.1\r\n\r\n"):
            self.check_refused(self.head(("x-a", value)))

    def test_fields_of_connections(self):
        for name, value in (("transfer-encoding", "chunked"), ("connection", "close"),
                            ("keep-alive", "x"), ("proxy-connection", "x"), ("upgrade", "h2c"),
                            ("te", "gzip"), ("te", "trailers, chunked")):
            self.check_refused(self.head((name, value)))

    def test_pseudo_fields(self):
        self.check_refused(self.head(method=None))
        self.check_refused(self.head(path=None))
        self.check_refused(self.head(scheme=None))
        self.check_refused(self.head(path=""))
        self.check_refused(self.head((":path", "/two")))
        self.check_refused(self.head((":status", "200")))
        self.check_refused(self.head((":unknown", "1")))
        self.check_refused([("x-first", "1"), *self.head()])
        for method in ("GET /two HTTP/1.1\r\n", "GE T", "", "GET\r\n"):
            self.check_refused(self.head(method=method), wanted=(400, 501))
        for path in ("x", "/a b", "/a HTTP/1.1\r\nHost: b\r\n\r\nGET /", "/\r\n", "/a\0",
                     "http://other.example/"):
            self.check_refused(self.head(path=path))
        for authority in ("a\r\nX: y", "a b", "user@www.example", "a/b", "a,b"):
            self.check_refused(self.head(authority=authority))

    def test_a_host_that_is_another(self):
        self.check_refused(self.head(("host", "other.example")))
        self.check_refused(self.head(("host", "www.example"), ("host", "other.example")))

    def test_lengths_that_do_not_fit(self):
        for length, content in (("3", b"abcd"), ("5", b"abc"), ("3, 4", b"abc"), ("+3", b"abc"),
                                ("", b"abc"), ("-1", b""), ("99999999999999999999", b"abc")):
            self.check_refused(self.head(("content-length", length), method="POST"), content)
        self.check_refused(self.head(("content-length", "3"), ("content-length", "4"),
                                     method="POST"), b"abc")
        self.check_refused(self.head(("content-length", "3")))

    def test_what_is_chunked_stays_content(self):
        """Content that looks like chunks, and like a request behind them, is content."""
        text = b"0\r\n\r\nGET /two HTTP/1.1\r\nHost: a\r\n\r\n"
        self.origin.routes["/echo"] = lambda e: response(e.request.body)
        with self.client() as client:
            stream = client.request("/echo", method="POST", end=False)
            client.data(stream, text)
            self.assertEqual(text, client.response(stream).body)
        self.assertEqual(["/echo"], [each.target for each in self.origin.requests])

    def test_trailers_that_are_no_trailers(self):
        for fields in ([("content-length", "1")], [("transfer-encoding", "chunked")],
                       [(":path", "/two")], [("a\r\nb", "c")]):
            with self.client() as client:
                client.read_until(lambda: client.acknowledged)
                stream = client.request("/sound", method="POST", end=False)
                client.data(stream, b"abc", end=False)
                client.headers(fields, stream=stream)
                answer = client.response(stream)
                self.assertTrue(answer.reset is not None or answer.status in (200, 400), fields)
                self.assertEqual(b"sound", client.ask("/sound").body)
        for request in self.origin.requests:
            names = [name.lower() for name, _ in request.fields]
            self.assertLessEqual(names.count("content-length"), 1)
            self.assertEqual("/sound", request.target)

    def test_what_is_malformed_is_counted(self):
        with self.client() as client:
            self.assertEqual(http2.PROTOCOL_ERROR, client.ask("/x", [("A", "b")]).reset)
        metrics = self.proxy.metrics()
        self.assertEqual(1, sum(value for name, value in metrics.items()
                                if name.startswith("encore_http2_malformed_total")))


if __name__ == "__main__":
    unittest.main()
