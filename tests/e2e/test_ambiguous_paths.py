"""Paths that servers read in several ways, where origins, rules or lists go by paths: refused where
the readings lead to different answers, and passed on wherever they do not."""

import unittest

from client import Client, get
from harness import Case, free_port
from origin import Origin, fresh

# Forms of /admin behind /public, as one server or another reads them.
FORMS = ("/public/..;/admin", "/public/%2e%2e/admin", "/public/..%2fadmin", "/public/..%5cadmin",
         "/public/..\\admin", "/public/%252e%252e/admin", "/public/..%252fadmin",
         "/public/..%c0%afadmin", "/public/..%00/admin", "/public/..%u002fadmin",
         "/public/..;v=1/admin", "/public/..%3b/admin", "/public/..%20/admin")
LEGITIMATE = ("/@scope%2fname", "/pool/g++_1.2-3.deb", "/pool/a%2bb_1%3a2.deb", "/cdn//a//b.js",
              "/a;v=1", "/a%20b", "/caf%c3%a9", "/%7Euser/", "/a?x=/../%2e%2e/..;/admin", "/a.b../c")


class Paths(Case):
    def setUp(self):
        super().setUp()
        self.site = Origin(self, default=lambda exchange: fresh(exchange.request.target.encode()))
        self.inner = Origin(self, default=fresh(b"inner"))

    def reverse(self, origins, listen=None, **sections):
        return self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse", **(listen or {})}],
            origin=origins, admission={"policy": "always"}, **sections)

    def status(self, encore, path, method="GET"):
        with Client(encore.port) as client:
            client.send(f"{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n")
            return client.read_response(method).status

    def test_origins_by_path(self):
        encore = self.reverse([{"servers": [self.site.url("")]},
                               {"path": "/admin", "servers": [self.inner.url("")]}])
        for path in (*FORMS, "//admin", "/;/admin", "/admin%2f..%2fx"):
            self.assertEqual(400, self.status(encore, path), path)
        self.assertEqual((0, 0), (self.site.count(), self.inner.count()))
        for path in (*LEGITIMATE, "/admin", "/admin/x;v=1", "/admin//x", "/admin/%2fx"):
            self.assertEqual(200, self.status(encore, path), path)

    def test_lists(self):
        encore = self.reverse([{"servers": [self.site.url("")]}],
                              {"deny_paths": ["/admin*"], "purge_clients": ["127.0.0.1"]})
        for method in ("GET", "HEAD", "POST", "PURGE", "OPTIONS"):
            for path in (*FORMS, "//admin"):
                self.assertEqual(400, self.status(encore, path, method), (method, path))
        self.assertEqual(0, self.site.count())
        for path in LEGITIMATE:
            self.assertEqual(200, self.status(encore, path), path)

    def test_rules_are_found_anew_for_each_form(self):
        encore = self.reverse([{"servers": [self.site.url("")]}],
                              rule=[{"path": "/admin*", "fresh": "1h"}])
        # The result of one form does not answer another with the same key.
        for _ in range(2):
            self.assertEqual(200, self.status(encore, "/admin"))
            for path in (*FORMS, "//admin"):
                self.assertEqual(400, self.status(encore, path), path)
        for path in LEGITIMATE:
            self.assertEqual(200, self.status(encore, path), path)

    def test_a_rule_that_names_a_form_holds_for_it(self):
        encore = self.encore(rule=[{"path": "/@*%2f*", "response_set": "X-Rule: scoped"},
                                   {"path": "/@*", "cache": False}])
        def rule(path):
            answer = get(encore.port, self.site.url(path))
            return answer.status, dict((n.lower(), v) for n, v in answer.fields).get("x-rule")
        self.assertEqual((200, "scoped"), rule("/@scope%2fname"))
        self.assertEqual((200, None), rule("/@scope/name"))
        self.assertEqual((400, None), rule("/@scope%2f..%2fname"))

    def test_without_anything_that_goes_by_paths_all_is_passed_on(self):
        encore = self.reverse([{"servers": [self.site.url("")]}], rule=[{"host": "b", "deny": 403}])
        for path in (*FORMS, *LEGITIMATE, "//admin"):
            self.assertEqual(200, self.status(encore, path), path)

    def test_a_redirection_to_an_ambiguous_path_is_not_followed(self):
        self.site.routes["/go"] = lambda exchange: (
            b"HTTP/1.1 302 Found\r\nLocation: /public/..;/admin\r\nContent-Length: 0\r\n\r\n")
        encore = self.reverse([{"servers": [self.site.url("")]}], {"deny_paths": ["/admin*"]},
                              rule=[{"follow_redirects": True}])
        self.assertEqual(302, self.status(encore, "/go"))
        self.assertEqual(1, self.site.count())


if __name__ == "__main__":
    unittest.main()
