"""Origins that flood, never end, break off at any byte, or play with chunks."""

import os
import threading
import unittest

from client import Client, NoResponse, field, get
from harness import Case, eventually
from origin import Closed, Origin, chunked, fresh, response


class Interim(Case):
    def test_a_flood_of_interim_responses_is_ended_at_the_limit(self):
        def flood(exchange):
            for _ in range(1_000_000):
                exchange.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" * 100)
        origin = Origin(self, {"/flood": flood})
        encore = self.encore()
        for reads in (True, False):
            with Client(encore.port, receive_buffer=4096) as client:
                client.request(origin.url("/flood"))
                if reads:
                    self.assertEqual(502, client.read_response().status)
                eventually(lambda: encore.metrics()["encore_transfers"] == 0, "it is ended")

    def test_interim_responses_up_to_the_limit_pass_and_one_more_does_not(self):
        hint = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        origin = Origin(self, {"/5": hint * 5 + response(b"done"),
                               "/6": hint * 6 + response(b"done")})
        encore = self.encore(limits={"interim_responses": 5})
        passed = get(encore.port, origin.url("/5"))
        self.assertEqual((200, b"done", 5), (passed.status, passed.body, len(passed.interim)))
        self.assertEqual(502, get(encore.port, origin.url("/6")).status)


class Heads(Case):
    def test_a_head_that_never_ends_is_502(self):
        def endless(line):
            def route(exchange):
                exchange.send(b"HTTP/1.1 200 OK\r\n")
                for _ in range(1_000_000):
                    exchange.send(line * 100)
            return route
        origin = Origin(self, {"/fields": endless(b"x: y\r\n"), "/value": endless(b"abc"),
                               "/empty": lambda e: e.send(b"\r\n" * 1_000_000)})
        encore = self.encore()
        for path in origin.routes:
            self.assertEqual(502, get(encore.port, origin.url(path)).status, path)

    def test_heads_larger_than_a_read_are_taken_up_to_the_limit(self):
        origin = Origin(self)
        encore = self.encore(limits={"head": "300KiB"})
        for size, status in ((60_000, 200), (100_000, 200), (250_000, 200), (400_000, 502)):
            fields = {f"X_{n}": "v" * 8000 for n in range(size // 8000)}
            origin.routes["/page"] = response(b"fine", **fields)
            self.assertEqual(status, get(encore.port, origin.url("/page")).status, size)

    def test_a_dribbled_head_is_given_up_in_time(self):
        def dribble(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\n")
            while True:
                exchange.send(b"a: b\r\n")
                if threading.Event().wait(0.05):
                    return
        origin = Origin(self, {"/page": dribble})
        encore = self.encore(timeouts={"origin_response": "1s"})
        self.assertEqual(504, get(encore.port, origin.url("/page")).status)


class Bodies(Case):
    def test_an_origin_gone_after_any_byte_is_never_passed_off_as_whole(self):
        whole = {
            "/length": fresh(b"0123456789"),
            "/chunked": chunked(b"hello", b"world", trailers="x: y\r\n"),
        }
        state = {"cut": 0, "reset": False}

        def cut(exchange):
            answer = whole[exchange.request.target.partition("?")[0]]
            exchange.send(answer[:state["cut"]])
            if state["reset"]:
                exchange.reset()
            else:
                exchange.close()
        origin = Origin(self, {path: cut for path in whole})
        encore = self.encore()
        for path, answer in whole.items():
            for reset in (False, True):
                for n in range(len(answer)):
                    state.update(cut=n, reset=reset)
                    try:
                        got = get(encore.port, origin.url(path))
                    except NoResponse:
                        continue  # broken off visibly
                    self.assertEqual(502, got.status, f"{path} cut at {n}: {got}")
            state.update(cut=len(answer), reset=False)
            self.assertEqual(200, get(encore.port, origin.url(path)).status)
        eventually(lambda: encore.metrics()["encore_transfers"] == 0, "no transfer is left")

    def test_chunk_games_lead_to_a_visible_end(self):
        head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nCache-Control: max-age=600\r\n\r\n"
        games = [b"ffffffffffffffff\r\nx", b"10000000000000000\r\nx", b"-1\r\nx", b"+5\r\nhello\r\n",
                 b"0x5\r\nhello\r\n", b" 5\r\nhello\r\n", b"5 \r\nhello\r\n", b"5\nhello\n0\n\n",
                 b"5\r\nhelloX\r\n0\r\n\r\n", b"5\r\nhello\r\n0\r\nbad trailer\r\n\r\n",
                 b"5;" + b"e" * 10_000 + b"\r\nhello\r\n0\r\n\r\n", b"\r\n0\r\n\r\n",
                 b"0\r\n" + b"t: u\r\n" * 10_000 + b"\r\n", b"5\r\nhello\r\n0\r\n\r", b"00000000000"]
        origin = Origin(self)
        encore = self.encore()
        for number, game in enumerate(games):
            path = f"/{number}"

            def play(exchange, game=game):
                exchange.send(head + game)
                exchange.close()
            origin.routes[path] = play
            for _ in range(3):
                with self.subTest(game=game[:40]):
                    try:
                        self.assertEqual(502, get(encore.port, origin.url(path)).status)
                    except NoResponse:
                        pass
            self.assertEqual(3, origin.count(path), "something was stored")

    def test_a_body_of_many_tiny_chunks_arrives_whole_and_is_stored(self):
        pieces = [b"x"] * 20_000
        origin = Origin(self, {"/tiny": chunked(*pieces)})
        encore = self.encore()
        for _ in range(3):
            answer = get(encore.port, origin.url("/tiny"))
            self.assertEqual(b"".join(pieces), answer.body)
        self.assertIn("; hit", field(answer, "Cache-Status"))

    def test_an_answer_before_the_end_of_an_upload_reaches_the_client(self):
        def early(exchange):
            exchange.send(response(b"too much", "413 Content Too Large", Connection="close"))
            exchange.close()
        origin = Origin(self)
        origin._read_whole = origin._read
        origin._read = lambda sock, reader: self.read_head_only(reader)
        origin.default = early
        encore = self.encore()
        with Client(encore.port) as client:
            client.send(f"POST {origin.url('/')} HTTP/1.1\r\nHost: {origin.authority}\r\n"
                        "Content-Length: 50000000\r\n\r\n")
            sender = threading.Thread(target=self.send_all, args=(client,), daemon=True)
            sender.start()
            answer = client.read_response("POST")
            self.assertIn(answer.status, (413, 502))

    @staticmethod
    def send_all(client):
        try:
            for _ in range(500):
                client.send(bytes(100_000))
        except OSError:
            pass

    @staticmethod
    def read_head_only(reader):
        from origin import Request
        lines = []
        while (line := reader.readline()) not in (b"\r\n", b""):
            lines.append(line)
        if not lines:
            return None
        method, target, version = lines[0].decode().split()
        return Request(method, target, version, [], b"", b"".join(lines), b"")


if __name__ == "__main__":
    unittest.main()
