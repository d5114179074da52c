"""Clients that read slowly or not at all: they take their share of the memory for transfers and no
more, and never what others need."""

import contextlib
import itertools
import os
import threading
import time
import unittest

from client import Client, NoResponse
from harness import Case, eventually
from origin import Origin, fresh, response

MIB = 1 << 20
LARGE = 8 * MIB
STORED = 6 * MIB  # at most an eighth of a cache of 64 MiB


def large(size, block=os.urandom(MIB), **fields):
    """A route with a body of this size that is not stored."""
    def send(exchange):
        head = response(**{"Cache_Control": "no-store", "Content_Length": size, **fields})
        exchange.send(head)
        for at in range(0, size, len(block)):
            exchange.send(block[:size - at])
    return send


class SlowCase(Case):
    def slow(self, encore, url, source="127.0.0.1", receive_buffer=4096):
        """A client that asks and then reads nothing."""
        client = Client(encore.port, source=source, receive_buffer=receive_buffer)
        self.addCleanup(client.close)
        client.request(url)
        return client

    def count(self, client, left):
        """Reads so many bytes and keeps none; how many came."""
        got, room = 0, bytearray(MIB)
        while got < left and (more := client.sock.recv_into(room)):
            got += more
        return got

    def trickle_until_cut(self, encore, client):
        """Reads on and on, some 200 kB a second, until encore says that it has cut a client. On a
        busy machine it reads seldom and the more: one that takes nothing for long is another
        matter."""
        then = time.monotonic()

        def read():
            nonlocal then
            now = time.monotonic()
            with contextlib.suppress(OSError):
                client.sock.recv(max(2000, int((now - then) * 200_000)))
            then = now
            return encore.outcomes().get("slow-reader")
        client.sock.settimeout(1)
        eventually(read, "the slow one is cut")
        self.assertEqual(1, encore.metrics()["encore_slow_readers_cut_total"])

    def ask(self, encore, url, source="127.0.0.2"):
        """The length of what another client gets; -1 where it is cut or refused."""
        try:
            with Client(encore.port, source=source) as client:
                answer = client.ask(url)
                return len(answer.body) if answer.status == 200 else -1
        except (NoResponse, OSError):
            return -1

    def quiet(self, origin_or_encore, metric):
        """Waits until a figure of /metrics has not changed for a while."""
        last, steady = None, 0

        def settled():
            nonlocal last, steady
            now = origin_or_encore.metrics()[metric]
            steady = steady + 1 if now == last else 0
            last = now
            time.sleep(0.02)
            return steady >= 20
        eventually(settled, f"{metric} stands still")
        return last


class Memory(SlowCase):
    # 90 clients of which each may hold 4 MiB, with less than 300 MiB for transfers.
    CLIENTS = 90
    CONFIG = {"cache": {"memory": "8MiB"}, "limits": {"transfer_buffer": "4MiB"}}

    def test_slow_clients_of_one_address_leave_others_what_they_need(self):
        origin = Origin(self, {"/large": large(LARGE)})
        encore = self.encore(**self.CONFIG)
        for _ in range(self.CLIENTS):
            self.slow(encore, origin.url("/large"))
        self.quiet(encore, "encore_origin_received_bytes_total")
        for _ in range(5):
            self.assertEqual(LARGE, self.ask(encore, origin.url("/large")))
        metrics = encore.metrics()
        # They were held back at their share, and so nobody had to be cut.
        self.assertGreater(metrics["encore_share_waits_total"], 0)
        self.assertEqual(0, metrics["encore_slow_readers_cut_total"])
        self.assertLess(metrics["encore_transfer_memory_bytes"], (64 + 4 + 16) * MIB)

    def test_a_client_beyond_its_share_still_gets_what_it_takes(self):
        origin = Origin(self, {"/large": large(LARGE)})
        encore = self.encore(cache={"memory": "8MiB"}, limits={
            "transfer_buffer": "1MiB", "transfer_memory_per_client": "1MiB"})
        for _ in range(8):
            self.slow(encore, origin.url("/large"))
        eventually(lambda: encore.metrics()["encore_share_waits_total"], "its share is used up")
        self.assertEqual(LARGE, self.ask(encore, origin.url("/large"), "127.0.0.1"))

    def test_slow_clients_of_many_addresses_are_cut_the_slowest_first(self):
        origin = Origin(self, {"/large": large(LARGE), "/small": fresh(b"s" * 50_000)})
        journal = self.directory / "decisions"
        encore = self.encore(**self.CONFIG, log={"decisions": str(journal)})
        for _ in range(2):
            self.ask(encore, origin.url("/small"))
        for n in range(self.CLIENTS):
            self.slow(encore, origin.url("/large"), f"127.0.1.{n + 1}")
        for _ in range(5):
            self.assertEqual(LARGE, self.ask(encore, origin.url("/large")))
        metrics = encore.metrics()
        self.assertGreater(metrics["encore_memory_waits_total"], 0)
        self.assertEqual(0, metrics["encore_memory_failures_total"])
        # Stored objects were evicted before.
        self.assertEqual(1, metrics["encore_memory_evictions_total"])

        def counted():
            # One may be cut between the two counts of it, or after the last answer.
            now = encore.metrics()
            cut = int(now["encore_slow_readers_cut_total"])
            return cut if cut == encore.outcomes(now).get("slow-reader", 0) else None
        cut = eventually(counted, "each that was cut has ended")
        self.assertTrue(0 < cut < self.CLIENTS / 2, cut)
        records = [r for r in encore.access_records(cut + 7) if r["outcome"] == "slow-reader"]
        self.assertTrue(all(r["client"].startswith("127.0.1.") for r in records), records)
        self.assertTrue(all(0 < r["body_bytes"] < LARGE for r in records), records)
        encore.stop()
        # A build of only the concurrent parts has no simulator.
        if os.path.exists(os.environ["ENCORE_SIM"]):
            self.run_client([os.environ["ENCORE_SIM"], "verify", journal, "--config",
                             encore.config_path])

    def test_stored_responses_that_slow_clients_keep_from_going_are_theirs(self):
        # Ten of 54 objects fit the cache: the rest is kept for its readers, up to the limit of 339
        # MiB less 10.
        origin = Origin(self, default=large(STORED, Cache_Control="max-age=600"))
        encore = self.encore(cache={"memory": "64MiB"}, admission={"policy": "always"})
        for n in range(54):
            self.slow(encore, origin.url(f"/{n}"))
            eventually(lambda: encore.metrics()["encore_stored_total"] > n, f"{n} is stored")
        others = itertools.count()

        def serve():
            for _ in range(5):
                url = origin.url(f"/other{next(others)}")
                self.assertEqual(STORED, self.ask(encore, url))
            return encore.metrics()["encore_slow_readers_cut_total"]
        eventually(serve, "some are cut, when it is seen that they are slow")
        self.assertEqual(0, encore.metrics()["encore_memory_failures_total"])

    def test_a_hit_that_is_cut_says_so_in_the_log(self):
        origin = Origin(self, default=large(STORED, Cache_Control="max-age=600"))
        encore = self.encore(
            cache={"memory": "64MiB"}, admission={"policy": "always"},
            limits={"client_write_rate_min": "1MiB"}, timeouts={"client_write": "2s"})
        self.ask(encore, origin.url("/page"))
        client = self.slow(encore, origin.url("/page"), receive_buffer=65536)
        self.trickle_until_cut(encore, client)
        record = [r for r in encore.access_records(2) if r["outcome"] == "slow-reader"][0]
        self.assertEqual(origin.url("/page"), record["url"])
        self.assertLess(record["body_bytes"], STORED)


class Pace(SlowCase):
    def test_a_client_that_takes_less_than_it_must_is_cut(self):
        origin = Origin(self, {"/large": large(4 * LARGE)})
        encore = self.encore(limits={"client_write_rate_min": "1MiB"},
                             timeouts={"client_write": "2s"})
        self.trickle_until_cut(encore, self.slow(encore, origin.url("/large"), receive_buffer=65536))

    def test_a_client_whose_origin_is_slow_is_not_slow(self):
        def drip(exchange):
            exchange.send(response(Content_Length=40_000, Cache_Control="no-store"))
            for _ in range(40):
                exchange.send(b"x" * 1000)
                time.sleep(0.1)
        origin = Origin(self, {"/drip": drip})
        encore = self.encore(limits={"client_write_rate_min": "1MiB"},
                             timeouts={"client_write": "1s"})
        self.assertEqual(40_000, self.ask(encore, origin.url("/drip")))

    def test_a_client_that_reads_none_of_many_pipelined_replies_is_given_up(self):
        origin = Origin(self, {"/page": fresh(b"x" * 15_000)})
        encore = self.encore(timeouts={"client_write": "2s"})
        for _ in range(2):
            self.ask(encore, origin.url("/page"))
        client = Client(encore.port, receive_buffer=4096)
        self.addCleanup(client.close)
        request = (f"GET {origin.url('/page')} HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n"
                   .encode() * 20)
        client.sock.settimeout(1)
        with contextlib.suppress(OSError):  # until encore reads no more of them
            while True:
                client.send(request)
        eventually(lambda: encore.metrics()["encore_client_connections"] == 0, "it is given up")


class Shared(SlowCase):
    def both(self, receive_buffers):
        """An encore and two clients that wait for one transfer, which is too large to be stored."""
        size = 64 * MIB
        go = threading.Event()
        whole = large(size, Cache_Control="max-age=600")

        def send(exchange):
            exchange.wait(go)
            whole(exchange)
        origin = Origin(self, {"/large": send})
        encore = self.encore(timeouts={"client_write": "10m"})
        clients = []
        for receive_buffer in receive_buffers:
            client = Client(encore.port, receive_buffer=receive_buffer)
            self.addCleanup(client.close)
            client.request(origin.url("/large"))
            clients.append(client)
        eventually(lambda: encore.metrics()["encore_client_connections"] == 2, "both wait")
        eventually(origin.count, "the origin is asked")
        time.sleep(0.2)  # the other request has been read by then
        go.set()
        return size, origin, encore, clients

    def test_a_reader_that_takes_nothing_does_not_hold_back_the_others(self):
        size, origin, encore, (slow, quick) = self.both((4096, None))
        quick.read_head()
        self.assertEqual(size, len(quick.buffer) + self.count(quick, size - len(quick.buffer)))
        self.assertEqual(1, origin.count())
        self.assertEqual(1, encore.metrics()["encore_slow_readers_cut_total"])
        self.assertEqual(1, encore.outcomes()["slow-reader"])
        with self.assertRaises(NoResponse):
            slow.read_exactly(size)

    def test_readers_of_like_speed_all_get_the_whole(self):
        size, origin, encore, clients = self.both((None, None))
        got = [0, 0]

        def read(n):
            clients[n].read_head()
            got[n] = len(clients[n].buffer)
            got[n] += self.count(clients[n], size - got[n])
        threads = [threading.Thread(target=read, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([size, size], got)
        self.assertEqual(1, origin.count())
        self.assertEqual(0, encore.metrics()["encore_slow_readers_cut_total"])


if __name__ == "__main__":
    unittest.main()
