"""No open proxy and no way in: who may ask, and where a request may never go.

A refused destination gets 403, for GET and for CONNECT, and nothing is connected.
"""

import socket
import threading
import unittest

from client import Client, get
from harness import Case, eventually, free_port
from origin import Origin, fresh, response

# Addresses that are not of the public internet, in the spellings of a URL's host.
PRIVATE = [
    "127.0.0.1", "127.0.0.2", "127.255.255.254", "localhost", "LOCALHOST", "localhost.",
    "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:0:0:1]", "[::127.0.0.1]",
    "[64:ff9b::7f00:1]", "[2002:7f00:1::1]", "0.0.0.0", "0.1.2.3", "[::]", "[::ffff:0.0.0.0]",
    "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "169.254.169.254",
    "[::ffff:169.254.169.254]", "[fe80::1]", "[fc00::1]", "[fd12::1]", "[::ffff:10.0.0.1]",
    "224.0.0.1", "255.255.255.255", "[ff02::1]",
]
# Spellings of 127.0.0.1 that some resolvers understand: never connected, whatever the status.
ODD = ["2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "127.1", "127.0.1", "017700000001",
       "127.0.0.1.", "0", "127.0.0.01"]
REFUSALS = (400, 403, 502, 504)


def own_address():
    """An address of this machine other than loopback, or None."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            s.connect(("192.0.2.1", 9))  # sends nothing
            address = s.getsockname()[0]
        except OSError:
            return None
    return None if address.startswith(("127.", "0.")) else address


def connect(port, authority, **options):
    with Client(port, **options) as client:
        client.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n")
        return client.read_response("CONNECT").status


class Destinations(Case):
    def setUp(self):
        super().setUp()
        self.origin = Origin(self, default=response(b"reached", Cache_Control="no-store"))
        self.inner = Origin(self, default=response(b"reached"), host="::1")

    def reached(self):
        return self.origin.connections + self.inner.connections

    def forward(self, **forward):
        ports = [self.origin.port, self.inner.port]
        return self.encore(forward={"connect_ports": ports, **forward},
                           timeouts={"dns": "2s", "origin_connect": "2s"})

    def refused(self, encore, host, port, statuses=(403,)):
        self.assertIn(get(encore.port, f"http://{host}:{port}/").status, statuses, host)
        self.assertIn(connect(encore.port, f"{host}:{port}"), statuses, f"CONNECT {host}")

    def test_private_destinations_are_refused_to_all_when_never(self):
        encore = self.forward(private_destinations="never")
        for host in PRIVATE:
            with self.subTest(host):
                port = self.inner.port if host.startswith("[") else self.origin.port
                self.refused(encore, host, port)
        self.assertEqual(0, self.reached())

    def test_odd_spellings_of_loopback_reach_nothing_when_never(self):
        encore = self.forward(private_destinations="never")
        for host in ODD:
            with self.subTest(host):
                self.refused(encore, host, self.origin.port, REFUSALS)
        self.assertEqual(0, self.reached())

    def test_loopback_clients_reach_loopback_by_default(self):
        encore = self.forward()
        self.assertEqual(b"reached", get(encore.port, self.origin.url("/")).body)
        self.assertEqual(b"reached", get(encore.port, f"http://localhost:{self.origin.port}/").body)
        self.assertEqual(b"reached", get(encore.port, self.inner.url("/")).body)
        self.assertEqual(200, connect(encore.port, self.origin.authority))

    def test_other_clients_reach_no_loopback_by_default(self):
        address = own_address()
        if not address:
            self.skipTest("this machine has no address but loopback")
        port = free_port(address)
        allow = {"allow_clients": [address], "connect_ports": [self.origin.port]}
        encore = self.encore(listen=[{"address": f"{address}:{port}", "mode": "forward"}],
                             forward=allow)
        with Client(port, address) as client:
            self.assertEqual(403, client.ask(self.origin.url("/")).status)
        self.assertEqual(403, connect(port, self.origin.authority, host=address))
        self.assertEqual(0, self.reached())
        encore.stop()
        encore = self.encore(listen=[{"address": f"{address}:{port}", "mode": "forward"}],
                             forward={**allow, "private_destinations": "always"})
        with Client(port, address) as client:
            self.assertEqual(b"reached", client.ask(self.origin.url("/")).body)

    def test_what_a_loopback_client_got_from_there_is_given_to_no_other(self):
        address = own_address()
        if not address:
            self.skipTest("this machine has no address but loopback")
        ports = [free_port(address), free_port()]
        go, asked = threading.Event(), threading.Event()

        def slow(exchange):
            asked.set()
            exchange.wait(go)
            return fresh(b"secret")
        origin = Origin(self, {"/stored": fresh(b"secret"), "/slow": slow})
        encore = self.encore(
            listen=[{"address": f"{address}:{ports[0]}", "mode": "forward"},
                    {"address": f"127.0.0.1:{ports[1]}", "mode": "forward"}],
            forward={"allow_clients": [address, "127.0.0.0/8"]}, admission={"policy": "always"},
            workers={"count": 1})
        for status in (200, 200):
            self.assertEqual(status, get(ports[1], origin.url("/stored")).status)
        self.assertEqual(1, origin.count("/stored"))
        with Client(ports[0], address) as other:
            self.assertEqual(403, other.ask(origin.url("/stored")).status)
            self.assertEqual(403, other.ask(origin.url("/stored"), "HEAD").status)
        # Nor while it is on its way, and the refusal is that client's alone.
        with Client(ports[1]) as first, Client(ports[0], address) as other, Client(ports[1]) as third:
            first.request(origin.url("/slow"))
            self.assertTrue(asked.wait(60))
            other.request(origin.url("/slow"))
            third.request(origin.url("/slow"))
            eventually(lambda: encore.metrics()["encore_client_connections"] >= 3, "all are there")
            go.set()
            self.assertEqual([b"secret", 403, b"secret"],
                             [first.read_response().body, other.read_response().status,
                              third.read_response().body])

    def test_a_connection_kept_from_a_loopback_client_is_used_for_no_other(self):
        address = own_address()
        if not address:
            self.skipTest("this machine has no address but loopback")
        ports = [free_port(address), free_port()]
        encore = self.encore(
            listen=[{"address": f"{address}:{ports[0]}", "mode": "forward"},
                    {"address": f"127.0.0.1:{ports[1]}", "mode": "forward"}],
            forward={"allow_clients": [address, "127.0.0.0/8"]}, workers={"count": 1})
        for url in (self.origin.url("/"), f"http://localhost:{self.origin.port}/"):
            self.assertEqual(b"reached", get(ports[1], url).body)
            asked, kept = self.origin.count(), self.origin.connections
            with Client(ports[0], address) as other:
                self.assertEqual(403, other.ask(url).status)
            self.assertEqual(asked, self.origin.count())
            # It stays for whom it is allowed.
            self.assertEqual(b"reached", get(ports[1], url).body)
            self.assertEqual(kept, self.origin.connections)

    def test_own_listeners_and_the_admin_address_are_refused_under_every_name(self):
        for policy in ("always", "loopback-clients"):
            encore = self.encore(forward={"private_destinations": policy},
                                 timeouts={"dns": "2s", "origin_connect": "2s"})
            encore.sections["forward"]["connect_ports"] = [encore.port, encore.admin_port]
            encore.stop()
            encore.start()
            for port in (encore.port, encore.admin_port):
                for host in ("127.0.0.1", "localhost", "0.0.0.0", "[::ffff:127.0.0.1]",
                             "[::ffff:0.0.0.0]"):
                    with self.subTest(f"{policy} {host}:{port}"):
                        self.refused(encore, host, port)
                for host in ("[::1]", "[::]", *ODD[:4]):
                    with self.subTest(f"{policy} {host}:{port}"):
                        self.refused(encore, host, port, REFUSALS)

    def test_clients_outside_allow_clients_get_403_and_reach_nothing(self):
        encore = self.forward(allow_clients=["127.0.0.1/32"])
        with Client(encore.port, source="127.0.0.9") as client:
            self.assertEqual(403, client.ask(self.origin.url("/")).status)
        self.assertEqual(403, connect(encore.port, self.origin.authority, source="127.0.0.9"))
        self.assertEqual(0, self.reached())
        self.assertEqual(b"reached", get(encore.port, self.origin.url("/")).body)

    def test_connect_goes_only_to_the_ports_allowed(self):
        encore = self.encore()
        self.assertEqual(403, connect(encore.port, self.origin.authority))
        self.assertEqual(0, self.reached())
        self.assertEqual(b"reached", get(encore.port, self.origin.url("/")).body)

    def test_configured_origins_are_exempt(self):
        encore = self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
            origin=[{"servers": [self.origin.url("")]}],
            forward={"private_destinations": "never", "allow_clients": []})
        with Client(encore.port) as client:
            client.send("GET / HTTP/1.1\r\nHost: site.example\r\n\r\n")
            self.assertEqual(b"reached", client.read_response().body)

    def test_what_a_reverse_listener_stored_is_not_served_to_the_forward_side(self):
        secret = Origin(self, default=response(b"secret", Cache_Control="max-age=600"))
        forward, reverse = free_port(), free_port()
        encore = self.encore(
            listen=[{"address": f"127.0.0.1:{reverse}", "mode": "reverse"},
                    {"address": f"127.0.0.1:{forward}", "mode": "forward"}],
            origin=[{"servers": [secret.url("")]}], forward={"private_destinations": "never"})
        for _ in range(3):
            with Client(encore.port) as client:
                client.send(f"GET / HTTP/1.1\r\nHost: {self.origin.authority}\r\n\r\n")
                self.assertEqual(b"secret", client.read_response().body)
        self.assertEqual(403, get(forward, self.origin.url("/")).status)


if __name__ == "__main__":
    unittest.main()
