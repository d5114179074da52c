"""recipes/apt.toml: apt-get on machines that have nothing, against a signed repository."""

import hashlib
import random
import subprocess
import unittest

from client import get
from harness import Case, need_program
from name_server import NameServer
from nginx import Nginx
from recipes import Mirrored, PackageRecipe, Recipe

PACKAGES = 4
HOST = "deb.debian.org"


class Machines:
    extra = ""  # for the section of the mirror's server

    def setUp(self):
        super().setUp()
        self.apt = need_program("apt-get", "dpkg-deb", "apt-ftparchive", "gpg")[0]
        self.archive = self.directory / "archive"
        self.pool = self.archive / "debian" / "pool" / "main"
        self.pool.mkdir(parents=True)
        for number in range(PACKAGES):
            self.build_package(f"encore-sample-{number}", number)
        self.publish()
        # No word of freshness, as the mirrors of Debian have none for the pool.
        self.nginx = Nginx(self, self.archive, expires="off", extra=self.extra)
        names = NameServer(self)
        names.answers[HOST] = [["127.0.0.1"]]
        names.answers["packages.example"] = [["127.0.0.1"]]
        self.encore = Recipe(self, "apt", upstream__nameservers=names.address)

    def build_package(self, name, number, version="1.0"):
        tree = self.directory / "build" / name
        (tree / "DEBIAN").mkdir(parents=True, exist_ok=True)
        (tree / "DEBIAN" / "control").write_text(
            f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: n <n@example>\n"
            f"Description: sample {number}\n")
        (tree / "data").write_bytes(random.Random(number).randbytes(200_000))
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, self.pool], check=True,
                       stdout=subprocess.DEVNULL, timeout=60)

    def run_here(self, *command, where=None):
        return subprocess.run([str(c) for c in command], cwd=where, check=True, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout

    def publish(self):
        """dists/stable, with lists by their hashes, and signed."""
        base = self.archive / "debian"
        lists = base / "dists" / "stable" / "main" / "binary-amd64"
        lists.mkdir(parents=True, exist_ok=True)
        text = self.run_here("apt-ftparchive", "packages", "pool", where=base)
        (lists / "Packages").write_bytes(text)
        release = self.run_here(
            "apt-ftparchive", "-o", "APT::FTPArchive::Release::Acquire-By-Hash=yes",
            "-o", "APT::FTPArchive::Release::Suite=stable", "-o",
            "APT::FTPArchive::Release::Components=main", "-o",
            "APT::FTPArchive::Release::Architectures=amd64", "release", base / "dists" / "stable")
        stable = base / "dists" / "stable"
        (self.directory / "Release").write_bytes(release)
        for algorithm in ("MD5", "SHA1", "SHA256", "SHA512"):
            by_hash = lists / "by-hash" / (algorithm + "Sum" * (algorithm == "MD5"))
            by_hash.mkdir(parents=True, exist_ok=True)
            (by_hash / hashlib.new(algorithm, text).hexdigest()).write_bytes(text)
        home = self.directory / "gnupg"
        gpg = ["gpg", "--homedir", home, "--batch", "--quiet", "--passphrase", ""]
        if not home.exists():
            home.mkdir(mode=0o700)
            self.addCleanup(subprocess.run, ["gpgconf", "--homedir", home, "--kill", "all"],
                            check=False)
            self.run_here(*gpg, "--quick-generate-key", "archive@example", "ed25519", "sign")
            key = self.run_here(*gpg, "--export", "archive@example")
            (self.directory / "key.gpg").write_bytes(key)
        self.run_here(*gpg, "--yes", "--clearsign", "-o", stable / "InRelease",
                      self.directory / "Release")

    def apt_get(self, root, *arguments):
        options = {
            "Dir": root, "Dir::State": root / "state", "Dir::State::status": root / "status",
            "Dir::Cache": root / "cache", "Dir::Etc": root / "etc",
            "Dir::Etc::sourcelist": root / "sources.list", "Dir::Etc::sourceparts": "-",
            "Acquire::http::Proxy": self.encore.url, "Acquire::Languages": "none",
            "Acquire::Retries": "0", "APT::Sandbox::User": "root", "APT::Architecture": "amd64",
            "Debug::NoLocking": "1",
        }
        command = [self.apt, "-q"]
        for name, value in options.items():
            command += ["-o", f"{name}={value}"]
        return self.run_client([*command, *arguments], cwd=root / "work")

    def install(self, number):
        root = self.directory / f"machine{number}"
        for folder in ("state/lists/partial", "cache/archives/partial", "etc", "work"):
            (root / folder).mkdir(parents=True)
        (root / "status").touch()
        (root / "sources.list").write_text(
            f"deb [signed-by={self.directory}/key.gpg] http://{HOST}:{self.nginx.port}/debian "
            "stable main\n")
        said = self.apt_get(root, "update").stdout
        self.assertNotIn(b"Err:", said)
        self.assertNotIn(b"W:", said)
        names = [f"encore-sample-{number}" for number in range(PACKAGES)]
        self.apt_get(root, "download", *names)
        for name in names:
            file = f"{name}_1.0_all.deb"
            self.assertEqual((self.pool / file).read_bytes(), (root / "work" / file).read_bytes())


class Apt(Machines, PackageRecipe, Case):
    def test_a_package_put_under_an_old_name_by_a_third_party_is_seen_at_once(self):
        url = f"http://packages.example:{self.nginx.port}/debian/pool/main/tool.deb"
        file = self.pool / "tool.deb"
        for content in (b"one", b"other", b"a third"):
            file.write_bytes(content)
            for _ in range(2):
                self.assertEqual(content, get(self.encore.port, url).body)


class MirrorWithoutValidators(Machines, Case):
    """A mirror that gives its files neither validator nor freshness."""

    extra = 'etag off; add_header Last-Modified "";'

    def test_the_second_machine_gets_only_the_signed_list_of_lists(self):
        self.install(1)
        origin = Mirrored(self.nginx, self.encore)
        self.install(2)
        self.assertEqual(["GET /debian/dists/stable/InRelease 200"], origin.all()[origin.begun:])

    def test_the_next_lists_are_seen_at_once(self):
        self.install(1)
        self.build_package("encore-sample-new", PACKAGES)
        self.publish()
        self.install(2)
        self.apt_get(self.directory / "machine2", "download", "encore-sample-new")


if __name__ == "__main__":
    unittest.main()
