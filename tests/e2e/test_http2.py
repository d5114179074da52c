"""HTTP/2 to clients: with prior knowledge and by ALPN, hits and misses, content both ways."""

import hashlib
import random
import signal
import socket
import threading
import time
import unittest

import http2
import websocket
from client import Client
from harness import DEADLINE, Case, eventually, free_port, need_program
from http2 import Http2Client
from origin import Origin, chunked, fresh, response
from tls import TlsCase

BODY = random.Random(2).randbytes(300_000)


class EchoServer:
    """Sends back what it gets, and ends with its client."""

    def __init__(self, case):
        self.ended = 0
        self.sock = socket.create_server(("127.0.0.1", 0))
        case.addCleanup(self.sock.close)
        self.port = self.sock.getsockname()[1]
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            try:
                client, _ = self.sock.accept()
            except OSError:
                return
            threading.Thread(target=self.echo, args=(client,), daemon=True).start()

    def echo(self, client):
        with client:
            try:
                while data := client.recv(65536):
                    client.sendall(data)
            except OSError:
                pass
        self.ended += 1


class Http2Case(Case):
    def serve(self, routes=None, listen=None, **sections):
        self.origin = Origin(self, routes or {})
        self.proxy = self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse", **(listen or {})}],
            origin=[{"servers": [self.origin.url("")]}], **sections)
        return self.proxy

    def client(self, **options):
        client = Http2Client(self.proxy.port, **options)
        self.addCleanup(client.close)
        return client


class PriorKnowledge(Http2Case):
    def test_curl_gets_a_page_from_origin_and_cache(self):
        curl = need_program("curl")
        self.serve({"/file": fresh(BODY), "/small": fresh(b"small", Set_Thing="A"),
                    "/empty": fresh(b"")})
        target = self.directory / "out"
        for path, body in ("/file", BODY), ("/small", b"small"), ("/empty", b""):
            for said in "first-request", "second-request", "hit":
                ended = self.run_client([curl, "-sS", "--http2-prior-knowledge", "-D", "-", "-o",
                                         target, self.proxy.url + path])
                head = ended.stdout.decode()
                self.assertTrue(head.startswith("HTTP/2 200"), head)
                self.assertIn(said, head)
                self.assertEqual(hashlib.sha256(body).digest(),
                                 hashlib.sha256(target.read_bytes()).digest())
            self.assertEqual(2, self.origin.count(path))

    def test_names_of_fields_are_lower_case_and_those_of_a_connection_left_out(self):
        self.serve({"/x": fresh(b"body", X_Upper="Kept", Connection="X-Private",
                                X_Private="not for you")})
        with self.client() as client:
            for _ in range(3):
                answer = client.ask("/x")
                self.assertEqual((200, b"body"), (answer.status, answer.body))
                self.assertEqual("Kept", answer["x-upper"])
                for name, _ in answer.fields:
                    self.assertEqual(name.lower(), name)
                    self.assertNotIn(name, ("connection", "x-private", "transfer-encoding"))
        self.assertIn("hit", answer["cache-status"])

    def test_the_origin_sees_what_came(self):
        self.serve({"/x": response(b"x")})
        with self.client() as client:
            client.ask("/x", [("x-one", "1"), ("cookie", "a=1"), ("cookie", "b=2")])
        seen = self.origin.last("/x")
        fields = {name.lower(): value for name, value in seen.fields}
        self.assertEqual("www.example", fields["host"])
        self.assertEqual("1", fields["x-one"])
        self.assertEqual("a=1; b=2", fields["cookie"])
        self.assertTrue(fields["via"].startswith("2.0 "), fields["via"])

    def test_log_and_metrics_tell_the_protocol(self):
        self.serve({"/x": fresh(b"x")})
        with self.client() as client:
            for _ in range(3):
                client.ask("/x")
            now = self.proxy.metrics()
            self.assertEqual(1, now["encore_http2_connections"])
            self.assertEqual(1, now["encore_http2_connections_total"])
            self.assertEqual(3, now["encore_http2_streams_total"])
        records = self.proxy.access_records(3)
        self.assertEqual({"HTTP/2"}, {record["version"] for record in records})
        eventually(lambda: self.proxy.metrics()["encore_http2_connections"] == 0,
                   "the connection has ended")

    def test_head_has_no_content_and_a_condition_its_304(self):
        self.serve({"/x": fresh(b"body", ETag='"1"')})
        with self.client() as client:
            for _ in range(2):
                client.ask("/x")
            answer = client.ask("/x", method="HEAD")
            self.assertEqual((200, b"", "4"),
                             (answer.status, answer.body, answer["content-length"]))
            answer = client.ask("/x", [("if-none-match", '"1"')])
            self.assertEqual((304, b""), (answer.status, answer.body))
            answer = client.ask("/x", [("range", "bytes=1-2")])
            self.assertEqual((206, b"od"), (answer.status, answer.body))

    def test_http_1_is_spoken_beside_it_and_upgrade_is_passed_over(self):
        self.serve({"/x": response(b"x")})
        with Client(self.proxy.port) as client:
            client.send("GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade, HTTP2-Settings\r\n"
                        "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n")
            self.assertEqual(b"x", client.read_response().body)
        fields = {name.lower() for name, _ in self.origin.last("/x").fields}
        self.assertFalse(fields & {"upgrade", "http2-settings"})

    def test_a_preface_that_comes_in_pieces_is_one(self):
        self.serve({"/x": response(b"x")})
        sock = socket.create_connection(("127.0.0.1", self.proxy.port), 30)
        self.addCleanup(sock.close)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for i in range(len(http2.PREFACE)):
            sock.sendall(http2.PREFACE[i:i + 1])
        sock.sendall(b"\0\0\0\4\0\0\0\0\0")
        self.assertEqual(4, sock.recv(9)[3])  # SETTINGS

    def test_what_is_switched_off_is_not_spoken(self):
        self.serve({"/x": response(b"x")}, listen={"http2": False})
        with Client(self.proxy.port) as client:
            client.send(http2.PREFACE)
            self.assertIn(client.read_head().status, (400, 505))

    def test_forward_listeners_take_whole_targets(self):
        origin = Origin(self, {"/x": fresh(b"x")})
        encore = self.encore()
        with Http2Client(encore.port) as client:
            for _ in range(3):
                answer = client.ask("/x", authority=origin.authority)
                self.assertEqual((200, b"x"), (answer.status, answer.body))
        self.assertEqual(2, origin.count("/x"))


class ByTls(TlsCase):
    def test_alpn_chooses(self):
        self.serve()
        for offered, spoken in ((["h2", "http/1.1"], "h2"), (["http/1.1"], "http/1.1"),
                                ([], None), (["h2"], "h2")):
            context = self.authority.trusting()
            if offered:
                context.set_alpn_protocols(offered)
            with socket.create_connection(("127.0.0.1", self.proxy.port), 30) as raw:
                with context.wrap_socket(raw, server_hostname="www.example") as sock:
                    self.assertEqual(spoken, sock.selected_alpn_protocol())

    def test_pages_are_served_and_hit(self):
        self.serve()
        large = bytes(range(256)) * 8000
        self.origin.routes["/large"] = fresh(large)
        context = self.authority.trusting()
        context.set_alpn_protocols(["h2"])
        with Http2Client(self.proxy.port, context) as client:
            for _ in range(3):
                page, other = client.request("/page"), client.request("/large")
                self.assertEqual(b"page", client.response(page).body)
                self.assertEqual(large, client.response(other).body)
            self.assertIn("; hit", client.streams[other]["cache-status"])
        self.assertEqual(2, self.origin.count("/large"))


class Content(Http2Case):
    def test_it_goes_to_the_origin_whatever_its_length(self):
        self.serve({"/echo": lambda e: response(e.request.body)})
        with self.client() as client:
            for size in 0, 1, 70_000, 3_000_000:
                body = random.Random(size).randbytes(size)
                for fields in [("content-length", str(size))], []:
                    stream = client.request("/echo", fields, method="POST", end=False)
                    client.data(stream, body)
                    answer = client.response(stream)
                    self.assertEqual(200, answer.status, answer.fields)
                    self.assertEqual(hashlib.sha256(body).digest(),
                                     hashlib.sha256(answer.body).digest())

    def test_trailers_go_both_ways(self):
        self.serve({"/x": lambda e: chunked(b"one", b"two", trailers="X-Sum: 5\r\n")})
        with self.client() as client:
            stream = client.request("/x", [("te", "trailers"), ("trailer", "x-mine")],
                                    method="POST", end=False)
            client.data(stream, b"abc", end=False)
            client.headers([("x-mine", "7")], stream=stream)
            answer = client.response(stream)
            self.assertEqual(b"onetwo", answer.body)
            self.assertEqual([("x-sum", "5")], answer.trailers)
        seen = self.origin.last("/x")
        self.assertEqual(b"abc", seen.body)
        self.assertIn("x-mine: 7", str(seen.trailers).lower())

    def test_an_interim_response_comes_before_the_final_one(self):
        def route(exchange):
            exchange.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n")
            return response(b"x")
        self.serve({"/x": route})
        with self.client() as client:
            answer = client.ask("/x")
        self.assertEqual(b"x", answer.body)
        self.assertEqual([(":status", "103"), ("link", "</a>; rel=preload")],
                         answer.interim[0][:2])

    def test_a_response_that_breaks_off_is_a_reset(self):
        def route(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nonly this")
            exchange.close()
        self.serve({"/x": route, "/y": response(b"y")})
        with self.client() as client:
            answer = client.ask("/x")
            self.assertEqual(200, answer.status)
            self.assertEqual(http2.INTERNAL_ERROR, answer.reset)
            self.assertFalse(answer.ended)
            self.assertEqual(b"y", client.ask("/y").body)

    def test_a_reset_ends_the_request_at_the_origin(self):
        closed = threading.Event()

        def route(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nsome")
            exchange.wait_until_closed()
            closed.set()
        self.serve({"/x": route, "/y": response(b"y")})
        with self.client() as client:
            stream = client.request("/x")
            client.read_until(lambda: client.streams[stream].body)
            client.reset(stream)
            self.assertTrue(closed.wait(30))
            self.assertEqual(b"y", client.ask("/y").body)

    def test_an_upload_that_nobody_takes_is_held_back(self):
        sock = socket.create_server(("127.0.0.1", 0))  # reads nothing
        self.addCleanup(sock.close)
        self.proxy = self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
            origin=[{"servers": [f"http://127.0.0.1:{sock.getsockname()[1]}"]}])
        with self.client() as client:
            client.read_until(lambda: client.acknowledged)
            stream = client.request("/x", method="POST", end=False)
            sent = 0
            try:
                while sent < 32 << 20:
                    while min(client.send_window, client.streams[stream].window) < 16384:
                        client.sock.settimeout(1)
                        client.read()
                    client.frame(http2.DATA, 0, stream, bytes(16384))
                    client.send_window -= 16384
                    client.streams[stream].window -= 16384
                    sent += 16384
            except TimeoutError:
                pass
            self.assertLess(sent, 32 << 20)  # the kernels' buffers, and a window


class Many(Http2Case):
    def test_slow_reset_hit_and_miss_on_one_connection_have_their_own_bodies(self):
        dice = random.Random(5)
        bodies = {f"/{kind}{i}": dice.randbytes(dice.choice((0, 10, 5000, 100_000, 400_000)))
                  for kind in ("hit", "miss", "slow", "reset") for i in range(25)}
        go = threading.Event()
        self.addCleanup(go.set)

        def slow(body):
            def route(exchange):
                exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body)
                              + body[:len(body) // 2])
                exchange.wait(go)
                exchange.send(body[len(body) // 2:])
            return route
        routes = {path: slow(body) if path.startswith(("/slow", "/reset")) else fresh(body)
                  for path, body in bodies.items()}
        self.serve(routes)
        with self.client() as client:
            for path in bodies:
                if path.startswith("/hit"):
                    self.assertEqual(bodies[path], client.ask(path).body)
            streams = {client.request(path): path for path in
                       dice.sample(sorted(bodies), len(bodies))}
            for stream, path in streams.items():
                if path.startswith("/reset"):
                    client.reset(stream)
            quick = [s for s, path in streams.items() if path.startswith(("/hit", "/miss"))]
            for stream in quick:
                self.assertEqual(bodies[streams[stream]], client.response(stream).body)
            go.set()
            for stream, path in streams.items():
                if path.startswith("/slow"):
                    answer = client.response(stream)
                    self.assertEqual(bodies[path], answer.body, path)
                    self.assertTrue(answer.ended, path)
            self.assertEqual([], client.goaways)

    def test_a_window_that_is_shut_holds_only_its_own_stream(self):
        self.serve({"/large": fresh(BODY), "/small": fresh(b"small")})
        with self.client(settings=[(http2.INITIAL_WINDOW_SIZE, 1000)], window=None) as client:
            large = client.request("/large")
            client.read_until(lambda: len(client.streams[large].body) == 1000)
            for _ in range(3):
                self.assertEqual(b"small", client.ask("/small").body)
            client.open_window(0, 1 << 20)
            client.open_window(large, 1 << 20)
            self.assertEqual(BODY, client.response(large).body)

    def test_more_streams_than_allowed_are_refused(self):
        go = threading.Event()
        self.addCleanup(go.set)

        def route(exchange):
            exchange.wait(go)
            return response(b"x")
        self.serve()
        self.origin.routes.update({f"/{i}": route for i in range(110)})
        with self.client() as client:
            streams = [client.request(f"/{i}") for i in range(110)]
            for stream in streams[100:]:
                self.assertEqual(http2.REFUSED_STREAM, client.response(stream).reset)
            go.set()
            for stream in streams[:100]:
                self.assertEqual(b"x", client.response(stream).body)
        self.assertEqual(10, self.proxy.metrics()['encore_http2_limits_total{limit="streams-refused"}'])


class Tunnels(Http2Case):
    def connect(self, client, authority, fields=()):
        stream = client.headers([(":method", "CONNECT"), (":authority", authority), *fields],
                                end=False)
        client.read_until(lambda: client.streams[stream].fields or client.streams[stream].over)
        return stream

    def test_connect_is_a_tunnel_in_a_stream(self):
        server = EchoServer(self)
        encore = self.encore(forward={"connect_ports": [server.port]})
        body = random.Random(7).randbytes(1_000_000)
        with Http2Client(encore.port) as client:
            client.read_until(lambda: client.acknowledged)
            streams = [self.connect(client, f"127.0.0.1:{server.port}") for _ in range(3)]
            for stream in streams:
                self.assertEqual(200, client.streams[stream].status)
                self.assertIsNone(client.streams[stream]["content-length"])
            for stream in streams:
                client.data(stream, b"a" + body, end=True)
            for stream in streams:
                answer = client.response(stream)
                self.assertTrue(answer.ended)
                self.assertEqual(b"a" + body, answer.body)
        records = encore.access_records(3)
        self.assertEqual({("CONNECT", 200, "tunnel")},
                         {(each["method"], each["status"], each["outcome"]) for each in records})

    def test_connect_is_refused_where_it_would_be_over_http_1(self):
        encore = self.encore()
        with Http2Client(encore.port) as client:
            client.read_until(lambda: client.acknowledged)
            stream = self.connect(client, "127.0.0.1:1")
            answer = client.streams[stream]
            self.assertEqual(403, answer.status)
            self.assertIn("connect-port", client.response(stream).body.decode())

    def test_a_reset_closes_the_servers_connection(self):
        server = EchoServer(self)
        encore = self.encore(forward={"connect_ports": [server.port]})
        with Http2Client(encore.port) as client:
            client.read_until(lambda: client.acknowledged)
            stream = self.connect(client, f"127.0.0.1:{server.port}")
            client.reset(stream)
            eventually(lambda: server.ended == 1, "the server sees the end")

    def test_an_idle_tunnel_ends_and_the_others_go_on(self):
        server = EchoServer(self)
        encore = self.encore(forward={"connect_ports": [server.port]}, timeouts={"tunnel_idle": "1s"})
        with Http2Client(encore.port) as client:
            client.read_until(lambda: client.acknowledged)
            idle = self.connect(client, f"127.0.0.1:{server.port}")
            busy = self.connect(client, f"127.0.0.1:{server.port}")
            sent, until = 0, time.monotonic() + DEADLINE
            while not client.streams[idle].over and time.monotonic() < until:
                sent += 1
                client.data(busy, b"x", end=False)
                client.read_until(lambda: len(client.streams[busy].body) == sent or client.streams[busy].over)
            self.assertTrue(client.streams[idle].over)
            self.assertFalse(client.streams[busy].over)
        self.assertEqual("tunnel", encore.access_records(2)[0]["outcome"])

    def test_websocket_goes_through_by_extended_connect(self):
        def route(exchange):
            websocket.answer_handshake(exchange)
            while True:
                opcode, data = websocket.read_frame(websocket.exact_reader(exchange.sock))
                if opcode == websocket.CLOSE:
                    return
                exchange.send(websocket.frame(data, opcode))
        self.serve({"/ws": route, "/no": response(b"no", status="403 Forbidden")})
        with self.client() as client:
            client.read_until(lambda: client.acknowledged)
            ask = [(":method", "CONNECT"), (":protocol", "websocket"), (":scheme", "http"),
                   (":path", "/ws"), (":authority", "www.example"),
                   ("sec-websocket-version", "13")]
            stream = client.headers(ask, end=False)
            message = websocket.frame(b"hello" * 10000, masked=True)
            client.data(stream, message, end=False)  # ahead of the answer
            wanted = websocket.frame(b"hello" * 10000)
            client.read_until(lambda: len(client.streams[stream].body) >= len(wanted))
            self.assertEqual(200, client.streams[stream].status)
            self.assertEqual(wanted, client.streams[stream].body)
            client.reset(stream)
            refused = client.headers([(":path", "/no") if name == ":path" else (name, value)
                                      for name, value in ask], end=False)
            answer = client.response(refused)
            self.assertEqual((403, b"no"), (answer.status, answer.body))
            self.assertEqual(b"no", client.ask("/no").body)


class Ends(Http2Case):
    def test_a_drain_lets_streams_end(self):
        go = threading.Event()
        self.addCleanup(go.set)

        def route(exchange):
            exchange.wait(go)
            return response(b"late")
        self.serve({"/x": route, "/y": response(b"y")})
        with self.client() as client:
            self.assertEqual(b"y", client.ask("/y").body)
            stream = client.request("/x")
            eventually(lambda: self.origin.count("/x"), "the origin has it")
            self.proxy.signal(signal.SIGTERM)
            client.read_until(lambda: len(client.goaways) == 2)
            self.assertEqual([(0x7fffffff, 0), (stream, 0)], [each[:2] for each in client.goaways])
            go.set()
            self.assertEqual(b"late", client.response(stream).body)
            self.assertTrue(client.at_end())
        self.assertEqual(0, self.proxy.wait_for_exit())

    def test_an_idle_connection_ends_with_a_goaway(self):
        self.serve({"/y": response(b"y")}, timeouts={"client_idle": "1s"})
        with self.client() as client:
            self.assertEqual(b"y", client.ask("/y").body)
            self.assertTrue(client.at_end())
            self.assertEqual([(1, 0)], [each[:2] for each in client.goaways])

    def test_rapid_resets_end_the_connection(self):
        self.serve({"/x": lambda e: e.wait_until_closed()})
        with self.client() as client:
            try:
                for _ in range(400):
                    client.reset(client.request("/x"))
            except OSError:
                pass
            self.assertTrue(client.at_end())
            self.assertEqual(http2.ENHANCE_YOUR_CALM, client.goaways[-1][1])
        metrics = self.proxy.metrics()
        self.assertEqual(1, metrics['encore_http2_floods_total{kind="reset-unanswered"}'])


if __name__ == "__main__":
    unittest.main()
