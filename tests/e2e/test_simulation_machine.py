"""The figures of encore-sim about its own speed and memory are true."""

import json
import resource
import subprocess
import unittest

from harness import Case, DEADLINE, clean_environment, need_simulator, sanitized


class Machine(Case):
    def setUp(self):
        super().setUp()
        self.program = need_simulator()

    def run_program(self, *arguments):
        """(standard output, processor seconds that it used)"""
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = subprocess.run([self.program, *arguments], capture_output=True, text=True, check=True,
                               env=clean_environment(TMPDIR=self.directory), timeout=10 * DEADLINE)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return ended.stdout, (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)

    def replay(self, requests, *more):
        trace = self.directory / f"scan-{requests}.bin"
        if not trace.exists():
            self.run_program("generate", "scan", "--requests", str(requests), "-o", str(trace))
        out, seconds = self.run_program("replay", str(trace), "--cache-size", "1MiB",
                                        "--admission", "always", "--json", *more)
        return json.loads(out), seconds

    def test_the_speed_is_that_of_all_processor_time(self):
        report, seconds = self.replay(1_000_000, "--eviction", "lru,sieve")
        machine = report["machine"]
        # Its own figure is taken just before the end, and the clocks are of different grain.
        self.assertLess(abs(machine["cpu_seconds"] - seconds), 0.05 + seconds / 10)
        self.assertAlmostEqual(2_000_000 / machine["cpu_seconds"],
                               machine["requests_per_cpu_second"], delta=1)
        alone = [run["run_requests_per_cpu_second"] for run in machine["runs"]]
        self.assertEqual(min(alone), machine["run_requests_per_cpu_second"])
        # Two runs and the reading are within the whole.
        spent = sum(1_000_000 / rate for rate in alone)
        self.assertLess(spent, machine["cpu_seconds"])

    def test_memory_grows_by_what_is_said_of_distinct_objects(self):
        """Nothing else of a streaming run grows: neither by requests nor by a cache that is full."""
        if sanitized():
            self.skipTest("a sanitizer holds memory of its own")
        peaks = {}
        for requests in (1_000_000, 3_000_000):
            machine = self.replay(requests, "--eviction", "lru", "--remember-objects", "0")[0]["machine"]
            self.assertEqual(requests, machine["distinct_objects"])
            # 32 each, and 4 for each slot of a table that is between 3/8 and 3/4 full.
            self.assertGreater(machine["bytes_per_distinct_object"], 32 + 4 / 0.75)
            self.assertLess(machine["bytes_per_distinct_object"], 32 + 4 / 0.375 + 0.5)
            peaks[requests] = machine["memory_peak_bytes"]
        # One slot table more is there only before the other is filled; a bit says what was stored.
        growth = (peaks[3_000_000] - peaks[1_000_000]) / 2_000_000
        self.assertLess(growth, 32 + 4 / 0.375 + 1)

    def test_memory_follows_the_cache_and_not_the_distinct_objects(self):
        if sanitized():
            self.skipTest("a sanitizer holds memory of its own")
        peaks = {}
        for requests in (1_000_000, 3_000_000):
            report = self.replay(requests, "--eviction", "lru", "--remember-objects", "65536")[0]
            self.assertAlmostEqual(requests, report["rows"][0]["footprint_objects"], delta=requests / 10)
            peaks[requests] = report["machine"]["memory_peak_bytes"]
        # The table of three millions is 130 MB. The peak is never below that of this program at the fork.
        self.assertLess(peaks[3_000_000] - peaks[1_000_000], 1_000_000)
        self.assertLess(peaks[3_000_000], 100_000_000)


if __name__ == "__main__":
    unittest.main()
