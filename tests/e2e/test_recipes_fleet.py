"""The recipes with other programs around them: nginx before encore, HAProxy before three nodes, and
Prometheus that looks on. Their shipped configurations, too, with other ports."""

import json
import os
import re
import socket
import threading
import unittest
import urllib.parse
import urllib.request

from client import Client, NoResponse, field
from harness import Case, clean_environment, eventually, free_port, need_program
from nginx import Nginx
from origin import Origin, fresh
from recipes import Recipe, at_once, shipped
from test_reverse import ask

HOST = "www.example"


class BehindNginx(Case):
    def setUp(self):
        super().setUp()
        program = need_program("nginx")
        self.origin = Origin(self, default=lambda x: fresh(x.request.target.encode() * 100))
        self.encore = Recipe(self, "behind-nginx", [self.origin.url("")])
        self.port = free_port()
        folder = self.directory / "front"
        folder.mkdir()
        user = "user root;" if os.getuid() == 0 else ""
        included = shipped("behind-nginx.conf", ("127.0.0.1:8080", f"127.0.0.1:{self.encore.port}"),
                           ("127.0.0.1:8000", self.origin.authority),
                           ("listen 127.0.0.1:80;", f"listen 127.0.0.1:{self.port};"))
        temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in (
            "client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (folder / "nginx.conf").write_text(
            f"daemon off; pid {folder}/pid; error_log {folder}/error.log; {user}\n"
            f"events {{}} http {{ access_log off; {temporary}\n{included}}}\n")
        self.start([program, "-p", folder, "-c", folder / "nginx.conf"], self.port)

    def test_hits_come_through_and_the_client_is_known(self):
        for number in range(4):
            with Client(self.port, source="127.0.0.9") as client:
                client.send(f"GET /page HTTP/1.1\r\nHost: {HOST}\r\n"
                            "X-Forwarded-For: 10.9.9.9\r\n\r\n")
                answer = client.read_response()
            self.assertEqual(b"/page" * 100, answer.body)
        self.assertIn("; hit", field(answer, "Cache-Status"))
        self.assertEqual(2, self.origin.count("/page"))
        fields = dict(self.origin.last("/page").fields)
        self.assertEqual(HOST, fields["host"])
        self.assertIn("127.0.0.9", fields["x-forwarded-for"])
        self.assertEqual({"127.0.0.9"},
                         {record["client"] for record in self.encore.access_records(4)})

    def test_while_encore_is_restarted_nginx_asks_the_application(self):
        for number in range(20):
            if number == 10:
                self.encore.stop()
            answer = ask(self.port, f"/{number}", HOST)
            self.assertEqual((200, f"/{number}".encode() * 100), (answer.status, answer.body))
        self.encore.start()
        eventually(lambda: field(ask(self.port, "/back", HOST), "Cache-Status"),
                   "nginx asks encore again")


class BehindHaproxy(Case):
    """Three nodes; each says its name in Via."""

    keys = [f"/{number}" for number in range(60)]

    def setUp(self):
        super().setUp()
        self.haproxy = need_program("haproxy")
        self.origin = Origin(self, default=lambda x: fresh(x.request.target.encode() * 50))
        self.nodes = [self.node(number) for number in range(3)]
        self.port = free_port()
        replaced = [("bind :80", f"bind 127.0.0.1:{self.port}")]
        for number, node in enumerate(self.nodes):
            replaced.append((f"10.0.0.2{number + 1}:8080 id {number + 1} check port 3129",
                             f"127.0.0.1:{node.port} id {number + 1} check port "
                             f"{node.admin_port}"))
        self.config = self.directory / "haproxy.cfg"
        self.config.write_text(
            "global\n  stats socket " + str(self.directory / "stats") + "\n"
            + shipped("behind-haproxy.cfg", *replaced))

    def node(self, number):
        return Recipe(self, "behind-haproxy", [self.origin.url("")], start=False,
                      http__via=f"node{number}", listen__0__trusted_proxies="127.0.0.1")

    def begin(self, numbers=(0, 1, 2)):
        for number in numbers:
            self.nodes[number].start()
        self.start([self.haproxy, "-f", self.config], self.port)
        for number in range(3):
            self.await_state(number, number in numbers)

    def said(self, column):
        """{server: what HAProxy says of it}; nothing while HAProxy starts."""
        with socket.socket(socket.AF_UNIX) as talk:
            if talk.connect_ex(str(self.directory / "stats")) != 0:
                return {}
            talk.sendall(b"show stat\n")
            text = b"".join(iter(lambda: talk.recv(65536), b"")).decode()
        lines = [line.split(",") for line in text.splitlines() if line]
        names = lines[0]
        return {row[1]: row[names.index(column)] for row in lines[1:]
                if row[0] == "encore" and row[1].startswith("encore")}

    def await_state(self, number, is_up):
        wanted = "UP" if is_up else "DOWN"
        eventually(lambda: self.said("status").get(f"encore{number + 1}") == wanted,
                   f"HAProxy sees node {number} {wanted}")

    def ask(self, path):
        answer = ask(self.port, path, HOST)
        self.assertEqual((200, path.encode() * 50), (answer.status, answer.body))
        return answer

    def ask_alone(self, path):
        """With no other request in progress: with two at a time HAProxy gives no node both."""
        eventually(lambda: set(self.said("scur").values()) == {"0"}, "HAProxy has let go")
        return self.ask(path)

    def where(self, answer):
        return re.search(r"node\d", field(answer, "Via")).group()

    def warm(self):
        """{key: node that has it}, after the three rounds that it takes."""
        for _ in range(2):
            for key in self.keys:
                self.ask_alone(key)
        found = {}
        for key in self.keys:
            answer = self.ask_alone(key)
            self.assertIn("; hit", field(answer, "Cache-Status"))
            found[key] = self.where(answer)
        return found

    def test_each_url_has_its_node_and_the_origin_is_asked_twice_for_each(self):
        self.begin()
        homes = self.warm()
        self.assertEqual(2 * len(self.keys), self.origin.count())
        self.assertEqual(3, len(set(homes.values())), homes)

    def test_a_node_that_is_killed_costs_its_own_keys_and_no_error(self):
        self.begin()
        homes = self.warm()
        failures, stop = [], threading.Event()

        def load():
            while not stop.is_set():
                for key in self.keys:
                    try:
                        self.ask(key)
                    except (AssertionError, OSError, NoResponse) as error:
                        failures.append((key, error))
        readers = [threading.Thread(target=load) for _ in range(4)]
        for reader in readers:
            reader.start()
        gone = self.nodes[1]
        gone.process.kill()
        gone.expect_exit = -9
        self.await_state(1, False)
        stop.set()
        for reader in readers:
            reader.join()
        self.assertEqual([], failures)
        for key, home in homes.items():
            answer = self.ask_alone(key)
            if home == "node1":
                self.assertNotEqual(home, self.where(answer))
            else:
                self.assertEqual(home, self.where(answer))
                self.assertIn("; hit", field(answer, "Cache-Status"))

    def test_a_node_that_is_added_takes_its_share_and_leaves_the_others_theirs(self):
        self.begin((0, 1))
        homes = self.warm()
        self.nodes[2].start()
        self.await_state(2, True)
        # It comes slowly: its weight grows over half a minute.
        def now():
            return {key: self.where(self.ask_alone(key)) for key in self.keys}
        eventually(lambda: list(now().values()).count("node2") >= 5, "the new node has keys")
        nodes = now()
        self.assertEqual([], [key for key, home in homes.items()
                              if nodes[key] not in (home, "node2")])
        self.assertGreater(sum(nodes[key] == home for key, home in homes.items()),
                           len(self.keys) / 3)

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


class WatchedByPrometheus(Case):
    def test_prometheus_has_the_counters_and_the_rules_are_good(self):
        prometheus, promtool = need_program("prometheus", "promtool")
        origin = Origin(self, default=fresh(b"body"))
        encore = Recipe(self, "prometheus")
        with Client(encore.port) as client:
            for _ in range(5):
                client.ask(origin.url("/a"))
        folder = self.directory / "prometheus"
        folder.mkdir()
        config = folder / "prometheus.yml"
        config.write_text(shipped("prometheus.yml", ("cache.example:3129",
                                                     f"127.0.0.1:{encore.admin_port}"),
                                  ("scrape_interval: 15s", "scrape_interval: 200ms")))
        (folder / "prometheus-rules.yml").write_text(shipped("prometheus-rules.yml"))
        self.run_client([promtool, "check", "config", config])
        port = free_port()
        self.start([prometheus, f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
                    f"--web.listen-address=127.0.0.1:{port}"], port, env=clean_environment())

        def value(query):
            url = (f"http://127.0.0.1:{port}/api/v1/query?"
                   + urllib.parse.urlencode({"query": query}))
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            try:
                found = json.load(opener.open(url, timeout=30))["data"]["result"]
            except OSError:  # not ready
                return None
            return float(found[0]["value"][1]) if found else None
        self.assertEqual(1, eventually(lambda: value('up{job="encore"}'), "it is scraped"))
        self.assertEqual(3, eventually(
            lambda: value('sum(encore_requests_total{outcome="hit"})'), "hits are known"))
        self.assertEqual(2, value("sum(encore_origin_requests_total)"))

    def test_a_name_that_is_listed_is_answered_and_another_is_not(self):
        encore = Recipe(self, "prometheus")
        for host, status in (("cache.example", 200), ("other.example", 403)):
            self.assertEqual(status, encore.admin("/metrics", headers={"Host": host})[0])


if __name__ == "__main__":
    unittest.main()
