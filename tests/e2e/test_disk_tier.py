"""The disk tier: a stored object is found on disk after memory has evicted it, after a restart, and
after a kill; a purged one never is."""

import http.client
import os
import random
import signal
import threading
import unittest

from client import Client, field, get
from harness import SLOWDOWN, Case, eventually
from origin import Origin, fresh, response

KIB = 1024


def content(name, version=1, size=0):
    """A body that names itself, and differs in each of its blocks."""
    line = f"{name} version {version} ".encode()
    text = b"".join(b"%s%d\n" % (line, i) for i in range(size // len(line) + 1))
    return text[:max(size, len(line) + 2)]


class DiskCase(Case):
    """An origin whose answers have versions, and a proxy with more disk than memory."""

    fields = {}

    def setUp(self):
        super().setUp()
        self.versions, self.asked = {}, {}
        self.lock = threading.Lock()
        self.origin = Origin(self, default=self.answer)

    def answer(self, exchange):
        name = exchange.request.target
        with self.lock:
            self.asked[name] = self.asked.get(name, 0) + 1
            version = self.versions.get(name, 1)
        exchange.send(fresh(content(name, version, self.size(name)), 6000,
                            ETag=f'"{version}"', **self.fields))

    @staticmethod
    def size(name):
        return int(name.rpartition("-")[2]) if name.rpartition("-")[2].isdigit() else 0

    def start_proxy(self, size="64MiB", **sections):
        self.path = self.directory / "disk"
        self.proxy = self.encore(**{
            "cache": {"memory": "4MiB", **sections.pop("cache", {})},
            "disk": [{"path": str(self.path), "size": size, "segment": "1MiB"}],
            "admission": {"policy": "always"}, **sections})

    def restart(self, how=signal.SIGTERM):
        if how == signal.SIGTERM:
            self.proxy.stop()
        else:
            process, self.proxy.process = self.proxy.process, None
            process.send_signal(how)
            process.wait()
        self.proxy.start()

    def get(self, name, **options):
        return get(self.proxy.port, self.origin.url(name), **options)

    def check(self, name, answer):
        """The answer is a version of what it is asked for; which."""
        self.assertEqual(200, answer.status)
        version = int(field(answer, "ETag").strip('"'))
        self.assertEqual(content(name, version, self.size(name)), answer.body, name)
        return version

    def detail(self, name, **options):
        return field(self.get(name, **options), "Cache-Status")

    def is_disk_hit(self, name, **options):
        return "detail=disk" in self.detail(name, **options)

    def is_written(self):
        """For a second at most it lies in a buffer, and is a miss where memory has let it go."""
        metrics = self.proxy.metrics()
        placed = metrics['encore_disk_placed_bytes_total{disk="0",why="admit"}']
        written = metrics['encore_disk_bytes_written_total{disk="0",why="admit"}']
        return placed - written < KIB * 8

    def purge(self, query):
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.admin_port,
                                                timeout=30 * SLOWDOWN)
        connection.request("POST", "/purge?" + query)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        self.assertEqual(200, answer.status, text)


class Tier(DiskCase):
    def fill(self, count=300, size=40 * KIB):
        """More than memory takes, less than the disk."""
        names = [f"/{i}-{size + 131 * (i % 50)}" for i in range(count)]
        for name in names:
            self.check(name, self.get(name))
        eventually(self.is_written, "what waits is on disk")
        return names

    def status(self):
        return self.run_client([self.proxy.program, "--config", self.proxy.config_path,
                                "status", "--text"]).stdout.decode()

    def test_an_edit_while_the_proxy_was_down_is_seen_after_a_purge_of_all(self):
        self.start_proxy()
        names = self.fill(count=50)
        self.assertNotIn("curl", self.status())
        self.proxy.stop()
        self.versions = dict.fromkeys(names, 2)
        self.proxy.start()
        eventually(lambda: "in-service" in self.status(), "the disk is read")
        self.assertEqual(1, self.check(names[0], self.get(names[0])))
        said = self.status()
        self.assertIn(f"curl -X POST 127.0.0.1:{self.proxy.admin_port}/purge -d all=1", said)
        self.assertIn("cache.purge_at_start", said)
        self.purge("all=1")
        for name in names:
            self.assertEqual(2, self.check(name, self.get(name)))

    def test_with_a_key_every_start_purges_all(self):
        self.start_proxy(cache={"purge_at_start": True})
        names = self.fill(count=50)
        for version in 2, 3:
            self.proxy.stop()
            self.versions = dict.fromkeys(names, version)
            self.proxy.start()
            self.assertNotIn("curl", self.status())
            for name in names:
                self.assertEqual(version, self.check(name, self.get(name)))
                self.assertEqual(version, self.check(name, self.get(name)))
            eventually(self.is_written, "what waits is on disk")

    def test_what_memory_has_let_go_is_a_hit_from_disk(self):
        self.start_proxy()
        names = self.fill()
        details = [self.detail(name) for name in names]
        self.assertTrue(all("; hit" in each for each in details), details)
        self.assertGreater(sum("detail=disk" in each for each in details), 150)
        for name in names:
            self.check(name, self.get(name))
        self.assertEqual({1}, set(self.asked.values()))

    def test_a_restart_forgets_nothing(self):
        self.start_proxy()
        names = self.fill()
        self.restart()
        for name in names:
            eventually(lambda name=name: "; hit" in self.detail(name), f"{name} is loaded")
            self.check(name, self.get(name))
        # Before the index knew them they were misses; those are few, and known again.
        self.assertLess(sum(n > 1 for n in self.asked.values()), 30)

    def test_the_log_says_what_becomes_of_a_disk(self):
        self.start_proxy()
        eventually(lambda: f"disk {self.path}: ready, 0 segments"
                   in self.proxy.output(), "it is said")
        self.check("/a-100", self.get("/a-100"))
        self.restart()
        eventually(lambda: f"disk {self.path}: ready, 1 segments"
                   in self.proxy.output(), "it is said")

    def test_a_kill_loses_the_last_second_and_gives_nothing_wrong(self):
        self.start_proxy()
        names = self.fill()
        self.restart(signal.SIGKILL)
        for name in names:
            self.check(name, self.get(name))
        hits = sum(n == 1 for n in self.asked.values())
        self.assertGreater(hits, len(names) // 2)

    def test_variants_ranges_and_heads_are_answered_from_disk(self):
        self.fields = {"Vary": "Foo"}
        self.start_proxy()
        for foo in ("one", "two"):
            self.check("/v-50000", self.get("/v-50000", fields=[("Foo", foo)]))
        self.restart()
        whole = content("/v-50000", 1, 50000)
        for foo in ("one", "two"):
            eventually(lambda foo=foo: self.is_disk_hit("/v-50000", fields=[("Foo", foo)]),
                       f"the variant {foo} is loaded")
            answer = self.get("/v-50000", fields=[("Foo", foo), ("Range", "bytes=40000-40009")])
            self.assertEqual((206, whole[40000:40010]), (answer.status, answer.body))
            head = self.get("/v-50000", method="HEAD", fields=[("Foo", foo)])
            self.assertEqual("50000", field(head, "Content-Length"))
            self.assertIn("; hit", field(head, "Cache-Status"))
        self.assertNotIn("; hit", self.detail("/v-50000", fields=[("Foo", "three")]))

    def test_what_is_stale_on_disk_is_validated_and_kept(self):
        bodies = content("/s", 1, 30000)
        validations = []

        def answer(exchange):
            if any(name.lower() == "if-none-match" for name, _ in exchange.request.fields):
                validations.append(1)
                exchange.send(response(b"", "304 Not Modified", ETag='"1"',
                                       Cache_Control="max-age=6000", Content_Length=None))
            else:
                exchange.send(response(bodies, ETag='"1"', Cache_Control="no-cache"))
        self.origin.default = answer
        self.start_proxy()
        self.get("/s")
        self.restart()
        eventually(lambda: "fwd-status=304" in self.detail("/s"), "the stale one is validated")
        found = self.get("/s")
        self.assertEqual(bodies, found.body)
        self.assertIn("; hit", field(found, "Cache-Status"))
        self.restart()
        eventually(lambda: self.is_disk_hit("/s"), "as it was freshened")
        self.assertEqual(bodies, self.get("/s").body)
        self.assertEqual(1, len(validations))

    def test_what_was_confirmed_in_memory_is_confirmed_again_behind_it(self):
        body, confirmed = content("/s", 1, 3000), []

        def answer(exchange):
            if exchange.request.target != "/s":
                self.answer(exchange)
            elif any(name.lower() == "if-none-match" for name, _ in exchange.request.fields):
                confirmed.append(1)
                exchange.send(response(b"", "304 Not Modified", ETag='"1"',
                                       Cache_Control="max-age=6000", Content_Length=None,
                                       X_Confirmed=str(len(confirmed))))
            else:
                exchange.send(fresh(body, 6000, ETag='"1"', X_Confirmed="0"))
        self.origin.default = answer
        self.start_proxy(cache={"eviction": "fifo"})

        def confirmations(**options):
            found = self.get("/s", **options)
            self.assertEqual((200, body), (found.status, found.body))
            return field(found, "X-Confirmed"), field(found, "Cache-Status")
        self.assertEqual("0", confirmations()[0])
        eventually(self.is_written, "it is on disk, too")
        self.assertEqual("1", confirmations(fields=[("Cache-Control", "no-cache")])[0])
        self.assertEqual("1", confirmations()[0])
        self.fill()
        # Its record says 0 still.
        number, status = confirmations()
        self.assertEqual("2", number, status)
        self.assertIn("fwd-status=304", status)
        eventually(self.is_written, "what was confirmed is written anew")
        self.restart()
        eventually(lambda: self.is_disk_hit("/s"), "it is loaded")
        self.assertEqual("2", confirmations()[0])
        self.assertEqual(2, len(confirmed))

    def test_what_is_asked_for_once_is_never_written(self):
        self.start_proxy(admission={"policy": "second-hit"})
        names = self.fill(100)
        placed = 'encore_disk_placed_bytes_total{disk="0",why="admit"}'
        written = 'encore_disk_bytes_written_total{disk="0",why="admit"}'
        metrics = self.proxy.metrics()
        self.assertEqual([0, 0], [metrics[placed], metrics[written]])
        self.assertEqual(1, metrics[f'encore_disk_info{{disk="0",path="{self.path}"}}'])
        for name in names[:10]:
            self.get(name)
        eventually(lambda: self.proxy.metrics()[written] > 0, "what is stored is written")
        self.assertGreater(self.proxy.metrics()[placed], 0)
        self.restart()
        for name in names[:10]:
            eventually(lambda name=name: "; hit" in self.detail(name), f"{name} is loaded")
        self.assertNotIn("; hit", self.detail(names[50]))

    def test_a_small_hit_is_one_read(self):
        self.start_proxy()
        names = [f"/r/{i}-{100 * i}" for i in range(60)]
        for name in names:
            self.check(name, self.get(name))
        self.restart()
        eventually(lambda: self.proxy.metrics()['encore_disk_loading{disk="0"}'] == 0, "all is loaded")
        before = self.proxy.metrics()['encore_disk_reads_total{disk="0"}']
        for name in names:
            self.assertIn("detail=disk", self.detail(name))
        after = self.proxy.metrics()['encore_disk_reads_total{disk="0"}']
        self.assertEqual(len(names), after - before)

    def test_a_disk_may_grow_and_shrink_and_is_never_emptied_by_it(self):
        self.start_proxy(size="16MiB", cache={"memory": "2MiB"})
        names = self.fill(100)
        for size, least in (("32MiB", 90), ("16MiB", 90), ("8MiB", 30), ("8MiB", 30)):
            with self.subTest(size=size):
                self.proxy.sections["disk"][0]["size"] = size
                self.restart()
                eventually(lambda: self.proxy.metrics()['encore_disk_loading{disk="0"}'] == 0,
                           "all is loaded")
                hits = sum("; hit" in self.detail(name) for name in names)
                self.assertGreater(hits, least)
                for name in names:
                    self.check(name, self.get(name))
                eventually(self.is_written, "what waits is on disk")
        # The bytes beyond its end are freed one start after the start that gave them up.
        self.restart()
        self.assertLess(os.path.getsize(self.path), 9 << 20)

    def test_many_at_once_on_one_object_read_it_once_or_twice(self):
        self.start_proxy()
        name = "/big-400000"
        self.check(name, self.get(name))
        self.restart()
        eventually(lambda: "; hit" in self.detail(name, method="HEAD"), "it is loaded")
        wrong = []

        def ask():
            try:
                self.check(name, self.get(name))
            except BaseException as error:  # also an assertion: the test reports it
                wrong.append(error)
        threads = [threading.Thread(target=ask) for _ in range(16)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual([], wrong)
        self.assertLessEqual(self.asked[name], 2)


class Names(DiskCase):
    """The texts of Vary that the disks number."""

    OTHERS = 4200  # more than there are numbers

    def answer(self, exchange):
        name = exchange.request.target
        vary = "X-" + name[1:] if name.startswith("/other") else \
            "Origin, Accept-Encoding" if name.startswith("/usual") else None
        fields = {"Vary": vary} if vary else {}
        exchange.send(fresh(content(name, 1, 2000), 6000, **fields))

    def test_names_of_one_origin_leave_usual_ones_their_place(self):
        self.start_proxy()
        with Client(self.proxy.port) as client:
            for first in range(0, self.OTHERS, 50):
                client.send("".join(
                    f"GET {self.origin.url(f'/other{first + i}')} HTTP/1.1\r\nHost: h\r\n\r\n"
                    for i in range(50)))
                for _ in range(50):
                    self.assertEqual(200, client.read_response().status)
        refused = self.proxy.metrics()["encore_disk_names_refused_total"]
        self.assertEqual(self.OTHERS - 2048, refused)
        names = [f"/{kind}{i}" for kind in ("usual", "plain") for i in range(20)]
        for name in names:
            self.get(name)
        self.assertEqual(refused, self.proxy.metrics()["encore_disk_names_refused_total"])
        eventually(self.is_written, "what waits is on disk")
        self.restart()
        eventually(lambda: "in-service" in self.status(), "the disk is read")
        for name in names:
            self.assertIn("; hit", self.detail(name), name)

    def status(self):
        return self.run_client([self.proxy.program, "--config", self.proxy.config_path,
                                "status", "--text"]).stdout.decode()


class Journal(DiskCase):
    def test_what_the_disks_were_told_replays_without_a_difference(self):
        self.fields = {"Cache-Tag": "red"}
        journal = self.directory / "decisions"
        self.start_proxy(size="16MiB", cache={"memory": "2MiB", "disk_life_min": "0s"},
                         log={"decisions": str(journal)})
        rng = random.Random(5)
        names = [f"/j/{i}-{rng.choice([900, 9000, 70000])}" for i in range(120)]
        for life in range(2):
            for step in range(400):
                self.get(rng.choice(names))
                if step % 100 == 50:
                    self.purge("url=" + self.origin.url(rng.choice(names)))
                    self.purge(rng.choice(["tag=red", "prefix=" + self.origin.url("/j/1")]))
            self.proxy.stop()
            said = self.run_client([os.environ["ENCORE_SIM"], "verify", journal, "--config",
                                    self.proxy.config_path]).stdout.decode()
            self.assertRegex(said, r"[0-9]{3,} events, 0 differences", f"life {life}")
            self.proxy.start()


class Purged(DiskCase):
    """A purge that was answered holds, whatever happens next."""

    fields = {"Cache-Tag": "red"}

    def purged_and_killed(self, query):
        self.start_proxy()
        names = [f"/p/{i}-20000" for i in range(30)]
        for name in names:
            self.check(name, self.get(name))
        self.restart()
        for name in names:
            eventually(lambda name=name: "; hit" in self.detail(name), f"{name} is loaded")
        for name in names:
            self.versions[name] = 2
        self.purge(query)
        self.restart(signal.SIGKILL)
        return names

    def test_a_purged_url_never_comes_back(self):
        names = self.purged_and_killed("url=" + self.origin.url("/p/7-20000"))
        self.assertEqual(2, self.check(names[7], self.get(names[7])))
        eventually(lambda: "; hit" in self.detail(names[8]), "the others stay")
        self.assertEqual(1, self.check(names[8], self.get(names[8])))

    def test_a_purged_prefix_never_comes_back(self):
        for name in self.purged_and_killed("prefix=" + self.origin.url("/p/")):
            self.assertEqual(2, self.check(name, self.get(name)))

    def test_a_purged_tag_never_comes_back(self):
        for name in self.purged_and_killed("tag=red"):
            self.assertEqual(2, self.check(name, self.get(name)))

    def test_a_soft_purge_holds_too(self):
        names = self.purged_and_killed("soft=1&url=" + self.origin.url("/p/7-20000"))
        self.assertEqual(2, self.check(names[7], self.get(names[7])))

    def test_without_a_restart_what_lies_on_disk_goes_at_once(self):
        self.start_proxy()
        names = [f"/p/{i}-20000" for i in range(30)]
        for name in names:
            self.get(name)
        self.restart()
        for name in names:
            eventually(lambda name=name: self.detail(name, method="HEAD").find("; hit") > 0,
                       f"{name} is loaded")
            self.versions[name] = 2
        self.purge("tag=red")
        for name in names:
            self.assertEqual(2, self.check(name, self.get(name)))


class Histories(DiskCase):
    """Random requests, purges, changes, restarts and kills. An answer is never older than the last
    purge of its name, nor, as long as the process lives, than what was shown before. A start may
    find objects that had been dropped for space."""

    def test_random_histories(self):
        seed = int(os.environ.get("DISK_SEED", random.randrange(10**9)))
        with self.subTest(seed=seed):
            kills = int(os.environ.get("DISK_KILLS", 0))
            self.run_history(random.Random(seed), 400, kills)

    def run_history(self, rng, steps, kills):
        self.start_proxy(size="16MiB", cache={"memory": "2MiB", "disk_life_min": "0s"},
                         admission={"policy": rng.choice(["always", "probation"])})
        names = [f"/h/{i}-{rng.choice([0, 900, 9000, 70000, 300000])}" for i in range(60)]
        purged = dict.fromkeys(names, 1)
        least = dict(purged)
        step = killed = 0
        while step < steps or killed < kills:
            step += 1
            what = rng.random()
            name = rng.choice(names)
            if what < 0.8:
                shown = self.check(name, self.get(name))
                self.assertGreaterEqual(shown, least[name], name)
                least[name] = shown
            elif what < 0.9:
                self.versions[name] = self.versions.get(name, 1) + 1
            elif what < 0.96:
                self.purge("url=" + self.origin.url(name))
                purged[name] = least[name] = self.versions.get(name, 1)
            elif what < 0.97:
                self.purge("prefix=" + self.origin.url("/h/1"))
                for each in names:
                    if each.startswith("/h/1"):
                        purged[each] = least[each] = self.versions.get(each, 1)
            else:
                how = rng.choice([signal.SIGTERM, signal.SIGKILL])
                killed += how == signal.SIGKILL
                self.restart(how)
                least = dict(purged)


class Refusals(DiskCase):
    def refused(self, *arguments):
        """Returns the message of an encore that cannot start with this config."""
        ended = self.run_client([self.proxy.program, "--config", self.proxy.config_path, *arguments],
                                check=False)
        self.assertNotEqual(0, ended.returncode)
        return ended.stdout.decode()

    def test_a_disk_in_use(self):
        self.start_proxy()
        self.proxy.config_path.write_text(
            self.proxy.config_path.read_text().replace(f":{self.proxy.port}", ":0")
            .replace(f":{self.proxy.admin_port}", ":0"))
        self.assertIn(str(self.path), self.refused())

    def test_what_is_no_disk_of_ours_is_kept(self):
        self.start_proxy()
        self.proxy.stop()
        text = b"a letter to a friend\n" * 100000
        self.path.write_bytes(text)
        self.assertIn(str(self.path), self.refused())
        self.assertEqual(text, self.path.read_bytes())
        self.proxy.arguments = ("--clear-disk",)
        self.proxy.start()
        self.check("/x-100", self.get("/x-100"))

    def test_another_seed(self):
        self.start_proxy()
        self.proxy.stop()
        said = self.refused("--set", "admission.seed=0123456789abcdef0123456789abcdef")
        self.assertIn(str(self.path), said)
        self.assertIn("seed", said)


if __name__ == "__main__":
    unittest.main()
