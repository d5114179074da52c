"""Responses whose Date tells another order than the one in which they were requested: clocks that are
ahead, caches behind the origin, and bodies that break off or are wrong."""

import email.utils
import hashlib
import time
import unittest

from client import field, get
from harness import Case, eventually
from origin import Origin, fresh, response

URL = "/page"


class Dates(Case):
    def start(self, *answers, **sections):
        """The origin gives `answers` in turn, then the last one again: (body, seconds that its Date
        is ahead, max-age)."""
        self.given = 0

        def page(_):
            body, ahead, max_age = answers[min(self.given, len(answers) - 1)]
            self.given += 1
            date = email.utils.formatdate(time.time() + ahead, usegmt=True)
            return response(body, Date=date, Cache_Control=f"max-age={max_age}")
        self.origin = Origin(self, {URL: page})
        self.proxy = self.encore(admission={"policy": "always"}, **sections)

    def get(self, *fields):
        return get(self.proxy.port, self.origin.url(URL), fields=list(fields))

    def is_hit(self, answer):
        return "; hit" in field(answer, "Cache-Status")

    def test_a_clock_that_was_ahead_is_forgotten_with_what_was_purged(self):
        self.start((b"ahead", 7200, 600), (b"right", 0, 600))
        self.assertEqual(b"ahead", self.get().body)
        self.assertEqual(200, self.proxy.admin("/purge?url=" + self.origin.url(URL), "POST")[0])
        self.assertEqual(b"right", self.get().body)
        answer = self.get()
        self.assertTrue(self.is_hit(answer))
        self.assertEqual(b"right", answer.body)

    def test_what_takes_the_place_of_a_stale_response_may_be_dated_before_it(self):
        self.start((b"first", 30, 1), (b"second", 0, 600))
        self.assertEqual(b"first", self.get().body)
        # Once its freshness is over the second one comes, and is stored.
        eventually(lambda: self.get().body == b"second", "it is stale")
        answer = self.get()
        self.assertTrue(self.is_hit(answer))
        self.assertEqual(b"second", answer.body)

    def test_a_reload_that_brings_an_earlier_date_does_not_replace_what_is_fresh(self):
        self.start((b"newer", 0, 600), (b"older", -100, 600))
        self.get()
        self.assertEqual(b"older", self.get(("Cache-Control", "no-cache")).body)
        answer = self.get()
        self.assertTrue(self.is_hit(answer))
        self.assertEqual(b"newer", answer.body)


class Broken(Case):
    def test_a_wrong_body_replaces_nothing(self):
        good = b"good" * 1000
        path = "/blobs/sha256:" + hashlib.sha256(good).hexdigest()
        given = []

        def blob(_):
            given.append(1)
            return fresh(good if len(given) == 1 else b"evil" * 1000)
        origin = Origin(self, {path: blob})
        encore = self.encore(admission={"policy": "always"},
                             rule=[{"path": ["/blobs/*"], "verify": "sha256"}])
        url = origin.url(path)
        self.assertEqual(good, get(encore.port, url).body)
        self.assertEqual(502, get(encore.port, url, fields=[("Cache-Control", "no-cache")]).status)
        answer = get(encore.port, url)
        self.assertEqual(good, answer.body)
        self.assertIn("; hit", field(answer, "Cache-Status"))

    def test_a_body_that_breaks_off_replaces_nothing(self):
        given = []

        def page(exchange):
            given.append(1)
            answer = fresh(b"x" * 200_000)
            if len(given) == 1:
                return answer
            exchange.send(answer[:100_000])
            exchange.reset()
            return None
        origin = Origin(self, {URL: page})
        encore = self.encore(admission={"policy": "always"})
        url = origin.url(URL)
        get(encore.port, url)
        with self.assertRaises(Exception):
            get(encore.port, url, fields=[("Cache-Control", "no-cache")])
        answer = get(encore.port, url)
        self.assertEqual(b"x" * 200_000, answer.body)
        self.assertIn("; hit", field(answer, "Cache-Status"))


if __name__ == "__main__":
    unittest.main()
