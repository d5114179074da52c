"""Reverse mode before a real nginx, which is stopped and started during requests."""

import threading
import unittest

from client import Client, field
from harness import Case, CertificateAuthority, eventually, free_port
from nginx import Nginx
from origin import Origin, fresh, response


def ask(port, path, host="site.example", fields=(), method="GET"):
    with Client(port) as client:
        lines = [f"{method} {path} HTTP/1.1", f"Host: {host}",
                 *(f"{name}: {value}" for name, value in fields), "", ""]
        client.send("\r\n".join(lines))
        return client.read_response(method)


class Reverse(Case):
    def reverse(self, origins, **sections):
        return self.encore(listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
                           origin=origins, **sections)

    def test_hits_outlive_a_stopped_nginx_and_misses_recover_with_it(self):
        site = self.directory / "site"
        site.mkdir()
        for name in ("stored", "first", "second"):
            (site / f"{name}.txt").write_text(name * 1000)
        nginx = Nginx(self, site)
        encore = self.reverse([{"servers": [nginx.url("")]}])
        for _ in range(3):
            answer = ask(encore.port, "/stored.txt")
            self.assertEqual((200, b"stored" * 1000), (answer.status, answer.body))
        self.assertIn("; hit", field(answer, "Cache-Status"))
        nginx.stop()
        self.assertEqual(b"stored" * 1000, ask(encore.port, "/stored.txt").body)
        self.assertIn(ask(encore.port, "/first.txt").status, (502, 503, 504))
        nginx.start()
        for name in ("first", "second"):
            for _ in range(3):
                answer = ask(encore.port, f"/{name}.txt")
                self.assertEqual((200, name.encode() * 1000), (answer.status, answer.body))
        nginx.stop()
        self.assertEqual(b"first" * 1000, ask(encore.port, "/first.txt").body)

    def test_a_restart_between_two_requests_is_hidden_from_a_safe_request(self):
        # The pooled connection is dead when the second request comes: it is sent on a new one.
        site = self.directory / "site"
        site.mkdir()
        nginx = Nginx(self, site, extra="location / { add_header Cache-Control no-store; "
                                        "return 200 alive; }")
        encore = self.reverse([{"servers": [nginx.url("")]}])
        for _ in range(5):
            answer = ask(encore.port, "/alive")
            self.assertEqual((200, b"alive"), (answer.status, answer.body))
            nginx.stop()
            nginx.start()

    def test_a_write_invalidates_what_another_route_of_the_site_answers(self):
        pages = Origin(self, default=fresh(b"page"))
        writes = Origin(self, default=response(b"", Location="/page?of=x", Content_Location="/api/x"))
        encore = self.reverse([{"servers": [pages.url("")]},
                               {"path": "/api", "servers": [writes.url("")]}],
                              admission={"policy": "always"})
        for path in ("/page?of=x", "/page?of=y"):
            ask(encore.port, path)
        ask(encore.port, "/api/x", method="POST")
        self.assertNotIn("; hit", field(ask(encore.port, "/page?of=x"), "Cache-Status"))
        self.assertIn("; hit", field(ask(encore.port, "/page?of=y"), "Cache-Status"))

    def test_load_goes_on_while_nginx_restarts(self):
        site = self.directory / "site"
        site.mkdir()
        (site / "page.txt").write_text("p" * 10000)
        nginx = Nginx(self, site)
        encore = self.reverse([{"servers": [nginx.url("")]}])
        for _ in range(2):
            ask(encore.port, "/page.txt")
        failures, stop = [], threading.Event()

        def load():
            with Client(encore.port) as client:
                while not stop.is_set():
                    client.send("GET /page.txt HTTP/1.1\r\nHost: site.example\r\n\r\n")
                    answer = client.read_response()
                    if (answer.status, len(answer.body)) != (200, 10000):
                        failures.append(answer)
        threads = [threading.Thread(target=load) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(3):
            nginx.stop()
            nginx.start()
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual([], failures[:1])

    def test_routes_go_by_host_and_longest_path(self):
        def named(name):
            return Origin(self, default=lambda x: response(f"{name} {x.request.target}"))
        general, api, deep, other = (named(n) for n in ("general", "api", "deep", "other"))
        encore = self.reverse([
            {"host": "*", "path": "/", "servers": [general.url("")]},
            {"host": "a.example", "path": "/", "servers": [other.url("")]},
            {"host": "*", "path": "/api/", "servers": [api.url("")]},
            {"host": "*", "path": "/api/deep/", "servers": [deep.url("")]},
        ])
        table = [("b.example", "/x", b"general /x"), ("b.example", "/api/x", b"api /api/x"),
                 ("b.example", "/api/deep/x", b"deep /api/deep/x"),
                 ("a.example", "/x", b"other /x"),
                 ("A.Example", "/x", b"other /x"), ("b.example", "/apix", b"general /apix")]
        for host, path, expected in table:
            self.assertEqual(expected, ask(encore.port, path, host).body, (host, path))

    def test_without_a_route_the_answer_says_so(self):
        origin = Origin(self, default=response(b"x"))
        encore = self.reverse([{"host": "a.example", "servers": [origin.url("")]}])
        self.assertEqual(200, ask(encore.port, "/", "a.example").status)
        self.assertIn(ask(encore.port, "/", "b.example").status, (404, 421))
        self.assertEqual(1, origin.count())

    def test_the_origin_learns_whom_it_answers(self):
        origin = Origin(self, default=response(b"x", Cache_Control="no-store"))
        encore = self.reverse([{"servers": [origin.url("")]}])
        ask(encore.port, "/", "Site.Example:80")
        got = dict(origin.last().fields)
        self.assertEqual("site.example", got["host"])
        self.assertEqual("127.0.0.1", got["x-forwarded-for"])
        self.assertEqual("http", got["x-forwarded-proto"])
        self.assertEqual("site.example", got["x-forwarded-host"])
        self.assertEqual('for=127.0.0.1;host="site.example";proto=http', got["forwarded"])

    def test_what_a_client_says_in_the_place_of_a_proxy_never_reaches_the_origin(self):
        origin = Origin(self, default=response(b"x", Cache_Control="no-store"))
        encore = self.reverse([{"servers": [origin.url("")]}])
        ask(encore.port, "/", fields=[
            (name, "evil") for name in
            ("X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port",
             "x-forwarded-scheme", "Forwarded", "X-Real-IP", "X-Original-URL", "X-Rewrite-URL",
             "X_Forwarded_Host", "Other_Field", "Proxy")]
            + [("X-Other", "kept"), ("Proxy-Agent", "kept")])
        got = origin.last().fields
        self.assertEqual([], [pair for pair in got if pair[1] == "evil"])
        self.assertEqual(2, sum(value == "kept" for _, value in got))
        for name in ("x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "forwarded"):
            self.assertEqual(1, sum(key == name for key, _ in got), name)

    def test_the_origin_gets_the_codings_that_choose_the_variant(self):
        origin = Origin(self, default=response(b"x", Cache_Control="no-store"))
        encore = self.reverse([{"servers": [origin.url("")]}])
        for sent, seen in (("gzip, deflate;q=0.5, br", "br, gzip"), ("deflate", "identity"),
                           ("*;q=0.5, gzip", "*;q=0.5, gzip"), (None, "identity")):
            ask(encore.port, "/", fields=[("Accept-Encoding", sent)] if sent else [])
            self.assertEqual(seen, dict(origin.last().fields)["accept-encoding"])

    def test_parameters_that_are_in_no_key_are_not_sent(self):
        origin = Origin(self, default=lambda x: fresh(x.request.target))
        encore = self.reverse([{"servers": [origin.url("")]}], admission={"policy": "always"},
                              cache={"query_drop": ["utm_*"], "query_sort": True})
        answer = ask(encore.port, "/a?q=2&utm_source=%3Cscript%3E&p=1")
        self.assertEqual(b"/a?p=1&q=2", answer.body)
        answer = ask(encore.port, "/a?p=1&q=2")
        self.assertEqual(b"/a?p=1&q=2", answer.body)
        self.assertIn("; hit", field(answer, "Cache-Status"))
        self.assertEqual(b"/b", ask(encore.port, "/b?utm_source=x").body)

    def test_hosts_do_not_share_objects(self):
        origin = Origin(self, default=lambda x: fresh(dict(x.request.fields)["host"].encode()))
        encore = self.reverse([{"servers": [origin.url("")]}])
        for _ in range(3):
            for host in ("a.example", "b.example"):
                self.assertEqual(host.encode(), ask(encore.port, "/same", host).body)

    def test_a_tls_origin_is_verified(self):
        authority = CertificateAuthority(self)
        origin = Origin(self, default=fresh(b"over tls"),
                        tls=authority.server_context("127.0.0.1"))
        trusting = self.reverse([{"servers": [origin.url("")]}],
                                upstream={"tls_ca_file": str(authority.certificate)})
        for _ in range(3):
            answer = ask(trusting.port, "/")
            self.assertEqual((200, b"over tls"), (answer.status, answer.body))
        distrusting = self.reverse([{"servers": [origin.url("")]}])
        self.assertEqual(502, ask(distrusting.port, "/").status)
        eventually(lambda: "certificate refused" in distrusting.output(), "why is said")

    def test_a_certificate_that_is_refused_is_what_the_answer_says(self):
        # The first of localhost's two addresses answers with an unknown certificate, the second not
        # at all.
        authority = CertificateAuthority(self)
        origin = Origin(self, default=fresh(b"over tls"), tls=authority.server_context("localhost"))
        encore = self.reverse([{"servers": [f"https://localhost:{origin.port}"]}])
        answer = ask(encore.port, "/")
        self.assertEqual(502, answer.status)
        self.assertIn("detail=tls-verify", field(answer, "Cache-Status"))

    def test_a_reverse_listener_is_no_forward_proxy(self):
        origin = Origin(self, default=response(b"configured"))
        other = Origin(self, default=response(b"elsewhere"))
        encore = self.reverse([{"host": "a.example", "servers": [origin.url("")]}])
        answer = ask(encore.port, other.url("/"), other.authority)
        self.assertNotEqual(b"elsewhere", answer.body)
        self.assertGreaterEqual(ask(encore.port, other.authority, method="CONNECT").status, 400)
        self.assertEqual(0, other.connections)


class Trailers(Case):
    def test_no_trailer_says_what_only_a_proxy_may_say(self):
        origin = Origin(self, default=response(b"ok"))
        port = free_port()
        self.encore(listen=[{"address": f"127.0.0.1:{port}", "mode": "reverse"}],
                    origin=[{"servers": [origin.url("")]}])
        with Client(port) as client:
            client.send("POST /form HTTP/1.1\r\nHost: site.example\r\n"
                        "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Sum: 1\r\n"
                        "X_Forwarded_For: 9.9.9.9\r\nX-Real-IP: 9.9.9.9\r\nProxy: evil\r\n\r\n")
            self.assertEqual(200, client.read_response().status)
        self.assertEqual(b"X-Sum: 1\r\n", origin.last("/form").trailers)


if __name__ == "__main__":
    unittest.main()
