"""Two servers that are killed, hung, stopped and restarted at random, one at a time, under load for
long: no request fails. Once with clients of ours, once with encore-sim drive, whose origin is
behind two nginx and which checks each byte.

SERVERS_SOAK_SECONDS says for how long (./dev soak --servers), each of both; without it a few
rounds."""

import json
import os
import random
import subprocess
import time
import unittest

from harness import clean_environment, eventually, free_port, need_simulator
from servers import Clients, Server, ServersCase

SECONDS = float(os.environ.get("SERVERS_SOAK_SECONDS", 0))
ROUNDS = 4  # if no time is given


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


# A proxy in front of drive's origin that stores nothing.
PASS = """
  location / {{ proxy_pass http://{origin}; proxy_http_version 1.1; expires off;
                proxy_set_header Connection ""; proxy_set_header Host $http_host; }}
"""
RATE = 1000  # requests a second


class Driven(ServersCase):
    def start_servers(self):
        self.origin = f"127.0.0.1:{free_port()}"
        location = PASS.format(origin=self.origin)
        self.servers = [Server(self, name, location) for name in ("one", "two")]

    def write_trace(self, rng, count):
        """Most is asked for once; sizes are such that a server has sent an answer or has not."""
        trace = self.directory / "trace.csv"
        with trace.open("w", encoding="ascii") as file:
            file.write("time,key,size\n")
            for number in range(count):
                key = rng.randrange(200) if rng.random() < 0.2 else 1000 + number
                file.write(f"{number},{key},{1 + key * 7919 % 6000}\n")
        return trace

    def test_no_request_of_drive_fails(self):
        program = need_simulator()
        seed = random.SystemRandom().randrange(1 << 32)
        rng = random.Random(seed)
        encore = self.reverse({"balance": rng.choice(["round-robin", "least-requests", "hash"])})
        trace = self.write_trace(rng, int(RATE * (SECONDS or 6)))
        drive = subprocess.Popen(
            [program, "drive", trace, "--json", "--proxy", encore.url, "--reverse",
             "--origin-address", self.origin, "--rate", str(RATE), "--connections", "16"],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=clean_environment())
        self.addCleanup(drive.kill)
        eventually(lambda: self.asked(encore) > 0, "it has begun")
        rounds = 0
        while drive.poll() is None:
            self.trouble(encore, drive, rng)
            rounds += 1
        out, err = drive.communicate(timeout=60)
        self.assertEqual(0, drive.returncode, f"seed {seed}: {out} {err}")
        row = json.loads(out)["rows"][0]
        metrics = encore.metrics()
        if SECONDS:
            print(f"\n{row['requests']} requests of drive, {row['errors']} failed, "
                  f"{row['mismatches']} wrong; {rounds} times a server went; set aside "
                  f"{metrics['encore_origins_set_aside_total']:.0f} times, failovers "
                  f"{metrics['encore_origin_failovers_total']:.0f}, retries "
                  f"{metrics['encore_origin_retries_total']:.0f}")
        self.assertEqual((0, 0), (row["errors"], row["mismatches"]), f"seed {seed}")
        self.assertGreater(rounds, 2)
        self.assertGreater(metrics["encore_origin_failovers_total"], 0)

    def asked(self, encore):
        return sum(encore.outcomes().values())

    def wait_for(self, encore, drive, count):
        goal = self.asked(encore) + count
        eventually(lambda: drive.poll() is not None or self.asked(encore) >= goal,
                   f"{count} more requests")

    def trouble(self, encore, drive, rng):
        server, what = rng.choice(self.servers), rng.choice(["kill", "hang", "stop"])
        getattr(server, what)()
        self.wait_for(encore, drive, rng.randrange(1, 1000))
        server.go_on() if what == "hang" else server.start()
        self.wait_for(encore, drive, rng.randrange(1, 300))


if __name__ == "__main__":
    unittest.main()
