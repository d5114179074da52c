"""The service of the Debian package: hardening, configuration, scripts, and what they name."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
DEBIAN = ROOT / "packaging/debian"
ENCORE = os.environ["ENCORE"]


def need(program):
    if shutil.which(program) is None:
        raise unittest.SkipTest(f"{program} is not installed")
    return program


def dump(config):
    """Reads a configuration; its faults, or ""."""
    said = subprocess.run([ENCORE, "--config", config, "--dump-config"], check=False, timeout=60, capture_output=True,
                          text=True)
    return said.stderr if said.returncode != 0 else ""


class Unit(unittest.TestCase):
    text = (DEBIAN / "encore.service").read_text()

    def exposure(self, text):
        """(exit status, output) of systemd's check that a unit's exposure is at most 2.0."""
        with tempfile.TemporaryDirectory(prefix="encore-unit-") as name:
            unit = pathlib.Path(name) / "encore.service"
            unit.write_text(text)
            said = subprocess.run([need("systemd-analyze"), "security", "--offline=true", "--threshold=20", "--no-pager",
                                   unit], check=False, timeout=60, capture_output=True, text=True)
        return said.returncode, said.stdout

    def test_exposure_is_at_most_two(self):
        status, said = self.exposure(self.text)
        self.assertEqual(0, status, said)

    def test_a_unit_without_a_filter_of_calls_is_refused(self):
        status, said = self.exposure(re.sub(r"(?m)^SystemCall.*\n", "", self.text))
        self.assertNotEqual(0, status, said)

    def test_it_starts_with_the_conffile(self):
        install = (DEBIAN / "rules").read_text()
        config = re.search(r"^ExecStart=/usr/bin/encore --config (\S+)$", self.text, re.MULTILINE).group(1)
        self.assertIn(f"debian/tmp{config}", install)
        self.assertIn(config, (DEBIAN / "upgrade-service").read_text())


class Configuration(unittest.TestCase):
    def test_those_of_the_package_and_of_the_image_are_accepted(self):
        for config in DEBIAN / "encore.toml", ROOT / "packaging/image/encore.toml":
            self.assertEqual("", dump(config))

    def test_what_is_commented_out_is_accepted(self):
        text = (DEBIAN / "encore.toml").read_text()
        with tempfile.NamedTemporaryFile("w", suffix=".toml") as file:
            uncommented = re.sub(r"(?m)^#(?! |$)", "", text)
            self.assertNotEqual(text, uncommented)
            file.write(uncommented)
            file.flush()
            self.assertEqual("", dump(file.name))

    def test_a_start_would_succeed(self):
        with tempfile.TemporaryDirectory(prefix="encore-config-") as name:
            sets = [f"state.directory={name}", f"log.access={name}/access.log", "listen.0.address=127.0.0.1:0",
                    "admin.address=127.0.0.1:0"]
            said = subprocess.run([ENCORE, "--config", DEBIAN / "encore.toml", "--check-config",
                                   *(word for each in sets for word in ("--set", each))],
                                  check=False, timeout=60, capture_output=True, text=True)
        self.assertEqual((0, ""), (said.returncode, said.stderr))


class Scripts(unittest.TestCase):
    def test_shellcheck_finds_no_fault(self):
        for name in "upgrade-service", "encore.postinst", "encore.postrm":
            said = subprocess.run([need("shellcheck"), DEBIAN / name], check=False, timeout=60, capture_output=True,
                                  text=True)
            self.assertEqual("", said.stdout)

    def test_directories_are_the_same_in_unit_and_scripts(self):
        removed = re.search(r"rm -rf (.*)", (DEBIAN / "encore.postrm").read_text()).group(1).split()
        made = re.findall(r"(?m)^d (\S+)", (DEBIAN / "encore.tmpfiles").read_text())
        for kind, place in ("State", "lib"), ("Cache", "cache"), ("Logs", "log"):
            self.assertIn(f"{kind}Directory=encore\n", Unit.text)
            self.assertIn(f"/var/{place}/encore", removed)
            self.assertIn(f"/var/{place}/encore", made)

    def test_packages_share_no_file_and_have_all(self):
        """Each line of *.install is in one package; each program's page and completions are in the program's."""
        lines = {name: (DEBIAN / f"{name}.install").read_text().split() for name in ("encore", "encore-tools",
                                                                                    "python3-encore-sim", "encore-doc")}
        all_lines = [line for each in lines.values() for line in each]
        self.assertEqual(len(all_lines), len(set(all_lines)))
        for package, program in ("encore", "encore"), ("encore-tools", "encore-sim"), ("encore-tools", "encore-filter"):
            for path in (f"usr/bin/{program}", f"usr/share/man/man1/{program}.1",
                         f"usr/share/bash-completion/completions/{program}",
                         f"usr/share/zsh/vendor-completions/_{program}",
                         f"usr/share/fish/vendor_completions.d/{program}.fish"):
                self.assertIn(path, lines[package])


if __name__ == "__main__":
    unittest.main()
