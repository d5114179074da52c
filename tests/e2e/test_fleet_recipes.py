"""Three nodes with recipes/fleet-node.toml behind each balancer's recipe, as they are shipped but for
addresses and short limits: hits, requests to the origin and failures while a node is killed, comes
back, hangs, and while its process is replaced."""

import os
import re
import signal
import sys
import threading
import time
import tomllib
import unittest

from client import NoResponse, field
from haproxy import said_of
from harness import Case, eventually, find_program, free_port, need_program
from origin import Origin, fresh
from recipes import RECIPES, Recipe, at_once, shipped
from test_reverse import ask
from upgrading import UpgradingEncore

HOST = "www.example"
# Seconds that a request waits at most for a node that hangs, in place of the recipes' 15.
PATIENCE = 2


class Node(Recipe, UpgradingEncore):
    """A node whose process can be killed, stopped, replaced and started again."""

    def __init__(self, case, name, origin):
        super().__init__(case, "fleet-node", [origin.url("")], start=False, http__via=name,
                         listen__0__trusted_proxies="127.0.0.1")

    def start(self, before_ready=None):
        self.expect_exit = 0
        super().start(before_ready)
        self.case.addCleanup(self.go_on)

    def kill(self):
        self.process.kill()
        self.process.wait(20)
        self.expect_exit = -signal.SIGKILL

    def hang(self):
        os.kill(self.serving, signal.SIGSTOP)

    def go_on(self):
        try:
            os.kill(self.serving, signal.SIGCONT)
        except ProcessLookupError:
            pass


class Load:
    """Clients that ask for all keys again and again; what failed, and the longest wait."""

    def __init__(self, fleet, clients=4):
        self.fleet, self.failures, self.asked, self.longest = fleet, [], 0, 0.0
        self.over = threading.Event()
        self.threads = [threading.Thread(target=self.run) for _ in range(clients)]
        for thread in self.threads:
            thread.start()
        fleet.addCleanup(self.stop)

    def run(self):
        while not self.over.is_set():
            for key in self.fleet.keys:
                begun = time.monotonic()
                try:
                    self.fleet.ask(key)
                except (AssertionError, OSError, NoResponse) as error:
                    self.failures.append((key, repr(error)))
                self.longest = max(self.longest, time.monotonic() - begun)
                self.asked += 1
                if self.over.is_set():
                    return

    def wait_for(self, more):
        goal = self.asked + more
        eventually(lambda: self.asked >= goal, f"{more} more requests")

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join()


class Fleet:
    """The tests of each balancer, mixed into a Case: that starts it in `begin_balancer` and says by
    `await_state(number, is_up)` when it has taken notice of a node."""

    keys = [f"/{number}?q={number % 7}" for number in range(60)]

    def setUp(self):
        super().setUp()
        self.origin = Origin(self, default=lambda x: fresh(x.request.target.encode() * 50))
        self.nodes = [Node(self, f"node{number}", self.origin) for number in range(3)]

    def begin(self, numbers=(0, 1, 2)):
        for number in numbers:
            self.nodes[number].start()
        self.begin_balancer()
        for number in range(3):
            self.await_state(number, number in numbers)

    def ask(self, path):
        answer = ask(self.port, path, HOST)
        self.assertEqual((200, path.encode() * 50), (answer.status, answer.body))
        return answer

    def ask_alone(self, path):
        """With no other request in progress, so that no node's load is in the way."""
        return self.ask(path)

    def where(self, answer):
        return re.search(r"node\d", field(answer, "Via")).group()

    def places(self):
        """{key: node that answers}, all asked once."""
        return {key: self.where(self.ask_alone(key)) for key in self.keys}

    def warm(self):
        """{key: node that has it}, after the three rounds that it takes."""
        begun = self.cost()
        first = self.places()
        self.assertEqual(first, self.places())
        self.assertEqual(2 * len(self.keys), self.cost() - begun)
        for key in self.keys:
            answer = self.ask_alone(key)
            self.assertIn("; hit", field(answer, "Cache-Status"))
            self.assertEqual(first[key], self.where(answer))
        self.assertEqual(2 * len(self.keys), self.cost() - begun)
        return first

    def cost(self):
        """Requests to the origin so far, without those of await_state()."""
        return sum("?q=" in request.target for request in list(self.origin.requests))

    def say(self, text):
        print(f"{type(self).__name__}: {text}", file=sys.stderr)

    def test_a_killed_node_costs_its_own_keys_once_and_gets_them_back(self):
        self.begin()
        homes = self.warm()
        lost = [key for key, home in homes.items() if home == "node1"]
        self.assertEqual({"node0", "node1", "node2"}, set(homes.values()))
        begun = self.cost()
        self.nodes[1].kill()
        for _ in range(3):
            for key, home in homes.items():
                answer = self.ask_alone(key)
                if home == "node1":
                    self.assertNotEqual(home, self.where(answer))
                else:
                    self.assertEqual(home, self.where(answer))
                    self.assertIn("; hit", field(answer, "Cache-Status"))
        cost = self.cost() - begun
        self.assertEqual(2 * len(lost), cost)
        self.await_state(1, False)
        self.nodes[1].start()
        self.await_state(1, True)
        # It may come slowly: its weight grows over half a minute.
        begun = self.cost()
        eventually(lambda: list(self.places().values()).count("node1") >= 5, "it has keys again")
        now = self.places()
        self.assertEqual([], [key for key, home in homes.items() if now[key] != home
                              and home != "node1"])
        back = self.cost() - begun
        self.assertLessEqual(back, 2 * len(lost))
        self.say(f"{len(self.keys)} keys; killed: {len(lost)} moved, {cost} requests to the origin; "
                 f"back: {back} requests")

    def test_an_added_node_takes_its_share_and_leaves_the_others_theirs(self):
        self.begin((0, 1))
        homes = self.warm()
        begun = self.cost()
        self.nodes[2].start()
        self.await_state(2, True)
        eventually(lambda: list(self.places().values()).count("node2") >= 5, "it has keys")
        now = self.places()
        moved = [key for key in self.keys if now[key] != homes[key]]
        self.assertEqual({"node2"}, {now[key] for key in moved})
        # A third is its share; three nodes with 60 keys are within 4.5 sigma of it.
        self.assertLess(len(moved), len(self.keys) * 2 / 3)
        self.assertLessEqual(self.cost() - begun, 2 * len(moved))

    def test_no_request_fails_while_a_node_is_killed_hangs_and_is_replaced(self):
        self.begin()
        self.warm()
        load = Load(self)
        load.wait_for(100)
        self.nodes[1].kill()
        self.await_state(1, False)
        load.wait_for(100)
        self.nodes[1].start()
        self.await_state(1, True)
        load.wait_for(100)
        killed, load.longest = load.longest, 0.0
        self.nodes[2].hang()
        self.await_state(2, False)
        load.wait_for(100)
        self.nodes[2].go_on()
        self.await_state(2, True)
        load.wait_for(100)
        hung, load.longest = load.longest, 0.0
        for _ in range(2):
            self.nodes[0].upgrade()
            load.wait_for(200)
        load.stop()
        self.assertEqual([], load.failures[:5])
        self.say(f"{load.asked} requests, 0 failed; longest wait: killed {killed:.2f} s, "
                 f"hung {hung:.2f} s (limit {PATIENCE} s), replaced {load.longest:.2f} s")


class BehindHaproxy(Fleet, Case):
    def setUp(self):
        super().setUp()
        self.haproxy = need_program("haproxy")

    def begin_balancer(self):
        self.port = free_port()
        replaced = [("bind :80", f"bind 127.0.0.1:{self.port}"),
                    ("timeout server 15s", f"timeout server {PATIENCE}s"),
                    ("  user haproxy\n  group haproxy\n", "")]
        for number, node in enumerate(self.nodes):
            replaced.append((f"10.0.0.2{number + 1}:8080 id {number + 1} check port 3130",
                             f"127.0.0.1:{node.port} id {number + 1} check port "
                             f"{node.admin_port}"))
        config = self.directory / "haproxy.cfg"
        config.write_text("global\n  stats socket " + str(self.directory / "stats") + "\n"
                          + shipped("fleet-haproxy.cfg", *replaced))
        self.start([self.haproxy, "-f", config], self.port)

    def said(self, column):
        return said_of(self.directory / "stats", "encore", column)

    def await_state(self, number, is_up):
        wanted = "UP" if is_up else "DOWN"
        eventually(lambda: self.said("status").get(f"encore{number + 1}") == wanted,
                   f"HAProxy sees node {number} {wanted}")

    def ask_alone(self, path):
        # With two at a time HAProxy gives no node both.
        eventually(lambda: set(self.said("scur").values()) == {"0"}, "HAProxy has let go")
        return self.ask(path)

    def test_a_node_that_is_slow_passes_its_requests_on(self):
        # Each answer of node 0 takes a tenth of a second.
        self.nodes[0].slow_down("sendto,sendmsg,write,writev", 1)
        script = self.directory / "slow"
        script.write_text(script.read_text().replace("000000:when", "00000:when"))
        self.begin()
        homes = self.warm()
        own = [key for key, home in homes.items() if home == "node0"]
        self.assertNotEqual([], own)
        asked = []

        def reader(number):
            for turn in range(10):
                asked.append(self.where(self.ask(own[(number + turn) % len(own)])))
        at_once(12, reader)
        # With 12 at a time it has half again its third, six, and the other nodes the rest.
        self.assertGreater(sum(where != "node0" for where in asked), len(asked) / 3)


class BehindNginx(Fleet, Case):
    def setUp(self):
        super().setUp()
        self.nginx = need_program("nginx")

    def begin_balancer(self):
        self.port = free_port()
        folder = self.directory / "front"
        folder.mkdir()
        user = "user root;" if os.getuid() == 0 else ""
        replaced = [("listen 80;", f"listen 127.0.0.1:{self.port};"),
                    ("proxy_read_timeout 15s", f"proxy_read_timeout {PATIENCE}s"),
                    ("fail_timeout=5s", "fail_timeout=1s")]
        for number, node in enumerate(self.nodes):
            replaced.append((f"10.0.0.2{number + 1}:8080", f"127.0.0.1:{node.port}"))
        temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in (
            "client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (folder / "nginx.conf").write_text(
            f"daemon off; pid {folder}/pid; error_log {folder}/error.log; {user}\n"
            "worker_processes 2;\n"
            f"events {{}} http {{ access_log off; {temporary}\n"
            f"{shipped('fleet-nginx.conf', *replaced)}}}\n")
        self.start([self.nginx, "-p", folder, "-c", folder / "nginx.conf"], self.port)

    def await_state(self, number, is_up):
        """It has no checks: only requests show it. Each node in use has one of 20 keys."""
        def answers():
            return any(self.where(ask(self.port, f"/{key}", "probe.example")) == f"node{number}"
                       for key in range(20))
        eventually(lambda: answers() == is_up, f"nginx {'uses' if is_up else 'leaves'} node {number}")


class BehindEncore(Fleet, Case):
    def begin_balancer(self):
        self.front = Recipe(self, "fleet-encore", [node.url for node in self.nodes],
                            upstream__first_byte=f"{PATIENCE}s", upstream__set_aside="1s")
        self.port = self.front.port

    def await_state(self, number, is_up):
        url = self.nodes[number].url

        def state():
            # One that was ejected is tried by a request.
            ask(self.port, "/", "probe.example")
            return [value for name, value in self.front.metrics().items()
                    if name.startswith("encore_origin_server_up{") and url in name]
        eventually(lambda: state() == [1.0 if is_up else 0.0],
                   f"Encore sees node {number} {'up' if is_up else 'down'}")


    def test_a_hot_url_is_served_by_every_node_and_the_others_keep_their_places(self):
        self.begin()
        homes = self.warm()
        begun = self.cost()
        hot, served = "/hot?q=0", []
        for _ in range(3):
            for key, home in homes.items():
                answer = self.ask(key)
                self.assertEqual(home, self.where(answer))
                self.assertIn("; hit", field(answer, "Cache-Status"))
                served.append(self.where(self.ask(hot)))
        # Until it is hot it has its place.
        self.assertEqual(1, len(set(served[:20])))
        rest = served[60:]
        self.assertEqual({"node0", "node1", "node2"}, set(rest))
        # A third each, within 4.5 sigma of 120 draws.
        self.assertGreater(min(rest.count(node) for node in set(rest)), 16)
        # Two requests to the origin for each node.
        self.assertEqual(6, self.cost() - begun)
        spread = self.front.metrics()["encore_origin_hot_requests_total"]
        self.assertGreater(spread, 120)
        self.say(f"a URL with half of the requests: {[rest.count(f'node{n}') for n in range(3)]} "
                 f"of {len(rest)}, 6 requests to the origin; 60 others kept their places")


class ForEnvoy(unittest.TestCase):
    """Debian has no Envoy: only the structure is read."""

    def setUp(self):
        try:
            import yaml
        except ImportError:
            self.skipTest("python3-yaml is not installed")
        self.config = yaml.safe_load((RECIPES / "fleet-envoy.yaml").read_text())

    def test_it_hashes_the_host_and_path_over_three_checked_nodes_with_bounded_load(self):
        resources = self.config["static_resources"]
        (cluster,) = resources["clusters"]
        self.assertEqual("RING_HASH", cluster["lb_policy"])
        self.assertEqual(150, cluster["common_lb_config"]["consistent_hashing_lb_config"]
                         ["hash_balance_factor"])
        self.assertEqual("/readyz", cluster["health_checks"][0]["http_health_check"]["path"])
        nodes = cluster["load_assignment"]["endpoints"][0]["lb_endpoints"]
        self.assertEqual([("10.0.0.21", 8080, 3130), ("10.0.0.22", 8080, 3130),
                          ("10.0.0.23", 8080, 3130)],
                         [(each["endpoint"]["address"]["socket_address"]["address"],
                           each["endpoint"]["address"]["socket_address"]["port_value"],
                           each["endpoint"]["health_check_config"]["port_value"])
                          for each in nodes])
        manager = resources["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"]
        routes = manager["route_config"]["virtual_hosts"][0]["routes"]
        self.assertEqual(["GET|HEAD"], [field["string_match"]["safe_regex"]["regex"]
                                        for field in routes[0]["match"]["headers"]])
        self.assertNotIn("headers", routes[1]["match"])
        for each in routes:
            route = each["route"]
            self.assertEqual(cluster["name"], route["cluster"])
            self.assertEqual([":authority", ":path"],
                             [each["header"]["header_name"] for each in route["hash_policy"]])
        # Only a request that may be repeated goes to another node after one has had it.
        self.assertEqual([True, False], ["reset" in each["route"]["retry_policy"]["retry_on"]
                                         for each in routes])
        self.assertGreater(cluster["circuit_breakers"]["thresholds"][0]["max_retries"], 3)
        for each in (manager, manager["http_filters"][0]["typed_config"]):
            self.assertTrue(each["@type"].startswith("type.googleapis.com/envoy.extensions."))

    def test_envoy_takes_it_where_there_is_one(self):
        envoy = find_program("envoy")
        if not envoy:
            self.skipTest("envoy is not installed")
        Case.run_client(self, [envoy, "--mode", "validate", "-c", RECIPES / "fleet-envoy.yaml"])


class Started(unittest.TestCase):
    def test_a_node_takes_purges_on_its_machine_and_checks_on_the_port_of_the_balancers(self):
        addresses = tomllib.loads((RECIPES / "fleet-node.toml").read_text())["admin"]["address"]
        self.assertIn("127.0.0.1:3129", addresses)
        (checked,) = [each for each in addresses if each.startswith("*:")]
        for balancer in ("fleet-haproxy.cfg", "fleet-envoy.yaml"):
            self.assertEqual(3, (RECIPES / balancer).read_text().count(checked[2:]), balancer)

    def test_each_is_started_by_five_commands_that_its_head_has(self):
        files = sorted(RECIPES.glob("fleet-*"))
        self.assertEqual(5, len(files))
        for file in files:
            head = re.match(r"(#.*\n)+", file.read_text()).group()
            self.assertEqual(5, len(re.findall(r"^#   \S", head, re.M)), file.name)


if __name__ == "__main__":
    unittest.main()
