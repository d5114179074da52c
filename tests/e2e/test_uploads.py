"""Request bodies: responses that come before their end, clients and origins that leave during
them."""

import socket
import threading
import unittest

from client import Client, field, get
from harness import SLOWDOWN, Case, eventually
from origin import Origin, fresh, response

MIB = 1 << 20


class RawOrigin:
    """Reads a request's head and `take` bytes behind it, sends `answer`, and closes immediately, so
    that the system resets the connection for the unread bytes."""

    def __init__(self, case, answer, take=0):
        self.answer, self.take = answer, take
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.requests = 0
        case.addCleanup(self.listener.close)
        threading.Thread(target=self._run, daemon=True).start()

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.port}{path}"

    def _run(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with sock:
                data = b""
                while b"\r\n\r\n" not in data:
                    data += sock.recv(1)
                left = self.take
                while left > 0:
                    left -= len(sock.recv(left))
                self.requests += 1
                sock.sendall(self.answer)


def post_head(url, size):
    authority = url.split("/")[2]
    return f"POST {url} HTTP/1.1\r\nHost: {authority}\r\nContent-Length: {size}\r\n\r\n"


class EarlyAnswers(Case):
    def test_an_answer_before_the_upload_ends_reaches_the_client_though_the_origin_closes(self):
        origin = RawOrigin(self, response(b"too large", "413 Content Too Large"), take=1000)
        encore = self.encore()
        for _ in range(20):  # whether the reset comes before the answer is read is chance
            with Client(encore.port) as client:
                client.send(post_head(origin.url("/up"), 64 * MIB))
                try:
                    for _ in range(64):
                        client.send(bytes(MIB))
                except OSError:
                    pass
                answer = client.read_response()
                self.assertEqual((413, b"too large"), (answer.status, answer.body))
                self.assertTrue(client.at_end())

    def test_a_connection_is_not_kept_when_its_response_said_close(self):
        origin = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(origin.close)
        port = origin.getsockname()[1]

        def run():
            sock, _ = origin.accept()
            with sock:
                data = b""
                while b"\r\n\r\n" not in data:
                    data += sock.recv(65536)
                sock.sendall(b"HTTP/1.1 200 OK\r\nConnection: close\r\n"
                             b"Content-Length: 4\r\n\r\nea")
                while not data.endswith(b"end"):
                    data += sock.recv(65536)
                sock.sendall(b"rl")
                sock.recv(1)
        threading.Thread(target=run, daemon=True).start()
        encore = self.encore()
        with Client(encore.port) as client:
            client.send(post_head(f"http://127.0.0.1:{port}/", 3))
            head = client.read_head()
            self.assertEqual("close", field(head, "Connection"))
            self.assertEqual(b"ea", client.read_exactly(2))
            client.send(b"end")
            self.assertEqual(b"rl", client.read_exactly(2))
            self.assertTrue(client.at_end())

    def test_a_broken_body_behind_an_answer_under_way_ends_it_visibly(self):
        go = threading.Event()
        origin = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(origin.close)
        port = origin.getsockname()[1]

        def run():
            sock, _ = origin.accept()
            with sock:
                data = b""
                while b"\r\n\r\n" not in data:
                    data += sock.recv(65536)
                sock.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegin")
                go.wait(60)
        threading.Thread(target=run, daemon=True).start()
        self.addCleanup(go.set)
        encore = self.encore()
        with Client(encore.port) as client:
            client.send(f"POST http://127.0.0.1:{port}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
                        "Transfer-Encoding: chunked\r\n\r\n")
            client.read_head()
            self.assertEqual(b"begin", client.read_exactly(5))
            client.send(b"no chunk\r\n")
            self.assertEqual(b"", client.read_to_end())


class Leavers(Case):
    def test_a_client_that_leaves_while_its_upload_is_pending_harms_nothing(self):
        # The response may be stored and is finished without the client, while the origin takes up
        # reading the upload again.
        go = threading.Event()
        origin = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(origin.close)
        self.addCleanup(go.set)
        port = origin.getsockname()[1]
        drained = threading.Event()

        def serve(sock):
            with sock:
                data = b""
                while b"\r\n\r\n" not in data:
                    data += sock.recv(1)
                answer = fresh(b"x" * 1000)
                sock.sendall(answer[:-500])
                go.wait(60)
                try:
                    sock.settimeout(1)
                    while sock.recv(65536):
                        pass
                    sock.sendall(answer[-500:])
                except OSError:
                    pass
                drained.set()

        def run():
            while True:
                try:
                    sock, _ = origin.accept()
                except OSError:
                    return
                threading.Thread(target=serve, args=(sock,), daemon=True).start()
        threading.Thread(target=run, daemon=True).start()
        encore = self.encore(admission={"policy": "always"})
        for _ in range(3):
            go.clear()
            drained.clear()
            client = Client(encore.port)
            client.send(post_head(f"http://127.0.0.1:{port}/store", 64 * MIB))
            client.sock.settimeout(0.3)
            try:
                for _ in range(64):
                    client.send(bytes(MIB))
            except OSError:
                pass
            client.reset()
            go.set()
            self.assertTrue(drained.wait(60))
        eventually(lambda: encore.metrics()["encore_transfers"] == 0, "no transfer is left")
        eventually(lambda: encore.metrics()["encore_client_connections"] == 0, "no client is left")
        self.assertEqual(200, encore.admin("/healthz")[0])

    def test_a_put_goes_on_a_connection_of_its_own(self):
        # Its body is not kept for another attempt, should a kept connection be dead.
        origin = Origin(self, default=response(b"ok"))
        encore = self.encore()
        with Client(encore.port) as client:
            client.ask(origin.url("/a"))
            answer = client.ask(origin.url("/b"), method="PUT", body=b"data")
        self.assertEqual(200, answer.status)
        self.assertEqual(2, origin.connections)


class HalfClosed(Case):
    """Clients that send all they have, say that it is all, and then read."""

    def serve(self, exchange):
        exchange.wait(self.go)
        return response(b"%d bytes" % len(exchange.request.body))

    def setUp(self):
        super().setUp()
        self.go = threading.Event()

    def send_all(self, encore, text):
        client = Client(encore.port)
        self.addCleanup(client.close)
        client.send(text)
        client.shutdown()
        return client

    def test_a_body_that_waits_for_its_origin_is_not_lost(self):
        # The origin takes the connection only later: the body is kept, and behind it the end.
        encore = self.encore()
        for coding in ("Content-Length: 5\r\n\r\nhello",
                       "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"):
            origin = Origin(self, {"/up": self.serve})
            client = self.send_all(encore, f"POST {origin.url('/up')} HTTP/1.1\r\n"
                                           f"Host: {origin.authority}\r\n{coding}")
            self.go.set()
            self.assertEqual(b"5 bytes", client.read_response().body)
            self.assertTrue(client.at_end())

    def test_a_body_that_breaks_off_is_never_answered(self):
        encore = self.encore()
        origin = Origin(self, {"/up": self.serve})
        self.go.set()
        client = self.send_all(encore, f"POST {origin.url('/up')} HTTP/1.1\r\n"
                                       f"Host: {origin.authority}\r\nContent-Length: 9\r\n\r\nhello")
        self.assertEqual(b"", client.read_to_end())
        self.assertEqual(0, origin.count())

    def test_every_request_before_the_end_is_answered(self):
        # Some by the origin, some by the proxy itself.
        encore = self.encore()
        origin = Origin(self, default=fresh(b"here"))
        self.go.set()
        host = f"Host: {origin.authority}\r\n"
        own = f"TRACE {origin.url('/')} HTTP/1.1\r\n{host}\r\n"
        asked = f"GET {origin.url('/page')} HTTP/1.1\r\n{host}\r\n"
        client = self.send_all(encore, (asked + own) * 4 + asked)
        statuses = [client.read_response().status for _ in range(9)]
        self.assertEqual([200, 405] * 4 + [200], statuses)
        self.assertTrue(client.at_end())


class Pace(Case):
    def drip(self, client, head, piece):
        """Sends a piece each tenth of a second until there is an answer, which it reads."""
        client.send(head)
        client.sock.settimeout(0.1)
        while True:
            try:
                client.buffer += client.sock.recv(4096)
                break
            except TimeoutError:
                client.send(piece)
        client.sock.settimeout(30)
        return client.read_response()

    def test_a_body_that_drips_is_refused_however_steadily(self):
        origin = Origin(self, default=response(b"taken"))
        encore = self.encore(timeouts={"client_body": "500ms"},
                             limits={"client_body_rate_min": "500B"})
        for head, piece in ((post_head(origin.url(), 1000), b"x"),
                            (f"POST {origin.url()} HTTP/1.1\r\nHost: {origin.authority}\r\n"
                             "Transfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n")):
            with Client(encore.port) as client:
                self.assertEqual(408, self.drip(client, head, piece).status)
        with Client(encore.port) as client:
            self.assertEqual(b"taken", self.drip(client, post_head(origin.url(), 2000),
                                                 bytes(100)).body)

    def test_an_origin_that_takes_a_body_slowly_is_not_held_against_its_client(self):
        size = 16 * MIB
        go = threading.Event()
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def serve():
            sock, _ = listener.accept()
            with sock:
                go.wait(60)
                while size > 0 and sock.recv(MIB, socket.MSG_PEEK):
                    taken = 0
                    while taken < size:
                        taken += len(sock.recv(MIB))
                    sock.sendall(response(b"taken"))
                    sock.recv(1)
                    return
        threading.Thread(target=serve, daemon=True).start()
        encore = self.encore(timeouts={"client_body": "1s"},
                             limits={"client_body_rate_min": "1KiB"})
        url = "http://127.0.0.1:%d/" % listener.getsockname()[1]
        with Client(encore.port) as client:
            def send():
                client.send(post_head(url, size))
                client.send(bytes(size))
            sender = threading.Thread(target=send)
            sender.start()
            threading.Event().wait(3)  # three times what a client may pause
            go.set()
            self.assertEqual(b"taken", client.read_response().body)
            sender.join()

    def test_the_time_of_a_client_begins_when_its_origin_takes_more(self):
        # All that the client has sent has been read and waits for the origin, which takes nothing
        # for longer than a client may pause. Then it does, and now the client pauses: it may.
        go = threading.Event()
        listener = socket.create_server(("127.0.0.1", 0))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.addCleanup(listener.close)
        pause, piece, pieces = 3 * SLOWDOWN, bytes(32 << 10), 1000
        state = {"sent": 0}
        drained = threading.Event()

        def serve():
            sock, _ = listener.accept()
            with sock:
                go.wait(120)
                head, _, rest = sock.recv(MIB).partition(b"\r\n\r\n")
                taken = len(rest)
                while taken < len(piece) * pieces:
                    if taken == state["sent"]:
                        drained.set()
                    data = sock.recv(MIB)
                    if not data:
                        return
                    taken += len(data)
                sock.sendall(response(b"taken"))
                sock.recv(1)
        threading.Thread(target=serve, daemon=True).start()
        encore = self.encore(timeouts={"client_body": f"{pause}s"})
        url = "http://127.0.0.1:%d/" % listener.getsockname()[1]

        def given():
            return encore.metrics()["encore_origin_sent_bytes_total"]

        with Client(encore.port) as client:
            client.send(post_head(url, len(piece) * pieces))
            eventually(given, "the request's head goes to the origin")
            head_bytes = given()
            while True:
                self.assertLess(state["sent"], len(piece) * pieces, "the origin took all")
                client.send(piece)
                state["sent"] += len(piece)
                try:
                    eventually(lambda: given() == head_bytes + state["sent"], "it is passed on", 0.5)
                except AssertionError:
                    break
            threading.Event().wait(1.3 * pause)
            go.set()
            self.assertTrue(drained.wait(30))
            threading.Event().wait(0.4 * pause)  # several checks of long waits
            client.send(piece * (pieces - state["sent"] // len(piece)))
            self.assertEqual(b"taken", client.read_response().body)


class OwnReplies(Case):
    def test_a_client_of_1_0_is_told_that_an_error_ends_its_connection(self):
        encore = self.encore()
        with socket.create_server(("127.0.0.1", 0)) as s:
            port = s.getsockname()[1]
        with Client(encore.port) as client:
            client.request(f"http://127.0.0.1:{port}/", version="HTTP/1.0",
                           fields=[("Connection", "keep-alive")])
            answer = client.read_response()
            self.assertEqual((502, "close"), (answer.status, field(answer, "Connection")))
            self.assertTrue(client.at_end())

    def test_a_204_carries_no_length(self):
        origin = Origin(self, default=b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n")
        encore = self.encore()
        self.assertIsNone(field(get(encore.port, origin.url("/")), "Content-Length"))


if __name__ == "__main__":
    unittest.main()
