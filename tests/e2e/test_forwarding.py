"""Fields, interim responses, trailers and loops: which pass through the proxy and which end
there."""

import threading
import unittest

from client import Client, field, get
from harness import Case, free_port
from origin import Origin, chunked, fresh, response


class Fields(Case):
    def received(self, fields, **options):
        origin = Origin(self, {"/page": response(b"x")})
        encore = self.encore()
        get(encore.port, origin.url("/page"), fields=fields, **options)
        return dict(origin.last().fields)

    def test_credentials_for_the_proxy_are_never_forwarded(self):
        got = self.received([("Proxy-Authorization", "Basic c2VjcmV0"),
                             ("Authorization", "Basic eA==")])
        self.assertNotIn("proxy-authorization", got)
        self.assertEqual("Basic eA==", got["authorization"])

    def test_fields_of_one_hop_end_here_and_others_pass(self):
        got = self.received([
            ("Connection", "keep-alive, X-Listed"), ("X-Listed", "1"), ("Keep-Alive", "timeout=5"),
            ("Proxy-Connection", "keep-alive"), ("TE", "trailers"), ("Upgrade", "websocket"),
            ("X-Other", "kept"), ("Accept-Language", "de")])
        for name in ("x-listed", "keep-alive", "proxy-connection", "upgrade"):
            self.assertNotIn(name, got)
        self.assertEqual(("kept", "de"), (got["x-other"], got["accept-language"]))

    def test_what_a_client_says_in_the_place_of_a_proxy_ends_here(self):
        got = self.received([(name, "evil") for name in (
            "X-Forwarded-For", "X-Forwarded-Host", "X_Forwarded_Host", "X-Forwarded-Port",
            "Forwarded", "X-Real-IP", "X-Original-URL")] + [("Other_Field", "kept")])
        self.assertEqual([("other_field", "kept")],
                         [pair for pair in got.items() if pair[1] in ("evil", "kept")])

    def test_connection_cannot_remove_what_messages_depend_on(self):
        got = self.received([("Connection", "Host, Authorization"),
                             ("Authorization", "Basic eA==")])
        self.assertIn("host", got)
        self.assertEqual("Basic eA==", got["authorization"])

    def test_via_names_each_hop_in_order(self):
        origin = Origin(self, {"/page": response(b"x", Via="1.0 inner")})
        encore = self.encore()
        answer = get(encore.port, origin.url("/page"), fields=[("Via", "1.1 outer")])
        self.assertRegex(dict(origin.last().fields)["via"], r"^1\.1 outer, 1\.1 encore\b")
        self.assertRegex(field(answer, "Via"), r"^1\.0 inner, 1\.1 encore\b")

    def test_fields_of_one_hop_in_a_response_end_here(self):
        origin = Origin(self, {"/page": fresh(b"x", Connection="keep-alive, X-Listed", X_Listed="1",
                                              Keep_Alive="timeout=5", X_Other="kept")})
        encore = self.encore()
        for _ in range(3):
            answer = get(encore.port, origin.url("/page"))
            self.assertIsNone(field(answer, "X-Listed"))
            self.assertIsNone(field(answer, "Keep-Alive"))
            self.assertEqual("kept", field(answer, "X-Other"))


class Loops(Case):
    def reverse(self, port, target):
        return self.encore(listen=[{"address": f"127.0.0.1:{port}", "mode": "reverse"}],
                           origin=[{"servers": [f"http://127.0.0.1:{target}"]}])

    def ask(self, port):
        with Client(port) as client:
            client.send("GET /page HTTP/1.1\r\nHost: site.example\r\n\r\n")
            return client.read_response()

    def test_a_proxy_before_itself_says_508(self):
        port = free_port()
        encore = self.reverse(port, port)
        self.assertEqual(508, self.ask(port).status)
        self.assertLessEqual(sum(encore.outcomes().values()), 4)

    def test_two_proxies_before_each_other_say_508(self):
        first, second = free_port(), free_port()
        self.reverse(first, second)
        self.reverse(second, first)
        self.assertEqual(508, self.ask(first).status)

    def test_a_chain_of_two_is_no_loop(self):
        origin = Origin(self, {"/page": fresh(b"through two")})
        first, second = free_port(), free_port()
        self.reverse(first, second)
        self.reverse(second, origin.port)
        for _ in range(4):
            self.assertEqual((200, b"through two"), self.ask(first)[0:1] + (self.ask(first).body,))


class Interim(Case):
    def test_early_hints_reach_a_client_of_1_1_and_no_other(self):
        def hinting(exchange):
            exchange.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n")
            return response(b"page", Cache_Control="no-store")
        origin = Origin(self, {"/page": hinting})
        encore = self.encore()
        answer = get(encore.port, origin.url("/page"))
        self.assertEqual([103], [a.status for a in answer.interim])
        self.assertEqual(b"page", answer.body)
        answer = get(encore.port, origin.url("/page"), version="HTTP/1.0")
        self.assertEqual(([], b"page"), (answer.interim, answer.body))

    def test_a_client_that_expects_100_gets_it_before_it_sends(self):
        origin = Origin(self, {"/form": lambda x: response(x.request.body)})
        encore = self.encore()
        with Client(encore.port) as client:
            client.send(f"POST {origin.url('/form')} HTTP/1.1\r\nHost: {origin.authority}\r\n"
                        "Expect: 100-continue\r\nContent-Length: 4\r\n\r\n")
            self.assertEqual(100, client.read_head().status)
            client.send("body")
            self.assertEqual(b"body", client.read_response().body)


class Messages(Case):
    def test_trailers_reach_a_client_that_takes_them(self):
        origin = Origin(self, {"/page": chunked(b"a", b"b", trailers="X-Sum: 2\r\n")})
        encore = self.encore()
        answer = get(encore.port, origin.url("/page"), fields=[("TE", "trailers"),
                                                               ("Connection", "TE")])
        self.assertEqual((b"ab", [("x-sum", "2")]), (answer.body, answer.trailers))

    def test_trailers_reach_nobody_who_did_not_ask_for_them(self):
        origin = Origin(self, {"/page": chunked(b"a", b"b", trailers="X-Sum: 2\r\n")})
        encore = self.encore()
        for _ in range(3):
            for fields in ([], [("TE", "deflate")]):
                answer = get(encore.port, origin.url("/page"), fields=fields)
                self.assertEqual((b"ab", []), (answer.body, answer.trailers))

    def test_trailers_of_any_length_pass_to_the_byte_both_ways(self):
        sections = ["".join(f"X-T{n}: {'v' * (n % width)}\r\n" for n in range(lines))
                    for lines, width in ((1, 2), (1, 40), (2, 9), (40, 3), (60, 30))]
        origin = Origin(self, {f"/{n}": lambda x, s=s: chunked(
            b"a", trailers=s) for n, s in enumerate(sections)})
        encore = self.encore(workers={"count": 1})
        with Client(encore.port) as client:
            for number, section in enumerate(sections):
                url = origin.url(f"/{number}")
                client.send(f"POST {url} HTTP/1.1\r\nHost: {origin.authority}\r\n"
                            "TE: trailers\r\nConnection: TE\r\nTransfer-Encoding: chunked\r\n\r\n"
                            f"4\r\nbody\r\n0\r\n{section}\r\n")
                answer = client.read_response()
                self.assertEqual(section, origin.last(f"/{number}").trailers.decode())
                self.assertEqual(section, "".join(
                    f"{name.upper()}: {value}\r\n" for name, value in answer.trailers))

    def test_a_head_of_many_short_fields_passes_whole(self):
        # Shorter as they come than as they are written, so that the room for the head must grow.
        origin = Origin(self, default=b"HTTP/1.1 200 OK\r\nContent-Length:2\r\n" + b"a:\r\n" * 200
                        + b"\r\nok")
        encore = self.encore(workers={"count": 1})
        answer = get(encore.port, origin.url("/"))
        self.assertEqual([""] * 200, [value for name, value in answer.fields if name == "a"])
        self.assertEqual(b"ok", answer.body)

    def test_chunks_pass_as_they_come(self):
        go = threading.Event()

        def slow(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
            exchange.wait(go)
            exchange.send(b"6\r\nsecond\r\n0\r\n\r\n")
        origin = Origin(self, {"/page": slow})
        encore = self.encore()
        with Client(encore.port) as client:
            client.request(origin.url("/page"))
            self.assertEqual("chunked", field(client.read_head(), "Transfer-Encoding"))
            self.assertEqual(b"5\r\nfirst\r\n", client.read_exactly(10))
            go.set()
            self.assertEqual(b"6\r\nsecond\r\n0\r\n\r\n", client.read_exactly(16))

    def test_pipelined_requests_are_answered_in_order(self):
        origin = Origin(self, default=lambda x: fresh(x.request.target.encode()))
        encore = self.encore()
        for _ in range(3):
            with Client(encore.port) as client:
                client.send("".join(f"GET {origin.url(f'/{n}')} HTTP/1.1\r\n"
                                    f"Host: {origin.authority}\r\n\r\n" for n in range(40)))
                for number in range(40):
                    self.assertEqual(f"/{number}".encode(), client.read_response().body)

    def test_a_client_that_will_send_no_more_still_gets_its_answer(self):
        origin = Origin(self, {"/page": fresh(b"page")})
        encore = self.encore()
        for _ in range(3):
            with Client(encore.port) as client:
                client.request(origin.url("/page"))
                client.shutdown()
                self.assertEqual(b"page", client.read_response().body)
                self.assertTrue(client.at_end())

    def test_http_1_0_closes_unless_asked_to_keep(self):
        origin = Origin(self, {"/page": fresh(b"page")})
        encore = self.encore()
        for _ in range(3):
            with Client(encore.port) as client:
                client.ask(origin.url("/page"), version="HTTP/1.0")
                self.assertTrue(client.at_end())
            with Client(encore.port) as client:
                for _ in range(3):
                    answer = client.ask(origin.url("/page"), version="HTTP/1.0",
                                        fields=[("Connection", "keep-alive")])
                    self.assertEqual(b"page", answer.body)

    def test_connection_close_is_kept_to(self):
        origin = Origin(self, {"/page": fresh(b"page")})
        encore = self.encore()
        with Client(encore.port) as client:
            answer = client.ask(origin.url("/page"), fields=[("Connection", "close")])
            self.assertEqual("close", field(answer, "Connection"))
            self.assertTrue(client.at_end())

    def test_origin_connections_are_kept_and_used_again(self):
        origin = Origin(self, default=response(b"x", Cache_Control="no-store"))
        encore = self.encore(workers={"count": 1})
        with Client(encore.port) as client:
            for number in range(30):
                client.ask(origin.url(f"/{number}"))
        self.assertEqual((30, 1), (origin.count(), origin.connections))

    def test_a_dead_pooled_connection_is_replaced_for_a_safe_request_only(self):
        def once(exchange):
            exchange.close()
            return response(b"x", Cache_Control="no-store")
        origin = Origin(self, default=once)
        encore = self.encore()
        with Client(encore.port) as client:
            for number in range(10):
                self.assertEqual(200, client.ask(origin.url(f"/{number}")).status)
        self.assertEqual(10, origin.count())


if __name__ == "__main__":
    unittest.main()
