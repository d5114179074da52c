"""HTTP/2 to origins (`http2 = true`): several requests on one connection, content and trailers both ways,
windows, retries that are safe."""

import http.client
import json
import random
import signal
import struct
import threading
import unittest

import http2
from client import Client
from harness import Case, CertificateAuthority, eventually, free_port, need_program
from http2 import Http2Client
from http2_origin import Http2Origin, forever
from origin import Origin, response

BODY = random.Random(7).randbytes(300_000)


class OriginCase(Case):
    def serve(self, *scripts, settings=(), origin=None, context=None, **sections):
        self.origin = Http2Origin(self, *scripts, settings=settings, context=context)
        return self.front(self.origin.url, origin, **sections)

    def front(self, url, origin=None, **sections):
        sections.setdefault("workers", {"count": 1})
        self.proxy = self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
            origin=[{"servers": [url] if isinstance(url, str) else url, "http2": True,
                     **(origin or {})}], **sections)
        return self.proxy

    def client(self, **options):
        client = Http2Client(self.proxy.port, **options)
        self.addCleanup(client.close)
        return client

    def ask(self, target="/", method="GET", body=None, headers=None):
        """A response over HTTP/1.1: status, fields and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.port, timeout=60)
        try:
            connection.request(method, target, body=body, headers=headers or {})
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def metric(self, name):
        return self.proxy.metrics()[f"encore_{name}"]


class Messages(OriginCase):
    def test_a_request_is_said_as_http2_says_it(self):
        def serve(connection, request):
            connection.answer(request, b"hello", ("content-length", "5"), ("x-one", "1"))
        self.serve(lambda c: forever(c, serve))
        status, fields, body = self.ask("/a?b", headers={"X-Two": "2", "TE": "trailers",
                                                         "Connection": "TE"})
        self.assertEqual((200, b"hello", "1"), (status, body, fields["X-One"]))
        request = self.origin.requests[0]
        self.assertEqual(("GET", "/a?b", "http", f"127.0.0.1:{self.proxy.port}"),
                         tuple(request[name] for name in
                               (":method", ":path", ":scheme", ":authority")))
        self.assertEqual(("2", "trailers"), (request["x-two"], request["te"]))
        self.assertIsNone(request["connection"])
        self.assertIsNone(request["host"])
        self.assertEqual([name.lower() for name, _ in request.fields],
                         [name for name, _ in request.fields])
        record = self.proxy.access_records(1)[0]
        self.assertEqual("HTTP/2", record["origin_version"])

    def test_responses_without_content(self):
        def serve(connection, request):
            status = int(request[":path"][1:4])
            length = [("content-length", "5")] if request[":method"] == "HEAD" else []
            connection.head(request, *length, status=status, end=True)
        self.serve(lambda c: forever(c, serve))
        for target, method, length in (("/200", "HEAD", "5"), ("/204", "GET", None),
                                       ("/304", "GET", None), ("/200", "GET", "0"),
                                       ("/404", "POST", "0")):
            status, fields, body = self.ask(target, method, headers={"If-None-Match": '"1"'})
            self.assertEqual((int(target[1:]), b""), (status, body), target)
            self.assertEqual(length, fields["Content-Length"], target)
        self.assertEqual(1, len(self.origin.connections))
        self.assertEqual([None] * 5, [each.reset for each in self.origin.requests])

    def test_content_of_unknown_length_comes_whole_with_its_trailers(self):
        def serve(connection, request):
            connection.head(request, ("trailer", "x-sum"))
            for at in range(0, len(BODY), 10_000):
                piece = BODY[at:at + 10_000]
                connection.until(lambda: min(request.window, connection.window) >= len(piece))
                connection.data(request, piece)
            connection.trailers(request, ("x-sum", "7"))
        self.serve(lambda c: forever(c, serve))
        with self.client() as client:
            answer = client.ask("/", [("te", "trailers")])
            self.assertEqual((200, BODY), (answer.status, answer.body))
            self.assertEqual([("x-sum", "7")], answer.trailers)
        self.assertEqual((200, BODY), self.ask("/other")[::2])

    def test_interim_responses_pass(self):
        def serve(connection, request):
            connection.head(request, ("link", "</style.css>; rel=preload"), status=103)
            connection.answer(request, b"page")
        self.serve(lambda c: forever(c, serve))
        with self.client() as client:
            answer = client.ask("/")
            self.assertEqual((200, b"page"), (answer.status, answer.body))
            self.assertIn(("link", "</style.css>; rel=preload"), answer.interim[0])

    def test_content_goes_up_as_the_window_opens(self):
        opened = threading.Event()

        def serve(connection):
            connection.gives_back = False
            connection.answer(connection.next(), b"settings are known")
            request = connection.next()
            connection.until(lambda: len(request.body) == 1000)
            # Nothing more comes before the window opens: an answer to PING is behind all that was
            # in flight.
            connection.frame(http2.PING, 0, 0, b"anymore?")
            connection.until(lambda: connection.pings)
            self.assertEqual(1000, len(request.body))
            opened.set()
            connection.gives_back = True
            for stream in (0, request.stream):
                connection.frame(http2.WINDOW_UPDATE, 0, stream, struct.pack(">I", 1 << 20))
            connection.until(lambda: request.ended)
            self.assertEqual(BODY, request.body)
            connection.answer(request, b"thanks")
            connection.wait_for_end()
        self.serve(serve, settings=[(http2.INITIAL_WINDOW_SIZE, 1000)])
        self.ask("/")
        self.assertEqual((200, b"thanks"), self.ask("/", "PUT", BODY)[::2])
        self.assertTrue(opened.is_set())

    def test_trailers_of_a_request(self):
        def serve(connection, request):
            connection.until(lambda: request.ended)
            connection.answer(request, json.dumps(request.trailers).encode())
        self.serve(lambda c: forever(c, serve))
        with Client(self.proxy.port) as client:
            client.send(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                        b"3\r\nabc\r\n0\r\nX-End: 1\r\n\r\n")
            answer = client.read_response()
            self.assertEqual([["x-end", "1"]], json.loads(answer.body))
        self.assertEqual(b"abc", self.origin.requests[0].body)

    def test_a_stored_response_is_fresh_and_validated(self):
        def serve(connection, request):
            if request["if-none-match"]:
                connection.head(request, ("cache-control", "max-age=600"), ("etag", '"1"'),
                                status=304, end=True)
            else:
                connection.answer(request, b"kept", ("cache-control", "max-age=600"),
                                  ("etag", '"1"'))
        self.serve(lambda c: forever(c, serve), admission={"policy": "always"})
        self.ask("/")
        self.assertIn("; hit", self.ask("/")[1]["Cache-Status"])
        status, fields, body = self.ask("/", headers={"Cache-Control": "no-cache"})
        self.assertEqual((200, b"kept"), (status, body))
        self.assertEqual(2, len(self.origin.requests))

    def test_a_response_that_breaks_off_is_not_whole(self):
        def serve(connection, request):
            connection.head(request, ("content-length", "10"))
            connection.data(request, b"12345")
            if request[":path"] == "/short":
                connection.data(request, b"", end=True)
            elif request[":path"] == "/long":
                connection.data(request, b"123456789", end=True)
            else:
                connection.reset(request, http2.INTERNAL_ERROR)
        self.serve(lambda c: forever(c, serve))
        for target in ("/short", "/long", "/reset"):
            with self.client() as client:
                stream = client.request(target)
                answer = client.streams[stream]
                client.read_until(lambda: answer.over)
                self.assertIsNotNone(answer.reset, target)
        self.assertEqual(1, len(self.origin.connections))
        self.assertEqual(
            2, self.metric('origin_http2_malformed_total{reason="length-mismatch"}'))


class Multiplexing(OriginCase):
    def test_requests_share_a_connection(self):
        """None is answered before all are there."""
        count = 50

        def serve(connection):
            requests = [connection.next() for _ in range(count)]
            for request in reversed(requests):
                connection.answer(request, request[":path"].encode())
            connection.wait_for_end()
        self.serve(serve)
        with self.client() as client:
            streams = [client.request(f"/{i}") for i in range(count)]
            for i, stream in enumerate(streams):
                answer = client.streams[stream]
                client.read_until(lambda: answer.over)
                self.assertEqual((200, f"/{i}".encode()), (answer.status, answer.body))
        self.assertEqual(1, len(self.origin.connections))
        self.assertEqual((1, count), (self.metric("origin_http2_connections_total"),
                                      self.metric("origin_http2_streams_total")))
        self.assertEqual(1, self.metric("origin_http2_connections"))
        eventually(lambda: self.metric("origin_http2_streams") == 0, "no stream is left")

    def test_our_own_limit_of_streams(self):
        """Each connection gets as many concurrent requests, and not one more."""
        all_there = threading.Barrier(3)

        def serve(connection):
            requests = [connection.next() for _ in range(4)]
            all_there.wait(60)
            for request in requests:
                connection.answer(request, b"x")
            connection.wait_for_end()
        self.serve(serve, upstream={"http2_streams": 4})
        with self.client() as client:
            streams = [client.request(f"/{i}") for i in range(12)]
            client.read_until(lambda: all(client.streams[each].over for each in streams))
            self.assertEqual({200}, {client.streams[each].status for each in streams})
        self.assertEqual(3, len(self.origin.connections))

    def test_the_servers_limit_of_streams(self):
        known = threading.Event()

        def serve(connection):
            connection.answer(connection.next(), b"first")
            known.wait(60)
            requests = [connection.next() for _ in range(2)]
            for request in requests:
                connection.answer(request, b"x")
            connection.wait_for_end()

        def further(connection):
            requests = [connection.next() for _ in range(2)]
            for request in requests:
                connection.answer(request, b"x")
            connection.wait_for_end()
        self.serve(serve, further, settings=[(http2.MAX_CONCURRENT_STREAMS, 2)])
        self.assertEqual(b"first", self.ask("/")[2])
        known.set()
        with self.client() as client:
            streams = [client.request(f"/{i}") for i in range(4)]
            client.read_until(lambda: all(client.streams[each].over for each in streams))
            self.assertEqual([200] * 4, [client.streams[each].status for each in streams])
        self.assertEqual(2, len(self.origin.connections))

    def test_a_limit_of_connections_makes_requests_wait_for_a_stream(self):
        def serve(connection, request):
            if request[":path"] == "/last":
                for each in connection.held:
                    connection.answer(each, b"held")
                connection.answer(request, b"last")
            else:
                connection.held.append(request)
                if len(connection.held) == 2:
                    connection.answer(connection.held.pop(0), b"early")

        def script(connection):
            connection.held = []
            forever(connection, serve)
        self.serve(script, upstream={"http2_streams": 2, "connections_per_server": 1,
                                     "connections_per_client": "100%"})
        with self.client() as client:
            streams = [client.request(target) for target in ("/a", "/b", "/last")]
            client.read_until(lambda: all(client.streams[each].over for each in streams))
            self.assertEqual([b"early", b"held", b"last"],
                             [client.streams[each].body for each in streams])
        self.assertEqual(1, len(self.origin.connections))
        self.assertLessEqual(1, self.metric("origin_waits_total"))

    def test_a_slow_client_holds_back_its_own_stream_alone(self):
        """The origin may send no more of it than windows and buffers allow, and all of the others."""
        sent = []

        def serve(connection, request):
            if request[":path"] != "/slow":
                return connection.answer(request, b"quick")
            connection.head(request)
            # The window is used up: nothing more is wanted of that.
            total, is_shut = 0, False
            while not is_shut:
                while room := min(request.window, connection.window, 16384):
                    connection.data(request, b"s" * room)
                    total += room
                pongs = len(connection.pings)
                connection.frame(http2.PING, 0, 0, b"is there")
                connection.until(lambda: len(connection.pings) > pongs)
                is_shut = min(request.window, connection.window) == 0
            sent.append((total, request.window, connection.window))
            return None
        self.serve(lambda c: forever(c, serve))
        with self.client(window=None) as slow, self.client() as quick:
            stream = slow.request("/slow")
            slow.read_until(lambda: len(slow.streams[stream].body) == 65535)
            for i in range(20):
                self.assertEqual(b"quick", quick.ask(f"/{i}").body)
            self.assertEqual(1, len(self.origin.connections))
            total, stream_window, connection_window = sent[0]
            self.assertEqual(0, stream_window)
            self.assertLess(0, connection_window)
            self.assertLess(total, 1 << 20)
            slow.reset(stream)
            eventually(lambda: self.origin.requests[0].reset is not None or
                       quick.ask("/again").body != b"quick", "the stream is cancelled")
            self.assertEqual(http2.CANCEL, self.origin.requests[0].reset)

    def test_a_client_that_leaves_cancels_its_stream(self):
        def serve(connection, request):
            if request[":path"] == "/held":
                connection.head(request)
                connection.data(request, b"some")
            else:
                connection.answer(request, b"other")
        self.serve(lambda c: forever(c, serve))
        with self.client() as client:
            stream = client.request("/held")
            client.read_until(lambda: client.streams[stream].body == b"some")
            client.reset(stream)
            eventually(lambda: client.ask("/other").body == b"other" and
                       self.origin.requests[0].reset == http2.CANCEL, "the stream is cancelled")
        self.assertEqual(1, len(self.origin.connections))


class Retries(OriginCase):
    def test_what_goaway_leaves_out_is_sent_again_with_its_content(self):
        def leaving(connection):
            first = connection.next_whole()
            second = connection.next_whole()
            connection.go_away(first.stream)
            connection.answer(first, b"first")
            self.assertEqual(b"b" * 5000, second.body)
            connection.wait_for_end()

        def staying(connection):
            forever(connection, lambda c, request: (
                c.until(lambda: request.ended), c.answer(request, request.body)))
        self.serve(leaving, staying)
        with self.client() as client:
            first = client.request("/1", method="POST", end=False)
            client.data(first, b"a" * 5)
            second = client.request("/2", method="POST", end=False)
            client.data(second, b"b" * 5000)
            client.read_until(lambda: client.streams[first].over and client.streams[second].over)
            self.assertEqual((b"first", b"b" * 5000),
                             (client.streams[first].body, client.streams[second].body))
        self.assertEqual(2, len(self.origin.connections))
        self.assertEqual(1, self.metric("origin_retries_total"))

    def test_a_refused_stream_is_sent_again_whatever_its_method(self):
        refused = []

        def serve(connection, request):
            if not refused:
                refused.append(request)
                return connection.reset(request, http2.REFUSED_STREAM)
            return connection.answer(request, b"done")
        self.serve(lambda c: forever(c, serve))
        self.assertEqual((200, b"done"), self.ask("/", "POST")[::2])
        self.assertEqual(2, len(self.origin.requests))

    def test_a_stream_that_was_reset_is_not_sent_again_unless_it_is_idempotent(self):
        def serve(connection, request):
            seen = [each for each in self.origin.requests if each[":path"] == request[":path"]]
            if len(seen) == 1:
                return connection.reset(request, http2.INTERNAL_ERROR)
            return connection.answer(request, b"done")
        self.serve(lambda c: forever(c, serve))
        self.assertEqual(502, self.ask("/post", "POST", b"x")[0])
        self.assertEqual((200, b"done"), self.ask("/get")[::2])
        self.assertEqual(["/post", "/get", "/get"],
                         [each[":path"] for each in self.origin.requests])

    def test_content_beyond_what_is_kept_is_not_sent_again(self):
        def serve(connection, request):
            connection.until(lambda: request.ended)
            connection.reset(request, http2.REFUSED_STREAM)
        self.serve(lambda c: forever(c, serve))
        self.assertEqual(502, self.ask("/", "PUT", BODY)[0])
        self.assertEqual(1, len(self.origin.requests))

    def test_a_connection_that_ends_takes_no_answered_request_with_it(self):
        def first(connection):
            connection.answer(connection.next(), b"1")
            connection.next()  # and goes, without a word

        def second(connection):
            forever(connection, lambda c, request: c.answer(request, b"2"))
        self.serve(first, second)
        self.assertEqual(b"1", self.ask("/")[2])
        self.assertEqual(b"2", self.ask("/")[2])

    def test_a_server_that_is_gone_leaves_its_requests_to_another(self):
        dead = f"http://127.0.0.1:{free_port()}"
        self.origin = Http2Origin(
            self, lambda c: forever(c, lambda c, request: c.answer(request, b"alive")))
        self.front([dead, self.origin.url])
        for i in range(4):
            self.assertEqual((200, b"alive"), self.ask(f"/{i}")[::2])

    def test_a_silent_connection_takes_no_more_requests(self):
        over = threading.Event()
        self.addCleanup(over.set)

        def silent(connection):
            connection.answer(connection.next(), b"once")
            over.wait(120)  # and reads nothing

        def speaking(connection):
            forever(connection, lambda c, request: c.answer(request, b"here"))
        self.serve(silent, speaking, timeouts={"origin_response": "1s"})
        self.assertEqual(b"once", self.ask("/")[2])
        self.assertEqual(504, self.ask("/", "POST", b"x")[0])
        self.assertEqual(b"here", self.ask("/")[2])
        self.assertEqual(2, len(self.origin.connections))

    def test_a_reload_ends_connections_behind_their_requests(self):
        go_on = threading.Event()

        def serve(connection, request):
            if request[":path"] == "/held":
                go_on.wait(60)
            connection.answer(request, b"x")
        self.serve(lambda c: forever(c, serve))
        with self.client() as client:
            stream = client.request("/held")
            eventually(lambda: self.origin.requests, "the request is there")
            self.proxy.signal(signal.SIGHUP)
            eventually(lambda: self.proxy.stats()["reloads"] == 1, "it is reloaded")
            self.assertEqual(b"x", self.client().ask("/other").body)
            self.assertEqual(2, len(self.origin.connections))
            go_on.set()
            client.read_until(lambda: client.streams[stream].over)
            self.assertEqual(b"x", client.streams[stream].body)
        eventually(lambda: self.origin.connections[0].goaway, "the first ends with a GOAWAY")
        self.assertEqual(0, self.origin.connections[0].goaway[1])


class Tls(OriginCase):
    def contexts(self, *protocols):
        authority = CertificateAuthority(self)
        context = authority.server_context("localhost")
        context.set_alpn_protocols(list(protocols))
        return authority, context

    def test_alpn_chooses_http2(self):
        authority, context = self.contexts("h2", "http/1.1")
        self.serve(lambda c: forever(c, lambda c, r: c.answer(r, r[":scheme"].encode())),
                   context=context, origin={"tls_ca_file": str(authority.certificate),
                                            "tls_server_name": "localhost"})
        self.assertEqual((200, b"https"), self.ask("/")[::2])

    def test_a_server_that_chooses_http1_gets_that(self):
        authority, context = self.contexts("http/1.1")
        origin = Origin(self, {"/": response(b"one")}, tls=context)
        self.front(f"https://127.0.0.1:{origin.port}",
                   {"tls_ca_file": str(authority.certificate), "tls_server_name": "localhost"})
        for _ in range(3):
            self.assertEqual((200, b"one"), self.ask("/")[::2])
        self.assertEqual("HTTP/1.1", self.proxy.access_records(3)[0]["origin_version"])
        self.assertEqual(0, self.metric("origin_http2_connections_total"))


class Health(OriginCase):
    def test_checks_speak_http2_as_well(self):
        def serve(connection, request):
            connection.answer(request, b"", status=200 if well.is_set() else 500)
        well = threading.Event()
        well.set()
        self.serve(lambda c: forever(c, serve),
                   origin={"health_path": "/health", "health_interval": "50ms"})
        eventually(lambda: self.metric("health_checks_total") >= 2, "it is checked")
        self.assertEqual(0, self.metric("health_check_failures_total"))
        well.clear()
        eventually(lambda: ": down: /health: status 500" in self.proxy.output(), "it is down")


class RealServers(OriginCase):
    def check(self, url, origin=None, size=len(BODY)):
        self.front(url, origin)
        for i in range(3):
            self.assertEqual((200, BODY[:size]), self.ask(f"/file?{i}")[::2])
        with self.client() as client:
            streams = [client.request(f"/file?{i}x") for i in range(20)]
            client.read_until(lambda: all(client.streams[each].over for each in streams))
            self.assertEqual({BODY[:size]}, {client.streams[each].body for each in streams})
        self.assertLessEqual(1, self.metric("origin_http2_connections_total"))
        self.assertEqual(23, self.metric("origin_http2_streams_total"))

    def test_nghttpd(self):
        nghttpd = need_program("nghttpd")
        (self.directory / "file").write_bytes(BODY)
        port = free_port()
        self.start([nghttpd, "--no-tls", "-d", str(self.directory), str(port)], port=port)
        self.check(f"http://127.0.0.1:{port}")

    def test_node(self):
        node = need_program("node")
        (self.directory / "file").write_bytes(BODY)
        port = free_port()
        script = self.directory / "server.js"
        script.write_text("""
const body = require('fs').readFileSync(process.argv[3]);
require('http2').createServer((request, response) => response.end(body))
  .listen(Number(process.argv[2]), '127.0.0.1');
""")
        self.start([node, str(script), str(port), str(self.directory / "file")], port=port)
        self.check(f"http://127.0.0.1:{port}")


if __name__ == "__main__":
    unittest.main()
