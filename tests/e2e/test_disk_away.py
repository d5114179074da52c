"""Disks that were away, or are older copies: what was purged without them never comes back, and
what has missed no purge is kept."""

import shutil
import signal
import unittest

from client import field
from harness import eventually
from test_disk_tier import DiskCase

MISSED = "it was away, or is an older copy, and has missed purges; it was emptied"


class AwayCase(DiskCase):
    fields = {"Cache-Tag": "red"}

    def start_disks(self, count, **sections):
        self.paths = [self.directory / f"disk-{i}" for i in range(count)]
        self.all = [{"path": str(path), "size": "32MiB", "segment": "1MiB"} for path in self.paths]
        self.proxy = self.encore(**{"cache": {"memory": "2MiB"}, "admission": {"policy": "always"},
                                    "disk": self.all, **sections})

    def use(self, *numbers, how=signal.SIGTERM):
        self.stop_it(how)
        self.proxy.sections["disk"] = [self.all[i] for i in numbers]
        self.proxy.start()
        self.wait_until_loaded()

    def await_said(self, text):
        eventually(lambda: text in self.proxy.output(), f"{text} is said")

    def stop_it(self, how=signal.SIGTERM):
        if how == signal.SIGTERM:
            self.proxy.stop()
        else:
            process, self.proxy.process = self.proxy.process, None
            process.send_signal(how)
            process.wait()

    def wait_until_loaded(self):
        disks = len(self.proxy.sections["disk"])

        def is_loaded():
            metrics = self.proxy.metrics()
            return all(metrics[f'encore_disk_loading{{disk="{i}"}}'] == 0 for i in range(disks))
        eventually(is_loaded, "all is loaded")

    def is_written(self):
        metrics = self.proxy.metrics()

        def waits(disk):
            placed = metrics[f'encore_disk_placed_bytes_total{{disk="{disk}",why="admit"}}']
            written = metrics[f'encore_disk_bytes_written_total{{disk="{disk}",why="admit"}}']
            return placed - written >= 8192
        return not any(waits(i) for i in range(len(self.proxy.sections["disk"])))

    def fill(self, count=40):
        names = [f"/{i}-{20_000 + 131 * i}" for i in range(count)]
        for name in names:
            self.check(name, self.get(name))
        eventually(self.is_written, "what waits is on disk")
        return names

    def hits(self, names):
        """Hits without a word of the origin, of whatever version."""
        found = []
        for name in names:
            answer = self.get(name)
            self.check(name, answer)
            if "; hit" in field(answer, "Cache-Status"):
                found.append(name)
        return found

    def old_hits(self, names):
        """Those that are of before the purge."""
        return [name for name in names if self.check(name, self.get(name)) == 1]

    def purge_somehow(self, kind, names):
        for name in names:
            self.versions[name] = 2
        if kind == "url":
            self.purge("&".join("url=" + self.origin.url(name) for name in names))
        elif kind == "POST":
            for name in names:
                self.assertEqual(200, self.get(name, method="POST").status)
        else:
            self.purge({"prefix": "prefix=" + self.origin.url("/"), "tag": "tag=red"}[kind])


class Away(AwayCase):
    def missed(self, kind):
        self.start_disks(2)
        names = self.fill()
        self.use(0)
        self.purge_somehow(kind, names)
        self.stop_it()
        self.proxy.sections["disk"] = self.all
        self.proxy.write_config()
        self.assertIn(f"note: disk {self.paths[1]}: it was away", self.run_client(
            [self.proxy.program, "--config", self.proxy.config_path,
             "--check-config"]).stdout.decode())
        self.proxy.start()
        self.wait_until_loaded()
        self.assertEqual([], self.old_hits(names))
        self.await_said(f"disk {self.paths[1]}: {MISSED}")
        self.assertNotIn(f"disk {self.paths[0]}: it", self.proxy.output())

    def test_a_missed_purge_by_url(self):
        self.missed("url")

    def test_a_missed_purge_by_prefix(self):
        self.missed("prefix")

    def test_a_missed_purge_by_tag(self):
        self.missed("tag")

    def test_a_missed_unsafe_method(self):
        self.missed("POST")

    def test_a_purge_before_a_kill_counts_too(self):
        self.start_disks(2)
        names = self.fill()
        self.use(0)
        self.purge_somehow("url", names)
        self.use(0, 1, how=signal.SIGKILL)
        self.assertEqual([], self.old_hits(names))

    def test_runs_and_kills_between_change_nothing(self):
        self.start_disks(2)
        names = self.fill()
        self.use(0)
        self.purge_somehow("tag", names)
        for how in (signal.SIGTERM, signal.SIGKILL, signal.SIGTERM):
            self.use(0, how=how)
        self.use(0, 1)
        self.assertEqual([], self.old_hits(names))

    def test_without_a_purge_nothing_is_lost(self):
        self.start_disks(2)
        names = self.fill()
        self.use(0)
        self.use(0, how=signal.SIGKILL)
        self.use(0, 1)
        self.assertEqual(names, self.hits(names))
        self.assertEqual({1}, set(self.asked.values()))
        self.await_said("ready, ")
        self.assertNotIn("emptied", self.proxy.output())

    def test_a_disk_that_was_there_at_the_purge_keeps_the_rest(self):
        self.start_disks(2)
        names = self.fill()
        self.use(0, 1)
        self.purge_somehow("url", names[:10])
        self.use(0, 1, how=signal.SIGKILL)
        self.assertEqual([], self.old_hits(names[:10]))
        self.use(0, 1)
        self.assertEqual(names[10:], self.hits(names[10:]))
        self.await_said("ready, ")
        self.assertNotIn("emptied", self.proxy.output())

    def test_what_came_after_the_return_is_kept(self):
        self.start_disks(2)
        names = self.fill()
        self.use(0)
        self.purge_somehow("prefix", names)
        self.use(0, 1)
        self.old_hits(names)
        eventually(self.is_written, "what waits is on disk")
        self.use(0, 1)
        self.assertEqual(names, self.hits(names))
        self.assertEqual([], self.old_hits(names))
        self.assertEqual(1, self.proxy.output().count("emptied"))

    def test_disks_that_never_met_know_by_the_state_directory(self):
        self.start_disks(2, state={"directory": str(self.directory / "state")})
        names = self.fill()
        self.use(0)
        self.purge_somehow("tag", names)
        self.use(1)
        self.assertEqual([], self.old_hits(names))
        self.await_said(f"disk {self.paths[1]}: {MISSED}")

    def test_an_emptied_cache_counts_as_purged(self):
        # With a seed of its own: else the disk that was away is of another one.
        self.start_disks(2, state={"directory": str(self.directory / "state")})
        names = self.fill()
        self.stop_it()
        self.proxy.sections["disk"] = self.all[:1]
        self.proxy.arguments = ("--clear-disk",)
        self.proxy.start()
        self.proxy.arguments = ()
        for name in names:
            self.versions[name] = 2
        self.use(0, 1)
        self.assertEqual([], self.old_hits(names))


class Copied(AwayCase):
    def restored(self, is_running, **sections):
        self.start_disks(1, **sections)
        names = self.fill()
        copy = self.directory / "copy"
        if is_running:
            # The log of it has something already, as that of a disk in use.
            self.purge("url=" + self.origin.url("/none"))
            shutil.copy(self.paths[0], copy)
        else:
            self.stop_it()
            shutil.copy(self.paths[0], copy)
            self.proxy.start()
        self.wait_until_loaded()
        self.purge_somehow("url", names)
        self.stop_it()
        shutil.copy(copy, self.paths[0])
        self.proxy.start()
        self.wait_until_loaded()
        self.assertEqual([], self.old_hits(names))
        self.await_said("it was emptied")

    def test_an_older_copy_in_its_place(self):
        self.restored(False)

    def test_an_older_copy_and_a_state_directory(self):
        self.restored(False, state={"directory": str(self.directory / "state")})

    def test_a_copy_of_a_disk_in_use(self):
        self.restored(True)

    def test_a_copy_of_a_disk_in_use_and_a_state_directory(self):
        self.restored(True, state={"directory": str(self.directory / "state")})

    def test_a_copy_that_has_missed_nothing_is_the_disk(self):
        self.start_disks(1)
        names = self.fill()
        self.stop_it()
        copy = self.directory / "copy"
        shutil.copy(self.paths[0], copy)
        self.proxy.start()
        self.wait_until_loaded()
        self.stop_it()
        copy.rename(self.paths[0])
        self.paths[0].chmod(0o600)
        self.proxy.start()
        self.wait_until_loaded()
        self.assertEqual(names, self.hits(names))

    def test_a_copy_beside_its_original_is_emptied(self):
        self.start_disks(2)
        self.use(0)
        names = self.fill()
        self.stop_it()
        shutil.copy(self.paths[0], self.paths[1])
        self.proxy.start()
        self.wait_until_loaded()
        self.use(0, 1)
        self.await_said(
            f"disk {self.paths[1]}: it is a copy of disk {self.paths[0]}; it was emptied")
        self.assertEqual(names, self.hits(names))


if __name__ == "__main__":
    unittest.main()
