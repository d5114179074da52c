"""Clients that pipeline without reading, stop in the middle, dribble, or vanish at any byte."""

import os
import signal
import threading
import time
import unittest

from client import Client, NoResponse, field, get
from harness import Case, eventually
from origin import Origin, fresh, response

MIB = 1 << 20


def stored(encore, origin, *paths):
    """Asks until each path is a hit."""
    for path in paths:
        for _ in range(3):
            answer = get(encore.port, origin.url(path))
        assert "; hit" in field(answer, "Cache-Status"), answer


def pipeline(client, origin, paths):
    """Sends one request for each path from a thread of its own, for the client may be slow."""
    text = "".join(f"GET {origin.url(path)} HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n"
                   for path in paths)

    def run():
        try:
            client.send(text)
        except OSError:
            pass
    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


class Pipelines(Case):
    """Each answer begins with its own path, so that any disorder shows."""

    def setUp(self):
        super().setUp()
        self.sizes = {"/small": 900, "/slot": 3000, "/big": 200_000}
        self.origin = Origin(self, default=self.answer)

    def answer(self, exchange):
        path = exchange.request.target
        make = response if path.startswith("/miss") else fresh
        return make(self.body(path))

    def body(self, path):
        size = self.sizes.get(path, 700)
        return (path.encode() + b" ").ljust(size, b".")

    def check(self, client, paths):
        for number, path in enumerate(paths):
            answer = client.read_response()
            self.assertEqual(200, answer.status, f"{number}: {path}")
            self.assertEqual(self.body(path), answer.body, f"{number}: {path}")

    def test_hits_for_a_client_that_reads_late_come_whole_and_in_order(self):
        encore = self.encore()
        stored(encore, self.origin, *self.sizes)
        paths = (["/slot"] * 700 + ["/small"] * 300 + ["/big", "/slot"] * 20) * 2
        with Client(encore.port, receive_buffer=4096) as client:
            client.sock.settimeout(60)
            thread = pipeline(client, self.origin, paths)
            # It reads only once the proxy could send nothing more.
            sent = lambda: encore.metrics()["encore_client_sent_bytes_total"]
            before = -1
            while before != (before := sent()):
                time.sleep(0.1)
            self.check(client, paths)
            thread.join()

    def test_hits_and_misses_mixed_come_in_order(self):
        encore = self.encore()
        stored(encore, self.origin, *self.sizes)
        paths = [("/slot", f"/miss{n}", "/big", "/small")[n % 4] for n in range(600)]
        for receive_buffer in (None, 4096):
            with Client(encore.port, receive_buffer=receive_buffer) as client:
                thread = pipeline(client, self.origin, paths)
                self.check(client, paths)
                thread.join()

    def test_what_is_pipelined_before_the_client_ends_its_side_is_answered(self):
        encore = self.encore()
        stored(encore, self.origin, *self.sizes)
        for paths in (["/miss1", "/miss2", "/big", "/miss3"], ["/big", "/big"], ["/slot"] * 200):
            with Client(encore.port) as client:
                pipeline(client, self.origin, paths).join()
                client.shutdown()
                self.check(client, paths)
                self.assertTrue(client.at_end())

    def test_answers_out_of_the_store_keep_their_order_to_the_end(self):
        # HEAD and conditional requests are answered immediately, but not on the path of plain hits.
        encore = self.encore()
        stored(encore, self.origin, "/small")
        url, host = self.origin.url("/small"), self.origin.authority
        plain = f"GET {url} HTTP/1.1\r\nHost: {host}\r\n\r\n"
        head = plain.replace("GET", "HEAD", 1)
        part = plain.replace("\r\n\r\n", "\r\nRange: bytes=0-5\r\n\r\n")
        miss = plain.replace("/small", "/miss1")
        for first in (plain, miss):
            with Client(encore.port) as client:
                client.send(first + (head + part + plain) * 100)
                client.shutdown()
                self.assertEqual(200, client.read_response().status)
                for _ in range(100):
                    self.assertEqual(b"", client.read_response("HEAD").body)
                    self.assertEqual(b"/small", client.read_response().body)
                    self.check(client, ["/small"])
                self.assertTrue(client.at_end())

    def test_a_beginning_without_end_is_let_go_at_once(self):
        encore = self.encore()
        stored(encore, self.origin, "/big")
        for path in ("/big", "/miss1"):
            with Client(encore.port) as client:
                pipeline(client, self.origin, [path]).join()
                client.send("GET http://half.exam")
                client.shutdown()
                self.check(client, [path])
                self.assertTrue(client.at_end())

    def test_requests_behind_an_upload_wait_for_it(self):
        encore = self.encore()
        stored(encore, self.origin, "/slot")
        url, host = self.origin.url("/miss-post"), self.origin.authority
        body = os.urandom(300_000)
        with Client(encore.port) as client:
            head = f"POST {url} HTTP/1.1\r\nHost: {host}\r\nContent-Length: {len(body)}\r\n\r\n"
            chunked = (f"POST {url} HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "5\r\nGET /\r\n0\r\n\r\n")
            follow = f"GET {self.origin.url('/slot')} HTTP/1.1\r\nHost: {host}\r\n\r\n"
            data = (head.encode() + body + follow.encode() + chunked.encode() + follow.encode())
            threading.Thread(target=client.send, args=(data,), daemon=True).start()
            self.check(client, ["/miss-post", "/slot", "/miss-post", "/slot"])
        uploads = [r.body for r in self.origin.requests if r.method == "POST"]
        self.assertEqual([body, b"GET /"], uploads)

    def test_connect_behind_hits_that_nobody_reads_keeps_its_place(self):
        encore = self.encore(forward={"connect_ports": [self.origin.port]})
        stored(encore, self.origin, "/big")
        host = self.origin.authority
        with Client(encore.port, receive_buffer=4096) as client:
            hit = f"GET {self.origin.url('/big')} HTTP/1.1\r\nHost: {host}\r\n\r\n"
            client.send(hit * 30 + f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n"
                        + f"GET /miss HTTP/1.1\r\nHost: {host}\r\n\r\n")
            self.check(client, ["/big"] * 30)
            self.assertEqual(200, client.read_response("CONNECT").status)
            self.check(client, ["/miss"])

    def test_many_requests_at_once_let_others_have_their_turn(self):
        encore = self.encore(limits={"pipeline": 1})
        stored(encore, self.origin, "/small")
        with Client(encore.port) as client:
            pipeline(client, self.origin, ["/small"] * 500).join()
            self.check(client, ["/small"] * 500)


class Stops(Case):
    def body_route(self, size):
        return fresh(os.urandom(size))

    def test_a_client_that_stops_reading_is_let_go_though_it_keeps_sending(self):
        origin = Origin(self, {"/hit": fresh(b"x" * 8 * MIB),
                               "/miss": response(b"x" * 8 * MIB)})
        encore = self.encore(timeouts={"client_write": "2s"}, cache={"memory": "128MiB"})
        stored(encore, origin, "/hit")
        for path in ("/hit", "/miss"):
            with Client(encore.port, receive_buffer=4096) as client:
                client.request(origin.url(path))
                client.read_head()

                def gone():
                    try:
                        client.send("X")  # the beginning of a next request, a byte at a time
                    except OSError:
                        return True
                    time.sleep(0.05)
                    return False
                eventually(gone, f"the client of {path} is let go", 20)
        eventually(lambda: encore.metrics()["encore_client_connections"] == 0, "all are closed")
        eventually(lambda: encore.metrics()["encore_transfers"] == 0, "no transfer is left")

    def test_a_slow_client_that_goes_on_reading_is_served_to_the_end(self):
        body = os.urandom(3 * MIB)
        origin = Origin(self, {"/hit": fresh(body), "/miss": response(body)})
        encore = self.encore(timeouts={"client_write": "1s"})
        stored(encore, origin, "/hit")
        for path in ("/hit", "/miss"):
            with Client(encore.port, receive_buffer=65536) as client:
                client.request(origin.url(path))
                head = client.read_head()
                begun = time.monotonic()
                while len(client.buffer) < len(body) and time.monotonic() < begun + 3:
                    client.buffer += client.sock.recv(20_000)
                    time.sleep(0.02)
                self.assertEqual(body, client.read_exactly(len(body)), head)

    def test_a_drain_ends_a_hit_under_way_as_soon_as_it_is_taken(self):
        body = os.urandom(6 * MIB)
        origin = Origin(self, {"/hit": fresh(body)})
        encore = self.encore(cache={"memory": "64MiB"}, timeouts={"drain": "60s"})
        stored(encore, origin, "/hit")
        with Client(encore.port, receive_buffer=4096) as client:
            client.request(origin.url("/hit"))
            client.read_head()
            encore.signal(signal.SIGTERM)
            eventually(lambda: "draining" in encore.output(), "the drain has begun")
            self.assertEqual(body, client.read_exactly(len(body)))
            begun = time.monotonic()
            self.assertTrue(client.at_end())
            self.assertEqual(0, encore.wait_for_exit())
            self.assertLess(time.monotonic() - begun, 30)

    def test_empty_lines_are_no_way_to_stay(self):
        encore = self.encore(timeouts={"client_header": "1s"})
        with Client(encore.port) as client:
            def ended():
                try:
                    client.send("\r\n")
                except OSError:
                    return True
                time.sleep(0.05)
                return False
            eventually(ended, "the client of empty lines is let go", 20)

    def test_a_head_that_dribbles_is_let_go_in_time(self):
        encore = self.encore(timeouts={"client_header": "1s"})
        with Client(encore.port) as client:
            client.send("GET http://a.example/ HTTP/1.1\r\n")

            def ended():
                try:
                    client.send("a: b\r\n")
                except OSError:
                    return True
                time.sleep(0.02)
                return False
            eventually(ended, "the dribbling client is let go", 20)

    def test_heads_larger_than_a_read_are_taken_up_to_the_limit(self):
        origin = Origin(self, default=response(b"fine"))
        encore = self.encore(limits={"head": "300KiB", "uri": "200KiB"})
        for size in (60_000, 64 << 10, 100_000, 250_000):
            fields = [(f"x-{n}", "v" * 8000) for n in range(size // 8000)]
            answer = get(encore.port, origin.url("/page"), fields=fields)
            self.assertEqual(b"fine", answer.body, size)
        with Client(encore.port) as client:
            pipeline(client, origin, []).join()
            try:
                client.send(f"GET {origin.url('/')} HTTP/1.1\r\n" + "a: b\r\n" * 200
                            + "c: " + "d" * 400_000 + "\r\n\r\n")
            except OSError:
                pass
            self.assertEqual(431, client.read_response().status)

    def test_a_head_of_the_default_limit_and_one_past_it(self):
        origin = Origin(self, default=response(b"fine"))
        encore = self.encore()
        limit = 64 << 10
        for past, status in ((0, 200), (1, 431)):
            head = (f"GET {origin.url('/')} HTTP/1.1\r\nHost: {origin.authority}\r\nx: ")
            head += "y" * (limit - len(head) - 4 + past) + "\r\n\r\n"
            with Client(encore.port) as client:
                client.send(head)
                self.assertEqual(status, client.read_response().status, past)


class Resets(Case):
    def test_a_client_that_is_gone_after_any_byte_harms_nobody(self):
        body = os.urandom(120_000)
        origin = Origin(self, {"/hit": fresh(body), "/miss": response(body),
                               "/post": response(b"posted")})
        encore = self.encore(forward={"connect_ports": [origin.port]})
        stored(encore, origin, "/hit")
        host = origin.authority
        scripts = [
            f"GET {origin.url('/hit')} HTTP/1.1\r\nHost: {host}\r\n\r\n",
            f"GET {origin.url('/miss')} HTTP/1.1\r\nHost: {host}\r\n\r\n",
            f"POST {origin.url('/post')} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 20\r\n\r\n"
            + "b" * 20,
            f"POST {origin.url('/post')} HTTP/1.1\r\nHost: {host}\r\n"
            "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nt: u\r\n\r\n",
            f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\nGET /miss HTTP/1.1\r\n"
            f"Host: {host}\r\n\r\n",
        ]
        for script in scripts:
            for cut in range(1, len(script) + 1):
                client = Client(encore.port)
                client.send(script[:cut])
                if cut % 3:
                    client.reset()
                else:
                    client.close()
        # And after any stretch of the response.
        for path in ("/hit", "/miss"):
            for taken in (1, 20, 300, 1000, 30_000, 100_000):
                client = Client(encore.port, receive_buffer=8192)
                client.request(origin.url(path))
                client.read_exactly(taken)
                client.reset()
        self.assertEqual(body, get(encore.port, origin.url("/hit")).body)
        eventually(lambda: encore.metrics()["encore_transfers"] == 0, "no transfer is left")
        eventually(lambda: encore.metrics()["encore_tunnels"] == 0, "no tunnel is left")
        eventually(lambda: encore.metrics()["encore_client_connections"] == 0, "all are closed")

    def test_an_upload_to_nobody_is_answered_and_forgotten(self):
        from harness import free_port
        port = free_port()
        encore = self.encore()
        for framing in ("Content-Length: 1000000", "Transfer-Encoding: chunked"):
            with Client(encore.port) as client:
                client.send(f"POST http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                            f"{framing}\r\n\r\n")
                if "chunked" in framing:
                    client.send(b"186a0\r\n" + b"x" * 100_000 + b"\r\n")
                else:
                    client.send(b"x" * 100_000)
                self.assertEqual(502, client.read_response("POST").status)
                self.assertTrue(client.at_end())
        eventually(lambda: encore.metrics()["encore_transfers"] == 0, "no transfer is left")

    def test_a_client_gone_mid_upload_takes_a_stored_post_with_it(self):
        # The origin answers a POST with explicit freshness before it has read the body, and takes
        # no more of it; then the client is gone and the origin reads on.
        go = threading.Event()
        origin = Origin(self)
        first = {"answered": 0}

        def serve(listener_socket):
            buffer = b""
            while b"\r\n\r\n" not in buffer:
                buffer += listener_socket.recv(100)
            first["answered"] += 1
            listener_socket.sendall(
                b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\nContent-Location: " + url
                + b"\r\nContent-Length: 1000\r\n\r\n" + b"z" * 500)
            go.wait(20)
            try:
                for _ in range(200):
                    if not listener_socket.recv(65536):
                        break
                listener_socket.sendall(b"z" * 500)
            except OSError:
                pass
            listener_socket.close()
        import socket
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.addCleanup(listener.close)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/p".encode()

        def accept():
            while True:
                try:
                    sock, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(sock,), daemon=True).start()
        threading.Thread(target=accept, daemon=True).start()
        encore = self.encore()
        for _ in range(3):
            client = Client(encore.port)
            client.send(b"POST " + url + b" HTTP/1.1\r\nHost: " + url.split(b"/")[2]
                        + b"\r\nContent-Length: 100000000\r\n\r\n")
            client.read_head()
            client.sock.settimeout(1)
            try:
                while True:
                    client.send(b"u" * 65536)
            except OSError:
                pass
            client.reset()
        go.set()
        eventually(lambda: encore.metrics()["encore_transfers"] == 0, "no transfer is left")
        self.assertEqual(3, first["answered"])


class Targets(Case):
    def test_odd_targets_and_authorities_get_an_answer_and_reach_nobody(self):
        origin = Origin(self, default=response(b"reached"))
        encore = self.encore(forward={"connect_ports": [443, origin.port]})
        port = origin.port
        odd = [
            ("GET", f"http://127.0.0.1:{port}:80/"), ("GET", "http://:80/"), ("GET", "http:///"),
            ("GET", "http://[::1/"), ("GET", "http://[::1]]/"), ("GET", "http://::1/"),
            ("GET", f"http://user@127.0.0.1:{port}/"), ("GET", "http://a b/"),
            ("GET", "http://127.0.0.1:99999/"), ("GET", "http://127.0.0.1:-1/"),
            ("GET", "http://127.0.0.1:0/"), ("GET", "http://" + "a" * 300 + ".example/"),
            ("GET", "http://%31%32%37.0.0.1:" + str(port) + "/"),
            ("GET", "http://127.0.0.1%00.example/"), ("GET", "http://127.0.0.1\\@x/"),
            ("GET", "gopher://127.0.0.1/"), ("GET", "file:///etc/passwd"), ("GET", "*"),
            ("GET", "http://..:80/"), ("GET", "http://.example/"), ("GET", "http://a..b/"),
            ("CONNECT", "127.0.0.1"), ("CONNECT", "127.0.0.1:"), ("CONNECT", ":443"),
            ("CONNECT", "127.0.0.1:0"), ("CONNECT", "127.0.0.1:65536"), ("CONNECT", "/"),
            ("CONNECT", f"127.0.0.1:{port}/x"), ("CONNECT", f"http://127.0.0.1:{port}"),
            ("CONNECT", f"user@127.0.0.1:{port}"), ("CONNECT", "[::1]"), ("CONNECT", "[::1]:"),
            ("CONNECT", "*:443"), ("CONNECT", "a b:443"), ("CONNECT", "..:443"),
            ("CONNECT", f"[::ffff:127.0.0.1%25lo]:{port}"),
        ]
        for method, target in odd:
            with self.subTest(target=f"{method} {target}"), Client(encore.port) as client:
                client.send(f"{method} {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")
                status = client.read_response().status
                self.assertIn(status, (400, 403, 404, 405, 414, 501, 502), target)
        self.assertEqual(0, origin.count())

    def test_case_and_default_port_of_a_host_make_no_other_object(self):
        encore_origin = Origin(self, default=fresh(b"page"))
        encore = self.encore()
        port = encore_origin.port
        for url in (f"http://LOCALHOST:{port}/p", f"http://localhost:{port}/p",
                    f"HTTP://LocalHost:{port}/p"):
            with Client(encore.port) as client:
                client.send(f"GET {url} HTTP/1.1\r\nHost: {url.split('/')[2]}\r\n\r\n")
                last = client.read_response()
        self.assertIn("; hit", field(last, "Cache-Status"))
        # Another port in Host is another authority than the target's: one of them is a lie.
        with Client(encore.port) as client:
            client.send(f"GET http://localhost:{port}/p HTTP/1.1\r\nHost: localhost:1\r\n\r\n")
            answer = client.read_response()
        self.assertTrue(answer.status == 400 or answer.body == b"page")

    def test_early_data_of_a_refused_connect_goes_nowhere(self):
        origin = Origin(self, default=response(b"reached"))
        encore = self.encore(forward={"connect_ports": [1]})
        with Client(encore.port) as client:
            client.send(f"CONNECT {origin.authority} HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n"
                        f"GET {origin.url('/smuggled')} HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n")
            self.assertEqual(403, client.read_response().status)
            self.assertTrue(client.at_end())
        self.assertEqual(0, origin.count())


if __name__ == "__main__":
    unittest.main()
