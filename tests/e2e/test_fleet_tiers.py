"""Two tiers: front nodes that ask parents, which divide the keys, and one origin behind them. The
parents' Cache-Status as the fronts' admission hint; one request to the origin for all clients; Age,
validators and purges right through."""

import collections
import json
import threading
import time

from client import field
from harness import Case, eventually, free_port
from origin import Origin, fresh, response
from test_joining import in_threads
from test_reverse import ask

HOST = "www.example"


class TiersCase(Case):
    parents_count = 2

    def tier(self, name, servers, trusted=(), **origin):
        return self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse",
                     "trusted_proxies": list(trusted) or ["127.0.0.1"]}],
            origin=[{"servers": servers, **origin}], http={"via": name}, workers={"count": 2})

    def tiers(self, routes=None, hint="trusted", **options):
        self.origin = Origin(self, routes, **options)
        self.parents = [self.tier(f"parent{number}", [self.origin.url("")])
                        for number in range(self.parents_count)]
        self.fronts = [self.tier(f"front{number}", [parent.url for parent in self.parents],
                                 balance="hash", admission_hint=hint) for number in range(3)]

    def ask(self, node, path="/a", **options):
        answer = ask(node.port, path, HOST, **options)
        self.assertLess(answer.status, 500)
        return answer

    def await_asked(self, count):
        """The parents have answered so many requests."""
        def asked():
            return sum(sum(parent.outcomes().values()) for parent in self.parents)
        eventually(lambda: asked() == count, f"the parents count {count} requests")

    def members(self, answer):
        """The members of Cache-Status: the parent's and the front's, if none was before them."""
        return [each.strip() for each in field(answer, "Cache-Status").split(",")]


class Hints(TiersCase):
    def test_a_front_stores_at_once_what_its_parent_had_a_request_for(self):
        self.tiers(default=fresh(b"body"))
        first, second, third = self.fronts
        parent, own = self.members(self.ask(first))
        self.assertIn("detail=first-request", parent)
        self.assertIn("detail=first-request", own)
        parent, own = self.members(self.ask(second))
        self.assertIn("detail=second-request", parent)
        self.assertIn("stored; detail=parent-hint", own)
        parent, own = self.members(self.ask(third))
        self.assertIn("; hit", parent)
        self.assertIn("stored; detail=parent-hint", own)
        self.assertEqual(2, self.origin.count())
        self.await_asked(3)
        for front in (second, third):
            self.assertIn("; hit", self.members(self.ask(front))[-1])
        # A key that the front knows by itself owes the parent nothing.
        self.assertIn("detail=second-request", self.members(self.ask(first))[-1])
        self.await_asked(4)
        eventually(lambda: third.outcomes() == {"parent-hint": 1, "hit": 1}, "both are counted")
        records = third.access_records(2)
        self.assertEqual(("parent-hint", "parent-hint"),
                         (records[0]["outcome"], records[0]["detail"]))
        self.assertEqual(1, third.metrics()['encore_admissions_total{reason="parent-hint"}'])

    def test_without_the_key_a_parent_says_nothing(self):
        self.tiers(default=fresh(b"body"), hint="off")
        for front in self.fronts:
            self.assertIn("detail=first-request", self.members(self.ask(front))[-1])

    def test_a_validated_parent_is_a_hint_and_a_parent_on_probation_is_none(self):
        self.origin = Origin(self, {"/a": fresh(b"body", Cache_Status="parent; fwd=stale"),
                                    "/b": fresh(b"body", Cache_Status="parent; fwd=uri-miss; "
                                                "stored; detail=probation")})
        front = self.tier("front", [self.origin.url("")], admission_hint="trusted")
        self.assertIn("detail=parent-hint", self.members(self.ask(front))[-1])
        self.assertIn("detail=first-request", self.members(self.ask(front, "/b"))[-1])

    def test_only_the_servers_of_an_origin_that_is_trusted_are_believed(self):
        evil = fresh(b"body", Cache_Status="parent; hit")
        self.origin = Origin(self, default=evil)
        plain = self.tier("plain", [self.origin.url("")])
        self.assertIn("detail=first-request", self.members(self.ask(plain))[-1])
        # Behind a parent an origin is not the last who speaks.
        parent = self.tier("parent", [self.origin.url("")])
        front = self.tier("front", [parent.url], admission_hint="trusted")
        origin, said, own = self.members(self.ask(front))
        self.assertEqual("parent; hit", origin)
        self.assertIn("detail=first-request", said)
        self.assertIn("detail=first-request", own)

    def test_a_clients_field_is_no_hint(self):
        self.tiers(default=fresh(b"body"))
        forged = [("Cache-Status", "parent0; hit")]
        for path in ("/a", "/b"):
            answer = self.ask(self.fronts[0], path, fields=forged)
            self.assertIn("detail=first-request", self.members(answer)[-1])

    def test_hostile_fields_of_a_trusted_server_do_no_harm(self):
        values = ["hit", "a; hit,", "a; hit; \"", "a; hit=1", "a; hit=?0", "(a b); hit, (", "\x01; hit",
                  "a;hit;" + "x" * 8000 + "!", "a; hit" + "".join(f"; k{n}" for n in range(300)),
                  ",", "=", "a; detail=\"second",
                  "a; hit, b; fwd=\"stale\\", "\xff; hit", "a; hit\r\nCache-Status: b; Hit",
                  "a; hit\r\nCache-Status: b; fwd=miss"]
        self.origin = Origin(self, {f"/{number}": fresh(b"body", Cache_Status=value)
                                    for number, value in enumerate(values)})
        self.origin.routes = {path: bytes(route.decode("utf-8").encode("latin-1"))
                              for path, route in self.origin.routes.items()}
        front = self.tier("front", [self.origin.url("")], admission_hint="trusted")
        for number, value in enumerate(values):
            answer = ask(front.port, f"/{number}", HOST)
            with self.subTest(value[:40]):
                self.assertFalse("parent-hint" in field(answer, "Cache-Status"))
                self.assertIn(answer.status, (200, 502))
                if answer.status == 200:
                    self.assertEqual(b"body", answer.body)
        self.assertNotIn("parent-hint", front.outcomes())


class OneRequest(TiersCase):
    def test_many_clients_of_all_fronts_are_one_request_to_the_origin(self):
        go = threading.Event()

        def page(exchange):
            exchange.wait(go)
            return fresh(b"body")
        self.tiers({"/a": page})
        each = 8
        pad = "x" * 2000
        threads, answers = in_threads(3 * each, lambda number: ask(
            self.fronts[number % 3].port, "/a", HOST, fields=[("X-Pad", pad)]))

        def received(node):
            return node.metrics()["encore_client_received_bytes_total"] // len(pad)
        # Each front asks the same parent once for all of its clients.
        eventually(lambda: [received(front) for front in self.fronts] == [each] * 3,
                   "all clients have asked")
        eventually(lambda: sorted(received(parent) for parent in self.parents) == [0, 3],
                   "all fronts have asked")
        go.set()
        for thread in threads:
            thread.join()
        self.assertEqual([b"body"] * (3 * each), [answer.body for answer in answers])
        self.assertEqual(1, self.origin.count())
        # It is stored in both tiers now.
        for front in self.fronts:
            self.assertEqual(["; hit" in self.members(self.ask(front))[-1]], [True])
        self.assertEqual(1, self.origin.count())

    def test_one_after_the_other_the_origin_is_asked_twice_for_three_fronts(self):
        self.tiers(default=lambda x: fresh(x.request.target.encode()))
        paths = [f"/{number}" for number in range(30)]
        for front in self.fronts * 2:
            for path in paths:
                self.assertEqual(path.encode(), self.ask(front, path).body)
        self.assertEqual({2}, set(collections.Counter(
            request.target for request in self.origin.requests).values()))
        # Each key has its parent.
        shares = [sum(parent.outcomes().values()) for parent in self.parents]
        self.assertGreater(min(shares), 0)


class RightThrough(TiersCase):
    def store(self, path="/a"):
        """In both tiers."""
        for front in self.fronts * 2:
            self.ask(front, path)
        for front in self.fronts:
            self.assertIn("; hit", self.members(self.ask(front, path))[-1])

    def test_age_adds_up_and_never_goes_back(self):
        self.tiers(default=fresh(b"body", Age="100"))
        self.store()
        begun = time.monotonic()
        ages = [int(field(self.ask(front), "Age")) for front in self.fronts]
        self.assertGreaterEqual(min(ages), 100)

        def older():
            ages.extend(int(field(self.ask(front), "Age")) for front in self.fronts)
            return max(ages) >= 102
        eventually(older, "it ages")
        by_front = [ages[number::3] for number in range(3)]
        for seen in by_front:
            self.assertEqual(sorted(seen), seen)
        # A front that fetches from its parent now begins where the parent is.
        late = self.tier("late", [parent.url for parent in self.parents], balance="hash",
                         admission_hint="trusted")
        answer = self.ask(late)
        self.assertIn("; hit", self.members(answer)[0])
        self.assertGreaterEqual(int(field(answer, "Age")), 102)
        self.assertLessEqual(int(field(answer, "Age")), 103 + time.monotonic() - begun)
        self.assertEqual(2, self.origin.count())

    def test_a_freshness_lifetime_counts_from_the_origin(self):
        # A second is left, in whichever tier it is spent.
        self.tiers(default=fresh(b"body", seconds=101, Age="100"))
        for front in self.fronts:
            self.ask(front)
        begun = self.origin.count()
        eventually(lambda: self.ask(self.fronts[0]) and self.origin.count() > begun,
                   "it is stale in both tiers")
        self.assertGreaterEqual(100, int(field(self.ask(self.fronts[1]), "Age")) - 3)

    def test_validators_go_right_through(self):
        state = {"etag": '"one"', "body": b"one"}

        def page(exchange):
            asked = dict(exchange.request.fields).get("if-none-match")
            options = {"Cache_Control": "max-age=1", "ETag": state["etag"]}
            if asked == state["etag"]:
                return response(status="304 Not Modified", Content_Length=None, **options)
            full.append(asked)
            return response(state["body"], **options)
        full = []
        self.tiers({"/a": page})
        for front in self.fronts * 2:
            self.ask(front)
        sent = len(full)
        for front in self.fronts:
            answer = self.ask(front, fields=[("If-None-Match", '"one"')])
            self.assertEqual((304, '"one"'), (answer.status, field(answer, "ETag")))

        def validated():
            self.ask(self.fronts[0])
            return self.origin.count() > asked
        for _ in range(2):
            asked = self.origin.count()
            eventually(validated, "it is validated with the origin")
        self.assertEqual(sent, len(full))
        state.update(etag='"two"', body=b"two")
        for front in self.fronts:
            eventually(lambda: self.ask(front).body == b"two", "the new one comes through")
            answer = self.ask(front, fields=[("If-None-Match", '"one"')])
            self.assertEqual((200, b"two"), (answer.status, answer.body))

    def purge(self, node, query):
        status, text = node.admin("/purge?" + query, method="POST")
        self.assertEqual(200, status, text)
        return json.loads(text)["purged"]

    def test_a_purge_goes_to_the_parents_first_and_then_to_the_fronts(self):
        for query in (f"url=http://{HOST}/a", "tag=news"):
            with self.subTest(query):
                body = [b"old"]
                self.tiers(default=lambda x: fresh(body[0], Surrogate_Key="news"))
                self.store()
                body[0] = b"new"
                # The wrong way round a front has the parent's old one again.
                self.assertEqual(1, self.purge(self.fronts[0], query))
                self.assertEqual(b"old", self.ask(self.fronts[0]).body)
                asked = self.origin.count()
                self.assertEqual(1, sum(self.purge(parent, query) for parent in self.parents))
                self.assertEqual(3, sum(self.purge(front, query) for front in self.fronts))
                for front in self.fronts:
                    self.assertEqual(b"new", self.ask(front).body)
                self.assertEqual(asked + 1, self.origin.count())

    def test_a_post_removes_it_in_both_tiers_on_its_way(self):
        body = [b"old"]
        self.tiers(default=lambda x: fresh(body[0]))
        self.store()
        body[0] = b"new"
        self.ask(self.fronts[0], method="POST")
        self.assertEqual(b"new", self.ask(self.fronts[0]).body)
