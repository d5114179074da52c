"""The simulation equals the proxy: 50,000 requests of a real trace through the real proxy.

With several workers and connections, the decision journal, replayed through the kernel, shows no
difference. With one worker and one connection, the simulator, given the trace and the config alone,
predicts the proxy's outcome of every request, and ends with the same bytes in the cache.
"""

import json
import lzma
import pathlib
import struct
import subprocess
import unittest
import zlib

from harness import Case, clean_environment, eventually, free_port, need_simulator

TRACE = pathlib.Path(__file__).parent / "data" / "web07-50000.trace.xz"
REQUESTS = 50_000
SEED = "00112233445566778899aabbccddeeff"


def keys():
    data = lzma.open(TRACE).read()
    return struct.unpack(f">{len(data) // 4}i", data)


def size_of(key):
    """From a few bytes to 40 KiB: inside and outside of the store's slots. Mean about 2 KiB."""
    draw = zlib.crc32(b"size %d" % key)
    return int(40960 ** ((draw % 10000) / 10000.0)) if draw % 16 else draw % 40961


def ttl_of(key, short):
    """One object in sixteen is never fresh, one in four `short` seconds, the others a day."""
    draw = zlib.crc32(b"ttl %d" % key) % 16
    return 0 if draw == 0 else short if draw <= 4 else 86400


class Keystone(Case):
    def setUp(self):
        super().setUp()
        self.program = need_simulator()
        self.journal = self.directory / "decisions.journal"

    def write_trace(self, short_ttl):
        path = self.directory / "trace.csv"
        with open(path, "w") as out:
            out.write("time,key,size,ttl\n")
            for number, key in enumerate(keys()):
                out.write(f"{number},{key},{size_of(key)},{ttl_of(key, short_ttl)}\n")
        return path

    def sim(self, *arguments, expect=0):
        """Runs encore-sim; its report, or its one line where it refuses."""
        ended = subprocess.run([self.program, *map(str, arguments), "--json"], timeout=300,
                               stdin=subprocess.DEVNULL, capture_output=True, text=True,
                               env=clean_environment())
        self.assertEqual(expect, ended.returncode,
                         f"{arguments}\n{ended.stdout[-3000:]}{ended.stderr[-3000:]}")
        return json.loads(ended.stdout) if ended.stdout else ended.stderr

    def proxy(self, workers, **cache):
        return self.encore(workers={"count": workers},
                           cache={"memory": "4MiB", "shards": 4, **cache},
                           admission={"capacity": 4000, "fpr": 0.01, "seed": SEED},
                           log={"access": "", "decisions": str(self.journal)})

    def verify(self, encore, journal=None, expect=0):
        return self.sim("verify", journal or self.journal, "--config", encore.config_path,
                        expect=expect)

    def assert_much_happened(self, stats):
        """The run was worth replaying."""
        self.assertGreater(stats["cache"]["evictions"], 1000)
        self.assertGreater(stats["admission"]["filter"]["rotations"], 4)
        self.assertGreater(stats["cache"]["fresh_hits"], 10_000)

    def test_the_journal_of_a_crowd_is_what_the_kernel_decides(self):
        # Stale objects are not kept: what expires is gone, and counts as expired.
        encore = self.proxy(4, keep_stale="0s", serve_stale_on_error=False)
        report = self.sim("drive", self.write_trace(short_ttl=1), "--proxy", encore.url,
                          "--connections", 24, "--rate", 20_000)
        row = report["rows"][0]
        self.assertEqual((REQUESTS, 0, 0), (row["requests"], row["errors"], row["mismatches"]))
        stats = encore.stats()
        encore.stop()
        self.assert_much_happened(stats)
        self.assertGreater(stats["cache"]["expirations"], 10)

        verified = self.verify(encore)
        self.assertEqual(0, sum(kind["differences"] for kind in verified["rows"]))
        events = {kind["kind"]: kind["events"] for kind in verified["rows"]}
        # A request that joins a transfer in flight looks up too.
        self.assertGreaterEqual(events["lookup"], REQUESTS)
        replayed = verified["kernel"][0]
        for figure in ("evictions", "expirations", "objects"):
            self.assertEqual(stats["cache"][figure], replayed[figure], figure)
        self.assertEqual(stats["admission"]["filter"]["rotations"], replayed["rotations"])
        self.check_that_a_changed_journal_is_found(encore)

    def check_that_a_changed_journal_is_found(self, encore):
        """One bit, somewhere in the middle: a decision differs, or it is no journal any more."""
        journal = self.journal.read_bytes()
        changed = self.directory / "changed.journal"
        codes = []
        for step in range(24):
            at = len(journal) // 2 + step
            changed.write_bytes(journal[:at] + bytes([journal[at] ^ 1]) + journal[at + 1:])
            codes.append(subprocess.run([self.program, "verify", changed, "--config",
                                         encore.config_path], timeout=300,
                                        capture_output=True).returncode)
            if 1 in codes:
                break
        self.assertIn(1, codes)

    def test_a_reverse_proxy_is_driven_as_if_it_were_the_origin(self):
        address = f"127.0.0.1:{free_port()}"
        encore = self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
            origin=[{"servers": [f"http://{address}"]}], log={"access": ""})
        report = self.sim("drive", self.write_trace(short_ttl=86400), "--proxy", encore.url,
                          "--reverse", "--origin-address", address, "--limit", 2000)
        row = report["rows"][0]
        self.assertEqual((2000, 0, 0), (row["requests"], row["errors"], row["mismatches"]))
        # A client has its answer a moment before it is counted.
        eventually(lambda: sum(encore.outcomes().values()) >= 2000, "all are counted")
        outcomes = encore.outcomes()
        self.assertEqual(outcomes, {r["outcome"]: r["proxy"] for r in report["outcomes"]})
        self.assertGreater(outcomes["hit"], 100)

    def test_the_simulator_on_the_trace_says_what_one_worker_does(self):
        encore = self.proxy(1)
        # A TTL that expires immediately, or never while this runs: the clock decides nothing.
        trace = self.write_trace(short_ttl=86400)
        address = f"127.0.0.1:{free_port()}"
        driven, simulated = self.directory / "driven", self.directory / "simulated"
        report = self.sim("drive", trace, "--proxy", encore.url, "--config", encore.config_path,
                          "--origin-address", address, "--outcomes", driven)
        real, simulation = report["rows"]
        self.assertEqual((REQUESTS, 0, 0), (real["requests"], real["errors"], real["mismatches"]))
        self.assertIn(f"{REQUESTS} outcomes compared, 0 differences", " ".join(report["notes"]))
        for figure in ("hits", "bytes", "origin_requests", "origin_validations", "origin_bytes"):
            self.assertEqual(real[figure], simulation[figure], figure)
        outcomes = {row["outcome"] for row in report["outcomes"]}
        self.assertEqual({"hit", "revalidated", "first-request", "second-request"}, outcomes)

        stats = encore.stats()
        encore.stop()
        self.assert_much_happened(stats)
        for figure in ("evictions", "objects", "used_bytes"):
            self.assertEqual(stats["cache"][figure], simulation[figure], figure)
        self.assertEqual(stats["admission"]["filter"]["rotations"], simulation["rotations"])
        verified = self.verify(encore)
        self.assertEqual(0, sum(kind["differences"] for kind in verified["rows"]))

        # The simulator alone, on the trace alone, says the same again ...
        def simulate(config):
            self.sim("drive", trace, "--config", config, "--origin-address", address,
                     "--outcomes", simulated)
            return simulated.read_bytes()
        self.assertEqual(driven.read_bytes(), simulate(encore.config_path))
        # ... and something else as soon as anything of the config is another.
        for section, key, value in (("cache", "memory", "4200KiB"), ("cache", "shards", 2),
                                    ("cache", "eviction", "lru"), ("admission", "capacity", 4096),
                                    ("admission", "seed", SEED[::-1]),
                                    ("admission", "refresh", False)):
            kept = dict(encore.sections[section])
            encore.sections[section][key] = value
            encore.write_config()
            self.assertNotEqual(driven.read_bytes(), simulate(encore.config_path), key)
            encore.sections[section] = kept


if __name__ == "__main__":
    unittest.main()
