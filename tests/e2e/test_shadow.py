"""Policies that are simulated next to the one in force: equal to a replay of the proxy's own access
log, on the page, in the metrics and in the API, through reloads; and nothing if none is
configured."""

import json
import lzma
import pathlib
import signal
import struct
import subprocess
import threading
import unittest
import zlib

from client import Client, get
from harness import Case, clean_environment, eventually, need_simulator
from origin import Origin, fresh, response

TRACE = pathlib.Path(__file__).parent / "data" / "web07-50000.trace.xz"
# As --seed 1 of encore-sim has it.
SEED = "0000000000000001" * 2
# The charge of an entry, and the record next to a stored head.
ENTRY_BYTES = 76
RECORD_BYTES = 96
KIB = 1024


def keys(count):
    data = lzma.open(TRACE).read()
    return struct.unpack(f">{len(data) // 4}i", data)[:count]


def size_of(key):
    """From a few bytes to 20 KiB: inside and outside of the store's slots."""
    return int(20480 ** ((zlib.crc32(b"size %d" % key) % 10000) / 10000.0))


class Shadows(Case):
    def shadow(self, proxy):
        status, text = proxy.admin("/api/shadow")
        self.assertEqual(200, status, text)
        return json.loads(text)

    def told(self, proxy, requests):
        """Waits until N requests have reached the policy that was there first."""
        def enough():
            said = self.shadow(proxy)
            seen = said["policies"] and said["policies"][0]["in_force"]["requests"]
            self.assertLessEqual(seen or 0, requests)
            return said if seen == requests else None
        return eventually(enough, f"{requests} requests are simulated")

    def by_name(self, said):
        return {policy["policy"]: policy for policy in said["policies"]}


class Equality(Shadows):
    """One worker, one connection: the order of the log is the order of what was simulated."""

    REQUESTS = 20_000

    def setUp(self):
        super().setUp()
        self.program = need_simulator()
        self.origin = Origin(self, default=self.answer)

    def answer(self, exchange):
        size = int(exchange.request.target.rpartition("/")[2])
        # A head of the same length, whatever the body's is.
        exchange.send(fresh(b"x" * size, 86400, X_Fill="f" * (10 - len(str(size)))))

    def drive(self, proxy, count):
        with Client(proxy.port) as client:
            for key in keys(count):
                url = self.origin.url(f"/{key & 0xffffffff:010}/{size_of(key):010}")
                answer = client.ask(url)
                self.assertEqual(200, answer.status)
        # The charge of key, record and head, as in the proxy.
        stored = [(name, value) for name, value in answer.fields
                  if name not in ("age", "via", "cache-status", "connection")]
        head = len("HTTP/1.1 200 OK\r\n") + sum(len(n) + len(v) + 4 for n, v in stored)
        return len("forward:" + url) + RECORD_BYTES + head

    def replay(self, log, *, cache, sample, head_bytes, policies, max_object, capacity, seed=1):
        command = [self.program, "replay", log, "--format", "json", "--key-prefix", "forward:",
                   "--seed", 1, "--overhead", ENTRY_BYTES, "--head-bytes", head_bytes,
                   "--cache-size", f"{cache}B", "--max-object", f"{max_object}B",
                   "--object-size", "latest", "--capacity", capacity, "--fpr", 0.01,
                   "--shadow", 0, "--sample", 1 / sample, "--sample-seed", seed, *policies, "--json"]
        ended = subprocess.run([str(c) for c in command], timeout=300, capture_output=True,
                               text=True, env=clean_environment())
        self.assertEqual(0, ended.returncode, ended.stderr)
        row, = json.loads(ended.stdout)["rows"]
        return row

    def check_equal(self, sample):
        memory, capacity = 4 * KIB * KIB, 4000
        policies = {"always": ["--admission", "always"],
                    "second-hit+lru": ["--admission", "second-hit", "--eviction", "lru"],
                    "nth-hit:3": ["--admission", "nth-hit", "--min-requests", 3],
                    "probability:0.25": ["--admission", "probability", "--probability", 0.25],
                    "size-threshold:2KiB+s3-fifo": ["--admission", "size-threshold",
                                                    "--size-threshold", "2KiB",
                                                    "--eviction", "s3-fifo"],
                    "tinylfu+lru": ["--admission", "tinylfu", "--eviction", "lru"],
                    "adaptsize+gdsf": ["--admission", "adaptsize", "--eviction", "gdsf"]}
        proxy = self.encore(workers={"count": 1}, cache={"memory": f"{memory}", "shards": 4},
                            admission={"capacity": capacity, "fpr": 0.01, "seed": SEED},
                            shadow={"policies": list(policies), "sample": sample})
        head_bytes = self.drive(proxy, self.REQUESTS)
        said = self.told(proxy, self.REQUESTS)
        self.assertEqual((sample, 0), (said["sample"], said["dropped_requests"]))
        proxy.access_records(self.REQUESTS)
        proxy.stop()

        def replay(arguments, **other):
            return self.replay(proxy.access_path, **{
                "cache": memory, "sample": sample, "head_bytes": head_bytes,
                "policies": arguments, "max_object": memory // 8, "capacity": capacity, **other})
        for name, arguments in policies.items():
            with self.subTest(name):
                told = self.by_name(said)[name]
                row = replay(arguments)
                for figure in ("requests", "hits", "bytes_requested", "objects_written",
                               "bytes_written"):
                    self.assertEqual(row[figure], told["estimated"][figure], figure)
                for figure in ("object_hit_ratio", "byte_hit_ratio"):
                    self.assertAlmostEqual(row[figure], told[figure]["value"], places=12)
                    self.assertLessEqual(told[figure]["low"], told[figure]["value"])
                    self.assertLessEqual(told[figure]["value"], told[figure]["high"])
                if sample > 1:
                    self.assertEqual(row["sample_requests"], told["sampled"]["requests"])
                    self.assertLess(told["object_hit_ratio"]["low"],
                                    told["object_hit_ratio"]["high"])
                self.assertGreater(told["estimated"]["hits"], 100)
        # And what is something else is not equal, in one figure at least.
        figures = ("hits", "objects_written", "bytes_written")
        told = self.by_name(said)["second-hit+lru"]["estimated"]
        told = [told[figure] for figure in figures]
        for other in ({"cache": memory * 3 // 4}, {"capacity": capacity // 4},
                      {"head_bytes": head_bytes + 1000}, {"seed": 2} if sample > 1 else {}):
            if other:
                row = replay(policies["second-hit+lru"], **other)
                self.assertNotEqual(told, [row[figure] for figure in figures], other)
        return said

    def test_a_shadow_is_what_a_replay_of_the_log_says_of_all_keys(self):
        said = self.check_equal(1)
        # The results of the policy in force are there as well, and are known exactly.
        for policy in said["policies"]:
            self.assertEqual(said["policies"][0]["in_force"], policy["in_force"])
        self.assertGreater(said["policies"][0]["in_force"]["hits"], 1000)

    def test_a_shadow_is_what_a_replay_of_the_log_says_of_a_sample(self):
        self.check_equal(8)


class Told(Shadows):
    def start(self, **sections):
        self.origin = Origin(self, {
            "/no-store": response(b"n", Cache_Control="no-store"),
            "/short": response(b"s" * 10, Cache_Control="max-age=0", ETag='"s"')},
            default=lambda x: x.send(fresh(b"y" * 1000, 600, ETag='"y"')))
        return self.encore(**{"shadow": {"policies": ["always", "second-hit", "never"],
                                         "sample": 1}, **sections})

    def test_off_is_off(self):
        proxy = self.start(shadow={})
        get(proxy.port, self.origin.url("/a"))
        said = self.shadow(proxy)
        self.assertEqual((0, []), (said["sample"], said["policies"]))
        self.assertFalse([name for name in proxy.metrics() if "shadow" in name])
        self.assertIn("Nothing is simulated", proxy.admin("/shadow")[1])

    def test_each_kind_of_request_is_counted_as_what_it_is(self):
        proxy = self.start()
        a, n, s = (self.origin.url(path) for path in ("/a", "/no-store", "/short"))
        for _ in range(3):
            get(proxy.port, a)       # first-request, second-request, hit
            get(proxy.port, n)       # may not be stored: no cache would
            get(proxy.port, s)       # never fresh: validated by each request
        get(proxy.port, a, method="POST", body=b"x")
        # An object that a write has invalidated: requested anew here, no news to the shadows.
        get(proxy.port, a, fields=[("Range", "bytes=0-99")])
        with Client(proxy.port) as client:
            client.send("GET nonsense HTTP/1.1\r\nHost: a\r\n\r\n")
            client.read_response()
        eventually(lambda: sum(proxy.outcomes().values()) == 12, "all are counted")
        told = self.by_name(self.told(proxy, 7))
        self.assertEqual(1, told["always"]["in_force"]["hits"])
        for name, hits in (("always", 3), ("second-hit", 2), ("never", 0)):
            self.assertEqual((7, hits), (told[name]["sampled"]["requests"],
                                         told[name]["sampled"]["hits"]), name)
        self.assertEqual((1, 0), (told["second-hit"]["sampled"]["validations"],
                                  told["never"]["sampled"]["validations"]))
        self.assertEqual(2, told["always"]["sampled"]["objects_written"])
        self.assertEqual(0, told["never"]["sampled"]["bytes_written"])

    def test_it_is_on_the_page_and_in_the_metrics(self):
        proxy = self.start()
        for _ in range(4):
            get(proxy.port, self.origin.url("/a"))
        self.told(proxy, 4)
        metrics = proxy.metrics()
        ratio = 'encore_shadow_object_hit_ratio{policy="%s",bound="value"}'
        self.assertEqual((0.75, 0.5, 0), tuple(metrics[ratio % name] for name in
                                               ("always", "second-hit", "never")))
        self.assertEqual(4, metrics['encore_shadow_requests_total{policy="always"}'])
        self.assertEqual(2, metrics['encore_shadow_in_force_hits_total{policy="never"}'])
        status, page = proxy.admin("/shadow")
        self.assertEqual(200, status)
        self.assertIn("75.00 %", page)
        self.assertIn("Waldspurger", page)

    def test_a_reload_adds_and_removes_policies_under_load(self):
        proxy = self.start(cache={"memory": "4MiB"})
        stop, faults = threading.Event(), []

        def load(seed):
            i = seed
            with Client(proxy.port) as client:
                while not stop.is_set():
                    i += 1
                    if client.ask(self.origin.url(f"/{i * i % 97}")).status != 200:
                        faults.append(i)
        threads = [threading.Thread(target=load, args=(n,)) for n in range(2)]
        for thread in threads:
            thread.start()

        def reload(**shadow):
            before = proxy.metrics()["encore_reloads_total"]
            proxy.sections["shadow"] = shadow
            proxy.write_config()
            proxy.signal(signal.SIGHUP)
            eventually(lambda: proxy.metrics()["encore_reloads_total"] > before, "it is reloaded")
        try:
            eventually(lambda: self.by_name(self.shadow(proxy))["always"]["sampled"]["hits"] > 100,
                       "there are hits")
            reload(policies=["always", "nth-hit:2+lru"], sample=1)
            told = self.by_name(self.shadow(proxy))
            self.assertEqual({"always", "nth-hit:2+lru"}, set(told))
            self.assertGreater(told["always"]["sampled"]["hits"], 100)
            self.assertLess(told["nth-hit:2+lru"]["in_force"]["requests"],
                            told["always"]["in_force"]["requests"])
            eventually(lambda: self.by_name(self.shadow(proxy))["nth-hit:2+lru"]["sampled"]["hits"],
                       "the new one has hits")
            reload(policies=[])
            self.assertEqual([], self.shadow(proxy)["policies"])
            reload(policies=["always"], sample=4)
            eventually(lambda: self.shadow(proxy)["policies"][0]["sampled"]["hits"] > 20,
                       "it goes on with a sample")
            proxy.sections["shadow"] = {"policies": ["alwys"]}
            proxy.write_config()
            proxy.signal(signal.SIGHUP)
            eventually(lambda: proxy.metrics()["encore_reload_failures_total"] == 1, "refused")
            self.assertIn("shadow.policies", proxy.output())
            self.assertEqual(["always"], [p["policy"] for p in self.shadow(proxy)["policies"]])
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        self.assertEqual([], faults)
        policy, = self.told_at_rest(proxy)
        self.assertLessEqual(policy["sampled"]["requests"], policy["in_force"]["requests"])

    def told_at_rest(self, proxy):
        """When nothing more comes."""
        def same():
            before = self.shadow(proxy)["policies"]
            return before if before[0]["sampled"] == self.shadow(proxy)["policies"][0]["sampled"] \
                else None
        return eventually(same, "all is simulated")


if __name__ == "__main__":
    unittest.main()
