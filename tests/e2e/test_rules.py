"""[[rule]]: which one holds, and each thing that one can say."""

import subprocess
import unittest

from client import Client, field, get
from harness import Case, clean_environment, eventually, free_port
from origin import Origin, chunked, fresh, response


def status_line(answer):
    return field(answer, "Cache-Status")


class Rules(Case):
    def forward(self, rules, origin, **sections):
        sections.setdefault("admission", {"policy": "always"})
        return self.encore(rule=rules, **sections)

    def is_hit(self, answer):
        return "; hit" in status_line(answer)

    def twice(self, encore, url, **options):
        """The second of two answers to the same request."""
        get(encore.port, url, **options)
        return get(encore.port, url, **options)

    def test_the_first_that_matches_holds_and_no_other(self):
        origin = Origin(self, default=response(b"body", ETag='"a"'))
        encore = self.forward([{"path": "/a/*", "fresh": "1h"},
                               {"path": ["/a/b*", "/c"], "fresh": "1h",
                                "response_add": "X-Rule: second"},
                               {"host": "other.example", "fresh": "1h"}], origin)
        answer = self.twice(encore, origin.url("/a/b"))
        self.assertTrue(self.is_hit(answer))
        self.assertIsNone(field(answer, "X-Rule"))
        answer = self.twice(encore, origin.url("/c"))
        self.assertTrue(self.is_hit(answer))
        self.assertEqual("second", field(answer, "X-Rule"))
        self.assertFalse(self.is_hit(self.twice(encore, origin.url("/d"))))

    def test_conditions_on_method_listener_and_client(self):
        origin = Origin(self, default=fresh(b"body"))
        second = free_port()
        ports = [free_port(), second]
        encore = self.forward(
            [{"method": ["POST", "PUT"], "deny": 405},
             {"listener": f"127.0.0.1:{second}", "response_set": "X-Listener: second"},
             {"clients": "127.0.0.2", "deny": 451}], origin,
            listen=[{"address": f"127.0.0.1:{port}", "mode": "forward"} for port in ports])
        self.assertEqual(405, get(ports[0], origin.url("/"), method="POST", body=b"x").status)
        self.assertEqual(0, origin.count())
        for _ in range(3):
            self.assertIsNone(field(get(ports[0], origin.url("/")), "X-Listener"))
            self.assertEqual("second", field(get(ports[1], origin.url("/")), "X-Listener"))
            with Client(ports[0], source="127.0.0.2") as client:
                self.assertEqual(451, client.ask(origin.url("/")).status)
        eventually(lambda: encore.outcomes().get("denied") == 4, "each refusal is counted")

    def test_a_path_that_servers_read_in_several_ways_is_no_way_around_a_rule(self):
        origin = Origin(self, default=fresh(b"body"))
        encore = self.forward([{"path": "/pub/*", "admission": "always"},
                               {"path": "/admin/*", "clients": "127.0.0.2", "deny": 403}], origin)
        written = ["/admin%2fx", "//admin/x", "/a/.%2e%2Fadmin//x", "/a/..;/admin/x",
                   "/a/%252e%252e/admin/x", "/a/..\\admin\\x", "/a/%2e%2e/admin/x"]
        # A response that one client had stored, and is a hit for it, is not a hit for the other.
        for path in ["/admin/x", "/pub/a%2Fb"] + written:
            for _ in range(2):
                self.assertEqual(200, get(encore.port, origin.url(path)).status, path)
        # Two rules for one path are one too many for everybody.
        for path in ("/pub/..%2Fadmin/x", "/pub/..;/admin/x", "/pub/%2e%2e/x"):
            self.assertEqual(400, get(encore.port, origin.url(path)).status, path)
        seen = origin.count()
        with Client(encore.port, source="127.0.0.2") as client:
            self.assertEqual(403, client.ask(origin.url("/admin/x")).status)
        for path in written:
            with Client(encore.port, source="127.0.0.2") as client:
                answer = client.ask(origin.url(path))
                self.assertEqual(400, answer.status, path)
                self.assertIn("detail=ambiguous-path", field(answer, "Cache-Status"))
        with Client(encore.port, source="127.0.0.2") as client:
            self.assertEqual(200, client.ask(origin.url("/pub/a%2Fb")).status)
        self.assertEqual(seen, origin.count())

    def test_an_address_is_refused_in_all_its_spellings(self):
        origin = Origin(self, default=fresh(b"body"))
        encore = self.forward([{"host": "127.0.0.1", "deny": 403}], origin)
        for host in ("127.0.0.1", "[::ffff:127.0.0.1]", "[::FFFF:7f00:1]"):
            url = f"http://{host}:{origin.port}/"
            self.assertEqual(403, get(encore.port, url).status, host)
            with Client(encore.port) as client:
                client.send(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n\r\n")
                answer = client.read_response("CONNECT")
            self.assertIn("rule-0", status_line(answer), host)
        self.assertEqual(0, origin.count())

    def test_a_host_is_refused_to_connect_as_to_all_others(self):
        origin = Origin(self, default=fresh(b"body"))
        encore = self.forward([{"name": "no-ads", "host": "*.ads.example", "deny": 403}], origin,
                              forward={"connect_ports": [443, origin.port]})
        with Client(encore.port) as client:
            client.send("CONNECT x.ads.example:443 HTTP/1.1\r\nHost: x.ads.example:443\r\n\r\n")
            answer = client.read_response("CONNECT")
        self.assertEqual(403, answer.status)
        self.assertIn("rule-no-ads", status_line(answer))
        self.assertEqual(403, get(encore.port, "http://x.ads.example./").status)
        answer = get(encore.port, "http://X.ads.example/")
        self.assertEqual(403, answer.status)
        self.assertIn("detail=rule-no-ads", status_line(answer))
        with Client(encore.port) as client:
            client.send(f"CONNECT 127.0.0.1:{origin.port} HTTP/1.1\r\nHost: x\r\n\r\n")
            self.assertEqual(200, client.read_response("CONNECT").status)

    def test_admission_is_the_rules(self):
        origin = Origin(self, default=fresh(b"body"))
        encore = self.forward([{"path": "/always", "admission": "always"},
                               {"path": "/never", "admission": "never"},
                               {"path": "/third", "admission": "nth-hit", "min_requests": 3},
                               {"path": "/small", "admission": "size-threshold",
                                "size_threshold": 3}], origin, admission={})
        for path, asked in (("/always", 1), ("/never", 4), ("/third", 3), ("/small", 4),
                            ("/other", 2)):
            with self.subTest(path):
                for _ in range(4):
                    get(encore.port, origin.url(path))
                self.assertEqual(asked, origin.count(path))

    def test_what_states_no_freshness_is_fresh_by_rule(self):
        origin = Origin(self, default=response(b"body"))
        encore = self.forward([{"path": "/pool/*", "fresh": "30d"},
                               {"path": "/min/*", "fresh_min": "10m"},
                               {"path": "/max/*", "fresh_max": "1s"}], origin)
        answer = self.twice(encore, origin.url("/pool/a.deb"))
        self.assertIn("; hit; ttl=259", status_line(answer))  # 2,592,000 less what passed
        # From when it came, whatever its age.
        origin.routes["/pool/old"] = response(b"old", Age="3000000")
        self.assertIn("; hit; ttl=259", status_line(self.twice(encore, origin.url("/pool/old"))))
        self.assertRegex(status_line(self.twice(encore, origin.url("/min/a"))), "hit; ttl=(600|59.)")
        origin.routes["/max/a"] = fresh(b"body", 600, ETag='"a"')
        self.assertIn("; hit; ttl=", status_line(self.twice(encore, origin.url("/max/a"))))

    def test_nothing_is_overridden_that_is_not_named(self):
        def marked(directive):
            return response(b"body", Cache_Control=directive, ETag='"a"')
        names = {"no-store": "no-store", "private": "private", "no-cache": "no-cache"}
        origin = Origin(self, {f"/{rule}/{name}": marked(directive)
                               for rule in ("plain", *names) for name, directive in names.items()})
        encore = self.forward([{"path": "/plain/*", "fresh": "1h"},
                               *({"path": f"/{name}/*", "fresh": "1h", "ignore": [name]}
                                 for name in names)], origin)
        for rule in ("plain", *names):
            for name in names:
                with self.subTest(rule=rule, name=name):
                    answer = self.twice(encore, origin.url(f"/{rule}/{name}"))
                    self.assertEqual(rule == name, self.is_hit(answer), status_line(answer))

    def test_set_cookie_authorization_vary_and_reloads_are_overridden_by_name(self):
        origin = Origin(self, default=fresh(b"body"))
        origin.routes["/cookie"] = fresh(b"body", Set_Cookie="id=1")
        origin.routes["/vary"] = fresh(b"body", Vary="User-Agent")
        origin.routes["/star"] = fresh(b"body", Vary="*")
        encore = self.forward([{"path": "/cookie", "ignore": ["set-cookie"]},
                               {"path": "/auth", "ignore": "authorization"},
                               {"path": ["/vary", "/star"], "ignore": "vary"},
                               {"path": "/reload", "ignore": "client-no-cache"}], origin)
        first = get(encore.port, origin.url("/cookie"), fields=[("Cookie", "a=1")])
        self.assertEqual("id=1", field(first, "Set-Cookie"))
        second = get(encore.port, origin.url("/cookie"), fields=[("Cookie", "a=2")])
        self.assertTrue(self.is_hit(second))
        self.assertIsNone(field(second, "Set-Cookie"))
        for path, fields in (("/auth", [("Authorization", "Bearer x")]),
                             ("/reload", [("Cache-Control", "no-cache")]),
                             ("/star", [])):
            with self.subTest(path):
                self.assertTrue(self.is_hit(self.twice(encore, origin.url(path), fields=fields)))
        get(encore.port, origin.url("/vary"), fields=[("User-Agent", "a")])
        self.assertTrue(self.is_hit(get(encore.port, origin.url("/vary"),
                                        fields=[("User-Agent", "b")])))
        # And not elsewhere.
        for path, fields in (("/x", [("Authorization", "Bearer x")]),
                             ("/y", [("Cache-Control", "no-cache")])):
            self.assertFalse(self.is_hit(self.twice(encore, origin.url(path), fields=fields)))

    def test_errors_are_remembered_by_status(self):
        origin = Origin(self, {f"/{rule}/{status}": response(b"", f"{status} Wrong")
                               for rule in ("usual", "named", "pairs", "none")
                               for status in (403, 404, 503)})
        encore = self.forward([{"path": "/usual/*", "negative": "1h"},
                               {"path": "/named/*", "negative": ["404=0s", "4xx=1h"]}], origin)
        hits = {("usual", 404), ("named", 403)}
        for rule in ("usual", "named", "none"):
            for status in (403, 404, 503):
                with self.subTest(rule=rule, status=status):
                    answer = self.twice(encore, origin.url(f"/{rule}/{status}"))
                    self.assertEqual((rule, status) in hits, self.is_hit(answer))

    def test_pairs_may_be_written_as_a_table(self):
        path = self.directory / "pairs.toml"
        path.write_text('[[rule]]\nnegative = {404 = "10s", 5xx = "1s"}\n')
        encore = self.encore(start=False)
        shown = subprocess.run([encore.program, "--config", path, "--dump-config"], check=True,
                               capture_output=True, text=True, env=clean_environment())
        self.assertIn('negative = ["404=10s", "5xx=1s"]', shown.stdout)

    def test_cookies_bypass_are_ignored_or_tell_apart(self):
        origin = Origin(self, default=lambda exchange: fresh(
            dict((n.lower(), v) for n, v in exchange.request.fields).get("cookie", "-").encode()))
        encore = self.forward([{"path": "/bypass", "cookies": "bypass"},
                               {"path": "/ignore", "cookies": "ignore"},
                               {"path": "/key", "cookies": "key:lang,theme"}], origin)

        def ask(path, cookie=None):
            fields = [("Cookie", cookie)] if cookie else []
            return get(encore.port, origin.url(path), fields=fields)
        for _ in range(2):
            answer = ask("/bypass", "a=1")
            self.assertFalse(self.is_hit(answer))
            self.assertIn("detail=rule", status_line(answer))
        self.assertFalse(self.is_hit(ask("/bypass")))
        self.assertTrue(self.is_hit(ask("/bypass")))
        self.assertEqual(b"a=1", ask("/bypass", "a=1").body)  # and still goes to its origin
        self.assertEqual(b"-", ask("/ignore", "a=1").body)
        self.assertTrue(self.is_hit(ask("/ignore", "a=2")))
        self.assertEqual(b"lang=de", ask("/key", "id=1; lang=de").body)
        self.assertTrue(self.is_hit(ask("/key", "lang=de; id=2")))
        self.assertEqual(b"lang=fr", ask("/key", "id=1; lang=fr").body)
        self.assertEqual(b"-", ask("/key", "id=1").body)
        self.assertEqual(b"lang=de", ask("/key", "lang=de").body)

    def test_only_cookies_that_are_named_go_to_the_origin(self):
        origin = Origin(self, default=lambda exchange: fresh(
            dict((n.lower(), v) for n, v in exchange.request.fields).get("cookie", "-").encode()))
        encore = self.forward([{"path": "/bypass", "cookies": "bypass:session,wp_logged_in_*"},
                               {"path": "/key", "cookies": "key:lang*,theme"}], origin)

        def ask(path, *cookies):
            fields = [("Cookie", cookie) for cookie in cookies]
            return get(encore.port, origin.url(path), fields=fields)
        self.assertEqual(b"-", ask("/bypass").body)
        ask("/bypass")
        for cookies in ((), ("_ga=1",), ("_ga=2; wp_logged=1", "sessions=1"), ("Session=1",)):
            answer = ask("/bypass", *cookies)
            self.assertEqual((True, b"-"), (self.is_hit(answer), answer.body), cookies)
        for cookies, told in ((("_ga=1; session=2",), b"session=2"),
                              (("wp_logged_in_=x; _ga=1",), b"wp_logged_in_=x"),
                              (("a=1", "wp_logged_in_7f=x; session=2"),
                               b"session=2; wp_logged_in_7f=x")):
            for _ in range(3):
                answer = ask("/bypass", *cookies)
                self.assertEqual((False, told), (self.is_hit(answer), answer.body), cookies)
                self.assertIn("detail=rule", status_line(answer))
        self.assertEqual(b"-", ask("/bypass").body)
        for _ in range(2):
            ask("/key", "lang_b=2; id=1; lang_a=1; theme=x; lan=3")
        answer = ask("/key", "theme=x; lang_a=1; lang_b=2; id=7")
        self.assertEqual((True, b"lang_a=1; lang_b=2; theme=x"), (self.is_hit(answer), answer.body))
        self.assertEqual(b"lang_c=1", ask("/key", "lang_c=1").body)

    def test_the_query_that_tells_apart_is_what_the_origin_sees(self):
        origin = Origin(self, default=lambda exchange: fresh(exchange.request.target.encode()))
        encore = self.forward([{"path": "/none", "key_query": "none"},
                               {"path": "/only", "key_query": "only:id"},
                               {"path": "/except", "key_query": "except:utm_*"},
                               {"path": "/whole", "key_query": "none", "origin_query": True}],
                              origin)

        def ask(path):
            return get(encore.port, origin.url(path))
        self.assertEqual(b"/none", ask("/none?a=1").body)
        self.assertTrue(self.is_hit(ask("/none?b=2")))
        self.assertTrue(self.is_hit(ask("/none")))
        self.assertEqual(b"/only?id=1", ask("/only?x=1&id=1").body)
        self.assertTrue(self.is_hit(ask("/only?id=1&y=2")))
        self.assertFalse(self.is_hit(ask("/only?id=2&y=2")))
        self.assertEqual(b"/except?a=1", ask("/except?utm_x=1&a=1").body)
        self.assertTrue(self.is_hit(ask("/except?a=1")))
        self.assertEqual(b"/whole?a=1", ask("/whole?a=1").body)
        self.assertEqual(b"/whole?a=1", ask("/whole?a=2").body)

    def test_a_purge_and_a_write_find_what_a_rule_keys_otherwise(self):
        origin = Origin(self, default=fresh(b"body"))
        encore = self.forward([{"path": "/q", "key_query": "none"}], origin)
        self.assertTrue(self.is_hit(self.twice(encore, origin.url("/q?a=1"))))
        status, text = encore.admin(f"/purge?url={origin.url('/q')}%3Fb=2", "POST")
        self.assertEqual((200, True), (status, '"purged":1' in text.replace(" ", "")), text)
        self.assertFalse(self.is_hit(get(encore.port, origin.url("/q?a=1"))))
        self.assertTrue(self.is_hit(get(encore.port, origin.url("/q?a=1"))))
        get(encore.port, origin.url("/q?c=3"), method="POST", body=b"x")
        self.assertFalse(self.is_hit(get(encore.port, origin.url("/q?a=1"))))

    def test_fields_that_tell_apart(self):
        origin = Origin(self, default=lambda exchange: fresh(
            dict((n.lower(), v) for n, v in exchange.request.fields).get("x-tenant", "-").encode()))
        encore = self.forward([{"path": "/tenant", "key_fields": ["X-Tenant"]}], origin)

        def ask(tenant):
            return get(encore.port, origin.url("/tenant"), fields=[("X-Tenant", tenant)])
        for tenant in ("a", "b"):
            self.assertEqual(tenant.encode(), ask(tenant).body)
        for tenant in ("a", "b"):
            answer = ask(tenant)
            self.assertEqual((tenant.encode(), True), (answer.body, self.is_hit(answer)))

    def test_nothing_is_cached_and_nothing_looked_up(self):
        origin = Origin(self, default=lambda exchange: fresh(exchange.request.target.encode()))
        encore = self.forward([{"path": "/private/*", "cache": False}], origin)
        for _ in range(3):
            answer = get(encore.port, origin.url("/x/../private/a?b=1"))
            self.assertEqual((200, b"/private/a?b=1"), (answer.status, answer.body))
            self.assertIn("detail=rule", status_line(answer))
        self.assertEqual(3, origin.count("/private/a?b=1"))
        self.assertEqual(0, encore.stats()["cache"]["objects"])

    def test_a_rule_may_wait_for_the_type_of_the_response(self):
        origin = Origin(self, {"/a": response(b"img", Content_Type="image/png"),
                               "/b": response(b"txt", Content_Type="text/plain; charset=utf-8"),
                               "/c": fresh(b"{}", Content_Type="application/json")})
        encore = self.forward([{"content_type": "image/*", "fresh": "1h"},
                               {"content_type": "application/json", "cache": False}], origin)
        self.assertTrue(self.is_hit(self.twice(encore, origin.url("/a"))))
        self.assertFalse(self.is_hit(self.twice(encore, origin.url("/b"))))
        answer = self.twice(encore, origin.url("/c"))
        self.assertIn("detail=rule", status_line(answer))

    def test_max_object_may_be_more_or_less_than_that_of_all(self):
        origin = Origin(self, {"/large": fresh(b"x" * 3_000_000), "/small": fresh(b"x" * 2000)})
        encore = self.forward([{"path": "/large", "max_object": "4MiB"},
                               {"path": "/small", "max_object": "1KiB"}], origin,
                              cache={"max_object": "1MiB"})
        self.assertTrue(self.is_hit(self.twice(encore, origin.url("/large"))))
        self.assertFalse(self.is_hit(self.twice(encore, origin.url("/small"))))

    def test_stale_is_served_by_rule(self):
        origin = Origin(self, default=response(b"body", ETag='"a"', Cache_Control="max-age=60",
                                               Age="100"))
        encore = self.forward([{"path": "/swr", "stale_while_revalidate": "1h"},
                               {"path": "/sie/reload", "stale_if_error": "1h",
                                "ignore": "client-no-cache"},
                               {"path": "/sie", "stale_if_error": "1h"}], origin)
        answer = self.twice(encore, origin.url("/swr"))
        self.assertIn("detail=stale", status_line(answer))
        for path in ("/sie", "/sie/reload", "/none"):
            get(encore.port, origin.url(path))
        origin.default = response(b"", "503 Down")
        self.assertEqual(200, get(encore.port, origin.url("/sie")).status)
        self.assertEqual(503, get(encore.port, origin.url("/none")).status)
        # A client's reload, where it is ignored, is ignored then, too.
        reload = [("Pragma", "no-cache")]
        self.assertEqual(200, get(encore.port, origin.url("/sie/reload"), fields=reload).status)
        self.assertEqual(503, get(encore.port, origin.url("/sie"), fields=reload).status)


class Actions(Case):
    def reverse(self, rules, origin, **sections):
        sections.setdefault("admission", {"policy": "always"})
        return self.encore(listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
                           origin=[{"servers": [origin.url("")]}], rule=rules, **sections)

    def ask(self, encore, path, method="GET", fields=(), host="site.example"):
        with Client(encore.port) as client:
            lines = [f"{method} {path} HTTP/1.1", f"Host: {host}",
                     *(f"{name}: {value}" for name, value in fields), "", ""]
            client.send("\r\n".join(lines))
            return client.read_response(method)

    def test_paths_are_rewritten_for_the_origin_alone(self):
        origin = Origin(self, default=lambda exchange: fresh(exchange.request.target.encode()))
        encore = self.reverse([{"path": "/app*", "strip_prefix": "/app", "add_prefix": "/v2/"},
                               {"path": "/old/*", "replace": ["/old/=>/new/", "b=>c"]},
                               {"path": "/dots/*", "replace": "x=>"}], origin)
        for asked, sent in (("/app/a?q=1", "/v2/a?q=1"), ("/app", "/v2/"),
                            ("/application", "/v2/application"), ("/old/b", "/new/c"),
                            ("/dots/.x./a", "/a")):
            with self.subTest(asked):
                self.assertEqual(sent.encode(), self.ask(encore, asked).body)
                answer = self.ask(encore, asked)
                self.assertIn("; hit", field(answer, "Cache-Status"))
        status, text = encore.admin("/purge?url=http://site.example/app/a%3Fq=1", "POST")
        self.assertIn('"purged":1', text.replace(" ", ""), status)

    def test_no_trailer_and_no_interim_response_brings_what_a_rule_removes(self):
        def hinted(exchange):
            exchange.send(b"HTTP/1.1 103 Early Hints\r\nX-Secret: 1\r\nLink: </a>\r\n\r\n")
            return fresh(b"body", X_Secret="1")
        origin = Origin(self, {"/hinted": hinted},
                        default=chunked(b"abc", trailers="X-Secret: 1\r\nX-Set: 1\r\n"))
        rule = {"response_remove": "X-Secret", "response_set": "X-Set: rule",
                "request_remove": "X-Admin"}
        encore = self.encore(rule=[{"path": "/plain", "response_add": "X-Rule: 1"}, rule])
        wants = [("TE", "trailers"), ("Connection", "TE")]
        with Client(encore.port) as client:
            for path, expected in (("/plain", {"x-secret": "1", "x-set": "1"}), ("/removed", {})):
                for _ in range(3):  # passed on, stored and from the store
                    answer = client.ask(origin.url(path), fields=wants)
                    self.assertEqual((b"abc", expected), (answer.body, dict(answer.trailers)))
            interim = client.ask(origin.url("/hinted")).interim
            self.assertEqual([["link", "via"]], [sorted(name for name, _ in one.fields)
                                                 for one in interim])
            client.send(f"POST {origin.url('/posted')} HTTP/1.1\r\nHost: a\r\n"
                        "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
                        "X-Admin: 1\r\nX-Kept: 1\r\n\r\n")
            client.read_response()
        self.assertEqual(b"X-Kept: 1\r\n", origin.last("/posted").trailers)

    def test_an_answer_that_switches_protocols_is_edited_too(self):
        def switch(exchange):
            exchange.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
                          b"Upgrade: websocket\r\nX-Secret: 1\r\n\r\n")
            exchange.wait_until_closed()
        origin = Origin(self, default=switch)
        encore = self.encore(rule=[{"response_remove": "X-Secret", "response_add": "X-Rule: 1"}])
        with Client(encore.port) as client:
            client.request(origin.url("/"), fields=[("Connection", "upgrade"),
                                                    ("Upgrade", "websocket")])
            answer = client.read_head()
        self.assertEqual((101, "websocket", None, "1"), (
            answer.status, *(field(answer, name) for name in ("Upgrade", "X-Secret", "X-Rule"))))

    def test_a_path_that_would_grow_without_bound_is_refused(self):
        origin = Origin(self, default=lambda exchange: fresh(exchange.request.target.encode()))
        encore = self.reverse([{"replace": [f"{n}=>" + str(n + 1) * 1000 for n in (1, 2, 3)]}],
                              origin)
        answer = self.ask(encore, "/" + "1" * 16)
        self.assertEqual(414, answer.status)
        self.assertIn("rewritten-path-too-long", field(answer, "Cache-Status"))
        self.assertEqual(b"/" + b"4" * 1000, self.ask(encore, "/3").body)

    def test_fields_are_set_added_and_removed_both_ways(self):
        origin = Origin(self, default=fresh(b"body", X_Powered_By="old", X_Kept="1", Server="s"))
        encore = self.reverse([{"path": "/set", "request_set": "X-Api-Key: k",
                                "request_add": ["X-More: 1", "X-More: 2"],
                                "request_remove": ["Accept-Language"],
                                "response_set": ["X-Powered-By: new", "Server: encore"],
                                "response_remove": ["X-Kept"]},
                               {"path": "/add", "response_add": "Strict-Transport-Security: max-age=1"}],
                              origin)
        fields = [("X-Api-Key", "mine"), ("x-api-key", "mine"), ("Accept-Language", "de")]
        for _ in range(3):
            answer = self.ask(encore, "/set", fields=fields)
            self.assertEqual(("new", "encore", None),
                             tuple(field(answer, name)
                                   for name in ("X-Powered-By", "Server", "X-Kept")))
        self.assertIn("; hit", field(answer, "Cache-Status"))
        seen = [(n.lower(), v) for n, v in origin.last("/set").fields]
        self.assertEqual(["k"], [v for n, v in seen if n == "x-api-key"])
        self.assertEqual(["1", "2"], [v for n, v in seen if n == "x-more"])
        self.assertNotIn("accept-language", [n for n, _ in seen])
        for _ in range(3):
            answer = self.ask(encore, "/add")
            self.assertEqual("max-age=1", field(answer, "Strict-Transport-Security"))
        # Pipelined, a client gets each of them once.
        with Client(encore.port) as client:
            client.send("GET /add HTTP/1.1\r\nHost: site.example\r\n\r\n" * 50)
            for _ in range(50):
                answer = client.read_response()
                self.assertEqual(("max-age=1", b"body"),
                                 (field(answer, "Strict-Transport-Security"), answer.body))

    def test_redirections_and_static_answers(self):
        origin = Origin(self, default=fresh(b"body"))
        encore = self.reverse([{"path": "/move/*", "redirect": "https://{host}{path}{query}",
                                "redirect_status": 308},
                               {"path": "/robots.txt", "static_status": 200,
                                "static_body": "User-agent: *\nDisallow: /\n",
                                "response_add": "Cache-Control: max-age=60"},
                               {"path": "/gone", "static_status": 410}], origin)
        answer = self.ask(encore, "/move/x?a=b%20c")
        self.assertEqual((308, "https://site.example/move/x?a=b%20c"),
                         (answer.status, field(answer, "Location")))
        answer = self.ask(encore, "/robots.txt")
        self.assertEqual((200, b"User-agent: *\nDisallow: /\n", "max-age=60"),
                         (answer.status, answer.body, field(answer, "Cache-Control")))
        head = self.ask(encore, "/robots.txt", method="HEAD")
        self.assertEqual((b"", "26"), (head.body, field(head, "Content-Length")))
        self.assertEqual(410, self.ask(encore, "/gone").status)
        self.assertEqual(0, origin.count())
        # Later requests on the connection get responses, too.
        with Client(encore.port) as client:
            client.send("GET /gone HTTP/1.1\r\nHost: a\r\n\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(410, client.read_response().status)
            self.assertEqual(b"body", client.read_response().body)

    def test_faults_in_rules_are_named(self):
        path = self.directory / "wrong.toml"
        encore = self.encore(start=False)
        for text, said in (
                ('host = "a b"', "rule.0.host"),
                ('ignore = ["everything"]', '"everything" is unknown; accepted: '),
                ('admission = "second-hit"\n[admission]\npolicy = "always"', "needs the filter"),
                ('content_type = "text/*"\ndeny = 403', "applies before the response"),
                ('deny = 403\nredirect = "/x"', "together with another answer"),
                ('fresh = "1h"\nfresh_min = "1m"', "together with fresh_min"),
                ('key = "digest"', "without verify"),
                ('listener = "127.0.0.1:1"', "is not the address of a [[listen]]"),
                ('response_set = "Content-Length: 3"', "is a connection field"),
                ('request_add = "X: a\\r\\nB: c"', "has a control character"),
                ('negative = "200=1s"', "is not an error status"),
                ('redirect_status = 304', "is not a redirection"),
                ('key_query = "some"', "is unknown"),
                ('fressh = "1h"', 'did you mean "fresh"')):
            with self.subTest(text):
                path.write_text("[[rule]]\n" + text + "\n")
                ended = subprocess.run([encore.program, "--config", path, "--check-config"],
                                       capture_output=True, text=True, env=clean_environment())
                self.assertEqual(2, ended.returncode, ended.stdout)
                self.assertIn(said, ended.stderr)
                self.assertIn("wrong.toml:", ended.stderr)


class Explain(Case):
    def explain(self, toml, *arguments, status=0):
        path = self.directory / "encore.toml"
        path.write_text(toml)
        encore = self.encore(start=False)
        if arguments[0] == "explain":
            arguments = ("explain", "--offline", *arguments[1:])
        ended = subprocess.run([encore.program, "--config", path, *arguments], text=True,
                               capture_output=True, env=clean_environment())
        self.assertEqual(status, ended.returncode, ended.stderr)
        return ended.stdout if status == 0 else ended.stderr

    def test_it_says_which_rule_holds_and_what_follows(self):
        toml = """[[rule]]
name = "deny-ads"
host = "*.ads.example"
deny = 403
[[rule]]
name = "pool"
path = "*/pool/*"
admission = "always"
fresh = "30d"
key_query = "none"
negative = {404 = "10s"}
[[rule]]
clients = "127.0.0.9"
cache = false
"""
        text = self.explain(toml, "explain", "http://h.example/debian/./pool/a.deb?x=1")
        for line in ("rule            pool", "key             http://h.example/debian/pool/a.deb\n",
                     "admission       always, by the rule", "fresh           30d, by the rule; 404: 10s",
                     "is asked        GET /debian/pool/a.deb HTTP/1.1"):
            self.assertIn(line, text)
        text = self.explain(toml, "explain", "http://x.ads.example/")
        self.assertIn("answer          403 here: rule-deny-ads", text)
        text = self.explain(toml, "explain", "http://h.example/", "--client", "127.0.0.9")
        self.assertIn("rule            rule-2", text)
        self.assertIn("key             none: not cached", text)
        text = self.explain(toml, "--check-config", "--url", "http://h.example/")
        self.assertIn("rule            none holds", text)
        self.assertIn("over a cycle", text)
        self.assertIn("is not an http(s) URL", self.explain(toml, "explain", "nonsense", status=2))
        self.assertIn("is not an address", self.explain(toml, "explain", "http://h/", "--client", "x",
                                                    status=2))


if __name__ == "__main__":
    unittest.main()
