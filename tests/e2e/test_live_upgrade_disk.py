"""Replacing the process of a proxy with a disk: what was stored is found, no purge is undone, one
process writes at a time, and either may be killed at any step."""

import os
import re
import signal
import subprocess
import unittest

from client import Client, field, get
from harness import eventually, need_program, sanitized
from test_disk_tier import DiskCase, content
from upgrading import Load, UpgradingEncore, one_shot

UPGRADES = 2 if sanitized() else 5


class DiskUpgradeCase(DiskCase):
    def encore(self, **sections):
        sections.setdefault("upgrade", {"idle": "100ms"})
        return UpgradingEncore(self, **sections)

    def ask(self, name):
        answer = get(self.proxy.port, self.origin.url(name))
        self.assertEqual(200, answer.status)
        return answer

    def store(self, names):
        for name in names:
            self.ask(name)
        eventually(lambda: all(self.is_hit(name) for name in names), "they are stored")

    def is_hit(self, name):
        return "hit" in field(self.ask(name), "Cache-Status")

    def count(self, name):
        return self.asked.get(name, 0)

    def verify(self):
        program = os.environ["ENCORE"]
        ended = subprocess.run([program, "disk", "verify", str(self.path)], capture_output=True,
                               text=True, check=False)
        self.assertEqual(0, ended.returncode, ended.stdout + ended.stderr)

    def finish(self):
        """Ends all processes in order, and checks the disk."""
        self.proxy.stop()
        self.verify()


class DiskUpgrade(DiskUpgradeCase):
    def test_what_was_stored_is_found_after_each_upgrade(self):
        self.start_proxy(state={"directory": str(self.directory / "state")})
        names = []
        for number in range(UPGRADES):
            more = [f"/object-{number}-{i}-20000" for i in range(30)]
            self.store(more)
            names += more
            before = dict(self.asked)
            self.proxy.upgrade()
            for name in names:
                answer = self.ask(name)
                self.assertEqual(content(name, 1, 20000), answer.body)
            self.assertEqual(before, self.asked, "nothing is asked for again")
            self.assertEqual(0, self.proxy.exit_code(self.proxy.replaced[-1]))
        self.finish()

    def test_a_purge_holds_over_an_upgrade_and_reaches_the_old_process(self):
        self.start_proxy()
        names = [f"/purged-{i}-1000" for i in range(20)]
        self.store(names)
        kept = Client(self.proxy.port)
        self.addCleanup(kept.close)
        kept.ask(self.origin.url(names[0]))
        status, text = self.proxy.admin(f"/purge?url={self.origin.url(names[1])}", "POST")
        self.assertEqual(200, status, text)
        self.proxy.upgrade()
        self.versions.update({name: 2 for name in names})
        self.assertEqual(content(names[1], 2, 1000), self.ask(names[1]).body)
        status, text = self.proxy.admin(f"/purge?url={self.origin.url(names[0])}", "POST")
        self.assertEqual(200, status, text)
        # The old process serves this one, out of its own memory.
        self.assertEqual(content(names[0], 2, 1000), kept.ask(self.origin.url(names[0])).body)
        self.assertEqual(content(names[0], 2, 1000), self.ask(names[0]).body)
        self.finish()

    def test_what_the_old_process_invalidates_is_not_found_by_the_new_one(self):
        self.start_proxy()
        name = "/changed-1000"
        self.store([name])
        kept = Client(self.proxy.port)
        self.addCleanup(kept.close)
        kept.ask(self.origin.url(name))
        self.proxy.upgrade()
        self.versions[name] = 2
        # Invalidates its stored response (RFC 9111 4.4), in the process that has this client.
        self.assertEqual(200, kept.ask(self.origin.url(name), "POST").status)
        eventually(lambda: self.ask(name).body == content(name, 2, 1000), "the new one forgets it")
        self.finish()

    def test_purges_while_processes_change_are_not_lost(self):
        self.start_proxy()
        url = self.origin.url("/version-100")
        load = Load(self)
        self.stale = 0

        def purge(state):
            version = state.get("version", 1) + 1
            state["version"] = version
            with self.lock:
                self.versions["/version-100"] = version
            try:
                status, text = self.proxy.admin(f"/purge?url={url}", "POST")
            except OSError:
                return 0
            if status != 200:
                raise AssertionError(f"{status} {text}")
            answer = get(self.proxy.port, url)
            if answer.body != content("/version-100", version, 100):
                raise AssertionError(f"version {version}: {answer.body[:60]!r}")
            return 1
        load.add("purges", purge)
        for _ in range(UPGRADES):
            self.proxy.upgrade()
            load.wait_for("purges")
        load.stop()
        self.finish()

    def test_other_disks_need_a_restart(self):
        self.start_proxy()
        good = list(self.proxy.sections["disk"])
        self.proxy.sections["disk"] = [*good, {"path": str(self.directory / "more"),
                                               "size": "64MiB", "segment": "1MiB"}]
        self.proxy.write_config()
        self.assertIn("[[disk]]", self.proxy.refused())
        self.assertFalse((self.directory / "more").exists())
        self.proxy.sections["disk"] = good
        self.proxy.write_config()
        self.proxy.upgrade()
        self.finish()


class Killed(DiskUpgradeCase):
    """The new process is killed in front of a system call, which says how far it has come."""

    def setUp(self):
        super().setUp()
        self.strace = need_program("strace")
        if sanitized():
            raise unittest.SkipTest("strace and sanitizers: one at a time")
        self.script = self.directory / "encore"
        self.real = os.environ["ENCORE"]
        os.environ["ENCORE"] = str(self.script)
        self.addCleanup(os.environ.__setitem__, "ENCORE", self.real)
        self.start_script(f"exec -a \"$0\" '{self.real}' \"$@\"")
        self.start_proxy(state={"directory": str(self.directory / "state")})
        self.names = [f"/object-{i}-20000" for i in range(20)]
        self.store(self.names)

    def start_script(self, text):
        self.script.write_text(f"#!/bin/bash\n{text}\n")
        self.script.chmod(0o755)

    def fail_at(self, call, when, flags="-D"):
        """An upgrade whose new process is killed at that call, and the old one goes on."""
        self.start_script(f"exec {self.strace} {flags} -o /dev/null -e trace={call} "
                          f"-e inject={call}:signal=SIGKILL:when={when} '{self.real}' \"$@\"")
        self.assertIn("ended before it served", self.proxy.refused())
        # The disk is in use again, by the old process.
        more = f"/after-{call}-{when}-20000"
        self.store([more])
        self.names.append(more)

    def check_and_finish(self):
        self.start_script(f"exec -a \"$0\" '{self.real}' \"$@\"")
        eventually(lambda: self.proxy.metrics()['encore_disk_objects{disk="0"}'] >= len(self.names),
                   "all are on disk")
        self.proxy.upgrade()
        before = dict(self.asked)
        for name in self.names:
            self.assertEqual(content(name, 1, 20000), self.ask(name).body)
        self.assertEqual(before, self.asked, "nothing is asked for again")
        os.environ["ENCORE"] = self.real
        self.finish()

    def test_it_is_killed_in_front_of_its_messages(self):
        name = self.names[0]
        load = Load(self)
        load.add("one-shot", one_shot(self.proxy.port, self.origin.url(name), content(name, 1, 20000)))
        for when in (1, 2):  # hello, ready
            self.fail_at("sendmsg", when)
            load.wait_for("one-shot")
        load.stop()
        self.check_and_finish()

    def test_it_is_killed_when_it_has_taken_the_disk_and_has_not_said_so(self):
        self.fail_at("sendmsg", 3)
        self.check_and_finish()

    def test_it_is_killed_as_it_begins_to_write_the_disk(self):
        for when in (1, 2):  # both copies of the superblock
            self.fail_at("pwrite64", when, "-D -f")
        self.check_and_finish()

    def kill_old(self, is_time):
        """The old process is killed once that is true of the new one, which is slow to read, and
        serves with what it has been given."""
        eventually(self.is_written, "what waits is on disk")
        old = self.proxy.serving
        self.start_script(f"exec {self.strace} -D -o /dev/null -e trace=recvmsg "
                          f"-e inject=recvmsg:delay_enter=200000 '{self.real}' \"$@\"")
        os.kill(old, signal.SIGUSR2)

        def successor():
            started = re.search(r"upgrade: started process (\d+) ", self.proxy.output_path.read_text())
            return started and int(started[1])
        self.proxy.replaced.append(old)
        self.proxy.killed.add(old)
        self.proxy.serving = eventually(successor, "it is started")
        eventually(lambda: is_time(self.proxy.serving), "it has come so far")
        os.kill(old, signal.SIGKILL)
        self.assertEqual(-signal.SIGKILL, self.proxy.exit_code(old))
        eventually(self.proxy.ready, "the new process serves")
        before = dict(self.asked)
        for name in self.names:
            self.assertEqual(content(name, 1, 20000), self.ask(name).body)
        self.assertEqual(before, self.asked, "nothing is asked for again")
        os.environ["ENCORE"] = self.real
        self.finish()

    def test_the_old_process_is_killed_in_front_of_the_first_message(self):
        self.kill_old(lambda _: True)

    def test_the_old_process_is_killed_when_it_has_offered_all(self):
        # The new one has more than standard descriptors, channel, disk, state and admin socket.
        self.kill_old(lambda process: len(os.listdir(f"/proc/{process}/fd")) >= 8)
        self.assertNotIn("plain start", self.proxy.output_path.read_text())


if __name__ == "__main__":
    unittest.main()
