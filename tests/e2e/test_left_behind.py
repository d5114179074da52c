"""Readers of one transfer that fall behind: the others do not wait, and nothing is lost. A reader
that is left behind goes on from disk, or by a request of its own for the rest."""

import contextlib
import email.utils
import hashlib
import io
import random
import socket
import threading
import time

from client import Client, field
from harness import Case, eventually
from origin import Origin, response

MIB = 1 << 20
SIZE = 40 * MIB  # too large to be stored, and for what sockets hold
BODY = random.Random(7).randbytes(SIZE)
OLD_DATE = email.utils.formatdate(1_700_000_000, usegmt=True)


def fields_of(request):
    return dict(request.fields)


def said_range(request):
    """The first byte that the request asks for; None: it asks for the whole."""
    value = fields_of(request).get("range")
    return None if value is None else int(value.removeprefix("bytes=").partition("-")[0])


class Serving:
    """A route that serves the body and ranges of it, when it may. `answer_rest(exchange, begin)`
    answers in its place where a rest is asked for."""

    def __init__(self, body=BODY, answer_rest=None, is_chunked=False, **fields):
        self.body, self.answer_rest, self.is_chunked = body, answer_rest, is_chunked
        self.fields = {"Cache_Control": "max-age=600", **fields}
        self.go = threading.Event()

    def __call__(self, exchange):
        begin = said_range(exchange.request)
        if begin is None:
            exchange.wait(self.go)
            self.send_whole(exchange)
        elif self.answer_rest is not None:
            self.answer_rest(exchange, begin)
        else:
            self.send_rest(exchange, begin)

    def send_whole(self, exchange):
        date = email.utils.formatdate(usegmt=True)
        if not self.is_chunked:
            exchange.send(response(Content_Length=len(self.body), Date=date, **self.fields))
            exchange.send(self.body)
            return
        exchange.send(response(Content_Length=None, Transfer_Encoding="chunked", Date=date,
                               **self.fields))
        for at in range(0, len(self.body), MIB):
            piece = self.body[at:at + MIB]
            exchange.send(b"%x\r\n" % len(piece) + piece + b"\r\n")
        exchange.send(b"0\r\n\r\n")

    def send_rest(self, exchange, begin, total=None, **fields):
        total = len(self.body) if total is None else total
        exchange.send(response(**{
            "status": "206 Partial Content", "Content_Length": len(self.body) - begin,
            "Content_Range": f"bytes {begin}-{len(self.body) - 1}/{total}", **self.fields, **fields}))
        exchange.send(self.body[begin:])


class SharedCase(Case):
    path = "/large"

    def start(self, serving, **sections):
        self.origin = Origin(self, {self.path: serving})
        self.proxy = self.encore(timeouts={"client_write": "10m"}, **sections)

    def join(self, serving, count=2, receive_buffer=4096, quick_buffer=None, slow_fields=(),
             quick_fields=()):
        """Clients that wait for one transfer, of which the first has a small buffer; the origin
        begins to answer when all wait."""
        clients = []
        for n in range(count):
            client = Client(self.proxy.port, source=f"127.0.0.{n + 1}",
                            receive_buffer=quick_buffer if n else receive_buffer)
            self.addCleanup(client.close)
            client.request(self.origin.url(self.path), fields=quick_fields if n else slow_fields)
            clients.append(client)
            eventually(self.origin.count, "the origin is asked")
        eventually(lambda: self.proxy.metrics()["encore_client_connections"] == count, "all wait")
        time.sleep(0.2)  # the other requests have been read by then
        serving.go.set()
        return clients

    def read(self, client, is_chunked=False):
        """All that comes of the body."""
        client.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * MIB)
        self.assertEqual(200, client.read_head().status)
        if is_chunked:
            return self.read_chunks(client)
        body = bytearray(client.buffer)
        with contextlib.suppress(ConnectionError):
            while len(body) < SIZE and (more := client.sock.recv(4 * MIB)):
                body += more
        return bytes(body)

    def read_chunks(self, client):
        """The body of which each piece is a chunk; what has come of it where it breaks off."""
        reader = io.BufferedReader(io.BytesIO(client.buffer))
        body = bytearray()

        def line():
            nonlocal reader
            text = reader.readline()
            if not text.endswith(b"\n"):
                reader = client.sock.makefile("rb", MIB)
                text += reader.readline()
            return text

        def exactly(count):
            nonlocal reader
            data = reader.read(count)
            if len(data) < count:
                reader = client.sock.makefile("rb", MIB)
                data += reader.read(count - len(data))
            return data
        while (text := line()) and (size := int(text, 16)):
            body += exactly(size)
            self.assertEqual(b"\r\n", exactly(2))
        return bytes(body)

    def get(self, client, **options):
        body = self.read(client, **options)
        self.assertTrue(body == BODY, f"all bytes are the origin's, {len(body)} of {SIZE}")

    def get_less(self, client):
        body = self.read(client)
        self.assertLess(len(body), SIZE)
        self.assertTrue(BODY.startswith(body))

    def is_left_behind(self):
        metrics = self.proxy.metrics()
        return (metrics["encore_slow_readers_continued_total"] +
                metrics["encore_slow_readers_cut_total"])

    def assert_counted(self, continued, cut):
        metrics = self.proxy.metrics()
        self.assertEqual((continued, cut), (metrics["encore_slow_readers_continued_total"],
                                            metrics["encore_slow_readers_cut_total"]))


class FromOrigin(SharedCase):
    def check_goes_on(self, serving, **sections):
        self.start(serving, **sections)
        slow, quick = self.join(serving)
        self.get(quick, is_chunked=serving.is_chunked)
        eventually(self.is_left_behind, "the slow one is left behind")
        self.get(slow, is_chunked=serving.is_chunked)
        self.assert_counted(1, 0)
        self.assertEqual(2, self.origin.count())
        rest = fields_of(self.origin.last())
        begin = said_range(self.origin.last())
        self.assertTrue(0 < begin < SIZE, begin)
        records = {r["client"]: r for r in self.proxy.access_records(2)}
        self.assertEqual("continued", records["127.0.0.1"]["detail"])
        self.assertEqual(SIZE, records["127.0.0.1"]["body_bytes"])
        self.assertNotEqual("slow-reader", records["127.0.0.1"]["outcome"])
        return rest

    def test_a_reader_that_takes_nothing_for_a_while_loses_nothing(self):
        rest = self.check_goes_on(Serving(ETag='"one"'))
        self.assertEqual('"one"', rest["if-range"])

    def test_a_date_that_is_sure_will_do(self):
        rest = self.check_goes_on(Serving(Last_Modified=OLD_DATE))
        self.assertEqual(OLD_DATE, rest["if-range"])

    def test_a_body_of_unknown_length_goes_on_within_its_chunks(self):
        self.check_goes_on(Serving(is_chunked=True, ETag='"one"'),
                           cache={"memory": "64MiB", "max_object": "4MiB"})

    def test_the_rest_is_asked_for_with_the_fields_of_who_wants_it(self):
        serving = Serving(ETag='"one"')
        self.start(serving)
        slow, quick = self.join(serving, slow_fields=[("X-Who", "slow")],
                                quick_fields=[("X-Who", "quick")])
        self.get(quick)
        self.get(slow)
        self.assertEqual(2, self.origin.count())
        rest = fields_of(self.origin.last())
        self.assertEqual("slow", rest["x-who"])

    def test_each_that_takes_nothing_goes_on_by_itself(self):
        serving = Serving(ETag='"one"')
        self.start(serving)
        clients = self.join(serving, count=4, receive_buffer=4096)
        # The last one alone is quick; the others read one after the other when it is done.
        self.get(clients[-1])
        for client in clients[:-1]:
            self.get(client)
        self.assertEqual(0, self.proxy.metrics()["encore_slow_readers_cut_total"])

    def test_an_answer_that_is_not_the_rest_ends_the_response(self):
        serving = Serving(ETag='"one"')

        def refuse(exchange, _):
            exchange.send(response(b"no", "503 Service Unavailable"))

        def break_off(exchange, _):
            exchange.close()
        answers = {
            "the whole": lambda exchange, _: serving.send_whole(exchange),
            "another part": lambda exchange, begin: serving.send_rest(exchange, begin + 1),
            "another version": lambda exchange, begin: serving.send_rest(exchange, begin,
                                                                         ETag='"two"'),
            "a weak tag": lambda exchange, begin: serving.send_rest(exchange, begin,
                                                                    ETag='W/"one"'),
            "another length": lambda exchange, begin: serving.send_rest(exchange, begin,
                                                                        total=SIZE + 1),
            "a coding": lambda exchange, begin: serving.send_rest(exchange, begin,
                                                                  Content_Encoding="gzip"),
            "a refusal": refuse,
            "nothing": break_off,
        }
        for name, answer in answers.items():
            with self.subTest(name):
                serving.answer_rest = answer
                serving.go.clear()
                self.start(serving)
                slow, quick = self.join(serving)
                self.get(quick)
                eventually(lambda: self.proxy.metrics()["encore_slow_readers_cut_total"] == 1,
                           "the slow one is cut")
                self.get_less(slow)
                self.assertEqual(1, self.proxy.outcomes()["slow-reader"])
                # It is asked for once; what is not answered at all is sent anew, as any request.
                times = sum(said_range(r) is not None for r in self.origin.requests)
                self.assertEqual(2 if name == "nothing" else 1, times)
                self.proxy.stop()

    def test_a_rest_that_breaks_off_is_not_asked_for_again(self):
        serving = Serving(ETag='"one"')

        def break_off(exchange, begin):
            exchange.send(response(status="206 Partial Content", Content_Length=SIZE - begin,
                                   Content_Range=f"bytes {begin}-{SIZE - 1}/{SIZE}",
                                   **serving.fields))
            exchange.send(BODY[begin:begin + MIB])
            exchange.reset()
        serving.answer_rest = break_off
        self.start(serving)
        slow, quick = self.join(serving)
        self.get(quick)
        self.get_less(slow)
        self.assertEqual(2, self.origin.count())
        eventually(lambda: self.proxy.outcomes().get("origin-aborted") == 1, "it is counted")

    def test_an_origin_without_ranges_is_not_asked(self):
        serving = Serving(ETag='"one"', Accept_Ranges="none")
        self.start(serving)
        slow, quick = self.join(serving)
        self.get(quick)
        self.get_less(slow)
        self.assertEqual(1, self.origin.count())
        self.assert_counted(0, 1)

    def test_a_body_that_is_held_to_a_digest_is_not_put_together(self):
        serving = Serving(ETag='"one"')
        self.path = f"/sha256/{hashlib.sha256(BODY).hexdigest()}"
        self.start(serving, rule=[{"path": "/sha256/*", "verify": "sha256"}])
        slow, quick = self.join(serving)
        self.get(quick)
        self.get_less(slow)
        self.assertEqual(1, self.origin.count())
        self.assert_counted(0, 1)


class Pace(SharedCase):
    def read_at(self, client, rate, got):
        """Reads the body at so many bytes a second, as far as the machine lets it."""
        client.read_head()
        body = bytearray(client.buffer)
        began = time.monotonic()
        with contextlib.suppress(OSError):
            while len(body) < SIZE:
                may = int((time.monotonic() - began) * rate) - len(body)
                if may <= 0:
                    time.sleep(0.002)
                    continue
                more = client.sock.recv(min(may, 1 << 16))
                if not more:
                    break
                body += more
        got.append(bytes(body) == BODY)

    def test_a_reader_a_little_slower_than_another_is_waited_for(self):
        serving = Serving()  # nothing by which the rest could be asked for
        self.start(serving)
        clients = self.join(serving, receive_buffer=65536, quick_buffer=65536)
        got = []
        threads = [threading.Thread(target=self.read_at, args=(client, rate, got))
                   for client, rate in zip(clients, (0.9 * 6 * MIB, 6 * MIB))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([True, True], got)
        self.assertEqual(1, self.origin.count())
        self.assert_counted(0, 0)


class FromDisk(SharedCase):
    """A body that goes to disk alone, too large for the memory."""

    def test_a_reader_left_behind_reads_what_is_written(self):
        serving = Serving()  # the origin could not be asked for the rest
        self.start(serving, cache={"memory": "32MiB", "max_object": "64MiB"},
                   admission={"policy": "always"},
                   disk=[{"path": str(self.directory / "disk"), "size": "384MiB",
                          "segment": "16MiB"}])
        slow, quick = self.join(serving)
        self.get(quick)
        eventually(self.is_left_behind, "the slow one is left behind")
        self.get(slow)
        self.assert_counted(1, 0)
        self.assertEqual(1, self.origin.count())
        self.assertIn("hit", field(self.proxy_get(), "Cache-Status"))

    def proxy_get(self):
        with Client(self.proxy.port) as client:
            return client.ask(self.origin.url(self.path))
