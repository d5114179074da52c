"""A page that never was fresh is its owner's: the next user never gets it without a word of the
origin, whatever his request says and the configuration allows."""

import concurrent.futures
import email.utils
import time
import unittest

from client import Client, field
from harness import Case, eventually, free_port
from origin import Origin, response

SITE = "site.example"


def date(offset=0, now=None):
    return email.utils.formatdate((now or time.time()) + offset, usegmt=True)


OLD = date(-1_000_000)
# Fields of the response by the kind's name; an entity tag comes with each that has none here.
NEVER = {
    "etag alone": {"Date": None},
    "date alone": {},
    "max-age=0": {"Cache_Control": "max-age=0"},
    "max-age=0 and modified": {"Cache_Control": "max-age=0", "Last_Modified": OLD},
    "public alone": {"Cache_Control": "public"},
    "s-maxage=0": {"Cache_Control": "s-maxage=0, max-age=60"},
    "no number": {"Cache_Control": "max-age=soon"},
    "pragma": {"Pragma": "no-cache"},
    "pragma and modified": {"Pragma": "no-cache", "Last_Modified": OLD},
    "expires 0": {"Expires": "0"},
    "expires -1": {"Expires": "-1", "Last_Modified": OLD},
    "expires in 1981": {"Expires": "Thu, 19 Nov 1981 08:52:00 GMT"},
    "expires now": {"Expires": lambda now: date(0, now)},
    "modified now": {"Last_Modified": lambda now: date(0, now)},
    "modified in the future": {"Last_Modified": lambda now: date(100_000, now), "ETag": None},
    "a guess over on the way": {"Last_Modified": lambda now: date(-100, now), "Age": "50"},
}
REQUESTS = {
    "nothing": [],
    "max-stale": [("Cache-Control", "max-stale")],
    "max-stale=9999": [("Cache-Control", "max-stale=9999, max-age=9999")],
    "stale-if-error=9999": [("Cache-Control", "stale-if-error=9999")],
    "max-stale, stale-if-error": [("Cache-Control", "max-stale, stale-if-error=9999")],
    "min-fresh=1": [("Cache-Control", "min-fresh=1, max-stale")],
    "range": [("Range", "bytes=0-3"), ("Cache-Control", "max-stale")],
    "condition": [("If-None-Match", '"none of them"'), ("Cache-Control", "max-stale")],
}
ALL = {"stale_while_revalidate": "1h", "stale_if_error": "1h", "keep_stale": "1d",
       "serve_stale_on_error": True}
RULE = {"path": "*", "stale_while_revalidate": "1h", "stale_if_error": "1h"}
SETTINGS = {
    "nothing": {},
    "stale_while_revalidate": {"cache": {"stale_while_revalidate": "1h"}},
    "stale_if_error": {"cache": {"stale_if_error": "1h"}},
    "keep_stale": {"cache": {"keep_stale": "7d"}},
    "all": {"cache": ALL},
    "all, without collapsing": {"cache": {**ALL, "collapse": False}},
    "a rule": {"rule": [RULE]},
    "a rule by type": {"rule": [{**RULE, "content_type": "text/html"}]},
    "a rule and all": {"rule": [RULE], "cache": ALL},
}


def ask(port, mode, origin, path, user, fields=(), method="GET"):
    target = origin.url(path) if mode == "forward" else path
    host = origin.authority if mode == "forward" else SITE
    lines = [f"{method} {target} HTTP/1.1", f"Host: {host}", f"X-User: {user}",
             *(f"{name}: {value}" for name, value in fields)]
    with Client(port) as client:
        client.send("\r\n".join(lines) + "\r\n\r\n")
        return client.read_response(method)


class Pages(Case):
    """Pages of one user, asked for by the next while the origin answers him, says 503, or closes."""

    def setUp(self):
        super().setUp()
        self.origin = Origin(self, default=self.page)
        self.kinds, self.state = dict(NEVER), "up"
        self.ports = {"forward": free_port(), "reverse": free_port()}

    def page(self, exchange):
        fields = dict(exchange.request.fields)
        user = fields.get("x-user")
        if user == "second" and self.state == "closed":
            exchange.close()
            return b""
        if user == "second" and self.state == "503":
            return response("sorry", "503 Out")
        kind = self.kinds[exchange.request.target.split("/")[-1].replace("%20", " ")]
        # One moment for all dates: a second that ends between two of them makes the page fresh.
        now = time.time()
        named = {"Date": date(0, now), "ETag": f'"{user}"', "Content_Type": "text/html", **kind}
        named = {name: value(now) if callable(value) else value for name, value in named.items()}
        return response(f"{user}: a page", **named)

    def start_with(self, **sections):
        return self.encore(
            listen=[{"address": f"127.0.0.1:{port}", "mode": mode}
                    for mode, port in self.ports.items()],
            origin=[{"servers": [self.origin.url("")]}], admission={"policy": "always"}, **sections)

    def stores(self, mode, path):
        """The first user's page is in the cache."""
        answer = ask(self.ports[mode], mode, self.origin, path, "first")
        self.assertEqual((200, b"first: a page"), (answer.status, answer.body))
        return "stored" in field(answer, "Cache-Status")

    def check_second(self, mode, path, fields):
        answer = ask(self.ports[mode], mode, self.origin, path, "second", fields)
        said = f"{path}: {answer.status} {answer.body}, {field(answer, 'Cache-Status')}"
        wanted = {"up": (200, 206), "503": (503,), "closed": (502, 503)}[self.state]
        if b"first" in answer.body or answer.status not in wanted or (
                self.state == "up" and not b"second: a page".startswith(answer.body)):
            return said
        return None


class Leaks(Pages):
    def check_all(self, cases):
        def one(case):
            mode, path, fields = case
            self.stores(mode, path)
            return self.check_second(mode, path, fields)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            failures = [said for said in pool.map(one, cases) if said]
        self.assertEqual([], failures[:10], f"{len(failures)} of {len(cases)}")

    def check_setting(self, name):
        self.start_with(**SETTINGS[name])
        for self.state in ("up", "503", "closed"):
            self.check_all([
                (mode, f"/{self.state}/{number}/{kind.replace(' ', '%20')}", fields)
                for mode in self.ports for number, fields in enumerate(REQUESTS.values())
                for kind in self.kinds])


def test_of(name):
    return lambda self: self.check_setting(name)


for setting in SETTINGS:
    setattr(Leaks, f"test_with_{setting}_in_the_configuration".replace(" ", "_").replace(",", ""),
            test_of(setting))


class Others(Pages):
    """The same page by other ways, and what an origin or a rule permits."""

    def test_it_is_stored_and_validated_by_each(self):
        self.start_with(cache=ALL)
        for mode, port in self.ports.items():
            self.assertTrue(self.stores(mode, "/a/etag%20alone"))
            for fields in ([], [("Cache-Control", "max-stale")]):
                ask(port, mode, self.origin, "/a/etag%20alone", "first", fields)
                self.assertEqual('"first"', dict(self.origin.last().fields)["if-none-match"])

    def test_only_if_cached_gets_nothing_of_it(self):
        self.start_with(cache=ALL)
        for mode, port in self.ports.items():
            self.stores(mode, "/a/max-age=0")
            for value in ("only-if-cached", "only-if-cached, max-stale"):
                answer = ask(port, mode, self.origin, "/a/max-age=0", "second",
                             [("Cache-Control", value)])
                self.assertEqual(504, answer.status)

    def test_a_part_of_it_is_validated_too(self):
        self.kinds["part"] = None

        def part(exchange):
            user = dict(exchange.request.fields)["x-user"]
            return response(f"{user[:5]}", "206 Partial Content", Date=date(), ETag='"one"',
                            Content_Range="bytes 0-4/100", Cache_Control="max-age=0")
        self.origin.default = part
        self.start_with(cache={**ALL, "range_fetch_max": 0})
        for mode, port in self.ports.items():
            bodies = [ask(port, mode, self.origin, "/part", user,
                          [("Range", "bytes=0-4"), ("Cache-Control", "max-stale")]).body
                      for user in ("first", "second")]
            self.assertEqual([b"first", b"secon"], bodies)

    def test_a_head_gets_none_of_its_fields(self):
        self.start_with(cache=ALL)
        for mode, port in self.ports.items():
            self.stores(mode, "/a/max-age=0")
            answer = ask(port, mode, self.origin, "/a/max-age=0", "second",
                         [("Cache-Control", "max-stale")], "HEAD")
            self.assertEqual('"second"', field(answer, "ETag"))

    def test_its_coded_form_is_validated_too(self):
        self.kinds["long"] = {"Cache_Control": "max-age=0", "Content_Type": "text/html"}
        page = self.page

        def long(exchange):
            answer = page(exchange)
            user = dict(exchange.request.fields)["x-user"].encode()
            return answer.replace(user + b": a page", user + b": a page" + b" " * 4000).replace(
                b"Content-Length: " + str(len(user + b": a page")).encode(),
                b"Content-Length: " + str(len(user + b": a page") + 4000).encode())
        self.origin.default = long
        self.start_with(cache=ALL, compression={"codings": ["gzip"]})
        gzip = [("Accept-Encoding", "gzip"), ("Cache-Control", "max-stale")]
        for mode, port in self.ports.items():
            for user in ("first", "first", "second"):
                answer = ask(port, mode, self.origin, "/a/long", user, gzip)
                self.assertEqual("gzip", field(answer, "Content-Encoding"))
                self.assertIn(f'"{user}', field(answer, "ETag"))

    def test_what_its_origin_permits_itself_the_next_user_gets(self):
        control = "max-age=0, stale-while-revalidate=600, stale-if-error=600"
        self.kinds["permits"] = {"Cache_Control": control}
        self.start_with()
        for mode, port in self.ports.items():
            self.stores(mode, "/a/permits")
            answer = ask(port, mode, self.origin, "/a/permits", "second")
            self.assertEqual(b"first: a page", answer.body)
            eventually(lambda m=mode, p=port: ask(p, m, self.origin, "/a/permits", "third").body
                       == b"second: a page", "the background validation's page is stored")

    def test_a_rule_narrows_what_its_origin_permits_and_widens_nothing(self):
        self.kinds["permits"] = {
            "Cache_Control": "max-age=0, stale-while-revalidate=600, stale-if-error=600"}
        self.start_with(rule=[{"path": "*", "stale_while_revalidate": "0s", "stale_if_error": "0s"}])
        for mode in self.ports:
            for self.state in ("up", "503"):
                self.stores(mode, "/a/permits")
                self.assertIsNone(self.check_second(mode, "/a/permits", []))

    def test_freshness_by_a_rule_is_freshness(self):
        self.start_with(rule=[{"path": "*", "fresh": "1h"}])
        for mode, port in self.ports.items():
            self.stores(mode, "/a/etag%20alone")
            answer = ask(port, mode, self.origin, "/a/etag%20alone", "second")
            self.assertEqual(b"first: a page", answer.body)

    def test_a_rule_without_freshness_answers_for_its_windows_and_no_request_does(self):
        self.start_with(cache={"stale_if_error": "1h"}, rule=[{"path": "*", "fresh": "0s"}])
        for self.state in ("up", "503", "closed"):
            for mode, port in self.ports.items():
                path = f"/{self.state}/etag%20alone"
                self.stores(mode, path)
                answer = ask(port, mode, self.origin, path, "second", [("Cache-Control", "max-stale")])
                wanted = b"second: a page" if self.state == "up" else b"first: a page"
                self.assertEqual(wanted, answer.body)

    def test_what_once_was_fresh_is_served_stale_to_who_takes_it(self):
        """A lifetime of the origin's own that was used up on the way counts, too."""
        self.kinds["used up"] = {"Cache_Control": "max-age=60", "Age": "70"}
        self.start_with()
        for mode, port in self.ports.items():
            self.stores(mode, "/a/used%20up")
            answer = ask(port, mode, self.origin, "/a/used%20up", "second",
                         [("Cache-Control", "max-stale")])
            self.assertEqual(b"first: a page", answer.body)

    def test_it_is_still_never_fresh_when_it_comes_back_from_disk(self):
        disk = self.directory / "disk"
        encore = self.start_with(
            cache={**ALL, "disk_life_min": "0s"}, disk=[{"path": str(disk), "size": "128MiB"}])
        kinds = [f"/disk/{kind.replace(' ', '%20')}" for kind in self.kinds]
        for mode in self.ports:
            for path in kinds:
                self.stores(mode, path)
        encore.stop()
        encore.start()
        failures = []
        for mode in self.ports:
            for path in kinds:
                failures.append(self.check_second(mode, path, [("Cache-Control", "max-stale")]))
        self.assertEqual([], [said for said in failures if said])


if __name__ == "__main__":
    unittest.main()
