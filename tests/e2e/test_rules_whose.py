"""[[rule]]: what one client gets by a rule is not there for another for whom it does not hold, and nobody
gets by a redirection what he would be refused."""

import unittest

from client import field, get
from harness import Case, free_port
from origin import Origin, fresh, response


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
