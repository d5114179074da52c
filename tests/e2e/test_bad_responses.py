"""Origins that misbehave: what the client gets, and that nothing of it is ever stored."""

import unittest

from client import Client, NoResponse, get
from harness import Case, eventually
from origin import Origin, fresh, response

OK = "HTTP/1.1 200 OK\r\nCache-Control: max-age=600\r\n"

# (name, bytes): the head cannot be trusted, the client gets 502.
REFUSED = [
    ("length and transfer coding",
     OK + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"),
    ("two lengths that differ", OK + "Content-Length: 5\r\nContent-Length: 4\r\n\r\nhello"),
    ("a list of lengths that differ", OK + "Content-Length: 5, 4\r\n\r\nhello"),
    ("a negative length", OK + "Content-Length: -5\r\n\r\nhello"),
    ("a length with a sign", OK + "Content-Length: +5\r\n\r\nhello"),
    ("a length beyond 63 bits", OK + "Content-Length: 9223372036854775808\r\n\r\nhello"),
    ("bare LF line ends", "HTTP/1.1 200 OK\nContent-Length: 5\n\nhello"),
    ("a bare LF", "HTTP/1.1 200 OK\r\nX: y\nContent-Length: 5\r\n\r\nhello"),
    ("a bare CR", OK + "X: a\rb\r\nContent-Length: 5\r\n\r\nhello"),
    ("obs-fold", OK + "X: a\r\n b\r\nContent-Length: 5\r\n\r\nhello"),
    ("space before a colon", OK + "Content-Length : 5\r\n\r\nhello"),
    ("NUL in a value", OK + "X: a\x00b\r\nContent-Length: 5\r\n\r\nhello"),
    ("no colon", OK + "nonsense\r\nContent-Length: 5\r\n\r\nhello"),
    ("no status line", "hello, this is no HTTP\r\n\r\n"),
    ("a status of two digits", "HTTP/1.1 20 OK\r\nContent-Length: 5\r\n\r\nhello"),
    ("a status of letters", "HTTP/1.1 abc OK\r\nContent-Length: 5\r\n\r\nhello"),
    ("HTTP/2.0", "HTTP/2.0 200 OK\r\nContent-Length: 5\r\n\r\nhello"),
    ("HTTP/0.9", "hello"),
    ("nothing at all", ""),
    ("half a head", "HTTP/1.1 200 OK\r\nContent-Le"),
    ("a head too large", OK + "X: " + "a" * 70000 + "\r\nContent-Length: 5\r\n\r\nhello"),
    ("too many fields", OK + "X: y\r\n" * 300 + "Content-Length: 5\r\n\r\nhello"),
    ("a 304 that nobody asked for",
     "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nCache-Control: max-age=600\r\n\r\n"),
    ("a switch of protocol not asked for", "HTTP/1.1 101 Switching Protocols\r\n\r\n"),
]

# (name, bytes): the head is good, the body is not; the client must see that it is not whole.
BROKEN = [
    ("a body too short", OK + "Content-Length: 10\r\n\r\nhello"),
    ("chunks that end early", OK + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"),
    ("a chunk that ends early", OK + "Transfer-Encoding: chunked\r\n\r\nff\r\nhello"),
    ("a bad chunk size", OK + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz\r\n"),
    ("a chunk size beyond 64 bits",
     OK + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n10000000000000000\r\n"),
    ("bare LF behind a chunk size", OK + "Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n"),
    ("a chunk longer than its size",
     OK + "Transfer-Encoding: chunked\r\n\r\n3\r\nhello\r\n0\r\n\r\n"),
    ("endless trailers",
     OK + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n" + "X: y\r\n" * 20000 + "\r\n"),
]


def raw(text):
    def send(exchange):
        exchange.send(text.encode("latin-1"))
        exchange.close()
    return send


class BadResponses(Case):
    def setUp(self):
        super().setUp()
        self.origin = Origin(self, {"/fine": fresh(b"fine")})
        self.encore_process = self.encore(timeouts={"origin_response": "5s"})

    def route(self, table):
        for number, (what, text) in enumerate(table):
            self.origin.routes[f"/{number}"] = raw(text)
            yield what, f"/{number}"

    def test_a_head_that_cannot_be_trusted_becomes_502_and_is_never_stored(self):
        for what, path in self.route(REFUSED):
            with self.subTest(what):
                for _ in range(3):
                    answer = get(self.encore_process.port, self.origin.url(path))
                    self.assertEqual(502, answer.status)
                self.assertGreaterEqual(self.origin.count(path), 3)
        self.assertEqual(b"fine", get(self.encore_process.port, self.origin.url("/fine")).body)

    def test_a_body_that_ends_wrongly_is_never_passed_off_as_whole_nor_stored(self):
        for what, path in self.route(BROKEN):
            with self.subTest(what):
                for _ in range(3):
                    try:
                        answer = get(self.encore_process.port, self.origin.url(path))
                        self.assertEqual(502, answer.status)
                    except NoResponse:
                        pass
                self.assertGreaterEqual(self.origin.count(path), 3)
        self.assertEqual(b"fine", get(self.encore_process.port, self.origin.url("/fine")).body)

    def test_a_reset_before_the_head_is_502_and_after_it_an_early_end(self):
        def late(exchange):
            exchange.send((OK + "Content-Length: 100000\r\n\r\n").encode() + b"x" * 50000)
            exchange.reset()
        self.origin.routes["/early"] = lambda x: x.reset()
        self.origin.routes["/late"] = late
        self.assertEqual(502, get(self.encore_process.port, self.origin.url("/early")).status)
        for _ in range(3):
            try:
                answer = get(self.encore_process.port, self.origin.url("/late"))
                self.assertEqual(502, answer.status)
            except NoResponse:
                pass
        self.assertEqual(3, self.origin.count("/late"))

    def test_a_response_that_is_cut_takes_no_whole_one_before_it_along(self):
        # Little enough to be left to the kernel, which cannot send it yet.
        body = bytes(range(256)) * 240
        head = OK + "Cache-Control: no-store\r\n"
        self.origin.routes["/big"] = response(body, Cache_Control="no-store")
        for number, cut in enumerate((head + "Content-Length: 1000\r\n\r\nsome",
                                      head + "Transfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n")):
            self.origin.routes["/cut"] = raw(cut)
            with Client(self.encore_process.port, receive_buffer=4096) as client:
                client.request(self.origin.url("/big"))
                client.request(self.origin.url("/cut"))
                # Nothing is read before the proxy has aborted the second.
                eventually(lambda n=number: self.encore_process.outcomes().get("origin-aborted", 0)
                           == n + 1, "the second is cut")
                self.assertEqual(body, client.read_response().body)
                with self.assertRaises(NoResponse):
                    client.read_response()

    def test_a_body_that_only_the_close_ends_is_cut_by_a_reset(self):
        self.origin.routes["/cut"] = raw(OK + "Transfer-Encoding: chunked\r\n\r\n4\r\nsome\r\n")
        with Client(self.encore_process.port) as client:
            client.request(self.origin.url("/cut"), version="HTTP/1.0")
            with self.assertRaises(ConnectionResetError):
                while client.sock.recv(4096):
                    pass

    def test_bytes_behind_a_response_never_answer_another_request(self):
        stray = response(b"stray", Cache_Control="max-age=600")
        self.origin.routes["/first"] = response(b"abc", Cache_Control="no-store") + stray
        with Client(self.encore_process.port) as client:
            for _ in range(5):
                self.assertEqual(b"abc", client.ask(self.origin.url("/first")).body)
                self.assertEqual(b"fine", client.ask(self.origin.url("/fine")).body)

    def test_a_body_of_204_304_and_head_is_not_taken_for_a_response(self):
        stray = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray"
        self.origin.routes["/204"] = b"HTTP/1.1 204 No Content\r\n\r\n" + stray
        with Client(self.encore_process.port) as client:
            for _ in range(3):
                self.assertEqual(204, client.ask(self.origin.url("/204")).status)
                self.assertEqual(b"fine", client.ask(self.origin.url("/fine")).body)

    def test_an_origin_that_says_nothing_is_given_up_in_time(self):
        self.encore_process.stop()
        encore = self.encore(timeouts={"origin_response": "1s"})
        self.origin.routes["/mute"] = lambda x: x.wait_until_closed()
        self.assertEqual(504, get(encore.port, self.origin.url("/mute")).status)

    def test_a_transfer_coding_that_we_cannot_undo_is_never_passed_off_as_content(self):
        for coding in ("gzip", "gzip, chunked", "gzip\r\nTransfer-Encoding: chunked",
                       "chunked, gzip", "chunked, chunked", "xchunked", "identity",
                       "identity, chunked"):
            with self.subTest(coding):
                self.origin.routes["/coded"] = raw(
                    f"{OK}Transfer-Encoding: {coding}\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
                for number in range(3):
                    url = self.origin.url(f"/coded?{coding.encode().hex()}")
                    answer = get(self.encore_process.port, url)
                    self.assertEqual(502, answer.status)
                    self.assertEqual(number + 1, self.origin.count(url.partition(
                        self.origin.authority)[2]))

    def test_nobody_listening_is_502(self):
        self.origin.stop()
        self.assertEqual(502, get(self.encore_process.port, self.origin.url("/fine")).status)

    def test_a_body_until_close_is_whole_for_clients_of_both_versions(self):
        self.origin.routes["/close"] = raw(OK + "\r\n" + "x" * 100000)
        for version in ("HTTP/1.1", "HTTP/1.0", "HTTP/1.1"):
            answer = get(self.encore_process.port, self.origin.url("/close"), version=version)
            self.assertEqual((200, 100000), (answer.status, len(answer.body)))


if __name__ == "__main__":
    unittest.main()
