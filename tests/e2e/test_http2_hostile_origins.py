"""Origins of HTTP/2 that mean harm, or are broken: each meets a limit, which is counted, and nobody else
notices."""

import http.client
import struct
import threading
import unittest

import http2
from harness import eventually, free_port
from http2_origin import Gone, Http2Origin, forever
from test_http2_origins import OriginCase

CALM = http2.ENHANCE_YOUR_CALM
BAD = 1  # PROTOCOL_ERROR
CLOSED = 5  # STREAM_CLOSED
FLOW = 3  # FLOW_CONTROL_ERROR


class HostileCase(OriginCase):
    """The route /hostile/ leads to the origin under test, all others to an honest one."""

    def setUp(self):
        super().setUp()
        self.done = threading.Event()

    def both(self, *scripts, settings=(), **sections):
        self.hostile = Http2Origin(self, *scripts, settings=settings)
        self.origin = Http2Origin(
            self, lambda c: forever(c, lambda c, request: c.answer(request, b"honest")))
        self.proxy = self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
            origin=[{"path": "/hostile/", "servers": [self.hostile.url], "http2": True},
                    {"servers": [self.origin.url], "http2": True}],
            workers={"count": 1}, **sections)

    def check_honest(self):
        self.assertEqual((200, b"honest"), self.ask("/")[::2])

    def check(self, attack, counter=None, code=CALM, status=502, settings=(), **sections):
        """`attack(connection, request)` is met by an end of the connection with this code; of the
        client's request, by this status."""
        def script(connection):
            request = connection.next()
            try:
                attack(connection, request)
            except Gone:
                pass
            connection.wait_for_end()
            self.done.set()
        self.both(script, settings=settings, upstream={"retries": 0}, **sections)
        self.check_honest()
        before = self.metric(f"origin_http2_{counter}") if counter else 0
        try:
            self.assertEqual(status, self.ask("/hostile/a")[0])
        except http.client.IncompleteRead:
            self.assertEqual(200, status)  # the response had begun
        self.assertTrue(self.done.wait(60))
        self.check_honest()
        goaway = self.hostile.connections[0].goaway
        # The last words may be lost where more comes than is read.
        if goaway is not None:
            self.assertEqual(code, goaway[1], goaway)
        if counter:
            self.assertEqual(before + 1, self.metric(f"origin_http2_{counter}"))
        eventually(lambda: self.metric("origin_http2_streams") == 0, "no stream is left")
        self.assertEqual(1, len(self.origin.connections))


class Floods(HostileCase):
    def flood(self, kind, one):
        def attack(connection, request):
            for i in range(200_000):
                one(connection, request, i)
        self.check(attack, f'floods_total{{kind="{kind}"}}')

    def test_settings(self):
        self.flood("settings", lambda c, r, i: c.frame(http2.SETTINGS, 0, 0))

    def test_pings(self):
        self.flood("ping", lambda c, r, i: c.frame(http2.PING, 0, 0, b"12345678"))

    def test_empty_frames(self):
        def attack(connection, request):
            connection.head(request)
            for _ in range(200_000):
                connection.data(request, b"")
        self.check(attack, 'floods_total{kind="empty"}', status=200)

    def test_windows_that_open_by_a_byte(self):
        self.flood("window", lambda c, r, i: c.frame(http2.WINDOW_UPDATE, 0, 0,
                                                     struct.pack(">I", 1)))

    def test_resets_of_what_is_over(self):
        def attack(connection, request):
            connection.reset(request, http2.INTERNAL_ERROR)
            for _ in range(200_000):
                connection.reset(request, http2.INTERNAL_ERROR)
        self.check(attack, 'floods_total{kind="reset-answered"}')

    def test_unknown_frames(self):
        self.flood("unknown", lambda c, r, i: c.frame(0xbb, 0, 0, b"x"))


class Heads(HostileCase):
    def test_continuations(self):
        def attack(connection, request):
            connection.frame(http2.HEADERS, 0, request.stream, http2.encode([(":status", "200")]))
            for i in range(1000):
                connection.frame(http2.CONTINUATION, 0, request.stream,
                                 http2.encode([(f"x-{i}", "y")]))
        self.check(attack, 'limits_total{limit="continuations"}')

    def test_a_bomb_of_references(self):
        """One entry of the table, named thousands of times by a byte each."""
        def attack(connection, request):
            block = b"\x88" + b"\x40\x01x" + b"\x7f\xa1\x1e" + b"y" * 4000 + b"\xbe" * 10_000
            connection.frame(http2.HEADERS, http2.END_HEADERS, request.stream, block)
        self.check(attack, 'limits_total{limit="head-bytes"}')

    def test_too_many_fields(self):
        def attack(connection, request):
            block = b"\x88" + b"\x00\x01a\x01b" * 3000
            connection.frame(http2.HEADERS, http2.END_HEADERS, request.stream, block)
        self.check(attack, 'limits_total{limit="head-fields"}')

    def test_a_block_that_cannot_be_decoded(self):
        self.check(lambda c, r: c.frame(http2.HEADERS, http2.END_HEADERS, r.stream, b"\xff" * 9),
                   code=9)

    def test_malformed_responses_end_their_stream_alone(self):
        """Each is refused; another request on the same connection is answered."""
        heads = {
            "/hostile/connection": [(":status", "200"), ("connection", "close")],
            "/hostile/upper": [(":status", "200"), ("X-Upper", "1")],
            "/hostile/line": [(":status", "200"), ("x", "a\r\nset-cookie: b")],
            "/hostile/nul": [(":status", "200"), ("x", "a\0b")],
            "/hostile/status": [(":status", "2000")],
            "/hostile/none": [("x", "y")],
            "/hostile/twice": [(":status", "200"), (":status", "200")],
            "/hostile/late": [("x", "y"), (":status", "200")],
            "/hostile/pseudo": [(":status", "200"), (":path", "/")],
            "/hostile/switch": [(":status", "101")],
            "/hostile/coding": [(":status", "200"), ("transfer-encoding", "chunked")],
            "/hostile/lengths": [(":status", "200"), ("content-length", "1"),
                                 ("content-length", "1")],
            "/hostile/length": [(":status", "200"), ("content-length", "-1")]}

        def serve(connection, request):
            fields = heads.get(request[":path"], [(":status", "200")])
            connection.frame(http2.HEADERS, http2.END_HEADERS | http2.END_STREAM, request.stream,
                             http2.encode(fields))
        self.both(lambda c: forever(c, serve), upstream={"retries": 0})
        for target in heads:
            self.assertEqual(502, self.ask(target)[0], target)
            self.assertEqual(200, self.ask("/hostile/well")[0])
        self.assertEqual(1, len(self.hostile.connections))
        malformed = sum(value for name, value in self.proxy.metrics().items()
                        if name.startswith("encore_origin_http2_malformed_total"))
        self.assertEqual(len(heads), malformed)


class Streams(HostileCase):
    def test_a_push_is_refused(self):
        self.check(lambda c, r: c.frame(http2.PUSH_PROMISE, http2.END_HEADERS, r.stream,
                                        struct.pack(">I", 2) + http2.encode([(":path", "/")])),
                   code=BAD)

    def test_a_response_to_what_nobody_has_asked(self):
        def attack(connection, request):
            request.stream += 2
            connection.head(request)
        self.check(attack, code=BAD)

    def test_a_response_on_a_stream_of_the_server(self):
        def attack(connection, request):
            request.stream = 2
            connection.head(request)
        self.check(attack, code=BAD)

    def test_content_behind_the_end(self):
        def attack(connection, request):
            connection.answer(request, b"all")
            connection.data(request, b"more")
        self.check(attack, code=CLOSED, status=200)

    def test_more_content_than_the_window(self):
        def attack(connection, request):
            connection.gives_back = False
            connection.head(request)
            for _ in range(200):
                connection.frame(http2.DATA, 0, request.stream, b"x" * 16384)
            connection.wait_for_end()
        # The client takes nothing, so that nothing is given back.
        def script(connection):
            attack(connection, connection.next())
        self.both(script)
        with self.client(window=None) as client:
            stream = client.request("/hostile/a")
            client.read_until(lambda: client.streams[stream].over or
                              len(client.streams[stream].body) == 65535)
            self.check_honest()
            eventually(lambda: self.hostile.requests[0].reset == FLOW or
                       self.hostile.connections[0].goaway, "it is refused")

    def test_a_response_that_never_ends(self):
        def script(connection):
            request = connection.next()
            connection.head(request)
            connection.data(request, b"x")
            other = connection.next()
            connection.answer(other, b"other")
            connection.until(lambda: request.reset is not None)
            self.done.set()
            connection.wait_for_end()
        self.both(script, timeouts={"origin_idle": "1s"})
        with self.client() as client:
            stream = client.request("/hostile/a")
            client.read_until(lambda: client.streams[stream].body == b"x")
            self.assertEqual(b"other", self.ask("/hostile/b")[2])
            client.read_until(lambda: client.streams[stream].over)
            self.assertIsNotNone(client.streams[stream].reset)
        self.assertTrue(self.done.wait(60))
        self.assertEqual(http2.CANCEL, self.hostile.requests[0].reset)

    def test_a_window_that_stays_shut(self):
        def script(connection):
            connection.gives_back = False
            connection.answer(connection.next(), b"settings are known")
            request = connection.next()
            connection.until(lambda: request.reset is not None)
            connection.answer(connection.next(), b"other")
            connection.wait_for_end()
        self.both(script, settings=[(http2.INITIAL_WINDOW_SIZE, 0)],
                  timeouts={"origin_idle": "1s"}, upstream={"retries": 0})
        self.ask("/hostile/")
        self.assertEqual(502, self.ask("/hostile/a", "PUT", b"content")[0])
        eventually(lambda: self.hostile.requests[1].reset == http2.CANCEL, "its server is told")
        self.assertEqual(b"other", self.ask("/hostile/b")[2])
        self.assertEqual(1, self.metric('origin_http2_limits_total{limit="stalled-stream"}'))

    def test_content_without_a_head(self):
        def serve(connection, request):
            connection.data(request, b"x", end=True)
        self.both(lambda c: forever(c, serve), upstream={"retries": 0})
        self.assertEqual(502, self.ask("/hostile/a")[0])
        self.check_honest()

    def test_what_is_no_http2(self):
        def script(connection):
            connection.sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
            connection.wait_for_end()
        self.both(script, upstream={"retries": 0})
        self.assertEqual(502, self.ask("/hostile/a")[0])
        self.check_honest()

    def test_endless_interim_responses(self):
        def attack(connection, request):
            for _ in range(1000):
                connection.head(request, status=103)
        def script(connection):
            request = connection.next()
            attack(connection, request)
            connection.wait_for_end()
        self.both(script, upstream={"retries": 0})
        with self.client() as client:
            answer = client.ask("/hostile/a")
            self.assertEqual((502, 32), (answer.status, len(answer.interim)))
        self.check_honest()


if __name__ == "__main__":
    unittest.main()
