"""Packages are installed after the holder of the system's locks has ended, not at the same time."""

import fcntl
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import unittest

PACKAGES = pathlib.Path(__file__).parents[2] / "tools" / "packages.sh"
SILENT = 30  # seconds
CONFIG = """
Dir::State "{0}";
Dir::State::lists "{0}/lists";
Dir::State::status "{0}/dpkg/status";
Dir::Cache "{0}";
Dir::Cache::archives "{0}/archives";
Dir::Etc::sourcelist "/dev/null";
Dir::Etc::sourceparts "/dev/null";
"""


@unittest.skipUnless(shutil.which("apt-get"), "apt-get is not installed")
class Locks(unittest.TestCase):
    def setUp(self):
        """A system of its own for apt, with nothing in it."""
        directory = pathlib.Path(tempfile.mkdtemp(prefix="encore-apt-"))
        self.addCleanup(shutil.rmtree, directory)
        for name in ("lists/partial", "archives/partial", "dpkg"):
            (directory / name).mkdir(parents=True)
        (directory / "dpkg/status").touch()
        (directory / "apt.conf").write_text(CONFIG.format(directory))
        self.directory = directory

    def apt_get(self, arguments):
        script = f'set -euo pipefail; source "{PACKAGES}"; as_root() {{ "$@"; }}; apt_get {arguments}'
        return subprocess.Popen(["bash", "-c", script], stdin=subprocess.DEVNULL, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                env={**os.environ, "APT_CONFIG": str(self.directory / "apt.conf")})

    def until_it_waits(self, process):
        """The output of the process once it reports that it waits, or has been silent and alive for so
        long that it must: apt reports it in most runs, not in all."""
        said = ""
        while "aiting for" not in said:
            if not select.select([process.stdout], [], [], SILENT)[0]:
                self.assertIsNone(process.poll(), f"it did not wait: {said}")
                return said
            read = os.read(process.stdout.fileno(), 65536).decode()
            self.assertTrue(read, f"it did not wait: {said}")
            said += read
        return said

    def test_a_lock_of_another_is_waited_for(self):
        for lock, arguments in (("lists/lock", "update"), ("dpkg/lock-frontend", "install --yes"),
                                ("dpkg/lock", "install --yes"),
                                ("archives/lock", "install --yes")):
            with self.subTest(lock), open(self.directory / lock, "w") as held:
                fcntl.lockf(held, fcntl.LOCK_EX)
                with self.apt_get(arguments) as process:
                    said = self.until_it_waits(process)
                    fcntl.lockf(held, fcntl.LOCK_UN)
                    said += process.stdout.read()
                    self.assertEqual(0, process.wait(), said)

    def test_what_fails_otherwise_fails_at_once(self):
        with self.apt_get("install --yes encore-no-such-package") as process:
            said = process.stdout.read()
            self.assertEqual(100, process.wait(), said)
        self.assertIn("Unable to locate package", said)
        self.assertNotIn("aiting for", said)


if __name__ == "__main__":
    unittest.main()
