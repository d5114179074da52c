"""Replacing the process of a proxy with a disk: what was stored is found, no purge is undone, one
process writes at a time, and either may be killed at any step."""

import http.client
import json
import os
import pathlib
import re
import signal
import subprocess
import unittest

from client import Client, field, get
from engine import Engine
from harness import DEADLINE, eventually, need_program, sanitized
from operate import Operator
from test_disk_tier import DiskCase, content
from upgrading import Load, UpgradingEncore, one_shot

UPGRADES = 2 if sanitized() else 5


def keys_marked(word):
    """{"SECTION.KEY"} of what docs/CONFIG.md marks with *WORD.*"""
    keys, section = set(), ""
    for line in (pathlib.Path(__file__).parents[2] / "docs" / "CONFIG.md").read_text().splitlines():
        if head := re.match(r"## \[+(\w+)\]+$", line):
            section = head[1]
        elif key := re.match(rf"- \*\*`(\w+)`\*\* .*\*{word}\.\*$", line):
            keys.add(f"{section}.{key[1]}")
    return keys


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


FLEET_KEYS = {"fleet.node", "fleet.purges", "fleet.password_file"}


class EachKey(DiskUpgradeCase):
    def test_those_that_a_reload_cannot_change_an_upgrade_does(self):
        state, more = self.directory / "state", self.directory / "more"
        more.mkdir()
        self.start_proxy(state={"directory": str(state)}, filters={"publish": ["changed"]})
        proxy = self.proxy
        changes = {
            "cache.shards": 8,
            "cache.disk_write_rate": "1GiB",
            "cache.disk_reinsert": 20,
            "cache.disk_life_min": "2m",
            "state.directory": str(more),
            "workers.count": 1,
            "admin.address": [proxy.sections["admin"]["address"], f"unix:{self.directory}/second.sock"],
            "admin.socket_mode": "0600",
            "filters.publish": ["changed", "resident"],
            "filters.keep": "3h",
            "filters.capacity": 2000,
            "filters.fpr": 0.02,
            "filters.hash": "sha1-fields20",
            "filters.resident_capacity": 1000,
            "log.access": str(self.directory / "second.log"),
        }
        self.assertEqual(keys_marked("Upgrade"), set(changes) | FLEET_KEYS)
        self.store(["/kept-20000"])
        for number, (name, value) in enumerate(changes.items()):
            with self.subTest(name):
                section, key = name.split(".")
                proxy.sections.setdefault(section, {})[key] = value
                proxy.write_config()
                self.assertIn(f"`encore upgrade` is needed for {name} (", self.reload_refused())
                proxy.upgrade()
                operator = Operator(self, proxy.program, "--config", proxy.config_path)
                shown = operator.run("config", "get", name).out
                self.assertEqual(json.dumps(value) if isinstance(value, list) else str(value),
                                 shown.rstrip())
                before = dict(self.asked)
                self.assertTrue(self.is_hit("/kept-20000"))
                self.assertEqual(before, self.asked, "nothing is asked for again")
                self.ask(f"/new-{number}-20000")
                self.assertEqual(0, proxy.exit_code(proxy.replaced[-1]))
        eventually(lambda: "/new-14-20000" in (self.directory / "second.log").read_text(),
                   "the second log is written")
        self.finish()

    def test_those_of_a_fleet(self):
        """Purges of another stream, or of another node's position, are unknown: cached objects are validated."""
        engine, password = Engine(self), self.directory / "password"
        password.write_text("secret\n")
        password.chmod(0o600)
        self.start_proxy(state={"directory": str(self.directory / "state")},
                         fleet={"purges": engine.url, "node": "first"})
        changes = {"fleet.node": "second", "fleet.purges": engine.url + "?stream=other",
                   "fleet.password_file": str(password)}
        self.assertEqual(FLEET_KEYS, set(changes))
        for name, value in changes.items():
            with self.subTest(name):
                if name == "fleet.password_file":
                    engine.ask("CONFIG", "SET", "requirepass", "secret")
                self.proxy.sections["fleet"][name.partition(".")[2]] = value
                self.proxy.write_config()
                self.assertIn(f"`encore upgrade` is needed for {name} (", self.reload_refused())
                self.proxy.upgrade()
                shown = Operator(self, self.proxy.program, "--config", self.proxy.config_path).run(
                    "config", "get", name).out
                # The URL of an engine may have a password.
                self.assertEqual("(secret, not shown)" if name == "fleet.purges" else value,
                                 shown.rstrip())
                eventually(lambda: self.proxy.metrics()["encore_fleet_engine_connected"] == 1,
                           "it speaks to the engine")
                self.assertEqual(0, self.proxy.exit_code(self.proxy.replaced[-1]))
        self.finish()

    def reload_refused(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.proxy.admin_port, timeout=DEADLINE)
        connection.request("POST", "/reload")
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        self.assertEqual(409, response.status, text)
        return text


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
