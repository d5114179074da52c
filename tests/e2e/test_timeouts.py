"""Each limit on waiting, set to half a second, takes effect about then."""

import os
import socket
import threading
import time
import unittest

from client import Client, NoResponse
from harness import Case
from origin import Origin, fresh, response

SET = 0.5
# A tenth of it, or 250 ms, late. A busy machine adds to that, but not each time.
LATEST = SET + 0.25
TRIES = 12


class Timeouts(Case):
    def start_encore(self, key, **sections):
        return self.encore(timeouts={key: "500ms"}, workers={"count": 1}, **sections)

    def assert_in_time(self, once):
        """`once` waits until it took effect. Each try starts when the one before has ended, so that
        a proxy that looks once a second comes late in all but the first."""
        took = []
        for _ in range(TRIES):
            start = time.monotonic()
            once()
            took.append(time.monotonic() - start)
            self.assertGreaterEqual(took[-1], SET - 0.01)
            if len(took) > 1 and took[-1] <= LATEST:
                return
        self.fail(f"{SET} s were set, it took " + ", ".join(f"{t:.2f}" for t in took))

    def status(self, encore, url, **options):
        with Client(encore.port) as client:
            return client.ask(url, **options).status

    def test_an_origin_that_does_not_answer(self):
        origin = Origin(self, default=lambda x: x.wait_until_closed())
        encore = self.start_encore("origin_response")
        self.assert_in_time(lambda: self.assertEqual(504, self.status(encore, origin.url())))

    def test_an_origin_that_stops_in_the_middle(self):
        def half(exchange):
            exchange.send(response(b"whole", Cache_Control="no-store")[:-2])
            exchange.wait_until_closed()
        origin = Origin(self, default=half)
        encore = self.start_encore("origin_idle")

        def once():
            with self.assertRaises(NoResponse):
                self.status(encore, origin.url())
        self.assert_in_time(once)

    def test_a_head_that_does_not_end(self):
        encore = self.start_encore("client_header")

        def once():
            with Client(encore.port) as client:
                client.send("GET http://")
                self.assertEqual(408, client.read_response().status)
        self.assert_in_time(once)

    def test_a_body_that_does_not_come(self):
        origin = Origin(self, default=response(b"taken"))
        encore = self.start_encore("client_body")

        def once():
            with Client(encore.port) as client:
                client.send(f"POST {origin.url()} HTTP/1.1\r\nHost: {origin.authority}\r\n"
                            "Content-Length: 10\r\n\r\nhalf")
                self.assertEqual(408, client.read_response().status)
        self.assert_in_time(once)

    def test_a_client_between_requests(self):
        origin = Origin(self, default=fresh(b"page"))
        encore = self.start_encore("client_idle")

        def once():
            with Client(encore.port) as client:
                client.ask(origin.url())
                self.assertTrue(client.at_end())
        self.assert_in_time(once)

    def test_a_client_that_takes_nothing(self):
        origin = Origin(self, default=response(bytes(8 << 20), Cache_Control="no-store"))
        encore = self.start_encore("client_write")

        def once():
            before = encore.outcomes().get("client-aborted", 0)
            with Client(encore.port, receive_buffer=4096) as client:
                client.request(origin.url())
                while encore.outcomes().get("client-aborted", 0) == before:
                    time.sleep(0.01)
        self.assert_in_time(once)

    def test_a_tunnel_in_which_nothing_moves(self):
        origin = Origin(self)
        encore = self.start_encore("tunnel_idle", forward={"connect_ports": [origin.port]})

        def once():
            with Client(encore.port) as client:
                client.send(f"CONNECT {origin.authority} HTTP/1.1\r\n"
                            f"Host: {origin.authority}\r\n\r\n")
                self.assertEqual(200, client.read_response("CONNECT").status)
                self.assertTrue(client.at_end())
        self.assert_in_time(once)

    def test_a_kept_connection_to_an_origin(self):
        closed = threading.Event()

        def answer(exchange):
            exchange.send(response(b"page", Cache_Control="no-store"))
            exchange.wait_until_closed()
            closed.set()
        origin = Origin(self, default=answer)
        encore = self.start_encore("pool_idle")

        def once():
            closed.clear()
            self.assertEqual(200, self.status(encore, origin.url()))
            self.assertTrue(closed.wait(60))
        self.assert_in_time(once)

    def test_a_client_that_is_slower_than_its_origin_may_be_gets_the_whole(self):
        # The origin is not read meanwhile: its silence is the client's doing.
        body = os.urandom(16 << 20)  # more than lies in the buffers of four sockets

        def half(exchange):
            exchange.send(response(b"whole", Cache_Control="no-store")[:-2])
            exchange.wait_until_closed()
        origin = Origin(self, {"/large": response(body, Cache_Control="no-store"), "/half": half})
        encore = self.start_encore("origin_idle", limits={"transfer_buffer": "64KiB"})
        with Client(encore.port, receive_buffer=65536) as slow:
            slow.request(origin.url("/large"))
            slow.read_head()
            for _ in range(2):  # each of these has been silent for the whole of that time
                with self.assertRaises(NoResponse):
                    self.status(encore, origin.url("/half"))
            self.assertEqual(body, slow.read_exactly(len(body)))

    def test_a_tunnel_in_which_bytes_go_one_way_only(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
            encore = self.start_encore("tunnel_idle", forward={"connect_ports": [port]})

            def tunnel():
                client = Client(encore.port)
                self.addCleanup(client.close)
                client.send(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n")
                self.assertEqual(200, client.read_response("CONNECT").status)
                far, _ = listener.accept()
                self.addCleanup(far.close)
                return client.sock, far

            def ended(sock):
                sock.settimeout(SET / 20)
                try:
                    return not sock.recv(1)
                except TimeoutError:
                    return False

            def speak(source):
                """For as long as it takes that two without any bytes are ended: how many came of
                it. None where this machine made a pause that was long itself."""
                sent, last = 0, time.monotonic()
                for _ in range(2):
                    idle, _ = tunnel()
                    while not ended(idle):
                        if time.monotonic() - last > SET / 2:
                            return None
                        source.sendall(b"x")
                        sent, last = sent + 1, time.monotonic()
                return sent

            for to_client in (True, False):
                for _ in range(TRIES):
                    near, far = tunnel()
                    source, sink = (far, near) if to_client else (near, far)
                    if (sent := speak(source)) is not None:
                        break
                self.assertIsNotNone(sent, "pauses in all tries")
                source.shutdown(socket.SHUT_WR)
                sink.settimeout(30)
                with sink.makefile("rb") as reader:
                    self.assertEqual(b"x" * sent, reader.read(sent))
                    self.assertEqual(b"", reader.read(1))

    def test_a_name_server_that_does_not_answer(self):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
            silent.bind(("127.0.0.1", 0))
            encore = self.start_encore(
                "dns", upstream={"nameservers": ["127.0.0.1:%d" % silent.getsockname()[1]]})
            self.assert_in_time(
                lambda: self.assertEqual(504, self.status(encore, "http://site.example/")))


if __name__ == "__main__":
    unittest.main()
