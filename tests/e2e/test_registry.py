"""A registry that sends its clients to signed URLs of object storage, for HEAD as for GET, as the
reference implementation does: a layer is fetched once, and each client asks the registry whether it
may have it."""

import hashlib
import itertools
import unittest

from client import field, get
from harness import Case
from origin import Origin, fresh, response

LAYER = b"layer" * 40_000
DIGEST = hashlib.sha256(LAYER).hexdigest()
PATH = f"/v2/app/blobs/sha256:{DIGEST}"
TOKENS = {"Bearer ann", "Bearer bob"}


class Registry(Case):
    def start(self, location=None, storage=None):
        self.signatures = itertools.count()
        self.storage = Origin(self, default=storage or fresh(LAYER), host="127.0.0.3")
        self.location = location or (
            lambda: self.storage.url(f"/data/{next(self.signatures)}?X-Signature=abc"))

        def blob(exchange):
            if dict(exchange.request.fields).get("authorization") not in TOKENS:
                return response(b"", "401 Unauthorized", WWW_Authenticate="Bearer")
            return response(b"", "307 Temporary Redirect", Location=self.location())
        self.registry = Origin(self, {PATH: blob, "/login": fresh(b"log in")})
        self.encore = self.encore(
            rule=[{"path": ["/v2/*/blobs/*", "/login*"], "authorization": "recheck", "fresh": "30d",
                   "key": "digest", "verify": "sha256", "follow_redirects": True,
                   "follow_hosts": ["127.0.0.3"], "admission": "always"}],
            forward={"safe_ports": ["1-65535"]})

    def pull(self, token):
        fields = [("Authorization", token)] if token else []
        return get(self.encore.port, self.registry.url(PATH), fields=fields)

    def test_the_second_client_gets_the_layer_from_the_cache(self):
        self.start()
        self.assertEqual(LAYER, self.pull("Bearer ann").body)
        answer = self.pull("Bearer bob")
        self.assertEqual(LAYER, answer.body)
        self.assertIn("; hit", field(answer, "Cache-Status"))
        self.assertEqual(1, self.storage.count())
        self.assertEqual(1, sum(request.method == "HEAD" for request in self.registry.requests))

    def test_a_url_that_names_the_digest_needs_no_query(self):
        self.start(location=lambda: self.storage.url(f"/blobs/{DIGEST}/data"))
        self.pull("Bearer ann")
        self.assertIn("; hit", field(self.pull("Bearer bob"), "Cache-Status"))

    def test_who_has_no_token_gets_what_the_registry_says(self):
        self.start()
        self.pull("Bearer ann")
        self.pull("Bearer bob")
        for token in ("", "Bearer eve"):
            answer = self.pull(token)
            self.assertEqual(401, answer.status)
            self.assertNotIn("; hit", field(answer, "Cache-Status"))

    def test_a_page_to_log_in_at_is_no_yes(self):
        self.start()
        self.pull("Bearer ann")
        # On another port as well, and the page knows where to lead back to.
        for where in ("/login?next=" + PATH, f"http://127.0.0.1:1/login?next={PATH}"):
            with self.subTest(where):
                self.location = lambda where=where: where
                answer = self.pull("Bearer bob")
                self.assertNotIn("; hit", field(answer, "Cache-Status"))
                self.assertNotEqual(LAYER, answer.body)

    def test_a_host_that_the_rule_does_not_name_is_no_yes(self):
        self.start()
        self.pull("Bearer ann")
        self.location = lambda: "http://127.0.0.4:1/data?X-Signature=abc"
        answer = self.pull("Bearer bob")
        self.assertEqual(307, answer.status)
        self.assertNotIn("; hit", field(answer, "Cache-Status"))


if __name__ == "__main__":
    unittest.main()
