"""The clients that may use a listener, the permitted requests, and their rates: at each limit and
one past it."""

import unittest

from client import Client, field, get
from harness import Case, eventually, free_port, need_program
from origin import Origin, fresh, response


def status(port, target, method="GET", host="a", source=None, fields=""):
    with Client(port, source=source) as client:
        client.send(f"{method} {target} HTTP/1.1\r\nHost: {host}\r\n{fields}\r\n")
        return client.read_response(method).status


class Access(Case):
    def setUp(self):
        super().setUp()
        self.origin = Origin(self, default=fresh(b"ok"))

    def reverse(self, listen, **sections):
        return self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse", **listen}],
            origin=[{"servers": [self.origin.url("")]}], admission={"policy": "always"}, **sections)

    def forward(self, listen, **sections):
        return self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "forward", **listen}],
            **sections)


class Lists(Access):
    def test_clients(self):
        encore = self.reverse({"allow_clients": ["127.0.0.0/30"], "deny_clients": ["127.0.0.2"]})
        self.assertEqual([200, 403, 200, 403],
                         [status(encore.port, "/", source=f"127.0.0.{n}") for n in (1, 2, 3, 4)])
        self.assertEqual(2, encore.metrics()["encore_access_denied_total"])
        # A stored response does not bypass it.
        self.assertEqual(1, self.origin.count())

    def test_the_client_is_whom_a_trusted_proxy_names(self):
        encore = self.reverse({"trusted_proxies": ["127.0.0.1"], "deny_clients": ["192.0.2.2"]})
        def asked(said, source=None):
            return status(encore.port, "/", source=source, fields=f"X-Forwarded-For: {said}\r\n")
        self.assertEqual([200, 403, 403, 200],
                         [asked("192.0.2.1"), asked("192.0.2.2"), asked("192.0.2.1, 192.0.2.2"),
                          asked("192.0.2.2, 192.0.2.1")])
        # An unknown client is not an admitted one; and no client vouches for itself.
        self.assertEqual([403, 403], [asked("unknown"), asked("127.0.0.1, x")])
        self.assertEqual(200, asked("192.0.2.2", source="127.0.0.7"))

    def test_hosts(self):
        encore = self.reverse({"allow_hosts": ["*.example.com", "b"],
                               "deny_hosts": ["secret.example.com"]})
        table = {"www.example.com": 200, "WWW.EXAMPLE.COM": 200, "b": 200, "b:81": 200,
                 "example.com": 403, "c": 403, "secret.example.com": 403,
                 "Secret.Example.com": 403, "secret.example.com.": 403, "secret.example.com:80": 403}
        self.assertEqual(table, {host: status(encore.port, "/", host=host) for host in table})

    def test_paths_as_the_origin_sees_them(self):
        encore = self.reverse({"allow_paths": ["/public/*", "*.css"], "deny_paths": ["/public/no*"]})
        table = {"/public/a": 200, "/public/a?x=/y": 200, "/x.css": 200, "/public": 403, "/x": 403,
                 "/public/no": 403, "/public/%6eo": 403, "/public/./no": 403,
                 "/x/../public/no/x": 403, "/public/../x": 403, "/x?.css": 403,
                 "/public%2Fno": 403, "//public/no": 403, "/public/a%2Fb": 200, "/public//a": 200,
                 "/public/a;v=1": 200, "/public;a/no": 403, "/public/g++%3A1": 200,
                 "/public/caf%c3%a9": 200}
        # By one reading it may be asked for, and by another not.
        table |= {path: 400 for path in (
            "/public/%2e%2e/x", "/public//no", "/public/a%2F..%2Fno", "/public/..%2Fx",
            "/public/a/..%5Cno", "/public/..;/admin", "/public/..;a=b/admin", "//public/a",
            "/public\\a", "/public/a\\..\\..\\x", "/public/%252e%252e/admin",
            "/public/..%c0%afadmin", "/public/%c0%ae%c0%ae/admin", "/public/..%00/x",
            "/public/..%u002fadmin", "/x%00.css", "/x;.css", "/x%3f.css")}
        self.assertEqual(table, {path: status(encore.port, path) for path in table})
        forward = self.forward({"allow_paths": ["/a*"]},
                               forward={"connect_ports": [self.origin.port]})
        self.assertEqual(200, get(forward.port, self.origin.url("/a")).status)
        self.assertEqual(403, get(forward.port, self.origin.url("/b")).status)
        self.assertEqual(403, status(forward.port, self.origin.authority, "CONNECT"))

    def test_methods(self):
        encore = self.reverse({"allow_methods": ["GET", "HEAD"]})
        table = {"GET": 200, "HEAD": 200, "POST": 403, "get": 403, "OPTIONS": 403, "PURGE": 403}
        self.assertEqual(table, {method: status(encore.port, "/", method) for method in table})

    def test_ports(self):
        other = Origin(self, default=response(b"other"))
        encore = self.forward(
            {"allow_ports": [str(self.origin.port)]},
            forward={"connect_ports": [self.origin.port, other.port]})
        self.assertEqual([200, 403], [get(encore.port, o.url("/")).status
                                      for o in (self.origin, other)])
        self.assertEqual([200, 403], [status(encore.port, o.authority, "CONNECT")
                                      for o in (self.origin, other)])

    def test_a_pipeline_goes_on_behind_what_is_refused(self):
        encore = self.reverse({"deny_paths": ["/no"]})
        paths = ("/a", "/a", "/no", "/a", "/no", "/no", "/b", "/no", "/no", "/no", "/no", "/a")
        with Client(encore.port) as client:
            client.send("".join(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n" for path in paths))
            answers = [client.read_response() for _ in paths[:-1]]
            self.assertEqual([403 if path == "/no" else 200 for path in paths[:-1]],
                             [answer.status for answer in answers])
            # The fourth in a row is the last.
            self.assertEqual(["close"], [field(answer, "Connection") for answer in answers
                                         if field(answer, "Connection")])
            self.assertEqual("close", field(answers[-1], "Connection"))
            self.assertTrue(client.at_end())

    def test_the_connection_ends_with_a_refusal_that_something_may_stand_behind(self):
        listen = {"deny_paths": ["/no", "/pub/*"], "deny_clients": ["127.0.0.2"]}
        encore = self.reverse(listen)
        smuggled = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
        length = f"Content-Length: {len(smuggled)}\r\n"
        chunked = "Transfer-Encoding: chunked\r\n"
        table = [("GET", "", "1.1", True), ("HEAD", "", "1.1", True), ("POST", "", "1.1", True),
                 ("POST", "Content-Length: 0\r\n", "1.1", True), ("POST", length, "1.1", False),
                 ("POST", chunked, "1.1", False), ("GET", length, "1.1", False),
                 ("POST", "Expect: 100-continue\r\n" + length, "1.1", False),
                 ("GET", "Connection: close\r\n", "1.1", False), ("GET", "", "1.0", False),
                 ("GET", "Connection: keep-alive\r\n", "1.0", True),
                 ("GET", "Connection: Upgrade\r\nUpgrade: websocket\r\n", "1.1", False)]
        for method, fields, version, stays in table:
            with Client(encore.port) as client:
                client.send(f"{method} /no HTTP/{version}\r\nHost: a\r\n{fields}\r\n" + smuggled)
                answer = client.read_response(method)
                self.assertEqual(403, answer.status)
                said = {True: "keep-alive" if version == "1.0" else None, False: "close"}[stays]
                self.assertEqual(said, field(answer, "Connection"), (method, fields, version))
                if stays:
                    self.assertEqual(200, client.read_response().status)
                else:
                    self.assertTrue(client.at_end(), (method, fields, version))
        with Client(encore.port, source="127.0.0.2") as client:
            client.send(smuggled * 2)
            self.assertEqual("close", field(client.read_response(), "Connection"))
            self.assertTrue(client.at_end())
        forward = self.forward({"deny_hosts": ["127.0.0.1"]}, forward={"connect_ports": [443]})
        with Client(forward.port) as client:
            # Bytes after it were meant for the tunnel's other end.
            client.send("CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: a\r\n\r\n" + smuggled)
            self.assertEqual(403, client.read_response("CONNECT").status)
            self.assertTrue(client.at_end())

    def test_who_is_over_a_limit_keeps_his_connection_for_a_while(self):
        encore = self.reverse({}, limit=[{"rate": 0.01, "burst": 1}])
        with Client(encore.port) as client:
            client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n" * 8)
            answers = [client.read_response() for _ in range(5)]
            self.assertEqual([200] + [429] * 4, [answer.status for answer in answers])
            self.assertEqual([None] * 4 + ["close"],
                             [field(answer, "Connection") for answer in answers])
            self.assertTrue(client.at_end())

    def test_a_reload_applies_to_connections_that_are_there(self):
        encore = self.reverse({})
        with Client(encore.port) as client:
            client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(200, client.read_response().status)
            encore.sections["listen"][0]["deny_paths"] = ["/a"]
            encore.write_config()
            encore.signal(1)
            eventually(lambda: encore.stats()["reloads"] == 1, "it is reloaded")
            client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(403, client.read_response().status)


class SafePorts(Access):
    def test_what_is_not_safe_is_not_asked(self):
        ranges = f"{self.origin.port}-{self.origin.port}"
        other = Origin(self, default=response(b"other"))
        encore = self.forward({}, forward={"safe_ports": ["80", ranges]})
        self.assertEqual([200, 403], [get(encore.port, o.url("/")).status
                                      for o in (self.origin, other)])
        self.assertEqual(0, other.connections)

    def test_mail_and_shells_are_not_by_default(self):
        curl = need_program("curl")
        encore = self.forward({})
        for port in (22, 23, 25, 53, 110, 139, 445, 465, 587, 873, 993):
            answer = self.run_client([curl, "-sS", "-o", "/dev/null", "-w", "%{http_code}",
                                      "-x", encore.url, f"http://127.0.0.1:{port}/"])
            self.assertEqual(b"403", answer.stdout, port)
        for port in (80, 81, 443, 888, 8080):
            answer = self.run_client([curl, "-sS", "-o", "/dev/null", "-w", "%{http_code}",
                                      "-x", encore.url, f"http://127.0.0.1:{port}/"])
            self.assertNotEqual(b"403", answer.stdout, port)


class Rates(Access):
    def test_a_client_has_its_burst_and_then_waits(self):
        encore = self.reverse({}, limit=[{"rate": 0.01, "burst": 3}])
        ask = "GET /a HTTP/1.1\r\nHost: a\r\n\r\n"
        with Client(encore.port) as client:
            client.send(ask * 4)  # a miss, hits, and one too many
            answers = [client.read_response() for _ in range(4)]
        self.assertEqual([200, 200, 200, 429], [answer.status for answer in answers])
        wait = int(dict(answers[3].fields)["retry-after"])
        self.assertTrue(90 <= wait <= 100, wait)
        self.assertEqual(200, status(encore.port, "/a", source="127.0.0.2"))
        self.assertEqual(429, status(encore.port, "/b"))
        self.assertEqual(2, encore.metrics()["encore_rate_limited_total"])

    def test_by_field_and_for_some_paths(self):
        encore = self.reverse({}, limit=[
            {"rate": 0.01, "burst": 1, "field": "X-Api-Key", "paths": ["/api/*"]}])
        def asked(path, key=None):
            return status(encore.port, path, fields=f"X-Api-Key: {key}\r\n" if key else "")
        self.assertEqual([200, 429, 200, 200, 200, 200],
                         [asked("/api/a", "k"), asked("/api/b", "k"), asked("/api/b", "other"),
                          asked("/b", "k"), asked("/api/a"), asked("/api/a")])

    def test_a_second_line_of_the_field_makes_nobody_another_client(self):
        encore = self.reverse({}, limit=[{"rate": 0.01, "burst": 2, "field": "X-Api-Key"}])

        def asked(*keys):
            return status(encore.port, "/a", fields="".join(f"X-Api-Key: {key}\r\n"
                                                            for key in keys))
        self.assertEqual([200, 200, 429, 429, 429],
                         [asked("k", "junk1"), asked("junk2", "k"), asked("k", "junk3"),
                          asked("junk4", "k"), asked("k")])
        # The refused request took nothing of the other values.
        self.assertEqual([200, 200, 429], [asked("junk3", "junk4"), asked("junk3", "junk3"),
                                           asked("junk3")])

    def test_a_limit_of_one_listener_is_none_of_another(self):
        first, second = (f"127.0.0.1:{free_port()}" for _ in range(2))
        encore = self.encore(
            listen=[{"address": address, "mode": "reverse"} for address in (first, second)],
            origin=[{"servers": [self.origin.url("")]}],
            limit=[{"rate": 0.01, "burst": 2, "listener": first}])
        ports = [int(address.rpartition(":")[2]) for address in (first, second)]
        self.assertEqual([200, 200, 429, 429], [status(ports[0], "/") for _ in range(4)])
        self.assertEqual([200] * 4, [status(ports[1], "/") for _ in range(4)])
        # A reload has it count for the other one.
        encore.sections["limit"][0]["listener"] = [second]
        encore.write_config()
        encore.signal(1)
        eventually(lambda: encore.stats()["reloads"] == 1, "it is reloaded")
        self.assertEqual([200] * 4, [status(ports[0], "/") for _ in range(4)])
        self.assertEqual([200, 200, 429], [status(ports[1], "/") for _ in range(3)])
        encore.sections["limit"][0]["listener"] = "127.0.0.1:1"
        encore.write_config()
        encore.signal(1)
        eventually(lambda: encore.stats()["reload_failures"] == 1, "it is refused")
        self.assertIn('limit.0.listener: "127.0.0.1:1" is not the address of a [[listen]]',
                      encore.output())

    def test_what_a_later_limit_refuses_drains_no_earlier_one(self):
        encore = self.reverse({}, limit=[{"rate": 0.01, "burst": 4},
                                         {"rate": 0.01, "burst": 1, "paths": ["/login"]}])
        self.assertEqual([200] + [429] * 8, [status(encore.port, "/login") for _ in range(9)])
        self.assertEqual([200, 200, 200, 429], [status(encore.port, "/") for _ in range(4)])

    def test_tunnels_count(self):
        encore = self.forward({}, limit=[{"rate": 0.01, "burst": 1}],
                              forward={"connect_ports": [self.origin.port]})
        self.assertEqual([200, 429], [status(encore.port, self.origin.authority, "CONNECT")
                                      for _ in range(2)])


class Transfers(Access):
    def test_one_client_has_no_more_requests_under_way_than_its_limit(self):
        self.origin = Origin(self, {"/slow": lambda exchange: exchange.wait_until_closed()},
                             default=fresh(b"ok"))
        encore = self.reverse({}, limits={"transfers_per_client": 2})
        self.assertEqual(200, status(encore.port, "/hit", source="127.0.0.3"))
        slow = []
        for _ in range(2):
            client = Client(encore.port)
            self.addCleanup(client.close)
            client.send("POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n")
            slow.append(client)
        eventually(lambda: self.origin.count("/slow") == 2, "both are under way")
        with Client(encore.port) as client:
            client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
            answer = client.read_response()
            self.assertEqual((429, "1"), (answer.status, dict(answer.fields)["retry-after"]))
            client.send("GET /hit HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(200, client.read_response().status)
            # They end the connection as other refusals do.
            client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n" * 5)
            self.assertEqual([429] * 4, [client.read_response().status for _ in range(4)])
            self.assertTrue(client.at_end())
        self.assertEqual(200, status(encore.port, "/hit"))
        self.assertEqual(200, status(encore.port, "/a", source="127.0.0.2"))
        self.assertEqual(5, encore.metrics()["encore_transfers_refused_total"])
        slow[0].close()
        eventually(lambda: status(encore.port, "/b") == 200, "there is room again")

    def test_tunnels_count_for_as_long_as_they_are_open(self):
        encore = self.forward({}, limits={"transfers_per_client": 1},
                              forward={"connect_ports": [self.origin.port]})
        with Client(encore.port) as tunnel:
            tunnel.send(f"CONNECT {self.origin.authority} HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(200, tunnel.read_response("CONNECT").status)
            self.assertEqual(429, get(encore.port, self.origin.url("/")).status)
        eventually(lambda: get(encore.port, self.origin.url("/")).status == 200, "it is closed")

    def test_trusted_proxies_are_not_counted_and_their_clients_are(self):
        self.origin = Origin(self, {"/slow": lambda exchange: exchange.wait_until_closed()},
                             default=fresh(b"ok"))
        encore = self.reverse({"trusted_proxies": ["127.0.0.1"]},
                              limits={"transfers_per_client": 1, "connections_per_client": 1})
        def ask(said=""):
            client = Client(encore.port)
            self.addCleanup(client.close)
            client.send(f"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n{said}\r\n")
            return client
        for n in range(3):
            ask()
            ask(f"X-Forwarded-For: 192.0.2.{n}\r\n")
        eventually(lambda: self.origin.count("/slow") == 6, "all are under way")
        self.assertEqual(429, ask("X-Forwarded-For: 192.0.2.1\r\n").read_response().status)

    def test_a_proxys_connection_counts_for_whom_it_sends_just_then(self):
        self.origin = Origin(self, {"/slow": lambda exchange: exchange.wait_until_closed()},
                             default=response(b"ok"))
        encore = self.reverse({"trusted_proxies": ["127.0.0.1"]}, limits={"transfers_per_client": 1})
        def send(client, said, path="/"):
            client.send(f"POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n"
                        f"X-Forwarded-For: {said}\r\n\r\n")
        with Client(encore.port) as first, Client(encore.port) as second:
            for said in ("192.0.2.1", "192.0.2.2", "192.0.2.1", "2001:db8::1", "192.0.2.1"):
                send(first, said)
                self.assertEqual(200, first.read_response().status)
            send(first, "192.0.2.2", "/slow")
            eventually(lambda: self.origin.count("/slow") == 1, "it is under way")
            for said, status_ in (("192.0.2.1", 200), ("192.0.2.2", 429), ("2001:db8::2", 200)):
                send(second, said)
                self.assertEqual(status_, second.read_response().status, said)
        eventually(lambda: status(encore.port, "/", "POST", fields="Content-Length: 0\r\n"
                                  "X-Forwarded-For: 192.0.2.2\r\n") == 200, "it has ended")


if __name__ == "__main__":
    unittest.main()
