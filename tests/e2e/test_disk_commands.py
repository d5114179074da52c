"""encore disk: the examples of docs/DISK.md and of every --help, and what scripts rely on."""

import json
import os
import pathlib
import re
import subprocess
import time
import unittest

from documents import blocks_of, examples_of, pattern_of
from harness import DEADLINE, Case, clean_environment

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "DISK.md"
COMMANDS = ["list", "verify", "stat"]


class Disk(Case):
    """A disk made of ten days, and the program, in a directory of the test's."""

    def setUp(self):
        super().setUp()
        maker = os.environ.get("ENCORE_MAKE_DISK")
        if not maker:
            raise unittest.SkipTest("ENCORE_MAKE_DISK does not name the program that makes disks")
        programs = self.directory / "programs"
        programs.mkdir()
        (programs / "encore").symlink_to(os.environ["ENCORE"])
        self.work = self.directory / "work"
        self.work.mkdir()
        environment = clean_environment()
        self.environment = {**environment, "PATH": f"{programs}:{environment['PATH']}"}
        self.now = int(time.time())
        subprocess.run([maker, "disk", str(self.now)], cwd=self.work, check=True)

    def shell(self, command):
        return subprocess.run(["bash", "-c", command], cwd=self.work, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, env=self.environment,
                              timeout=DEADLINE, check=False)

    def run_disk(self, command, status=0):
        ended = self.shell("encore disk " + command)
        self.assertEqual(status, ended.returncode, ended.stdout + ended.stderr)
        return ended.stdout if status != 2 else ended.stderr

    def listed(self, options=""):
        return [json.loads(line)
                for line in self.run_disk(f"list --json {options} disk").splitlines()]


class Documented(Disk):
    def test_the_examples_of_the_document(self):
        examples = examples_of(DOCUMENT)
        self.assertGreater(len(examples), 5)
        for example in examples:
            with self.subTest(example.command, place=example.place):
                ended = self.shell(example.command)
                self.assertEqual(example.status, ended.returncode, ended.stdout + ended.stderr)
                if not pattern_of(example.printed).fullmatch(ended.stdout):
                    self.assertEqual(example.printed, ended.stdout)

    def test_what_is_shown_with_a_prompt_is_run(self):
        shown = sum(text.count("$ encore disk") for _, text in blocks_of(DOCUMENT, "console"))
        self.assertGreater(shown, 5)
        for document in [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]:
            expected = shown if document == DOCUMENT else 0
            self.assertEqual(expected, document.read_text().count("$ encore disk"), document)

    def test_every_command_is_documented_and_has_examples_that_work(self):
        text = self.run_disk("--help")
        below = re.search(r"^Subcommands:\n((?:  .*\n)+)", text, re.M).group(1)
        self.assertEqual(COMMANDS, re.findall(r"^  (\S+)", below, re.M))
        for command in COMMANDS:
            self.assertIn(f"`encore disk {command} ", DOCUMENT.read_text())
            text = self.run_disk(command + " --help")
            examples = re.search(r"^Example:\n((?:  .*\n)+)", text, re.M).group(1).splitlines()
            self.assertGreater(len(examples), 1)
            for line in examples:
                with self.subTest(line):
                    for path in ("/var/cache/encore/disk", "/dev/sdb", "/dev/sdc"):
                        line = line.replace(path, "disk")
                    self.assertEqual(0, self.shell(line.strip()).returncode)
        self.assertIn("encore disk stat", self.shell("encore --help").stdout)

    def test_the_faults_that_are_documented_are_those_that_are_said(self):
        (self.work / "foreign").write_bytes(b"x" * 100000)
        (self.work / "blank").write_bytes(b"")
        (self.work / "empty").mkdir()
        document = DOCUMENT.read_text()
        for path, words in {"none": "No such file or directory",
                            "empty": "it is a directory; name a file in it",
                            "blank": "is empty: no encore has used it yet",
                            "foreign": "holds something that encore has not written"}.items():
            self.assertIn(words, document)
            for command in COMMANDS:
                with self.subTest(path, command=command):
                    said = self.run_disk(f"{command} {path}", 2)
                    self.assertTrue(said.startswith(f"encore disk {command}: "), said)
                    self.assertIn(words, said)
                    self.assertIn(path, said)
                    self.assertEqual(1, said.count("\n"))

    def test_the_disk_of_a_directory(self):
        # How long an object stays fresh goes by the clock, which moves on between the two.
        named, found = (re.sub(r"(fresh|stale) +\S+", r"\1", self.run_disk(f"list {path}"))
                        for path in ("disk", "."))
        self.assertGreater(named.count("\n"), 10)
        self.assertEqual(named, found)


class Scripts(Disk):
    def test_list_and_stat_and_verify_agree(self):
        objects = self.listed()
        self.assertEqual(331, len(objects))
        self.assertEqual(331, len({(each["url"], each["version"]) for each in objects}))
        self.assertEqual([(3, 3)], [(each["parts"], each["parts_there"]) for each in objects
                                    if each["parts"] != 0])
        stat = json.loads(self.run_disk("stat --json disk"))
        self.assertEqual(331, stat["objects"]["records"])
        self.assertEqual(3, stat["parts"]["records"])
        self.assertEqual(sum(each["disk_bytes"] for each in objects), stat["objects"]["bytes"])
        for name in ("ages", "sizes"):
            self.assertEqual(331, sum(each["objects"] for each in stat[name]))
            self.assertEqual(sum(each["bytes"] for each in objects),
                             sum(each["bytes"] for each in stat[name]))
        verified = json.loads(self.run_disk("verify --json disk"))
        self.assertTrue(verified["sound"])
        self.assertEqual(3, verified["parts"])
        self.assertEqual(verified["records"], stat["live"]["records"] + stat["dead"]["records"])
        self.assertEqual(verified["record_bytes"], stat["live"]["bytes"] + stat["dead"]["bytes"])
        self.assertEqual({}, {each["url"]: each for each in objects
                              if each["url"].endswith("/news/240")})

    def test_a_check_of_a_configuration_says_how_long_the_device_lasts(self):
        stat = json.loads(self.run_disk("stat --json disk"))
        config = self.work / "encore.toml"

        def check(more=""):
            config.write_text(f'[[disk]]\npath = "disk"\nsize = "{stat["bytes"]}B"\n{more}')
            ended = self.shell("encore --config encore.toml --check-config")
            return re.findall(r"^disk wear +disk: (.*)$", ended.stdout, re.M)
        pattern = r"([0-9.]+)MiB a day"
        self.assertRegex(check()[0], f"^{pattern}$")
        rated = re.fullmatch(
            pattern + r", at which the 545\.7TiB that its device is rated for last (.*) years",
            check('endurance = "600TB"\n')[0])
        # The stat counts what the newest segment holds, the check does not read it.
        mib = stat["written_a_day"] / 2**20
        self.assertLessEqual(float(rated.group(1)), mib + 0.1)
        self.assertGreater(float(rated.group(1)), mib / 2)
        self.assertEqual("more than 1000", rated.group(2))
        (self.work / "disk").unlink()
        self.assertEqual([], check())

    def test_no_byte_of_a_disk_is_written_and_nothing_beside_it(self):
        before = (self.work / "disk").read_bytes()
        status = (self.work / "disk").stat()
        for command in COMMANDS:
            self.run_disk(command + " disk")
        self.assertEqual(before, (self.work / "disk").read_bytes())
        self.assertEqual(status.st_mtime_ns, (self.work / "disk").stat().st_mtime_ns)
        self.assertEqual(["disk"], os.listdir(self.work))
        (self.work / "disk").chmod(0o400)
        for command in COMMANDS:
            self.run_disk(command + " disk")

    def test_each_flipped_byte_of_a_body_is_found_where_it_lies(self):
        disk = self.work / "disk"
        stat = json.loads(self.run_disk("stat --json disk"))
        data = stat["bytes"] - stat["segments"] * stat["segment_bytes"]
        whole = disk.read_bytes()
        for each in [each for each in self.listed("--sort size") if each["parts"] == 0][::66]:
            with self.subTest(each["url"]):
                damaged = bytearray(whole)
                at = data + each["segment"] * stat["segment_bytes"] + each["offset"]
                damaged[at + each["disk_bytes"] // 2] ^= 0x10
                disk.write_bytes(damaged)
                said = json.loads(self.run_disk("verify --json disk", 1))
                self.assertEqual(1, said["faults"])
                fault = said["damage"][0]
                self.assertEqual((each["segment"], each["offset"], each["url"]),
                                 (fault["segment"], fault["offset"], fault["url"]))

    def test_what_cannot_be_printed_is_exit_2(self):
        for command in [*(f"{each} disk" for each in COMMANDS), "list --json disk", "--help"]:
            with self.subTest(command):
                said = self.run_disk(command + " > /dev/full", 2)
                self.assertIn("cannot write to standard output: No space left on device", said)
        ended = self.shell("set -o pipefail; encore disk list disk | head -1")
        self.assertEqual(1, ended.stdout.count("\n"))

    def test_what_is_behind_a_wrong_word_is_not_taken_for_a_proxy(self):
        self.assertIn("did you mean \"verify\"", self.run_disk("verfy disk", 2))
        self.assertEqual(2, self.shell("encore disk").returncode)
        self.assertEqual(2, self.shell("encore --check-config disk stat disk").returncode)


if __name__ == "__main__":
    unittest.main()
