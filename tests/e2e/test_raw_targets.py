"""Bytes beyond ASCII in a request target, as some clients send them: they are forwarded
percent-encoded, and all checks of the target see that form."""

import http.client
import json

from client import Client, field
from harness import Case, free_port
from origin import Origin, fresh

RAW, ENCODED = b"/caf\xc3\xa9", "/caf%C3%A9"


class RawTargets(Case):
    def start_with(self, listen=None, **sections):
        self.origin = Origin(self, default=lambda exchange: fresh(exchange.request.target.encode()))
        self.proxy = self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse", **(listen or {})}],
            origin=[{"servers": [self.origin.url("")]}], admission={"policy": "always"}, **sections)

    def ask(self, target, method="GET", host="a", rest=b""):
        target = target.encode() if isinstance(target, str) else target
        with Client(self.proxy.port) as client:
            client.send(f"{method} ".encode() + target + f" HTTP/1.1\r\nHost: {host}\r\n\r\n".encode() + rest)
            return client.read_response()

    def test_they_go_on_percent_encoded(self):
        self.start_with()
        self.assertEqual((200, ENCODED.encode()), (self.ask(RAW).status, self.ask(RAW).body))
        self.assertEqual(ENCODED, self.origin.last().target)
        query = self.ask(b"/q?name=\xe4&x=%e4")
        self.assertEqual(b"/q?name=%E4&x=%e4", query.body)

    def test_also_by_a_forward_proxy(self):
        origin = Origin(self, default=lambda exchange: fresh(exchange.request.target.encode()))
        self.proxy = self.encore()
        url = origin.url("").encode()
        self.assertEqual(ENCODED.encode(), self.ask(url + RAW, host=origin.authority).body)
        self.assertEqual(400, self.ask(b"http://\xc3\xa9.example/", host="x").status)
        self.assertEqual(400, self.ask(b"\xc3\xa9.example:443", method="CONNECT").status)

    def test_either_form_has_the_same_key(self):
        self.start_with()
        self.ask(RAW)
        for form in (RAW, ENCODED, "/caf%c3%a9", b"/x/../caf\xc3%A9"):
            self.assertIn("; hit", field(self.ask(form), "Cache-Status"), form)
        self.assertEqual(1, self.origin.count())

    def test_a_purge_finds_it(self):
        self.start_with({"purge_clients": ["127.0.0.1"]})
        self.ask(RAW)
        self.assertEqual(200, self.ask(RAW, method="PURGE").status)
        self.assertNotIn("; hit", field(self.ask(ENCODED), "Cache-Status"))

    def test_also_one_that_names_it_so_on_the_admin_listener(self):
        self.start_with()
        self.ask(RAW)
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.admin_port, timeout=30)
        connection.request("POST", "/purge", b'{"url": "http://a' + RAW + b'"}',
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        self.assertEqual((200, 1), (answer.status, json.loads(answer.read())["purged"]))
        connection.close()
        self.assertNotIn("; hit", field(self.ask(ENCODED), "Cache-Status"))

    def test_also_a_write_whose_response_names_it_so(self):
        self.start_with()
        self.ask(ENCODED)
        self.origin.routes["/form"] = (b"HTTP/1.1 303 See Other\r\nLocation: " + RAW +
                                       b"\r\nContent-Length: 0\r\n\r\n")
        self.assertEqual(303, self.ask("/form", method="POST").status)
        self.assertNotIn("; hit", field(self.ask(ENCODED), "Cache-Status"))

    def test_lists_see_what_the_origin_sees(self):
        self.start_with({"deny_paths": ["/caf\u00e9*", "/admin/*"]})
        self.assertEqual(403, self.ask(RAW).status)
        self.assertEqual(403, self.ask(ENCODED).status)
        # Forms of "/admin/" to a lax reader: in too many bytes, or of full width.
        for path in (b"/admin\xc0\xaf", b"/\xef\xbd\x81dmin/"):
            self.assertIn(self.ask(path + b"x").status, (400, 403), path)
        self.assertEqual(0, self.origin.count())

    def test_rules_see_it_too(self):
        self.start_with(rule=[{"name": "r", "path": ["/caf\u00e9"], "deny": 403}])
        self.assertEqual(403, self.ask(RAW).status)

    def test_the_limit_is_that_of_the_result(self):
        self.start_with()
        # 16 KiB of a target, of which a byte becomes three.
        longest = b"/" + b"\xc3" * 5461
        self.assertEqual(200, self.ask(longest).status)
        self.assertEqual(414, self.ask(longest + b"\xc3").status)

    def test_piece_by_piece_and_one_behind_the_other(self):
        self.start_with()
        with Client(self.proxy.port) as client:
            for piece in (b"GET /caf\xc3", b"\xa9 HTTP/1.1\r\nHo", b"st: a\r\n\r"):
                client.send(piece)
            request = b" HTTP/1.1\r\nHost: a\r\n\r\n"
            client.send(b"\nGET /\xc3\xa4" + request + b"GET /plain" + request + b"GET /\xc3\xa4" + request)
            self.assertEqual([ENCODED.encode(), b"/%C3%A4", b"/plain", b"/%C3%A4"],
                             [client.read_response().body for _ in range(4)])

    def test_nothing_else_comes_in_with_them(self):
        self.start_with()
        for target in (b"/\xc3\xa9#x", b"/\xc3\x7f", b"/\xc3\x00", b"/\xc3\t"):
            self.assertEqual(400, self.ask(target).status, target)
        self.assertEqual(0, self.origin.count())
