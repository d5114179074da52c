"""Purging through the admin listener: by URL, prefix and tag, hard and soft."""

import http.client
import json
import signal
import threading
import unittest

from client import Client, field, get
from harness import Case, eventually, free_port
from origin import Origin, fresh


class Purge(Case):
    def start_all(self, routes, **cache):
        self.origin = Origin(self, routes)
        reverse = free_port()
        self.proxy = self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "forward"},
                    {"address": f"127.0.0.1:{reverse}", "mode": "reverse"}],
            origin=[{"servers": [self.origin.url("")]}], admission={"policy": "always"},
            cache={"memory": "64MiB", **cache})
        self.reverse_port = reverse

    def get(self, path, **options):
        return get(self.proxy.port, self.origin.url(path), **options)

    def is_hit(self, path, **options):
        return "encore; hit" in field(self.get(path, **options), "Cache-Status")

    def purge(self, query="", body=b"", status=200, method="POST", sent=None, **fields):
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.admin_port, timeout=30)
        connection.request(method, "/purge" + query, body=body, headers={
            name.replace("_", "-"): value for name, value in fields.items()})
        if sent:
            sent()
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        self.assertEqual(status, answer.status, text)
        return json.loads(text)["purged"] if status == 200 else text

    def test_by_url_with_all_its_variants_and_no_other(self):
        self.start_all({"/a": fresh(b"a", Vary="Foo"), "/ab": fresh(b"ab")})
        for fields in ([("Foo", "1")], [("Foo", "2")]):
            self.get("/a", fields=fields)
        self.get("/ab")
        self.assertEqual(2, self.purge("?url=" + self.origin.url("/%61").replace("%", "%25")))
        self.assertFalse(self.is_hit("/a", fields=[("Foo", "1")]))
        self.assertTrue(self.is_hit("/ab"))
        self.assertEqual(0, self.purge("?url=" + self.origin.url("/none")))

    def test_everything_of_all_listeners(self):
        self.start_all({"/a": fresh(b"a"), "/b": fresh(b"b")})

        def ask():
            with Client(self.reverse_port) as client:
                client.send("GET /a HTTP/1.1\r\nHost: site.example\r\n\r\n")
                return field(client.read_response(), "Cache-Status")

        def load():
            for path in "/a", "/b":
                self.get(path)
            ask()
            self.assertIn("; hit", ask())
        load()
        self.assertEqual(3, self.purge("?all=1"))
        self.assertNotIn("; hit", ask())
        self.assertFalse(self.is_hit("/a"))
        load()
        self.assertEqual(3, self.purge(body=json.dumps({"all": True}).encode(),
                                       Content_Type="application/json"))
        self.assertIn("no target", self.purge("?all=0", status=400))

    def test_by_url_behind_a_reverse_listener(self):
        self.start_all({"/a": fresh(b"a")})

        def ask():
            with Client(self.reverse_port) as client:
                client.send("GET /a HTTP/1.1\r\nHost: site.example\r\n\r\n")
                return field(client.read_response(), "Cache-Status")
        ask()
        self.assertIn("; hit", ask())
        self.assertEqual(1, self.purge("?url=https://SITE.example/a"))
        self.assertNotIn("; hit", ask())

    def ask_reverse(self, target, method="GET"):
        with Client(self.reverse_port) as client:
            client.send(f"{method} {target} HTTP/1.1\r\nHost: site.example\r\n\r\n")
            return field(client.read_response(method), "Cache-Status")

    def test_http_and_https_are_one_behind_a_plain_reverse_listener(self):
        self.start_all({"/a": fresh(b"a")})
        for asked in ("https://site.example/a", "HTTPS://site.example:443/a",
                      "http://site.example/a", "http://site.example:80/a", "/a"):
            for order in ("url=http://site.example/a", "url=https://site.example/a",
                          "url=https://site.example:443/a", "prefix=http://site.example/",
                          "prefix=https://site.example/", "prefix=https://site.example:443/a"):
                with self.subTest(asked=asked, order=order):
                    self.ask_reverse(asked)
                    self.assertIn("; hit", self.ask_reverse(asked))
                    self.assertEqual(1, self.purge("?" + order))
                    self.assertNotIn("; hit", self.ask_reverse("/a"))
                    self.assertIn("; hit", self.ask_reverse(asked))
                    self.purge("?" + order)

    def test_a_write_invalidates_whatever_scheme_a_reverse_client_names(self):
        self.start_all({"/a": fresh(b"a"),
                        "/b": fresh(b"b", Location="https://site.example/a")})
        for asked, written in (("https://site.example/a", "/a"), ("/a", "https://site.example/a"),
                               ("/a", "/b")):
            with self.subTest(asked=asked, written=written):
                self.ask_reverse(asked)
                self.assertIn("; hit", self.ask_reverse(asked))
                self.ask_reverse(written, "POST")
                self.assertNotIn("; hit", self.ask_reverse(asked))

    def test_by_prefix(self):
        self.start_all({f"/{name}": fresh(b"x") for name in ("img/1", "img/2", "image", "other")})
        for name in ("img/1", "img/2", "image", "other"):
            self.get("/" + name)
        self.assertEqual(2, self.purge("?prefix=" + self.origin.url("/img/")))
        self.assertFalse(self.is_hit("/img/1"))
        self.assertTrue(self.is_hit("/image"))
        self.assertEqual(3, self.purge("?prefix=" + self.origin.url("/im")) + 1)
        self.assertTrue(self.is_hit("/other"))

    def test_by_tag_of_either_field(self):
        self.start_all({"/a": fresh(b"a", Surrogate_Key="one two"),
                        "/b": fresh(b"b", Cache_Tag="two,three four"), "/c": fresh(b"c"),
                        "/d": fresh(b"d", Surrogate_Key="twofold")})
        for path in ("/a", "/b", "/c", "/d"):
            self.get(path)
        self.assertEqual(0, self.purge("?tag=tw"))
        self.assertEqual(1, self.purge("?tag=three+four"))
        self.assertFalse(self.is_hit("/b"))
        self.assertEqual(2, self.purge(body=b'{"tag": ["two", "none"]}',
                                       Content_Type="application/json"))
        self.assertFalse(self.is_hit("/a"))
        for path in ("/c", "/d"):
            self.assertTrue(self.is_hit(path))

    def test_tags_that_are_stripped_still_purge(self):
        self.start_all({"/a": fresh(b"a", Surrogate_Key="one", Cache_Tag="x")}, strip_tags=True)
        for _ in range(2):
            answer = self.get("/a")
            self.assertIsNone(field(answer, "Surrogate-Key"))
            self.assertIsNone(field(answer, "Cache-Tag"))
        self.assertEqual(1, self.purge(body=b"tag=one"))
        self.assertFalse(self.is_hit("/a"))

    def test_tags_survive_a_validation(self):
        def page(exchange):
            asked = dict(exchange.request.fields)
            if "if-none-match" in asked:
                return (b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nCache-Control: max-age=600'
                        b"\r\n\r\n")
            return fresh(b"a", seconds=0, ETag='"a"', Surrogate_Key="one")
        self.start_all({"/a": page})
        self.get("/a")
        self.get("/a")
        self.assertTrue(self.is_hit("/a"))
        self.assertEqual(1, self.purge("?tag=one"))
        self.assertFalse(self.is_hit("/a"))

    def test_soft_makes_stale_and_the_next_request_validates(self):
        def page(exchange):
            if any(name == "if-none-match" for name, _ in exchange.request.fields):
                return (b'HTTP/1.1 304 Not Modified\r\nETag: "a"\r\nCache-Control: max-age=600'
                        b"\r\n\r\n")
            return fresh(b"a", ETag='"a"', Surrogate_Key="one")
        self.start_all({"/a": page, "/b": fresh(b"b")})
        for query in ("?url=" + self.origin.url("/a"), "?tag=one",
                      "?prefix=" + self.origin.url("/a")):
            self.get("/a")
            self.assertTrue(self.is_hit("/a"))
            self.assertEqual(1, self.purge(query + "&soft=true"))
            answer = self.get("/a")
            self.assertIn("fwd=stale", field(answer, "Cache-Status"))
            self.assertEqual(b"a", answer.body)
            self.assertIn("if-none-match", dict(self.origin.last("/a").fields))
            self.assertTrue(self.is_hit("/a"))

    def test_a_soft_purge_opens_the_window_for_stale_while_revalidate(self):
        answer = fresh(b"a").replace(b"max-age=600", b"max-age=600, stale-while-revalidate=60")
        self.start_all({"/a": answer})
        self.get("/a")
        self.purge("?soft=1&url=" + self.origin.url("/a"))
        self.assertIn("detail=stale", field(self.get("/a"), "Cache-Status"))
        eventually(lambda: self.origin.count("/a") == 2, "the refresh")

    def test_what_is_under_way_during_a_purge_is_validated_before_it_is_used(self):
        asked, go = threading.Event(), threading.Event()

        def page(exchange):
            asked.set()
            exchange.wait(go)
            return fresh(b"old")
        self.start_all({"/a": page})
        reader = threading.Thread(target=self.get, args=("/a",))
        reader.start()
        asked.wait(30)
        self.purge("?url=" + self.origin.url("/a"))
        go.set()
        reader.join()
        self.assertFalse(self.is_hit("/a"))

    def test_pages_do_not_wait_for_a_long_purge_nor_does_it_wait_for_the_next(self):
        self.origin = Origin(self, {"/a": fresh(b"a"), "/b": fresh(b"b")})
        self.proxy = self.encore(start=False, admission={"policy": "always"})
        self.proxy.slow_down("sched_yield", 4, when="1")  # as a large cache would
        self.proxy.start()
        for path in ("/a", "/b"):
            self.get(path)
        purged, sent = {}, threading.Semaphore(0)

        def purge(path):
            purged[path] = self.purge("?prefix=" + self.origin.url(path), sent=sent.release)
        threads = [threading.Thread(target=purge, args=(path,)) for path in ("/a", "/b")]
        for thread in threads:
            thread.start()
        stored = [("Cache-Control", "only-if-cached")]
        eventually(lambda: 504 in {self.get(path, fields=stored).status for path in ("/a", "/b")},
                   "the first is under way")
        # The other order is there before these questions, which are answered in their turn.
        for _ in threads:
            self.assertTrue(sent.acquire(timeout=60))
        for _ in range(3):
            self.assertEqual(200, self.proxy.admin("/api/stats")[0])
        self.assertEqual({}, purged)
        self.proxy.signal(signal.SIGTERM)
        for thread in threads:
            thread.join()
        self.assertEqual({"/a": 1, "/b": 1}, purged)
        self.assertEqual(0, self.proxy.wait_for_exit())

    def test_what_is_refused(self):
        self.start_all({})
        self.assertIn("accepted", self.purge(status=400))
        self.assertIn("unknown", self.purge("?what=1", status=400))
        self.assertIn("not an http", self.purge("?url=/a", status=400))
        self.assertIn("soft", self.purge("?tag=a&soft=maybe", status=400))
        self.assertIn("JSON", self.purge(body=b"{", status=400, Content_Type="application/json"))
        for nested in (b'{"tag": ' + b"[" * 200_000 + b"]" * 200_000 + b"}",
                       b'{"tag": ' + b"[" * 200_000, b"[" * 200_000 + b"]" * 200_000,
                       b'{"tag": [' + b'{"a": ' * 100_000 + b"1" + b"}" * 100_000 + b"]}"):
            self.assertIn("nested", self.purge(body=nested, status=400,
                                               Content_Type="application/json"))
        self.purge("?tag=a", status=405, method="GET")
        self.purge("?tag=a", status=403, Origin="http://elsewhere.example")
        self.purge("?tag=a", status=403, Host="elsewhere.example")

    def test_a_purge_with_the_token_of_a_count_is_the_one_that_was_counted(self):
        self.start_all({"/a": fresh(b"a", Surrogate_Key="t"), "/b": fresh(b"b")})
        self.get("/a")
        self.get("/b")
        counted = "url=" + self.origin.url("/a")
        status, text = self.proxy.admin(f"/purge?dry_run=1&{counted}", "POST")
        self.assertEqual(200, status)
        token = json.loads(text)["token"]
        for other in ("url=" + self.origin.url("/b"), counted + "&soft=1", "tag=t",
                      counted + "&url=" + self.origin.url("/b"),
                      "prefix=" + self.origin.url("/a")):
            self.assertIn("another purge", self.purge(f"?{other}&token={token}", status=409))
        self.purge(f"?{counted}&token=nonsense", status=409)
        self.assertTrue(self.is_hit("/a") and self.is_hit("/b"))
        # In whichever form it comes.
        body = json.dumps({"url": [self.origin.url("/a")], "token": token}).encode()
        self.assertEqual(1, self.purge(body=body, Content_Type="application/json"))
        self.assertFalse(self.is_hit("/a"))
        self.assertTrue(self.is_hit("/b"))

    def test_by_tags_where_no_field_has_any(self):
        self.start_all({"/a": fresh(b"a", Surrogate_Key="t")}, tag_fields=[])
        self.assertIn("cache.tag_fields", self.purge("?tag=t", status=400))

    def test_a_dry_run_changes_nothing(self):
        origin, encore = Origin(self, default=fresh(b"x", Surrogate_Key="t")), self.encore()
        for path in ("/a", "/b", "/c"):
            for _ in range(2):
                get(encore.port, origin.url(path))
        before = encore.stats()["cache"]["objects"]
        self.assertEqual(3, before)
        for order, count in (("url=" + origin.url("/a"), 1), ("prefix=" + origin.url("/"), 3),
                             ("url=" + origin.url("/nowhere"), 0),
                             (f"url={origin.url('/a')}&prefix={origin.url('/a')}", 1)):
            status, text = encore.admin(f"/purge?dry_run=1&{order}", "POST")
            answer = json.loads(text)
            self.assertRegex(answer.pop("token"), "^[0-9a-f]+-[0-9a-f]{64}$")
            self.assertEqual((200, {"would_purge": count, "soft": False}), (status, answer))
        asked = origin.count()
        for path in ("/a", "/b", "/c"):
            get(encore.port, origin.url(path))
        self.assertEqual(asked, origin.count())
        self.assertEqual(before, encore.stats()["cache"]["objects"])


if __name__ == "__main__":
    unittest.main()
