"""Purges of three nodes by a real redis-server: they reach all, and survive absence."""

import http.client
import json
import re
import signal
import threading
import time
import unittest
import urllib.parse

from client import get
from fleet import NAMES, FleetCase
from harness import eventually, free_port
from operate import Operator
from upgrading import UpgradingEncore


class Everywhere(FleetCase):
    def test_purges_of_all_kinds_reach_all_nodes_before_they_are_confirmed(self):
        self.start_all()
        n0, n1, n2 = (self.nodes[name] for name in NAMES)
        kinds = [({"url": self.origin.url("/u/1")}, "/u/1"),
                 ({"tag": "t"}, "/t/1"),
                 ({"prefix": self.origin.url("/p/")}, "/p/1"),
                 ({"all": "1"}, "/a/1")]
        for soft in (False, True):
            for target, path in kinds:
                with self.subTest(target=target, soft=soft):
                    self.fill(path, "/kept")
                    self.edit(path)
                    done = self.purge(n1, **target, **({"soft": "1"} if soft else {}))
                    self.assertTrue(done["published"])
                    self.assertEqual(list(NAMES), done["confirmed"])
                    self.assertEqual([], done["unconfirmed"])
                    self.asked.clear()
                    for proxy in (n0, n1, n2):
                        self.check_new(proxy, path)
                        if "all" not in target:
                            self.assertIn("; hit", self.hit(proxy, "/kept"))
                    # A stale object is validated, one that is gone is not known any more.
                    validated = [etag is not None for asked, etag in self.asked if asked == path]
                    self.assertEqual([soft] * 3, validated)
        self.assertEqual(8, self.metric(n1, "purges_published_total"))
        self.assertEqual(8, self.metric(n0, "purges_applied_total"))
        self.assertEqual(0, self.metric(n1, "purges_applied_total"))
        self.assertEqual(0, self.metric(n1, "purges_unconfirmed_total"))
        self.assertEqual(0, self.metric(n2, "gaps_total"))

    def test_a_dry_run_stays_here(self):
        self.start_all()
        self.fill("/a")
        done = self.purge(self.nodes["n0"], tag="a", dry_run="1")
        self.assertNotIn("published", done)
        self.assertEqual(0, self.engine.ask("EXISTS", "encore:purges"))

    def test_purges_by_method_reach_all_nodes(self):
        self.start_all()
        listen = [{"address": f"127.0.0.1:{free_port()}", "mode": "forward",
                   "purge_clients": ["127.0.0.1"]}]
        purger = self.node("n3", listen=listen)
        self.wait_for_all((*NAMES, "n3"))
        self.fill("/m/1", "/b/1")
        self.edit("/m/1", "/b/1")
        done = get(purger.port, self.origin.url("/m/1"), method="PURGE")
        self.assertEqual(200, done.status)
        done = get(purger.port, self.origin.url("/"), method="BAN", fields=[("X-Url", "^/b/[0-9]")])
        self.assertEqual(200, done.status)
        for proxy in self.nodes.values():
            self.check_new(proxy, "/m/1", "/b/1")

    def test_entries_by_hand_are_applied_and_odd_ones_are_refused(self):
        self.start_all()
        self.fill("/a", "/b")
        self.edit("/a")
        self.engine.ask("XADD", "encore:purges", "*", "colour", "red")
        self.engine.ask("XADD", "encore:purges", "*", "url", "\x00\x1b[31m", "prefix", "")
        self.engine.ask("XADD", "encore:purges", "*", "url", "not a URL")
        self.engine.ask("XADD", "encore:purges", "*", "key", "short")
        self.engine.ask("XADD", "encore:purges", "*", "tag", "a")
        for proxy in self.nodes.values():
            self.wait_for_metric(proxy, "purges_applied_total", 1)
            self.assertEqual(4, self.metric(proxy, "entries_refused_total"))
            self.check_new(proxy, "/a")
            self.assertIn("; hit", self.hit(proxy, "/b"))
        # A node of a later version may have purged anything.
        self.edit("/b")
        self.engine.ask("XADD", "encore:purges", "*", "node", "n9", "instance", "1", "new", "1")
        for proxy in self.nodes.values():
            eventually(lambda: self.metric(proxy, "entries_refused_total") == 5, "it is refused")
            eventually(lambda: self.body(proxy, "/b") == "/b 1", "all is stale")

    def test_a_thousand_purges_are_applied_on_all_nodes(self):
        self.start_all(fleet={"wait": "30s"})
        n0 = self.nodes["n0"]
        paths = [f"/x/{number}" for number in range(1000)]
        for proxy in self.nodes.values():
            for path in paths[::50]:
                self.body(proxy, path)
        self.edit(*paths)
        left = iter(paths)
        lock = threading.Lock()
        results = []

        def purge():
            connection = http.client.HTTPConnection("127.0.0.1", n0.admin_port, timeout=60)
            while True:
                with lock:
                    path = next(left, None)
                if path is None:
                    break
                connection.request("POST", "/purge?" + urllib.parse.urlencode(
                    {"url": self.origin.url(path)}))
                results.append(json.loads(connection.getresponse().read()))
            connection.close()

        begin = time.monotonic()
        threads = [threading.Thread(target=purge) for _ in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(f"1,000 purges in {time.monotonic() - begin:.2f} s")
        self.assertEqual(1000, len(results))
        self.assertTrue(all(done["confirmed"] == list(NAMES) for done in results))
        self.assertEqual(1000, self.engine.ask("XLEN", "encore:purges"))
        for name in ("n1", "n2"):
            self.assertEqual(1000, self.metric(self.nodes[name], "purges_applied_total"))
        for proxy in self.nodes.values():
            self.check_new(proxy, *paths[::50])

    def test_nodes_are_listed(self):
        self.start_all()
        n0 = self.nodes["n0"]
        self.fill("/a")
        nodes = eventually(lambda: [node for node in self.fleet(n0)["nodes"]
                                    if node["hit_ratio"] is not None] or None, "ratios are known")
        eventually(lambda: all(node["hit_ratio"] == 0.5 for node in self.fleet(n0)["nodes"]),
                   "each had a miss and a hit")
        nodes = self.fleet(n0)["nodes"]
        self.assertEqual(list(NAMES), [node["node"] for node in nodes])
        self.assertEqual([True, False, False], [node["here"] for node in nodes])
        self.assertRegex(nodes[1]["version"], r"^\d+\.\d+")
        self.assertRegex(nodes[1]["config"], r"^[0-9a-f]{12}$")
        self.nodes["n2"].process.kill()
        self.nodes["n2"].wait_for_exit()
        self.nodes["n2"].expect_exit = -signal.SIGKILL
        # As if it had been a while ago.
        key = "encore:purges:nodes"
        seen = json.loads(self.engine.ask("HGET", key, "n2"))
        self.engine.ask("HSET", key, "n2", json.dumps({**seen, "seen": seen["seen"] - 60_000}))
        self.engine.ask("HSET", key, "old", json.dumps({**seen, "seen": seen["seen"] - 90_000_000}))
        self.engine.ask("HSET", key, "<b>", "[[[[")
        eventually(lambda: self.present(n0) == ["n0", "n1"], "n2 is away")
        self.assertEqual(["n2"], [node["node"] for node in self.fleet(n0)["nodes"]
                                  if not node["present"]])
        eventually(lambda: not self.engine.ask("HEXISTS", key, "old"), "a node of yesterday goes")
        done = self.purge(n0, tag="a")
        self.assertEqual(["n0", "n1"], done["confirmed"])
        self.assertEqual(["n2"], done["unconfirmed"])
        operator = Operator(self, n0.program, "--config", n0.config_path)
        lines = operator.run("fleet", "--text").out.splitlines()
        self.assertEqual(f"engine  {self.engine.url}/0, connected", lines[0])
        self.assertEqual(["node", "state", "version"], lines[1].split()[:3])
        self.assertEqual([["n0", "here"], ["n1", "present"], ["n2", "gone"]],
                         [line.split()[:2] for line in lines[2:]])
        self.assertEqual(self.fleet(n0)["nodes"][1]["config"],
                         operator.run("fleet", "--json").json["nodes"][1]["config"])
        self.assertEqual("purged 0 responses here; confirmed by n0, n1; not by n2\n",
                         operator.run("purge", "--tag", "a", "--text").out)
        self.assertEqual(1, n0.stats()["fleet"]["purges"]["published"] - 1)

    def test_a_node_of_no_fleet_has_none(self):
        alone = self.encore()
        self.assertEqual(404, alone.admin("/fleet")[0])
        self.assertIsNone(alone.stats()["fleet"])
        self.assertNotIn("encore_fleet", alone.admin("/metrics")[1])


class Away(FleetCase):
    """Nodes with disks that miss purges."""

    def disk_node(self, name, **sections):
        state = self.directory / f"state-{name}"
        return self.node(name, state={"directory": str(state)},
                         disk=[{"path": str(self.directory / f"{name}.disk"), "size": "64MiB"}],
                         **sections)

    def start_disks(self, names=("n0", "n1"), **sections):
        for name in names:
            self.disk_node(name, **sections)
        self.wait_for_all(names)

    def kill(self, proxy):
        proxy.process.kill()
        proxy.process.wait()

    def start_again(self, proxy):
        """Starts it, and waits until all that its disk has is in the index."""
        proxy.start()
        eventually(lambda: not any(disk["loading"] for disk in
                                   proxy.stats()["disk"]["disks"]), "the disk is loaded")

    def leave_disk(self, proxy, *paths):
        """The objects are on the disk, and survive a kill."""
        for path in paths:
            self.body(proxy, path)
        proxy.stop()
        self.start_again(proxy)
        for path in paths:
            self.assertIn("; hit", self.hit(proxy, path))
        self.wait_for_all(tuple(self.nodes))

    def test_a_node_that_was_killed_never_serves_what_was_purged_meanwhile(self):
        self.start_disks()
        n0, n1 = self.nodes["n0"], self.nodes["n1"]
        paths = ["/u/1", "/t/1", "/p/1", "/kept"]
        self.leave_disk(n1, *paths)
        self.kill(n1)
        self.edit("/u/1", "/t/1", "/p/1")
        for target in ({"url": self.origin.url("/u/1")}, {"tag": "t"},
                       {"prefix": self.origin.url("/p/")}):
            done = self.purge(n0, **target)
            self.assertEqual((True, ["n0"], ["n1"]),
                             (done["published"], done["confirmed"], done["unconfirmed"]))
        self.start_again(n1)
        self.check_new(n1, "/u/1", "/t/1", "/p/1")
        self.assertIn("; hit", self.hit(n1, "/kept"))
        self.assertEqual(3, self.metric(n1, "purges_applied_total"))
        self.assertEqual(0, self.metric(n1, "gaps_total"))

    def test_purges_are_applied_once(self):
        self.start_disks()
        n0, n1 = self.nodes["n0"], self.nodes["n1"]
        self.leave_disk(n1, "/a")
        self.edit("/a")
        self.assertEqual(["n0", "n1"], self.purge(n0, tag="a")["confirmed"])
        self.check_new(n1, "/a")
        self.leave_disk(n1, "/a")
        self.kill(n1)
        self.start_again(n1)
        self.assertIn("; hit", self.hit(n1, "/a"))
        self.assertEqual(0, self.metric(n1, "purges_applied_total"))

    def test_a_stream_that_was_trimmed_past_a_node_makes_all_stale(self):
        self.start_disks()
        n0, n1 = self.nodes["n0"], self.nodes["n1"]
        self.purge(n0, tag="first")
        self.leave_disk(n1, "/a", "/b")
        self.kill(n1)
        self.edit("/a")
        self.purge(n0, tag="a")
        self.engine.ask("XTRIM", "encore:purges", "MAXLEN", "0")
        self.purge(n0, tag="other")
        self.start_again(n1)
        self.assertIn("all stored objects are stale", n1.output())
        self.assertEqual(1, self.metric(n1, "gaps_total"))
        self.check_new(n1, "/a")
        self.assertNotIn("; hit", self.hit(n1, "/b"))
        # From there on it follows.
        self.fill("/a")
        self.edit("/a")
        self.assertEqual(["n0", "n1"], self.purge(n0, tag="a")["confirmed"])
        self.check_new(n1, "/a")

    def test_a_start_without_the_engine_makes_all_stale_and_follows_later(self):
        self.start_disks()
        n0, n1 = self.nodes["n0"], self.nodes["n1"]
        self.leave_disk(n1, "/a", "/b")
        self.kill(n1)
        self.edit("/a")
        self.purge(n0, tag="a")
        self.engine.freeze()
        self.start_again(n1)
        self.assertIn("all stored objects are stale", n1.output())
        self.check_new(n1, "/a", "/b")
        self.assertIn("; hit", self.hit(n1, "/a"))
        self.edit("/b")
        self.engine.thaw()
        self.check_current(n0)
        self.check_current(n1)
        self.assertEqual(["n0", "n1"], self.purge(n0, tag="b")["confirmed"])
        self.check_new(n1, "/b")

    def test_a_position_of_other_disks_is_none(self):
        self.start_disks()
        n0, n1 = self.nodes["n0"], self.nodes["n1"]
        self.leave_disk(n1, "/a")
        self.kill(n1)
        position = self.directory / "state-n1" / "fleet-position"
        text = position.read_text()
        self.assertRegex(text, r"\ndisk [0-9a-f]{32}\n")
        position.write_text(re.sub(r"disk ([0-9a-f])", lambda found: "disk " + (
            "0" if found[1] != "0" else "1"), text))
        self.start_again(n1)
        self.assertIn("fleet-position is of other disks", n1.output())
        self.assertEqual(1, self.metric(n1, "gaps_total"))
        self.assertNotIn("; hit", self.hit(n1, "/a"))

    def test_a_position_lies_beside_the_disk_if_there_is_no_state(self):
        self.node("n0")
        disk = self.directory / "n1.disk"
        n1 = self.node("n1", disk=[{"path": str(disk), "size": "64MiB"}])
        self.wait_for_all(("n0", "n1"))
        self.purge(self.nodes["n0"], tag="x")
        self.assertTrue((self.directory / "n1.disk.fleet-position").exists())
        self.leave_disk(n1, "/a", "/b")
        self.kill(n1)
        self.edit("/a")
        self.purge(self.nodes["n0"], tag="a")
        self.start_again(n1)
        self.check_new(n1, "/a")
        self.assertIn("; hit", self.hit(n1, "/b"))
        self.assertEqual(0, self.metric(n1, "gaps_total"))


class Upgrades(FleetCase):
    def test_the_new_process_goes_on_where_the_old_one_was(self):
        self.node("n0")
        n1 = self.node("n1", made=UpgradingEncore, upgrade={"idle": "200ms"},
                       state={"directory": str(self.directory / "state")},
                       disk=[{"path": str(self.directory / "n1.disk"), "size": "64MiB"}])
        self.wait_for_all(("n0", "n1"))
        self.fill("/a", "/b")
        self.purge(self.nodes["n0"], tag="x")
        n1.upgrade()
        self.assertEqual(0, self.metric(n1, "gaps_total"))
        self.wait_for_all(("n0", "n1"))
        self.assertIn("; hit", self.hit(n1, "/b"))
        self.edit("/a", "/b")
        self.assertEqual(["n0", "n1"], self.purge(self.nodes["n0"], tag="a")["confirmed"])
        self.check_new(n1, "/a")
        self.assertEqual(["n0", "n1"], self.purge(n1, tag="b")["confirmed"])
        self.check_new(self.nodes["n0"], "/b")
        # With the engine away the new process serves as the old one did.
        self.fill("/c")
        self.engine.freeze()
        n1.upgrade()
        eventually(lambda: "; hit" in self.hit(n1, "/c"), "it is on disk")
        self.engine.thaw()
        self.check_current(n1)
        self.assertEqual(0, self.metric(n1, "gaps_total"))

    def test_a_reload_changes_waiting_times_and_refuses_another_engine(self):
        n0 = self.node("n0")
        n0.sections["fleet"]["late"] = "1s"
        n0.write_config()
        n0.signal(signal.SIGHUP)
        eventually(lambda: "reloaded" in n0.output(), "it is reloaded")
        self.engine.stop()
        eventually(lambda: n0.admin("/readyz")[0] == 503, "fleet.late is in force")
        n0.sections["fleet"]["purges"] = "redis://127.0.0.1:1"
        n0.write_config()
        n0.signal(signal.SIGHUP)
        eventually(lambda: "`encore upgrade` is needed for fleet.purges" in n0.output(),
                   "it is refused")


if __name__ == "__main__":
    unittest.main()
