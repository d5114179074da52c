"""The client's identity behind real proxies: HAProxy with the PROXY protocol, nginx with
X-Forwarded-For. And the fields that origins receive about it."""

import unittest

from client import Client, get
from haproxy import Haproxy
from harness import Case, eventually, free_port, need_program
from nginx import Nginx
from origin import Origin, fresh, response

LOCAL = "127.0.0.0/8"
PROXY_1 = "PROXY TCP4 192.0.2.7 127.0.0.1 5000 80\r\n"
ASK = "GET http://{} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"


def ended(client):
    """Whether the proxy ends the connection without an answer."""
    try:
        return client.at_end()
    except ConnectionResetError:
        return True


class Clients(Case):
    def setUp(self):
        super().setUp()
        self.origin = Origin(self, default=response(b"ok", Cache_Control="no-store"))

    def reverse(self, listen, **sections):
        return self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse", **listen}],
            origin=[{"servers": [self.origin.url("")]}], **sections)

    def forward(self, listen, **sections):
        return self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "forward", **listen}],
            **sections)

    def told(self, name, path=None):
        """Returns the value that the origin last received in this field."""
        head = self.origin.last(path)
        return [value for field, value in head.fields if field.lower() == name]


class ProxyProtocol(Clients):
    def test_haproxy_says_who_the_client_is(self):
        curl = need_program("curl")
        for version in ("send-proxy", "send-proxy-v2", "send-proxy-v2-ssl"):
            with self.subTest(version):
                encore = self.reverse({"proxy_protocol": True, "trusted_proxies": [LOCAL]})
                front = Haproxy(self, f"server s 127.0.0.1:{encore.port} {version}")
                answer = self.run_client([curl, "-sS", "--interface", "127.0.0.23",
                                          f"http://127.0.0.1:{front.port}/{version}"])
                self.assertEqual(b"ok", answer.stdout)
                self.assertEqual("127.0.0.23", encore.access_records(1)[0]["client"])
                self.assertEqual(["127.0.0.23"], self.told("x-forwarded-for"))

    def test_the_checks_of_haproxy_are_no_clients(self):
        encore = self.reverse({"proxy_protocol": True, "trusted_proxies": [LOCAL]})
        front = Haproxy(self, "option httpchk GET /alive\n  default-server inter 100ms\n"
                              f"  server s 127.0.0.1:{encore.port} check send-proxy-v2 "
                              "check-send-proxy")
        records = encore.access_records(2)
        self.assertEqual({"127.0.0.1"}, {record["client"] for record in records})
        self.assertEqual({200}, {record["status"] for record in records})
        self.assertEqual(b"ok", get(front.port, "http://a/x").body)

    def test_a_header_may_come_in_pieces_and_with_requests_behind_it(self):
        encore = self.reverse({"proxy_protocol": True})
        with Client(encore.port) as client:
            for byte in PROXY_1:
                client.send(byte)
            for _ in range(3):
                client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n" * 2)
                self.assertEqual([200, 200], [client.read_response().status for _ in range(2)])
        self.assertEqual({"192.0.2.7"}, {r["client"] for r in encore.access_records(6)})
        with Client(encore.port) as client:
            client.send(PROXY_1 + "GET /b HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(200, client.read_response().status)

    def test_without_a_header_nothing_is_answered(self):
        encore = self.reverse({"proxy_protocol": True}, timeouts={"client_header": "500ms"})
        beginnings = ["GET / HTTP/1.1\r\nHost: a\r\n\r\n", "PROXY TCP4 1.2.3.4\r\n", "\x16\x03\x01",
                      PROXY_1[:20], ""]
        for beginning in beginnings:
            with self.subTest(beginning), Client(encore.port) as client:
                client.send(beginning)
                self.assertTrue(ended(client))
        with Client(encore.port) as client:
            client.send(PROXY_1[:20])
            client.shutdown()
            self.assertTrue(ended(client))
        self.assertEqual(6, encore.metrics()["encore_proxy_headers_refused_total"])
        self.assertEqual(0, self.origin.count())

    def test_only_trusted_proxies_may_say_it(self):
        encore = self.reverse({"proxy_protocol": True, "trusted_proxies": ["127.0.0.2"]})
        ask = PROXY_1 + "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"
        with Client(encore.port) as client:
            client.send(ask)
            self.assertTrue(ended(client))
        self.assertEqual(1, encore.metrics()["encore_proxy_headers_refused_total"])
        with Client(encore.port, source="127.0.0.2") as client:
            client.send(ask)
            self.assertEqual(200, client.read_response().status)
        self.assertEqual("192.0.2.7", encore.access_records(1)[0]["client"])

    def test_connections_are_counted_for_the_client_that_is_named(self):
        encore = self.reverse({"proxy_protocol": True, "trusted_proxies": [LOCAL]},
                              limits={"connections_per_client": 2})
        clients = [Client(encore.port) for _ in range(4)]
        for client in clients:
            self.addCleanup(client.close)
        for client, last, served in zip(clients, (7, 7, 7, 8), (True, True, False, True)):
            client.send(PROXY_1.replace("192.0.2.7", f"192.0.2.{last}"))
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            if served:
                self.assertEqual(200, client.read_response().status)
        self.assertTrue(ended(clients[2]))
        self.assertEqual(1, encore.metrics()["encore_client_connections_refused_total"])
        clients[0].close()
        eventually(lambda: encore.metrics()["encore_client_connections"] == 2, "one has gone")
        with Client(encore.port) as client:
            client.send(PROXY_1 + "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(200, client.read_response().status)

    def test_nobody_becomes_loopback_by_what_is_said_of_him(self):
        # The peer is on loopback here and might reach the origin; the client that it names may not.
        encore = self.forward({"proxy_protocol": True, "trusted_proxies": [LOCAL]},
                              forward={"allow_clients": ["0.0.0.0/0", "::/0"]})
        ask = ASK.format(self.origin.authority + "/")
        with Client(encore.port) as client:
            client.send("PROXY TCP4 127.0.0.9 127.0.0.1 5000 80\r\n" + ask)
            self.assertEqual(200, client.read_response().status)
        for named in ("TCP4 192.0.2.7 127.0.0.1", "TCP6 2001:db8::1 ::1", "TCP4 0.0.0.0 127.0.0.1"):
            with self.subTest(named), Client(encore.port) as client:
                client.send(f"PROXY {named} 5000 80\r\n" + ask)
                self.assertEqual(403, client.read_response().status)
        self.assertEqual(1, self.origin.count())


class TrustedProxies(Clients):
    def nginx(self, encore, more="proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;"):
        extra = f"location / {{ proxy_pass http://127.0.0.1:{encore.port}; {more} }}"
        return Nginx(self, self.directory, extra=extra)

    def test_nginx_in_front_says_who_the_client_is(self):
        encore = self.reverse({"trusted_proxies": [LOCAL]})
        front = self.nginx(encore)
        curl = need_program("curl")
        self.run_client([curl, "-sS", front.url("/a"),
                         "-H", "X-Forwarded-For: 198.51.100.1", "-H", "Forwarded: for=192.0.2.66",
                         "-H", "X-Forwarded-Proto: https"])
        # nginx's own word is behind what the client has sent, and names a trusted address.
        record = encore.access_records(1)[0]
        self.assertEqual("198.51.100.1", record["client"])
        self.assertEqual(["198.51.100.1, 127.0.0.1, 127.0.0.1"], self.told("x-forwarded-for"))

    def test_what_is_said_in_front_of_the_client_goes_no_further(self):
        encore = self.reverse({"trusted_proxies": ["127.0.0.1"]})
        front = self.nginx(encore)
        curl = need_program("curl")
        self.run_client([curl, "-sS", "--interface", "127.0.0.31", front.url("/a"),
                         "-H", "X-Forwarded-For: 198.51.100.1, 127.0.0.1"])
        self.assertEqual("127.0.0.31", encore.access_records(1)[0]["client"])
        self.assertEqual(["127.0.0.31, 127.0.0.1"], self.told("x-forwarded-for"))
        self.assertTrue(self.told("forwarded")[0].startswith("for=127.0.0.31;host="))
        self.assertTrue(self.told("forwarded")[0].endswith(";proto=http, for=127.0.0.1"))

    def test_one_connection_brings_the_requests_of_several_clients(self):
        encore = self.reverse({"trusted_proxies": [LOCAL]})
        with Client(encore.port) as client:
            client.send("".join(f"GET /{n} HTTP/1.1\r\nHost: a\r\n"
                                f"X-Forwarded-For: 192.0.2.{n}\r\n\r\n" for n in (1, 3, 4)))
            for _ in range(3):
                self.assertEqual(200, client.read_response().status)
        self.assertEqual(["192.0.2.1", "192.0.2.3", "192.0.2.4"],
                         sorted(r["client"] for r in encore.access_records(3)))

    def test_a_client_that_is_not_trusted_says_nothing(self):
        encore = self.reverse({"trusted_proxies": ["10.0.0.0/8"]})
        with Client(encore.port) as client:
            client.send(
                "GET /a HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\n"
                "Forwarded: for=192.0.2.1\r\nX-Forwarded-Proto: https\r\n"
                "X-Forwarded-Host: evil\r\n\r\n")
            self.assertEqual(200, client.read_response().status)
        self.assertEqual("127.0.0.1", encore.access_records(1)[0]["client"])
        self.assertEqual(["127.0.0.1"], self.told("x-forwarded-for"))
        self.assertEqual(["http"], self.told("x-forwarded-proto"))
        self.assertEqual(["a"], self.told("x-forwarded-host"))

    def test_what_is_asked_by_tls_is_kept_apart(self):
        def by_scheme(exchange):
            scheme = dict(exchange.request.fields)["x-forwarded-proto"]
            if scheme == "http":
                return response(status="301 Moved Permanently", Cache_Control="max-age=600",
                                Location="https://a/x")
            return fresh(b"safe")
        self.origin = Origin(self, {"/x": by_scheme})
        encore = self.reverse({"trusted_proxies": [LOCAL]},
                              admission={"policy": "always"})
        def ask(scheme, method="GET"):
            with Client(encore.port) as client:
                client.send(f"{method} /x HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\n"
                            f"X-Forwarded-Proto: {scheme}\r\n\r\n")
                return client.read_response().status
        for _ in range(2):
            self.assertEqual([301, 200], [ask("http"), ask("https")])
        self.assertEqual(2, self.origin.count())
        # A purge and a write find both.
        self.assertEqual(200, encore.admin("/purge?url=http://a/x", "POST")[0])
        self.assertEqual([301, 200], [ask("http"), ask("https")])
        self.assertEqual(4, self.origin.count())
        ask("https", "DELETE")
        self.assertEqual([301, 200], [ask("http"), ask("https")])
        self.assertEqual(7, self.origin.count())


class Told(Clients):
    def test_what_origins_are_told_is_chosen_by_listener(self):
        names = ("x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "forwarded")
        table = {"off": "0000", "x-forwarded": "1110", "forwarded": "0001", "both": "1111",
                 "auto": "1111"}
        for choice, expected in table.items():
            with self.subTest(choice):
                encore = self.reverse({"forwarded": choice})
                with Client(encore.port) as client:
                    client.send("GET /a HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.1\r\n\r\n")
                    self.assertEqual(200, client.read_response().status)
                self.assertEqual(expected, "".join(str(len(self.told(name))) for name in names))
        encore = self.forward({})
        get(encore.port, self.origin.url("/a"), fields=[("Forwarded", "for=192.0.2.1")])
        self.assertEqual("0000", "".join(str(len(self.told(name))) for name in names))
        encore = self.forward({"forwarded": "forwarded"})
        get(encore.port, self.origin.url("/a"), fields=[("Forwarded", "for=192.0.2.1")])
        self.assertEqual([f'for=127.0.0.1;host="{self.origin.authority}";proto=http'],
                         self.told("forwarded"))

    def test_via_and_cache_status_are_said_where_the_listener_says_them(self):
        self.origin = Origin(self, default=fresh(b"ok"))
        ports = [free_port() for _ in range(3)]
        settings = [{}, {"via": False}, {"cache_status": False}]
        encore = self.encore(
            listen=[{"address": f"127.0.0.1:{port}", "mode": "reverse", **more}
                    for port, more in zip(ports, settings)],
            origin=[{"servers": [self.origin.url("")]}], admission={"policy": "always"})
        def said(port, path):
            with Client(port) as client:
                client.send(f"GET {path} HTTP/1.1\r\nHost: a\r\nVia: 1.1 other\r\n\r\n")
                names = [name for name, _ in client.read_response().fields]
                return "via" in names, "cache-status" in names
        for path in ("/a", "/a", "/\x01", "/b"):  # a miss, a hit, a refusal, a miss
            self.assertEqual([True, False, True][:3],
                             [said(port, path)[0] for port in ports] if path != "/\x01"
                             else [True, False, True])
            self.assertEqual([True, True, False], [said(port, path)[1] for port in ports])
        with Client(ports[1]) as client:
            client.send("GET /c HTTP/1.1\r\nHost: a\r\nVia: 1.1 other\r\n\r\n")
            client.read_response()
        self.assertEqual(["1.1 other"], self.told("via", "/c"))


if __name__ == "__main__":
    unittest.main()
