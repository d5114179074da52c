"""apt-get against a small package repository, in a root of its own; the system is never touched."""

import subprocess
import unittest

from harness import Case, need_program
from nginx import Nginx

PACKAGES = 6


class Apt(Case):
    def setUp(self):
        super().setUp()
        self.apt = need_program("apt-get", "dpkg-deb", "apt-ftparchive")[0]
        self.repository = self.directory / "repository"
        self.repository.mkdir()
        for number in range(PACKAGES):
            self.build_package(f"encore-sample-{number}", number)
        for name in ("packages", "release"):
            text = subprocess.run(["apt-ftparchive", name, "."], cwd=self.repository, check=True,
                                  stdout=subprocess.PIPE, timeout=60).stdout
            (self.repository / name.capitalize()).write_bytes(text)

    def build_package(self, name, number):
        tree = self.directory / "build" / name
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "DEBIAN" / "control").write_text(
            f"Package: {name}\nVersion: 1.0\nArchitecture: all\nMaintainer: nobody <n@example>\n"
            f"Description: sample {number}\n")
        (tree / "data").write_bytes(bytes((i * (number + 3)) % 251 for i in range(50_000)))
        subprocess.run(["dpkg-deb", "--root-owner-group", "-b", tree, self.repository], check=True,
                       stdout=subprocess.DEVNULL, timeout=60)

    def apt_get(self, root, proxy, *arguments):
        for folder in ("state/lists/partial", "cache/archives/partial", "etc", "work"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        (root / "status").touch()
        options = {
            "Dir": root, "Dir::State": root / "state", "Dir::State::status": root / "status",
            "Dir::Cache": root / "cache", "Dir::Etc": root / "etc",
            "Dir::Etc::sourcelist": root / "sources.list", "Dir::Etc::sourceparts": "-",
            "Acquire::http::Proxy": proxy, "Acquire::Languages": "none", "Acquire::Retries": "0",
            "APT::Sandbox::User": "root", "APT::Architecture": "amd64", "Debug::NoLocking": "1",
            "APT::Get::AllowUnauthenticated": "1",
        }
        command = [self.apt, "-q"]
        for name, value in options.items():
            command += ["-o", f"{name}={value}"]
        return self.run_client([*command, *arguments], cwd=root / "work")

    def test_packages_come_from_the_cache_the_third_time_from_clean_lists(self):
        nginx = Nginx(self, self.repository)
        encore = self.encore()
        names = [f"encore-sample-{number}" for number in range(PACKAGES)]
        for attempt in range(3):
            root = self.directory / f"root{attempt}"
            root.mkdir()
            (root / "sources.list").write_text(f"deb [trusted=yes] {nginx.url('/')} ./\n")
            said = self.apt_get(root, encore.url, "update").stdout
            self.assertNotIn(b"Err:", said)
            self.apt_get(root, encore.url, "download", *names)
            for name in names:
                file = f"{name}_1.0_all.deb"
                self.assertEqual((self.repository / file).read_bytes(),
                                 (root / "work" / file).read_bytes())
        for name in names:
            self.assertEqual(2, nginx.count("GET", f"/{name}_1.0_all.deb"), nginx.requests())
        # apt asks for the lists with max-age=0: validated each time, the body fetched twice.
        self.assertEqual(2, nginx.count("GET", "/Release"), nginx.requests())


if __name__ == "__main__":
    unittest.main()
