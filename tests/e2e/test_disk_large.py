"""Bodies that are longer than a record, and longer than memory may hold: they lie on disk in
parts, are written as they come and sent as they are read."""

import hashlib
import os
import random
import signal
import threading

from client import Client, field
from harness import SLOWDOWN, eventually
from origin import chunked, fresh, response
from test_disk_tier import DiskCase, content

MIB = 1 << 20
PART = 63 << 16


class LargeCase(DiskCase):
    """An eighth of the memory is 4 MiB: what is larger lies on disk alone."""

    def start_proxy(self, size="384MiB", memory="32MiB", max_object="40MiB", **sections):
        self.path = self.directory / "disk"
        self.proxy = self.encore(**{
            "cache": {"memory": memory, "max_object": max_object},
            "disk": [{"path": str(self.path), "size": size, "segment": "16MiB"}],
            "admission": {"policy": "always"}, **sections})

    def store(self, name, **options):
        self.check(name, self.get(name, **options))
        self.await_stored(name, **options)

    def await_stored(self, name, fields=()):
        only = [*fields, ("Cache-Control", "only-if-cached")]
        eventually(lambda: self.get(name, method="HEAD", fields=only).status == 200,
                   f"{name} is on disk")

    def is_loaded(self):
        return self.proxy.metrics()['encore_disk_loading{disk="0"}'] == 0


class SmallSegments(LargeCase):
    def test_what_is_said_to_be_stored_is_a_hit_whatever_the_segments_take(self):
        for segment, limit in (("256KiB", 512 << 10), ("1MiB", MIB - (64 << 10)),
                               ("2MiB", 2 * MIB - (128 << 10))):
            self.proxy = self.encore(
                cache={"memory": "4MiB", "max_object": "32MiB"}, admission={"policy": "always"},
                disk=[{"path": str(self.directory / f"disk-{segment}"), "size": "96MiB",
                       "segment": segment}])
            for size in (200 << 10, 500 << 10, limit - (8 << 10), limit + 1, 1100000, 3 * MIB):
                name = f"/{segment}-{size}"
                with self.subTest(name=name):
                    said = field(self.get(name), "Cache-Status")
                    self.assertEqual(size <= limit, "stored=?0" not in said, said)
                    if size <= limit:
                        self.await_stored(name)
                    else:
                        self.assertNotIn("admitted", said)
            self.proxy.stop()


    def test_just_below_an_eighth_of_the_memory_what_is_said_holds(self):
        for segment in ("256KiB", "1MiB"):
            self.proxy = self.encore(
                cache={"memory": "8MiB", "max_object": "32MiB"}, admission={"policy": "always"},
                disk=[{"path": str(self.directory / f"eighth-{segment}"), "size": "96MiB",
                       "segment": segment}])
            for below in (0, 1, 40, 200, 1000, 3000, 5000):
                name = f"/{segment}-{MIB - below}"
                with self.subTest(name=name):
                    said = field(self.get(name), "Cache-Status")
                    if "stored=?0" in said:
                        self.assertIn("detail=too-large", said)
                        self.assertNotIn("; hit", field(self.get(name), "Cache-Status"))
                    else:
                        self.assertIn("; hit", field(self.get(name), "Cache-Status"), said)
            self.proxy.stop()

    def test_the_segments_of_a_disk_as_it_was_made_count(self):
        disk = {"path": str(self.directory / "made"), "size": "96MiB", "segment": "256KiB"}
        sections = {"cache": {"memory": "2MiB", "max_object": "32MiB"},
                    "admission": {"policy": "always"}}
        self.encore(disk=[disk], **sections).stop()
        self.proxy = self.encore(disk=[{**disk, "segment": "16MiB"}], **sections)
        for size in (200 << 10, 230 << 10, 250 << 10, 500 << 10, 4 * MIB):
            name = f"/made-{size}"
            with self.subTest(name=name):
                said = field(self.get(name), "Cache-Status")
                if size <= 256 << 10 and "stored=?0" not in said:
                    self.await_stored(name)
                else:
                    self.assertIn("stored=?0", said)
                    self.assertIn("detail=too-large", said)
        effective = self.proxy.output()
        self.assertIn("and in effect 256KiB", effective)
        self.assertRegex(self.run_client(
            [self.proxy.program, "--config", self.proxy.config_path,
             "--check-config"]).stdout.decode(), r"max_object +256KiB")


    def test_a_reload_leaves_disks_their_segments(self):
        disk = {"path": str(self.directory / "made"), "size": "96MiB"}
        sections = {"cache": {"memory": "2MiB"}, "admission": {"policy": "always"}}
        self.encore(disk=[{**disk, "segment": "256KiB"}], **sections).stop()
        self.proxy = self.encore(disk=[disk], **sections)
        for _ in range(2):
            self.proxy.signal(signal.SIGHUP)
            eventually(lambda: "] reloaded" in self.proxy.output(), "it is reloaded")
        self.assertNotIn("refused", self.proxy.output())
        self.assertIn("detail=too-large", field(self.get(f"/large-{4 * MIB}"), "Cache-Status"))


class Large(LargeCase):
    def test_a_body_beyond_memory_is_a_hit_from_disk(self):
        self.start_proxy()
        for size in (4 * MIB + 1, 2 * PART, 2 * PART + 1, 20 * MIB + 77777):
            with self.subTest(size=size):
                name = f"/large-{size}"
                self.store(name)
                answer = self.get(name)
                self.assertIn("; hit", field(answer, "Cache-Status"))
                self.assertIn("detail=disk", field(answer, "Cache-Status"))
                self.check(name, answer)
                self.assertEqual(1, self.asked[name])

    def test_a_body_that_memory_holds_is_found_when_memory_has_let_it_go(self):
        self.start_proxy(memory="64MiB")
        name = f"/held-{6 * MIB}"
        self.store(name)
        self.assertNotIn("detail=disk", self.detail(name))
        self.restart()
        eventually(self.is_loaded, "all is loaded")
        self.assertTrue(self.is_disk_hit(name))
        self.check(name, self.get(name))
        self.assertEqual(1, self.asked[name])

    def test_it_is_found_after_a_stop_and_after_a_kill(self):
        self.start_proxy()
        name = f"/large-{13 * MIB}"
        self.store(name)
        for how in (signal.SIGTERM, signal.SIGKILL):
            self.restart(how)
            eventually(self.is_loaded, "all is loaded")
            self.check(name, self.get(name))
            if how == signal.SIGTERM:
                self.assertEqual(1, self.asked[name])

    def test_ranges_are_cut_from_its_parts(self):
        self.start_proxy()
        size = 10 * MIB + 333
        name = f"/r-{size}"
        self.store(name)
        whole = content(name, 1, size)
        rng = random.Random(7)
        edges = [0, 1, 65535, 65536, PART - 1, PART, PART + 1, 2 * PART - 1, 2 * PART, size - 1]
        pairs = [(a, b) for a in edges for b in edges if a <= b and rng.random() < 0.5]
        pairs += [tuple(sorted((rng.randrange(size), rng.randrange(size)))) for _ in range(20)]
        for begin, end in pairs:
            answer = self.get(name, fields=[("Range", f"bytes={begin}-{end}")])
            self.assertEqual((206, f"bytes {begin}-{end}/{size}"),
                             (answer.status, field(answer, "Content-Range")))
            self.assertEqual(whole[begin:end + 1], answer.body, (begin, end))
        answer = self.get(name, fields=[("Range", f"bytes=-10")])
        self.assertEqual(whole[-10:], answer.body)
        several = self.get(name, fields=[("Range", f"bytes=5-9,{PART - 2}-{PART + 2}")])
        self.assertEqual(206, several.status)
        self.assertIn(b"\r\n\r\n" + whole[PART - 2:PART + 3] + b"\r\n--", several.body)
        back = self.get(name, fields=[("Range", f"bytes={PART}-{PART + 9},5-9")])
        self.assertEqual((200, whole), (back.status, back.body))
        self.assertEqual(416, self.get(name, fields=[("Range", f"bytes={size}-")]).status)
        self.assertEqual(304, self.get(name, fields=[("If-None-Match", '"1"')]).status)
        self.assertEqual(str(size), field(self.get(name, method="HEAD"), "Content-Length"))
        self.assertEqual(1, self.asked[name])

    def test_a_body_of_unknown_length_that_outgrows_memory(self):
        size = 9 * MIB
        body = content("/unknown", 1, size)

        def answer(exchange):
            self.asked["/unknown"] = self.asked.get("/unknown", 0) + 1
            exchange.send(chunked(*[body[i:i + 300000] for i in range(0, size, 300000)],
                                  ETag='"1"'))
        self.origin.default = answer
        self.start_proxy()
        self.assertEqual(body, self.get("/unknown").body)
        self.await_stored("/unknown")
        self.assertEqual(body, self.get("/unknown").body)
        self.assertEqual(1, self.asked["/unknown"])

    def test_what_is_too_large_is_passed_on(self):
        self.start_proxy(max_object="6MiB")
        name = f"/large-{7 * MIB}"
        for _ in range(2):
            answer = self.get(name)
            self.check(name, answer)
            self.assertNotIn("; hit", field(answer, "Cache-Status"))
        body = content("/unknown", 1, 7 * MIB)
        self.origin.default = lambda exchange: exchange.send(
            chunked(body))
        for _ in range(2):
            self.assertEqual(body, self.get("/unknown").body)

    def test_it_is_validated_and_its_parts_stay(self):
        size = 9 * MIB
        body = content("/s", 1, size)
        validations = []

        def answer(exchange):
            if any(name.lower() == "if-none-match" for name, _ in exchange.request.fields):
                validations.append(1)
                exchange.send(response(b"", "304 Not Modified", ETag='"1"',
                                       Cache_Control="max-age=6000", Content_Length=None))
            else:
                exchange.send(response(body, ETag='"1"', Cache_Control="no-cache"))
        self.origin.default = answer
        self.start_proxy()
        self.get("/s")
        eventually(self.is_written, "what waits is on disk")
        self.assertIn("fwd-status=304", self.detail("/s"))
        self.await_stored("/s")
        placed = self.proxy.metrics()['encore_disk_placed_bytes_total{disk="0",why="admit"}']
        self.assertIn("; hit", self.detail("/s"))
        self.assertEqual(body, self.get("/s").body)
        self.restart()
        eventually(self.is_loaded, "all is loaded")
        self.assertEqual(body, self.get("/s").body)
        self.assertEqual(1, len(validations))
        self.assertLess(placed, 9.5 * MIB)

    def test_what_has_gone_while_it_was_validated_is_asked_for_anew(self):
        asked, goes_on = threading.Event(), threading.Event()
        name = f"/gone-{13 * MIB}"
        usual = self.origin.default

        def answer(exchange):
            if not any(field == "if-none-match" for field, _ in exchange.request.fields):
                return usual(exchange)
            asked.set()
            exchange.wait(goes_on)
            exchange.send(response(b"", "304 Not Modified", ETag='"1"', Content_Length=None))
        self.origin.default = answer
        self.start_proxy(size="128MiB", memory="8MiB")
        self.store(name)
        with Client(self.proxy.port) as client:
            client.request(self.origin.url(name), fields=[("Cache-Control", "no-cache")])
            self.assertTrue(asked.wait(30 * SLOWDOWN))
            for i in range(14):
                self.store(f"/other/{i}-{10 * MIB}")
            goes_on.set()
            answered = client.read_response()
        self.assertEqual(200, answered.status)
        self.assertEqual(content(name, 1, 13 * MIB), answered.body)
        self.assertEqual(2, self.asked[name])

    def test_the_commands_know_its_parts(self):
        self.start_proxy()
        size = 9 * MIB
        name = f"/listed-{size}"
        self.store(name)
        self.proxy.stop()
        command = [os.environ["ENCORE"], "disk"]
        listed = self.run_client([*command, "list", self.path]).stdout.decode()
        self.assertIn(name, listed)
        self.assertIn("(3 parts)", listed)
        verified = self.run_client([*command, "verify", self.path]).stdout.decode()
        self.assertIn("(3 of them parts of larger bodies)", verified)

    def test_a_purge_is_for_good(self):
        self.start_proxy()
        name = f"/p-{9 * MIB}"
        self.store(name)
        self.versions[name] = 2
        self.purge("url=" + self.origin.url(name))
        self.restart(signal.SIGKILL)
        self.assertEqual(2, self.check(name, self.get(name)))

    def test_several_at_once_each_get_the_whole(self):
        self.start_proxy()
        name = f"/m-{18 * MIB}"
        self.store(name)
        wrong, rng = [], random.Random(3)

        def ask(begin):
            try:
                options = {"fields": [("Range", f"bytes={begin}-")]} if begin else {}
                answer = self.get(name, **options)
                self.assertEqual(content(name, 1, 18 * MIB)[begin:], answer.body)
            except BaseException as error:  # also an assertion: the test reports it
                wrong.append(error)
        threads = [threading.Thread(target=ask, args=(rng.choice((0, rng.randrange(18 * MIB))),))
                   for _ in range(8)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual([], wrong)
        self.assertEqual(1, self.asked[name])

    def test_behind_a_slow_first_client_others_have_it_from_the_origin(self):
        """As docs/DISK.md has it: on disk alone a body is not there sooner than its client takes it."""
        self.start_proxy()
        name = f"/first-{30 * MIB}"
        with Client(self.proxy.port, receive_buffer=65536) as slow:
            slow.request(self.origin.url(name))
            slow.read_head()
            # Beyond cache.collapse_buffer, so that nobody joins.
            begin = slow.read_exactly(3 * MIB)
            self.check(name, self.get(name))
            self.assertEqual(2, self.asked[name])
            self.await_stored(name)
            self.assertIn("detail=disk", self.detail(name))
            self.assertEqual(content(name, 1, 30 * MIB), begin + slow.read_exactly(27 * MIB))
        self.assertEqual(2, self.asked[name])

    def test_clients_that_leave_and_that_are_slow_hold_little(self):
        self.start_proxy()
        name = f"/slow-{30 * MIB}"
        self.store(name)
        clients = []
        for _ in range(6):
            client = Client(self.proxy.port, receive_buffer=65536)
            self.addCleanup(client.close)
            client.request(self.origin.url(name))
            client.read_head()
            clients.append(client)
        for client in clients[:3]:
            client.reset()
        stats = self.proxy.metrics()
        self.assertLess(stats["encore_store_in_flight_bytes"], 16 * MIB)
        digest = hashlib.sha256(content(name, 1, 30 * MIB)).digest()
        for client in clients[3:]:
            self.assertEqual(digest, hashlib.sha256(client.read_exactly(30 * MIB)).digest())

    def test_a_disk_that_turns_beneath_a_slow_client_takes_nothing_from_it(self):
        self.start_proxy(size="128MiB", memory="8MiB")
        name = f"/beneath-{13 * MIB}"
        self.store(name)
        with Client(self.proxy.port, receive_buffer=65536) as client:
            client.request(self.origin.url(name))
            client.read_head()
            first = client.read_exactly(100_000)
            # Twice around.
            for i in range(24):
                self.store(f"/other/{i}-{10 * MIB}")
            metrics = self.proxy.metrics()
            self.assertGreater(metrics["encore_disk_segments_reclaimed_total"], 10)
            body = first + client.read_exactly(13 * MIB - len(first))
            self.assertEqual(content(name, 1, 13 * MIB), body)

    def test_an_origin_that_breaks_off_leaves_nothing(self):
        body = content("/b", 1, 12 * MIB)

        def answer(exchange):
            exchange.send(fresh(body, 6000)[:9 * MIB])
            exchange.close()
        self.origin.default = answer
        self.start_proxy()
        for _ in range(2):
            with Client(self.proxy.port) as client:
                client.request(self.origin.url("/b"))
                client.read_head()
                self.assertLess(len(client.read_to_end()), len(body))
        self.origin.default = lambda exchange: exchange.send(fresh(body, 6000))
        self.assertEqual(body, self.get("/b").body)


class Damaged(LargeCase):
    def test_a_part_that_cannot_be_read_breaks_the_answer_visibly(self):
        self.start_proxy()
        name = f"/d-{16 * MIB}"
        self.store(name)
        self.proxy.stop()
        mark = b"%s version 1 %d\n" % (name.encode(), 300000)
        with open(self.path, "r+b") as disk:
            data = disk.read()
            at = data.index(mark)
            disk.seek(at)
            disk.write(b"X")
        self.proxy.start()
        eventually(self.is_loaded, "all is loaded")
        with Client(self.proxy.port, timeout=30 * SLOWDOWN) as client:
            client.request(self.origin.url(name))
            client.read_head()
            self.assertLess(len(client.read_to_end()), 16 * MIB)
        self.check(name, self.get(name))
        self.assertEqual(2, self.asked[name])
        self.assertEqual(1, self.proxy.outcomes().get("cache-aborted", 0))
