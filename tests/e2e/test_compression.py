"""The responses that the proxy compresses, for which clients, and those that stay unchanged."""

import random
import re
import threading
import unittest

from client import Client, NoResponse, field
from codings import Broken, decoded
from compression import CODINGS, TYPE, CompressionCase, accepts, text
from harness import eventually, need_program
from origin import fresh, response

SMALL, LARGE = "/small-9000", "/large-700000"


class Codings(CompressionCase):
    def test_each_coding_of_what_is_not_stored_on_its_way(self):
        self.start_proxy(admission={"policy": "never"})
        for name in (SMALL, LARGE):
            for coding in CODINGS:
                answer = self.check(name, self.get(name, coding), coding)
                self.assertLess(len(answer.body), len(self.content(name)) * 0.7)
            self.check(name, self.get(name))
        for coding in CODINGS:
            responses, read, made = self.work(coding)
            self.assertEqual((2, 709_000), (responses, read))
            self.assertGreater(made, 1000)

    def test_what_is_stored_is_compressed_once_for_each_coding(self):
        self.start_proxy()
        for name in (SMALL, LARGE):
            self.check(name, self.get(name))
            for coding in CODINGS:
                first = self.check(name, self.get(name, coding), coding)
                self.assertTrue(self.is_hit(first))
                for _ in range(3):
                    again = self.check(name, self.get(name, coding), coding)
                    self.assertTrue(self.is_hit(again))
                    self.assertEqual(str(len(again.body)), field(again, "Content-Length"))
                self.check(name, self.get(name))
        self.assertEqual(2, self.origin.count())
        for coding in CODINGS:
            self.assertEqual((8, 709_000), self.work(coding)[:2])

    def test_the_weights_of_a_client_choose_and_the_order_decides_between_equals(self):
        self.start_proxy(compression={"codings": ["br", "gzip"]})
        for accepted, coding in (("gzip, br, zstd", "br"), ("gzip;q=1, br;q=0.9", "gzip"),
                                 ("zstd", None), ("x-gzip", "gzip"), ("*", "br"),
                                 ("br;q=0, *;q=0.1", "gzip"), ("identity, gzip;q=0.2", None),
                                 ("identity;q=0, gzip;q=0.2", "gzip"), ("identity;q=0", None)):
            for name in (SMALL, LARGE):
                self.check(name, self.get(name, fields=[("Accept-Encoding", accepted)]), coding)

    def test_it_is_off_by_default(self):
        self.compression = {}
        self.start_proxy()
        for _ in range(2):
            answer = self.get(SMALL, *CODINGS)
            self.assertIsNone(field(answer, "Content-Encoding"))
            self.assertIsNone(field(answer, "Vary"))
            self.assertEqual(self.content(SMALL), answer.body)

    def test_memory_for_it_is_bounded_and_beyond_it_responses_go_as_they_are(self):
        self.start_proxy(compression={"codings": ["br"], "memory": "1MiB"})
        self.check(SMALL, self.get(SMALL, "br"))
        self.check(LARGE, self.get(LARGE, "br"))
        self.assertEqual(2, self.metric("compression_refused_total"))

    def test_curl_decodes_it(self):
        curl = need_program("curl")
        self.start_proxy()
        for coding in ("gzip", "br", "zstd"):
            self.reload(codings=[coding])
            for name in (SMALL, LARGE):
                for _ in range(2):
                    ended = self.run_client([curl, "-sS", "--compressed", "--max-time", "60",
                                             "--noproxy", "", "-x", self.proxy.url,
                                             self.origin.url(name)])
                    self.assertEqual(self.content(name), ended.stdout)
            self.assertEqual(4, self.work(coding)[0])


class Left(CompressionCase):
    """Responses that stay unchanged."""

    def one(self, made, *codings, **options):
        self.origin.routes["/it"] = made
        with Client(self.proxy.port) as client:
            return client.ask(self.origin.url("/it"), fields=accepts(*(codings or CODINGS)),
                              **options)

    def test_what_must_not_or_need_not_be_changed(self):
        self.start_proxy(admission={"policy": "never"})
        body = text("it", 1, 5000)
        for what in ({"Content_Encoding": "gzip"}, {"Content_Encoding": "identity"},
                     {"Cache_Control": "no-transform"}, {"Cache_Control": "public, No-Transform"},
                     {"Content_Type": "image/png"}, {"Content_Type": None},
                     {"Content_Type": "multipart/mixed; boundary=x"},
                     {"status": "206 Partial Content", "Content_Range": "bytes 0-4999/6000"},
                     {"status": "500 Internal Server Error"}):
            with self.subTest(what=what):
                answer = self.one(response(body, **{**TYPE, **what}))
                self.assertEqual(what.get("Content_Encoding"), field(answer, "Content-Encoding"))
                self.assertEqual(body, answer.body)
                self.assertIsNone(field(answer, "Vary"))
        short = self.one(response(body[:1023], **TYPE))
        self.assertIsNone(field(short, "Content-Encoding"))
        self.assertEqual("zstd", field(self.one(response(body[:1024], **TYPE)), "Content-Encoding"))
        self.assertEqual("zstd", field(self.one(
            response(body, Content_Type="Application/Ld+JSON; profile=x")), "Content-Encoding"))

    def test_what_does_not_become_shorter_goes_as_it_is(self):
        self.start_proxy()
        body = random.Random(7).randbytes(9000)
        for _ in range(3):
            answer = self.one(fresh(body, **TYPE))
            self.assertIsNone(field(answer, "Content-Encoding"))
            self.assertEqual(body, answer.body)

    def test_requests_that_forbid_it_or_cannot_take_it(self):
        self.start_proxy()
        for name in (SMALL, LARGE):
            for _ in range(2):
                self.check(name, self.get(name, *CODINGS,
                                          fields=[("Cache-Control", "no-transform")]))
                old = self.check(name, self.get(name, *CODINGS, version="HTTP/1.0"))
                self.assertEqual(str(len(old.body)), field(old, "Content-Length"))

    def test_rules_that_forbid_it(self):
        self.start_proxy(rule=[{"path": "/raw/*", "compress": False}])
        for _ in range(3):
            for name in ("/raw/a-5000", "/raw/b-500000"):
                answer = self.get(name, *CODINGS)
                self.assertIsNone(field(answer, "Content-Encoding"))
                self.assertIsNone(field(answer, "Vary"))
                self.assertEqual(self.content(name), answer.body)
            self.check(SMALL, self.get(SMALL, "br"), "br")

    def test_what_the_origin_sees_of_accept_encoding_is_what_the_client_said(self):
        self.start_proxy()
        self.get(SMALL, "gzip;q=0.5", "br")
        self.assertEqual("gzip;q=0.5, br", dict(self.origin.last().fields)["accept-encoding"])


class Validators(CompressionCase):
    def test_vary_is_merged_with_what_a_response_varies_by(self):
        self.start_proxy()
        body = text("it", 1, 5000)
        for vary, merged in (("Cookie", "Cookie, Accept-Encoding"), ("*", "*"),
                             ("accept-encoding", "accept-encoding")):
            self.origin.routes["/it" + vary] = fresh(body, Vary=vary, **TYPE)
            with Client(self.proxy.port) as client:
                for coding in ("gzip", None, "gzip"):
                    answer = client.ask(self.origin.url("/it" + vary),
                                        fields=accepts(coding) if coding else [])
                    self.assertEqual(merged, field(answer, "Vary"))
                    self.assertEqual(coding, field(answer, "Content-Encoding"))
                    self.assertEqual(body, decoded(answer))

    def test_digests_of_other_bytes_are_left_out(self):
        self.start_proxy()
        digests = {"Content_MD5": "x", "Digest": "sha-256=x", "Repr_Digest": "sha-256=:x:",
                   "Content_Digest": "sha-256=:x:"}
        for size in (5000, 500_000):
            path = f"/digests-{size}"
            self.origin.routes[path] = fresh(text(path, 1, size), **digests, **TYPE)
            for _ in range(3):
                coded = self.get(path, "br")
                for name in digests:
                    self.assertIsNone(field(coded, name.replace("_", "-")), name)
                plain = self.get(path)
                for name, value in digests.items():
                    self.assertEqual(value, field(plain, name.replace("_", "-")))

    def not_modified(self, answer, etag):
        self.assertEqual(304, answer.status)
        self.assertEqual(etag, field(answer, "ETag"))
        self.assertIn("Accept-Encoding", field(answer, "Vary"))
        self.assertIsNone(field(answer, "Content-Encoding-Length"))

    def test_conditions_are_held_against_the_form_that_a_client_would_get(self):
        self.start_proxy()
        for name in (SMALL, LARGE):
            self.get(name)
            for _ in range(2):  # without the form, and with it
                for tag in ('W/"1"', '"1"', '"0", W/"1"', "*"):
                    asked = [("If-None-Match", tag)]
                    self.not_modified(self.get(name, "gzip", fields=asked), 'W/"1"')
                    self.not_modified(self.get(name, fields=asked), '"1"')
                    self.check(name, self.get(name, "gzip", fields=[("If-None-Match", '"2"')]),
                               "gzip")
                since = [("If-Modified-Since", "Mon, 01 Jan 2024 00:00:00 GMT")]
                self.not_modified(self.get(name, "gzip", fields=since), 'W/"1"')

    def test_a_304_that_is_passed_on_keeps_the_tag_that_the_client_has(self):
        self.start_proxy(admission={"policy": "never"})

        def answer(exchange):
            return (b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\nVary: Cookie\r\n'
                    b"Cache-Control: max-age=60\r\n\r\n")
        self.origin.routes["/it"] = answer
        with Client(self.proxy.port) as client:
            for shown, etag, vary in (('W/"1"', 'W/"1"', "Cookie, Accept-Encoding"),
                                      ('"1"', '"1"', "Cookie")):
                said = client.ask(self.origin.url("/it"),
                                  fields=[*accepts("br"), ("If-None-Match", shown)])
                self.assertEqual((304, etag, vary),
                                 (said.status, field(said, "ETag"), field(said, "Vary")))

    def test_ranges_are_of_the_content_as_it_is(self):
        self.start_proxy()
        for name in (SMALL, LARGE):
            content = self.content(name)
            self.get(name, "br")
            for extra in ((), [("If-Range", '"1"')]):
                part = self.get(name, "br", fields=[("Range", "bytes=100-199"), *extra])
                self.assertEqual((206, content[100:200]), (part.status, part.body))
                self.assertEqual('"1"', field(part, "ETag"))
                self.assertIsNone(field(part, "Content-Encoding"))
                self.assertIn("Accept-Encoding", field(part, "Vary"))
            several = self.get(name, "br", fields=[("Range", "bytes=0-9,100-109")])
            self.assertEqual(206, several.status)
            beyond = self.get(name, "br", fields=[("Range", "bytes=9000000-")])
            self.assertEqual(416, beyond.status)
            # A weak tag never holds, and of which bytes a date speaks nobody knows.
            weak = self.get(name, "br", fields=[("Range", "bytes=100-199"), ("If-Range", 'W/"1"')])
            self.check(name, weak)
            dated = self.get(name, "br", fields=[("Range", "bytes=100-199"), (
                "If-Range", "Mon, 01 Jan 2024 00:00:00 GMT")])
            self.check(name, dated, "br")

    def test_head_says_what_get_would(self):
        self.start_proxy()
        for name in (SMALL, LARGE):
            for known in (False, True):
                head = self.get(name, "gzip", method="HEAD")
                self.assertEqual((200, b""), (head.status, head.body))
                for said, value in (("Content-Encoding", "gzip"), ("ETag", 'W/"1"')):
                    self.assertEqual(value, field(head, said))
                self.assertEqual(known, field(head, "Content-Length") is not None)
                self.check(name, self.get(name, "gzip"), "gzip")
                self.check(name, self.get(name, "gzip"), "gzip")
                plain = self.get(name, method="HEAD")
                self.assertEqual(str(len(self.content(name))), field(plain, "Content-Length"))
                self.assertEqual('"1"', field(plain, "ETag"))


class Streams(CompressionCase):
    def test_pieces_of_a_slow_origin_arrive_as_they_come(self):
        self.start_proxy(admission={"policy": "never"})
        for kind in ("text/event-stream", "text/plain"):
            go = threading.Semaphore(0)

            def stream(exchange):
                exchange.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: "
                              + kind.encode() + b"\r\n\r\n")
                for i in range(6):
                    piece = b"data: piece %d\n\n" % i
                    exchange.send(b"%x\r\n%s\r\n" % (len(piece), piece))
                    go.acquire()
                exchange.send(b"0\r\n\r\n")
            self.origin.routes["/stream"] = stream
            for coding in CODINGS:
                with Client(self.proxy.port) as client:
                    client.request(self.origin.url("/stream"), fields=accepts(coding))
                    head = client.read_head()
                    self.assertEqual(coding, field(head, "Content-Encoding"))
                    body = b""
                    for i in range(6):
                        mark = b"data: piece %d\n\n" % i
                        while mark not in decoded(head._replace(body=body), whole=False):
                            size = int(client.read_until(b"\r\n"), 16)
                            self.assertGreater(size, 0)
                            body += client.read_exactly(size)
                            client.read_exactly(2)
                        go.release()
                    rest, _ = client._read_chunked()
                    self.assertEqual(6, decoded(head._replace(body=body + rest)).count(b"piece"))

    def test_what_an_origin_does_not_end_is_not_ended(self):
        self.start_proxy()
        body = text("it", 1, 300_000)
        for framing in ("chunked", "length"):
            for cut in (0, 1, 2000, 200_000):
                def dies(exchange):
                    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/css\r\nCache-Control: max-age=60\r\n"
                    if framing == "length":
                        exchange.send(head + b"Content-Length: 300000\r\n\r\n" + body[:cut])
                    else:
                        exchange.send(head + b"Transfer-Encoding: chunked\r\n\r\n")
                        if cut:
                            exchange.send(b"%x\r\n%s\r\n" % (cut, body[:cut]))
                    exchange.close()
                self.origin.routes["/dies"] = dies
                for coding in CODINGS:
                    with Client(self.proxy.port) as client, self.assertRaises(NoResponse):
                        answer = client.ask(self.origin.url("/dies"), fields=accepts(coding))
                        if answer.status == 502:  # nothing was sent yet
                            raise NoResponse(b"")

    def test_a_slow_reader_holds_the_origin_back(self):
        size = 64 << 20
        sent = [0]

        def big(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
                          b"Content-Length: %d\r\n\r\n" % size)
            piece = random.Random(1).randbytes(32768).hex().encode()
            while sent[0] < size:
                exchange.send(piece)
                sent[0] += len(piece)
        self.origin.routes["/big"] = big
        self.start_proxy()
        with Client(self.proxy.port, receive_buffer=4096) as client:
            client.request(self.origin.url("/big"), fields=accepts("gzip"))
            self.assertEqual("gzip", field(client.read_head(), "Content-Encoding"))
            seen = []

            def stands():
                seen.append(sent[0])
                return len(seen) > 60 and seen[-1] == seen[-60]
            eventually(stands, "the origin is held back")
            self.assertLess(sent[0], size // 2)
            client.reset()
        self.check(SMALL, self.get(SMALL, "gzip"), "gzip")

    def test_an_aborted_client_leaves_what_is_stored_whole(self):
        self.start_proxy()
        self.get(LARGE)
        for _ in range(5):
            with Client(self.proxy.port, receive_buffer=4096) as client:
                client.request(self.origin.url(LARGE), fields=accepts("br"))
                client.read_head()
                client.reset()
        for _ in range(3):
            self.check(LARGE, self.get(LARGE, "br"), "br")
            self.check(LARGE, self.get(LARGE))
        self.assertEqual(1, self.origin.count())

    def test_trailers_follow_but_for_digests(self):
        self.start_proxy()
        pieces = [text("it", i, 3000) for i in range(4)]
        self.origin.routes["/it"] = (
            b"HTTP/1.1 200 OK\r\nContent-Type: text/css\r\nTransfer-Encoding: chunked\r\n"
            b"Cache-Control: max-age=600\r\n\r\n"
            + b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces)
            + b"0\r\nServer-Timing: x\r\nRepr-Digest: sha-256=:x:\r\n\r\n")
        for coding in ("gzip", "gzip", "br", None, "br"):
            answer = self.get("/it", *([coding] if coding else []), fields=[("TE", "trailers")])
            self.assertEqual(b"".join(pieces), decoded(answer))
            self.assertEqual(coding, field(answer, "Content-Encoding"))
            expected = [("server-timing", "x")]
            if not coding:
                expected.append(("repr-digest", "sha-256=:x:"))
            self.assertEqual(expected, answer.trailers)


if __name__ == "__main__":
    unittest.main()
