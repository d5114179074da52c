"""Several servers of one origin, real ones: who is asked, and what it costs when one of them is killed,
hangs or comes back."""

import itertools
import signal
import threading

from client import Client, NoResponse, field
from harness import eventually
from origin import Origin, response
from servers import Clients, ServersCase
from test_connections import ConnectionCase, ask


class Failing(ServersCase):
    def set_aside(self, encore):
        return encore.metrics()["encore_origins_set_aside_total"]

    def test_no_request_fails_while_one_of_two_is_killed_hung_and_restarted(self):
        for balance in ("round-robin", "least-requests", "hash"):
            with self.subTest(balance):
                encore = self.reverse({"balance": balance})
                clients = Clients(self, encore.port)
                one, two = self.servers
                for server, other in ((one, two), (two, one)):
                    for trouble, cure in ((server.kill, server.start), (server.hang, server.go_on)):
                        clients.wait_for_server(server, 20)
                        before = self.set_aside(encore)
                        trouble()
                        eventually(lambda: self.set_aside(encore) > before, "it is set aside")
                        clients.wait_for_server(other, 50)
                        cure()
                    clients.wait_for_server(server, 20)
                clients.stop()
                self.assertEqual([], clients.failed[:5])
                encore.stop()

    def test_a_restart_of_each_in_turn_is_not_seen(self):
        encore = self.reverse()
        clients = Clients(self, encore.port)
        for server in self.servers * 2:
            clients.wait_for_server(server, 20)
            server.stop()
            server.start()
        clients.wait_for(100)
        clients.stop()
        self.assertEqual([], clients.failed[:5])

    def test_what_is_sent_and_may_not_be_repeated_goes_where_nothing_was_sent(self):
        one, two = self.servers
        encore = self.reverse()
        one.kill()
        for number in range(20):
            answer = ask(encore.port, f"/{number}", "POST", body=b"once")
            self.assertEqual(200, answer.status)


class Balanced(ServersCase):
    def served(self, encore, paths):
        return [field(ask(encore.port, path), "x-server") for path in paths]

    def many(self, count=40):
        return [f"/{number}" for number in range(count)]

    def test_turns_go_by_weight(self):
        one, two = self.servers
        encore = self.reverse({"servers": [one.url("") + " weight=3", two.url("")]},
                              workers={"count": 1})
        served = self.served(encore, self.many())
        self.assertEqual([30, 10], [served.count("one"), served.count("two")])

    def test_a_backup_is_asked_only_when_the_others_are_gone(self):
        one, two = self.servers
        encore = self.reverse({"servers": [one.url(""), two.url("") + " backup"]})
        self.assertEqual({"one"}, set(self.served(encore, self.many(10))))
        one.kill()
        self.assertEqual({"two"}, set(self.served(encore, [f"/then/{n}" for n in range(10)])))
        one.start()
        fresh = itertools.count()
        eventually(lambda: self.served(encore, [f"/{next(fresh)}"]) == ["one"],
                   "the first is asked again")

    def test_a_url_keeps_to_its_server_over_restarts_of_the_proxy(self):
        # Every request for a response that is not stored goes to the server.
        before = None
        for _ in range(2):
            encore = self.reverse({"balance": "hash"}, admission={"policy": "never"})
            first = self.served(encore, self.many())
            self.assertEqual(first, self.served(encore, self.many()))
            self.assertEqual({"one", "two"}, set(first))
            self.assertEqual(before or first, first)
            before = first

    def test_a_client_keeps_to_its_server(self):
        encore = self.reverse({"balance": "client"}, admission={"policy": "never"}, start=False)
        encore.sections["listen"][0]["trusted_proxies"] = ["127.0.0.1"]
        encore.start()
        numbers = itertools.count()

        def served(client):
            return field(ask(encore.port, f"/{next(numbers)}",
                             fields=[("X-Forwarded-For", client)]), "x-server")
        clients = [f"192.0.2.{last}" for last in range(40)]
        own = {client: served(client) for client in clients}
        self.assertEqual({"one", "two"}, set(own.values()))
        for _ in range(3):
            self.assertEqual(own, {client: served(client) for client in clients})
        # A network is one client.
        self.assertEqual(1, len({served(f"2001:db8::{last}") for last in range(1, 20)}))
        one, _two = self.servers
        one.kill()
        self.assertEqual({"two"}, {served(client) for client in clients})
        one.start()
        eventually(lambda: own == {client: served(client) for client in clients},
                   "its clients return")

    def test_what_is_known_of_servers_outlives_a_reload(self):
        one, _ = self.servers
        encore = self.reverse(upstream={"set_aside": "1h", "set_aside_max": "1h"})
        one.kill()
        self.assertEqual({"two"}, set(self.served(encore, self.many(4))))
        failovers = encore.metrics()["encore_origin_failovers_total"]
        encore.sections["http"] = {"via": "other"}
        encore.write_config()
        encore.signal(signal.SIGHUP)
        eventually(lambda: "reload" in encore.output(), "the reload is told")
        self.assertEqual({"two"}, set(self.served(encore, [f"/then/{n}" for n in range(10)])))
        self.assertEqual(failovers, encore.metrics()["encore_origin_failovers_total"])


class Limits(ConnectionCase):
    def test_what_does_not_begin_to_answer_goes_to_the_next_server(self):
        hung = Origin(self, default=lambda x: x.wait_until_closed())
        good = Origin(self, default=response(b"good", Cache_Control="no-store"))
        encore = self.reverse([hung.url(""), good.url("")],
                              upstream={"first_byte": "300ms"})
        for _ in range(6):
            answer = ask(encore.port)
            self.assertEqual((200, b"good"), (answer.status, answer.body))
        self.assertEqual(1, hung.count())

    def test_a_server_is_set_aside_after_as_many_failures_as_is_said(self):
        bad = Origin(self, default=lambda x: x.reset())
        good = Origin(self, default=response(b"good", Cache_Control="no-store"))
        encore = self.reverse([bad.url(""), good.url("")], upstream={"eject_after": 3})
        for _ in range(20):
            self.assertEqual(200, ask(encore.port).status)
        self.assertEqual(3, bad.count())

    def test_all_of_a_response_has_its_time(self):
        pause = threading.Event()

        def trickle(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
            while True:
                exchange.send(b"x")
                pause.wait(0.05)
        origin = Origin(self, default=trickle)
        encore = self.reverse([origin.url("")], upstream={"total": "500ms"})
        with self.assertRaises(NoResponse):
            ask(encore.port)
        silent = Origin(self, default=lambda x: x.wait_until_closed())
        encore = self.reverse([silent.url(""), silent.url("")], upstream={"total": "500ms"})
        answer = ask(encore.port)
        self.assertEqual(504, answer.status)
        self.assertIn("total-timeout", field(answer, "cache-status"))
        self.assertEqual(1, silent.count())

    def test_each_server_has_its_room_and_its_line(self):
        go = threading.Event()

        def held(exchange):
            exchange.wait(go)
            return response(b"held", Cache_Control="no-store")
        servers = [Origin(self, default=held) for _ in range(2)]
        encore = self.reverse([server.url("") for server in servers],
                              upstream={"connections_per_server": 1, "waiting_per_server": 1})
        clients = [Client(encore.port) for _ in range(5)]
        for number, client in enumerate(clients):
            self.addCleanup(client.close)
            client.send(f"GET /{number} HTTP/1.1\r\nHost: h\r\n\r\n")
            if number < 2:
                eventually(lambda: sum(s.count() for s in servers) == number + 1, "it is asked")
            elif number < 4:
                eventually(lambda: encore.metrics()["encore_origin_waits_total"] == number - 1,
                           "it waits")
        # One at each server, one in each line, and no place for the fifth.
        self.assertEqual([1, 1], [server.count() for server in servers])
        answer = clients[4].read_response()
        self.assertEqual(503, answer.status)
        self.assertIn("origin-share", field(answer, "cache-status"))
        go.set()
        for client in clients[:4]:
            self.assertEqual((200, b"held"), client.read_response()[0:4:3])
        self.assertEqual([2, 2], [server.count() for server in servers])
        metrics = encore.metrics()
        self.assertEqual(2, metrics["encore_origin_connects_total"])
        self.assertEqual(0, metrics["encore_origins_set_aside_total"])
