"""[[rule]]: what one client gets by a rule is not there for another for whom it does not hold, and nobody
gets by a redirection what he would be refused."""

import threading
import unittest

from client import Client, field, get
from harness import Case, eventually, free_port
from origin import Origin, fresh, response


class Overridden(Case):
    """What a rule keeps against its origin's word, where another rule or none holds for others."""

    INSIDE, OUTSIDE = "127.0.0.2", "127.0.0.1"
    ALLOWED = [("Authorization", "Bearer a")]

    def ask(self, encore, url, source, **options):
        with Client(encore.port, source=source) as client:
            return client.ask(url, **options)

    def started(self, origin, words):
        listener = {"address": f"127.0.0.1:{free_port()}", "mode": "forward",
                    "purge_clients": ["127.0.0.1"]}
        # Who waits for another waits until the test fails.
        return self.encore(listen=[listener], timeouts={"collapse": "1h"},
                           rule=[{"clients": self.INSIDE, "ignore": words, "fresh": "1h"}],
                           admission={"policy": "always"})

    def test_it_is_there_for_those_alone_for_whom_the_same_is_overridden(self):
        answers = {"private": {"Cache_Control": "private, max-age=60"},
                   "no-store": {"Cache_Control": "no-store"},
                   "vary": {"Vary": "X-Who", "Cache_Control": "max-age=60"},
                   "authorization": {"Cache_Control": "max-age=60"}}
        for word, fields in answers.items():
            with self.subTest(word):
                origin = Origin(self, default=lambda exchange, fields=fields: response(
                    b"%d" % exchange.origin.count(), **fields))
                encore = self.started(origin, [word])
                asked = self.ALLOWED if word == "authorization" else [("X-Who", "one")]
                for _ in range(2):
                    self.assertEqual(b"1", self.ask(encore, origin.url("/a"), self.INSIDE,
                                                    fields=asked).body)
                other = self.ask(encore, origin.url("/a"), self.OUTSIDE,
                                 fields=[("X-Who", "other")])
                self.assertEqual(b"2", other.body)
                # And theirs is not what those get who are inside.
                self.assertEqual(b"1", self.ask(encore, origin.url("/a"), self.INSIDE).body)

    def test_nobody_else_waits_for_it(self):
        go = threading.Event()

        def slow(exchange):
            number = exchange.origin.count()
            if number == 1:
                exchange.wait(go)
            return response(b"%d" % number, Cache_Control="private, max-age=60")
        origin = Origin(self, default=slow)
        encore = self.started(origin, ["private"])
        bodies = {}

        def inside():
            bodies["inside"] = self.ask(encore, origin.url("/a"), self.INSIDE).body
        thread = threading.Thread(target=inside)
        thread.start()
        eventually(lambda: origin.count() == 1, "the first has asked")
        self.assertEqual(b"2", self.ask(encore, origin.url("/a"), self.OUTSIDE).body)
        go.set()
        thread.join()
        self.assertEqual(b"1", bodies["inside"])

    def test_purges_bans_and_writes_find_it(self):
        origin = Origin(self, default=lambda exchange: response(
            b"%d" % exchange.origin.count(), Cache_Control="private"))
        encore = self.started(origin, ["private"])
        url = origin.url("/a?b=1")
        for _ in range(2):
            self.assertEqual(b"1", self.ask(encore, url, self.INSIDE).body)
        encore.admin("/purge?url=" + url, "POST")
        for _ in range(2):
            self.assertEqual(b"2", self.ask(encore, url, self.INSIDE).body)
        self.assertEqual(200, self.ask(encore, url, self.OUTSIDE, method="BAN",
                                       fields=[("X-Url", "b=1$")]).status)
        for _ in range(2):
            self.assertEqual(b"3", self.ask(encore, url, self.INSIDE).body)
        self.assertEqual(200, self.ask(encore, url, self.OUTSIDE, method="PURGE").status)
        for _ in range(2):
            self.assertEqual(b"4", self.ask(encore, url, self.INSIDE).body)
        self.ask(encore, url, self.OUTSIDE, method="POST", body=b"x")
        self.assertEqual(b"6", self.ask(encore, url, self.INSIDE).body)


class Followed(Case):
    """follow_redirects, where what it leads to is not for everybody."""

    def site(self, where="/hidden/x"):
        return Origin(self, {"/go": response(b"", "302 Found", Location=where,
                                             Cache_Control="max-age=60"),
                             "/hidden/x": fresh(b"hidden")})

    def test_what_a_rule_refuses_or_answers_on_the_same_origin_is_not_followed_to(self):
        for rule in ({"deny": 403}, {"static_status": 404, "static_body": "none"}):
            with self.subTest(rule):
                origin = self.site()
                encore = self.encore(rule=[{"path": "/hidden/*", **rule},
                                           {"follow_redirects": True}])
                self.assertEqual(302, get(encore.port, origin.url("/go")).status)
                self.assertEqual(0, origin.count("/hidden/x"))

    def test_what_the_listener_refuses_is_not_followed_to(self):
        hidden = Origin(self, default=fresh(b"hidden"))
        elsewhere = f"http://localhost:{hidden.port}/x"
        for refused, where in (({"deny_paths": ["/hidden/*"]}, "/hidden/x"),
                               ({"deny_hosts": ["localhost"]}, elsewhere),
                               ({"allow_hosts": ["127.0.0.*"]}, elsewhere),
                               ({"allow_paths": ["/go"]}, "/hidden/x")):
            with self.subTest(refused):
                origin = self.site(where)
                encore = self.encore(
                    listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "forward", **refused}],
                    rule=[{"follow_redirects": True}])
                self.assertEqual(403, get(encore.port, origin.url(where) if where[0] == "/"
                                          else where).status)
                self.assertEqual(302, get(encore.port, origin.url("/go")).status)
                self.assertEqual((0, 0), (origin.count("/hidden/x"), hidden.count()))

    def test_to_be_sent_elsewhere_is_no_permission(self):
        def members(exchange):
            if ("authorization", "Bearer a") in exchange.request.fields:
                return fresh(b"secret")
            return response(b"", "302 Found", Location="/login")
        origin = Origin(self, {"/a": members, "/b": members, "/login": fresh(b"login")})
        encore = self.encore(rule=[{"authorization": "recheck", "follow_redirects": True}],
                             admission={"policy": "always"})
        member = {"fields": [("Authorization", "Bearer a")]}
        for _ in range(2):
            self.assertEqual(b"secret", get(encore.port, origin.url("/a"), **member).body)
        for _ in range(2):
            self.assertEqual(b"login", get(encore.port, origin.url("/a")).body)
        self.assertIn("; hit", field(get(encore.port, origin.url("/a"), **member), "Cache-Status"))
        # Nor does who comes first put another page in its place.
        self.assertEqual(b"login", get(encore.port, origin.url("/b")).body)
        self.assertEqual(b"secret", get(encore.port, origin.url("/b"), **member).body)


if __name__ == "__main__":
    unittest.main()
