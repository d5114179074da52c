"""WebSocket and other protocols: the handshake, the tunnel behind a 101, and all that is none."""

import os
import random
import signal
import socket
import subprocess
import threading
import unittest

import websocket
from client import Client, NoResponse, field
from harness import (Case, CertificateAuthority, clean_environment, eventually, find_program,
                     free_port)
from nginx import Nginx
from origin import Origin, fresh, response
from websocket import BINARY, CLOSE, TEXT, RawSwitch, frame, handshake_fields

RAW = [("Connection", "upgrade"), ("Upgrade", "raw/1")]
H2C = [("Connection", "Upgrade, HTTP2-Settings"), ("Upgrade", "h2c"),
       ("HTTP2-Settings", "AAMAAABkAAQCAAAAAAIAAAAA")]


def serve_echo(sock):
    """Sends back all it gets, then "bye"."""
    try:
        while data := sock.recv(65536):
            sock.sendall(data)
        sock.sendall(b"bye")
    except OSError:
        pass


class Upgrade(Case):
    def reverse(self, origin, **sections):
        return self.encore(listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
                           origin=[{"servers": [origin.url("")]}], **sections)

    def client(self, encore):
        client = Client(encore.port)
        self.addCleanup(client.close)
        return client

    def open(self, encore, url, fields=(), method="GET", extra=b"", body=b""):
        """(client, its first final answer) of a handshake; `extra` is sent with it."""
        client = self.client(encore)
        authority = url.split("/")[2]
        lines = [f"{method} {url} HTTP/1.1", f"Host: {authority}",
                 *(f"{name}: {value}" for name, value in fields)]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        client.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body + extra)
        answer = client.read_head()
        return client, answer


class BothModes(Upgrade):
    def both(self, origin, **sections):
        """(encore, URL of a path) for each mode."""
        yield self.encore(**sections), origin.url
        yield self.reverse(origin, **sections), lambda path: f"http://site.example{path}"

    def test_a_websocket_opens_echoes_and_closes(self):
        origin = Origin(self, {"/chat": websocket.echo})
        for encore, url in self.both(origin):
            client, answer = self.open(encore, url("/chat"), handshake_fields())
            self.assertEqual(101, answer.status)
            self.assertEqual("websocket", field(answer, "Upgrade"))
            self.assertEqual("upgrade", field(answer, "Connection"))
            self.assertEqual("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=", field(answer, "Sec-WebSocket-Accept"))
            self.assertRegex(field(answer, "Via"), r"1\.1 encore")
            for data in (b"", b"hello", os.urandom(70000), os.urandom(300)):
                client.send(frame(data, masked=True))
                self.assertEqual((BINARY, data), websocket.read_frame(client.read_exactly))
            self.assertEqual(1, encore.metrics()["encore_upgrades"])
            client.send(frame(b"\x03\xe8", CLOSE, masked=True))
            self.assertEqual((CLOSE, b"\x03\xe8"), websocket.read_frame(client.read_exactly))
            self.assertTrue(client.at_end())
            client.close()
            record, = encore.access_records(1)
            self.assertEqual(("upgrade", 101), (record["outcome"], record["status"]))
            self.assertIn(str(origin.port), record["origin"])
            self.assertGreater(record["bytes"], 70000)
            self.assertEqual({"upgrade": 1}, encore.outcomes())
            metrics = encore.metrics()
            self.assertEqual((1, 0), (metrics["encore_upgrades_total"], metrics["encore_upgrades"]))
            self.assertEqual(0, metrics["encore_origin_connections"])

    def test_the_origin_gets_the_offer_and_nothing_else_of_this_hop(self):
        origin = Origin(self, {"/x": RawSwitch(serve_echo)})
        for encore, url in self.both(origin):
            fields = [("Connection", "X-Hop, Upgrade"), ("Upgrade", "h2c, raw/1"), ("X-Hop", "1"),
                      ("HTTP2-Settings", "AAM"), ("Cookie", "a=b")]
            client, answer = self.open(encore, url("/x"), fields)
            self.assertEqual((101, "raw/1"), (answer.status, field(answer, "Upgrade")))
            got = origin.last().fields
            self.assertEqual(["raw/1"], [v for k, v in got if k == "upgrade"])
            self.assertEqual(["upgrade"], [v for k, v in got if k == "connection"])
            self.assertEqual("a=b", dict(got)["cookie"])
            for name in ("x-hop", "http2-settings"):
                self.assertNotIn(name, dict(got))
            client.send(b"x")
            self.assertEqual(b"x", client.read_exactly(1))

    def test_each_end_closes_by_itself(self):
        origin = Origin(self, {"/raw": RawSwitch(serve_echo, with_head=b"early")})
        for encore, url in self.both(origin):
            client, answer = self.open(encore, url("/raw"), RAW)
            self.assertEqual((101, "raw/1"), (answer.status, field(answer, "Upgrade")))
            self.assertEqual(b"early", client.read_exactly(5))
            data = os.urandom(3_000_000)
            sender = websocket.spawn(lambda: (client.send(data), client.shutdown()))
            self.assertEqual(data, client.read_exactly(len(data)))
            sender.join()
            self.assertEqual(b"bye", client.read_to_end())
            eventually(lambda: encore.metrics()["encore_upgrades"] == 0, "the tunnel has ended")

    def test_what_is_not_upgraded_is_an_ordinary_response_that_nobody_else_gets(self):
        origin = Origin(self, {"/page": fresh(b"page", ETag='"1"')})
        for encore, url in self.both(origin):
            seen = origin.count()
            with Client(encore.port) as client:
                for _ in range(3):
                    client.request(url("/page"), fields=handshake_fields())
                    answer = client.read_response()
                    self.assertEqual((200, b"page"), (answer.status, answer.body))
                    self.assertIn("detail=upgrade", field(answer, "Cache-Status"))
                    self.assertNotIn("stored", field(answer, "Cache-Status"))
                client.request(url("/page"), fields=[*handshake_fields(),
                                                     ("If-None-Match", '"1"')])
                self.assertEqual(200, client.read_response().status)
            self.assertEqual(seen + 4, origin.count())
            for expected in ("detail=first-request", "detail=second-request", "; hit"):
                with Client(encore.port) as client:
                    self.assertIn(expected, field(client.ask(url("/page")), "Cache-Status"))
            self.assertEqual(seen + 6, origin.count())
            with Client(encore.port) as client:  # a stored response does not answer it
                answer = client.ask(url("/page"), fields=handshake_fields())
                self.assertIn("detail=upgrade", field(answer, "Cache-Status"))
            self.assertEqual(seen + 7, origin.count())

    def test_several_ask_at_once_and_each_has_its_own(self):
        gate = threading.Barrier(8)

        def wait_for_all(exchange):
            gate.wait(30)
            websocket.echo(exchange)
        origin = Origin(self, {"/chat": wait_for_all})
        for encore, url in self.both(origin):
            answers = []

            def one(number):
                client, answer = self.open(encore, url("/chat"), handshake_fields())
                client.send(frame(b"%d" % number, TEXT, masked=True))
                answers.append((answer.status, number,
                                websocket.read_frame(client.read_exactly)[1]))
            threads = [websocket.spawn(one, number) for number in range(8)]
            for thread in threads:
                thread.join(60)
            self.assertEqual({(101, n, b"%d" % n) for n in range(8)}, set(answers))

    def test_an_offer_of_http2_is_passed_over(self):
        origin = Origin(self, {"/page": fresh(b"page")})
        for encore, url in self.both(origin):
            with Client(encore.port) as client:
                answer = client.ask(url("/page"), fields=H2C)
            self.assertEqual((200, b"page"), (answer.status, answer.body))
            self.assertIn("detail=first-request", field(answer, "Cache-Status"))
            got = dict(origin.last().fields)
            for name in ("upgrade", "http2-settings", "connection"):
                self.assertNotIn(name, got)


class Refusals(Upgrade):
    def test_a_101_that_was_not_asked_for_is_502(self):
        to = lambda *lines: ("HTTP/1.1 101 X\r\n" + "".join(f"{line}\r\n" for line in lines)  # noqa: E731
                             + "\r\nsecret").encode()
        origin = Origin(self, {
            "/plain": to("Upgrade: websocket", "Connection: upgrade"),
            "/h2c": to("Upgrade: h2c", "Connection: upgrade"),
            "/other": to("Upgrade: other", "Connection: upgrade"),
            "/more": to("Upgrade: raw/1, other", "Connection: upgrade"),
            "/none": to("Connection: upgrade")})
        encore = self.encore()
        for path, fields in (("/plain", ()), ("/h2c", H2C), ("/other", RAW), ("/more", RAW),
                             ("/none", RAW)):
            client = self.client(encore)
            answer = client.ask(origin.url(path), fields=fields)
            self.assertEqual(502, answer.status, path)
            self.assertIn("detail=unasked-upgrade", field(answer, "Cache-Status"))
            self.assertNotIn(b"secret", answer.body)
        self.assertEqual(0, encore.metrics()["encore_upgrades_total"])

    def test_what_is_sent_behind_the_handshake_waits_for_the_101(self):
        release, came = threading.Event(), []

        def slow(exchange):
            exchange.sock.settimeout(0.3)
            try:
                came.append(exchange.sock.recv(100))
            except TimeoutError:
                came.append(None)
            exchange.sock.settimeout(30)
            exchange.wait(release)
            RawSwitch(serve_echo)(exchange)
        origin = Origin(self, {"/slow": slow})
        encore = self.encore()
        client = self.client(encore)
        client.send(f"GET {origin.url('/slow')} HTTP/1.1\r\nHost: {origin.authority}\r\n"
                    "Connection: upgrade\r\nUpgrade: raw/1\r\n\r\n"
                    f"GET {origin.url('/evil')} HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n")
        eventually(lambda: came, "the origin has looked")
        self.assertEqual([None], came)
        release.set()
        self.assertEqual(101, client.read_head().status)
        self.assertTrue(client.read_until(b"\r\n\r\n").startswith(b"GET "))
        self.assertEqual(1, origin.count())

    def test_what_is_sent_behind_a_handshake_that_is_refused_is_the_next_request(self):
        origin = Origin(self, {"/no": response(b"no", "426 Upgrade Required", Upgrade="other",
                                               Connection="upgrade"),
                               "/page": response(b"page")})
        encore = self.encore()
        client, answer = self.open(encore, origin.url("/no"), RAW, extra=(
            f"GET {origin.url('/page')} HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n").encode())
        self.assertEqual((426, b"no"), (answer.status, client.read_exactly(2)))
        self.assertEqual(b"page", client.read_response().body)

    def test_http_1_0_asks_for_nothing(self):
        origin = Origin(self, {"/page": response(b"page")})
        encore = self.encore()
        answer = self.client(encore).ask(origin.url("/page"), fields=RAW, version="HTTP/1.0")
        self.assertEqual(b"page", answer.body)
        self.assertNotIn("upgrade", dict(origin.last().fields))

    def test_destinations_are_checked_as_for_other_requests(self):
        origin = Origin(self, {"/chat": websocket.echo})
        encore = self.encore(forward={"private_destinations": "never"})
        _, answer = self.open(encore, origin.url("/chat"), handshake_fields())
        self.assertEqual(403, answer.status)
        self.assertEqual(0, origin.connections)

    def test_an_origin_that_is_silent_or_not_there_is_504_or_502(self):
        origin = Origin(self, {"/silent": lambda exchange: exchange.wait_until_closed()})
        encore = self.encore(timeouts={"origin_response": "500ms"})
        _, answer = self.open(encore, origin.url("/silent"), RAW)
        self.assertEqual(504, answer.status)
        _, answer = self.open(encore, f"http://127.0.0.1:{free_port()}/", RAW)
        self.assertEqual(502, answer.status)

    def test_a_request_with_content_goes_over_behind_it(self):
        origin = Origin(self, {"/exec": RawSwitch(serve_echo)})
        encore = self.encore()
        client, answer = self.open(encore, origin.url("/exec"), RAW, method="POST",
                                   body=b"{}", extra=b"input")
        self.assertEqual(101, answer.status)
        self.assertEqual(b"{}", origin.last().body)
        self.assertEqual(b"input", client.read_exactly(5))

    def test_a_101_in_front_of_the_requests_end_is_502(self):
        def early(sock, _address):
            sock.recv(65536)
            sock.sendall(b"HTTP/1.1 101 X\r\nUpgrade: raw/1\r\nConnection: upgrade\r\n\r\n")
            sock.recv(100)
            sock.close()
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        websocket.spawn(lambda: early(*listener.accept()))
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/"
        client = self.client(self.encore())
        client.send(f"POST {url} HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n"
                    "Connection: upgrade\r\nUpgrade: raw/1\r\n\r\n12345")
        self.assertEqual(502, client.read_response().status)


class Ends(Upgrade):
    def test_an_idle_connection_ends_in_time_and_a_busy_one_does_not(self):
        origin = Origin(self, {"/chat": websocket.echo})
        encore = self.encore(timeouts={"upgrade_idle": "1s", "tunnel_idle": "100ms"})
        client, _ = self.open(encore, origin.url("/chat"), handshake_fields())
        for _ in range(8):
            client.send(frame(b"x", masked=True))
            self.assertEqual(b"x", websocket.read_frame(client.read_exactly)[1])
            threading.Event().wait(0.25)
        self.assertTrue(client.at_end())

    def test_a_reset_of_one_side_reaches_the_other(self):
        ended = threading.Event()

        def watch(sock):
            try:
                while sock.recv(65536):
                    pass
            except OSError:
                pass
            ended.set()
        origin = Origin(self, {"/in": RawSwitch(watch),
                               "/out": RawSwitch(lambda sock: sock.setsockopt(
                                   socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0"))})
        encore = self.encore()
        client, answer = self.open(encore, origin.url("/in"), RAW)
        self.assertEqual(101, answer.status)
        client.send(b"some")
        client.reset()
        self.assertTrue(ended.wait(30))
        client, answer = self.open(encore, origin.url("/out"), RAW)
        try:
            self.assertEqual(b"", client.read_to_end())
        except ConnectionError:
            pass
        eventually(lambda: encore.metrics()["encore_upgrades"] == 0, "both have ended")

    def test_a_client_that_leaves_before_the_101_leaves_nothing_behind(self):
        release = threading.Event()

        def late(exchange):
            exchange.wait(release)
            RawSwitch(serve_echo)(exchange)
        origin = Origin(self, {"/late": late})
        encore = self.encore()
        client = self.client(encore)
        client.request(origin.url("/late"), fields=RAW)
        eventually(lambda: origin.count() == 1, "it is asked")
        client.reset()
        release.set()
        eventually(lambda: encore.metrics()["encore_origin_connections"] == 0, "nothing is left")
        self.assertEqual(0, encore.metrics()["encore_upgrades"])

    def test_a_drain_ends_a_connection_that_does_not_end(self):
        origin = Origin(self, {"/chat": websocket.echo})
        encore = self.encore(timeouts={"drain": "1s"})
        client, _ = self.open(encore, origin.url("/chat"), handshake_fields())
        encore.signal(signal.SIGTERM)
        client.send(frame(b"still", masked=True))
        self.assertEqual(b"still", websocket.read_frame(client.read_exactly)[1])
        self.assertTrue(client.at_end())
        self.assertEqual(0, encore.wait_for_exit())

    def test_a_reload_leaves_it_open(self):
        origin = Origin(self, {"/chat": websocket.echo})
        encore = self.encore()
        client, _ = self.open(encore, origin.url("/chat"), handshake_fields())
        encore.sections["limits"] = {"pipeline": 3}
        encore.write_config()
        encore.signal(signal.SIGHUP)
        eventually(lambda: encore.metrics()["encore_reloads_total"] == 1, "it is reloaded")
        client.send(frame(b"still", masked=True))
        self.assertEqual(b"still", websocket.read_frame(client.read_exactly)[1])

    def test_it_counts_among_its_servers_connections(self):
        origin = Origin(self, {"/chat": websocket.echo, "/page": response(b"page")})
        encore = self.encore(upstream={"connections_per_server": 1, "waiting_per_server": 0},
                             workers={"count": 1})
        client, _ = self.open(encore, origin.url("/chat"), handshake_fields())
        with Client(encore.port) as other:
            self.assertEqual(503, other.ask(origin.url("/page")).status)
        client.close()
        eventually(lambda: encore.metrics()["encore_origin_connections"] == 0, "it has ended")
        with Client(encore.port) as other:
            self.assertEqual(b"page", other.ask(origin.url("/page")).body)


class Histories(Upgrade):
    """Both sides send random pieces concurrently; some end, some are cut in the middle."""

    def run_one(self, encore, origin_url, plan):
        client, answer = self.open(encore, origin_url, RAW)
        self.assertEqual(101, answer.status)
        sender = websocket.spawn(websocket.send_all, client.sock, plan["up"])
        if plan["cut"] == "client":
            client.read_exactly(min(plan["after"], len(plan["down"])))
            client.reset()
            sender.join(30)
            return
        try:
            got = client.read_to_end()
        except NoResponse as error:
            got = error.received
        sender.join(30)
        if plan["cut"] == "none":
            self.assertEqual(plan["down"], got)
            self.assertTrue(plan["done"].wait(30))
            self.assertEqual(plan["up"], bytes(plan["got"]))
        else:
            self.assertTrue(plan["down"].startswith(got))

    @staticmethod
    def serve(plan):
        def run(sock):
            if plan["cut"] == "origin":
                sock.sendall(plan["down"][:plan["after"]])
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                return
            sender = websocket.spawn(websocket.send_all, sock, plan["down"])
            try:
                while data := sock.recv(plan["piece"]):
                    plan["got"] += data
            except OSError:
                pass
            sender.join(30)
            plan["done"].set()
        return run

    def test_random_histories(self):
        seed = random.SystemRandom().randrange(1 << 32)
        chance = random.Random(seed)
        plans, routes = [], {}
        for number in range(60):
            plan = {"up": chance.randbytes(chance.choice((0, 1, 1000, 200_000, 1_500_000))),
                    "down": chance.randbytes(chance.choice((0, 1, 1000, 200_000, 1_500_000))),
                    "cut": chance.choice(("none", "none", "client", "origin")),
                    "after": chance.randrange(0, 100_000), "piece": chance.choice((1000, 65536)),
                    "got": bytearray(), "done": threading.Event()}
            plans.append(plan)
            routes[f"/{number}"] = RawSwitch(self.serve(plan),
                                             with_head=b"")
        origin = Origin(self, routes)
        encore = self.encore()
        faults = []

        def some(numbers):
            for number in numbers:
                try:
                    self.run_one(encore, origin.url(f"/{number}"), plans[number])
                except Exception as error:  # noqa: BLE001
                    faults.append((number, plans[number]["cut"], repr(error)[:300]))
        threads = [websocket.spawn(some, range(lane, 60, 6)) for lane in range(6)]
        for thread in threads:
            thread.join(120)
        self.assertEqual([], faults, f"seed {seed}")
        eventually(lambda: encore.metrics()["encore_upgrades"] == 0, f"all end (seed {seed})")
        self.assertEqual(0, encore.metrics()["encore_origin_connections"])


class RealPrograms(Upgrade):
    # The page is loaded when its picture is, and that comes when the socket has been closed.
    PAGE = """<html><body><img src="/picture"><script>
const socket = new WebSocket("ws://" + location.host + "/chat");
socket.onopen = () => socket.send("hello");
socket.onmessage = event => { document.title = "got " + event.data; socket.close(); };
socket.onerror = () => { document.title = "failed"; fetch("/failed"); };
</script></body></html>"""

    def site(self):
        over = threading.Event()

        def chat(exchange):
            websocket.echo(exchange)
            over.set()

        def picture(exchange):
            exchange.wait(over)
            return response(b"")

        def failed(_exchange):
            over.set()
            return response(b"")
        return Origin(self, {"/page": fresh(self.PAGE, Content_Type="text/html"),
                             "/favicon.ico": response(b""), "/chat": chat, "/picture": picture,
                             "/failed": failed})

    def load(self, url, proxy=None):
        program = find_program("chromium") or find_program("google-chrome")
        if not program:
            self.skipTest("chromium is not installed")
        via = [f"--proxy-server={proxy}", "--proxy-bypass-list=<-loopback>"] if proxy else []
        ended = self.run_client(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
             "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--disable-default-apps", "--disable-extensions",
             "--disable-dev-shm-usage",
             f"--user-data-dir={self.directory / 'profile'}", *via, "--dump-dom", url],
            env=clean_environment(HOME=self.directory), cwd=self.directory)
        return ended.stdout.decode(errors="replace")

    def test_chromium_through_the_reverse_proxy(self):
        origin = self.site()
        encore = self.reverse(origin)
        self.assertIn("<title>got hello</title>", self.load(f"http://127.0.0.1:{encore.port}/page"))
        eventually(lambda: encore.outcomes().get("upgrade") == 1, "it is counted")

    def test_chromium_through_the_forward_proxy(self):
        # A browser opens a tunnel for ws: as it does for wss:.
        origin = self.site()
        encore = self.encore(forward={"connect_ports": [origin.port]})
        self.assertIn("<title>got hello</title>", self.load(origin.url("/page"), proxy=encore.url))
        eventually(lambda: encore.outcomes().get("tunnel") == 1, "it is counted")

    def test_curl_through_the_forward_proxy(self):
        curl = find_program("curl")
        if not curl:
            self.skipTest("curl is not installed")
        origin = Origin(self, {"/raw": RawSwitch(lambda sock: sock.sendall(b"from beyond"))})
        encore = self.encore()
        ended = subprocess.run(
            [curl, "-sS", "-i", "--max-time", "60", "-x", encore.url, "-H", "Connection: upgrade",
             "-H", "Upgrade: raw/1", origin.url("/raw")], env=clean_environment(),
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=90, check=False)
        self.assertIn(b"101 Go", ended.stdout)

    def test_behind_nginx_and_before_a_tls_origin(self):
        authority = CertificateAuthority(self)
        origin = Origin(self, {"/chat": websocket.echo}, tls=authority.server_context("127.0.0.1"))
        encore = self.reverse(origin, upstream={"tls_ca_file": str(authority.certificate)})
        front = Nginx(self, self.directory, extra="location / { proxy_pass "
                      f"http://127.0.0.1:{encore.port}; proxy_http_version 1.1; "
                      "proxy_set_header Upgrade $http_upgrade; "
                      "proxy_set_header Connection upgrade; }")
        with Client(front.port) as client:
            client.send("GET /chat HTTP/1.1\r\nHost: site.example\r\n" + "".join(
                f"{name}: {value}\r\n" for name, value in handshake_fields()) + "\r\n")
            self.assertEqual(101, client.read_head().status)
            for data in (b"hello", os.urandom(400_000)):
                sender = websocket.spawn(client.send, frame(data, masked=True))
                self.assertEqual(data, websocket.read_frame(client.read_exactly)[1])
                sender.join()
            client.send(frame(b"", CLOSE, masked=True))
            self.assertEqual(CLOSE, websocket.read_frame(client.read_exactly)[0])


if __name__ == "__main__":
    unittest.main()
