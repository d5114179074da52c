"""A hostile engine, and hostile writers of an honest one: the nodes serve on, within bounds, and never serve what was
purged after it was confirmed."""

import json
import random
import threading
import unittest

from client import field, get
from engine import Connection, Relay
from false_engine import MARKUP, SPOILERS, FalseEngine
from fleet import NAMES, FleetCase
from harness import eventually
from operate import Operator
from origin import fresh
from test_joining import in_threads

MIB = 1 << 20
# The largest reply is 8 MiB; parsed it takes several times as much, on each of two threads.
MEMORY_MAX = 100 * MIB


class HostileCase(FleetCase):
    def entry(self, *words):
        self.engine.ask("XADD", "encore:purges", "*", *words)

    def check_memory(self, proxy, before):
        used = proxy.peak_resident_bytes() - before
        print(f"{self.id().rsplit('.', 1)[1]}: {used / MIB:.0f} MiB more")
        self.assertLess(used, MEMORY_MAX)

    def check_follows(self, publisher, path="/followed"):
        """A purge reaches all, and nothing is served that it names."""
        self.fill(path)
        self.edit(path)
        names = sorted(self.nodes)
        done = self.purge(publisher, tag=path.strip("/"))
        self.assertEqual((True, names), (done["published"], done["confirmed"]))
        for proxy in self.nodes.values():
            self.check_new(proxy, path)


class Writers(HostileCase):
    """They write to an honest engine."""

    def kill_connections(self):
        self.engine.ask("CLIENT", "KILL", "TYPE", "normal")
        self.engine.ask("CLIENT", "KILL", "TYPE", "pubsub")
        for proxy in self.nodes.values():
            eventually(lambda: self.purge(proxy, tag="z")["confirmed"] == sorted(self.nodes), "they connect again")

    def test_an_entry_that_is_too_large_is_skipped_and_all_is_validated(self):
        self.node("n0", fleet={"wait": "20s"})
        n1 = self.node("n1", state={"directory": str(self.directory / "n1")})
        self.wait_for_all(("n0", "n1"))
        self.fill("/a", "/b")
        before = n1.resident_bytes()
        self.edit("/a")
        self.entry("tag", b"x" * (40 * MIB))
        self.entry(*[b"tag", b"x"] * 300_000)
        self.entry("tag", "a")
        for proxy in self.nodes.values():
            eventually(lambda: self.metric(proxy, "entries_refused_total") == 2, "both are skipped")
            self.wait_for_metric(proxy, "purges_applied_total", 1)
            self.check_current(proxy)
            self.check_new(proxy, "/a")
            self.assertNotIn("; hit", self.hit(proxy, "/b"))
        self.assertIn("too large", n1.output())
        self.check_follows(self.nodes["n0"])
        # The stream begins with it, and a node's position is at it.
        self.entry("tag", b"x" * (40 * MIB))
        for proxy in self.nodes.values():
            eventually(lambda: self.metric(proxy, "entries_refused_total") == 3, "it is skipped")
        self.kill_connections()
        self.check_follows(self.nodes["n0"])
        self.kill_connections()
        n1.stop()
        n1.start()
        self.wait_for_all(("n0", "n1"))
        self.check_follows(self.nodes["n0"])
        for proxy in self.nodes.values():
            self.assertEqual(0, self.metric(proxy, "gaps_total"))
        self.check_memory(self.nodes["n0"], before)

    def test_a_forged_number_hides_no_purge(self):
        self.start_all()
        n0 = self.nodes["n0"]
        instance = json.loads(self.engine.ask("HGET", "encore:purges:nodes", "n0"))["instance"]
        for number in (1, 2, 3, 2**64 - 1):
            self.entry("node", "n0", "instance", instance, "number", number, "tag", "a")
        for proxy in list(self.nodes.values())[1:]:
            eventually(lambda: self.metric(proxy, "purges_applied_total") >= 1, "they are read")
        self.fill("/a")
        self.edit("/a")
        done = self.purge(n0, tag="a")
        self.assertEqual(["n0", "n1", "n2"], done["confirmed"])
        for proxy in self.nodes.values():
            self.check_new(proxy, "/a")

    def test_presences_by_the_hundred_thousand(self):
        self.start_all()
        n0 = self.nodes["n0"]
        before = n0.resident_bytes()
        key = "encore:purges:nodes"
        with Connection(self.engine.port) as connection:
            for begin in range(0, 300_000, 1000):
                connection.ask("HSET", key, *[word for number in range(begin, begin + 1000)
                                              for word in (f"x{number}", "y")])
            connection.ask("HSET", key, "big", b"x" * (40 * MIB))
        eventually(lambda: self.purge(n0, tag="a")["unconfirmed"][:1] == ["*"], "not all are known")
        self.fill("/a")
        self.edit("/a")
        done = self.purge(n0, tag="a")
        self.assertTrue(done["published"])
        for proxy in self.nodes.values():
            eventually(lambda: self.body(proxy, "/a") == "/a 1", "the purge arrives")
            self.check_current(proxy)
        self.assertIn("too many nodes", n0.output())
        self.check_memory(n0, before)
        # It is small, but one value is not.
        with Connection(self.engine.port) as connection:
            connection.ask("DEL", key)
            connection.ask("HSET", key, "big", b"x" * (40 * MIB))
        eventually(lambda: self.engine.ask("HLEN", key) == 4, "all are there again")
        self.check_current(n0)
        self.assertEqual("*", self.purge(n0, tag="a")["unconfirmed"][0])
        self.engine.ask("HDEL", key, "big")
        self.wait_for_all()
        eventually(lambda: self.purge(n0, tag="a")["unconfirmed"] == [], "all are known again")

    def test_confirmations_of_strangers_hide_none(self):
        n0 = self.node("n0")
        with Connection(self.engine.port) as connection:
            for number in range(3000):
                connection.ask("PUBLISH", "encore:purges:confirmed", f"x{number} 1-1")
            self.node("n1")
            self.wait_for_all(("n0", "n1"))
            for number in range(3000):
                connection.ask("PUBLISH", "encore:purges:confirmed", f"y{number} 1-1")
        self.check_follows(n0)

    def test_fields_that_are_hostile_are_never_shown_as_they_are(self):
        self.start_all()
        n0 = self.nodes["n0"]
        self.fill("/a")
        key = "encore:purges:nodes"
        seen = json.loads(self.engine.ask("HGET", key, "n1"))
        for number, text in enumerate((MARKUP.decode(), "\x1b[31m", "a\nb", "x" * 10 * MIB)):
            self.engine.ask("HSET", key, text[:MIB], json.dumps(seen))
            for name in ("version", "config", "instance"):
                self.engine.ask("HSET", key, f"h{number}{name}", json.dumps({**seen, name: text[:MIB]}))
            self.entry("node", text, "instance", "1", "tag", "a")
            self.entry(text, "1")
            self.entry("url", text)
            self.entry("ban-url", "(" + text)
            self.entry("ban-host", text, "ban-tag", text)
        for odd in (-1, 1e300, "x", [1], {"a": {}}, None, True, 2**64 - 1):
            for name in ("lag", "seen", "hit_ratio", "fill"):
                self.engine.ask("HSET", key, f"{name}{len(json.dumps(odd))}", json.dumps({**seen, name: odd}))
        self.engine.ask("HSET", key, "deep", "[" * 2000)
        self.engine.ask("HSET", key, "lag1e9", json.dumps({**seen, "lag": 1e9}))
        for proxy in self.nodes.values():
            # All; the last of them is too large.
            self.wait_for_metric(proxy, "entries_refused_total", 20)
        self.check_follows(n0)
        eventually(lambda: "lag1e9" in self.fleet(n0)["engine"] or "lag1e9" in
                   [node["node"] for node in self.fleet(n0)["nodes"]], "the presences are read")
        operator = Operator(self, n0.program, "--config", n0.config_path)
        texts = [n0.output(), n0.admin("/metrics")[1], n0.admin("/fleet")[1], n0.admin("/readyz")[1],
                 operator.run("fleet", "--text").out, operator.run("fleet", "--json").out, json.dumps(n0.stats())]
        for text in texts:
            self.assertNotRegex(text, r"[^\x09\x0a\x20-\x7e]")
            self.assertNotIn("\\u001b", text)
            self.assertNotIn("<img", text.replace("\\u003c", "<") if "is refused" not in text else "")
        self.assertIn("11574d 1h", texts[4])

    def test_refused_entries_do_not_fill_the_log(self):
        n0 = self.node("n0")
        self.wait_for_all(("n0",))
        for _ in range(2000):
            self.entry("colour", "red")
        self.wait_for_metric(n0, "entries_refused_total", 2000)
        self.assertLess(n0.output_path.read_text().count("is refused"), 20)

    def test_an_id_at_the_end_of_time_stops_the_stream_and_says_so(self):
        n0 = self.node("n0")
        self.wait_for_all(("n0",))
        self.engine.ask("XADD", "encore:purges", f"{2**64 - 1}-{2**64 - 1}", "tag", "a")
        done = self.purge(n0, tag="b")
        self.assertEqual((False, 1), (done["published"], self.metric(n0, "purges_pending")))
        self.check_late(n0)
        self.engine.ask("DEL", "encore:purges")
        self.check_current(n0)

    def test_many_targets_of_one_entry_take_no_more_memory_than_they_are(self):
        origins = [{"path": f"/{number}", "servers": [f"http://127.0.0.1:{self.origin.port}"]}
                   for number in range(100)]
        n0 = self.node("n0", origin=origins)
        self.wait_for_all(("n0",))
        before = n0.resident_bytes()
        self.entry(*[word for number in range(60_000) for word in ("url", f"http://a/{number}")])
        self.entry(*[word for number in range(60_000) for word in ("prefix", f"http://a/{number}")])
        eventually(lambda: self.metric(n0, "purges_applied_total") == 2, "both are applied")
        self.check_memory(n0, before)


class Engines(HostileCase):
    """The engine itself is hostile."""

    def setUp(self):
        super().setUp()
        self.false = FalseEngine(self)

    def check_no_markup(self, proxy):
        self.assertNotIn("\x1b", proxy.output())
        self.assertNotIn("\x1b", proxy.admin("/readyz")[1] + proxy.admin("/fleet")[1] + proxy.admin("/metrics")[1])

    def spoil_all(self):
        """Waits for replies that come of themselves: those of a transaction need a purge, and PING silence."""
        common = {"SELECT", "TIME", "HLEN", "HGETALL", "HSET", "EXISTS", "XRANGE", "XINFO", "XREAD", "SUBSCRIBE"}

        def is_spoiled():
            return not common & {name for name, _ in self.false.left()}
        for _ in range(20):
            try:
                return eventually(is_spoiled, "they are spoiled", deadline=2)
            except AssertionError:
                # Others are sent when a connection begins.
                self.false.drop()
                self.false.add(["mark", "1"])
        return self.fail(f"not spoiled: {[name for name, _ in self.false.left()]}")

    def test_each_reply_is_spoiled_in_each_way(self):
        """A sample of the pairs of commands and ways, on all connections at the same time."""
        n0, n1 = (self.node(name, engine=self.false.url, fleet={"wait": "2s"}) for name in ("n0", "n1"))
        self.wait_for_all(("n0", "n1"))
        self.fill("/kept", "/a")
        before = n0.resident_bytes()
        chance = random.Random(7)
        ways = sorted(SPOILERS)
        commands = ("SELECT", "TIME", "HLEN", "HGETALL", "HSET", "EXISTS", "XRANGE", "XINFO", "XREAD", "MULTI",
                    "EXEC", "SUBSCRIBE", "PING")
        self.purge(n0, tag="first")
        spoiled = 0
        turns = range(0, len(ways), 2)
        for turn in turns:
            names = [ways[(turn + number) % len(ways)] for number in range(len(commands))]
            for command, way in zip(commands, names):
                self.false.spoil(command, SPOILERS[way])
            with self.subTest(turn=turn, ways=dict(zip(commands, names))):
                path = f"/p{turn}"
                for proxy in (n0, n1):
                    self.body(proxy, path)
                self.edit(path)
                publisher, other = chance.sample((n0, n1), 2)
                done = self.purge(publisher, tag=path[1:])
                self.check_new(publisher, path)
                if other.sections["fleet"]["node"] in done["confirmed"]:
                    self.check_new(other, path)
                self.assertEqual("/kept 0", self.body(n0, "/kept"))
            self.spoil_all()
            with self.false.lock:
                left, self.false.orders = self.false.orders, []
            spoiled += len(commands) - len(left)
        print(f"{spoiled} of {len(turns) * len(commands)} replies were spoiled")
        self.assertGreater(spoiled, 8 * len(turns))
        for proxy in (n0, n1):
            self.check_current(proxy)
            for turn in turns:
                eventually(lambda: self.body(proxy, f"/p{turn}") == f"/p{turn} 1", "all purges arrive")
            self.check_no_markup(proxy)
        eventually(lambda: self.purge(n0, tag="z")["unconfirmed"] == [], "all confirm again")
        self.check_follows(n0)
        self.check_memory(n0, before)

    def test_an_engine_that_repeats_the_password_does_not_have_it_shown(self):
        for number, text in enumerate((b"-ERR unknown command 'AUTH', with args beginning with: 'me' 'topsecret' \r\n",
                                       b"-topsecret\r\n", b"-WRONGPASS topsecret\r\n")):
            for _ in range(6):
                self.false.spoil("AUTH", lambda reply, text=text: [text])
            proxy = self.node(f"n{number}", engine=self.false.url.replace("//", "//me:topsecret@"), fleet={"late": "1s"})
            eventually(lambda: "refuses user and password" in proxy.output(), "it is said")
            for shown in (proxy.output(), proxy.admin("/fleet")[1], proxy.admin("/readyz")[1], proxy.admin("/metrics")[1],
                          json.dumps(proxy.stats())):
                self.assertNotIn("topsecret", shown)
            eventually(lambda: not self.false.left(), "it is refused")
            self.check_current(proxy)

    def test_entries_out_of_order_and_again(self):
        n0 = self.node("n0", engine=self.false.url)
        self.wait_for_all(("n0",))
        self.body(n0, "/a")
        self.edit("/a")
        self.false.add(["mark", "1"])
        first = self.false.add(["tag", "x"])
        self.wait_for_metric(n0, "purges_applied_total", 1)
        # A place before the last one: the reply is none, and the connection begins again.
        for place in (first, (0, 0), (first[0] - 5, 0)):
            self.false.spoil("XREAD", lambda reply, place=place: [
                b"*1\r\n*2\r\n$1\r\nx\r\n*1\r\n*2\r\n$%d\r\n%d-%d\r\n*2\r\n$3\r\ntag\r\n$1\r\nx\r\n" % (
                    len(b"%d-%d" % place), *place)])
        eventually(lambda: not self.false.left(), "they are sent")
        self.false.add(["tag", "a"])
        eventually(lambda: self.body(n0, "/a") == "/a 1", "a later one is applied")
        self.check_current(n0)
        self.wait_for_metric(n0, "purges_applied_total", 2)
        self.assertEqual(0, self.metric(n0, "gaps_total"))


class Gaps(HostileCase):
    """Purges that a node has missed."""

    def page(self, exchange):
        if exchange.request.target.endswith("/down"):
            return super().page(exchange)
        version = self.versions.get("/w", 0)
        if self.is_failing:
            return exchange.send(b"HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")
        return exchange.send(fresh(f"/w {version}".encode(), ETag=f'"{version}"', Cache_Tag="w").replace(
            b"max-age=600", b"max-age=600, stale-while-revalidate=600, stale-if-error=600"))

    is_failing = False

    def test_nothing_that_was_purged_meanwhile_is_served_again(self):
        relay = Relay(self, self.engine.port)
        n0 = self.node("n0")
        n1 = self.node("n1", engine=relay.url)
        self.wait_for_all(("n0", "n1"))
        self.purge(n0, tag="first")
        self.fill("/w")
        relay.cut()
        self.edit("/w")
        # Removed everywhere, but at n1, which misses it.
        done = self.purge(n0, tag="w")
        self.assertEqual((True, ["n1"]), (done["published"], done["unconfirmed"]))
        self.engine.ask("XTRIM", "encore:purges", "MAXLEN", "0")
        relay.mend()
        self.wait_for_metric(n1, "gaps_total", 1)
        eventually(lambda: "n1" in self.purge(n0, tag="other")["confirmed"], "n1 is back")
        self.is_failing = True
        for asked in ([], [("Cache-Control", "max-stale")], [("Cache-Control", "max-stale=100, stale-if-error=100")]):
            answer = get(n1.port, self.origin.url("/w"), fields=asked)
            self.assertGreaterEqual(answer.status, 500, (answer.body, field(answer, "Cache-Status")))
        self.is_failing = False
        for asked in ([("Cache-Control", "max-stale")], []):
            answer = get(n1.port, self.origin.url("/w"), fields=asked)
            self.assertEqual(b"/w 1", answer.body, field(answer, "Cache-Status"))

    def test_what_is_valid_still_is_not_fetched_again(self):
        n0 = self.node("n0")
        self.wait_for_all(("n0",))
        self.purge(n0, tag="first")
        self.fill("/w")
        asked = self.origin.count()
        self.engine.stop()
        self.engine.start()
        self.wait_for_metric(n0, "gaps_total", 1)
        self.assertEqual("/w 0", self.body(n0, "/w"))
        self.assertEqual(asked + 1, self.origin.count())
        self.assertIn("; hit", self.hit(n0, "/w"))


class AtOnce(HostileCase):
    """Purges, fetches and clients at the same time."""

    def test_a_fetch_under_way_is_not_stored_past_a_purge(self):
        self.start_all()
        n0, n1, _ = self.nodes.values()
        for number, targets in enumerate(({"url": "{}"}, {"tag": "t"}, {"prefix": "{}"}, {"all": "1"})):
            path = f"/t/{number}"
            url = self.origin.url(path)
            go, come = threading.Event(), threading.Event()
            page = self.page

            def slow(exchange):
                body = f"{path} {self.versions.get(path, 0)}"
                come.set()
                exchange.wait(go)
                exchange.send(fresh(body.encode(), Surrogate_Key="t"))
            self.origin.routes[path] = slow
            for proxy in (n0, n1):
                come.clear()
                threads, answers = in_threads(1, lambda _: self.body(proxy, path))
                self.assertTrue(come.wait(30))
                self.edit(path)
                done = self.purge(n0, **{key: value.format(url) for key, value in targets.items()})
                self.assertIn("n1", done["confirmed"])
                go.set()
                threads[0].join()
                self.assertEqual(f"{path} {self.versions[path] - 1}", answers[0])
                self.check_new(proxy, path)
                go.clear()
            go.set()
            self.origin.routes[path] = page

    def test_two_nodes_purge_and_edit_one_page_at_the_same_time(self):
        """After a purge was confirmed, no node that has confirmed serves what was before it."""
        self.start_all(fleet={"wait": "20s"})
        path = "/t/1"
        lock = threading.Lock()
        faults, counts = [], [0, 0]
        # By node: the newest version whose purge it has confirmed. A purge that comes while two fetches
        # are in progress keeps the newer one from being stored, so that versions alone may go back.
        floors = dict.fromkeys(NAMES, 0)
        end = threading.Event()

        def edit(number):
            proxy = self.nodes[NAMES[number % 2]]
            for turn in range(40):
                with lock:
                    self.edit(path)
                    version = self.versions[path]
                targets = ({"url": self.origin.url(path)}, {"tag": "t"}, {"prefix": self.origin.url("/t")})[turn % 3]
                done = self.purge(proxy, **targets)
                counts[0] += 1
                for name in done["confirmed"]:
                    with lock:
                        floors[name] = max(floors[name], version)
                    served = int(self.body(self.nodes[name], path).split()[1])
                    if served < version:
                        faults.append((name, served, version))
                if done["unconfirmed"]:
                    faults.append(done)

        def read(number):
            name = NAMES[number % 3]
            while not end.is_set():
                with lock:
                    floor = floors[name]
                served = int(self.body(self.nodes[name], path).split()[1])
                counts[1] += 1
                if served < floor:
                    faults.append(("old", name, served, floor))
        readers, _ = in_threads(3, read)
        editors, results = in_threads(4, edit)
        for thread in editors:
            thread.join()
        end.set()
        for thread in readers:
            thread.join()
        print(f"{counts[0]} purges, {counts[1]} requests")
        self.assertEqual(([], [None] * 4, 160), (faults, results, counts[0]))


if __name__ == "__main__":
    unittest.main()
