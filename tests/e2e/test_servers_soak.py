"""Two servers that are killed, hung, stopped and restarted at random, one at a time, under load for
long: no request fails.

SERVERS_SOAK_SECONDS says for how long (./dev soak --servers); without it a few rounds."""

import os
import random
import time
import unittest

from servers import Clients, ServersCase

SECONDS = float(os.environ.get("SERVERS_SOAK_SECONDS", 0))
ROUNDS = 4  # where no time is given


class Soak(ServersCase):
    def trouble(self, rng, server, clients):
        what = rng.choice(["kill", "hang", "stop"])
        getattr(server, what)()
        clients.wait_for(rng.randrange(1, 300))
        if what == "hang":
            # Longer and shorter than what it takes to notice.
            clients.over.wait(rng.uniform(0, 2))
            server.go_on()
        else:
            server.start()
        # The other one may go as soon as this one is there, whatever the proxy knows of it.
        clients.wait_for(rng.randrange(1, 100))
        return what

    def test_no_request_fails(self):
        seed = random.SystemRandom().randrange(1 << 32)
        rng = random.Random(seed)
        encore = self.reverse({"balance": rng.choice(["round-robin", "least-requests", "hash"])})
        clients = Clients(self, encore.port, seed=seed)
        end, rounds, seen = time.monotonic() + SECONDS, 0, {}
        while time.monotonic() < end if SECONDS else rounds < ROUNDS:
            what = self.trouble(rng, rng.choice(self.servers), clients)
            seen[what] = seen.get(what, 0) + 1
            rounds += 1
        clients.stop()
        metrics = encore.metrics()
        if SECONDS:
            print(f"\n{clients.asked} requests, {len(clients.failed)} failed; {seen}; set aside "
                  f"{metrics['encore_origins_set_aside_total']:.0f} times, failovers "
                  f"{metrics['encore_origin_failovers_total']:.0f}, retries "
                  f"{metrics['encore_origin_retries_total']:.0f}")
        self.assertEqual([], clients.failed[:5], f"{len(clients.failed)} of {clients.asked}, "
                         f"seed {seed}")


if __name__ == "__main__":
    unittest.main()
