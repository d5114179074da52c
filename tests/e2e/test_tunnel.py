"""CONNECT: bytes both ways, half-closed ends, refusals, and what a drain does to a tunnel."""

import os
import signal
import socket
import threading
import unittest

from client import Client, NoResponse
from harness import Case, eventually, free_port, sanitized


class EchoServer:
    """Sends back all it gets; says "bye" when the peer has ended its side, and counts."""

    def __init__(self, case):
        self.connections = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        case.addCleanup(self.listener.close)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self._echo, args=(sock,), daemon=True).start()

    @staticmethod
    def _echo(sock):
        with sock:
            try:
                while data := sock.recv(65536):
                    sock.sendall(data)
                sock.sendall(b"bye")
            except OSError:
                pass


class Tunnel(Case):
    def setUp(self):
        super().setUp()
        self.server = EchoServer(self)
        self.dead_port = free_port()

    def proxy(self, **sections):
        ports = [self.server.port, self.dead_port]
        return self.encore(forward={"connect_ports": ports}, **sections)

    def connect(self, encore, extra=b"", port=None):
        client = Client(encore.port)
        self.addCleanup(client.close)
        authority = f"127.0.0.1:{port or self.server.port}"
        client.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n".encode() + extra)
        return client, client.read_response("CONNECT")

    def test_bytes_pass_both_ways_and_each_end_closes_by_itself(self):
        encore = self.proxy()
        client, answer = self.connect(encore)
        self.assertEqual(200, answer.status)
        self.assertEqual([], [v for k, v in answer.fields
                              if k in ("content-length", "transfer-encoding")])
        data = os.urandom(3_000_000)
        sender = threading.Thread(target=lambda: (client.send(data), client.shutdown()))
        sender.start()
        self.assertEqual(data, client.read_exactly(len(data)))
        sender.join()
        self.assertEqual(b"bye", client.read_to_end())

    def test_bytes_sent_with_the_head_are_not_lost(self):
        client, answer = self.connect(self.proxy(), extra=b"early")
        self.assertEqual(200, answer.status)
        self.assertEqual(b"early", client.read_exactly(5))

    def test_nobody_there_is_502(self):
        _, answer = self.connect(self.proxy(), port=self.dead_port)
        self.assertEqual(502, answer.status)

    def test_http_1_0_may_ask_for_a_tunnel(self):
        encore = self.proxy()
        with Client(encore.port) as client:
            client.send(f"CONNECT 127.0.0.1:{self.server.port} HTTP/1.0\r\n\r\n")
            self.assertEqual(200, client.read_response("CONNECT").status)
            client.send("x")
            self.assertEqual(b"x", client.read_exactly(1))

    def test_an_idle_tunnel_ends_in_time(self):
        client, _ = self.connect(self.proxy(timeouts={"tunnel_idle": "1s"}))
        self.assertTrue(client.at_end())

    def test_a_drain_ends_tunnels_at_its_limit(self):
        encore = self.proxy(timeouts={"drain": "1s"})
        client, _ = self.connect(encore)
        client.send("x")
        client.read_exactly(1)
        encore.signal(signal.SIGTERM)
        self.assertEqual(0, encore.wait_for_exit())

    def test_tunnels_are_counted_while_they_last(self):
        encore = self.proxy()
        clients = [self.connect(encore)[0] for _ in range(5)]
        eventually(lambda: encore.metrics()["encore_tunnels"] == 5, "all are counted")
        for client in clients:
            client.close()
        eventually(lambda: encore.metrics()["encore_tunnels"] == 0, "the tunnels are closed")
        eventually(lambda: encore.outcomes().get("tunnel") == 5, "the tunnels are counted")

    def test_a_client_that_stops_reading_is_let_go_and_costs_little(self):
        encore = self.proxy(timeouts={"tunnel_idle": "2s"})
        clients = [self.connect(encore)[0] for _ in range(20)]
        for client in clients:
            client.sock.settimeout(0.2)
            try:  # the echo is never read, so that in the end nothing is sent either
                while True:
                    client.send(bytes(1 << 16))
            except OSError:
                pass
        if not sanitized():
            self.assertLess(encore.resident_bytes(), 64 << 20)
        eventually(lambda: encore.metrics()["encore_tunnels"] == 0, "the tunnels are closed")

    def test_a_client_that_leaves_frees_the_other_side(self):
        encore = self.proxy()
        client, _ = self.connect(encore)
        client.reset()
        eventually(lambda: encore.metrics()["encore_tunnels"] == 0, "the tunnel is closed")


class Timeouts(Case):
    def test_a_client_that_never_finishes_its_head_is_let_go(self):
        encore = self.encore(timeouts={"client_header": "1s"})
        with Client(encore.port) as client:
            client.send("GET http://a.exam")
            try:
                self.assertEqual(408, client.read_response().status)
            except NoResponse:
                pass

    def test_an_idle_connection_is_let_go(self):
        encore = self.encore(timeouts={"client_idle": "1s"})
        with Client(encore.port) as client:
            self.assertTrue(client.at_end())

    def test_idle_connections_beyond_the_limit_give_way_and_others_live_on(self):
        encore = self.encore(limits={"connections": 20, "connections_per_client": 0})

        def accepted():
            return encore.metrics()["encore_client_connections_total"]

        clients = []
        before = accepted()
        for number in range(1, 31):
            client = Client(encore.port)
            self.addCleanup(client.close)
            clients.append(client)
            # A client that came in the same turn of a worker does not give way yet.
            eventually(lambda: accepted() >= before + number, f"client {number} is let in")
        eventually(lambda: encore.metrics()["encore_client_connections_given_up_total"] >= 10,
                   "ten are given up")
        self.assertEqual(20, encore.metrics()["encore_client_connections"])
        for client in clients:
            client.close()
        eventually(lambda: encore.metrics()["encore_client_connections"] == 0, "all are closed")
        with Client(encore.port) as client:
            client.send("GET / HTTP/1.1\r\n\r\n")
            self.assertEqual(400, client.read_response().status)


class Refusals(Case):
    def refusal(self, port, asks):
        with Client(port) as client:
            client.send(asks)
            method = asks.split(" ", 1)[0]
            answer = client.read_response("GET" if method == "CONNECT" else method)
        return answer.status, answer.body.decode()

    def connect(self, port, authority):
        return self.refusal(port, f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n")

    def test_ports_that_package_managers_tunnel_to_are_open_by_default(self):
        encore = self.encore()
        for port in (80, 443, 8443):
            self.assertNotIn("connect-port", self.connect(encore.port, f"127.0.0.1:{port}")[1])
        for port in (22, 8080):
            status, body = self.connect(encore.port, f"127.0.0.1:{port}")
            self.assertEqual(403, status)
            self.assertIn("forward.connect_ports", body)

    def test_a_refusal_names_its_key_to_clients_of_forward_listeners(self):
        encore = self.encore(
            forward={"private_destinations": "never", "allow_clients": ["127.0.0.1"]})
        for url, key in (("http://127.0.0.1:25/", "forward.safe_ports"),
                         ("http://127.0.0.1:8080/", "forward.private_destinations")):
            status, body = self.refusal(encore.port, f"GET {url} HTTP/1.1\r\nHost: h\r\n\r\n")
            self.assertEqual(403, status)
            self.assertIn(key, body)
        status, body = self.connect(encore.port, "127.0.0.1:443")
        self.assertEqual(403, status)
        self.assertIn("forward.private_destinations", body)
        with Client(encore.port, source="127.0.0.2") as stranger:
            answer = stranger.ask("http://a.example/")
        self.assertEqual(403, answer.status)
        self.assertIn(b"forward.allow_clients", answer.body)

    def test_clients_of_reverse_listeners_are_told_no_key(self):
        for listen in ({"deny_clients": ["127.0.0.1"]}, {"deny_hosts": ["*"]},
                       {"allow_methods": ["POST"]}):
            encore = self.encore(listen=[{"address": f"127.0.0.1:{free_port()}",
                                          "mode": "reverse", **listen}],
                                 origin=[{"servers": ["http://127.0.0.1:1"]}])
            status, body = self.refusal(encore.port, "GET / HTTP/1.1\r\nHost: h\r\n\r\n")
            self.assertEqual(403, status)
            self.assertIn("not-allowed", body)
            self.assertNotIn("listen.", body)
            self.assertNotIn("configuration", body)


if __name__ == "__main__":
    unittest.main()
