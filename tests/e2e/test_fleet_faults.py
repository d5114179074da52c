"""The engine fails in many ways: the nodes go on, and purges arrive later."""

import concurrent.futures
import http.client
import pathlib
import unittest

from engine import Liar, Refused, Relay
from fleet import FleetCase
from harness import eventually
from operate import Operator


class Faults(FleetCase):
    """The engine fails; the nodes go on."""

    def check_queued(self, publisher, *tags):
        """Purges are done here, and wait for the engine."""
        for tag in tags:
            done = self.purge(publisher, tag=tag)
            self.assertFalse(done["published"])
            self.assertIn(publisher.sections["fleet"]["node"], done["confirmed"])
        self.assertEqual(len(tags), self.metric(publisher, "purges_pending"))

    def tags_in_stream(self):
        """In their order, once each: a purge may be there twice if its publisher has not seen the
        engine's reply."""
        entries = self.engine.ask("XRANGE", "encore:purges", "-", "+")
        seen = {}
        for _, fields in entries:
            named = dict(zip(fields[::2], fields[1::2]))
            if "tag" in named:
                seen.setdefault((named["instance"], named["number"]), named["tag"])
        return list(seen.values())

    def test_frozen(self):
        self.start_all()
        n0, n1, _ = self.nodes.values()
        self.fill("/a", "/b")
        self.engine.freeze()
        self.edit("/a")
        self.check_queued(n0, "a", "c", "d")
        self.check_new(n0, "/a")
        self.assertIn("; hit", self.hit(n1, "/b"))
        for proxy in self.nodes.values():
            self.check_late(proxy)
        self.engine.thaw()
        for proxy in self.nodes.values():
            self.check_current(proxy)
            eventually(lambda: self.body(proxy, "/a") == "/a 1", "the purge arrives")
            self.assertEqual(0, self.metric(proxy, "gaps_total"))
            self.assertIn("; hit", self.hit(proxy, "/b"))
        self.assertEqual(["a", "c", "d"], self.tags_in_stream())
        eventually(lambda: self.metric(n1, "purges_applied_total") >= 3, "all are applied, or again")

    def test_stopped_and_restarted_with_an_empty_memory(self):
        self.start_all()
        n0 = self.nodes["n0"]
        self.fill("/a", "/b")
        self.purge(n0, tag="before")
        self.engine.stop()
        self.edit("/a", "/b")
        self.check_queued(n0, "a", "c")
        for proxy in self.nodes.values():
            self.check_late(proxy)
        self.engine.start()
        for proxy in self.nodes.values():
            self.check_current(proxy)
            # Purges of others may have been lost with it: all is validated.
            eventually(lambda: self.metric(proxy, "gaps_total") == 1, "the gap is seen")
            self.check_new(proxy, "/a", "/b")
        eventually(lambda: self.tags_in_stream() == ["before", "a", "c"], "all are published")

    def test_restored_from_an_older_state(self):
        self.start_all()
        n0, n1, _ = self.nodes.values()
        self.purge(n0, tag="saved")
        self.engine.ask("SAVE")
        self.fill("/a")
        self.purge(n0, tag="lost")
        self.engine.stop()
        self.engine.start()
        for proxy in self.nodes.values():
            self.check_current(proxy)
            eventually(lambda: self.metric(proxy, "gaps_total") == 1, "the gap is seen")
        eventually(lambda: self.tags_in_stream()[:2] == ["saved", "lost"], "it is published again")
        self.assertIn("are published again", n0.output())
        self.assertNotIn("are published again", n1.output())

    def test_full(self):
        self.start_all()
        n0 = self.nodes["n0"]
        self.fill("/a", "/b")
        self.purge(n0, tag="before")
        self.engine.ask("CONFIG", "SET", "maxmemory-policy", "noeviction")
        self.engine.ask("CONFIG", "SET", "maxmemory", "1mb")
        with self.assertRaises(Refused):
            self.engine.ask("SET", "x", "y")
        self.edit("/a")
        self.check_queued(n0, "a", "c")
        self.check_new(n0, "/a")
        self.check_late(n0)
        self.assertIn("OOM", self.fleet(n0)["engine"]["fault"])
        self.assertIn("; hit", self.hit(self.nodes["n1"], "/b"))
        self.engine.ask("CONFIG", "SET", "maxmemory", "0")
        for proxy in self.nodes.values():
            self.check_current(proxy)
            eventually(lambda: self.body(proxy, "/a") == "/a 1", "the purge arrives")
            self.assertEqual(0, self.metric(proxy, "gaps_total"))
        self.assertEqual(["before", "a", "c"], self.tags_in_stream())

    def test_partitioned_from_one_node(self):
        relay = Relay(self, self.engine.port)
        self.node("n0")
        n1 = self.node("n1", engine=relay.url)
        self.wait_for_all(("n0", "n1"))
        self.fill("/a", "/b")
        relay.cut()
        self.edit("/a", "/b")
        done = self.purge(self.nodes["n0"], tag="a")
        self.assertEqual((True, ["n0"], ["n1"]),
                         (done["published"], done["confirmed"], done["unconfirmed"]))
        self.check_queued(n1, "b")
        self.assertEqual("/a 0", self.body(n1, "/a"))
        self.check_late(n1)
        relay.mend()
        self.check_current(n1)
        self.check_new(n1, "/a", "/b")
        eventually(lambda: self.body(self.nodes["n0"], "/b") == "/b 1", "the other's purge arrives")
        self.assertEqual(0, self.metric(n1, "gaps_total"))

    def test_purges_that_wait_survive_the_end_of_their_process(self):
        state = str(self.directory / "state")
        n0 = self.node("n0", state={"directory": state})
        n1 = self.node("n1")
        self.wait_for_all(("n0", "n1"))
        self.fill("/a")
        self.engine.freeze()
        self.edit("/a")
        self.check_queued(n0, "x", "a")
        n0.process.kill()
        n0.process.wait()
        self.engine.thaw()
        n0.start()
        eventually(lambda: self.body(n1, "/a") == "/a 1", "the purge arrives")
        self.assertEqual(["x", "a"], self.tags_in_stream())
        eventually(lambda: not pathlib.Path(state, "fleet-waiting").exists(), "none waits any more")

    def test_a_queue_that_is_full_becomes_one_purge_of_everything(self):
        self.start_all()
        n0, n1, _ = self.nodes.values()
        self.fill("/a")
        self.engine.freeze()
        self.edit("/a")
        # 64 MiB may wait.
        body = b"prefix=" + self.origin.url("/big/").encode() + b"x" * 900_000

        def purge(_):
            connection = http.client.HTTPConnection("127.0.0.1", n0.admin_port, timeout=60)
            connection.request("POST", "/purge", body=body)
            response = connection.getresponse()
            status, text = response.status, response.read().decode()
            connection.close()
            return status, text

        with concurrent.futures.ThreadPoolExecutor(16) as pool:
            results = list(pool.map(purge, range(100)))
        refused = [text for status, text in results if status == 503]
        self.assertEqual({200, 503}, {status for status, _ in results})
        self.assertIn("the other nodes purge everything", refused[0])
        self.assertLess(self.metric(n0, "purges_pending"), 100)
        self.assertGreaterEqual(self.metric(n0, "queue_overflows_total"), 1)
        self.assertEqual("/a 0", self.body(n1, "/a"))
        self.engine.thaw()
        self.check_current(n0)
        eventually(lambda: self.body(n1, "/a") == "/a 1", "all are purged")

    def test_readyz_fails_after_fleet_late(self):
        n0 = self.node("n0", fleet={"late": "1s"})
        self.engine.stop()
        eventually(lambda: n0.admin("/readyz")[0] == 503, "it is not ready")
        self.assertIn("purges are late", n0.admin("/readyz")[1])
        self.body(n0, "/a")
        self.assertIn("; hit", self.hit(n0, "/a"))
        self.engine.start()
        eventually(lambda: n0.admin("/readyz")[0] == 200, "it is ready again")

    def test_an_engine_that_replies_nonsense(self):
        n0 = self.node("n0")
        self.body(n0, "/a")
        for key in ("encore:purges", "encore:purges:nodes"):
            self.engine.ask("DEL", key)
            self.engine.ask("SET", key, "x")
            eventually(lambda: "WRONGTYPE" in self.fleet(n0)["engine"]["fault"], "it is said")
            self.assertEqual("/a 0", self.body(n0, "/a"))
            self.engine.ask("DEL", key)
            self.check_current(n0)

    def test_an_engine_that_refuses_only_the_presence_takes_purges(self):
        n0 = self.node("n0")
        eventually(lambda: "fleet: publishing purges by" in n0.output(), "its presence was taken once")
        self.engine.ask("DEL", "encore:purges:nodes")
        self.engine.ask("SET", "encore:purges:nodes", "x")
        eventually(lambda: "WRONGTYPE" in self.fleet(n0)["engine"]["fault"], "it is said")
        for tag in ("a", "b"):
            self.assertTrue(self.purge(n0, tag=tag)["published"])
            self.assertIn("WRONGTYPE", self.fleet(n0)["engine"]["fault"])
        self.assertEqual(["a", "b"], self.tags_in_stream())
        self.assertEqual(1, n0.output().count("fleet: publishing purges by"))

    def test_two_nodes_of_one_name_are_warned_of(self):
        both = [self.node("n0"), self.node("n0")]
        self.node("n1")
        for proxy in both:
            eventually(lambda: self.fleet(proxy)["warnings"], "it is said")
            self.assertEqual(['another process is node "n0" as well; set fleet.node to a unique '
                              'name'], self.fleet(proxy)["warnings"])
            operator = Operator(self, proxy.program, "--config", proxy.config_path)
            self.assertIn('\nwarning another process is node "n0" as well',
                          operator.run("fleet", "--text").out)
        self.assertEqual([], self.fleet(self.nodes["n1"])["warnings"])

    def test_an_engine_that_lies(self):
        entry = b"*1\r\n*2\r\n$13\r\nencore:purges\r\n*1\r\n*2\r\n$3\r\n%b\r\n*2\r\n$3\r\ntag\r\n$1\r\na\r\n"
        liar = Liar(self, [
            b"\x00\xff" * 5000, b"HTTP/1.1 200 OK\r\n\r\n", b"*1000000000\r\n", b"*-7\r\n", b"$-7\r\n",
            b"$99999999999999999999\r\n", b"$1000000000\r\n" + b"x" * 100000, b"*1\r\n" * 100,
            b"+OK\r\n" * 10, b":0\r\n" * 10, b":1\r\n" * 10, b"-LOADING\r\n" * 10, b"-NOAUTH \x1b[31m\r\n" * 10,
            b"*0\r\n" * 10, b"*-1\r\n" * 10, b"$-1\r\n" * 10,
            (b"+OK\r\n:0\r\n*0\r\n-ERR no such key\r\n" + entry % b"1-1") * 3,
            (b"+OK\r\n:0\r\n*0\r\n-ERR no such key\r\n" + entry % b"0-0") * 3,
            b"+OK\r\n" + b"*2\r\n$1\r\n1\r\n$1\r\nx\r\n" * 10])
        n0 = self.node("n0", engine=liar.url)
        self.body(n0, "/a")
        done = self.purge(n0, tag="x")
        self.assertEqual((False, ["n0"]), (done["published"], done["confirmed"]))
        eventually(lambda: min(liar.sent) > 0, "each was read")
        self.assertEqual("/a 0", self.body(n0, "/a"))
        self.assertEqual(1, self.metric(n0, "purges_pending"))
        self.assertNotIn("\x1b", n0.output())

    def test_passwords_are_needed_and_never_shown(self):
        self.engine.ask("ACL", "SETUSER", "encore", "on", ">topsecret", "~encore:purges*",
                        "&encore:purges:confirmed", "+@all", "-@dangerous")
        self.engine.ask("CONFIG", "SET", "requirepass", "topsecret")
        secret = self.directory / "password"
        secret.write_text("topsecret\n")
        secret.chmod(0o600)
        wrong = self.node("n0", engine=self.engine.url.replace("//", "//:wrongsecret@"))
        by_file = self.node("n1", fleet={"password_file": str(secret)})
        by_url = self.node("n2", engine=self.engine.url.replace("//", "//:topsecret@"))
        by_user = self.node("n3", engine=self.engine.url.replace("//", "//encore:@"),
                            fleet={"password_file": str(secret)})
        self.wait_for_all(("n1", "n2", "n3"))
        for proxy in (by_file, by_user):
            self.assertEqual(["n1", "n2", "n3"], self.purge(proxy, tag="a")["confirmed"])
        self.assertIn("WRONGPASS", self.fleet(wrong)["engine"]["fault"])
        for proxy in (wrong, by_file, by_url, by_user):
            dumped = self.run_client([proxy.program, "--config", proxy.config_path, "--dump-config"])
            shown = [dumped.stdout.decode(), proxy.output(), proxy.admin("/fleet")[1],
                     proxy.admin("/api/config")[1], proxy.admin("/metrics")[1]]
            for text in shown:
                self.assertNotIn("topsecret", text)
                self.assertNotIn("wrongsecret", text)
        secret.chmod(0o644)
        n4 = self.encore(start=False, fleet={"purges": self.engine.url, "node": "n4",
                                             "password_file": str(secret)})
        n4.write_config()
        ended = self.run_client([n4.program, "--config", n4.config_path], check=False)
        self.assertEqual(1, ended.returncode)
        self.assertIn(b"chmod 600", ended.stdout)


if __name__ == "__main__":
    unittest.main()
