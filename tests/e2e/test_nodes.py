"""Three real nodes compared with `encore-sim replay --nodes 3`: hit ratios within one point.

A client balances the requests of a synthetic trace over three reverse proxies, at random or by its own
consistent hashing, which is another one than the simulator's. With two tiers a fourth proxy is their
parent. The simulator gets the trace and the sizes, not the choices. Why it agrees:
docs/decisions/0611.
"""

import bisect
import hashlib
import json
import random
import subprocess
import unittest

from client import Client, field
from harness import Case, clean_environment, free_port, need_simulator, sanitized
from origin import Origin, fresh

NODES = 3
REQUESTS = 20_000
OBJECTS = 3_000
WINDOW = 100_000
SHARDS = 4
# Bytes of an entry (cache/options.h), and of the key, record and head of these objects.
ENTRY_BYTES = 76
HEAD_BYTES = 250
SEED = "00112233445566778899aabbccddeeff"
POINT = 0.01


def sha1_ring(points=200):
    return sorted((hashlib.sha1(b"%d %d" % (node, point)).digest(), node)
                  for node in range(NODES) for point in range(points))


class Nodes(Case):
    def setUp(self):
        super().setUp()
        self.program = need_simulator()
        if sanitized():
            self.skipTest("what is stored is the same in every build")
        self.trace = self.directory / "trace.csv"
        self.sim("generate", "mixture", "--mix", "zipf=0.75,scan=0.25", "--alpha", "0.8",
                 "--requests", REQUESTS, "--objects", OBJECTS, "--size", "lognormal:4KiB:1:64KiB",
                 "-o", self.trace)
        lines = self.trace.read_text().splitlines()
        names = lines[0].split(",")
        key, size = names.index("key"), names.index("size")
        self.requests = [(row[key], int(row[size])) for row in (x.split(",") for x in lines[1:])]
        self.assertEqual(REQUESTS, len(self.requests))
        sizes = dict(self.requests)
        self.origin = Origin(self, default=lambda x: fresh(
            b"x" * sizes[x.request.target[1:]], seconds=86400))

    def sim(self, *arguments):
        ended = subprocess.run([self.program, *map(str, arguments), "--json"], timeout=300,
                               stdin=subprocess.DEVNULL, capture_output=True, text=True,
                               env=clean_environment())
        self.assertEqual(0, ended.returncode, ended.stderr[-2000:])
        return json.loads(ended.stdout)

    def node(self, upstream, memory):
        return self.encore(listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
                           origin=[{"servers": [upstream]}], workers={"count": 1},
                           cache={"memory": memory, "shards": SHARDS, "max_object": "256KiB"},
                           admission={"capacity": WINDOW, "fpr": 0.001, "seed": SEED},
                           log={"access": ""})

    def live(self, balance, upstream, memory):
        """Hit ratio of three nodes that were empty."""
        nodes = [self.node(upstream, memory) for _ in range(NODES)]
        clients = [Client(node.port) for node in nodes]
        chance, ring = random.Random(balance), sha1_ring()
        hits = 0
        for key, size in self.requests:
            if balance == "hash":
                at = bisect.bisect(ring, (hashlib.sha1(key.encode()).digest(), 0)) % len(ring)
                client = clients[ring[at][1]]
            else:
                client = clients[chance.randrange(NODES)]
            client.send(f"GET /{key} HTTP/1.1\r\nHost: nodes.example\r\n\r\n")
            answer = client.read_response()
            self.assertEqual((200, size), (answer.status, len(answer.body)))
            hits += "; hit" in field(answer, "Cache-Status").rpartition("encore")[2]
        for client in clients:
            client.close()
        for node in nodes:
            node.stop()
        return hits / REQUESTS

    def simulated(self, *options, memory):
        report = self.sim("replay", self.trace, "--nodes", NODES, *options, "--cache-size", memory,
                          "--shards", SHARDS, "--overhead", ENTRY_BYTES, "--head-bytes", HEAD_BYTES,
                          "--max-object", "256KiB", "--admission", "second-hit",
                          "--capacity", WINDOW, "--fpr", 0.001)
        return report["rows"][0], report["fleet"][0]

    def compare(self, what, live, simulated):
        print(f"{what}: live {100 * live:.2f} %, simulated {100 * simulated:.2f} %")
        self.assertLess(abs(live - simulated), POINT, what)

    def test_one_tier_without_end_and_with_little_memory(self):
        for memory in ("64MiB", "1MiB"):
            found = {}
            for balance in ("random", "hash"):
                before = self.origin.count()
                live = self.live(balance, self.origin.url(""), memory)
                row, fleet = self.simulated("--balance", balance, memory=memory)
                self.compare(f"{balance}, {memory}", live, row["object_hit_ratio"])
                asked = self.origin.count() - before
                self.compare(f"{balance}, {memory}, at the origin", asked / REQUESTS,
                             fleet["origin_requests"] / REQUESTS)
                found[balance] = row
            # The comparison can tell them apart, and the small caches are full.
            self.assertGreater(found["hash"]["object_hit_ratio"],
                               found["random"]["object_hit_ratio"] + 5 * POINT)
            self.assertEqual(memory == "1MiB", found["random"]["evictions"] > 0)

    def test_two_tiers(self):
        parent = self.node(self.origin.url(""), "64MiB")
        live = self.live("random", parent.url, "64MiB")
        row, fleet = self.simulated("--balance", "random", "--tier", "two", memory="64MiB")
        self.compare("two tiers, at nodes", live, fleet["node_hit_ratio"])
        self.compare("two tiers, at either", 1 - self.origin.count() / REQUESTS,
                     row["object_hit_ratio"])


if __name__ == "__main__":
    unittest.main()
