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
    """What is stored is given to whom its origin allows it."""

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
        # What was refused is nobody else's answer.
        self.assertEqual(b"secret", ask("Bearer a").body)
        self.assertEqual(4, encore.metrics()["encore_rechecks_total"])

    def test_a_head_is_asked_for_as_well(self):
        origin, encore, ask = self.registry({"Bearer a"})
        ask("Bearer a")
        self.assertEqual(401, ask(method="HEAD").status)
        self.assertEqual(200, ask("Bearer a", method="HEAD").status)

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
            b"", "307 Temporary Redirect", Location=cdn.url(f"/signed?{next(count)}")),
            "/b": response(b"", "302 Found", Location="/c"), "/c": fresh(b"here"),
            "/loop": response(b"", "302 Found", Location="/loop")})
        encore = self.encore(rule=[{"path": ["/a", "/b", "/loop"], "follow_redirects": True}],
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
            origin=[{"servers": [origin.url("")]}], rule=[{"follow_redirects": True}],
            forward={"private_destinations": "never"})
        with Client(encore.port) as client:
            client.send("GET /a HTTP/1.1\r\nHost: site.example\r\n\r\n")
            self.assertEqual(403, client.read_response().status)
        self.assertEqual(0, secret.count())


if __name__ == "__main__":
    unittest.main()
