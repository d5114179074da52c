"""Clients of the admin listener that are slow, greedy, broken or many."""

import contextlib
import json
import os
import socket
import threading
import unittest

from client import Client, NoResponse, field
from harness import Case, eventually, sanitized

TOKEN = "0123456789abcdef.the-token"
CONNECTIONS_MAX = 256  # limit of the listener


class AdminClients(Case):
    def asks(self, path="/healthz", method="GET", *fields):
        head = [f"{method} {path} HTTP/1.1", "Host: localhost", *fields]
        return "\r\n".join(head) + "\r\n\r\n"

    def descriptors(self, encore):
        return len(os.listdir(f"/proc/{encore.process.pid}/fd"))

    def assert_serves(self, encore):
        self.assertEqual((200, "ok\n"), encore.admin("/healthz"))

    def refused(self, encore, request):
        """The status of what cannot be read, after which the connection ends."""
        with Client(encore.admin_port) as client:
            client.send(request)
            answer = client.read_response()
            self.assertEqual("close", field(answer, "connection"))
            self.assertTrue(client.at_end(), "nothing comes behind it")
        self.assert_serves(encore)
        return answer.status

    def test_a_slow_reader_of_a_long_answer(self):
        token = self.directory / "token"
        token.write_text(TOKEN)
        token.chmod(0o600)
        encore = self.encore(admin={"token_file": str(token)}, admission={"capacity": 8_000_000})
        with Client(encore.admin_port) as slow:
            slow.send(self.asks("/filter", "GET", f"Authorization: Bearer {TOKEN}"))
            head = slow.read_head()
            length = int(field(head, "content-length"))
            self.assertGreater(length, 20 << 20)
            # Nothing waits for it, and it gets all.
            for _ in range(20):
                self.assert_serves(encore)
            self.assertEqual(length, len(slow.read_exactly(length)))
            # Its connection goes on.
            slow.send(self.asks())
            self.assertEqual(b"ok\n", slow.read_response().body)

    def test_slow_readers_hold_one_text_each(self):
        encore = self.encore()
        size = len(encore.admin("/metrics")[1])
        before = encore.resident_bytes()
        readers = []
        with contextlib.ExitStack() as stack:
            for _ in range(50):
                reader = stack.enter_context(Client(encore.admin_port, receive_buffer=4096))
                # More than one answer is asked for, and only one is made.
                reader.send(self.asks("/metrics") * 200)
                readers.append(reader)
            for reader in readers:
                self.assertEqual(200, reader.read_head().status)
            self.assert_serves(encore)
            if not sanitized():
                self.assertLess(encore.resident_bytes() - before, 50 * 4 * size + (20 << 20))

    def test_pipelined_requests_are_answered_in_their_order(self):
        encore = self.encore()
        pages = [("GET", "/healthz"), ("HEAD", "/metrics"), ("GET", "/no-such-page"),
                 ("GET", "/readyz"), ("POST", "/healthz"), ("GET", "/api/stats")]
        text = "".join(self.asks(path, method, "Content-Length: 0") for method, path in pages)
        for ends in (False, True):
            with Client(encore.admin_port) as client:
                client.send(text)
                if ends:
                    client.shutdown()
                answers = [client.read_response(method) for method, _ in pages]
                self.assertEqual([200, 200, 404, 200, 405, 200], [a.status for a in answers])
                self.assertEqual(b"ok\n", answers[0].body)
                self.assertGreater(int(field(answers[1], "content-length")), 1000)
                self.assertIn("requests", json.loads(answers[5].body))
                if ends:
                    self.assertTrue(client.at_end())

    def test_a_head_that_is_too_large(self):
        encore = self.encore()
        for request in ("GET / HTTP/1.1\r\nHost: localhost\r\nX: " + "x" * 20000 + "\r\n\r\n",
                        "GET / HTTP/1.1\r\nHost: localhost\r\nX: " + "x" * 20000,
                        "GET / HTTP/1.1\r\n" + "X: x\r\n" * 1000 + "\r\n"):
            self.assertEqual(431, self.refused(encore, request))
        self.assertEqual(200, encore.admin("/healthz", headers={"X": "x" * 15000})[0])

    def test_a_body_that_is_too_large(self):
        encore = self.encore()
        head = "POST /purge HTTP/1.1\r\nHost: localhost\r\n"
        # It is answered before it comes, in chunks when they are too many.
        self.assertEqual(413, self.refused(encore, head + f"Content-Length: {1 << 40}\r\n\r\nx"))
        chunk = f"{1 << 16:x}\r\n" + "x" * (1 << 16) + "\r\n"
        self.assertEqual(413, self.refused(
            encore, head + "Transfer-Encoding: chunked\r\n\r\n" + chunk * 17))

    def test_a_request_that_can_be_read_in_two_ways(self):
        encore = self.encore()
        head = "POST /purge HTTP/1.1\r\nHost: localhost\r\n"
        inside = self.asks()
        for request in (
                head + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + inside,
                head + "Content-Length: 0\r\nContent-Length: 5\r\n\r\n" + inside,
                head + "Content-Length : 5\r\n\r\n" + inside,
                head + "X: y\r\n Content-Length: 5\r\n\r\n" + inside,
                head + "Content-Length: +0\r\n\r\n" + inside,
                "GET /healthz HTTP/1.1\nHost: localhost\n\n" + inside):
            self.assertEqual(400, self.refused(encore, request), request)

    def test_half_a_request_ends(self):
        encore = self.encore()
        requests = {"head": "GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: ",
                    "body": "POST /purge HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999\r\n\r\n"}
        ended = {}

        def drip(name):
            """A byte each half second, so that the connection is never silent."""
            with Client(encore.admin_port, timeout=.5) as client:
                client.send(requests[name])
                while name not in ended:
                    try:
                        client.send("x")
                        if not client.sock.recv(1000):
                            ended[name] = True
                    except TimeoutError:
                        pass
                    except ConnectionError:
                        ended[name] = True
        threads = [threading.Thread(target=drip, args=(name,)) for name in requests]
        for thread in threads:
            thread.start()
        self.addCleanup(lambda: [ended.setdefault(name) for name in requests] and
                        [thread.join() for thread in threads])
        eventually(lambda: len(ended) == 2, "both are closed")
        self.assertIn("a transfer of the admin listener was too slow", encore.output())
        self.assert_serves(encore)

    def test_connections_that_ask_nothing_give_way(self):
        encore = self.encore()
        with contextlib.ExitStack() as stack:
            descriptors = self.descriptors(encore)
            many = []
            for i in range(CONNECTIONS_MAX + 50):
                client = stack.enter_context(Client(encore.admin_port))
                client.send("GET /he" if i % 2 else b"")
                many.append(client)
            # A request is answered, at the cost of those that have been silent for longest.
            self.assert_serves(encore)
            self.assertLess(self.descriptors(encore) - descriptors, CONNECTIONS_MAX + 10)
            self.assertTrue(many[0].at_end())
            last = many[-1]
            last.send("althz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            self.assertEqual(b"ok\n", last.read_response().body)

    def test_a_client_that_leaves_in_the_middle(self):
        encore = self.encore()
        for request in ("GET /he", self.asks("/api/history"), self.asks() * 50,
                        "POST /purge HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nab"):
            for leave in (Client.reset, Client.close, Client.shutdown):
                client = Client(encore.admin_port)
                self.addCleanup(client.close)
                client.send(request)
                with contextlib.suppress(OSError):
                    leave(client)
        self.assert_serves(encore)
        with socket.create_connection(("127.0.0.1", encore.admin_port)) as silent:
            encore.stop()  # clean, with a connection open
            silent.settimeout(30)
            self.assertEqual(b"", silent.recv(10))
        with self.assertRaises((NoResponse, OSError)):
            with Client(encore.admin_port) as client:
                client.send(self.asks())
                client.read_response()


if __name__ == "__main__":
    unittest.main()
