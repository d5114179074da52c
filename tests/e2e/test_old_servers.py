"""Servers that answer with HTTP/1.0 know no chunks (RFC 9112 6.1): they get a length, or nothing."""

from client import Client, field
from harness import Case, free_port
from origin import Origin, response


def old(exchange):
    return response(b"old", Connection="close").replace(b"HTTP/1.1", b"HTTP/1.0")


class OldServers(Case):
    def start_with(self, answer=old, **upstream):
        def route(exchange):
            exchange.close()
            return answer(exchange)
        self.origin = Origin(self, default=route)
        self.proxy = self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
            origin=[{"servers": [self.origin.url("")]}], upstream=upstream)

    def upload(self, chunks=(b"abc", b"de"), trailers=b""):
        with Client(self.proxy.port) as client:
            client.send(b"POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
            client.send(b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in chunks) +
                        b"0\r\n" + trailers + b"\r\n")
            return client.read_response()

    def learn(self):
        with Client(self.proxy.port) as client:
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(200, client.read_response().status)

    def last(self):
        return dict(self.origin.last("/up").fields)

    def test_a_buffered_body_goes_with_its_length(self):
        self.start_with(buffer_requests="1KiB")
        self.learn()
        self.assertEqual(200, self.upload(trailers=b"X: y\r\n").status)
        self.assertEqual("5", self.last().get("content-length"))
        self.assertNotIn("transfer-encoding", self.last())
        self.assertEqual(b"abcde", self.origin.last("/up").body)
        self.assertEqual(200, self.upload(()).status)
        self.assertEqual("0", self.last().get("content-length"))

    def test_what_is_not_buffered_whole_is_refused(self):
        for chunks, upstream in (((b"abc",), {}), ((b"x" * 700,) * 3, {"buffer_requests": "1KiB"})):
            with self.subTest(upstream):
                self.start_with(**upstream)
                self.learn()
                answer = self.upload(chunks)
                self.assertEqual(411, answer.status)
                self.assertIn("length-required", field(answer, "Cache-Status"))
                self.assertEqual(0, self.origin.count("/up"))

    def test_who_sends_a_length_is_not_concerned(self):
        self.start_with()
        self.learn()
        with Client(self.proxy.port) as client:
            client.send("POST /up HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
            self.assertEqual(200, client.read_response().status)
        self.assertEqual(b"abc", self.origin.last("/up").body)

    def test_a_server_that_nothing_is_known_of_gets_one_try(self):
        self.start_with()
        self.assertEqual(200, self.upload().status)
        self.assertEqual("chunked", self.last().get("transfer-encoding"))
        self.assertEqual(411, self.upload().status)

    def test_one_that_answers_with_a_later_version_is_no_longer_old(self):
        versions = iter([b"HTTP/1.0", b"HTTP/1.1"])
        self.start_with(lambda exchange: response(b"x").replace(
            b"HTTP/1.1", next(versions, b"HTTP/1.1")))
        self.learn()
        self.assertEqual(411, self.upload().status)
        self.learn()
        self.assertEqual(200, self.upload().status)
