"""Every admission and every eviction policy in the running proxy: its decision journal, replayed
by encore-sim through the same kernel, has no difference."""

import itertools
import json
import random
import subprocess
import unittest

from client import Client
from harness import Case, clean_environment, need_simulator
from origin import Origin, fresh

ADMISSIONS = ("second-hit", "exact-second-hit", "nth-hit", "probability", "size-threshold",
              "tinylfu", "adaptsize", "always", "never")
EVICTIONS = ("sieve", "lru", "fifo", "s3-fifo", "slru", "2q", "arc", "lfu", "gdsf", "w-tinylfu",
             "lhd")
REQUESTS = 500
OBJECTS = 150


def answer(exchange):
    number = int(exchange.request.target.rpartition("/")[2])
    return fresh(b"x" * (200 + number * 97 % 3000))


class Policies(Case):
    def test_the_journal_of_every_policy_replays_without_a_difference(self):
        sim = need_simulator()
        origin = Origin(self, default=answer)
        pairs = zip(EVICTIONS, itertools.cycle(ADMISSIONS))
        for number, (eviction, admission) in enumerate(pairs):
            with self.subTest(eviction=eviction, admission=admission):
                self.verify(sim, origin, number, eviction, admission)

    def test_the_journal_of_probation_replays_without_a_difference(self):
        sim = need_simulator()
        origin = Origin(self, default=answer)
        disk = [{"path": str(self.directory / "disk"), "size": "4MiB", "segment": "256KiB"}]
        self.verify(sim, origin, 0, "sieve", "probation", disk=disk)

    def verify(self, sim, origin, number, eviction, admission, **sections):
        journal = self.directory / f"decisions-{number}"
        encore = self.encore(
            **sections, cache={"memory": "64KiB", "shards": 2, "eviction": eviction},
            admission={"policy": admission, "capacity": 50, "min_requests": 3,
                       "probability": 0.5, "size_threshold": "2KiB"},
            workers={"count": 1}, log={"decisions": str(journal)})
        # Few objects are requested often; they do not all fit together.
        draw = random.Random(number)
        with Client(encore.port) as client:
            for _ in range(REQUESTS):
                path = min(draw.randrange(OBJECTS), draw.randrange(OBJECTS))
                response = client.ask(origin.url(f"/{path}"))
                self.assertEqual(200, response.status)
                self.assertEqual(200 + path * 97 % 3000, len(response.body))
        decided = encore.stats()["admission"]["decisions"]
        encore.stop()
        verified = subprocess.run([sim, "verify", journal, "--json", "--no-timing"],
                                  env=clean_environment(), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=120)
        text = verified.stdout.decode(errors="replace")
        self.assertEqual(0, verified.returncode, text[-2000:])
        report = json.loads(text)
        events = {row["kind"]: row for row in report["rows"]}
        self.assertEqual(REQUESTS, events["lookup"]["events"], text)
        self.assertEqual(0, sum(row["differences"] for row in events.values()), text)
        kernel = report["kernel"][0]
        if admission != "never":
            self.assertGreater(events["commit"]["events"], 0, decided)
            self.assertGreater(kernel["evictions"], 0, decided)


if __name__ == "__main__":
    unittest.main()
