"""The cost limits of connections, descriptors and objects, and the behaviour when they run out."""

import json
import os
import random
import re
import resource
import signal
import socket
import subprocess
import threading
import unittest

from client import Client, NoResponse, field, get
from harness import Case, die_with_parent, eventually, free_port, sanitized
from origin import Origin, fresh, response
from slow_origin import SlowOrigin, SlowOriginCase

MIB = 1 << 20


# All clients of a test have one address.
ANY_CLIENT = {"connections_per_client": 0, "transfers_per_client": 0}


def limited(encore, number):
    """Starts this encore with so many file descriptors at most."""
    encore.write_config()
    program = [encore.program, "--config", encore.config_path]
    with open(encore.output_path, "ab") as output:
        encore.process = subprocess.Popen(
            ["sh", "-c", f"ulimit -n {number}; exec \"$@\"", "sh", *map(str, program)],
            stdin=subprocess.DEVNULL, stdout=output, stderr=output, preexec_fn=die_with_parent)
    encore.case.addCleanup(encore.stop)
    eventually(encore.ready, "encore is ready")
    return encore


class Connections(Case):
    def test_one_client_has_no_more_connections_than_its_limit(self):
        encore = self.encore(limits={"connections_per_client": 5})
        clients = [Client(encore.port) for _ in range(9)]
        eventually(lambda: encore.metrics()["encore_client_connections_refused_total"] == 4,
                   "four are refused")
        with Client(encore.port, source="127.0.0.9") as other:
            other.send("GET / HTTP/1.1\r\n\r\n")
            self.assertEqual(400, other.read_response().status)
        for client in clients:
            client.close()
        eventually(lambda: encore.metrics()["encore_client_connections"] == 0, "all are closed")
        clients = [Client(encore.port) for _ in range(5)]
        for client in clients:
            client.send("GET / HTTP/1.1\r\n\r\n")
            self.assertEqual(400, client.read_response().status)
            client.close()

    def test_nobody_gives_way_to_a_client_that_is_refused(self):
        encore = self.encore(limits={"connections": 8, "connections_per_client": 3})
        others = [Client(encore.port, source=f"127.0.0.{host}") for host in range(2, 7)]
        greedy = [Client(encore.port, source="127.0.0.1") for _ in range(3)]
        for client in others + greedy:
            self.addCleanup(client.close)
        eventually(lambda: encore.metrics()["encore_client_connections"] == 8, "all are there")
        more = [Client(encore.port, source="127.0.0.1") for _ in range(6)]
        for client in more:
            self.addCleanup(client.close)
            self.assertTrue(client.at_end())
        metrics = encore.metrics()
        self.assertEqual(6, metrics["encore_client_connections_refused_total"])
        self.assertEqual(0, metrics["encore_client_connections_given_up_total"])

    def test_one_client_has_a_quarter_of_what_is_really_allowed(self):
        by_limit = self.encore(limits={"connections": 16})
        by_descriptors = limited(self.encore(start=False), 200)
        allowed = int(re.search(r"file descriptors allow (\d+) client",
                                by_descriptors.output())[1])
        for encore, quarter in ((by_limit, 4), (by_descriptors, allowed // 4)):
            self.assertIn(f"allowed, {quarter} of one client", encore.output())
            clients = [Client(encore.port, source="127.0.0.2") for _ in range(quarter)]
            for client in clients:
                self.addCleanup(client.close)
            eventually(lambda encore=encore, quarter=quarter:
                       encore.metrics()["encore_client_connections"] == quarter, "all are there")
            with Client(encore.port, source="127.0.0.2") as refused:
                self.assertTrue(refused.at_end())
            with Client(encore.port, source="127.0.0.3") as other:
                other.send("GET / HTTP/1.1\r\n\r\n")
                self.assertEqual(400, other.read_response().status)
            metrics = encore.metrics()
            self.assertEqual((1, 0), (metrics["encore_client_connections_refused_total"],
                                      metrics["encore_client_connections_given_up_total"]))

    def test_one_client_has_an_eighth_of_what_is_allowed_under_way(self):
        go = threading.Event()

        def held(exchange):
            exchange.wait(go)
            return response(b"held", Cache_Control="no-store")
        origin = Origin(self, default=held)
        encore = self.encore(limits={"connections": 17})
        clients = [Client(encore.port) for _ in range(3)]
        for number, client in enumerate(clients):
            self.addCleanup(client.close)
            client.request(origin.url(f"/{number}"))
            if number < 2:
                eventually(lambda number=number: origin.count() == number + 1, "it is under way")
        self.assertEqual(429, clients[2].read_response().status)
        with Client(encore.port, source="127.0.0.2") as other:
            other.request(origin.url("/other"))
            eventually(lambda: origin.count() == 3, "another's is under way")
            go.set()
            self.assertEqual(b"held", other.read_response().body)

    def test_what_the_operator_names_for_one_client_stays(self):
        encore = self.encore(limits={"connections": 8, "connections_per_client": 6})
        percent = self.encore(limits={"connections": 10, "connections_per_client": "60%"})
        for each in (encore, percent):
            clients = [Client(each.port) for _ in range(6)]
            for client in clients:
                self.addCleanup(client.close)
            eventually(lambda each=each: each.metrics()["encore_client_connections"] == 6,
                       "all are there")
            with Client(each.port) as refused:
                self.assertTrue(refused.at_end())

    def test_few_descriptors_are_a_warning_when_half_of_their_clients_have_come(self):
        encore = limited(self.encore(start=False, limits=ANY_CLIENT), 64)

        def warnings():
            said = json.loads(encore.admin("/api/live")[1])["process"]["warnings"]
            return [text for text in said if "file descriptors allow" in text]
        self.assertIn("file descriptors allow", encore.output())
        self.assertEqual([], warnings())
        self.assertNotIn("descriptors", self.run_client(
            [encore.program, "--config", encore.config_path, "status"]).stdout.decode())
        for _ in range(30):
            client = Client(encore.port)
            self.addCleanup(client.close)
        self.assertEqual(1, len(eventually(warnings, "they have come")))

    def test_without_descriptors_for_more_clients_those_there_are_still_served(self):
        origin = Origin(self, default=response(b"miss"))
        encore = limited(self.encore(start=False, limits=ANY_CLIENT), 64)
        clients = []
        for _ in range(100):
            client = Client(encore.port)
            self.addCleanup(client.close)
            clients.append(client)
        eventually(lambda: encore.metrics()["encore_client_connections_given_up_total"] > 0,
                   "some are given up")
        self.assertIn("file descriptors allow", encore.output())
        served = 0
        for number, client in enumerate(clients):
            try:
                answer = client.ask(origin.url(f"/{number}"))
            except (NoResponse, OSError):
                continue
            self.assertEqual(b"miss", answer.body)
            served += 1
        self.assertGreaterEqual(served, 8)
        for client in clients:
            client.close()
        eventually(lambda: encore.metrics()["encore_client_connections"] == 0, "all are closed")
        self.assertEqual(b"miss", get(encore.port, origin.url("/after")).body)

    def test_at_the_limit_the_longest_idle_gives_way(self):
        origin = Origin(self, default=fresh(b"page"))
        encore = self.encore(limits={"connections": 4, **ANY_CLIENT}, workers={"count": 1})
        clients = []
        for n in range(4):
            clients.append(Client(encore.port))
            self.addCleanup(clients[-1].close)
            self.assertEqual(b"page", clients[-1].ask(origin.url("/")).body)
        clients[0].ask(origin.url("/"))  # now the second has been idle for longest
        self.assertEqual(b"page", get(encore.port, origin.url("/")).body)
        self.assertTrue(clients[1].at_end())
        for n in (0, 2, 3):
            self.assertEqual(b"page", clients[n].ask(origin.url("/")).body)
        metrics = encore.metrics()
        self.assertEqual(1, metrics["encore_client_connections_given_up_total"])
        self.assertEqual(0, metrics["encore_client_connections_refused_total"])

    def test_idle_connections_of_another_worker_give_way_too(self):
        origin = Origin(self, default=fresh(b"page"))
        encore = self.encore(limits={"connections": 3, **ANY_CLIENT}, workers={"count": 4})
        for _ in range(60):
            client = Client(encore.port)
            self.addCleanup(client.close)
            self.assertEqual(b"page", client.ask(origin.url("/")).body)
        metrics = encore.metrics()
        self.assertEqual(0, metrics["encore_client_connections_refused_total"])
        self.assertLessEqual(metrics["encore_client_connections"], 4)

    def test_at_the_limit_with_nothing_idle_new_ones_are_refused(self):
        go = threading.Event()

        def held(exchange):
            exchange.wait(go)
            return response(b"held", Cache_Control="no-store")
        origin = Origin(self, default=held)
        encore = self.encore(limits={"connections": 3, **ANY_CLIENT})
        clients = [Client(encore.port) for _ in range(3)]
        for n, client in enumerate(clients):
            client.request(origin.url(f"/{n}"))
        eventually(lambda: origin.count() == 3, "all are under way")
        with Client(encore.port) as refused:
            self.assertTrue(refused.at_end())
        go.set()
        for client in clients:
            self.assertEqual(b"held", client.read_response().body)
            client.close()
        self.assertEqual(1, encore.metrics()["encore_client_connections_refused_total"])

    def test_heads_that_do_not_end_count_against_a_limit_and_the_oldest_is_refused(self):
        origin = Origin(self, default=fresh(b"page"))
        encore = self.encore(limits={"unfinished_heads": 8, "connections": 100},
                             workers={"count": 1})
        slow = []
        for n in range(20):
            slow.append(Client(encore.port))
            self.addCleanup(slow[-1].close)
            slow[-1].send(f"GET {origin.url('/')} HTTP/1.1\r\n")
            if n >= 8:
                self.assertEqual(408, slow[n - 8].read_response().status)
        for client in slow[-8:]:  # the rest may still come
            client.send(f"Host: {origin.authority}\r\n\r\n")
            self.assertEqual(b"page", client.read_response().body)
            client.send(f"GET {origin.url('/')} HTTP/1.1\r\n")
        self.assertEqual(12, encore.metrics()["encore_client_heads_given_up_total"])

    def test_heads_that_do_not_end_leave_half_of_the_connections_to_others(self):
        origin = Origin(self, default=fresh(b"page"))
        encore = self.encore(limits={"connections": 10, **ANY_CLIENT})
        for _ in range(30):
            client = Client(encore.port)
            self.addCleanup(client.close)
            client.send("GET http://")
            eventually(lambda: encore.metrics()["encore_client_connections"] <= 6, "five are left")
        self.assertEqual(b"page", get(encore.port, origin.url("/")).body)

    def test_heads_that_do_not_end_count_against_a_limit_of_memory(self):
        encore = self.encore(limits={"unfinished_head_bytes": "1MiB"})
        clients = []
        for _ in range(40):
            clients.append(Client(encore.port))
            self.addCleanup(clients[-1].close)
            clients[-1].send("GET http://site.example/ HTTP/1.1\r\nX: " + "x" * 60_000)
        eventually(lambda: encore.metrics()["encore_client_heads_given_up_total"] >= 22,
                   "some are given up")
        self.assertEqual(408, clients[0].read_response().status)

    def test_idle_connections_to_many_origins_give_way_to_new_ones(self):
        origins = [Origin(self, default=response(b"one of many")) for _ in range(80)]
        encore = limited(self.encore(start=False, limits=ANY_CLIENT), 64)
        with Client(encore.port) as client:
            for origin in origins:
                answer = client.ask(origin.url("/"))
                self.assertEqual(b"one of many", answer.body)

    def test_idle_connections_leave_descriptors_for_all_clients_at_once(self):
        count = 40
        go = threading.Event()

        def held(exchange):
            exchange.wait(go)
            return response(b"held", Cache_Control="no-store")

        origins = [Origin(self, default=held) for _ in range(3)]
        encore = limited(self.encore(start=False, workers={"count": 2}, limits=ANY_CLIENT), 150)
        clients = []
        for _ in range(count):
            client = Client(encore.port)
            self.addCleanup(client.close)
            clients.append(client)
        for origin in origins:
            go.clear()
            for number, client in enumerate(clients):
                client.request(origin.url(f"/{number}"))
            eventually(lambda origin=origin: origin.count() == count,
                       "all requests are under way at once")
            go.set()
            for client in clients:
                self.assertEqual(b"held", client.read_response().body)

    def test_thousands_of_idle_connections_cost_little_and_are_let_go(self):
        count = min(5000, resource.getrlimit(resource.RLIMIT_NOFILE)[1] // 2 - 200)
        resource.setrlimit(resource.RLIMIT_NOFILE,
                           (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        origin = Origin(self, default=fresh(b"page"))
        encore = self.encore(limits=ANY_CLIENT)
        for _ in range(3):
            get(encore.port, origin.url("/"))
        before = encore.resident_bytes()
        clients = []
        try:
            for _ in range(count):
                clients.append(socket.create_connection(("127.0.0.1", encore.port)))
            eventually(lambda: encore.metrics()["encore_client_connections"] == count,
                       "all are accepted")
            each = (encore.resident_bytes() - before) / count
            request = (f"GET {origin.url('/')} HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n")
            for sock in clients[::50]:
                sock.sendall(request.encode())
                self.assertTrue(sock.recv(12).startswith(b"HTTP/1.1 200"))
        finally:
            for sock in clients:
                sock.close()
        if not sanitized():
            self.assertLess(each, 2048)
        eventually(lambda: encore.metrics()["encore_client_connections"] == 0, "all are closed")


class OriginConnections(SlowOriginCase):
    def test_a_server_has_no_more_connections_than_its_limit_and_all_are_answered(self):
        for close in (False, True):
            for encore, origin in self.proxies(lambda close=close: [SlowOrigin(self, close)],
                                               connections_per_server=3,
                                               connections_per_client="100%"):
                clients = [self.request(encore, origin, f"/{n}") for n in range(30)]
                self.waits(encore, 27)
                eventually(lambda: origin.count() == 3, "three have come")
                self.assertEqual(3, origin.connections)
                origin.go.set()
                for client in clients:
                    self.assertEqual(b"slow", client.read_response().body)
                self.assertEqual(3, origin.busiest)
                self.assertEqual(30 if close else 3, origin.connections)
                self.assertEqual(0, encore.metrics()["encore_origin_busy_total"])

    def test_whom_the_line_has_no_place_for_is_refused_at_once(self):
        for encore, origin in self.proxies(connections_per_server=3, waiting_per_server=5,
                                           connections_per_client="100%"):
            served = [self.request(encore, origin, f"/{n}") for n in range(3)]
            eventually(lambda: origin.count() == 3, "three have come")
            served += [self.request(encore, origin, f"/line{n}") for n in range(5)]
            self.waits(encore, 5)
            for n in range(22):
                self.refused(get(encore.port, origin.url(f"/beyond{n}")))
            origin.go.set()
            for client in served:
                self.assertEqual(b"slow", client.read_response().body)
            metrics = encore.metrics()
            self.assertEqual(22, metrics["encore_origin_busy_total"])
            self.assertEqual(0, metrics["encore_origins_set_aside_total"])
            self.assertEqual(3, origin.connections)
            # First come, first served, and a client that comes now is served, too.
            self.assertEqual(b"slow", get(encore.port, origin.url("/after")).body)

    def test_a_client_that_leaves_frees_its_place(self):
        for encore, origin in self.proxies(connections_per_server=1, waiting_per_server=1):
            first = self.request(encore, origin, "/first")
            eventually(lambda: origin.count() == 1, "the first has come")
            gone = self.request(encore, origin, "/gone")
            self.waits(encore, 1)
            self.refused(get(encore.port, origin.url("/beyond")), "origin-share")
            gone.close()
            eventually(lambda: encore.metrics()["encore_transfers"] == 1, "it has left")
            waiting = self.request(encore, origin, "/waiting")
            self.waits(encore, 2)
            # So does a client with a request in progress, and its connection.
            first.close()
            eventually(lambda: origin.count("/waiting") == 1, "its turn has come")
            origin.go.set()
            self.assertEqual(b"slow", waiting.read_response().body)
            self.assertEqual(0, origin.count("/gone"))

    def test_who_has_waited_for_as_long_as_a_connection_may_take_is_refused(self):
        for encore, origin in self.proxies(timeouts={"origin_connect": "300ms"},
                                           connections_per_server=1):
            first = self.request(encore, origin, "/first")
            eventually(lambda: origin.count() == 1, "the first has come")
            self.refused(get(encore.port, origin.url("/second")), "origin-share")
            origin.go.set()
            self.assertEqual(b"slow", first.read_response().body)
            self.assertEqual(0, encore.metrics()["encore_origins_set_aside_total"])

    def test_an_idle_connection_that_will_not_do_gives_way(self):
        for encore, origin in self.proxies(connections_per_server=1):
            origin.go.set()
            for method in ("GET", "POST", "GET", "POST"):
                with Client(encore.port) as client:
                    answer = client.ask(origin.url("/page"), method)
                self.assertEqual(b"slow", answer.body)
            self.assertEqual(3, origin.connections)

    def test_another_server_of_the_origin_takes_what_one_has_no_connection_for(self):
        busy = SlowOrigin(self)
        free = Origin(self, default=response(b"free", Cache_Control="no-store"))
        encore = self.encore(listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
                             origin=[{"servers": [busy.url(""), free.url("")]}],
                             workers={"count": 1},
                             upstream={"connections_per_server": 1, "waiting_per_server": 0})
        clients = [self.request(encore, busy, "/0")]
        eventually(lambda: busy.count() + free.count() == 1, "the first has come")
        clients.append(self.request(encore, busy, "/1"))
        eventually(lambda: busy.count() == 1 and free.count() == 1 and
                   encore.metrics()["encore_transfers"] == 1, "one is held, the other answered")
        for n in range(6):
            with Client(encore.port) as client:
                self.assertEqual(b"free", client.ask(busy.url(f"/then{n}")).body)
        busy.go.set()
        bodies = sorted(client.read_response().body for client in clients)
        self.assertEqual([b"free", b"slow"], bodies)
        self.assertEqual(1, busy.connections)
        self.assertEqual(0, encore.metrics()["encore_origins_set_aside_total"])

    def test_a_reload_to_a_higher_limit_lets_those_in_who_wait(self):
        for encore, origin in self.proxies(connections_per_server=1, connections_per_client=0):
            clients = [self.request(encore, origin, "/first")]
            eventually(lambda: origin.count() == 1, "the first has come")
            clients += [self.request(encore, origin, f"/{n}") for n in range(2)]
            self.waits(encore, 2)
            encore.sections["upstream"]["connections_per_server"] = 2
            encore.write_config()
            encore.signal(signal.SIGHUP)
            eventually(lambda: origin.count() == 2, "one more has come")
            # Waiting clients are served before the end.
            encore.signal(signal.SIGTERM)
            origin.go.set()
            for client in clients:
                self.assertEqual(b"slow", client.read_response().body)
            self.assertEqual(0, encore.wait_for_exit())
            self.assertEqual(2, origin.busiest)

    def test_an_end_that_is_forced_ends_those_who_wait(self):
        for encore, origin in self.proxies(timeouts={"drain": "1s"}, connections_per_server=1):
            for n in range(4):
                self.request(encore, origin, f"/{n}")
            self.waits(encore, 3)
            encore.signal(signal.SIGTERM)
            self.assertEqual(0, encore.wait_for_exit())


class Memory(Case):
    """Bounds of the issue, for programs without a sanitizer: it needs far more."""

    def setUp(self):
        super().setUp()
        if sanitized():
            self.skipTest("a sanitizer needs memory of its own")

    def fill(self, encore, origin, paths):
        """Asks for each path by pipelines over a few connections."""
        def run(part):
            with Client(encore.port) as client:
                for begin in range(0, len(part), 100):
                    some = part[begin:begin + 100]
                    client.send("".join(f"GET {origin.url(p)} HTTP/1.1\r\nHost: h\r\n\r\n"
                                        .replace("Host: h", f"Host: {origin.authority}")
                                        for p in some))
                    for _ in some:
                        if client.read_response().status != 200:
                            failed.append(1)
        failed = []
        threads = [threading.Thread(target=run, args=(paths[n::4],)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], failed)

    def test_shifting_sizes_keep_a_full_cache_within_its_memory(self):
        memory = 64 * MIB
        blob = os.urandom(4 * MIB)

        def sized(exchange):
            size = int(exchange.request.target.split("/")[1])
            return fresh(blob[:size])
        origin = Origin(self, default=sized)
        encore = self.encore(cache={"memory": "64MiB"}, admission={"policy": "always"})
        filter_bytes = 0
        start = encore.resident_bytes()
        rng = random.Random(7)
        number = 0
        for low, high, total in ((200, 2_000, 12 * MIB), (300_000, 900_000, 200 * MIB),
                                 (5_000, 20_000, 100 * MIB), (1 * MIB, 4 * MIB, 300 * MIB),
                                 (500, 1_500, 8 * MIB), (60_000, 70_000, 150 * MIB)):
            paths, sum_bytes = [], 0
            while sum_bytes < total:
                size = rng.randrange(low, high)
                paths.append(f"/{size}/{number}")
                number += 1
                sum_bytes += size
            self.fill(encore, origin, paths)
            limit = 1.05 * memory + filter_bytes + 32 * MIB
            used = encore.resident_bytes()
            print(f"sizes {low}..{high}: resident {used / MIB:.1f} MiB of {limit / MIB:.1f}, "
                  f"{start / MIB:.1f} at start")
            self.assertLess(used, limit, f"sizes of {low} .. {high}")
        self.assertLess(encore.peak_resident_bytes(), limit + 16 * MIB)

    def test_small_objects_cost_little_each(self):
        count = int(os.environ.get("ENCORE_E2E_OBJECTS", "50000"))
        body = os.urandom(1024)
        origin = FastOrigin(self, body)
        encore = self.encore(cache={"memory": "1GiB"}, admission={"policy": "always"})
        self.fill(encore, origin, [f"/warm{n}" for n in range(200)])
        before = encore.resident_bytes()
        self.fill(encore, origin, [f"/o{n}" for n in range(count)])
        each = (encore.resident_bytes() - before) / count
        print(f"{count} objects of 1 KiB: {each:.0f} bytes resident each")
        self.assertLess(each, 1700)


class FastOrigin:
    """Answers every request with the same response, quickly, however many arrive together."""

    def __init__(self, case, body):
        self.reply = fresh(body)
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.authority = "127.0.0.1:%d" % self.listener.getsockname()[1]
        case.addCleanup(self.listener.close)
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, path):
        return f"http://{self.authority}{path}"

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        kept = b""
        with sock:
            try:
                while data := sock.recv(65536):
                    kept += data
                    count = kept.count(b"\r\n\r\n")
                    kept = kept.rpartition(b"\r\n\r\n")[2]
                    sock.sendall(self.reply * count)
            except OSError:
                pass


if __name__ == "__main__":
    unittest.main()
