"""Three nodes with disks, a Redis engine and HAProxy under load, while pages are edited and purged, nodes are
killed, frozen and replaced, and the engine is killed and frozen. No response is wrong, none is older than a
confirmed purge, and only those fail whose node was killed meanwhile.

FLEET_SOAK_SECONDS says for how long (./dev soak --fleet); without it a few rounds."""

import http.client
import json
import os
import pathlib
import random
import signal
import threading
import time
import unittest
import urllib.parse

from engine import Engine
from fleet import NAMES, FleetCase
from haproxy import said_of
from harness import DEADLINE, eventually, free_port, need_program
from recipes import shipped
from upgrading import UpgradingEncore

SECONDS = float(os.environ.get("FLEET_SOAK_SECONDS", 0))
ROUNDS = 6  # if no time is given
HOST = "www.example"
PAGES, CLIENTS, EDITORS = 300, 6, 2
# Requests until a node that was away is asked for what it held.
AFTER = 100


class Node(UpgradingEncore):
    """A node that may be killed with all of its processes, and started again with its disk."""

    frozen = False

    def processes(self):
        """Those of encore that have not ended: of a chain of upgrades the last ones."""
        return [pid for pid in {*self.replaced, self.serving} if pathlib.Path(f"/proc/{pid}/exe").exists()]

    def kill(self):
        for pid in self.processes():
            self.killed.add(pid)
            os.kill(pid, signal.SIGKILL)
        self.process.wait(DEADLINE)
        for pid in {*self.replaced, self.serving} - {self.process.pid}:
            self.exit_code(pid)
        self.replaced, self.process = [], None

    def freeze(self):
        os.kill(self.serving, signal.SIGSTOP)
        self.frozen = True

    def thaw(self):
        if self.frozen:
            os.kill(self.serving, signal.SIGCONT)
            self.frozen = False

    def stop(self):
        self.thaw()
        super().stop()


class Watched:
    """Pages with their versions, and how new each has to be. Thread-safe."""

    def __init__(self):
        self.lock = threading.Lock()
        self.versions, self.floors, self.down = {}, {}, set()
        self.kills = []  # (begin, end) of each, by time.monotonic()
        self.purges = self.repeated = self.asked = self.hits = 0
        self.failed, self.cut, self.wrong, self.old = [], [], [], []
        self.fault = "none"  # the present one

    def edit(self, path):
        with self.lock:
            self.versions[path] = self.versions.get(path, 0) + 1
            return self.versions[path]

    def confirm(self, path, version, unconfirmed):
        """From now on nothing older may be served, if all nodes that run have confirmed."""
        with self.lock:
            if not set(unconfirmed) <= self.down:
                self.repeated += 1
                return False
            self.floors[path] = max(version, self.floors.get(path, 0))
            self.purges += 1
            return True

    def floor(self, path):
        with self.lock:
            return self.floors.get(path, 0)

    def note(self, began, path, floor, fault, answer):
        with self.lock:
            self.asked += 1
            if fault:
                # A kill that had ended before the request cannot have cut it.
                killed = any(end is None or end >= began for _, end in self.kills)
                (self.cut if killed else self.failed).append(f"{fault} ({self.fault})")
                return
            self.hits += "; hit" in (answer.getheader("Cache-Status") or "")
            name, _, version = answer.text.rpartition(" ")
            if name != path or not version.isdigit():
                self.wrong.append(f"{path}: {answer.text[:80]!r}")
            elif int(version) < floor:
                self.old.append(f"{path}: {version} is older than {floor}, by {answer.getheader('Via')}")


class Soak(FleetCase):
    def setUp(self):
        super().setUp()
        self.engine.stop()
        # A confirmed purge survives its end.
        self.engine = Engine(self, "--appendonly", "yes", "--appendfsync", "always")
        self.watched = Watched()
        self.versions = self.watched.versions
        self.over = threading.Event()
        self.threads = []
        self.seed = random.SystemRandom().randrange(1 << 32)
        for name in NAMES:
            self.node(name, made=Node,
                      listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse",
                               "trusted_proxies": ["127.0.0.1"]}],
                      origin=[{"servers": [self.origin.url("")]}], http={"via": name},
                      disk=[{"path": str(self.directory / f"disk-{name}"), "size": "64MiB", "segment": "1MiB"}],
                      state={"directory": str(self.directory / f"state-{name}")},
                      upgrade={"idle": "1s"}, timeouts={"drain": "10s"}, fleet={"wait": "2s"})
        self.wait_for_all()
        self.port = free_port()
        config = self.directory / "haproxy.cfg"
        config.write_text(f"global\n  stats socket {self.directory}/stats\n" + shipped(
            "fleet-haproxy.cfg", ("bind :80", f"bind 127.0.0.1:{self.port}"),
            ("  user haproxy\n  group haproxy\n", ""), *(
            (f"10.0.0.2{number + 1}:8080 id {number + 1} check port 3130",
             f"127.0.0.1:{node.port} id {number + 1} check port {node.admin_port}")
            for number, node in enumerate(self.nodes.values()))))
        self.start([need_program("haproxy"), "-db", "-f", config], self.port)

    def begin(self):
        for number in range(CLIENTS):
            self.run_thread(self.ask_on, random.Random(self.seed + number))
        for number in range(EDITORS):
            self.run_thread(self.edit_on, random.Random(self.seed - 1 - number), number)

    def run_thread(self, function, *arguments):
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        self.threads.append(thread)
        self.addCleanup(self.over.set)
        thread.start()

    def ask_on(self, rng):
        connection = None
        while not self.over.is_set():
            path = f"/page/{int(PAGES ** rng.random()) - 1}"  # some much more than others
            floor, began = self.watched.floor(path), time.monotonic()
            answer, fault = None, None
            if connection is None:
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=90)
            try:
                connection.request("GET", path, headers={"Host": HOST})
                answer = connection.getresponse()
                answer.text = answer.read().decode()
                if answer.status != 200:
                    fault = f"{path}: {answer.status} {answer.text[:80]!r}"
            except (OSError, http.client.HTTPException) as error:
                fault = f"{path}: {error!r}"
            if fault or answer.will_close:
                connection.close()
                connection = None
            self.watched.note(began, path, floor, fault, answer)

    def edit_on(self, rng, which):
        """Each editor has pages of its own, so that the versions of a page are confirmed in order."""
        while not self.over.is_set():
            path = f"/page/{rng.randrange(PAGES // EDITORS) * EDITORS + which}"
            version = self.watched.edit(path)
            target = rng.choice([("url", f"http://{HOST}{path}"), ("tag", path.rpartition("/")[2]),
                                 ("prefix", f"http://{HOST}{path}")])
            while not self.over.is_set():
                status, text = 0, ""
                try:
                    status, text = rng.choice(list(self.nodes.values())).admin(
                        "/purge?" + urllib.parse.urlencode([target]), method="POST")
                except OSError:
                    pass  # its node was killed, or is frozen
                if status == 200 and (said := json.loads(text))["published"] and self.watched.confirm(
                        path, version, said["unconfirmed"]):
                    break
                self.over.wait(0.02)

    def wait_for(self, count):
        goal = self.watched.asked + count
        eventually(lambda: self.watched.asked >= goal, f"{count} more requests", 90)

    def wait_for_purge(self):
        goal = self.watched.purges + 1
        eventually(lambda: self.watched.purges >= goal, "a purge is confirmed", 90)

    def wait_for_nodes(self):
        """Faults of nodes come one at a time, as HAProxy sees it."""
        eventually(lambda: set(said_of(self.directory / "stats", "encore", "status").values()) == {"UP"},
                   "HAProxy sees all nodes", 90)

    def kill(self, rng, name):
        node = self.nodes[name]
        kill = [time.monotonic(), None]
        with self.watched.lock:
            self.watched.kills.append(kill)
        node.kill()
        with self.watched.lock:
            self.watched.down.add(name)
            kill[1] = time.monotonic()
        self.wait_for(rng.randrange(1, 300))
        with self.watched.lock:
            self.watched.down.discard(name)
        node.start()
        self.wait_for(AFTER)

    def freeze(self, rng, name):
        node = self.nodes[name]
        node.freeze()
        self.over.wait(rng.uniform(0.1, 3))
        node.thaw()

    def upgrade(self, _, name):
        node = self.nodes[name]
        eventually(lambda: node.stats()["predecessors"] < 3, "an old process has ended", 90)
        node.upgrade()

    def kill_engine(self, rng, _):
        self.engine.stop()
        self.wait_for(rng.randrange(1, 300))
        self.engine.start()

    def freeze_engine(self, rng, _):
        self.engine.freeze()
        self.over.wait(rng.uniform(0.1, 3))
        self.engine.thaw()

    def test_nothing_is_wrong_and_nothing_is_older_than_a_purge(self):
        rng = random.Random(self.seed)
        began, seen, rounds = time.monotonic(), {}, 0
        self.begin()
        faults = [self.kill, self.freeze, self.upgrade, self.kill_engine, self.freeze_engine]
        while time.monotonic() < began + SECONDS if SECONDS else rounds < ROUNDS:
            fault = rng.choice(faults) if SECONDS else faults[rounds % len(faults)]
            self.wait_for_nodes()
            name = rng.choice(NAMES)
            self.watched.fault = f"{fault.__name__} of {name}"
            fault(rng, name)
            self.wait_for(rng.randrange(1, 200))
            self.wait_for_purge()
            seen[fault.__name__] = seen.get(fault.__name__, 0) + 1
            rounds += 1
        for proxy in self.nodes.values():
            self.check_current(proxy)
        self.wait_for_purge()
        self.over.set()
        for thread in self.threads:
            thread.join(120)
        watched = self.watched
        print(f"\nseed {self.seed}, {time.monotonic() - began:.0f} s: {watched.asked} requests, {watched.hits} hits, "
              f"{watched.purges} purges confirmed, {watched.repeated} repeated; {seen}; {len(watched.failed)} failed, "
              f"{len(watched.cut)} cut by a kill, {len(watched.wrong)} wrong, {len(watched.old)} older than a "
              f"confirmed purge; gaps {[self.metric(node, 'gaps_total') for node in self.nodes.values()]}", flush=True)
        self.assertEqual(([], [], []), (watched.failed[:5], watched.wrong[:5], watched.old[:5]))
        self.check_each_node()

    def check_each_node(self):
        """Pages of every node are new enough, also those that HAProxy requests from others."""
        for name, node in self.nodes.items():
            for path, floor in self.watched.floors.items():
                connection = http.client.HTTPConnection("127.0.0.1", node.port, timeout=30)
                connection.request("GET", path, headers={"Host": HOST})
                text = connection.getresponse().read().decode()
                connection.close()
                self.assertGreaterEqual(int(text.rpartition(" ")[2]), floor, f"{path} of {name}")


if __name__ == "__main__":
    unittest.main()
