"""[[rule]]: one object by its digest, what is given to whom its origin allows it, redirections that are
followed."""

import hashlib
import random
import threading
import unittest

from client import Client, NoResponse, field, get
from harness import Case, eventually, free_port
from origin import Origin, chunked, fresh, response


def status_line(answer):
    return field(answer, "Cache-Status")


class Digests(Case):
    RULE = {"path": "/v2/*/blobs/sha256:*", "key": "digest", "verify": "sha256", "fresh": "365d"}

    def blob(self, body):
        return "/v2/{}/blobs/sha256:" + hashlib.sha256(body).hexdigest()

    def test_one_digest_is_one_object_on_whatever_path(self):
        body = random.Random(1).randbytes(300_000)
        origin = Origin(self, default=response(body))
        encore = self.encore(rule=[self.RULE], admission={"policy": "always"})
        for name in ("a", "b/c"):
            answer = get(encore.port, origin.url(self.blob(body).format(name)))
            self.assertEqual((200, body), (answer.status, answer.body))
        self.assertEqual(1, origin.count())
        self.assertIn("; hit", status_line(answer))
        status, text = encore.admin("/purge?url=" + origin.url(self.blob(body).format("z")), "POST")
        self.assertIn('"purged":1', text.replace(" ", ""), status)

    def is_refused(self, encore, url):
        """Whether the response is an error, or ends before its body does."""
        try:
            return get(encore.port, url).status == 502
        except NoResponse:
            return True

    def test_a_wrong_body_is_broken_before_its_end_and_not_stored(self):
        body = b"x" * 70_000
        wrong = body[:-1] + b"y"
        paths = {"length": response(wrong), "chunked": chunked(wrong[:30_000], wrong[30_000:]),
                 "empty": response(b"")}
        url = self.blob(body)
        origin = Origin(self, {url.format(kind): answer for kind, answer in paths.items()})
        encore = self.encore(rule=[self.RULE], admission={"policy": "always"})
        for kind in paths:
            with self.subTest(kind):
                for _ in range(2):
                    self.assertTrue(self.is_refused(encore, origin.url(url.format(kind))))
                self.assertEqual(2, origin.count(url.format(kind)))
        self.assertEqual(6, encore.metrics()["encore_digest_mismatches_total"])
        origin.default = response(body)
        for _ in range(2):
            self.assertEqual(body, get(encore.port, origin.url(url.format("good"))).body)
        self.assertEqual(1, origin.count(url.format("good")))

    def test_those_who_wait_for_a_wrong_body_do_not_get_it(self):
        body = b"x" * 70_000
        go = threading.Event()

        def slow(exchange):
            exchange.send(response(body)[:60_000])
            exchange.wait(go)
            exchange.send(b"y" * (len(response(body)) - 60_000))
        origin = Origin(self, default=slow)
        encore = self.encore(rule=[self.RULE], admission={"policy": "always"})
        broken = []

        def ask():
            if self.is_refused(encore, origin.url(self.blob(body).format("a"))):
                broken.append(1)
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        eventually(lambda: encore.metrics()["encore_client_connections"] >= 4, "all have come")
        go.set()
        for thread in threads:
            thread.join()
        self.assertEqual(4, len(broken))

    def test_a_range_of_what_is_not_known_to_be_right_is_not_given(self):
        body = b"x" * 70_000
        wrong = response(b"y" * 70_000)
        origin = Origin(self, {self.blob(body).format("a"): wrong})
        encore = self.encore(rule=[self.RULE], admission={"policy": "always"})
        try:
            answer = get(encore.port, origin.url(self.blob(body).format("a")),
                         fields=[("Range", "bytes=0-9")])
            self.assertEqual(502, answer.status)
        except NoResponse:
            pass

    def test_a_listener_with_words_of_its_own_reads_the_path_and_not_the_key(self):
        origin = Origin(self, default=response(b"body"))
        encore = self.encore(rule=[self.RULE, {"cookies": "bypass"}],
                             listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse",
                                      "deny_paths": ["/v2/private/*", "/admin*"],
                                      "purge_clients": ["127.0.0.1"]}],
                             origin=[{"servers": [origin.url("")]}],
                             admission={"policy": "always"})

        def ask(path, host="h", method="GET", more=""):
            with Client(encore.port) as client:
                client.send(f"{method} {path} HTTP/1.1\r\nHost: {host}\r\n{more}\r\n")
                return client.read_response(method)
        path = self.blob(b"body")
        self.assertEqual(403, ask(path.format("private")).status)
        self.assertEqual(200, ask(path.format("x"), host="a" * 200).status)
        for _ in range(2):
            answer = ask(path.format("x"))
        self.assertIn("; hit", status_line(answer))
        for disguise in ("/%61dmin", "/x/../admin", "/./admin"):
            self.assertEqual(403, ask(disguise, more="Cookie: a=b\r\n").status, disguise)
        self.assertEqual(200, ask(path.format("x"), method="PURGE").status)
        self.assertNotIn("; hit", status_line(ask(path.format("x"))))

    def test_an_error_of_one_repository_is_not_kept_for_the_digest(self):
        body = b"body"
        url = self.blob(body)
        origin = Origin(self, {url.format("without"): fresh(b"no", status="404 Not Found")},
                        default=response(body))
        encore = self.encore(rule=[{**self.RULE, "negative": "1h"}],
                             admission={"policy": "always"})
        self.assertEqual(404, get(encore.port, origin.url(url.format("without"))).status)
        self.assertEqual(body, get(encore.port, origin.url(url.format("with"))).body)


def credentials(exchange):
    return dict((n.lower(), v) for n, v in exchange.request.fields).get("authorization")


class Permission(Case):
    """A stored response is given to the clients that its origin allows."""

    def registry(self, allowed):
        def answer(exchange):
            if credentials(exchange) not in allowed:
                return fresh(b"", status="401 Unauthorized", WWW_Authenticate="Bearer")
            whole = fresh(b"secret")
            return whole[:whole.index(b"secret")] if exchange.request.method == "HEAD" else whole
        origin = Origin(self, default=answer)
        encore = self.encore(rule=[{"authorization": "recheck", "fresh": "1h"}],
                             admission={"policy": "always"}, workers={"count": 1})

        def ask(token=None, method="GET"):
            fields = [("Authorization", token)] if token else []
            return get(encore.port, origin.url("/a"), fields=fields, method=method)
        return origin, encore, ask

    def methods(self, origin):
        return [request.method for request in origin.requests]

    def test_each_client_is_asked_for_with_its_own_credentials(self):
        allowed = {"Bearer a", "Bearer b"}
        origin, encore, ask = self.registry(allowed)
        self.assertEqual(b"secret", ask("Bearer a").body)
        for token in ("Bearer a", "Bearer b", "Bearer a"):
            answer = ask(token)
            self.assertEqual(b"secret", answer.body)
            self.assertIn("; hit", status_line(answer))
        self.assertEqual(["GET", "HEAD", "HEAD"], self.methods(origin))
        for token in ("Bearer c", None):
            answer = ask(token)
            self.assertEqual((401, "Bearer"), (answer.status, field(answer, "WWW-Authenticate")))
            self.assertNotIn(b"secret", answer.body)
        # A refusal is not another client's response.
        self.assertEqual(b"secret", ask("Bearer a").body)
        self.assertEqual(4, encore.metrics()["encore_rechecks_total"])

    def test_a_head_is_asked_for_as_well(self):
        origin, encore, ask = self.registry({"Bearer a"})
        ask("Bearer a")
        self.assertEqual(401, ask(method="HEAD").status)
        self.assertEqual(200, ask("Bearer a", method="HEAD").status)

    def test_what_was_stored_for_members_is_not_there_without_the_rule(self):
        ports = [free_port(), free_port()]
        allowed = {"Bearer a"}

        def answer(exchange):
            if credentials(exchange) not in allowed:
                return fresh(b"", status="401 Unauthorized")
            return fresh(b"secret")
        origin = Origin(self, default=answer)
        self.encore(
            rule=[{"authorization": "recheck", "fresh": "1h", "method": ["GET"],
                   "listener": f"127.0.0.1:{ports[0]}"}], admission={"policy": "always"},
            listen=[{"address": f"127.0.0.1:{port}", "mode": "forward"} for port in ports])
        fields = [("Authorization", "Bearer a")]
        self.assertEqual(b"secret", get(ports[0], origin.url("/a"), fields=fields).body)
        self.assertEqual(401, get(ports[1], origin.url("/a")).status)
        self.assertEqual(401, get(ports[0], origin.url("/a"), method="HEAD").status)

    def test_a_digest_that_is_rechecked_is_its_own_hosts(self):
        path = "/blobs/sha256:" + hashlib.sha256(b"secret").hexdigest()
        rule = {"key": "digest", "verify": "sha256", "authorization": "recheck", "fresh": "1h"}
        private = Origin(self, default=lambda exchange: response(b"secret")
                         if credentials(exchange) else response(b"", "401 Unauthorized"))
        evil = Origin(self, default=response(b""))
        encore = self.encore(rule=[rule], admission={"policy": "always"})
        fields = [("Authorization", "Bearer a")]
        get(encore.port, private.url(path), fields=fields)
        self.assertNotIn("; hit", status_line(get(encore.port, evil.url(path))))

    def test_cookies_and_queries_are_what_is_allowed_too(self):
        def answer(exchange):
            told = dict((n.lower(), v) for n, v in exchange.request.fields).get("cookie")
            good = told == "a=1" or exchange.request.target.endswith("?token=good")
            return fresh(b"secret") if good else fresh(b"", status="401 x")
        origin = Origin(self, default=lambda exchange: answer(exchange))
        encore = self.encore(rule=[{"authorization": "recheck", "fresh": "1h", "key_query": "none",
                                    "origin_query": True}], admission={"policy": "always"})
        def ask(query="", cookie=None):
            fields = [("Cookie", cookie)] if cookie else []
            return get(encore.port, origin.url("/a" + query), fields=fields).status
        self.assertEqual([200, 200, 401, 200, 401],
                         [ask(cookie="a=1"), ask(cookie="a=1"), ask(), ask("?token=good"),
                          ask("?token=bad")])

    def test_a_yes_to_one_variant_is_none_to_another(self):
        def answer(exchange):
            told = dict((n.lower(), v) for n, v in exchange.request.fields)
            if told.get("authorization") == "Bearer m":
                return fresh(b"secret", Vary="Accept")
            if told.get("accept") == "application/json":
                return fresh(b"public", Vary="Accept")
            return fresh(b"", status="401 x", Vary="Accept")
        origin = Origin(self, default=answer)
        encore = self.encore(rule=[{"authorization": "recheck"}],
                             admission={"policy": "always"}, workers={"count": 1})

        def ask(accept, token=None):
            fields = [("Accept", accept)] + ([("Authorization", token)] if token else [])
            return get(encore.port, origin.url("/a"), fields=fields)
        self.assertEqual(b"secret", ask("text/html", "Bearer m").body)
        self.assertEqual(401, ask("text/html").status)
        for _ in range(2):
            self.assertEqual(b"public", ask("application/json").body)
        self.assertEqual(401, ask("text/html").status)

    def test_a_credential_in_another_field_allows_nobody_else(self):
        def answer(exchange):
            told = dict((n.lower(), v) for n, v in exchange.request.fields)
            good = "m" in (told.get("authorization"), told.get("private-token"))
            return fresh(b"secret") if good else fresh(b"", status="401 x")
        origin = Origin(self, default=answer)
        encore = self.encore(rule=[{"authorization": "recheck"}],
                             admission={"policy": "always"}, workers={"count": 1})

        def ask(*fields):
            return get(encore.port, origin.url("/a"), fields=list(fields)).status
        self.assertEqual(200, ask(("Authorization", "m")))
        self.assertEqual(200, ask(("Private-Token", "m")))
        self.assertEqual([401, 401], [ask(), ask(("Private-Token", "wrong"))])
        # Fields that name the request alone, ask for a part of it, or speak to caches, ask nobody.
        asked = origin.count()
        for further in (("traceparent", "00-1-2-01"), ("Range", "bytes=0-2"), ("Pragma", "x"),
                        ("Cache-Control", "only-if-cached")):
            self.assertIn(ask(("Private-Token", "m"), further), (200, 206))
        self.assertEqual(asked, origin.count())

    def test_strangers_and_members_at_once(self):
        origin, encore, ask = self.registry({"Bearer a"})
        ask("Bearer a")
        wrong = []

        def one(token):
            for _ in range(30):
                answer = ask(token)
                if (answer.body == b"secret") != (token == "Bearer a"):
                    wrong.append((token, answer))
        threads = [threading.Thread(target=one, args=(token,))
                   for token in ("Bearer a", "Bearer c", None, "Bearer a", "Bearer d")]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([], wrong)

    def test_without_an_origin_nobody_gets_it_who_was_not_allowed_lately(self):
        origin, encore, ask = self.registry({"Bearer a"})
        ask("Bearer a")
        ask("Bearer a")
        origin.stop()
        self.assertEqual(b"secret", ask("Bearer a").body)
        self.assertEqual(502, ask("Bearer b").status)


class Redirects(Case):
    def test_what_it_leads_to_is_stored_under_what_was_asked_for(self):
        cdn = Origin(self, default=fresh(b"blob"))
        count = iter(range(100))
        origin = Origin(self, {"/a": lambda exchange: response(
            b"", "307 Temporary Redirect", Location=cdn.url(f"/signed?{next(count)}"),
            Cache_Control="max-age=60"),
            "/b": response(b"", "302 Found", Location="/c"), "/c": fresh(b"here"),
            "/loop": response(b"", "302 Found", Location="/loop")})
        encore = self.encore(rule=[{"path": ["/a", "/b", "/loop"], "follow_redirects": True,
                                    "ignore": "authorization"}],
                             admission={"policy": "always"})
        fields = [("Authorization", "Bearer x"), ("Cookie", "a=1"), ("X-Kept", "1")]
        answer = get(encore.port, origin.url("/a"), fields=fields)
        self.assertEqual((200, b"blob"), (answer.status, answer.body))
        seen = {name.lower() for name, _ in cdn.last().fields}
        self.assertEqual((False, False, True),
                         ("authorization" in seen, "cookie" in seen, "x-kept" in seen))
        self.assertEqual(dict((n.lower(), v) for n, v in cdn.last().fields)["host"], cdn.authority)
        get(encore.port, origin.url("/a"))
        answer = get(encore.port, origin.url("/a"))
        self.assertEqual((b"blob", True), (answer.body, "; hit" in status_line(answer)))
        self.assertEqual(b"here", get(encore.port, origin.url("/b")).body)
        self.assertIn("; hit", status_line(get(encore.port, origin.url("/b"))))
        # Without an end, the client gets the last of them.
        self.assertEqual(302, get(encore.port, origin.url("/loop")).status)
        self.assertEqual(6, origin.count("/loop"))

    def test_what_is_for_one_alone_is_not_followed_for_all(self):
        one = {"/private": {"Cache_Control": "private"}, "/vary": {"Vary": "Accept-Language"},
               "/cookie": {"Set_Cookie": "a=1"}, "/store": {"Cache_Control": "no-store"}}
        origin = Origin(self, {path: response(b"", "302 Found", Location="/to", **fields)
                               for path, fields in one.items()}, default=fresh(b"to"))
        origin.routes["/login"] = response(b"", "302 Found", Location="/to")
        encore = self.encore(rule=[{"follow_redirects": True}], admission={"policy": "always"})
        for path in one:
            self.assertEqual(302, get(encore.port, origin.url(path)).status, path)
        fields = [("Authorization", "Bearer a")]
        self.assertEqual(302, get(encore.port, origin.url("/login"), fields=fields).status)
        self.assertEqual(0, origin.count("/to"))

    def test_cookies_that_tell_apart_go_nowhere_else(self):
        cdn = Origin(self, default=fresh(b"blob"))
        origin = Origin(self, default=response(b"", "302 Found", Location=cdn.url("/x")))
        encore = self.encore(rule=[{"follow_redirects": True, "cookies": "key:sid"}])
        get(encore.port, origin.url("/a"), fields=[("Cookie", "sid=secret")])
        self.assertNotIn("cookie", {name.lower() for name, _ in cdn.last().fields})

    def test_what_would_be_refused_is_not_reached_by_a_redirection(self):
        denied = Origin(self, default=fresh(b"denied"))
        origin = Origin(self, default=response(b"", "302 Found", Location=denied.url("/denied/x")))
        encore = self.encore(rule=[{"path": "/denied/*", "deny": 403},
                                   {"follow_redirects": True}])
        self.assertEqual(302, get(encore.port, origin.url("/a")).status)
        self.assertEqual(0, denied.count())

    def test_a_digest_is_that_of_what_was_asked_for(self):
        body, other = b"right", b"wrong"
        def path(of):
            return "/blobs/sha256:" + hashlib.sha256(of).hexdigest()
        cdn = Origin(self, {"/good": response(body), "/bad": response(other)})
        origin = Origin(self, {path(body): response(b"", "302 Found", Location=path(other)),
                               path(other): response(other)})
        elsewhere = Origin(self, {path(body): response(b"", "307 x", Location=cdn.url("/good"))})
        encore = self.encore(rule=[{"key": "digest", "verify": "sha256", "fresh": "1h",
                                    "follow_redirects": True}], admission={"policy": "always"})
        for _ in range(2):
            self.assertEqual(502, get(encore.port, origin.url(path(body))).status)
        self.assertEqual(body, get(encore.port, elsewhere.url(path(body))).body)
        answer = get(encore.port, origin.url(path(body)))
        self.assertEqual((body, True), (answer.body, "; hit" in status_line(answer)))

    def test_those_who_wait_get_what_it_leads_to(self):
        go = threading.Event()

        def slow(exchange):
            exchange.wait(go)
            return fresh(b"blob")
        cdn = Origin(self, default=slow)
        origin = Origin(self, default=response(b"", "302 Found", Location=cdn.url("/x")))
        encore = self.encore(rule=[{"follow_redirects": True}])
        bodies = []
        threads = [threading.Thread(target=lambda: bodies.append(
            get(encore.port, origin.url("/a")).body)) for _ in range(6)]
        for thread in threads:
            thread.start()
        eventually(lambda: encore.metrics()["encore_client_connections"] >= 6, "all have come")
        go.set()
        for thread in threads:
            thread.join()
        self.assertEqual([b"blob"] * 6, bodies)

    def test_where_it_leads_is_checked_as_what_a_client_asks_for(self):
        secret = Origin(self, default=fresh(b"secret"))
        origin = Origin(self, default=response(b"", "302 Found", Location=secret.url("/x")))
        encore = self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
            origin=[{"servers": [origin.url("")]}],
            rule=[{"follow_redirects": True, "follow_hosts": "127.0.0.1"}],
            forward={"private_destinations": "never"})
        with Client(encore.port) as client:
            client.send("GET /a HTTP/1.1\r\nHost: site.example\r\n\r\n")
            answer = client.read_response()
        self.assertEqual((302, secret.url("/x")), (answer.status, field(answer, "Location")))
        self.assertIn("detail=redirect-private-destination", status_line(answer))
        self.assertEqual(0, secret.count())


if __name__ == "__main__":
    unittest.main()
