"""Complete responses before the end of their request's body (RFC 9110 10.1.1, RFC 9112 9.3): the rest
goes on to the origin, unless that closes the connection or takes no more."""

import socket
import threading
import unittest

from client import Client, field
from harness import Case, eventually
from origin import response

SIZE = 3_072_000
EARLY = 60_000
PIECE = bytes(i % 251 for i in range(1 << 16))


def body(size):
    return (PIECE * (size // len(PIECE) + 1))[:size]


class EarlyOrigin:
    """Answers POST when it has `EARLY` bytes of content, and reads on; `then` is what it does
    behind its answer: "read", "close" or "stall". Everything else it answers with "later"."""

    def __init__(self, case, answer, then="read", early=EARLY):
        self.answer, self.then, self.early = answer, then, early
        self.received = []  # bytes of content of each POST, as they stand
        self.whole = threading.Event()  # the content of one is complete
        self.connections = 0
        self.go_on = threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        case.addCleanup(self.go_on.set)
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
            self.connections += 1
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        try:
            with sock, sock.makefile("rb") as reader:
                while self._one(sock, reader):
                    pass
        except OSError:
            pass

    def _one(self, sock, reader):
        lines = []
        while (line := reader.readline().strip().lower()):
            lines.append(line)
        if not lines:
            return False
        fields = dict(line.split(b": ", 1) for line in lines[1:])
        if not lines[0].startswith(b"post"):
            sock.sendall(response(b"later"))
            return True
        content = self._content(reader, fields)
        place = len(self.received)
        self.received.append(b"")
        early = False
        for piece in content:
            self.received[place] += piece
            if not early and len(self.received[place]) >= self.early:
                early = True
                sock.sendall(self.answer)
                if self.then == "close":
                    return False
                if self.then == "stall":
                    self.go_on.wait(60)
                    return False
        self.whole.set()
        return True

    @staticmethod
    def _content(reader, fields):
        if fields.get(b"transfer-encoding") == b"chunked":
            while (size := int(reader.readline(), 16)):
                yield reader.read(size)
                reader.readline()
            reader.readline()
            return
        left = int(fields[b"content-length"])
        while left:
            piece = reader.read1(min(left, 1 << 16))
            if not piece:
                raise ConnectionError
            left -= len(piece)
            yield piece


class Early(Case):
    def begin(self, origin, coding=f"Content-Length: {SIZE}", **sections):
        self.proxy = self.encore(workers={"count": 1}, **sections)
        client = Client(self.proxy.port)
        self.addCleanup(client.close)
        client.send(f"POST {origin.url('/up')} HTTP/1.1\r\nHost: 127.0.0.1:{origin.port}\r\n"
                    f"{coding}\r\n\r\n")
        return client

    def check_goes_on(self, client, origin):
        """Both connections serve the next request."""
        answer = client.ask(origin.url("/next"))
        self.assertEqual((200, b"later"), (answer.status, answer.body))
        self.assertEqual(1, origin.connections)

    def test_the_rest_of_a_body_goes_to_the_origin_behind_its_complete_answer(self):
        for status in ("202 Accepted", "413 Content Too Large"):
            with self.subTest(status):
                origin = EarlyOrigin(self, response(b"early", status))
                client = self.begin(origin)
                client.send(body(SIZE)[:EARLY])
                answer = client.read_response()
                self.assertEqual((status[:3], b"early"), (str(answer.status), answer.body))
                self.assertNotEqual("close", field(answer, "Connection"))
                client.send(body(SIZE)[EARLY:])
                self.assertTrue(origin.whole.wait(60))
                self.assertEqual(body(SIZE), origin.received[0])
                self.check_goes_on(client, origin)

    def test_the_same_of_a_chunked_body_and_of_an_answer_without_content(self):
        origin = EarlyOrigin(self, b"HTTP/1.1 204 No Content\r\n\r\n")
        client = self.begin(origin, "Transfer-Encoding: chunked")
        whole = body(200_000)
        for start in range(0, len(whole), 20_000):
            piece = whole[start:start + 20_000]
            client.send(b"%x\r\n%s\r\n" % (len(piece), piece))
            if start == 100_000:
                self.assertEqual(204, client.read_response().status)
        client.send("0\r\n\r\n")
        self.assertTrue(origin.whole.wait(60))
        self.assertEqual(whole, origin.received[0])
        self.check_goes_on(client, origin)

    def test_a_client_that_reads_only_behind_its_body_loses_nothing(self):
        origin = EarlyOrigin(self, response(b"early", "202 Accepted"))
        client = self.begin(origin)
        client.send(body(SIZE))
        self.assertEqual(b"early", client.read_response().body)
        self.assertTrue(origin.whole.wait(60))
        self.assertEqual(body(SIZE), origin.received[0])
        self.check_goes_on(client, origin)

    def test_what_waits_in_the_pipeline_is_answered_behind_the_rest(self):
        origin = EarlyOrigin(self, response(b"early", "202 Accepted"))
        client = self.begin(origin)
        client.send(body(SIZE)[:EARLY])
        self.assertEqual(b"early", client.read_response().body)
        host = f"127.0.0.1:{origin.port}"
        client.send(body(SIZE)[EARLY:] +
                    f"GET http://{host}/a HTTP/1.1\r\nHost: {host}\r\n\r\n".encode() * 3)
        for _ in range(3):
            self.assertEqual(b"later", client.read_response().body)

    def test_an_answer_that_says_close_ends_the_body(self):
        origin = EarlyOrigin(self, response(b"early", "413 Content Too Large", Connection="close"),
                             then="close")
        client = self.begin(origin)
        client.send(body(SIZE)[:EARLY])
        answer = client.read_response()
        self.assertEqual((413, b"early"), (answer.status, answer.body))
        self.assertEqual("close", field(answer, "Connection"))
        self.assertTrue(client.at_end())
        self.assertLess(len(origin.received[0]), SIZE)

    def test_an_origin_that_closes_behind_its_answer_ends_the_clients_connection(self):
        origin = EarlyOrigin(self, response(b"early", "202 Accepted"), then="close")
        client = self.begin(origin)
        client.send(body(SIZE)[:EARLY])
        self.assertEqual(b"early", client.read_response().body)
        self.assertTrue(client.at_end())
        eventually(lambda: self.proxy.metrics()["encore_transfers"] == 0, "nothing is left")

    def test_an_origin_that_takes_no_more_ends_it_too(self):
        origin = EarlyOrigin(self, response(b"early", "202 Accepted"), then="stall")
        client = self.begin(origin, f"Content-Length: {1 << 30}", timeouts={"origin_idle": "1s"})
        client.send(body(SIZE)[:EARLY])
        self.assertEqual(b"early", client.read_response().body)
        # Until nothing fits into the connections on the way: then time runs.
        with self.assertRaises(OSError):
            while True:
                client.send(PIECE)
        eventually(lambda: self.proxy.metrics()["encore_transfers"] == 0, "nothing is left")
        self.assertEqual(200, self.proxy.admin("/healthz")[0])

    def test_a_key_bounds_what_is_passed_on(self):
        origin = EarlyOrigin(self, response(b"early", "202 Accepted"))
        client = self.begin(origin, limits={"body_behind_response": "100KB"})
        client.send(body(SIZE)[:EARLY])
        self.assertEqual(b"early", client.read_response().body)
        try:
            for _ in range(SIZE // len(PIECE)):
                client.send(PIECE)
        except OSError:
            pass
        record, = self.proxy.access_records(1)
        self.assertEqual((202, "body-behind-response"), (record["status"], record["detail"]))
        eventually(lambda: self.proxy.metrics()["encore_transfers"] == 0, "nothing is left")
        self.assertLessEqual(len(origin.received[0]), EARLY + 100_000)

    def test_with_a_bound_of_zero_nothing_is_and_the_client_is_told(self):
        origin = EarlyOrigin(self, response(b"early", "202 Accepted"))
        client = self.begin(origin, limits={"body_behind_response": "0B"})
        client.send(body(SIZE)[:EARLY])
        answer = client.read_response()
        self.assertEqual((b"early", "close"), (answer.body, field(answer, "Connection")))
        self.assertTrue(client.at_end())

    def test_a_client_that_leaves_behind_the_answer_ends_the_request_at_the_origin(self):
        origin = EarlyOrigin(self, response(b"early", "202 Accepted"))
        client = self.begin(origin)
        client.send(body(SIZE)[:EARLY])
        self.assertEqual(b"early", client.read_response().body)
        client.reset()
        eventually(lambda: self.proxy.metrics()["encore_transfers"] == 0, "nothing is left")
        eventually(lambda: self.proxy.metrics()["encore_client_connections"] == 0, "nor a client")
        self.assertFalse(origin.whole.is_set())

    def test_a_client_that_sends_no_more_is_not_waited_for_for_ever(self):
        origin = EarlyOrigin(self, response(b"early", "202 Accepted"))
        client = self.begin(origin, timeouts={"client_body": "500ms"})
        client.send(body(SIZE)[:EARLY])
        self.assertEqual(b"early", client.read_response().body)
        self.assertTrue(client.at_end())
        record, = self.proxy.access_records(1)
        self.assertEqual((202, "request-timeout"), (record["status"], record["detail"]))

    def test_a_client_that_waits_for_leave_is_told_to_close(self):
        # It may send no body now, and another request in its place would be taken for one.
        origin = EarlyOrigin(self, response(b"no", "417 Expectation Failed"), early=0)

        def refuse(sock, reader):
            while reader.readline().strip():
                pass
            sock.sendall(origin.answer)
            return False
        origin._one = refuse
        client = self.begin(origin, "Expect: 100-continue\r\nContent-Length: 100")
        answer = client.read_response()
        self.assertEqual((417, "close"), (answer.status, field(answer, "Connection")))
        self.assertTrue(client.at_end())


if __name__ == "__main__":
    unittest.main()
