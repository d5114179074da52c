"""One client's share of a server's connections, and the order of the waiting clients."""

import unittest

import websocket
from client import Client, get
from harness import eventually, free_port
from origin import Origin, response
from slow_origin import SlowOrigin, SlowOriginCase


class Shares(SlowOriginCase):
    """One client uses a part of a server's connections, and what waits takes turns by client."""

    def refused(self, answer, detail="origin-share"):
        super().refused(answer, detail)

    def ask(self, encore, origin, path, source, method="GET", fields=()):
        client = Client(encore.port, source=source)
        self.addCleanup(client.close)
        client.request(origin.url(path), method, fields=fields)
        return client

    def fill(self, encore, origin, count, source="127.0.0.1", method="GET"):
        return [self.ask(encore, origin, f"/slow{n}", source, method) for n in range(count)]

    def test_one_client_leaves_half_of_a_server_to_others(self):
        for method in ("GET", "POST"):
            for encore, origin in self.proxies(connections_per_server=8):
                slow = self.fill(encore, origin, 9, method=method)
                self.waits(encore, 5)
                eventually(lambda: origin.count() == 4, "its half has come")
                others = [self.ask(encore, origin, f"/other{n}", f"127.0.0.{2 + n // 2}", method)
                          for n in range(4)]
                # Nothing of the first client has ended, and nobody of the others waits.
                eventually(lambda: origin.count() == 8, "the others have come")
                self.assertEqual(5, encore.metrics()["encore_origin_waits_total"])
                origin.go.set()
                for client in slow + others:
                    self.assertEqual(b"slow", client.read_response(method).body)
                self.assertEqual(0, encore.metrics()["encore_origin_busy_total"])

    def test_the_share_is_a_number_where_it_is_said(self):
        for encore, origin in self.proxies(connections_per_server=8, connections_per_client=2,
                                           waiting_per_server=0):
            slow = self.fill(encore, origin, 2)
            eventually(lambda: origin.count() == 2, "its share has come")
            self.refused(get(encore.port, origin.url("/beyond")))
            other = self.ask(encore, origin, "/other", "127.0.0.2")
            eventually(lambda: origin.count("/other") == 1, "the other has come")
            origin.go.set()
            for client in [*slow, other]:
                self.assertEqual(b"slow", client.read_response().body)
            metrics = encore.metrics()
            # It is the client's doing, and nothing is held against the server.
            self.assertEqual(1, metrics["encore_origin_share_refusals_total"])
            self.assertEqual(0, metrics["encore_origin_busy_total"])
            self.assertEqual(0, sum(value for name, value in metrics.items()
                                    if name.startswith("encore_origin_server_failures_total")))
            refused = [r for r in encore.access_records(4) if r["status"] == 503]
            self.assertEqual([("denied", "origin-share")],
                             [(r["outcome"], r["detail"]) for r in refused])

    def test_those_in_line_take_turns_by_client(self):
        for encore, origin in self.proxies(connections_per_server=1):
            clients = self.fill(encore, origin, 5)
            self.waits(encore, 4)
            for number, source in enumerate(("127.0.0.2", "127.0.0.2", "127.0.0.3")):
                clients.append(self.ask(encore, origin, f"/other{number}", source))
                self.waits(encore, 5 + number)
            origin.go.set()
            for client in clients:
                self.assertEqual(b"slow", client.read_response().body)
            # On one connection, so that they came in this order.
            self.assertEqual(1, origin.connections)
            paths = [request.target.rpartition("/")[2] for request in origin.requests]
            self.assertEqual(8, len(paths))
            # The first client has just had the connection: the others come before its next.
            self.assertEqual(["other0", "other2"], paths[1:3])
            self.assertEqual("other1", paths[4])

    def test_who_wants_what_a_client_in_line_wants_does_not_wait_with_it(self):
        for encore, origin in self.proxies(timeouts={"collapse": "10m"}, connections_per_server=4):
            self.fill(encore, origin, 2)
            self.ask(encore, origin, "/page", "127.0.0.1")
            self.waits(encore, 1)
            self.ask(encore, origin, "/page", "127.0.0.2")
            eventually(lambda: origin.count("/page") == 1, "the other one's request is sent")
            origin.go.set()

    def test_a_refresh_that_is_refused_for_its_client_holds_back_no_other(self):
        origin = SlowOrigin(self)
        origin.routes["/page"] = response(b"page", ETag='"1"', Cache_Control="max-age=0, "
                                          "stale-while-revalidate=600")
        encore = self.encore(workers={"count": 1}, admission={"policy": "always"},
                             upstream={"connections_per_server": 4, "waiting_per_server": 0})
        get(encore.port, origin.url("/page"))
        slow = self.fill(encore, origin, 2)
        eventually(lambda: origin.count() == 3, "its share has come")
        self.assertEqual(b"page", get(encore.port, origin.url("/page")).body)
        eventually(lambda: encore.metrics()["encore_origin_share_refusals_total"] == 1,
                   "the refresh is refused")
        with Client(encore.port, source="127.0.0.2") as other:
            self.assertEqual(b"page", other.ask(origin.url("/page")).body)
        eventually(lambda: origin.count("/page") == 2, "the other's refresh is sent")
        origin.go.set()
        for client in slow:
            self.assertEqual(b"slow", client.read_response().body)

    def test_a_line_that_one_client_fills_has_a_place_for_another(self):
        for encore, origin in self.proxies(connections_per_server=1, waiting_per_server=4):
            first = self.fill(encore, origin, 1)
            eventually(lambda: origin.count() == 1, "the first has come")
            for number in range(4):
                first.append(self.ask(encore, origin, f"/line{number}", "127.0.0.1"))
                self.waits(encore, 1 + number)
            other = self.ask(encore, origin, "/other", "127.0.0.2")
            # The place of the latest of them.
            self.refused(first.pop().read_response())
            self.refused(get(encore.port, origin.url("/beyond")))
            origin.go.set()
            for client in [*first, other]:
                self.assertEqual(b"slow", client.read_response().body)

    def test_every_worker_keeps_a_part_free(self):
        origin = SlowOrigin(self)
        encore = self.encore(workers={"count": 2}, upstream={"connections_per_server": 8})
        slow = self.fill(encore, origin, 30)
        # Each worker has four, and one client two of them, wherever its connections go.
        self.waits(encore, 26)
        eventually(lambda: origin.count() == 4, "the others are sent")
        others = [self.ask(encore, origin, f"/other{n}", f"127.0.0.{2 + n}") for n in range(2)]
        eventually(lambda: origin.count() == 6, "the others have come")
        origin.go.set()
        for client in slow + others:
            self.assertEqual(b"slow", client.read_response().body)

    def test_a_client_is_whom_a_trusted_proxy_names(self):
        origin = SlowOrigin(self)
        encore = self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse",
                     "trusted_proxies": ["127.0.0.1"]}],
            origin=[{"servers": [origin.url("")]}], workers={"count": 1},
            upstream={"connections_per_server": 4, "waiting_per_server": 0})
        clients = []
        for number, name in enumerate(("2001:db8::1", "2001:db8::2", "2001:db8:1::1", "")):
            fields = [("X-Forwarded-For", name)] if name else []
            clients.append(self.ask(encore, origin, f"/{number}", "127.0.0.1", fields=fields))
            eventually(lambda: origin.count() == number + 1, "it has come")
            if number == 1:
                with Client(encore.port) as third:
                    third.request(origin.url("/third"),
                                  fields=[("X-Forwarded-For", "2001:db8::3")])
                    self.refused(third.read_response())
        origin.go.set()
        for client in clients:
            self.assertEqual(b"slow", client.read_response().body)

    def test_connections_of_another_protocol_count_for_their_client(self):
        origin = Origin(self, {"/chat": websocket.echo, "/page": response(b"page")})
        encore = self.encore(workers={"count": 1}, upstream={"connections_per_server": 4,
                                                             "waiting_per_server": 0})
        for _ in range(2):
            chat = self.ask(encore, origin, "/chat", "127.0.0.1",
                            fields=websocket.handshake_fields())
            self.assertEqual(101, chat.read_head().status)
        self.refused(get(encore.port, origin.url("/page")))
        with Client(encore.port, source="127.0.0.2") as other:
            self.assertEqual(b"page", other.ask(origin.url("/page")).body)
        chat.close()
        eventually(lambda: encore.metrics()["encore_upgrades"] == 1, "one has ended")
        self.assertEqual(b"page", get(encore.port, origin.url("/page")).body)


if __name__ == "__main__":
    unittest.main()
