"""Commands that operate a running proxy: status, purge, reload, drain, explain, config get; how they
find it, what they say where it is not there, and their exit statuses."""

import json
import os
import subprocess
import threading
import unittest

from client import Client, get
from harness import DEADLINE, Case, eventually
from operate import REFUSED, UNREACHABLE, USAGE, Operator
from origin import Origin, fresh

TOKEN = "0123456789abcdef0123"


class Operated(Case):
    def setUp(self):
        super().setUp()
        self.origin = Origin(self, {
            "/a": fresh(b"a" * 100, Surrogate_Key="news front"), "/b": fresh(b"b", Surrogate_Key="news"),
            "/c/1": fresh(b"1"), "/c/2": fresh(b"2")})

    def operator(self, encore):
        return Operator(self, encore.program, "--config", encore.config_path)

    def fill(self, encore, *paths):
        for path in paths * 2:
            get(encore.port, self.origin.url(path))
        eventually(lambda: encore.stats()["cache"]["objects"] >= len(paths), "all are stored")

    def is_stored(self, encore, path):
        before = self.origin.count(path)
        get(encore.port, self.origin.url(path))
        return self.origin.count(path) == before


class Status(Operated):
    def test_text_for_people_and_json_for_scripts(self):
        encore = self.encore()
        operator = self.operator(encore)
        get(encore.port, self.origin.url("/a"))
        eventually(lambda: sum(encore.stats()["requests"].values()) == 1, "it is counted")
        status = operator.run("status").json
        self.assertEqual("ready", status["state"])
        self.assertEqual({"hit": 0, "miss": 1, "pass": 0, "error": 0}, status["requests"])
        self.assertEqual(64 * 1024 * 1024, status["cache"]["capacity_bytes"])
        self.assertEqual([], status["disks"])
        self.assertIsNone(status["last_reload"])
        self.assertRegex(operator.run("status", "--text").out, r"(?m)^state +\S+ ready")
        screen = operator.screen("status")
        self.assertEqual(0, screen.end())
        self.assertRegex(screen.shown, r"(?m)^state +\S+ ready")
        screen = operator.screen("status", "--json")
        self.assertEqual(0, screen.end())
        self.assertEqual("ready", json.loads(screen.shown)["state"])


class Purge(Operated):
    def test_by_url_tag_and_prefix(self):
        encore = self.encore()
        operator = self.operator(encore)
        self.fill(encore, "/a", "/b", "/c/1", "/c/2")
        counted = operator.run("purge", "--tag", "news", "--dry-run").json
        self.assertEqual(2, counted["would_purge"])
        self.assertTrue(self.is_stored(encore, "/a"))
        self.assertEqual(1, operator.run("purge", self.origin.url("/a")).json["purged"])
        self.assertFalse(self.is_stored(encore, "/a"))
        # By being asked for again it was stored again.
        self.assertEqual(2, operator.run("purge", "--tag=news").json["purged"])
        self.assertEqual(2, operator.run("purge", "--prefix", self.origin.url("/c/")).json["purged"])
        for path in ("/b", "/c/1", "/c/2"):
            self.assertFalse(self.is_stored(encore, path), path)

    def test_several_at_once_softly_and_everything(self):
        encore = self.encore()
        operator = self.operator(encore)
        self.fill(encore, "/a", "/b", "/c/1")
        self.assertEqual("made stale 2 responses\n", operator.run(
            "purge", self.origin.url("/a"), self.origin.url("/b"), "--soft", "--text").out)
        self.assertEqual("purged 3 responses\n", operator.run("purge", "--all", "--text").out)
        self.assertEqual("purged 0 responses\n",
                         operator.run("purge", self.origin.url("/a"), "--text").out)

    def test_nothing_is_purged_by_mistake(self):
        encore = self.encore()
        operator = self.operator(encore)
        self.fill(encore, "/a")
        self.assertIn("accepted: URL, --tag TAG, --prefix URL or --all",
                      operator.run("purge", status=USAGE).err)
        self.assertIn("refused (400): ", operator.run("purge", "no-url", status=REFUSED).err)
        self.assertTrue(self.is_stored(encore, "/a"))


class Reload(Operated):
    def test_a_good_one_is_in_force_when_the_command_returns(self):
        encore = self.encore()
        operator = self.operator(encore)
        encore.sections["cache"]["max_object"] = "3MiB"
        encore.write_config()
        self.assertEqual({"reloaded": True}, operator.run("reload").json)
        self.assertEqual("3MiB\n", operator.run("config", "get", "cache.max_object").out)
        self.assertEqual("reloaded\n", operator.run("reload", "--text").out)
        self.assertEqual("done", operator.run("status").json["last_reload"])
        self.assertEqual(2, operator.run("status").json["reloads"])

    def test_a_bad_one_changes_nothing_and_says_why(self):
        encore = self.encore()
        encore.sections["workers"]["count"] = 1
        encore.write_config()
        refused = self.operator(encore).run("reload", status=REFUSED)
        self.assertIn("nothing has changed: `encore upgrade` is needed for workers.count", refused.err)
        encore.config_path.write_text("cache.memroy = 1\n")
        # The command cannot read it either, but may ask the proxy that has it.
        self.assertIn("did you mean \"memory\"?", self.operator(encore).run("reload", status=USAGE).err)
        refused = Operator(self, encore.program).run(
            "reload", "--admin", f"127.0.0.1:{encore.admin_port}", status=REFUSED)
        self.assertIn("encore reload: refused (409): nothing has changed:", refused.err)
        self.assertIn("did you mean \"memory\"?", refused.err)
        self.assertEqual(2, encore.stats()["reload_failures"])
        encore.write_config()


class Drain(Operated):
    def test_it_ends_in_order(self):
        encore = self.encore()
        operator = self.operator(encore)
        with Client(encore.port) as client:
            client.send(f"GET {self.origin.url('/a')} HTTP/1.1\r\nHost: x\r\n\r\n")
            client.read_response()
            said = operator.run("drain").json
            self.assertTrue(said["draining"])
            self.assertEqual(1, said["connections"])
            self.assertEqual(30, said["seconds_max"])
        encore.ending = encore.process
        self.assertEqual(0, encore.wait_for_exit())
        self.assertIn("draining", encore.output())

    def test_twice_is_no_second_signal(self):
        encore = self.encore()
        operator = self.operator(encore)
        held = Held(self, encore)
        operator.run("drain")
        # A second SIGTERM would cut the request.
        operator.run("drain")
        self.assertEqual("draining", operator.run("status").json["state"])
        self.assertIn("this process is exiting", operator.run("reload", status=REFUSED).err)
        held.release()
        self.assertEqual(b"late", held.answer().body)
        encore.ending = encore.process
        self.assertEqual(0, encore.wait_for_exit())

    def test_wait_returns_when_it_has_ended(self):
        encore = self.encore()
        ended = self.operator(encore).run("drain", "--wait", "--text")
        self.assertEqual("ended\n", ended.out)
        encore.ending = encore.process
        self.assertEqual(0, encore.process.wait(DEADLINE))


class Held:
    """A request whose origin answers when it is released."""

    def __init__(self, case, encore):
        self.gate = threading.Event()
        self.origin = Origin(case, {"/late": self._answer})
        self.client = Client(encore.port)
        case.addCleanup(self.client.close)
        case.addCleanup(self.gate.set)
        self.client.send(f"GET {self.origin.url('/late')} HTTP/1.1\r\nHost: x\r\n\r\n")
        eventually(lambda: self.origin.count("/late") == 1, "the origin is asked")

    def _answer(self, exchange):
        self.gate.wait(DEADLINE)
        return fresh(b"late")

    def release(self):
        self.gate.set()

    def answer(self):
        return self.client.read_response()


class Explain(Operated):
    def test_of_the_running_proxy_and_of_the_configuration_alone(self):
        encore = self.encore()
        operator = self.operator(encore)
        self.fill(encore, "/a")
        url = self.origin.url("/a")
        self.assertIn("stored", operator.run("explain", url).out)
        self.assertEqual("hit", operator.run("explain", url, "--json").json["now"]["kind"])
        self.assertNotIn("remembered", operator.run("explain", url, "--offline").out)
        encore.stop()
        said = operator.run("explain", url)
        self.assertIn("by the configuration alone", said.err)
        self.assertIn(url, said.out)
        self.assertIn("nonsense", operator.run("explain", "nonsense", "--offline", status=USAGE).err)


class ConfigGet(Operated):
    def test_values_in_force(self):
        encore = self.encore(admission={"seed": "11112222333344445555666677778888"})
        operator = self.operator(encore)
        self.assertEqual("64MiB\n", operator.run("config", "get", "cache.memory").out)
        self.assertEqual({"cache.memory": "64MiB"},
                         operator.run("config", "get", "cache.memory", "--json").json)
        self.assertEqual({"forward.connect_ports": [80, 443, 8443]},
                         operator.run("config", "get", "forward.connect_ports", "--json").json)
        self.assertEqual(f"127.0.0.1:{encore.port}\n",
                         operator.run("config", "get", "listen.0.address").out)
        whole = operator.run("config", "get").out
        self.assertIn("cache.memory = 64MiB\n", whole)
        self.assertNotIn("11112222333344445555666677778888", whole)
        self.assertIn("(secret, not shown)", operator.run("config", "get", "admission.seed").out)
        self.assertIn('did you mean "cache.memory"?',
                      operator.run("config", "get", "cache.memry", status=REFUSED).err)
        # The file may be another by now.
        encore.sections["cache"]["memory"] = "32MiB"
        encore.write_config()
        self.assertEqual("64MiB\n", operator.run("config", "get", "cache.memory").out)
        self.assertEqual("32MiB\n", operator.run("config", "get", "cache.memory", "--offline").out)


class Finding(Operated):
    def test_by_the_socket_of_the_state_directory(self):
        state = self.directory / "state"
        encore = self.encore(start=False, state={"directory": str(state)})
        del encore.sections["admin"]["address"]
        encore.ready = lambda: "ready: " in encore.output()
        encore.write_config()
        taken = subprocess.run([encore.program, "--config", encore.config_path, "--check-config"],
                               capture_output=True, text=True, timeout=DEADLINE, check=False)
        if "3129" in taken.stderr:
            self.skipTest("another program has the default admin address")
        self.assertEqual(0, taken.returncode, taken.stderr)
        self.assertFalse(state.exists())
        encore.start()
        path = state / "admin.sock"
        self.assertEqual(0o660, path.stat().st_mode & 0o777)
        self.assertEqual("ready", self.operator(encore).run("status").json["state"])
        self.assertIn(f"admin on unix:{path}", encore.output())
        alone = Operator(self, encore.program)
        self.assertEqual("ready", alone.run("status", "--admin", f"unix:{path}").json["state"])
        encore.stop()
        self.assertFalse(path.exists())
        missing = self.operator(encore).run("status", status=UNREACHABLE).err
        self.assertIn(f"unix:{path}", missing)
        self.assertIn("--admin ADDRESS", missing)

    def test_several_listeners_each_by_its_own_rights(self):
        path = self.directory / "admin.sock"
        encore = self.encore(start=False)
        tcp = f"0.0.0.0:{encore.admin_port}"
        encore.sections["admin"]["address"] = [tcp, f"unix:{path}"]
        encore.start()
        # By the socket an order takes no token; by an address that is not loopback there is none.
        self.assertEqual(0, self.operator(encore).run("purge", "--tag", "a").json["purged"])
        alone = Operator(self, encore.program)
        refused = alone.run("purge", "--tag", "a", "--admin", tcp, status=REFUSED)
        self.assertIn("admin.token_file", refused.err)
        self.assertEqual("ready", alone.run("status", "--admin", tcp).json["state"])
        for private in (["config", "get"], ["top"], ["log", "--count", "1"]):
            self.assertIn("admin.token_file",
                          alone.run(*private, "--admin", tcp, status=REFUSED).err)

    def test_the_token_is_read_and_never_shown(self):
        secret = self.directory / "token"
        secret.write_text(TOKEN + "\n")
        secret.chmod(0o600)
        encore = self.encore(start=False)
        tcp = f"0.0.0.0:{encore.admin_port}"
        encore.sections["admin"].update(address=tcp, token_file=str(secret))
        encore.start()
        self.assertEqual(0, self.operator(encore).run("purge", "--tag", "a").json["purged"])
        alone = Operator(self, encore.program)
        refused = alone.run("purge", "--tag", "a", "--admin", tcp, status=REFUSED).err
        self.assertIn("--token-file FILE", refused)
        self.assertEqual(0, alone.run("purge", "--tag", "a", "--admin", tcp, "--token-file",
                                      secret).json["purged"])
        wrong = self.directory / "wrong"
        wrong.write_text("f" * 20 + "\n")
        wrong.chmod(0o600)
        refused = alone.run("purge", "--tag", "a", "--admin", tcp, "--token-file", wrong,
                            status=REFUSED).err
        self.assertNotIn("f" * 20, refused)
        missing = alone.run("status", "--admin", tcp, "--token-file", self.directory / "none",
                            status=USAGE).err
        self.assertIn("--token-file: ", missing)

    def test_nobody_is_there(self):
        encore = self.encore(start=False)
        encore.write_config()
        for words in (["status"], ["purge", "--all"], ["reload"], ["drain"], ["top"], ["log"],
                      ["config", "get"], ["intercept", "list"]):
            said = self.operator(encore).run(*words, status=UNREACHABLE)
            self.assertIn(f"127.0.0.1:{encore.admin_port}", said.err)
            self.assertEqual("", said.out)
        self.assertIn("accepted: 127.0.0.1:3129", self.operator(encore).run(
            "status", "--admin", "nonsense", status=USAGE).err)
        encore.sections["admin"]["address"] = ""
        encore.write_config()
        self.assertIn("there is no admin listener", self.operator(encore).run(
            "status", status=USAGE).err)


class Usage(Operated):
    def test_a_slip_gets_a_suggestion(self):
        operator = Operator(self, os.environ["ENCORE"])
        for words, said in (
                (["purg", "http://a/"], 'unknown command "purg", did you mean "purge"?'),
                (["stauts"], 'unknown command "stauts", did you mean "status"?'),
                (["config", "gte"], 'unknown command "gte", did you mean "get"?'),
                (["purge", "--tagg", "a"], 'unknown option "--tagg", did you mean "--tag"?'),
                (["--confg", "a"], 'unknown option "--confg", did you mean "--config"?'),
                (["status", "--confg", "a"], 'unknown option "--confg", did you mean "--config"?'),
                (["status", "now"], 'unexpected argument "now"'),
                (["explain"], "URL is required"),
                (["top", "--interval", "0"], "--interval"),
                (["top", "--count", "many"], "--count"),
                (["log", "--outcome", "hti"], "accepted: hit"),
                (["completion", "csh"], "accepted: bash, zsh, fish")):
            with self.subTest(words):
                ended = operator.run(*words, status=USAGE)
                self.assertIn(said, ended.err)
                self.assertEqual("", ended.out)

    def test_every_command_has_help_and_examples(self):
        operator = Operator(self, os.environ["ENCORE"])
        commands = operator.run("commands").json["commands"]
        names = []

        def walk(command):
            for below in command["commands"]:
                walk(below)
            if command["commands"]:
                return
            names.append(command["path"])
            text = operator.run(*command["path"].split(), "--help").out
            self.assertIn(command["text"].split()[0], text)
            self.assertRegex(text, r"Examples?:\n  encore ")
        for command in commands:
            walk(command)
        for name in ("status", "purge", "reload", "drain", "explain", "top", "log", "config get", "upgrade",
                     "disk stat", "ca create", "intercept list", "completion", "fleet"):
            self.assertIn(name, names)


if __name__ == "__main__":
    unittest.main()
