"""Requests that two parsers could read differently: the exact status that each gets on the wire.

In each row {u} is the origin's URL and {h} its host. A refused request ends its connection, never
reaches the origin, and what follows it is never taken for a request.
"""

import unittest

from client import Client, NoResponse, field
from harness import Case
from origin import Origin, response

FOLLOW = "GET {u}/smuggled HTTP/1.1\r\nHost: {h}\r\n\r\n"
GET = "GET {u}/ok HTTP/1.1\r\nHost: {h}\r\n"
POST = "POST {u}/ok HTTP/1.1\r\nHost: {h}\r\n"
CHUNKED = POST + "Transfer-Encoding: chunked\r\n\r\n"

# (name, status, bytes)
REFUSED = [
    # Framing (RFC 9112 6.1, 6.3).
    ("length and transfer coding", 400,
     POST + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + FOLLOW),
    ("transfer coding and length", 400,
     POST + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n" + FOLLOW),
    ("two lengths that differ", 400,
     POST + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello" + FOLLOW),
    ("two equal lengths", 400, POST + "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello"),
    ("a list of lengths", 400, POST + "Content-Length: 5, 5\r\n\r\nhello"),
    ("a length with a sign", 400, POST + "Content-Length: +5\r\n\r\nhello"),
    ("a negative length", 400, POST + "Content-Length: -1\r\n\r\n"),
    ("a length that is no number", 400, POST + "Content-Length: five\r\n\r\nhello"),
    ("a hexadecimal length", 400, POST + "Content-Length: 0x5\r\n\r\nhello"),
    ("an empty length", 400, POST + "Content-Length:\r\n\r\n"),
    ("a length beyond 63 bits", 400, POST + "Content-Length: 9223372036854775808\r\n\r\n"),
    ("a length beyond 64 bits", 400, POST + "Content-Length: 18446744073709551617\r\n\r\nx"),
    ("a length with space within", 400, POST + "Content-Length: 1 0\r\n\r\nhello"),
    ("transfer coding in HTTP/1.0", 400,
     "POST {u}/ok HTTP/1.0\r\nHost: {h}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("chunked twice", 400, POST + "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n"),
    ("chunked on two lines", 400,
     POST + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    ("chunked not last", 400, POST + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n"),
    ("an unknown coding", 501, POST + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"),
    ("a coding before chunked", 501, POST + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
    ("an empty transfer coding", 400, POST + "Transfer-Encoding:\r\n\r\n0\r\n\r\n"),
    ("a quoted coding", 400, POST + 'Transfer-Encoding: "chunked"\r\n\r\n0\r\n\r\n'),
    ("a vertical tab before the coding", 400,
     POST + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n"),
    ("space before the colon of the coding", 400,
     POST + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n"),
    # Line ends and white space (RFC 9112 2.2, 5.1, 5.2).
    ("bare LF after the request line", 400, "GET {u}/ok HTTP/1.1\nHost: {h}\r\n\r\n"),
    ("bare LF after a field", 400, "GET {u}/ok HTTP/1.1\r\nHost: {h}\nX: y\r\n\r\n"),
    ("bare LFs at the end", 400, "GET {u}/ok HTTP/1.1\r\nHost: {h}\n\n"),
    ("bare CR in a value", 400, GET + "X: a\rb\r\n\r\n"),
    ("bare CR that hides a field", 400, GET + "X: a\rContent-Length: 5\r\n\r\nhello"),
    ("CR CR LF", 400, GET + "X: a\r\r\n\r\n"),
    ("obs-fold", 400, GET + "X: a\r\n b\r\n\r\n"),
    ("obs-fold with a tab", 400, GET + "X: a\r\n\tb\r\n\r\n"),
    ("obs-fold of the coding", 400,
     POST + "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n"),
    ("space before the first field", 400, "GET {u}/ok HTTP/1.1\r\n Host: {h}\r\n\r\n"),
    ("space before a colon", 400, GET + "X : y\r\n\r\n"),
    ("tab before a colon", 400, GET + "X\t: y\r\n\r\n"),
    ("no name", 400, GET + ": y\r\n\r\n"),
    ("no colon", 400, GET + "nonsense\r\n\r\n"),
    ("a space in a name", 400, GET + "X Y: z\r\n\r\n"),
    ("NUL in a value", 400, GET + "X: a\x00b\r\n\r\n"),
    ("NUL in a name", 400, GET + "X\x00: b\r\n\r\n"),
    ("NUL in the target", 400, "GET {u}/ok\x00 HTTP/1.1\r\nHost: {h}\r\n\r\n"),
    ("DEL in a value", 400, GET + "X: a\x7fb\r\n\r\n"),
    ("a byte beyond ASCII in a name", 400, GET + "X\xe4: b\r\n\r\n"),
    # Request line (RFC 9112 3).
    ("two spaces after the method", 400, "GET  {u}/ok HTTP/1.1\r\nHost: {h}\r\n\r\n"),
    ("a tab after the method", 400, "GET\t{u}/ok HTTP/1.1\r\nHost: {h}\r\n\r\n"),
    ("a space in the target", 400, "GET {u}/ok x HTTP/1.1\r\nHost: {h}\r\n\r\n"),
    ("a space behind the version", 400, "GET {u}/ok HTTP/1.1 \r\nHost: {h}\r\n\r\n"),
    ("no version", 400, "GET {u}/ok\r\nHost: {h}\r\n\r\n"),
    ("a version in small letters", 400, "GET {u}/ok http/1.1\r\nHost: {h}\r\n\r\n"),
    ("a version without a dot", 400, "GET {u}/ok HTTP/11\r\nHost: {h}\r\n\r\n"),
    ("a version of two digits", 400, "GET {u}/ok HTTP/1.10\r\nHost: {h}\r\n\r\n"),
    ("HTTP/2.0", 505, "GET {u}/ok HTTP/2.0\r\nHost: {h}\r\n\r\n"),
    ("a method with a parenthesis", 400, "G(T {u}/ok HTTP/1.1\r\nHost: {h}\r\n\r\n"),
    ("TLS to a plain port", 400, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
    # Target and Host (RFC 9112 3.2).
    ("no Host", 400, "GET {u}/ok HTTP/1.1\r\n\r\n"),
    ("two Hosts", 400, GET + "Host: {h}\r\n\r\n"),
    ("two Hosts that differ", 400, GET + "Host: other.example\r\n\r\n"),
    ("a Host with a path", 400, "GET {u}/ok HTTP/1.1\r\nHost: {h}/x\r\n\r\n"),
    ("a Host with user information", 400, "GET {u}/ok HTTP/1.1\r\nHost: a@{h}\r\n\r\n"),
    ("a Host with a bad port", 400, "GET {u}/ok HTTP/1.1\r\nHost: a.example:99999\r\n\r\n"),
    ("a list of hosts", 400, "GET {u}/ok HTTP/1.1\r\nHost: {h}, b.example\r\n\r\n"),
    ("user information in the target", 400, "GET http://a:b@{h}/ok HTTP/1.1\r\nHost: {h}\r\n\r\n"),
    ("another scheme", 400, "GET ftp://{h}/ok HTTP/1.1\r\nHost: {h}\r\n\r\n"),
    ("no host in the target", 400, "GET http:///ok HTTP/1.1\r\nHost: {h}\r\n\r\n"),
    ("an asterisk for GET", 400, "GET * HTTP/1.1\r\nHost: {h}\r\n\r\n"),
    ("authority form for GET", 400, "GET {h} HTTP/1.1\r\nHost: {h}\r\n\r\n"),
    ("CONNECT with a path", 400, "CONNECT {u}/ok HTTP/1.1\r\nHost: {h}\r\n\r\n"),
    ("CONNECT without a port", 400, "CONNECT a.example HTTP/1.1\r\nHost: a.example\r\n\r\n"),
    # Chunked bodies (RFC 9112 7.1).
    ("a chunk size that is no number", 400, CHUNKED + "zz\r\nhello\r\n0\r\n\r\n"),
    ("an empty chunk size", 400, CHUNKED + "\r\nhello\r\n0\r\n\r\n"),
    ("a negative chunk size", 400, CHUNKED + "-5\r\nhello\r\n0\r\n\r\n"),
    ("a chunk size with 0x", 400, CHUNKED + "0x5\r\nhello\r\n0\r\n\r\n"),
    ("a chunk size beyond 64 bits", 400, CHUNKED + "10000000000000005\r\nhello\r\n0\r\n\r\n"),
    ("a space before the chunk size", 400, CHUNKED + " 5\r\nhello\r\n0\r\n\r\n"),
    ("bare LF behind a chunk size", 400, CHUNKED + "5\nhello\r\n0\r\n\r\n"),
    ("bare CR behind a chunk size", 400, CHUNKED + "5\rxhello\r\n0\r\n\r\n"),
    ("bare LF in an extension", 400, CHUNKED + "5;a\nb\r\nhello\r\n0\r\n\r\n"),
    ("a chunk longer than its size", 400, CHUNKED + "3\r\nhello\r\n0\r\n\r\n" + FOLLOW),
    ("bare LF behind a chunk", 400, CHUNKED + "5\r\nhello\n0\r\n\r\n"),
    ("an endless extension", 400, CHUNKED + "5;" + "a" * 70000 + "\r\nhello\r\n0\r\n\r\n"),
    ("endless trailers", 400, CHUNKED + "0\r\n" + "X: y\r\n" * 20000 + "\r\n"),
    # Sizes (defaults: target 16 KiB, head 64 KiB, 256 fields).
    ("a target too long", 414, "GET {u}/" + "a" * 17000 + " HTTP/1.1\r\nHost: {h}\r\n\r\n"),
    ("a field too long", 431, GET + "X: " + "a" * 66000 + "\r\n\r\n"),
    ("too many fields", 431, GET + "X: y\r\n" * 300 + "\r\n"),
    ("a head without end", 431, GET + "X: y\r\n" + "Y: " + "b" * 200000),
    ("a line without end", 414, "GET {u}/" + "a" * 200000),
]

ACCEPTED = [
    ("one empty line before the request", "\r\n" + GET + "\r\n"),
    ("a Host that differs from the target, which wins",
     "GET {u}/ok HTTP/1.1\r\nHost: other.example\r\n\r\n"),
    ("a coding in capitals", POST + "Transfer-Encoding: CHUNKED\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
    ("chunk extensions", CHUNKED + '5;a=b;c="d"\r\nhello\r\n0\r\n\r\n'),
    ("a chunk size with zeros in front", CHUNKED + "00005\r\nhello\r\n0\r\n\r\n"),
    ("trailers", CHUNKED + "5\r\nhello\r\n0\r\nX: y\r\n\r\n"),
    ("white space around a value", GET + "X: \t y \t\r\n\r\n"),
    ("an empty value", GET + "X:\r\n\r\n"),
    ("bytes beyond ASCII in a value", GET + "X: \xe4\r\n\r\n"),
    ("HTTP/1.0 without Host", "GET {u}/ok HTTP/1.0\r\n\r\n"),
    ("a field of 60 KiB", GET + "X: " + "a" * 60000 + "\r\n\r\n"),
]


class Smuggling(Case):
    def setUp(self):
        super().setUp()
        self.origin = Origin(self, {"/ok": lambda x: response(b"fine" + x.request.body)})
        self.encore_process = self.encore()

    def fill(self, text):
        return text.replace("{u}", self.origin.url("")).replace("{h}", self.origin.authority)

    def test_each_ambiguous_request_is_refused_with_its_status_and_the_connection_closed(self):
        for what, status, text in REFUSED:
            before = self.origin.count()
            with self.subTest(what), Client(self.encore_process.port) as client:
                try:
                    client.send(self.fill(text))
                except OSError:
                    pass  # refused before all of it was sent
                answer = client.read_response()
                self.assertEqual(status, answer.status)
                self.assertTrue(client.at_end(), "the connection goes on")
                self.assertEqual(before, self.origin.count(), "it reached the origin")

    def test_a_request_in_pieces_of_one_byte_is_judged_alike(self):
        for what, status, text in REFUSED:
            if len(text) > 400:
                continue
            before = self.origin.count()
            with self.subTest(what), Client(self.encore_process.port) as client:
                try:
                    for byte in self.fill(text).encode("latin-1"):
                        client.send(bytes([byte]))
                except OSError:
                    pass
                self.assertEqual(status, client.read_response().status)
                self.assertEqual(before, self.origin.count())

    def test_what_is_merely_unusual_passes(self):
        for what, text in ACCEPTED:
            with self.subTest(what), Client(self.encore_process.port) as client:
                client.send(self.fill(text))
                answer = client.read_response()
                expected = b"finehello" if "hello" in text else b"fine"
                self.assertEqual((200, expected), (answer.status, answer.body))
                self.assertEqual(self.origin.authority,
                                 dict(self.origin.last().fields)["host"])

    def test_an_unfinished_body_never_becomes_a_request(self):
        for text in (POST + "Content-Length: 100\r\n\r\n" + FOLLOW, CHUNKED + "ff\r\n" + FOLLOW):
            with Client(self.encore_process.port) as client:
                client.send(self.fill(text))
                client.shutdown()
                try:
                    answer = client.read_response()
                    self.assertGreaterEqual(answer.status, 400)
                except NoResponse:
                    pass
        self.assertEqual(0, self.origin.count("/smuggled"))

    def test_a_refusal_is_not_stored_and_says_who_refused(self):
        with Client(self.encore_process.port) as client:
            client.send("GET / HTTP/1.1\r\nBad Name: x\r\n\r\n")
            answer = client.read_response()
        self.assertEqual(400, answer.status)
        self.assertEqual("close", field(answer, "Connection"))
        with Client(self.encore_process.port) as client:
            self.assertEqual(b"fine", client.ask(self.origin.url("/ok")).body)


if __name__ == "__main__":
    unittest.main()
