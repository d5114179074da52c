"""A mixed load of all kinds. Faults are reported when encore ends: a leak under the address
sanitizer, a race under the thread sanitizer, and here everything that still counts as open."""

import os
import random
import signal
import threading
import unittest

from client import Client, NoResponse, get
from harness import Case, eventually
from origin import Origin, chunked, fresh, response

SIZES = {"tiny": 40, "small": 3_000, "middle": 60_000, "large": 700_000}


def filler(path, size):
    """A body that tells whose it is."""
    return (path.encode() + b" ").ljust(size, b".")


class Moody:
    """/KIND/SIZE/N: kinds that may be stored, may not, come in chunks, break off, or stall."""

    def __init__(self):
        self.go = threading.Event()

    def __call__(self, exchange):
        path = exchange.request.target
        _, kind, size, _ = path.split("/")
        body = filler(path, SIZES[size])
        if kind == "fresh":
            return fresh(body)
        if kind == "stale":
            return fresh(body, seconds=0, ETag='"v"')
        if kind == "private":
            return response(body, Cache_Control="private")
        if kind == "chunked":
            half = len(body) // 2
            return chunked(body[:half], body[half:])
        answer = fresh(body)
        exchange.send(answer[:len(answer) - len(body) // 2])
        if kind == "stalled":
            exchange.wait(self.go)
            return answer[len(answer) - len(body) // 2:]
        if kind == "reset":
            exchange.reset()
        else:
            exchange.close()
        return None


BREAKING = ("reset", "closed")
KINDS = ("fresh", "fresh", "stale", "private", "chunked") + BREAKING


class MixedLoad(Case):
    def setUp(self):
        super().setUp()
        self.moody = Moody()
        self.origin = Origin(self, default=self.moody)
        self.wrong = []

    def run_clients(self, encore, work, count=10):
        threads = [threading.Thread(target=work, args=(encore, random.Random(seed)))
                   for seed in range(count)]
        for thread in threads:
            thread.start()
        return threads

    def some_path(self, rng):
        return f"/{rng.choice(KINDS)}/{rng.choice(list(SIZES))}/{rng.randrange(4)}"

    def one(self, encore, rng):
        path = self.some_path(rng)
        url = self.origin.url(path)
        way = rng.randrange(10)
        with Client(encore.port, receive_buffer=rng.choice((None, 4096))) as client:
            if way == 0:  # leaves immediately
                client.request(url)
                client.reset()
            elif way == 1:  # leaves in the middle
                client.request(url)
                client.read_exactly(rng.choice((1, 200, 2_000)))
                client.reset()
            elif way == 2:  # an upload cut short
                client.send(f"POST {url} HTTP/1.1\r\nHost: {self.origin.authority}\r\n"
                            "Content-Length: 5000\r\n\r\n" + "u" * rng.randrange(5000))
            elif way == 3:
                client.ask(url, method="POST", body=b"x" * rng.randrange(1, 60_000))
            elif way == 4:
                client.ask(url, fields=[("Range", "bytes=5-20")])
            elif way == 5:
                paths = [path] + [self.some_path(rng) for _ in range(8)]
                for each in paths:
                    client.request(self.origin.url(each))
                for each in paths:
                    self.check(each, client.read_response())
            elif way == 6:
                host = self.origin.authority
                client.send(f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n"
                            f"GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n")
                client.read_response("CONNECT")
                self.check(path, client.read_response())
            else:
                self.check(path, client.ask(url))

    def check(self, path, answer):
        size = SIZES[path.split("/")[2]]
        if answer.status == 502 and path.split("/")[1] in BREAKING:
            return
        if answer.status != 200 or answer.body != filler(path, size):
            self.wrong.append((path, answer.status, answer.body[:60]))

    def load(self, encore, rng):
        for _ in range(60):
            try:
                self.one(encore, rng)
            except (NoResponse, OSError):
                pass  # if an origin aborted, or this client did

    def proxy(self, **sections):
        return self.encore(forward={"connect_ports": [self.origin.port]},
                           cache={"memory": "16MiB"}, **sections)

    def test_all_kinds_together_leave_nothing_open(self):
        encore = self.proxy()
        for thread in self.run_clients(encore, self.load):
            thread.join()
        self.assertEqual([], self.wrong)
        for gauge in ("transfers", "tunnels", "client_connections"):
            eventually(lambda: encore.metrics()[f"encore_{gauge}"] == 0, f"no {gauge} are left")
        self.assertEqual(200, get(encore.port, self.origin.url("/fresh/tiny/99")).status)

    def test_a_drain_that_runs_out_of_time_leaves_nothing_behind(self):
        # Readers of one transfer sit on all workers, some of them do not read.
        encore = self.proxy(workers={"count": 4}, timeouts={"drain": "1s"})
        clients = []
        for number in range(3):
            for _ in range(12):
                client = Client(encore.port, receive_buffer=4096)
                self.addCleanup(client.close)
                client.request(self.origin.url(f"/stalled/large/{number}"))
                clients.append(client)
        for client in clients:
            client.read_head()
        host = self.origin.authority
        for _ in range(4):
            tunnel = Client(encore.port)
            self.addCleanup(tunnel.close)
            tunnel.send(f"CONNECT {host} HTTP/1.1\r\nHost: {host}\r\n\r\n")
            tunnel.read_response("CONNECT")
        encore.signal(signal.SIGTERM)
        self.assertEqual(0, encore.wait_for_exit())

    def test_an_end_in_the_middle_of_a_load_is_clean(self):
        encore = self.proxy(workers={"count": 3}, timeouts={"drain": "1s"})
        threads = self.run_clients(encore, self.load)
        eventually(lambda: encore.metrics().get("encore_stored_total", 0) > 20, "load is on")
        encore.signal(signal.SIGTERM)
        self.assertEqual(0, encore.wait_for_exit())
        for thread in threads:
            thread.join()


if __name__ == "__main__":
    unittest.main()
