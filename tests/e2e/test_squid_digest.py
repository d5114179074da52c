"""The digest that a real Squid publishes is read as Squid means it, and written as it writes it."""

import http.client
import json
import math
import unittest

from encore_filter import EncoreFilter
from harness import Case, eventually
from origin import Origin, fresh
from squid import Squid

OBJECTS = 600
OTHERS = 20000


class SquidDigest(Case):
    def setUp(self):
        super().setUp()
        self.filter = EncoreFilter(self)
        self.squid = Squid(self)
        self.origin = Origin(self, {f"/{i}": fresh(f"object {i}".encode()) for i in range(OBJECTS)})
        self.urls = [self.origin.url(f"/{i}") for i in range(OBJECTS)]
        self.missing = self.urls
        self.ask_for_missing()

    def ask_for_missing(self):
        client = http.client.HTTPConnection("127.0.0.1", self.squid.port, timeout=60)
        for url in self.missing:
            client.request("GET", url)
            answer = client.getresponse()
            answer.read()
            self.assertEqual(200, answer.status, url)
        client.close()

    def fetched(self):
        """Returns whether the present digest has every object. Missing ones are requested once
        more: Squid may have chosen not to write them to its disk."""
        ended = self.filter.ended(
            "fetch", self.squid.url("/squid-internal-periodic/store_digest"), "-o", "digest")
        if ended.returncode != 0:  # it is being built
            self.assertIn(b"answered with 404", ended.stderr)
            return False
        self.assertIn(b", squid-digest\n", ended.stdout)
        ended = self.filter.ended("test", "-v", "digest", keys=self.urls)
        self.missing = ended.stdout.decode().split()
        self.ask_for_missing()
        return not self.missing

    def test_what_it_has_is_claimed_and_what_it_has_not_at_the_rate_of_its_bits(self):
        try:
            eventually(self.fetched, "a digest of all objects")
        except AssertionError as error:
            raise AssertionError(f"{error}; without {self.missing}\n{self.squid.log()}") from error
        self.assertEqual(f"{OBJECTS}\n", self.filter.run("test", "-c", "digest", keys=self.urls))
        self.assertIn("Local cache digest enabled", self.squid.log())

        info = json.loads(self.filter.run("info", "--json", "digest"))
        digest = (self.directory / "digest").read_bytes()
        self.assertEqual(
            ("plain", "squid-digest", "squid-md5", (len(digest) - 128) * 8, 4),
            tuple(info[key] for key in ("kind", "form", "hash", "bits", "hashes")))
        self.assertEqual(int.from_bytes(digest[4:8], "big"), info["capacity"])
        # Theory at five bits an entry, full.
        self.assertAlmostEqual(0.092, info["fpr_capacity"], delta=0.001)
        self.assertGreater(info["keys_estimated"], 0.95 * OBJECTS)

        others = [self.origin.url(f"/other/{i}") for i in range(OTHERS)]
        ended = self.filter.ended("test", "-c", "digest", keys=others)
        claimed = int(ended.stdout)
        expected = OTHERS * info["fpr_now"]
        sigma = math.sqrt(expected * (1 - info["fpr_now"]))
        self.assertLess(abs(claimed - expected), 4.5 * sigma,
                        f"{claimed} claimed, {expected:.0f} expected")

        self.filter.run("convert", "digest", "--to", "encore", "-o", "ours")
        self.filter.run("convert", "ours", "--to", "squid-digest", "-o", "again")
        again = (self.directory / "again").read_bytes()
        # Its count includes more than can be seen; we count the visible ones.
        self.assertEqual(digest[:8] + digest[12:], again[:8] + again[12:])
        self.assertLessEqual(int.from_bytes(again[8:12], "big"), int.from_bytes(digest[8:12], "big"))


if __name__ == "__main__":
    unittest.main()
