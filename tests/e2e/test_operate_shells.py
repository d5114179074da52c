"""Completion in bash, zsh and fish: the scripts are run by the shells themselves."""

import json
import os
import pathlib
import subprocess
import unittest

from harness import DEADLINE, Case, clean_environment, need_program
from operate import Operator


class Completion(Case):
    def setUp(self):
        super().setUp()
        self.operator = Operator(self, os.environ["ENCORE"])

    def script(self, shell):
        path = self.directory / f"encore.{shell}"
        path.write_text(self.operator.run("completion", shell).out)
        return path

    def run_shell(self, command):
        ended = subprocess.run(list(map(str, command)), stdin=subprocess.DEVNULL, capture_output=True,
                               text=True, timeout=DEADLINE, env=clean_environment(),
                               cwd=self.directory, check=False)
        self.assertEqual((0, ""), (ended.returncode, ended.stderr), command)
        return ended.stdout.split("\n")[:-1]


class Bash(Completion):
    def complete(self, line):
        """The words that bash offers for the last word of this line."""
        words = line.split(" ")
        quoted = " ".join(f"'{word}'" for word in words)
        return self.run_shell([
            need_program("bash"), "--norc", "-c",
            f"set -u; source {self.script('bash')}; COMP_WORDS=({quoted}); "
            f"COMP_CWORD={len(words) - 1}; compopt() {{ :; }}; _encore; "
            "if ((${#COMPREPLY[@]})); then printf '%s\\n' \"${COMPREPLY[@]}\"; fi"])

    def test_commands_options_and_names(self):
        offered = self.complete("encore ")
        for name in ("status", "purge", "reload", "drain", "explain", "top", "log", "config", "disk",
                     "ca", "intercept", "completion", "upgrade"):
            self.assertIn(name, offered)
        self.assertEqual(["purge"], self.complete("encore pur"))
        self.assertEqual(["get"], self.complete("encore config "))
        self.assertEqual(["list", "verify", "stat"], self.complete("encore disk "))
        self.assertEqual(["--tag"], self.complete("encore purge --ta"))
        self.assertIn("--admin", self.complete("encore --config a.toml status --"))
        self.assertEqual(["cache.memory"], self.complete("encore config get cache.mem"))
        self.assertEqual(["first-request"], self.complete("encore log --outcome fir"))
        self.assertEqual(["bash", "zsh", "fish"], self.complete("encore completion "))
        self.assertEqual([], self.complete("encore purge --tag "))

    def test_files(self):
        (self.directory / "a file.toml").touch()
        (self.directory / "folder").mkdir()
        self.assertEqual(["a file.toml"], self.complete("encore --config a"))
        self.assertEqual(["a file.toml"], self.complete("encore status --token-file a"))
        self.assertEqual(["folder"], self.complete("encore ca create --out f"))

    def test_every_command_and_option_is_offered(self):
        def walk(command, place):
            below = [each for each in command["commands"] if not each.get("hidden")]
            if below:
                offered = self.complete(f"encore {place}")
                self.assertEqual([each["path"].split()[-1] for each in below], offered)
            wanted = {name for option in command["options"] for name in option["names"]}
            self.assertEqual(wanted, set(self.complete(f"encore {place}-")))
            for each in below:
                walk(each, each["path"] + " ")
        walk(self.operator.run("commands").json, "")


class Zsh(Completion):
    def test_the_script_is_zsh_and_completes(self):
        zsh = need_program("zsh")
        script = self.script("zsh")
        self.run_shell([zsh, "-n", script])
        # The functions of the completion system stand for themselves: what they are given is shown.
        shown = self.directory / "shown.zsh"
        shown.write_text(
            "compdef() { : }\n"
            "_describe() { local name=${@[-1]}; print -rl -- ${(P)name} }\n"
            "_files() { print files }\n"
            "compadd() { shift; print -rl -- $@ }\n"
            f"source {script}\n"
            "words=(\"$@\"); CURRENT=$#words\n"
            "_encore\n")

        def complete(*words):
            return self.run_shell([zsh, "-f", shown, *words])
        self.assertIn("purge:Remove cached responses before they expire", complete("encore", ""))
        self.assertIn("--tag:Purge responses with this tag; may be repeated",
                      complete("encore", "purge", "-"))
        self.assertEqual(["files"], complete("encore", "--config", ""))
        self.assertIn("cache.memory", complete("encore", "config", "get", ""))
        self.assertEqual(["bash", "zsh", "fish"], complete("encore", "completion", ""))
        self.assertTrue(any(line.startswith("upgrade:") for line in complete("encore", "")))


class Fish(Completion):
    def test_the_script_is_fish_and_completes(self):
        fish = need_program("fish")
        script = self.script("fish")

        def complete(line):
            said = self.run_shell([fish, "--no-config", "-c",
                                   f"source {script}; complete -C '{line}'"])
            return [each.split("\t")[0] for each in said]
        self.assertIn("purge", complete("encore "))
        self.assertEqual(["purge"], complete("encore pur"))
        self.assertEqual(["--tag"], complete("encore purge --ta"))
        self.assertIn("cache.memory", complete("encore config get cache."))
        self.assertEqual(["get"], complete("encore config "))
        self.assertIn("upgrade", complete("encore "))


class Documented(Completion):
    def test_the_page_has_every_command_and_option(self):
        page = (pathlib.Path(__file__).resolve().parents[2] / "docs" / "COMMANDS.md").read_text()
        tables = self.operator.run("commands", "--markdown").out
        self.assertIn(tables, page, "make it with: encore commands --markdown")

    def test_the_list_is_json(self):
        listed = json.loads(self.operator.run("commands").out)
        self.assertEqual("encore", listed["name"])
        self.assertIn("--check-config", [name for each in listed["options"] for name in each["names"]])


if __name__ == "__main__":
    unittest.main()
