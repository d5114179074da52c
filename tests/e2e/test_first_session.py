"""The first session of the documents: request three times, see it remembered, stored, hit."""

import os
import pathlib
import re
import sys
import time
import unittest

from client import Client, field, get
from harness import Case, eventually, free_port
from origin import Origin, fresh, response


ROOT = pathlib.Path(__file__).parents[2]


def blocks_of(page):
    return [block.split("\n", 1)[1] for block in (ROOT / page).read_text().split("```")[1::2]]


def session_of(page):
    """The commands of the session that a page shows, and the lines of Cache-Status that follow."""
    commands, = (block for block in blocks_of(page) if block.startswith("mkdir -p site"))
    said, = (block.splitlines() for block in blocks_of(page) if block.startswith("Cache-Status:"))
    return commands, said


class Documented(Case):
    def test_readme_and_tutorial_show_one_session(self):
        self.assertEqual(session_of("README.md"), session_of("docs/GETTING-STARTED.md"))

    def test_the_first_session_prints_what_the_documents_show(self):
        """Except for the size of the object, which depends on the fields of Python's server."""
        _, said = session_of("README.md")
        counted, = (block.splitlines() for block in blocks_of("docs/GETTING-STARTED.md")
                    if block.startswith("encore_requests"))
        page = self.directory / "a.txt"
        page.write_text("hello\n")
        yesterday = time.time() - 86400
        os.utime(page, (yesterday, yesterday))
        port = free_port()
        self.start([sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "--directory",
                    self.directory, port], port)
        encore = self.encore()
        for line in said:
            status = field(get(encore.port, f"http://127.0.0.1:{port}/a.txt"), "Cache-Status")
            self.assertRegex("Cache-Status: " + status,
                             "^" + re.escape(line).replace("8640", "86(40|39|38)") + "$")
        # A client has its answer a moment before it is counted.
        eventually(lambda: sum(encore.outcomes().values()) == len(said), "all are counted")
        metrics = encore.metrics()
        for line in counted:
            name, value = line.split(" ")
            if name != "encore_cache_used_bytes":
                self.assertAlmostEqual(1, (metrics[name] + 1e-99) / (float(value) + 1e-99), 6, line)


class FirstSession(Case):
    def test_the_first_request_is_remembered_the_second_stored_the_third_a_hit(self):
        origin = Origin(self, {"/page": fresh(b"hello\n", 600)})
        encore = self.encore()
        answers = [get(encore.port, origin.url("/page")) for _ in range(3)]
        self.assertEqual([b"hello\n"] * 3, [a.body for a in answers])
        self.assertEqual(2, origin.count("/page"))
        said = [field(a, "Cache-Status") for a in answers]
        self.assertEqual("encore; fwd=uri-miss; stored=?0; detail=first-request", said[0])
        self.assertEqual("encore; fwd=uri-miss; stored; detail=second-request", said[1])
        self.assertRegex(said[2], r"^encore; hit; ttl=(600|59\d)$")
        self.assertIsNotNone(field(answers[2], "Age"))
        self.assertIn("encore", field(answers[2], "Via"))

    def test_hits_go_on_over_one_connection_and_over_many(self):
        origin = Origin(self, {"/page": fresh(b"x" * 5000)})
        encore = self.encore()
        for _ in range(2):
            get(encore.port, origin.url("/page"))
        with Client(encore.port) as client:
            for _ in range(50):
                self.assertEqual(5000, len(client.ask(origin.url("/page")).body))
        for _ in range(20):
            self.assertIn("; hit", field(get(encore.port, origin.url("/page")), "Cache-Status"))
        self.assertEqual(2, origin.count())

    def test_each_url_is_remembered_by_itself(self):
        origin = Origin(self, default=fresh(b"same for all"))
        encore = self.encore()
        with Client(encore.port) as client:
            for number in range(200):
                answer = client.ask(origin.url(f"/one-off/{number}"))
                self.assertIn("first-request", field(answer, "Cache-Status"))
        self.assertEqual(200, origin.count())

    def test_a_query_is_part_of_the_key_and_a_fragment_never_sent(self):
        origin = Origin(self, default=lambda x: fresh(x.request.target.encode()))
        encore = self.encore()
        for _ in range(3):
            self.assertEqual(b"/q?a=1", get(encore.port, origin.url("/q?a=1")).body)
            self.assertEqual(b"/q?a=2", get(encore.port, origin.url("/q?a=2")).body)
        self.assertEqual((2, 2), (origin.count("/q?a=1"), origin.count("/q?a=2")))

    def test_spellings_of_one_url_share_one_object(self):
        origin = Origin(self, default=fresh(b"one"))
        encore = self.encore()
        for spelling in ("/a/b", "/a/./b", "/a/c/../b", "/%61/b"):
            get(encore.port, origin.url(spelling))
        self.assertEqual(2, origin.count())

    def test_what_may_not_be_stored_is_fetched_each_time(self):
        origin = Origin(self, {
            "/no-store": response(b"a", Cache_Control="no-store"),
            "/private": response(b"b", Cache_Control="private, max-age=60"),
        })
        encore = self.encore()
        for path in ("/no-store", "/private"):
            for _ in range(4):
                self.assertNotIn("; hit", field(get(encore.port, origin.url(path)), "Cache-Status"))
            self.assertEqual(4, origin.count(path))

    def test_head_is_answered_from_the_stored_get(self):
        origin = Origin(self, {"/page": fresh(b"12345")})
        encore = self.encore()
        for _ in range(2):
            get(encore.port, origin.url("/page"))
        answer = get(encore.port, origin.url("/page"), method="HEAD")
        self.assertEqual((200, "5"), (answer.status, field(answer, "Content-Length")))
        self.assertEqual(2, origin.count())
        self.assertIn("; hit", field(answer, "Cache-Status"))

    def test_a_range_and_a_conditional_are_answered_from_the_store(self):
        origin = Origin(self, {"/page": fresh(b"0123456789", ETag='"v1"')})
        encore = self.encore()
        for _ in range(2):
            get(encore.port, origin.url("/page"))
        part = get(encore.port, origin.url("/page"), fields=[("Range", "bytes=2-4")])
        self.assertEqual((206, b"234", "bytes 2-4/10"),
                         (part.status, part.body, field(part, "Content-Range")))
        beyond = get(encore.port, origin.url("/page"), fields=[("Range", "bytes=10-")])
        self.assertEqual((416, "bytes */10"), (beyond.status, field(beyond, "Content-Range")))
        same = get(encore.port, origin.url("/page"), fields=[("If-None-Match", '"v1"')])
        self.assertEqual((304, b""), (same.status, same.body))
        other = get(encore.port, origin.url("/page"), fields=[("If-None-Match", '"v0"')])
        self.assertEqual((200, 10), (other.status, len(other.body)))
        self.assertEqual(2, origin.count())

    def test_a_stale_object_is_validated_and_served_after_a_304(self):
        def page(exchange):
            if dict(exchange.request.fields).get("if-none-match") == '"v1"':
                return response(status="304 Not Modified", Content_Length=None, ETag='"v1"',
                                Cache_Control="max-age=600")
            return response(b"body", ETag='"v1"', Cache_Control="max-age=0")
        origin = Origin(self, {"/page": page})
        encore = self.encore()
        bodies = [get(encore.port, origin.url("/page")).body for _ in range(5)]
        self.assertEqual([b"body"] * 5, bodies)
        sent = [dict(r.fields).get("if-none-match") for r in origin.requests]
        self.assertEqual([None, None, '"v1"'], sent)

    def test_vary_keeps_variants_apart(self):
        origin = Origin(self, {"/page": lambda x: fresh(
            dict(x.request.fields)["accept-language"].encode(), Vary="Accept-Language")})
        encore = self.encore()
        for _ in range(4):
            for language in ("de", "en"):
                answer = get(encore.port, origin.url("/page"),
                             fields=[("Accept-Language", language)])
                self.assertEqual(language.encode(), answer.body)
        self.assertLessEqual(origin.count(), 4)

    def test_an_unsafe_method_invalidates(self):
        origin = Origin(self, {"/page": lambda x: fresh(b"%d" % len(origin.requests))})
        encore = self.encore()
        for _ in range(3):
            before = get(encore.port, origin.url("/page")).body
        self.assertEqual(b"2", before)
        get(encore.port, origin.url("/page"), method="POST", body=b"change")
        self.assertEqual(b"4", get(encore.port, origin.url("/page")).body)


if __name__ == "__main__":
    unittest.main()
