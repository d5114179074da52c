"""Coded forms stay with what they are made from: over purges, validations, reloads and evictions,
on disk and in memory, for any number of concurrent clients."""

import concurrent.futures
import http.client
import random
import threading
import time
import unittest

from client import Client, NoResponse, field
from codings import Broken, decoded
from compression import CODINGS, TYPE, CompressionCase, accepts, text
from harness import SLOWDOWN, eventually
from origin import fresh

SMALL, LARGE = "/small-9000", "/large-700000"


class Together(CompressionCase):
    def fill(self, name):
        """All of its forms are stored."""
        for coding in (None, *CODINGS, *CODINGS):
            self.get(name, *([coding] if coding else []))

    def purge(self, query, method="POST"):
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.admin_port, timeout=30)
        connection.request(method, "/purge" + query)
        answer = connection.getresponse()
        self.assertEqual(200, answer.status, answer.read())
        connection.close()

    def set_version(self, name, version):
        with self.lock:
            self.versions[name] = version

    def check_all(self, name, version):
        for coding in (*CODINGS, None):
            for _ in range(2):
                self.check(name, self.get(name, *([coding] if coding else [])), coding, version)

    def test_a_purge_takes_all_forms(self):
        self.start_proxy()
        for name in (SMALL, LARGE):
            for version, query in enumerate(("?url={}", "?prefix={}", "?soft=1&url={}"), 2):
                self.fill(name)
                self.set_version(name, version)
                self.check_all(name, version - 1)
                self.purge(query.format(self.origin.url(name)))
                self.check_all(name, version)

    def test_a_write_takes_all_forms(self):
        self.start_proxy()
        for name in (SMALL, LARGE):
            self.fill(name)
            self.set_version(name, 2)
            self.get(name, method="POST", body=b"x")
            self.check_all(name, 2)

    def test_a_304_freshens_all_forms_and_another_answer_takes_them(self):
        self.start_proxy()
        reload = [("Cache-Control", "no-cache")]
        for name in (SMALL, LARGE):
            self.fill(name)
            worked = {coding: self.work(coding)[1] for coding in CODINGS}
            for coding in CODINGS:
                again = self.check(name, self.get(name, coding, fields=reload), coding)
                self.assertIn("fwd-status=304", field(again, "Cache-Status"))
                self.assertEqual('"1"', dict(self.origin.last(name).fields)["if-none-match"])
            self.check_all(name, 1)
            # They were not made anew.
            self.assertEqual(worked, {coding: self.work(coding)[1] for coding in CODINGS})
            self.set_version(name, 2)
            self.check(name, self.get(name, "br", fields=reload), "br", 2)
            self.check_all(name, 2)

    def test_a_304_that_forbids_it_takes_the_forms(self):
        self.start_proxy()
        self.fill(LARGE)

        def forbids(exchange):
            return (b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n'
                    b"Cache-Control: max-age=600, no-transform\r\n\r\n")
        self.origin.routes[LARGE] = forbids
        for fields in ([("Cache-Control", "no-cache")], (), ()):
            answer = self.get(LARGE, "br", fields=fields)
            self.assertIsNone(field(answer, "Content-Encoding"))
            self.assertEqual(self.content(LARGE), answer.body)
            self.assertEqual('"1"', field(answer, "ETag"))

    def test_what_expires_expires_in_all_forms(self):
        self.start_proxy()
        self.seconds = 1
        for name in (SMALL, LARGE):
            self.fill(name)
            self.set_version(name, 2)
            eventually(lambda n=name: field(self.get(n, "gzip"), "ETag") == 'W/"2"', "it is new")
            self.check(name, self.get(name, "br"), "br", 2)

    def test_reloads_switch_it_on_and_off_for_what_is_stored(self):
        self.compression = {}
        self.start_proxy()
        for name in (SMALL, LARGE):
            self.get(name)
        for codings, expected in ((CODINGS, "br"), ([], None), (["gzip"], None), (["br"], "br"),
                                  (CODINGS, "br")):
            self.reload(codings=codings)
            for name in (SMALL, LARGE):
                for _ in range(2):
                    answer = self.get(name, "br")
                    self.assertEqual(expected, field(answer, "Content-Encoding"))
                    self.assertEqual(self.content(name), decoded(answer))
                    self.assertTrue(self.is_hit(answer))
                    if codings:
                        self.assertIn("Accept-Encoding", field(answer, "Vary"))
        self.reload(codings=CODINGS, types=["image/*"])
        for name in (SMALL, LARGE):
            answer = self.get(name, "br")
            self.assertEqual((None, None), (field(answer, "Content-Encoding"), field(answer, "Vary")))
        self.assertEqual(2, self.origin.count())

    def test_clients_of_different_codings_at_once(self):
        self.start_proxy()
        release = threading.Event()

        def slow(exchange):
            exchange.wait(release)
            return self.answer(exchange)
        with concurrent.futures.ThreadPoolExecutor(24) as pool:
            for name in ("/a-9000", "/b-700000", "/c-40000"):
                release.clear()
                self.origin.routes[name] = slow
                asked = [(coding, pool.submit(self.get, name, *([coding] if coding else [])))
                         for coding in [*CODINGS, None] * 5]
                eventually(lambda n=name: self.origin.count(n) > 0, "the origin is asked")
                release.set()
                for coding, future in asked:
                    self.check(name, future.result(), coding)
                # And once more for the response stored now, which has no forms yet.
                asked = [(coding, pool.submit(self.get, name, *([coding] if coding else [])))
                         for coding in [*CODINGS, None] * 5]
                for coding, future in asked:
                    self.check(name, future.result(), coding)

    def test_forms_are_charged_and_go_with_what_they_are_made_from(self):
        self.cache = {"memory": "4MiB"}
        self.start_proxy()
        names = [f"/many{i}-60000" for i in range(150)]
        for name in names:
            self.fill(name)
        self.assertLessEqual(self.metric("cache_used_bytes"), 4 << 20)
        self.assertLess(self.metric("cache_objects"), 60)
        for name in names:
            self.check(name, self.get(name, "gzip"), "gzip")
        # The last ones have their forms.
        self.check(names[-1], self.get(names[-1], "gzip"), "gzip")
        before = self.work("gzip")[1]
        self.check(names[-1], self.get(names[-1], "gzip"), "gzip")
        self.assertEqual(before, self.work("gzip")[1])


class WithDisk(CompressionCase):
    def start_with_disk(self):
        self.cache = {"memory": "4MiB"}
        self.start_proxy(disk=[{"path": str(self.directory / "disk"), "size": "256MiB",
                                "segment": "8MiB"}])

    def is_written(self):
        """For a second at most it lies in a buffer, and is a miss where memory has let it go."""
        metrics = self.proxy.metrics()
        placed = metrics['encore_disk_placed_bytes_total{disk="0",why="admit"}']
        return placed - metrics['encore_disk_bytes_written_total{disk="0",why="admit"}'] < 8192

    def test_what_lies_on_disk_is_the_identity_and_is_compressed_from_there(self):
        self.start_with_disk()
        names = [SMALL, "/mid-60000", "/huge-3000000"]
        for name in names:
            self.check(name, self.get(name, "zstd"), "zstd")
        for name in [f"/other{i}-200000" for i in range(40)]:
            self.get(name)
        eventually(self.is_written, "all is written")
        asked = self.origin.count()
        for restart in (False, True):
            if restart:
                self.proxy.stop()
                self.proxy.start()
                for name in names:  # until the index has been read
                    eventually(lambda n=name: self.is_hit(self.get(n)), f"{name} is found")
                asked = self.origin.count()
            for coding in (*CODINGS, None, *CODINGS):
                for name in names:
                    answer = self.get(name, *([coding] if coding else []))
                    self.check(name, answer, coding)
                    self.assertTrue(self.is_hit(answer), field(answer, "Cache-Status"))
            part = self.get(names[2], "br", fields=[("Range", "bytes=2000000-2000099")])
            self.assertEqual(self.content(names[2])[2000000:2000100], part.body)
        self.assertEqual(asked, self.origin.count())


class History(CompressionCase):
    """At random, with an oracle: whatever comes, decoded, is the version that its tag names, and no
    version comes that was gone before it was asked for."""

    steps = 500

    def one(self, rng, names, client):
        name = rng.choice(names)
        codings = rng.choice([(), ("gzip",), ("br",), ("zstd",), ("gzip", "br"),
                              ("br;q=0.5", "gzip;q=0.4"), ("identity", "br;q=0.1")])
        with self.lock:
            oldest = self.purged.get(name, 1)
        fields = accepts(*codings)
        kind = rng.randrange(12)
        asked = None
        if kind == 0:
            asked = rng.choice(['"1"', 'W/"2"', '"3", W/"4"'])
            fields.append(("If-None-Match", asked))
        elif kind == 1:
            fields.append(("Cache-Control", "no-cache"))
        elif kind == 2:
            first = rng.randrange(8000)
            fields.append(("Range", f"bytes={first}-{first + 99}"))
        method = "HEAD" if kind == 3 else "GET"
        if kind == 4:
            client = Client(self.proxy.port, receive_buffer=4096)
            client.request(self.origin.url(name), fields=fields)
            client.reset()
            return
        answer = client.ask(self.origin.url(name), method=method, fields=fields)
        tag = field(answer, "ETag")
        version = int(tag.strip('W/"'))
        coding = field(answer, "Content-Encoding")
        self.assertGreaterEqual(version, oldest, answer)
        self.assertIn("Accept-Encoding", field(answer, "Vary"))
        if answer.status == 304:
            self.assertIn(f'"{version}"', asked)
            return
        content = self.content(name, version)
        if answer.status == 206:
            self.assertEqual((f'"{version}"', content[first:first + 100]), (tag, answer.body))
            return
        self.assertEqual(200, answer.status)
        self.assertEqual(tag.startswith("W/"), coding is not None)
        if coding is not None:
            self.assertIn(coding, " ".join(codings))
        if method == "GET":
            self.assertEqual(content, decoded(answer), (name, version, coding))

    def disturb(self, rng, names):
        name = rng.choice(names)
        what = rng.randrange(4)
        if what == 0:
            self.reload(codings=rng.choice([["gzip"], CODINGS, ["br", "gzip"]]))
            return
        with self.lock:
            self.versions[name] = version = self.versions.get(name, 1) + 1
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.admin_port, timeout=30)
        connection.request("POST", f"/purge?url={self.origin.url(name)}")
        self.assertEqual(200, connection.getresponse().status)
        connection.close()
        with self.lock:
            self.purged[name] = version

    def test_at_random(self):
        seed = random.SystemRandom().getrandbits(32)
        self.purged = {}
        self.start_proxy(cache={"memory": "2MiB"}, workers={"count": 3})
        names = [f"/n{i}-{size}" for i, size in enumerate((9000, 20_000, 33_000, 70_000, 200_000))]
        done = threading.Event()
        faults = []

        def clients(number):
            rng = random.Random(seed + number)
            try:
                with Client(self.proxy.port) as client:
                    for _ in range(self.steps // SLOWDOWN):
                        self.one(rng, names, client)
            except (AssertionError, NoResponse, Broken, OSError) as fault:
                faults.append(fault)
        threads = [threading.Thread(target=clients, args=(i,)) for i in range(6)]

        def disturbs():
            rng = random.Random(seed)
            while not done.wait(0.02):
                self.disturb(rng, names)
        disturber = threading.Thread(target=disturbs)
        for thread in [*threads, disturber]:
            thread.start()
        for thread in threads:
            thread.join()
        done.set()
        disturber.join()
        self.assertEqual([], faults, f"seed {seed}")


if __name__ == "__main__":
    unittest.main()
