"""A page that came to a request with a cookie and says nothing of its freshness is validated by each
who asks: nobody guesses that it is for all."""

import concurrent.futures
import email.utils
import time
import unittest

from client import Client, field
from harness import Case, eventually, free_port
from origin import Origin, response

SITE = "site.example"
OLD = email.utils.formatdate(time.time() - 1_000_000, usegmt=True)


def cookie_of(request):
    return dict(request.fields).get("cookie", "none")


def page(exchange):
    """Says which cookie the origin saw."""
    return response(f"for {cookie_of(exchange.request)}", Last_Modified=OLD,
                    Date=email.utils.formatdate(usegmt=True))


class Guesses(Case):
    def setUp(self):
        super().setUp()
        self.origin = Origin(self, default=page)
        self.ports = {"forward": free_port(), "reverse": free_port()}

    def start_with(self, **sections):
        return self.encore(
            listen=[{"address": f"127.0.0.1:{port}", "mode": mode}
                    for mode, port in self.ports.items()],
            origin=[{"servers": [self.origin.url("")]}], admission={"policy": "always"}, **sections)

    def ask(self, mode, cookie=None, path="/page", method="GET", fields=()):
        target = self.origin.url(path) if mode == "forward" else path
        host = self.origin.authority if mode == "forward" else SITE
        lines = [f"{method} {target} HTTP/1.1", f"Host: {host}",
                 *(f"{name}: {value}" for name, value in fields)]
        if cookie:
            lines.append(f"Cookie: {cookie}")
        with Client(self.ports[mode]) as client:
            client.send("\r\n".join(lines) + "\r\n\r\n")
            return client.read_response(method)

    def check_asked(self, *requests, asked=True):
        """The second request reaches the origin, or does not, in both modes."""
        for mode in self.ports:
            with self.subTest(mode):
                self.ask(mode, *requests[0])
                before = self.origin.count()
                self.ask(mode, *requests[1])
                self.assertEqual(1 if asked else 0, self.origin.count() - before)

    def test_nobody_gets_the_page_of_another(self):
        self.start_with()
        for mode in self.ports:
            bodies = [self.ask(mode, cookie).body for cookie in ("a=1", "b=2", None, "a=1")]
            self.assertEqual([b"for a=1", b"for b=2", b"for none"], bodies[:3])

    def test_stale_windows_of_the_configuration_do_not_give_it_either(self):
        self.start_with(cache={"stale_while_revalidate": "1h", "stale_if_error": "1h"})
        self.check_asked(["a=1"], ["b=2"])
        for mode in self.ports:
            answer = self.ask(mode, "c=3", fields=[("Cache-Control", "max-stale")])
            self.assertEqual(b"for c=3", answer.body)

    def test_a_key_allows_it(self):
        self.start_with(cache={"heuristic_with_cookie": True})
        self.check_asked(["a=1"], ["b=2"], asked=False)

    def test_a_rule_allows_it_and_another_forbids_it(self):
        self.start_with(rule=[{"path": "/page", "heuristic_with_cookie": True}])
        self.check_asked(["a=1"], ["b=2"], asked=False)
        self.check_asked(["a=1", "/other"], ["b=2", "/other"])

    def test_a_rule_forbids_what_the_key_allows(self):
        self.start_with(cache={"heuristic_with_cookie": True},
                        rule=[{"path": "/page", "heuristic_with_cookie": False}])
        self.check_asked(["a=1"], ["b=2"])
        self.check_asked(["a=1", "/other"], ["b=2", "/other"], asked=False)

    def test_a_rule_for_a_type_allows_it(self):
        self.origin.default = lambda exchange: page(exchange).replace(
            b"\r\n\r\n", b"\r\nContent-Type: image/png\r\n\r\n", 1)
        self.start_with(rule=[{"content_type": "image/*", "heuristic_with_cookie": True}])
        self.check_asked(["a=1"], ["b=2"], asked=False)

    def test_freshness_by_a_rule_needs_no_guess(self):
        self.start_with(rule=[{"path": "/page", "fresh": "1h"}, {"path": "/min", "fresh_min": "1h"}])
        self.check_asked(["a=1"], ["b=2"], asked=False)
        self.check_asked(["a=1", "/min"], ["b=2", "/min"], asked=False)

    def test_a_cookie_that_the_origin_does_not_see_is_none(self):
        self.start_with(rule=[
            {"path": "/ignore", "cookies": "ignore"},
            {"path": "/remove", "request_remove": ["cookie"]},
            {"path": "/set", "request_set": ["Cookie: of=all"]},
            {"path": "/key", "cookies": "key:lang"}])
        for path in ("/ignore", "/remove", "/set", "/key"):
            self.check_asked(["a=1", path], ["b=2", path], asked=False)
        # The origin sees the cookies that tell objects apart.
        self.check_asked(["lang=de", "/key?2"], ["lang=de", "/key?2"])

    def test_a_part_of_it_is_validated_and_so_is_what_it_completes(self):
        def part(exchange):
            fields = dict(exchange.request.fields)
            if "if-none-match" in fields:
                return response(b"", "304 Not Modified", ETag='"one"', Content_Length=None)
            if "range" not in fields:  # the whole is asked for first, and is too large
                return response(b"0123456789", ETag='"one"', Last_Modified=OLD)
            first = int(fields["range"].removeprefix("bytes=").split("-")[0])
            last = 4 if first == 0 else 9
            return response(b"0123456789"[first:last + 1], "206 Partial Content",
                            Content_Range=f"bytes {first}-{last}/10", ETag='"one"',
                            Last_Modified=OLD, Date=email.utils.formatdate(usegmt=True))
        self.origin.default = part
        self.start_with(cache={"range_fetch_max": 0})
        for mode in self.ports:
            first, second = [("Range", "bytes=0-4")], [("Range", "bytes=5-9")]
            self.ask(mode, "a=1", "/part", fields=first)
            self.ask(mode, None, "/part", fields=second)
            before = self.origin.count()
            self.assertEqual(b"0123", self.ask(mode, None, "/part",
                                               fields=[("Range", "bytes=0-3")]).body[:4])
            self.assertEqual(1, self.origin.count() - before)

    def test_a_background_validation_with_a_cookie_makes_nothing_fresh(self):
        """The window is the origin's; what comes back to the cookie is its owner's."""
        pages = iter(range(1000))

        def numbered(exchange):
            more = {} if cookie_of(exchange.request) != "none" else {
                "Cache_Control": "max-age=0, stale-while-revalidate=600"}
            return response(f"{next(pages)} for {cookie_of(exchange.request)}", Last_Modified=OLD,
                            Date=email.utils.formatdate(usegmt=True), **more)
        self.origin.default = numbered
        self.start_with()
        for mode in self.ports:
            self.ask(mode)
            before = self.origin.count()
            self.assertIn(b"for none", self.ask(mode, "a=1").body)
            eventually(lambda b=before: self.origin.count() > b, "it is validated behind that")
            eventually(lambda m=mode: b"for b=2" in self.ask(m, "b=2").body, "the new page is there")
            self.assertIn(b"for c=3", self.ask(mode, "c=3").body)

    def test_at_the_same_time_each_gets_his_own(self):
        self.start_with()
        for mode in self.ports:
            with concurrent.futures.ThreadPoolExecutor(16) as pool:
                bodies = list(pool.map(lambda n, m=mode: self.ask(m, f"n={n}", "/crowd").body,
                                       range(64)))
            self.assertEqual([f"for n={n}".encode() for n in range(64)], bodies)

    def test_it_stays_so_on_disk(self):
        encore = self.start_with(
            cache={"disk_life_min": "0s"},
            disk=[{"path": str(self.directory / "disk"), "size": "128MiB"}])
        for mode in self.ports:
            for path in ("/with", "/without"):
                self.ask(mode, "a=1" if path == "/with" else None, path)
        encore.stop()
        encore.start()
        for mode in self.ports:
            self.assertEqual(b"for b=2", self.ask(mode, "b=2", "/with").body)
            answer = self.ask(mode, "b=2", "/without")
            self.assertEqual(b"for none", answer.body, field(answer, "Cache-Status"))


if __name__ == "__main__":
    unittest.main()
