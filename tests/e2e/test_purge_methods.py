"""PURGE and BAN on proxy listeners, in the forms of WordPress, Drupal and Symfony; pages of our own."""

import signal
import subprocess
import threading
import unittest

from client import Client, field, get
from harness import Case, clean_environment, eventually, free_port, need_program
from origin import Origin, fresh, response


METHODS = ("PURGE", "BAN", "PURGEKEYS", "PURGETAGS")


def ask(port, path, host="site.example", method="GET", fields=()):
    with Client(port) as client:
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}",
                 *(f"{name}: {value}" for name, value in fields), "", ""]
        client.send("\r\n".join(lines))
        return client.read_response(method)


class Purging(Case):
    def start_all(self, routes=None, clients=("127.0.0.1",), default=None, tag_fields=None,
                  purge_to_origin=None, **sections):
        self.origin = Origin(self, routes, default=default or fresh(b"page"))
        listen = [{"address": f"127.0.0.1:{free_port()}", "mode": mode,
                   "purge_clients": list(clients)} for mode in ("reverse", "forward")]
        if purge_to_origin is not None:
            for each in listen:
                each["purge_to_origin"] = purge_to_origin
        self.proxy = self.encore(
            listen=listen, origin=[{"servers": [self.origin.url("")]}],
            admission={"policy": "always"},
            cache={"memory": "64MiB", "tag_fields": tag_fields or [
                "Surrogate-Key", "Cache-Tags", "X-Cache-Tags", "xkey", "Cache-Tag",
                "X-Magento-Tags"]},
            **sections)
        self.port = self.proxy.port
        self.forward_port = int(listen[1]["address"].rpartition(":")[2])

    def get(self, path, host="site.example", **options):
        return ask(self.port, path, host, **options)

    def load(self, *paths, host="site.example"):
        for path in paths:
            self.get(path, host)
            self.assertTrue(self.has(path, host), path)

    def has(self, path, host="site.example", **options):
        """Whether it is stored; asking does not store it."""
        answer = self.get(path, host, fields=[("Cache-Control", "only-if-cached")], **options)
        return "encore; hit" in field(answer, "Cache-Status")

    def send(self, method, path, *fields, host="site.example"):
        return ask(self.port, path, host, method, fields).status


class Refused(Purging):
    """A purge that does nothing does not look as if it did."""

    def refusals(self):
        return self.proxy.metrics()["encore_purges_refused_total"]

    def test_without_leave_a_purge_gets_403_with_the_key_in_its_body(self):
        self.start_all({"/gone": response(b"no", "404 Not Found")}, clients=[])
        self.load("/a")
        seen = self.origin.count()
        for number, method in enumerate(METHODS, 1):
            for path in "/a", "/gone":
                answer = ask(self.port, path, method=method)
                self.assertEqual(403, answer.status)
                self.assertIn(b"listen.purge_clients", answer.body)
                self.assertIn("detail=purge-not-allowed", field(answer, "Cache-Status"))
            self.assertEqual(2 * number, self.refusals())
        self.assertTrue(self.has("/a"))
        self.assertEqual(seen, self.origin.count())
        self.assertEqual(1, self.proxy.output().count("nothing was purged"), self.proxy.output())
        self.assertIn("listen.purge_clients names nobody", self.proxy.output())

    def test_a_forward_listener_refuses_likewise_and_warns_for_itself(self):
        self.start_all(clients=[])
        url = self.origin.url("/a")
        get(self.forward_port, url)
        with Client(self.forward_port) as client:
            answer = client.ask(url, "PURGE")
        self.assertEqual(403, answer.status)
        self.assertIn(b"listen.purge_clients", answer.body)
        self.assertIn("hit", field(get(self.forward_port, url), "Cache-Status"))
        self.assertEqual(403, self.send("PURGE", "/a"))
        self.assertEqual(2, self.refusals())
        self.assertEqual(2, self.proxy.output().count("nothing was purged"), self.proxy.output())

    def test_a_client_that_is_not_named_is_counted_and_warned_of_once(self):
        self.start_all(clients=["192.0.2.0/24"])
        for _ in range(3):
            answer = ask(self.port, "/a", method="PURGE")
            self.assertEqual(403, answer.status)
            self.assertIn(b"listen.purge_clients", answer.body)
        self.assertEqual(3, self.refusals())
        self.assertEqual(1, self.proxy.output().count("does not name this address"))

    def test_a_reload_that_gives_leave_is_obeyed_and_one_that_does_not_warns_no_more(self):
        self.start_all(clients=[])
        self.load("/a")
        self.assertEqual(403, self.send("PURGE", "/a"))
        for leave, status in ((["127.0.0.1"], 200), ([], 403)):
            reloads = self.proxy.metrics()["encore_reloads_total"]
            self.proxy.sections["listen"][0]["purge_clients"] = leave
            self.proxy.write_config()
            self.proxy.signal(signal.SIGHUP)
            eventually(lambda: self.proxy.metrics()["encore_reloads_total"] > reloads, "reloaded")
            self.assertEqual(status, self.send("PURGE", "/a"))
        self.assertEqual(1, self.proxy.output().count("nothing was purged"), self.proxy.output())

    def test_the_check_notes_reverse_listeners_without_leave(self):
        self.start_all(clients=[])

        def noted():
            self.proxy.write_config()
            done = self.run_client([self.proxy.program, "--check-config", "--config",
                                    self.proxy.config_path])
            return [line for line in done.stdout.decode().splitlines() if "purge_clients" in line]
        lines = noted()
        self.assertEqual(1, len(lines), lines)  # not the forward one
        self.assertIn(f"note: listen 127.0.0.1:{self.port}", lines[0])
        reverse = self.proxy.sections["listen"][0]
        reverse["purge_to_origin"] = True
        self.assertEqual([], noted())
        del reverse["purge_to_origin"]
        reverse["purge_clients"] = ["127.0.0.1"]
        self.assertEqual([], noted())

    def connect(self):
        with Client(self.port) as client:
            client.send("CONNECT wiki.example:443 HTTP/1.1\r\nHost: wiki.example:443\r\n\r\n")
            return client.read_response("CONNECT").status

    def test_a_connect_in_place_of_a_purge_is_named_in_the_log(self):
        self.start_all()
        for _ in range(3):
            self.assertEqual(405, self.connect())
        line, = [line for line in self.proxy.output().splitlines() if "CONNECT" in line]
        for text in ("CONNECT wiki.example:443 of 127.0.0.1", "405", "purges https URLs",
                     "$wgInternalServer"):
            self.assertIn(text, line)
        self.assertEqual(3, self.refusals())

    def test_a_connect_of_a_stranger_is_no_refused_purge(self):
        self.start_all(clients=["192.0.2.0/24"])
        self.assertEqual(405, self.connect())
        self.assertEqual(0, self.refusals())
        self.assertIn("opens no tunnels", self.proxy.output())


class Purge(Purging):
    def test_a_url_goes_with_all_its_variants_and_no_other(self):
        self.start_all({"/a": fresh(b"a", Vary="Foo")})
        for value in "12":
            self.get("/a", fields=[("Foo", value)])
        self.load("/ab")
        self.load("/a", host="other.example")
        seen = self.origin.count()
        self.assertEqual(200, self.send("PURGE", "/%61"))
        for value in "12":
            answer = self.get("/a", fields=[("Foo", value), ("Cache-Control", "only-if-cached")])
            self.assertEqual(504, answer.status)
        self.assertTrue(self.has("/ab"))
        self.assertTrue(self.has("/a", "other.example"))
        self.assertEqual(404, self.send("PURGE", "/a"))
        self.assertEqual(404, self.send("PURGE", "/never"))
        self.assertEqual(seen, self.origin.count())
        records = [r for r in self.proxy.access_records(10) if r["method"] == "PURGE"]
        # A client has its answer a moment before it is counted.
        eventually(lambda: self.proxy.outcomes()["purge"] == 3, "all three are counted")
        self.assertEqual([200, 404, 404], sorted(record["status"] for record in records))

    def test_each_listener_empties_what_it_serves(self):
        self.start_all()
        self.load("/a", host=self.origin.authority)
        url = self.origin.url("/a")
        get(self.forward_port, url)
        self.assertIn("hit", field(get(self.forward_port, url), "Cache-Status"))
        with Client(self.forward_port) as client:
            self.assertEqual(200, client.ask(url, "PURGE").status)
            self.assertEqual(404, client.ask(url, "PURGE").status)
            self.assertTrue(self.has("/a", self.origin.authority))
            self.assertEqual(200, client.ask(url).status)
            client.request(url, "BAN", fields=[("X-Url", ".*"), ("X-Host", ".*")])
            self.assertEqual(200, client.read_response().status)
            self.assertTrue(self.has("/a", self.origin.authority))
            answer = client.ask(url, fields=[("Cache-Control", "only-if-cached")])
            self.assertEqual(504, answer.status)

    def test_who_is_not_named_gets_403_and_nothing_goes(self):
        self.start_all(clients=["192.0.2.0/24"])
        self.load("/a")
        seen = self.origin.count()
        for method in ("PURGE", "BAN"):
            answer = ask(self.port, "/a", method=method)
            self.assertEqual(403, answer.status)
            self.assertIn("detail=purge-not-allowed", field(answer, "Cache-Status"))
        self.assertTrue(self.has("/a"))
        self.assertEqual(seen, self.origin.count())

    def test_where_nobody_is_named_a_key_makes_the_methods_the_origins(self):
        self.start_all(clients=[], purge_to_origin=True)
        self.load("/a")
        for method in METHODS:
            self.assertEqual(200, self.send(method, "/b"))
            self.assertEqual(method, self.origin.last("/b").method)
        self.assertTrue(self.has("/a"))
        self.assertEqual(0, self.proxy.metrics()["encore_purges_refused_total"])

    def test_an_origins_yes_to_a_purge_invalidates_the_url_alone(self):
        """As to any unsafe method: docs/PURGE.md and the key's description say so."""
        self.start_all({"/a/no": lambda exchange: response(b"no", "404 Not Found")
                        if exchange.request.method in METHODS else fresh(b"page")},
                       default=fresh(b"page", Surrogate_Key="k"), clients=[], purge_to_origin=True)
        for method in METHODS:
            self.load("/a", "/a/1", "/a/no")
            self.assertEqual(200, self.send(method, "/a", ("Surrogate-Key", "k")))
            self.assertEqual(404, self.send(method, "/a/no"))
            self.assertFalse(self.has("/a"), method)
            self.assertTrue(self.has("/a/1"), method)
            self.assertTrue(self.has("/a/no"), method)

    def test_what_is_on_its_way_is_not_stored_as_it_was(self):
        release = threading.Event()

        def slow(exchange):
            exchange.wait(release)
            return fresh(b"old")
        self.start_all({"/slow": slow})
        reader = threading.Thread(target=self.get, args=("/slow",))
        reader.start()
        eventually(lambda: self.origin.count("/slow") == 1, "it is asked")
        self.assertIn(self.send("PURGE", "/slow"), (200, 404))
        release.set()
        reader.join(30)
        answer = self.get("/slow")
        self.assertEqual(2, self.origin.count("/slow"))
        self.assertEqual(200, answer.status)

    def test_many_at_once_beside_requests_on_kept_connections(self):
        self.start_all()
        faults = []

        def one(lane):
            try:
                with Client(self.port) as client:
                    for turn in range(30):
                        path = f"/{(lane + turn) % 5}"
                        client.send(f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n"
                                    f"PURGE {path} HTTP/1.1\r\nHost: h\r\n\r\n"
                                    f"GET {path} HTTP/1.1\r\nHost: h\r\n\r\n")
                        answers = [client.read_response(m) for m in ("GET", "PURGE", "GET")]
                        assert answers[0].body == answers[2].body == b"page", answers
                        assert answers[1].status in (200, 404), answers
            except Exception as error:  # noqa: BLE001
                faults.append(repr(error)[:300])
        threads = [threading.Thread(target=one, args=(lane,)) for lane in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
        self.assertEqual([], faults)

    def test_clients_that_leave_meanwhile_leave_nothing_behind(self):
        self.start_all()
        for _ in range(50):
            client = Client(self.port)
            client.send("PURGE /a HTTP/1.1\r\nHost: h\r\n\r\n")
            client.reset()
        eventually(lambda: self.proxy.metrics()["encore_client_connections"] == 0, "all are gone")
        # Those that wait are done first; beyond some of them there is no room for more.
        eventually(lambda: self.send("PURGE", "/a") == 404, "all are done")

    def test_curl_purges(self):
        self.start_all()
        self.load("/a")
        curl = need_program("curl")
        for expected in (b"200", b"404"):
            ended = subprocess.run([curl, "-s", "-o", "/dev/null", "-w", "%{http_code}", "-X",
                                    "PURGE", "-H", "Host: site.example",
                                    f"http://127.0.0.1:{self.port}/a"], env=clean_environment(),
                                   stdout=subprocess.PIPE, timeout=60, check=False)
            self.assertEqual(expected, ended.stdout)


class Forms(Purging):
    def test_wordpress_proxy_cache_purge(self):
        self.start_all()
        self.load("/blog/", "/blog/one?x=1", "/shop/")
        self.load("/blog/", host="other.example")
        self.assertEqual(200, self.send("PURGE", "/blog/.*", ("X-Purge-Method", "regex")))
        self.assertEqual([False, False, True],
                         [self.has(p) for p in ("/blog/", "/blog/one?x=1", "/shop/")])
        self.assertTrue(self.has("/blog/", "other.example"))
        self.assertEqual(200, self.send("PURGE", "/shop/", ("X-Purge-Method", "default")))
        self.assertFalse(self.has("/shop/"))
        self.load("/a1", "/b1", "/c1")
        self.assertEqual(200, self.send("PURGE", "/", ("X-Purge-Regex", "^/[ab]1$")))
        self.assertEqual([False, False, True], [self.has(p) for p in ("/a1", "/b1", "/c1")])

    def test_drupal_purge_by_tags(self):
        self.start_all({"/1": fresh(b"1", Cache_Tags="node:1 node_list"),
                        "/2": fresh(b"2", Cache_Tags="node:2 node_list"),
                        "/3": fresh(b"3", Cache_Tags="node:11")})
        self.load("/1", "/2", "/3")
        self.assertEqual(200, self.send("BAN", "/", ("Cache-Tags", "node:1")))
        self.assertEqual([False, True, True], [self.has(p) for p in ("/1", "/2", "/3")])
        self.assertEqual(200, self.send("BAN", "/", ("Purge-Cache-Tags", "x|node_list")))
        self.assertEqual([False, True], [self.has(p) for p in ("/2", "/3")])

    def test_symfony_foshttpcache(self):
        self.start_all({"/x/a.png": fresh(b"1", Content_Type="image/png"),
                        "/x/a": fresh(b"2", Content_Type="text/html", X_Cache_Tags="one,two-3"),
                        "/y": fresh(b"3", Content_Type="text/html", X_Cache_Tags="two-3")})
        self.load("/x/a.png", "/x/a", "/y")
        self.assertEqual(200, self.send("BAN", "/", ("X-Host", "^(site.example)$"),
                                        ("X-Url", "^/x/.*"), ("X-Content-Type", "image/.*")))
        self.assertEqual([False, True, True], [self.has(p) for p in ("/x/a.png", "/x/a", "/y")])
        self.assertEqual(200, self.send("BAN", "/", ("X-Host", ".*"), ("X-Url", ".*"),
                                        ("X-Content-Type", ".*"),
                                        ("X-Cache-Tags", r"(^|,)(one|o\.k)(,|$)")))
        self.assertEqual([False, True], [self.has(p) for p in ("/x/a", "/y")])
        self.assertEqual(200, self.send("BAN", "/", ("X-Host", "^other$"), ("X-Url", ".*")))
        self.assertTrue(self.has("/y"))
        self.assertEqual(200, self.send("BAN", "/", ("X-Host", ".*"), ("X-Url", ".*")))
        self.assertFalse(self.has("/y"))

    def left(self, *paths):
        return "".join(path[1:] for path in paths if self.has(path))

    def test_varnish_xkey_and_foshttpcache_purgekeys(self):
        routes = {f"/{n}": fresh(n.encode(), xkey=keys)
                  for n, keys in {"a": "one two", "b": "two,three", "c": "three", "d": "on"}.items()}
        self.start_all(routes)
        self.load(*routes)
        self.assertEqual(200, self.send("PURGE", "/", ("xkey", "one")))
        self.assertEqual("bcd", self.left(*routes))
        self.assertEqual(200, self.send("PURGEKEYS", "/", ("xkey-purge", "two nothing")))
        self.assertEqual("cd", self.left(*routes))
        # The URL of a purge by tags means nothing; one without any is refused.
        self.assertEqual(200, self.send("PURGE", "/d", ("xkey-purge", "three")))
        self.assertEqual(400, self.send("PURGEKEYS", "/d"))
        self.assertEqual(400, self.send("PURGE", "/d", ("xkey", " ,")))
        self.assertEqual("d", self.left(*routes))

    def test_a_field_that_is_not_read_is_an_error_that_names_the_key(self):
        fields = {"xkey": "xkey", "xkey-purge": "xkey", "xkey-softpurge": "xkey",
                  "X-Cache-Tags": "x-cache-tags", "Cache-Tags": "cache-tags",
                  "Purge-Cache-Tags": "purge-cache-tags", "Surrogate-Key": "surrogate-key",
                  "Cache-Tag": "cache-tag"}
        self.start_all({"/a": fresh(b"a", Own="t")}, tag_fields=["Own"])
        self.load("/a")
        for name, read in fields.items():
            for method in ("PURGE", "PURGEKEYS", "PURGETAGS", "BAN"):
                if method == "BAN" and name == "xkey-softpurge":
                    continue
                answer = ask(self.port, "/a", "site.example", method, [(name, "t")])
                self.assertEqual(400, answer.status, (method, name))
                self.assertIn(f'add "{read}" to cache.tag_fields', answer.body.decode())
                self.assertIn("detail=tag-field-not-read", field(answer, "Cache-Status"))
        pattern = ("X-Magento-Tags-Pattern", "((^|,)t(,|$))")
        answer = ask(self.port, "/", "site.example", "PURGE", [pattern])
        self.assertEqual(400, answer.status)
        self.assertIn('add "x-magento-tags" to cache.tag_fields', answer.body.decode())
        self.assertTrue(self.has("/a"))

    def test_ban_by_the_fields_of_all_others(self):
        routes = {"/a": fresh(b"a", xkey="one"), "/b": fresh(b"b", xkey="two"),
                  "/c": fresh(b"c", Cache_Tag="three")}
        self.start_all(routes)
        self.load(*routes)
        self.assertEqual(200, self.send("BAN", "/", ("xkey", "one")))
        self.assertEqual("bc", self.left(*routes))
        self.assertEqual(200, self.send("BAN", "/", ("Cache-Tag", "three")))
        self.assertEqual(200, self.send("BAN", "/", ("xkey-purge", "two")))
        self.assertEqual("", self.left(*routes))

    def test_fastly_and_cloudflare_fields(self):
        routes = {"/a": fresh(b"a", Surrogate_Key="k,1 k2"), "/b": fresh(b"b", Surrogate_Key="k 1"),
                  "/c": fresh(b"c", Cache_Tag="t 1, t2"), "/d": fresh(b"d", Cache_Tag="t, 1")}
        self.start_all(routes)
        self.load(*routes)
        self.assertEqual(200, self.send("PURGE", "/", ("Surrogate-Key", "k,1 x")))
        self.assertEqual(200, self.send("PURGE", "/", ("Cache-Tag", "x, t 1")))
        self.assertEqual("bd", self.left(*routes))

    def test_symfony_purgetags_and_clear_cache(self):
        routes = {"/a": fresh(b"a", X_Cache_Tags="one,two"), "/b": fresh(b"b", X_Cache_Tags="two"),
                  "/c": fresh(b"c")}
        self.start_all(routes)
        self.load(*routes)
        self.assertEqual(200, self.send("PURGETAGS", "/", ("X-Cache-Tags", "zero,one")))
        self.assertEqual("bc", self.left(*routes))
        self.load("/b", host="other.example")
        self.assertEqual(200, self.send("PURGE", "/", ("Clear-Cache", "true")))
        self.assertEqual("", self.left(*routes))
        self.assertFalse(self.has("/b", "other.example"))

    def test_magento(self):
        routes = {"/a": fresh(b"a", X_Magento_Tags="cat_p,cat_p_1,FPC"),
                  "/b": fresh(b"b", X_Magento_Tags="cat_p_11,FPC"),
                  "/c": fresh(b"c", X_Magento_Tags="cms_b,FPC")}
        self.start_all(routes)
        self.load(*routes)
        name = "X-Magento-Tags-Pattern"
        self.assertEqual(200, self.send("PURGE", "/", (name, "((^|,)cat_p_1(,|$))|((^|,)no(,|$))")))
        self.assertEqual("bc", self.left(*routes))
        self.assertEqual(400, self.send("PURGE", "/", (name, "cms_.*")))
        self.assertEqual("bc", self.left(*routes))
        self.assertEqual(200, self.send("PURGE", "/", (name, ".*")))
        self.assertEqual("", self.left(*routes))

    def test_a_soft_purge_makes_stale_and_keeps_what_a_validation_confirms(self):
        def page(exchange):
            if field(exchange.request, "If-None-Match") == '"1"':
                return response(b"", status="304 Not Modified", ETag='"1"',
                                Cache_Control="max-age=1000")
            return fresh(b"page", ETag='"1"', xkey="k", Surrogate_Key="k")
        self.start_all(default=page)
        soft = [("PURGE", ("X-Soft-Purge", "1")), ("PURGE", ("Fastly-Soft-Purge", "1")),
                ("PURGEKEYS", ("xkey-softpurge", "k")),
                ("PURGE", ("Surrogate-Key", "k"), ("Fastly-Soft-Purge", "1")),
                ("BAN", ("X-Url", "^/p"), ("X-Soft-Purge", "1"))]
        for n, (method, *fields) in enumerate(soft):
            path = f"/p{n}"
            self.load(path)
            self.assertEqual(200, self.send(method, path, *fields))
            answer = self.get(path)
            self.assertEqual((200, b"page"), (answer.status, answer.body))
            self.assertEqual('"1"', field(self.origin.last(path), "If-None-Match"), fields)
            self.assertTrue(self.has(path))
            # Hard, nothing is left to validate.
            hard = [(name, "0") if "Soft" in name else (name.replace("soft", ""), value)
                    for name, value in fields]
            self.assertEqual(200, self.send(method, path, *hard))
            self.get(path)
            self.assertIsNone(field(self.origin.last(path), "If-None-Match"), hard)

    def test_who_may_not_purge_may_not_by_any_of_the_methods(self):
        self.start_all(clients=["192.0.2.0/24"])
        self.load("/a")
        for method in ("PURGE", "PURGEKEYS", "PURGETAGS", "BAN"):
            self.assertEqual(403, self.send(method, "/a", ("xkey-purge", "a")))
        self.assertTrue(self.has("/a"))

    def test_what_is_no_expression_is_400_and_one_that_others_take_for_ever_is_quick(self):
        self.start_all()
        self.load("/" + "a" * 3000 + "b")
        for pattern in ("(", "x" * 1025, "(a)\\1", "a{1000}{1000}"):
            self.assertEqual(400, self.send("BAN", "/", ("X-Url", pattern)), pattern)
        self.assertEqual(200, self.send("BAN", "/", ("X-Url", "^/(a+)+$")))
        self.assertTrue(self.has("/" + "a" * 3000 + "b"))


class OnDisk(Purging):
    def test_a_prefix_and_tags_reach_the_disk(self):
        self.start_all({"/t": fresh(b"t", Surrogate_Key="tag")},
                       disk=[{"path": str(self.directory / "disk"), "size": "256MiB"}])
        self.load("/blog/a", "/t", "/z")
        self.assertEqual(200, self.send("PURGE", "/blog/.*", ("X-Purge-Method", "regex")))
        self.assertEqual(200, self.send("BAN", "/", ("Surrogate-Key", "tag")))
        self.assertEqual(200, self.send("PURGE", "/z"))
        self.assertEqual([False] * 3, [self.has(p) for p in ("/blog/a", "/t", "/z")])


    def restart(self):
        self.proxy.stop()
        self.proxy.start()
        eventually(lambda: self.proxy.metrics()['encore_disk_loading{disk="0"}'] == 0, "all is loaded")

    def test_expressions_hold_for_what_lies_on_a_disk_alone_and_after_a_restart(self):
        routes = {"/a.png": fresh(b"png", Content_Type="image/png"),
                  "/b.png": fresh(b"not", Content_Type="text/html"),
                  "/c.css": fresh(b"css", Content_Type="text/css", Surrogate_Key="tag")}
        self.start_all(routes, disk=[{"path": str(self.directory / "disk"), "size": "256MiB"}])
        self.load(*routes)
        self.restart()
        self.assertTrue(all(self.has(path) for path in routes))
        self.restart()
        # Nothing is in memory now.
        self.assertEqual(200, self.send("BAN", "/", ("X-Url", "[.]png$"), ("X-Content-Type", "image/")))
        self.assertEqual([False, True, True], [self.has(path) for path in routes])
        self.assertEqual(200, self.send("BAN", "/", ("X-Host", "other"), ("X-Url", "[.]css$")))
        self.restart()
        self.assertEqual([False, True, True], [self.has(path) for path in routes])
        # Objects stored after a ban are not covered by it, before and after a restart.
        self.load("/a.png")
        self.restart()
        self.assertEqual([True, True, True], [self.has(path) for path in routes])
        self.assertEqual(200, self.send("BAN", "/", ("X-Url", "[.](png|css)$"),
                                        ("Surrogate-Key", "tag")))
        self.assertEqual([True, True, False], [self.has(path) for path in routes])
        # Nor does an inspection of the disk count it as stored.
        self.proxy.stop()
        listed = self.run_client([self.proxy.program, "disk", "list", self.directory / "disk"])
        self.assertEqual([True, True, False],
                         [f"site.example{path}".encode() in listed.stdout for path in routes])

    def test_as_many_expressions_as_may_be_and_one_more(self):
        self.start_all(disk=[{"path": str(self.directory / "disk"), "size": "256MiB"}])
        self.load("/a", "/b")
        # Those that are asked for again count once.
        for n in [*range(63), *range(63), 63]:
            self.assertEqual(200, self.send("BAN", "/", ("X-Url", f"[x]{n}$")))
        # Beginnings and tags are not among them.
        answer = ask(self.port, "/", method="BAN", fields=[("X-Url", "b$")])
        self.assertEqual(503, answer.status)
        self.assertIn("detail=too-many-bans", field(answer, "Cache-Status"))
        self.assertTrue(self.has("/b"))
        self.assertEqual(200, self.send("PURGE", "/a.*", ("X-Purge-Method", "regex")))
        self.assertEqual([False, True], [self.has(path) for path in ("/a", "/b")])

    def test_everything_and_tags_of_all_forms_reach_the_disk(self):
        self.start_all({"/k": fresh(b"k", xkey="key")},
                       disk=[{"path": str(self.directory / "disk"), "size": "256MiB"}])
        self.load("/k", "/z")
        self.assertEqual(200, self.send("PURGEKEYS", "/", ("xkey-purge", "key")))
        self.assertEqual([False, True], [self.has(path) for path in ("/k", "/z")])
        self.assertEqual(200, self.send("PURGE", "/", ("Clear-Cache", "true")))
        self.assertFalse(self.has("/z"))


class Pages(Case):
    def test_what_the_proxy_answers_of_its_own_has_the_operators_pages(self):
        folder = self.directory / "pages"
        folder.mkdir()
        (folder / "502.html").write_text("<h1>the site is away</h1>")
        (folder / "4xx.json").write_text('{"error": true}')
        origin = Origin(self, {"/mine": b"HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\n\r\nmine"})
        encore = self.encore(http={"error_pages": str(folder)})
        dead = f"http://127.0.0.1:{free_port()}/x"
        answer = get(encore.port, dead)
        self.assertEqual((502, b"<h1>the site is away</h1>"), (answer.status, answer.body))
        self.assertEqual("text/html; charset=utf-8", field(answer, "Content-Type"))
        self.assertEqual("no-store", field(answer, "Cache-Control"))
        answer = get(encore.port, dead, method="HEAD")
        self.assertEqual((502, "25"), (answer.status, field(answer, "Content-Length")))
        self.assertEqual(b"mine", get(encore.port, origin.url("/mine")).body)
        for request in (b"GET / HTTP/1.1\r\nBad\r\n\r\n",
                        b"CONNECT 127.0.0.1:25 HTTP/1.1\r\nHost: x\r\n\r\n"):
            with Client(encore.port) as client:
                client.send(request)
                answer = client.read_response()
                self.assertEqual(4, answer.status // 100)
                self.assertEqual((b'{"error": true}', "application/json"),
                                 (answer.body, field(answer, "Content-Type")))

        (folder / "502.html").write_text("changed")
        self.assertEqual(b"<h1>the site is away</h1>", get(encore.port, dead).body)
        encore.signal(signal.SIGHUP)
        eventually(lambda: get(encore.port, dead).body == b"changed", "the reload reads it")
        (folder / "502.txt").write_text("two")
        encore.signal(signal.SIGHUP)
        eventually(lambda: encore.metrics()["encore_reload_failures_total"] == 1, "it is refused")
        self.assertEqual(b"changed", get(encore.port, dead).body)

    def test_the_check_notes_a_page_that_no_status_gets(self):
        folder = self.directory / "pages"
        folder.mkdir()
        for name in "404.html", "50x.html", "style.css":
            (folder / name).write_text("page")
        encore = self.encore(start=False, http={"error_pages": str(folder)})
        encore.write_config()
        text = self.run_client([encore.program, "--config", encore.config_path,
                                "--check-config"]).stdout.decode()
        notes = [line for line in text.splitlines() if "error_pages" in line]
        self.assertEqual(1, len(notes), text)
        self.assertIn("note: http.error_pages: 50x.html is not used; accepted: ", notes[0])

    def test_a_folder_that_is_not_there_is_found_before_the_start(self):
        encore = self.encore(start=False, http={"error_pages": str(self.directory / "none")})
        encore.write_config()
        ended = subprocess.run([encore.program, "--config", encore.config_path, "--check-config"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60,
                               env=clean_environment(), check=False)
        self.assertEqual(1, ended.returncode)
        self.assertIn(b": http.error_pages: ", ended.stderr)
        self.assertEqual(1, ended.stderr.count(b"\n"), ended.stderr)


if __name__ == "__main__":
    unittest.main()
