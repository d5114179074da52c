"""A rule's client_cache_control: clients get it in place of Cache-Control with what a shared cache may
reuse, and with nothing else."""

import unittest

from client import Client, field, get
from harness import Case, free_port
from origin import Origin, chunked, response

MINE = "max-age=0, must-revalidate"


class ClientCacheControl(Case):
    def start_all(self, routes, rule=None, **sections):
        self.origin = Origin(self, routes)
        self.proxy = self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
            origin=[{"servers": [self.origin.url("")]}],
            rule=[{"client_cache_control": MINE, **(rule or {})}],
            **{"admission": {"policy": "always"}, **sections})

    def ask(self, path, fields=(), method="GET"):
        with Client(self.proxy.port) as client:
            lines = [f"{method} {path} HTTP/1.1", "Host: wiki.example",
                     *(f"{name}: {value}" for name, value in fields), "", ""]
            client.send("\r\n".join(lines))
            return client.read_response(method)

    def said(self, path, fields=(), method="GET"):
        return field(self.ask(path, fields, method), "Cache-Control")

    def test_of_a_shared_response_first_and_stored_it_is_replaced(self):
        page = response(b"page" * 1000, Cache_Control="s-maxage=18000, max-age=5", ETag='"1"',
                        Vary="Accept-Encoding")
        self.start_all({"/page": page, "/open": chunked(b"open"), "/small": response(
            b"s", Cache_Control="public, max-age=60", Expires="Thu, 01 Jan 2099 00:00:00 GMT")})
        for path in "/page", "/small", "/open":
            with self.subTest(path):
                for _ in range(3):
                    self.assertEqual(MINE, self.said(path))
                answer = self.ask(path)
                self.assertIn("; hit", field(answer, "Cache-Status"))
                self.assertIsNotNone(field(answer, "Age"))
                self.assertEqual(MINE, self.said(path, method="HEAD"))
        self.assertEqual(MINE, self.said("/page", [("Range", "bytes=0-9")]))
        unchanged = self.ask("/page", [("If-None-Match", '"1"')])
        self.assertEqual((304, MINE), (unchanged.status, field(unchanged, "Cache-Control")))
        self.assertEqual(3, self.origin.count())

    def test_what_may_not_be_shared_keeps_its_own(self):
        own = {"/private": "private, max-age=60", "/no-store": "no-store",
               "/no-cache": "no-cache", "/own": 'private', "/none": None}
        self.start_all({path: response(b"x", Cache_Control=said) for path, said in own.items()},
                       compression={"codings": ["gzip"]})
        for path, said in own.items():
            for _ in range(3):
                self.assertEqual(said, self.said(path), path)

    def test_nor_is_it_replaced_with_a_login_or_of_an_unsafe_method(self):
        self.start_all({"/page": response(b"x", Cache_Control="max-age=60"),
                        "/shared": response(b"x", Cache_Control="s-maxage=60")})
        login = [("Authorization", "Basic eA==")]
        self.assertEqual("max-age=60", self.said("/page", login))
        self.assertEqual("max-age=60", self.said("/page", [("Content-Length", 0)], "POST"))
        self.assertEqual(MINE, self.said("/shared", login))

    def test_what_a_rule_stores_against_its_origins_word_keeps_that_word(self):
        self.start_all({"/page": response(b"x", Cache_Control="private, max-age=60")},
                       rule={"ignore": "private"})
        for _ in range(3):
            self.assertEqual("private, max-age=60", self.said("/page"))
        self.assertIn("; hit", field(self.ask("/page"), "Cache-Status"))

    def test_what_admission_keeps_out_is_shared_all_the_same(self):
        self.start_all({"/page": response(b"x", Cache_Control="s-maxage=60")},
                       admission={"policy": "never"})
        for _ in range(2):
            self.assertEqual(MINE, self.said("/page"))

    def test_a_304_to_a_clients_own_condition_says_what_the_page_says(self):
        def page(exchange):
            fields = {"Cache_Control": "s-maxage=60", "ETag": '"1"'}
            if dict(exchange.request.fields).get("if-none-match"):
                return response(b"", "304 Not Modified", Content_Length=None, **fields)
            return response(b"x", **fields)
        self.start_all({"/page": page}, admission={"policy": "never"})
        answer = self.ask("/page", [("If-None-Match", '"1"')])
        self.assertEqual((304, MINE), (answer.status, field(answer, "Cache-Control")))

    def test_other_requests_are_left_alone_and_response_set_has_the_last_word(self):
        self.start_all({"/page": response(b"x", Cache_Control="s-maxage=60"),
                        "/set": response(b"x", Cache_Control="s-maxage=60")}, rule={"path": "/set"})
        self.assertEqual("s-maxage=60", self.said("/page"))
        self.assertEqual(MINE, self.said("/set"))
        self.start_all({"/page": response(b"x", Cache_Control="s-maxage=60")},
                       rule={"response_set": "Cache-Control: no-store"})
        self.assertEqual("no-store", self.said("/page"))

    def test_a_forward_listener_does_the_same(self):
        origin = Origin(self, {"/page": response(b"x", Cache_Control="s-maxage=60")})
        proxy = self.encore(rule=[{"client_cache_control": MINE}], admission={"policy": "always"})
        for _ in range(3):
            self.assertEqual(MINE, field(get(proxy.port, origin.url("/page")), "Cache-Control"))
        self.assertEqual(1, origin.count())

    def test_what_is_no_value_is_refused(self):
        for value, fault in (("", "no directive"), ("max-age=0\nX: y", "control character")):
            proxy = self.encore(start=False, rule=[{"client_cache_control": value}])
            proxy.write_config()
            done = self.run_client([proxy.program, "--check-config", "--config",
                                    proxy.config_path], check=False)
            self.assertNotEqual(0, done.returncode)
            self.assertIn(fault, done.stdout.decode())
        proxy = self.encore(start=False, rule=[{"client_cache_control": MINE,
                                                "content_type": "text/html"}])
        proxy.write_config()
        done = self.run_client([proxy.program, "--check-config", "--config", proxy.config_path],
                               check=False)
        self.assertIn("content_type", done.stdout.decode())


if __name__ == "__main__":
    unittest.main()
