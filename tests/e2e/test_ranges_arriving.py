"""Ranges of bodies that do not say their length, while they arrive (RFC 9110 14.2 to 14.4)."""

import threading

from client import Client, field, get
from harness import Case, eventually
from origin import Origin, response

HEAD = response(Content_Length=None, Transfer_Encoding="chunked", ETag='"a"',
                Cache_Control="max-age=600")
UNTIL_CLOSE = response(Content_Length=None, ETag='"a"', Cache_Control="max-age=600")
LAST = b"0\r\n\r\n"


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def ranged(value, **more):
    return [("Range", value), *more.items()]


class Arriving(Case):
    """One origin whose body comes in two halves; `go` lets the second one come."""

    def start(self, first=b"0123456789", second=b"abcdef", head=HEAD, **options):
        self.go, self.sent = threading.Event(), threading.Event()

        def page(exchange):
            framed = chunk if head is not UNTIL_CLOSE else bytes
            exchange.send(head + framed(first))
            self.sent.set()
            exchange.wait(self.go)
            if second is None:
                return exchange.reset()
            exchange.send(framed(second) + (LAST if head is not UNTIL_CLOSE else b""))
            return exchange.close() if head is UNTIL_CLOSE else None
        self.origin = Origin(self, {"/page": page})
        self.encore_ = self.encore(admission={"policy": "always"}, **options)
        self.url = self.origin.url("/page")

    def asking(self, *fields, version="HTTP/1.1"):
        client = Client(self.encore_.port)
        self.addCleanup(client.close)
        client.request(self.url, fields=fields, version=version)
        return client

    def stored(self, body):
        eventually(lambda: "; hit" in (field(get(self.encore_.port, self.url, fields=[
            ("Cache-Control", "only-if-cached")]), "Cache-Status") or ""), "it is stored")
        answer = get(self.encore_.port, self.url)
        self.assertEqual(body, answer.body)
        self.assertEqual(1, self.origin.count())

    def see(self, answer, status, body, content_range):
        self.assertEqual((status, body, content_range),
                         (answer.status, answer.body, field(answer, "Content-Range")))


class Early(Arriving):
    def test_a_range_that_has_come_is_answered_before_the_end(self):
        for head in (HEAD, UNTIL_CLOSE):
            with self.subTest(head=head):
                self.start(head=head)
                client = self.asking(*ranged("bytes=5-8"))
                self.see(client.read_response(), 206, b"5678", "bytes 5-8/*")
                self.assertEqual(1, self.origin.count())
                self.go.set()
                self.stored(b"0123456789abcdef")

    def test_the_connection_is_used_again_behind_such_a_range(self):
        self.start()
        with Client(self.encore_.port) as client:
            self.see(client.ask(self.url, fields=ranged("bytes=0-0")), 206, b"0", "bytes 0-0/*")
            self.see(client.ask(self.url, fields=ranged("bytes=2-3")), 206, b"23", "bytes 2-3/*")
        self.assertEqual(1, self.origin.count())
        self.go.set()

    def test_each_of_several_users_gets_his_range_of_the_one_transfer(self):
        self.start()
        first = self.asking(*ranged("bytes=4-5"))
        self.see(first.read_response(), 206, b"45", "bytes 4-5/*")
        late = self.asking(*ranged("bytes=8-100"))
        last = self.asking(*ranged("bytes=-2"))
        whole = self.asking()
        whole.read_head()
        self.go.set()
        self.see(late.read_response(), 206, b"89abcdef", "bytes 8-15/16")
        self.see(last.read_response(), 206, b"ef", "bytes 14-15/16")
        self.stored(b"0123456789abcdef")

    def test_several_ranges_that_have_come_are_parts_of_an_unknown_length(self):
        self.start()
        answer = self.asking(*ranged("bytes=0-1,5-6")).read_response()
        self.assertEqual(206, answer.status)
        self.assertIn(b"Content-Range: bytes 0-1/*\r\n\r\n01\r\n", answer.body)
        self.assertIn(b"Content-Range: bytes 5-6/*\r\n\r\n56\r\n", answer.body)
        self.go.set()
        self.stored(b"0123456789abcdef")

    def test_ranges_that_go_back_and_a_range_from_the_first_byte_on_are_the_whole(self):
        for value in ("bytes=5-6,0-1", "bytes=0-"):
            with self.subTest(value=value):
                self.start()
                client = self.asking(*ranged(value))
                self.assertEqual(200, client.read_head().status)
                self.go.set()
                self.stored(b"0123456789abcdef")

    def test_if_range_and_clients_of_http_1_0_are_answered_alike(self):
        self.start()
        client = self.asking(*ranged("bytes=5-8", **{"If-Range": '"a"'}), version="HTTP/1.0")
        self.see(client.read_response(), 206, b"5678", "bytes 5-8/*")
        other = self.asking(*ranged("bytes=5-8", **{"If-Range": '"b"'}))
        self.assertEqual(200, other.read_head().status)
        self.go.set()
        self.stored(b"0123456789abcdef")


class Waiting(Arriving):
    def test_what_the_end_decides_waits_for_it(self):
        cases = {"bytes=-3": (206, b"def", "bytes 13-15/16"),
                 "bytes=12-": (206, b"cdef", "bytes 12-15/16"),
                 "bytes=12-99": (206, b"cdef", "bytes 12-15/16"),
                 "bytes=16-": (416, b"", "bytes */16"),
                 "bytes=20-30": (416, b"", "bytes */16")}
        for value, seen in cases.items():
            with self.subTest(value=value):
                self.start()
                client = self.asking(*ranged(value))
                self.assertTrue(self.sent.wait(60))
                self.go.set()
                self.see(client.read_response(), *seen)
                self.stored(b"0123456789abcdef")

    def test_who_has_waited_for_too_long_gets_the_whole(self):
        self.start(timeouts={"collapse": "300ms"})
        for value in ("bytes=-3", "bytes=12-13"):
            client = self.asking(*ranged(value))
            self.assertEqual(200, client.read_head().status)
        self.go.set()
        self.stored(b"0123456789abcdef")

    def test_an_origin_that_serves_ranges_is_asked_for_what_is_too_far_away(self):
        head = response(Content_Length=None, Transfer_Encoding="chunked", ETag='"a"',
                        Cache_Control="max-age=600", Accept_Ranges="bytes")
        self.start(head=head, timeouts={"collapse": "300ms"})
        whole = self.origin.routes["/page"]
        part = response(b"cd", "206 Partial Content", ETag='"a"', Cache_Control="max-age=600",
                        Content_Range="bytes 12-13/16")
        self.origin.routes["/page"] = lambda exchange: (
            part if "range" in dict(exchange.request.fields) else whole(exchange))
        client = self.asking(*ranged("bytes=12-13"))
        self.see(client.read_response(), 206, b"cd", "bytes 12-13/16")
        self.assertEqual(2, self.origin.count())
        self.go.set()

    def test_a_body_that_breaks_off_first_is_an_error_and_not_stored(self):
        for value in ("bytes=8-12", "bytes=-3", "bytes=3-"):
            with self.subTest(value=value):
                self.start(second=None)
                client = self.asking(*ranged(value))
                self.assertTrue(self.sent.wait(60))
                self.go.set()
                answer = client.read_response()
                self.assertEqual(502, answer.status)
                self.assertIsNone(field(answer, "Content-Range"))
                told = get(self.encore_.port, self.url, fields=[("Cache-Control",
                                                                 "only-if-cached")])
                self.assertEqual(504, told.status)


class TooLarge(Arriving):
    """Nothing of it is stored, and little is kept."""

    BODY = bytes(range(256)) * 4096  # 1 MiB

    def start_large(self, **options):
        self.start(first=self.BODY[:300_000], second=self.BODY[300_000:],
                   cache={"max_object": "64KiB", "collapse_buffer": "64KiB"},
                   limits={"transfer_buffer": "64KiB"}, **options)

    def test_a_small_range_far_in_comes_from_the_transfer(self):
        self.start_large()
        client = self.asking(*ranged("bytes=600000-600999"))
        self.assertTrue(self.sent.wait(60))
        self.go.set()
        self.see(client.read_response(), 206, self.BODY[600000:601000], "bytes 600000-600999/*")
        self.assertEqual(1, self.origin.count())

    def test_what_cannot_be_kept_until_it_is_there_is_the_whole(self):
        for value in ("bytes=-3", "bytes=10-500000", "bytes=300000-900000"):
            with self.subTest(value=value):
                self.start_large()
                self.go.set()
                answer = self.asking(*ranged(value)).read_response()
                self.see(answer, 200, self.BODY, None)
                self.assertEqual(1, self.origin.count())

    def test_who_waits_for_a_range_does_not_hold_back_who_reads(self):
        self.start_large()
        reader = self.asking()
        reader.read_head()
        waits = self.asking(*ranged("bytes=-3"))
        self.go.set()
        self.assertEqual(self.BODY, reader._read_chunked()[0])
        self.assertEqual(self.BODY[-3:], waits.read_response().body[-3:])

    def test_a_body_that_breaks_off_behind_the_range_has_given_it(self):
        self.start(first=self.BODY[:300_000], second=None)
        client = self.asking(*ranged("bytes=200000-299999"))
        self.see(client.read_response(), 206, self.BODY[200000:300000], "bytes 200000-299999/*")
        self.go.set()
        eventually(lambda: get(self.encore_.port, self.url, fields=[
            ("Cache-Control", "only-if-cached")]).status == 504, "nothing is stored")


class KnownLength(Arriving):
    """The length is announced, so the first bytes of a range may be far behind what has come."""

    BODY = bytes(range(256)) * 4096  # 1 MiB

    def start_known(self, ranges="bytes", collapse="300ms", length=None, **options):
        body = self.BODY[:length]
        head = response(Content_Length=len(body), ETag='"a"', Cache_Control="max-age=600",
                        Accept_Ranges=ranges)
        self.go, self.sent = threading.Event(), threading.Event()
        self.asked_parts = []

        def page(exchange):
            asked = dict(exchange.request.fields)
            if "range" in asked and ranges:
                self.asked_parts.append((asked["range"], asked.get("if-range")))
                first, last = (len(body) - 10, len(body) - 1)
                return response(body[first:], "206 Partial Content", ETag='"a"',
                                Cache_Control="max-age=600", Accept_Ranges=ranges,
                                Content_Range=f"bytes {first}-{last}/{len(body)}")
            exchange.send(head + body[:100_000])
            self.sent.set()
            exchange.wait(self.go)
            return body[100_000:]
        self.origin = Origin(self, {"/page": page})
        self.encore_ = self.encore(admission={"policy": "always"}, timeouts={"collapse": collapse},
                                   **options)
        self.url = self.origin.url("/page")
        self.reader = self.asking()
        self.reader.read_head()
        self.assertTrue(self.sent.wait(60))

    def test_the_last_bytes_are_asked_for_where_they_are_too_far_away(self):
        size = len(self.BODY)
        seen = (206, self.BODY[-10:], f"bytes {size - 10}-{size - 1}/{size}")
        for more in ({}, {"If-Range": '"a"'}):
            with self.subTest(more):
                self.start_known()
                self.see(self.asking(*ranged("bytes=-10", **more)).read_response(), *seen)
                self.assertEqual([("bytes=-10", more.get("If-Range"))], self.asked_parts)
                # The whole still reaches its reader, and is stored.
                self.go.set()
                self.assertEqual(self.BODY, self.reader.read_exactly(size))
                eventually(lambda: "; hit" in (field(get(self.encore_.port, self.url, fields=[
                    ("Cache-Control", "only-if-cached")]), "Cache-Status") or ""), "it is stored")
                self.see(self.asking(*ranged("bytes=-10")).read_response(), *seen)
                self.assertEqual(1, len(self.asked_parts))

    def test_also_behind_a_part_that_is_there(self):
        self.start_known()
        answer = self.asking(*ranged("bytes=0-9,-10")).read_response()
        self.assertEqual(206, answer.status)
        self.assertEqual([("bytes=0-9,-10", None)], self.asked_parts)
        self.go.set()

    def test_also_where_it_is_not_stored_and_where_the_range_came_first(self):
        for options in ({"cache": {"max_object": "64KiB", "collapse_buffer": "64KiB"},
                         "limits": {"transfer_buffer": "64KiB"}}, {}):
            with self.subTest(options):
                self.start_known(**options)
                if not options:
                    self.reader.close()
                answer = self.asking(*ranged("bytes=-10")).read_response()
                self.assertEqual((206, self.BODY[-10:]), (answer.status, answer.body))
                self.assertEqual(1, len(self.asked_parts))
                self.go.set()

    def test_what_has_come_is_cut_from_it(self):
        self.start_known()
        answer = self.asking(*ranged("bytes=50000-50009")).read_response()
        self.see(answer, 206, self.BODY[50000:50010], f"bytes 50000-50009/{len(self.BODY)}")
        client = self.asking(*ranged("bytes=99990-100009"))
        self.assertEqual(206, client.read_head().status)
        self.go.set()
        self.assertEqual(self.BODY[99990:100010], client.read_exactly(20))
        self.assertEqual([], self.asked_parts)

    def test_what_comes_in_time_is_cut_from_it(self):
        self.start_known(collapse="60s")
        client = self.asking(*ranged("bytes=-10"))
        both = self.asking(*ranged("bytes=0-9,-10"))
        other = self.asking(*ranged("bytes=-10", **{"If-Range": '"b"'}))
        self.assertEqual(200, other.read_head().status)
        self.go.set()
        self.assertEqual(self.BODY[-10:], client.read_response().body)
        self.assertIn(self.BODY[-10:], both.read_response().body)
        self.assertEqual([], self.asked_parts)

    def test_where_the_origin_does_not_say_that_it_serves_ranges_it_is_not_asked(self):
        self.start_known(ranges=None)
        client = self.asking(*ranged("bytes=-10"))
        self.assertEqual(206, client.read_head().status)
        self.go.set()
        self.assertEqual(self.BODY[-10:], client.read_exactly(10))
        self.assertEqual(1, self.origin.count())
