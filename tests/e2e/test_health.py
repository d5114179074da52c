"""Health checks of origin servers: who makes them, what they find, and what follows for requests."""

import signal

from client import field
from harness import eventually
from origin import Origin, response
from servers import Clients, ServersCase
from test_connections import ConnectionCase, ask

CHECKS = {"health_path": "/health", "health_interval": "100ms", "health_timeout": "500ms"}


def up(encore, server, value):
    """Whether the metrics say so of this server."""
    metrics = encore.metrics()
    return [v for k, v in metrics.items()
            if k.startswith("encore_origin_server_up") and server in k] == [value]


class Health(ConnectionCase):
    def server(self):
        """An origin that is well as long as its `status` says so."""
        def answer(exchange):
            if exchange.request.target == "/health":
                return response(b"", status=origin.status, **{"Cache_Control": "no-store"})
            return response(b"good", Cache_Control="no-store")
        origin = Origin(self, default=answer)
        origin.status = "200 OK"
        return origin

    def checked(self, servers, origin=None, **sections):
        encore = self.reverse([s.url("") for s in servers], **sections)
        encore.sections["origin"][0].update({**CHECKS, **(origin or {})})
        encore.write_config()
        encore.signal(signal.SIGHUP)
        eventually(lambda: encore.metrics()["encore_reloads_total"] == 1, "it is taken over")
        return encore

    def asked(self, server):
        return sum(1 for r in server.requests if r.target != "/health")

    def test_a_server_that_is_not_well_gets_no_requests_until_it_is(self):
        one, two = self.server(), self.server()
        encore = self.checked([one, two])
        eventually(lambda: one.count("/health") > 2 and two.count("/health") > 2, "both are asked")
        one.status = "503 Service Unavailable"
        eventually(lambda: up(encore, one.authority, 0), "it is found down")
        before = self.asked(one)
        for number in range(10):
            self.assertEqual(200, ask(encore.port, f"/{number}").status)
        self.assertEqual(before, self.asked(one))
        one.status = "204 No Content"
        eventually(lambda: up(encore, one.authority, 1), "it is found up")
        for number in range(10):
            self.assertEqual(200, ask(encore.port, f"/then/{number}").status)
        self.assertEqual(before + 5, self.asked(one))
        said = encore.output()
        self.assertEqual(1, said.count(f"{one.authority}: down"), said)
        self.assertEqual(1, said.count(f"{one.authority}: up again"), said)
        self.assertEqual(0, said.count(two.authority), said)

    def test_one_worker_asks_for_all(self):
        one = self.server()
        encore = self.checked([one], workers={"count": 4})
        eventually(lambda: one.count("/health") >= 10, "it is asked")
        checks = encore.metrics()["encore_health_checks_total"]
        self.assertLessEqual(abs(checks - one.count("/health")), 1)

    def test_when_none_is_well_they_are_asked_all_the_same(self):
        one, two = self.server(), self.server()
        encore = self.checked([one, two])
        one.status = two.status = "500 Internal Server Error"
        eventually(lambda: up(encore, one.authority, 0) and up(encore, two.authority, 0),
                   "both are found down")
        self.assertEqual(200, ask(encore.port).status)

    def test_other_statuses_may_be_those_of_a_server_that_is_well(self):
        one, two = self.server(), self.server()
        one.status = "404 Not Found"
        encore = self.checked([one, two], {"health_status": [404]})
        eventually(lambda: up(encore, two.authority, 0), "what is not named is not well")
        self.assertTrue(up(encore, one.authority, 1))

    def test_what_is_down_stays_so_over_a_reload_and_not_without_checks(self):
        one, two = self.server(), self.server()
        encore = self.checked([one, two], {"health_up": 1000})
        one.status = "503 Service Unavailable"
        eventually(lambda: up(encore, one.authority, 0), "it is found down")
        one.status = "200 OK"
        encore.sections["http"] = {"via": "other"}
        encore.write_config()
        encore.signal(signal.SIGHUP)
        eventually(lambda: encore.metrics()["encore_reloads_total"] == 2, "it is taken over")
        self.assertTrue(up(encore, one.authority, 0))
        encore.sections["origin"][0]["health_path"] = ""
        encore.write_config()
        encore.signal(signal.SIGHUP)
        eventually(lambda: up(encore, one.authority, 1), "nobody says any more that it is down")
        asked = one.count("/health")
        for number in range(10):
            self.assertEqual(200, ask(encore.port, f"/{number}").status)
        self.assertEqual(5, self.asked(one))
        self.assertLessEqual(one.count("/health"), asked + 1)


class Hung(ServersCase):
    def test_a_server_that_hangs_is_found_down_and_comes_back(self):
        # Nobody but the checks finds out: what hangs for others is given an hour.
        encore = self.reverse({**CHECKS, "slow_start": "500ms"},
                              upstream={"first_byte": "2s", "set_aside": "1h",
                                        "set_aside_max": "1h"})
        clients = Clients(self, encore.port)
        one, two = self.servers
        for server, other in ((one, two), (two, one)):
            clients.wait_for_server(server, 20)
            server.hang()
            eventually(lambda: up(encore, f":{server.port}", 0), "it is found down")
            clients.wait_for_server(other, 50)
            server.go_on()
            eventually(lambda: up(encore, f":{server.port}", 1), "it is found up")
            clients.wait_for_server(server, 20)
        clients.stop()
        self.assertEqual([], clients.failed[:5])
        self.assertIsNotNone(field(ask(encore.port, "/"), "x-server"))
