"""A disk under load for long: bodies of all sizes, clients that leave or read slowly, changes, purges.
Every answer is checked; memory, descriptors and what waits to be written stay bounded.

DISK_SOAK_SECONDS says for how long (./dev soak --disk); without it a few seconds' worth."""

import os
import pathlib
import random
import threading
import time

from client import Client, NoResponse, field
from harness import SLOWDOWN, carries
from origin import fresh
from test_disk_large import LargeCase
from test_disk_tier import content

KIB, MIB = 1 << 10, 1 << 20
SIZES = [0, 900, 9000, 40 * KIB, 70000, 300000, 5 * MIB, 9 * MIB]
WEIGHTS = [2, 10, 10, 8, 8, 4, 1, 1]
CLIENTS = 6
STEPS = 60  # steps of each client, if no time is given
MEMORY = 32 * MIB
# Memory in addition to the cache: records that wait for the disk (64 MiB), bytes on their way, and
# the program itself, to which the address sanitizer adds its quarantine of freed memory.
BESIDE = 64 * MIB + CLIENTS * 8 * MIB + 64 * MIB
SANITIZER = 512 * MIB
DESCRIPTORS = 100


class Soak(LargeCase):
    def setUp(self):
        super().setUp()
        self.bodies = {}
        self.faults = []
        self.over = threading.Event()

    def body(self, name, version):
        with self.lock:
            known = self.bodies.get((name, version))
        if known is None:
            known = content(name, version, self.size(name))
            with self.lock:
                self.bodies = {k: v for k, v in self.bodies.items()
                               if k[0] != name or k[1] >= version - 2}
                self.bodies[name, version] = known
        return known

    def answer(self, exchange):
        name = exchange.request.target
        with self.lock:
            version = self.versions.get(name, 1)
        exchange.send(fresh(self.body(name, version), 6000, ETag=f'"{version}"'))

    def one(self, rng, name):
        """A request as some client makes it; what is answered is a version of what it asks for."""
        with Client(self.proxy.port, timeout=60 * SLOWDOWN) as client:
            client.request(self.origin.url(name))
            what = rng.random()
            if what < 0.05:
                client.read_head()
                return client.reset() if what < 0.02 else None
            if what < 0.1:
                first = client.read_exactly(1)
                time.sleep(rng.random() * 0.05)  # it is slow: that is what is tried
                client.buffer = first + client.buffer
            answer = client.read_response()
            if answer.status != 200:
                raise AssertionError(f"{name}: {answer.status}")
            version = int(field(answer, "ETag").strip('"'))
            if answer.body != self.body(name, version):
                raise AssertionError(f"{name}: another body than version {version}")

    def load(self, seed, names, until):
        rng = random.Random(seed)
        step = 0
        try:
            while not self.over.is_set() and (time.monotonic() < until or step < STEPS):
                step += 1
                # Few are asked for often, most rarely.
                name = names[min(int(rng.paretovariate(0.6)) - 1, len(names) - 1)]
                what = rng.random()
                if what < 0.95:
                    self.one(rng, name)
                elif what < 0.98:
                    with self.lock:
                        self.versions[name] = self.versions.get(name, 1) + 1
                else:
                    self.purge(rng.choice(["url=", "prefix="]) + self.origin.url(name))
        except (AssertionError, NoResponse, OSError) as fault:
            self.faults.append(fault)
            self.over.set()

    def look(self, seen):
        seen["resident"].append(self.proxy.resident_bytes())
        seen["descriptors"].append(
            len(list(pathlib.Path(f"/proc/{self.proxy.process.pid}/fd").iterdir())))
        metrics = self.proxy.metrics()
        seen["waiting"].append(metrics['encore_disk_waiting_bytes{disk="0"}'])

    def test_memory_descriptors_and_the_queue_stay_bounded(self):
        seconds = float(os.environ.get("DISK_SOAK_SECONDS", 0))
        seed = int(os.environ.get("DISK_SEED", random.randrange(10**9)))
        rng = random.Random(seed)
        # A disk so small that it turns again and again; all clients together read a quarter of it
        # in large bodies at any time.
        self.start_proxy(size="320MiB", memory=f"{MEMORY}B")
        names = [f"/s/{i}-{rng.choices(SIZES, WEIGHTS)[0]}" for i in range(3000 if seconds else 150)]
        until = time.monotonic() + seconds
        threads = [threading.Thread(target=self.load, args=(seed + i, names, until))
                   for i in range(CLIENTS)]
        seen = {"resident": [], "descriptors": [], "waiting": []}
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            self.look(seen)
            self.over.wait(1 if seconds else 0.1)
            if seconds and len(seen["resident"]) % 60 == 0:
                print({name: max(values[-60:]) for name, values in seen.items()}, flush=True)
        for thread in threads:
            thread.join()
        self.assertEqual([], self.faults, f"seed {seed}")
        bound = MEMORY + BESIDE + (SANITIZER if carries("__asan_init") else 0)
        self.assertLess(max(seen["resident"]), bound, f"seed {seed}")
        self.assertLess(max(seen["descriptors"]), DESCRIPTORS, f"seed {seed}")
        self.assertLess(max(seen["waiting"]), 2 * 64 * MIB, f"seed {seed}")
        if seconds:
            # Memory that grows for ever would show between the halves.
            half = len(seen["resident"]) // 2
            early = max(seen["resident"][half // 2:half])
            self.assertLess(max(seen["resident"][half:]), 1.2 * early + 16 * MIB, f"seed {seed}")
            metrics = self.proxy.metrics()
            print({name: value for name, value in metrics.items() if "encore_disk_" in name})
