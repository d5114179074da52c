"""Reports: Cache-Status (RFC 9211), and the effects of configuration."""

import email.utils
import itertools
import json
import signal
import threading
import unittest

from caching import Table, cases, date, hit, miss, refused, valid
from client import Client, field, get
from harness import Case, eventually, free_port
from origin import Origin, chunked, fresh, response

row = Table()
FRESH = {"Cache_Control": "max-age=600"}

row("RFC 9211 2.1", "a hit, with its ttl", miss(says=r"^encore; fwd=uri-miss; stored; ", **FRESH),
    hit(says=r"^encore; hit; ttl=(600|599)$"))
row("RFC 9211 2.2", "a miss for want of a variant",
    miss(req={"Foo": "1"}, Vary="Foo", **FRESH),
    miss(req={"Foo": "2"}, says="^encore; fwd=vary-miss; stored", Vary="Foo", **FRESH))
row("RFC 9211 2.2", "a stale response that was validated",
    miss(Cache_Control="max-age=0", ETag='"a"'), valid(says="fwd=stale; fwd-status=304"))
row("RFC 9211 2.2", "a request that would not take what is stored",
    miss(**FRESH), miss(req={"Cache-Control": "no-cache"}, upstream={"any": 1},
                        says="fwd=request", **FRESH))
row("RFC 9211 2.2", "a method that is not cached", miss(method="PUT", says="fwd=method"))
for broken in ('a; hit, "b', "a hit", "a,", "a; Hit", "?2"):
    row("RFC 9211 2", f"a Cache-Status that cannot be read ends here: {broken}",
        miss(Cache_Status=broken, want={"Cache-Status": lambda t: t.startswith("encore; fwd")},
             **FRESH),
        hit(want={"Cache-Status": lambda t: t.startswith("encore; hit")}))
row("RFC 9211 2", "a Cache-Status of a cache behind us stays in front of ours",
    miss(Cache_Status=['"In ner"; hit; ttl=-3', "b;fwd=miss;key=\"x, \\\"y\", (c d);e"],
         want={"Cache-Status": lambda t: t.startswith('"In ner"; hit; ttl=-3, b;fwd=miss;')}, **FRESH))
row("RFC 9211 2.8", "why it was not stored", miss(Cache_Control="no-store", says="detail=no-store$"))
row("RFC 9211 2", "on an answer of our own",
    refused(504, req={"Cache-Control": "only-if-cached"}, says="^encore; detail=only-if-cached$"))
row("RFC 9211 2", "on an origin that cannot be understood",
    miss(raw=b"nonsense\r\n\r\n", want_status=502, sees=lambda body: True, says="^encore; fwd="))
row("RFC 9211 3", "members of caches behind us stay, in front of ours",
    miss(Cache_Status="behind; hit; ttl=9", says="^behind; hit; ttl=9, encore; fwd=", **FRESH),
    hit(says="^behind; hit; ttl=9, encore; hit"))
row("RFC 9110 7.6.3", "Via names us, behind the others",
    miss(Via="1.0 behind", want={"Via": lambda text: text.startswith("1.0 behind, 1.1 encore")},
         **FRESH),
    hit(want={"Via": lambda text: text.startswith("1.0 behind, 1.1 encore")}))
row("RFC 3986 6.2.2", "escapes, case of escapes and dot segments are no other key",
    miss(url="/a/b", **FRESH), hit(url="/a/%62", prime=False),
    hit(url="/x/../a/./b", prime=False))
row("RFC 9110 4.2.3", "the origin is asked for the path that the key names",
    miss(url="/x/../a/./%62%c3%a9?%7e", prime=False, upstream={"target": "/a/b%C3%A9?%7e"}, **FRESH),
    hit(url="/a/b%C3%A9?%7e"))
row("RFC 3986 6.2.2", "an escaped slash is another key", miss(url="/a/b", **FRESH),
    miss(url="/a%2fb", **FRESH), hit(url="/a%2Fb", prime=False))
row("RFC 9111 2", "the query is part of the key, as it is",
    miss(url="/q?a=1&b=2", **FRESH), miss(url="/q?b=2&a=1", **FRESH), miss(url="/q?a=1", **FRESH),
    miss(url="/q", **FRESH), miss(url="/q?", **FRESH), hit(url="/q?a=1&b=2", sees="body of step 1\n"))

Rows = cases(row)


class Configured(Case):
    """Switches, each against its default, which the rows above show."""

    def serve(self, routes, fields=(), mode="reverse", **cache):
        origin = Origin(self, routes)
        port = free_port()
        encore = self.encore(listen=[{"address": f"127.0.0.1:{port}", "mode": mode}],
                             origin=[{"servers": [origin.url("")]}],
                             admission={"policy": "always"}, cache=cache)

        def ask(path, fields=(), **options):
            return get(encore.port, origin.url(path), fields=fields, **options)
        return origin, ask

    def test_what_cannot_be_stored_is_not_said_to_be(self):
        def page(exchange):
            if field(exchange.request, "If-None-Match"):
                return response(b"", "304 Not Modified", ETag='"e"', Cache_Control="max-age=60")
            return fresh(b"a", ETag='"e"')
        # Conditions that are the origin's to evaluate, or are so where admission is hidden.
        for policy in ("always", "second-hit"):
            origin = Origin(self, default=page)
            log = self.directory / f"{policy}.log"
            encore = self.encore(admission={"policy": policy},
                                 log={"access": str(log), "format": "json"})
            for kind, asked in (("if-match", {"fields": [("If-Match", '"e"')]}),
                                ("head", {"method": "HEAD"})):
                for _ in range(3):
                    answer = get(encore.port, origin.url(f"/{kind}"), **asked)
                    said = field(answer, "Cache-Status")
                    self.assertNotIn("detail=admitted", said)
                    self.assertNotIn("detail=second-request", said)
                    self.assertNotIn("stored;", said)
                self.assertIn("stored=?0; detail=not-stored", said)
            requests = encore.stats()["requests"]
            self.assertEqual((0, 0), (requests["admitted"], requests["second-request"]))
            lines = eventually(lambda: log.exists() and log.read_text().count("\n") == 6
                               and log.read_text().splitlines(), "six records")
            last = json.loads(lines[-1])
            self.assertEqual(("uncacheable", "not-stored"), (last["outcome"], last["detail"]))

    def test_set_cookie_is_not_stored(self):
        origin, ask = self.serve({"/a": fresh(b"a", Set_Cookie="x")}, set_cookie="refuse")
        ask("/a")
        self.assertIn("detail=set-cookie", field(ask("/a"), "Cache-Status"))

    def test_reloads_of_clients_are_ignored(self):
        origin, ask = self.serve({"/a": fresh(b"a")}, ignore_client_reload=True)
        ask("/a")
        for name, value in (("Cache-Control", "no-cache"), ("Cache-Control", "max-age=0"),
                            ("Pragma", "no-cache")):
            self.assertIn("; hit", field(ask("/a", [(name, value)]), "Cache-Status"))

    def test_a_forward_proxy_honours_reloads_all_the_same(self):
        origin, ask = self.serve({"/a": fresh(b"a")}, mode="forward", ignore_client_reload=True)
        ask("/a")
        self.assertIn("fwd=request",
                      field(ask("/a", [("Cache-Control", "no-cache")]), "Cache-Status"))

    def test_an_error_to_a_validation_leaves_what_is_stored(self):
        for served in (True, False):
            how = []

            def page(exchange, how=how):
                if how:
                    return how[0](exchange)
                return response(b"old", ETag='"a"', Cache_Control="max-age=60", Age="70")
            origin, ask = self.serve({"/a": page}, serve_stale_on_error=served)
            self.assertEqual(b"old", ask("/a").body)
            for error in (lambda x: response(b"error", "503 Out"), lambda x: x.close(),
                          lambda x: response(b"error", "500 Out", Cache_Control="no-store")):
                how[:] = [error]
                answer = ask("/a")
                if served and answer.status == 200:  # no answer came
                    self.assertEqual(b"old", answer.body)
                else:
                    self.assertIn(answer.status, (500, 502, 503))
            how[:] = [lambda x: (b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n'
                                 b"Cache-Control: max-age=600\r\n\r\n")]
            self.assertEqual(b"old", ask("/a").body)
            self.assertEqual('"a"', dict(origin.last("/a").fields)["if-none-match"])
            self.assertIn("; hit", field(ask("/a"), "Cache-Status"))

    def test_the_key_is_shown(self):
        origin, ask = self.serve({"/a": fresh(b"a")}, cache_status_key=True)
        key = f'key="http://{origin.authority}/a"'
        self.assertIn(key, field(ask("/a"), "Cache-Status"))
        self.assertIn(key, field(ask("/a"), "Cache-Status"))

    def test_query_parameters_are_sorted_and_dropped(self):
        origin, ask = self.serve({"/a": fresh(b"a")}, query_sort=True, query_drop=["utm_*"])
        ask("/a?a=1&b=2")
        self.assertIn("; hit", field(ask("/a?b=2&utm_source=x&a=1"), "Cache-Status"))

    def test_but_not_in_forward_mode(self):
        origin, ask = self.serve({"/a": fresh(b"a")}, mode="forward", query_sort=True)
        ask("/a?a=1&b=2")
        self.assertNotIn("; hit", field(ask("/a?b=2&a=1"), "Cache-Status"))

    def test_an_invalidation_finds_the_sorted_key(self):
        origin, ask = self.serve({"/a": fresh(b"a")}, query_sort=True)
        ask("/a?a=1&b=2")
        ask("/a?b=2&a=1", method="DELETE")
        self.assertNotIn("; hit", field(ask("/a?a=1&b=2"), "Cache-Status"))

    def test_accept_encoding_as_it_is(self):
        origin, ask = self.serve({"/a": fresh(b"a", Vary="Accept-Encoding")},
                                 normalise_accept_encoding="off")
        ask("/a", [("Accept-Encoding", "gzip, br")])
        self.assertNotIn("; hit", field(ask("/a", [("Accept-Encoding", "gzip;q=0.9, br")]),
                                        "Cache-Status"))

    def test_stale_windows_for_responses_that_name_none(self):
        states = iter([fresh(b"old", seconds=60, Age="70", ETag='"a"')])

        def page(exchange):
            return next(states, response(b"broken", "503 Broken"))
        origin, ask = self.serve({"/a": page}, stale_if_error="60s")
        ask("/a")
        answer = ask("/a")
        self.assertEqual((200, b"old"), (answer.status, answer.body))

    def test_stale_while_revalidate_for_responses_that_name_none(self):
        origin, ask = self.serve({"/a": fresh(b"old", seconds=60, Age="70", ETag='"a"')},
                                 stale_while_revalidate="60s")
        ask("/a")
        self.assertIn("detail=stale", field(ask("/a"), "Cache-Status"))

    def test_no_more_variants_than_allowed(self):
        origin, ask = self.serve({"/a": fresh(b"a", Vary="Foo")}, variants_max=2)
        for value in "123":
            ask("/a", [("Foo", value)])
        self.assertIn("; hit", field(ask("/a", [("Foo", "3")]), "Cache-Status"))
        self.assertIn("; hit", field(ask("/a", [("Foo", "2")]), "Cache-Status"))
        self.assertNotIn("; hit", field(ask("/a", [("Foo", "1")]), "Cache-Status"))

    def test_other_targeted_fields(self):
        origin, ask = self.serve({"/a": response(b"a", Our_Cache_Control="max-age=600",
                                                 Cache_Control="no-store")},
                                 targets=["Our-Cache-Control"])
        ask("/a")
        self.assertIn("; hit", field(ask("/a"), "Cache-Status"))

    def test_a_range_of_what_is_too_large_to_fetch_whole_goes_as_it_is(self):
        body = bytes(range(256)) * 1024

        def page(exchange):
            asked = dict(exchange.request.fields).get("range")
            if not asked:
                return fresh(body, ETag='"a"')
            first, last = map(int, asked.removeprefix("bytes=").split("-"))
            part = fresh(body[first:last + 1], ETag='"a"',
                         Content_Range=f"bytes {first}-{last}/{len(body)}")
            return part.replace(b"200 OK", b"206 Partial Content", 1)
        origin, ask = self.serve({"/a": page}, range_fetch_max="64KiB")
        for first, last, status in [(0, 99, "uri-miss"), (100, 199, "partial"), (50, 149, None)]:
            answer = ask("/a", [("Range", f"bytes={first}-{last}")])
            self.assertEqual((206, body[first:last + 1]), (answer.status, answer.body))
            said = field(answer, "Cache-Status")
            self.assertIn(f"fwd={status}" if status else "; hit", said)
        asked = [dict(r.fields).get("range") for r in origin.requests]
        self.assertEqual([None, "bytes=0-99", "bytes=100-199"], asked)

    def test_ranges_of_what_turns_out_too_large_are_the_origins_to_answer(self):
        body = bytes(range(256)) * 12000
        for serves_ranges in (True, False):
            with self.subTest(serves_ranges=serves_ranges):
                self.ask_for_ranges_of(body, serves_ranges)

    def ask_for_ranges_of(self, body, serves_ranges):
        def page(exchange):
            asked = dict(exchange.request.fields).get("range")
            if asked is None or not serves_ranges:
                return chunked(body, ETag='"a"')
            first, last = map(int, asked.removeprefix("bytes=").split("-"))
            part = fresh(body[first:last + 1], ETag='"a"',
                         Content_Range=f"bytes {first}-{last}/{len(body)}")
            return part.replace(b"200 OK", b"206 Partial Content", 1)
        origin, ask = self.serve({"/a": page}, max_object="1MiB")
        for first, last in ((0, 99), (100, 199), (1000, 1999), (50, 149)):
            answer = ask("/a", [("Range", f"bytes={first}-{last}")])
            self.assertIn(answer.status, (206,) if serves_ranges else (200, 206))
            seen = body[first:last + 1] if answer.status == 206 else body
            self.assertTrue(answer.body == seen)
        # The whole is asked for once, and broken off once.
        self.assertEqual(1, sum("range" not in dict(r.fields) for r in origin.requests))


class Stored(Case):
    def test_stored_is_said_only_where_it_is_known(self):
        go = threading.Event()

        def growing(size):
            def page(exchange):
                exchange.send(b"HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\n"
                              b"Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
                exchange.wait(go)
                exchange.send(b"%x\r\n%s\r\n0\r\n\r\n" % (size, b"x" * size))
            return page
        origin = Origin(self, {
            "/large": growing(3 << 20), "/small": growing(10),
            "/known": lambda x: x.send(fresh(b"x" * 100000)), "/short": chunked(b"all at once")})
        encore = self.encore(admission={"policy": "always"},
                             cache={"memory": "64MiB", "max_object": "1MiB"})
        for path, known, then_hit in (("/large", False, False), ("/small", False, True),
                                      ("/known", True, True), ("/short", True, True)):
            with self.subTest(path), Client(encore.port) as client:
                go.clear()
                client.request(origin.url(path))
                head = client.read_head()
                self.assertEqual(known, "; stored" in field(head, "Cache-Status"), head)
                go.set()
                client.close()
                get(encore.port, origin.url(path))
                last = field(get(encore.port, origin.url(path)), "Cache-Status")
                self.assertEqual(then_hit, "; hit" in last, last)


BEGAN = email.utils.formatdate(usegmt=True)


def pages(exchange):
    """An origin's possible responses: the same each time, to the byte."""
    asked = dict(exchange.request.fields)
    path = exchange.request.target.partition("?")[0]
    given = {"Date": BEGAN, "Cache_Control": "max-age=6000", "ETag": '"a"', "Age": "3",
             "X_Cache": "MISS", "X_Served_By": "a", "Vary": "Accept-Encoding"}
    if path == "/cookie":
        given["Set_Cookie"] = "a=b"
    if path == "/chunked":
        return response(b"3\r\none\r\n0\r\nChecked: yes\r\n\r\n", Transfer_Encoding="chunked",
                        **{**given, "Content_Length": None})
    if path == "/moved":
        return response(b"", "301 Moved", Location="/b", **given)
    if path == "/large":
        return response(b"x" * 200000, **given)
    if path != "/ignores" and asked.get("if-none-match") == '"a"':
        return response(b"", "304 Not Modified", **{**given, "Content_Length": None})
    if path == "/ranges" and asked.get("range") == "bytes=0-1":
        return response(b"01", "206 Partial Content", Content_Range="bytes 0-1/10", **given)
    if path == "/ranges" and "range" in asked:
        return response(b"", "416 Range Not Satisfiable", Content_Range="bytes */10", **given)
    return response(b"0123456789", Content_Location=exchange.request.target, **given)


class Hidden(Case):
    """Whether a client sees that its request was the second one: without a switch it does, with
    it no byte of the answer differs."""

    ASKED = [("/plain", {}), ("/cookie", {}), ("/chunked", {}), ("/moved", {}), ("/large", {}),
             ("/plain", {"method": "HEAD"}), ("/plain", {"method": "POST", "body": b"x"}),
             ("/plain", {"fields": [("Connection", "close")]}),
             ("/plain", {"fields": [("TE", "trailers")]}), ("/plain", {"version": "HTTP/1.0"}),
             ("/plain", {"fields": [("If-None-Match", '"a"')]}),
             ("/plain", {"fields": [("If-None-Match", '"b"')]}),
             ("/ignores", {"fields": [("If-None-Match", '"a"')]}),
             *((page, {"fields": [("Range", value), *more]}) for page in ("/ranges", "/ignores")
               for value in ("bytes=0-1", "bytes=20-", "bytes=0-1,4-5")
               for more in ((), (("If-Range", '"b"'),)))]

    def differences(self, encore, origin, run):
        """The requests of ASKED whose second answer is another one than the first."""
        found = []
        for number, (path, options) in enumerate(self.ASKED):
            url = origin.url(f"{path}?{run}-{number}")
            answers = [get(encore.port, url, **options) for _ in range(2)]
            if answers[0] != answers[1]:
                found.append((path, options))
        return found

    def test_the_second_answer_is_the_first_ones_double_where_admission_is_hidden(self):
        origin = Origin(self, default=pages)
        encore = self.encore(cache={"cache_status_admission": False})
        self.assertEqual([], self.differences(encore, origin, "hidden"))
        said = field(get(encore.port, origin.url("/new")), "Cache-Status")
        self.assertEqual("encore; fwd=uri-miss", said)
        # The operator sees the parts that are hidden from clients.
        records = encore.access_records(2 * len(self.ASKED) + 1)
        # A HEAD, a 304 and incomplete responses are admitted, and not stored.
        outcomes = ["second-request" if record.get("detail") == "not-stored" else record["outcome"]
                    for record in records]
        self.assertEqual([len(self.ASKED) + 1, len(self.ASKED)],
                         [outcomes.count(name) for name in ("first-request", "second-request")])

    def test_what_is_asked_for_in_parts_is_stored_in_parts_and_not_with_conditions(self):
        origin = Origin(self, default=pages)
        encore = self.encore(cache={"cache_status_admission": False})
        for path, fields, asked in (("/ranges?1", [("Range", "bytes=0-1")], 2),
                                    ("/plain?2", [("If-None-Match", '"a"')], 4)):
            for _ in range(4):
                get(encore.port, origin.url(path), fields=fields)
            self.assertEqual(asked, origin.count(path), path)

    def test_without_the_switch_each_of_them_tells(self):
        origin = Origin(self, default=pages)
        encore = self.encore(workers={"count": 1})  # a reload reaches one by one
        self.assertEqual(self.ASKED, self.differences(encore, origin, "told"))
        # A reload hides it, from then on.
        encore.sections["cache"]["cache_status_admission"] = False
        encore.write_config()
        encore.signal(signal.SIGHUP)
        new = (origin.url(f"/new?{number}") for number in itertools.count())
        eventually(lambda: field(get(encore.port, next(new)), "Cache-Status").endswith("uri-miss"),
                   "the new setting holds")
        self.assertEqual([], self.differences(encore, origin, "reloaded"))


class SecondHit(Case):
    """The requests that count, and those sent to the origin before the response is known."""

    def setUp(self):
        super().setUp()
        self.encore_ = self.encore()

    def ask(self, origin, path, fields=(), method="GET", body=b""):
        answer = get(self.encore_.port, origin.url(path), fields=fields, method=method, body=body)
        return field(answer, "Cache-Status")

    def rows(self, first, routes, stored=True):
        """After `first`, is the next plain GET the second request?"""
        origin = Origin(self, {"/a": routes})
        self.ask(origin, "/a", **first)
        said = self.ask(origin, "/a")
        self.assertIn("second-request" if stored else "first-request", said, first)
        self.assertIn("; hit" if stored else "; stored", self.ask(origin, "/a"), first)

    def test_get_counts(self):
        self.rows({}, fresh(b"a"))

    def test_a_range_counts(self):
        part = fresh(b"a", Content_Range="bytes 0-0/9").replace(b"200 OK", b"206 Partial", 1)
        self.rows({"fields": [("Range", "bytes=0-0")]}, lambda x: part if any(
            n == "range" for n, _ in x.request.fields) else fresh(b"whole"))

    def test_a_304_to_a_clients_own_condition_counts(self):
        self.rows({"fields": [("If-None-Match", '"a"')]}, lambda x: (
            b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nCache-Control: max-age=600\r\n\r\n')
            if any(n == "if-none-match" for n, _ in x.request.fields) else fresh(b"a", ETag='"a"'))

    def test_head_counts(self):
        self.rows({"method": "HEAD"}, fresh(b"a"))

    def test_a_redirect_counts(self):
        moved = fresh(b"").replace(b"200 OK", b"301 Moved\r\nLocation: /b", 1)
        self.rows({}, moved)

    def test_post_with_freshness_counts(self):
        self.rows({"method": "POST", "body": b"x"},
                  lambda x: fresh(b"a", Content_Location="/a"))

    def test_what_may_not_be_stored_does_not_count(self):
        answers = iter([response(b"mine", Cache_Control="no-store")])
        self.rows({}, lambda x: next(answers, fresh(b"a")), stored=False)

    def test_a_request_with_no_store_does_not_count(self):
        self.rows({"fields": [("Cache-Control", "no-store")]}, fresh(b"a"), stored=False)

    def test_the_first_range_goes_as_it_is_and_the_second_fetches_the_whole(self):
        body = b"0123456789"

        def page(exchange):
            if any(name == "range" for name, _ in exchange.request.fields):
                part = fresh(body[:2], Content_Range="bytes 0-1/10")
                return part.replace(b"200 OK", b"206 Partial Content", 1)
            return fresh(body)
        origin = Origin(self, {"/a": page})
        said = [self.ask(origin, "/a", [("Range", "bytes=0-1")]) for _ in range(3)]
        self.assertIn("first-request", said[0])
        self.assertIn("stored; detail=second-request", said[1])
        self.assertIn("; hit", said[2])
        self.assertEqual([True, False],
                         [any(n == "range" for n, _ in r.fields) for r in origin.requests])

    def test_a_further_variant_of_what_is_stored_is_not_asked_twice(self):
        origin = Origin(self, {"/a": fresh(b"a", Vary="Foo")})
        for _ in range(2):
            self.ask(origin, "/a", [("Foo", "1")])
        self.assertIn("; stored", self.ask(origin, "/a", [("Foo", "2")]))
        self.assertIn("; hit", self.ask(origin, "/a", [("Foo", "2")]))

    def test_our_own_validation_does_not_count(self):
        answers = iter([fresh(b"a", seconds=0, ETag='"a"'), fresh(b"a", seconds=0, ETag='"a"')])

        def page(exchange):
            return next(answers, b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\n\r\n')
        origin = Origin(self, {"/a": page})
        for _ in range(4):
            self.ask(origin, "/a")
        requests = self.encore_.metrics()
        admitted = [value for name, value in requests.items()
                    if "first" in name and "request" in name and "outcome" in name]
        self.assertEqual([1], [int(value) for value in admitted if value])

    def test_uncacheable_answers_that_become_cacheable_are_admitted_in_their_turn(self):
        answers = iter([response(b"no", Cache_Control="no-store")] * 3)
        origin = Origin(self, {"/a": lambda x: next(answers, fresh(b"a"))})
        said = [self.ask(origin, "/a") for _ in range(6)]
        for text in said[:3]:
            self.assertIn("detail=no-store", text)
        self.assertIn("first-request", said[3])
        self.assertIn("second-request", said[4])
        self.assertIn("; hit", said[5])


if __name__ == "__main__":
    unittest.main()
