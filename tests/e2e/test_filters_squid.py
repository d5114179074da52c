"""A real Squid as sibling: it fetches our digest and sends us the requests that it predicts."""

import hashlib
import http.client
import itertools
import json
import math
import re
import struct
import unittest

from harness import Case, eventually, free_port
from origin import Origin, fresh
from squid import Squid

HELD, ASKED, OTHERS = 20000, 1000, 2000
# Squid 5.7 misreads the first page of its own reply: with a digest of 625 bytes, all of whose bits
# are right, it predicted 171 of 1,000 URLs. To see how it reads a digest, use URLs whose bits all
# lie behind that page.
PAGE = 4096
SQUID_EXTRA = """
cache_peer 127.0.0.1 sibling {port} 0 no-query proxy-only name=encore
debug_options ALL,1 44,3 72,2
minimum_direct_rtt 0
minimum_direct_hops 0
"""


class SquidSibling(Case):
    def start_encore(self, **filters):
        self.origin = Origin(self, {}, default=fresh(b"an object"))
        self.encore_port = free_port()
        self.proxy = self.encore(
            listen=[{"address": f"127.0.0.1:{self.encore_port}", "mode": "forward"}],
            admission={"policy": "always"},
            filters={"publish": ["resident"], "squid_digest": True, "resident_capacity": HELD,
                     **filters})

    def ask(self, port, paths):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for path in paths:
            connection.request("GET", self.origin.url(path))
            self.assertEqual(b"an object", connection.getresponse().read())
        connection.close()

    def digest(self, port, host=None):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        connection.request("GET", "/squid-internal-periodic/store_digest")
        answer = connection.getresponse()
        answer.content = answer.read()
        connection.close()
        return answer

    def test_squid_sends_the_requests_that_our_digest_predicts(self):
        self.start_encore()
        every = [f"/held/{i}" for i in range(HELD)]
        self.ask(self.encore_port, every)
        digest = self.digest(self.encore_port).content
        mask = digest[128:]

        def clean(path):
            digest = hashlib.md5(b"\x01" + self.origin.url(path).encode()).digest()
            return all(word % (8 * len(mask)) >= 8 * PAGE for word in struct.unpack(">4I", digest))
        held = list(filter(clean, every))[:ASKED]
        others = list(itertools.islice(
            filter(clean, (f"/other/{i}" for i in itertools.count())), OTHERS))
        squid = Squid(self, SQUID_EXTRA.format(port=self.encore_port))
        # The first request that might go to a sibling has Squid fetch its digest.
        self.ask(squid.port, ["/first"])
        eventually(lambda: re.search(r"peerDigestSwapIn|[Rr]eceived valid digest", squid.log()),
                   "Squid has our digest")
        origin_before = self.origin.count()
        self.ask(squid.port, held)
        self.assertEqual(origin_before, self.origin.count())
        self.assertEqual(ASKED, squid.log().count("adding CD_SIBLING_HIT"))
        eventually(lambda: self.proxy.outcomes().get("hit") == ASKED, "all are hits")
        self.ask(squid.port, others)

        predicted = [line for line in squid.log().splitlines() if "adding CD_SIBLING_HIT" in line]
        # A wrong prediction is counted where it arrives, and costs a 504.
        in_vain = self.proxy.outcomes().get("only-if-cached", 0)
        self.assertEqual(ASKED + in_vain, len(predicted))
        fill = sum(bin(byte).count("1") for byte in mask[PAGE:]) / (8 * len(mask[PAGE:]))
        rate, theory = fill ** 4, (1 - math.exp(-4 / 5)) ** 4
        sigma = math.sqrt(OTHERS * rate * (1 - rate))
        print(f"\nSquid: {ASKED} of {ASKED} held predicted; of {OTHERS} others {in_vain} in vain: "
              f"{in_vain / OTHERS:.4f} measured, {rate:.4f} by the bits, {theory:.4f} by theory "
              f"(5 bits an entry, k = 4)")
        for mark in ("got digest cblock", "e-cnt", "Done! Got", "adding CD_SIBLING_HIT"):
            print("cache.log: " + next(l for l in squid.log().splitlines() if mark in l))
        for outcome in ("published", "hit", "only-if-cached"):
            print("access log: " + json.dumps([
                record for record in self.proxy.access_records(HELD + ASKED + 2 + in_vain)
                if record["outcome"] == outcome][-1]))
        self.assertLess(abs(in_vain - OTHERS * rate), 4.5 * sigma)
        self.assertLess(abs(fill - (1 - math.exp(-4 / 5))),
                        4.5 * math.sqrt(fill * (1 - fill) / (8 * len(mask[PAGE:]))))

    def test_only_where_it_is_allowed(self):
        self.start_encore(squid_digest=False)
        self.assertEqual(400, self.digest(self.encore_port).status)
        self.proxy.stop()
        self.start_encore(allow_clients=["192.0.2.1"])
        self.assertEqual(403, self.digest(self.encore_port).status)
        self.proxy.stop()
        self.start_encore()
        answer = self.digest(self.encore_port)
        self.assertEqual((200, "application/cache-digest"),
                         (answer.status, answer.getheader("Content-Type")))
        self.assertEqual(128 + HELD * 5 // 8, len(answer.content))


if __name__ == "__main__":
    unittest.main()
