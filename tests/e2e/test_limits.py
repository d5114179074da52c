"""What connections, descriptors and objects may cost, and what happens when they run out."""

import os
import random
import resource
import socket
import subprocess
import threading
import unittest

from client import Client, NoResponse, field, get
from harness import Case, die_with_parent, eventually, sanitized
from origin import Origin, fresh, response

MIB = 1 << 20


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

    def test_without_descriptors_for_more_clients_those_there_are_still_served(self):
        origin = Origin(self, default=response(b"miss"))
        encore = limited(self.encore(start=False), 64)
        clients = []
        for _ in range(100):
            client = Client(encore.port)
            self.addCleanup(client.close)
            clients.append(client)
        eventually(lambda: encore.metrics()["encore_client_connections_refused_total"] > 0,
                   "some are refused")
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

    def test_idle_connections_to_many_origins_give_way_to_new_ones(self):
        origins = [Origin(self, default=response(b"one of many")) for _ in range(80)]
        encore = limited(self.encore(start=False), 64)
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
        encore = limited(self.encore(start=False, workers={"count": 2}), 150)
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
        encore = self.encore()
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
    """Answers every request with the same response, quickly, however many come at once."""

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
