"""encore top and encore log: live numbers, hosts and clients, and requests as they end."""

import http.client
import json
import re
import select
import threading
import unittest

from client import get
from harness import DEADLINE, Case, eventually
from operate import UNREACHABLE, Operator
from origin import Origin, fresh


def get_from(client, port, url):
    """A request to the proxy by this address of loopback."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE,
                                            source_address=(client, 0))
    try:
        connection.request("GET", url)
        return connection.getresponse().read()
    finally:
        connection.close()


class Live(Case):
    def setUp(self):
        super().setUp()
        self.origin = Origin(self, {"/page": fresh(b"p" * 1000)})

    def operator(self, encore):
        return Operator(self, encore.program, "--config", encore.config_path)


class Top(Live):
    def test_hosts_and_clients_with_their_requests(self):
        encore = self.encore()
        for _ in range(8):
            get(encore.port, self.origin.url("/page"))
            get_from("127.0.0.9", encore.port, self.origin.url("/none"))
        eventually(lambda: sum(encore.stats()["requests"].values()) == 16, "all are counted")
        # A hit from memory is one of a sample: how many stand for it is known, not which.
        top = self.operator(encore).run("top").json
        clients = {each["name"]: each for each in top["clients_by_requests"]}
        self.assertEqual(8, clients["127.0.0.9"]["requests"])
        self.assertGreaterEqual(clients["127.0.0.1"]["requests"], 2)
        host = self.origin.url("").removeprefix("http://")
        self.assertEqual([host], [each["name"] for each in top["hosts_by_requests"]])
        self.assertGreaterEqual(top["hosts_by_bytes"][0]["bytes"], 2000)
        self.assertLessEqual(top["names_seconds"], 120)
        self.assertEqual({"hit", "miss", "pass", "error"},
                         set(top["rates"]["requests_per_second"]))

    def test_rates_and_latencies_are_those_of_the_last_seconds(self):
        encore = self.encore()
        operator = self.operator(encore)
        stop = threading.Event()

        def load():
            while not stop.is_set():
                get(encore.port, self.origin.url("/page"))
        thread = threading.Thread(target=load)
        thread.start()
        try:
            rates = eventually(
                lambda: (top := operator.run("top").json["rates"])["seconds"] >= 2
                and top["latency_seconds"]["hit"] and top, "there are two seconds of hits")
        finally:
            stop.set()
            thread.join()
        self.assertGreater(rates["requests_per_second"]["hit"], 0)
        self.assertGreater(rates["object_hit_ratio"], 0.5)
        self.assertGreater(rates["bytes_to_clients_per_second"], 0)
        hit = rates["latency_seconds"]["hit"]
        self.assertLessEqual(hit["p50"], hit["p90"])
        self.assertLessEqual(hit["p90"], hit["p99"])

    def test_the_screen_is_drawn_again_and_again_within_its_lines(self):
        encore = self.encore()
        get_from("127.0.0.9", encore.port, self.origin.url("/page"))
        eventually(lambda: sum(encore.stats()["requests"].values()) == 1, "it is counted")
        screen = self.operator(encore).screen("top", "--interval", "1", "--count", "2", lines=20)
        self.assertEqual(0, screen.end())
        drawn = screen.shown.split("\x1b[H")[1:]
        self.assertEqual(2, len(drawn))
        for each in drawn:
            self.assertIn("hit ratio", each)
            self.assertRegex(each, r"127\.0\.0\.9 +\d")
            self.assertLess(each.count("\n"), 20)
        # Only what draws over: no other command to the terminal.
        self.assertEqual(set(), set(re.findall(r"\x1b\[[\d;]*[A-Za-z]", screen.shown))
                         - {"\x1b[2J", "\x1b[H", "\x1b[K", "\x1b[J"})

    def test_clients_of_ipv6_are_networks(self):
        encore = self.encore(start=False)
        encore.sections["listen"][0].update(
            address=f"127.0.0.1:{encore.port}", trusted_proxies=["127.0.0.1"])
        encore.start()
        for last in range(4):
            get(encore.port, self.origin.url(f"/{last}"),
                fields=[("X-Forwarded-For", f"2001:db8:0:7::{last + 1}")])
        top = eventually(lambda: (top := self.operator(encore).run("top").json)
                         and top["clients_by_requests"] and top, "they are counted")
        names = {each["name"] for each in top["clients_by_requests"]}
        self.assertEqual({"2001:db8:0:7::/64"}, names)


class Follow(Live):
    def follow(self, encore, *words):
        return self.operator(encore).start("log", "--follow", *words)

    def until_followed(self, encore, process, path):
        """Sends requests until one of them is shown; its line."""
        shown = []
        reader = threading.Thread(target=lambda: shown.append(process.stdout.readline()))
        reader.start()

        def ask():
            get(encore.port, self.origin.url(path))
            reader.join(0.05)
            return shown
        return eventually(ask, "a request is shown")[0]

    def test_records_as_they_end_without_an_access_log(self):
        # Workers have no common order: a record is made after the client has its last byte.
        encore = self.encore(log={"access": ""}, workers={"count": 1})
        process = self.follow(encore)
        record = json.loads(self.until_followed(encore, process, "/page"))
        self.assertEqual(self.origin.url("/page"), record["url"])
        self.assertEqual("127.0.0.1", record["client"])
        self.assertIn(record["outcome"], ("first-request", "second-request", "hit"))
        # Every later one, hits too, in its order.
        asked = [self.origin.url(f"/{i}") for i in range(20)]
        for url in asked:
            get(encore.port, url)
        seen = []
        while not seen or seen[-1] != asked[-1]:
            seen.append(json.loads(process.stdout.readline())["url"])
        self.assertEqual(asked, [url for url in seen if url != self.origin.url("/page")])

    def test_only_those_that_are_wanted_and_an_end(self):
        encore = self.encore()
        process = self.follow(encore, "--outcome", "hit", "--client", "127.0.0.1", "--count", "2",
                              "--host", self.origin.url("").removeprefix("http://"))
        first = json.loads(self.until_followed(encore, process, "/page"))
        self.assertEqual("hit", first["outcome"])
        get(encore.port, self.origin.url("/other"))
        get(encore.port, self.origin.url("/page"))
        second = json.loads(process.stdout.readline())
        self.assertEqual("hit", second["outcome"])
        self.assertEqual(0, process.wait(DEADLINE))

    def test_secrets_are_redacted_and_bytes_cannot_command_the_terminal(self):
        encore = self.encore(log={"redact_query": ["key"]})
        screen = self.operator(encore).screen("log")

        def ask(shown):
            get(encore.port, self.origin.url("/x?key=hunter2"))
            return "key=***" in shown
        eventually(lambda: self.ask_and_read(screen, ask), "a line is shown")
        self.assertNotIn("hunter2", screen.shown)
        self.assertNotIn("\x1b", screen.shown)
        self.assertRegex(screen.shown, r"(?m)^\d\d:\d\d:\d\d\.\d{3} 127\.0\.0\.1 [\w-]+(/\S+)? 404 ")

    def ask_and_read(self, screen, ask):
        found = ask(screen.shown)
        while select.select([screen.master], [], [], 0.05)[0]:
            if not screen.read():
                break
        return found

    def test_a_drain_waits_for_nobody_who_follows(self):
        encore = self.encore(timeouts={"drain": "5s"})  # less than a follower waits
        process = self.follow(encore)
        self.until_followed(encore, process, "/page")
        encore.stop()  # exit status 0, and not cut
        self.assertNotIn("requests of the admin listener are cut", encore.output())
        process.stdout.read()
        self.assertEqual(UNREACHABLE, process.wait(DEADLINE))

    def test_following_costs_nothing_when_nobody_does(self):
        encore = self.encore(log={"access": ""})
        get(encore.port, self.origin.url("/page"))
        status, text = encore.admin("/api/log?from=0")
        self.assertEqual(200, status)
        self.assertEqual([], json.loads(text)["records"])

    def test_no_more_than_sixteen_follow(self):
        encore = self.encore()
        answers = []

        def wait():
            answers.append(encore.admin("/api/log")[0])
        threads = [threading.Thread(target=wait) for _ in range(17)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([200] * 16 + [503], sorted(answers))
        self.assertEqual(400, encore.admin("/api/log?from=x")[0])
        self.assertEqual(405, encore.admin("/api/log", "HEAD")[0])
        self.operator(encore).run("top", "--names", "65", status=2)
        self.assertEqual(400, encore.admin("/api/top?count=65")[0])


if __name__ == "__main__":
    unittest.main()
