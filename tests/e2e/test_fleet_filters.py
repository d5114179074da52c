"""A node that joins a fleet adopts the admission filter of a node that is there, by itself: a real
redis-server, nodes that give, and nodes that lie, hang or differ."""

import json
import signal
import subprocess
import threading

from client import Client, field
from fleet import FleetCase
from harness import Encore, eventually, need_program
from upgrading import UpgradingEncore

NODES = "encore:purges:nodes"
OBJECTS = 40
FUTURE_MS = 3_600_000  # a presence of a clock that is ahead stays as it is


class FiltersCase(FleetCase):
    def cache(self, name, made=Encore, admission=None, fleet=None, **sections):
        """A node whose policy remembers keys in a filter."""
        proxy = made(self, admission={"policy": "second-hit", "capacity": 20000, "fpr": 0.001,
                                      **(admission or {})},
                     fleet={"purges": self.engine.url, "node": name, **(fleet or {})}, **sections)
        self.nodes[name] = proxy
        return proxy

    def ask_for(self, proxy, objects=range(OBJECTS)):
        with Client(proxy.port) as client:
            return [field(client.ask(self.origin.url(f"/object/{number}")), "cache-status")
                    for number in objects]

    def giver(self, name, objects=range(OBJECTS), **sections):
        """A node that knows these objects, and that the engine knows to."""
        proxy = self.cache(name, **sections)
        self.ask_for(proxy, objects)
        self.wait_until_told(name, len(objects))
        return proxy

    def presence(self, name):
        text = self.engine.ask("HGET", NODES, name)
        return json.loads(text) if text else {}

    def wait_until_told(self, name, known):
        eventually(lambda: self.presence(name).get("filter", {}).get("known") == known,
                   f"the presence of {name} tells that it knows {known} keys")

    def filter(self, proxy):
        return self.fleet(proxy)["filter"]

    def wait_for(self, proxy, state):
        eventually(lambda: self.filter(proxy)["state"] == state, f"its filter is {state}")
        return self.filter(proxy)

    def check_adopted(self, proxy, giver, objects=range(OBJECTS)):
        found = self.wait_for(proxy, "adopted")
        self.assertEqual(giver, found["from"], proxy.output())
        for status in self.ask_for(proxy, objects):
            self.assertIn("; stored;", status)

    def check_serves_alone(self, proxy, unknown=9000):
        """It serves, and remembers by itself."""
        self.assertIn("first-request", self.ask_for(proxy, [unknown])[0])
        self.assertIn("; stored;", self.ask_for(proxy, [unknown])[0])

    def pretend(self, name, like, **changed):
        """A presence that nobody renews and that stays fresh."""
        presence = {**self.presence(like), "instance": name, **changed}
        presence["seen"] = presence["seen"] + FUTURE_MS
        self.engine.ask("HSET", NODES, name, json.dumps(presence))

    def filter_keys(self):
        return self.engine.ask("KEYS", "encore:purges:filter:*")


class FilterTest(FiltersCase):
    def test_a_fourth_node_knows_what_the_one_saw_that_knows_most(self):
        self.giver("n0", range(3))
        self.giver("n1")
        self.giver("n2", range(5))
        fourth = self.cache("n3")
        self.check_adopted(fourth, "n1")
        self.assertIn("first-request", self.ask_for(fourth, [OBJECTS])[0])
        found = self.filter(fourth)
        self.assertEqual(OBJECTS, found["insertions"])
        self.assertRegex(found["adopted"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
        self.assertLess(found["seconds"], 30)
        self.assertIn("fleet: adopted the filter of n1, ", fourth.output())
        metrics = fourth.metrics()
        self.assertGreater(
            metrics['encore_fleet_filter_adopted_timestamp_seconds{from="n1"}'], 1e9)
        self.assertEqual(1, metrics["encore_filter_adoptions_total"])
        # Those that started before had their choice as well.
        self.assertGreaterEqual(self.metric(self.nodes["n1"], "filters_given_total"), 1)
        eventually(lambda: "gave the filter to n3" in self.nodes["n1"].output(), "it is logged")
        for name in ("n0", "n2"):
            self.assertNotIn("gave the filter to n3", self.nodes[name].output())
        shown = subprocess.run([fourth.program, "fleet", "--text", "--config", fourth.config_path],
                               capture_output=True, text=True, timeout=60)
        self.assertIn(f"filter  adopted from n1 at {found['adopted']}, {OBJECTS} insertions\n",
                      shown.stdout)
        # Nothing of it stays in the engine, and no presence asks any more.
        eventually(lambda: self.filter_keys() == [], "the parts are gone")
        eventually(lambda: "wants" not in self.presence("n3"), "the wish is over")

    def test_what_a_node_learnt_before_it_adopts_stays(self):
        self.giver("n0")
        self.engine.freeze()
        joining = self.cache("n1")
        self.assertIn("first-request", self.ask_for(joining, [7000])[0])
        self.assertEqual("wanted", self.filter(joining)["state"])
        self.engine.thaw()
        self.check_adopted(joining, "n0")
        self.assertIn("; stored;", self.ask_for(joining, [7000])[0])

    def test_nodes_that_differ_are_left_out(self):
        self.giver("n0", admission={"capacity": 40000})
        self.giver("n1", admission={"hashes": 7, "layout": "blocked"})
        self.giver("n2", cache={"query_drop": ["utm_*"]})
        self.pretend("n3", like="n2", version="77.1")
        joining = self.cache("n4")
        self.check_serves_alone(joining)
        found = self.wait_for(joining, "none")
        self.assertRegex(found["note"], "^that of n3 does not fit: ")
        for said in (r'n0 does not fit: its filter is "split xxh3 m=\d+ k=8", this node\'s "',
                     r'n1 does not fit: its filter is "blocked xxh3 m=\d+ k=7", this node\'s "',
                     r"n2 does not fit: its keys differ: modes of ",
                     r"n3 does not fit: it is version 77\.1, this node "):
            self.assertRegex(joining.output(), "fleet: the filter of " + said)
        self.assertEqual(0, joining.metrics()[
            'encore_fleet_filter_adopted_timestamp_seconds{from=""}'])

    def test_a_node_that_hangs_delays_nothing_and_another_is_asked(self):
        self.giver("n0", range(5))
        hanging = self.giver("n1")
        hanging.signal(signal.SIGSTOP)
        self.addCleanup(hanging.process.send_signal, signal.SIGCONT)
        presence = self.presence("n1")
        presence["seen"] += FUTURE_MS
        self.engine.ask("HSET", NODES, "n1", json.dumps(presence))
        joining = self.cache("n2")
        self.check_serves_alone(joining)
        eventually(lambda: self.presence("n2").get("wants", {}).get("from") == presence["instance"],
                   "it asks the one that hangs")
        self.assertEqual("wanted", self.filter(joining)["state"])
        self.check_adopted(joining, "n0", range(5))
        self.assertRegex(joining.output(), r"no filter from n1: nothing came for 6\.\d s")

    def test_nodes_that_lie_harm_nothing_and_another_is_asked(self):
        self.giver("n0")
        key = "ab" * 32
        lies = {
            "garbage": lambda name: self.engine.ask("SET", name + "0", "<html>\x1b[2J"),
            "all": lambda name: self.engine.ask("SET", name + "0",
                                                f"encore-filter 1 10000000000 {key}"),
            "much": lambda name: self.engine.ask("SET", name + "0", "x" * (64 << 20)),
            "unsealed": lambda name: (
                self.engine.ask("SET", name + "1", "x" * (100 + 16)),
                self.engine.ask("SET", name + "0", f"encore-filter 1 100 {key}")),
            "long": lambda name: (
                self.engine.ask("SET", name + "1", "x" * (64 << 20)),
                self.engine.ask("SET", name + "0", f"encore-filter 1 100 {key}")),
            "other": lambda name: self.engine.ask("RPUSH", name + "0", "x"),
        }
        for rank, name in enumerate(lies):
            self.pretend(name, like="n0",
                         filter={**self.presence("n0")["filter"], "known": 1000 + rank})
        over = threading.Event()
        self.addCleanup(over.set)

        def lie():
            while not over.wait(0.02):
                wish = self.presence("n1").get("wants")
                if wish and wish["from"] in lies:
                    lies.pop(wish["from"])(f"encore:purges:filter:{wish['key']}:")
        liar = threading.Thread(target=lie)
        joining = self.cache("n1", admission={"adopted_memory": "8MiB"})
        resident = joining.resident_bytes()
        liar.start()
        self.check_serves_alone(joining)
        self.check_adopted(joining, "n0")
        over.set()
        liar.join()
        self.assertEqual({}, lies)
        output = joining.output()
        for said in ('no filter from garbage: it begins with "<html>?[2J"',
                     "no filter from all: it has 10000000000 bytes, accepted: at most 10485760, as "
                     "admission.adopted_memory has it",
                     "no filter from much: it sent more than the 256 bytes of a part",
                     "no filter from unsealed: part 1 is not what was sealed for this node",
                     "no filter from long: it sent more than the 116 bytes of a part",
                     "no filter from other: the engine refuses: WRONGTYPE"):
            self.assertIn(said, output)
        self.assertLess(joining.peak_resident_bytes() - resident, 48 << 20)

    def test_a_large_filter_is_in_the_engine_a_few_parts_at_a_time(self):
        self.giver("n0", admission={"capacity": 8_000_000})
        joining = self.cache("n1", admission={"capacity": 8_000_000})
        self.check_adopted(joining, "n0")
        size = int(self.nodes["n0"].output().partition("gave the filter to n1, ")[2].split()[0])
        self.assertGreater(size, 20 << 20)
        memory = dict(line.split(":", 1) for line in self.engine.ask("INFO", "memory").split()
                      if ":" in line)
        self.assertLess(int(memory["used_memory_peak"]), 14 << 20)

    def test_an_engine_that_is_full_takes_no_filter_and_purges_go_on(self):
        self.giver("n0", admission={"capacity": 8_000_000})
        self.engine.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
        used = dict(line.split(":", 1) for line in self.engine.ask("INFO", "memory").split()
                    if ":" in line)["used_memory"]
        self.engine.ask("CONFIG", "SET", "maxmemory", int(used) + (2 << 20))
        joining = self.cache("n1", admission={"capacity": 8_000_000})
        self.check_serves_alone(joining)
        eventually(lambda: "the filter did not reach n1: the engine refuses: OOM" in
                   self.nodes["n0"].output(), "the giver says that it is full")
        self.wait_for(joining, "none")
        self.assertRegex(joining.output(), "no filter from n0: nothing came for [36]\\.")
        self.check_serves_alone(joining, 9001)
        self.assertEqual([], self.filter_keys())
        self.assertTrue(self.purge(joining, all="1")["published"])


class NoFilterTest(FiltersCase):
    def test_a_node_that_is_alone_adopts_nothing(self):
        alone = self.cache("n0")
        self.engine.ask("HSET", NODES, "odd", "{", "odder", '{"filter":{"known":9}}')
        self.check_serves_alone(alone)
        self.assertEqual("no node has one to give", self.wait_for(alone, "none")["note"])

    def test_an_engine_without_presences(self):
        """Nodes cannot be read there: the node serves, and goes on looking for a while."""
        self.giver("n0")
        self.engine.ask("DEL", NODES)
        self.engine.ask("SET", NODES, "no hash")
        joining = self.cache("n1")
        self.check_serves_alone(joining)
        eventually(lambda: "WRONGTYPE" in joining.output(), "it is logged")
        self.assertEqual("wanted", self.filter(joining)["state"])
        found = self.wait_for(joining, "none")
        self.assertEqual("the nodes of the engine could not be read", found["note"])
        self.engine.ask("DEL", NODES)
        self.wait_for_all(["n0", "n1"])
        self.assertEqual("none", self.filter(joining)["state"])

    def test_adoption_can_be_turned_off(self):
        giver = self.giver("n0")
        off = self.cache("n1", fleet={"adopt": False})
        self.assertEqual("off", self.filter(off)["state"])
        self.wait_for_all(["n0", "n1"])
        self.assertNotIn("filter", self.presence("n1"))
        self.assertNotIn("wants", self.presence("n1"))
        self.assertIn("first-request", self.ask_for(off, [0])[0])
        # A reload turns it off for those that ask this node.
        giver.sections["fleet"]["adopt"] = False
        giver.write_config()
        giver.signal(signal.SIGHUP)
        eventually(lambda: "filter" not in self.presence("n0"), "it offers none any more")
        self.assertEqual("no node has one to give",
                         self.wait_for(self.cache("n2"), "none")["note"])
        self.assertEqual(0, self.metric(giver, "filters_given_total"))

    def test_a_policy_without_a_filter_adopts_nothing(self):
        self.giver("n0")
        for number, policy in enumerate(("always", "exact-second-hit")):
            node = self.cache(f"p{number}", admission={"policy": policy})
            self.assertEqual("off", self.filter(node)["state"])
        self.assertEqual("off", self.filter(self.cache("p2", admission={"adopted_memory": "0B"}))
                         ["state"])

    def test_a_node_that_restarts_keeps_its_own(self):
        giver = self.giver("n0")
        state = self.directory / "state"
        node = self.cache("n1", state={"directory": str(state)})
        self.wait_for(node, "adopted")
        self.ask_for(node, [5000])
        node.stop()
        node.start()
        self.assertEqual("own", self.filter(node)["state"])
        self.wait_for_all(["n0", "n1"])
        self.assertIn("; stored;", self.ask_for(node, [5000])[0])
        self.assertIn("first-request", self.ask_for(node, [0])[0])
        self.assertEqual(1, self.metric(giver, "filters_given_total"))
        self.assertEqual(0, node.metrics()["encore_filter_adoptions_total"])

    def test_a_live_upgrade_keeps_its_own(self):
        self.giver("n0")
        node = self.cache("n1", made=UpgradingEncore)
        self.wait_for(node, "adopted")
        self.ask_for(node, [5000])
        node.upgrade()
        self.assertEqual("own", self.filter(node)["state"])
        self.assertIn("; stored;", self.ask_for(node, [5000])[0])
        self.assertEqual(1, self.metric(self.nodes["n0"], "filters_given_total"))

    def test_an_order_to_adopt_is_instead_of_it(self):
        token = self.directory / "token"
        token.write_text("0123456789abcdef.the-token\n")
        token.chmod(0o600)
        ordered = self.cache("n0", admin={"token_file": str(token)})
        self.ask_for(ordered, range(5))
        self.giver("n1")
        node = self.cache("n2", admin={"token_file": str(token)}, arguments=[
            "--adopt-from", f"http://127.0.0.1:{ordered.admin_port}"])
        self.assertEqual("own", self.filter(node)["state"])
        self.assertEqual(1, node.metrics()["encore_filter_adoptions_total"])
        self.assertIn("first-request", self.ask_for(node, [OBJECTS - 1])[0])

    def test_an_order_to_end_does_not_wait_for_a_filter(self):
        self.giver("n0")
        self.pretend("hangs", like="n0", filter={**self.presence("n0")["filter"], "known": 1000})
        joining = self.cache("n1")
        eventually(lambda: self.presence("n1").get("wants"), "it asks")
        joining.signal(signal.SIGTERM)
        self.assertEqual(0, joining.wait_for_exit())
        self.assertNotIn("nothing came", joining.output())

    def test_who_reads_the_engine_reads_no_filter(self):
        """The saved form begins with a word, and holds the seed: neither passes in plain text."""
        seen = []
        monitor = subprocess.Popen(
            [need_program("redis-cli"), "-p", str(self.engine.port), "MONITOR"], stdout=subprocess.PIPE)
        self.addCleanup(monitor.wait)
        self.addCleanup(monitor.kill)
        reading = threading.Thread(target=lambda: seen.extend(monitor.stdout))
        self.assertEqual(b"OK\n", monitor.stdout.readline())
        reading.start()
        self.giver("n0", admission={"seed": "00112233445566778899aabbccddeeff"})
        joining = self.cache("n1")
        self.check_adopted(joining, "n0")
        eventually(lambda: any(b'"SET" "encore:purges:filter:' in line for line in seen), "a part")
        monitor.kill()
        reading.join()
        text = b"".join(seen)
        self.assertNotIn(b"ENCADMIT", text)
        for proxy in self.nodes.values():
            self.assertNotIn("00112233445566778899aabbccddeeff", proxy.output())
