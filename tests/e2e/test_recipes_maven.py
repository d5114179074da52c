"""recipes/maven.toml: what a build fetches from a Maven repository, by curl: metadata, POMs, jars and
their checksums, a SNAPSHOT, and artefacts that another repository has. (A script, for Debian's Maven
brings a Java with it.)"""

import hashlib
import random
import unittest

from client import field
from harness import Case, need_program
from nginx import Nginx
from recipes import Mirrored, PackageRecipe, Recipe
from test_reverse import ask

BASE = "/maven2/org/example"
METADATA = f"{BASE}/app/maven-metadata.xml"
SNAPSHOT = f"{BASE}/tool/2.0-SNAPSHOT/tool-2.0-SNAPSHOT.jar"
RELEASES = [f"{BASE}/{name}/1.0/{name}-1.0.{kind}" for name in ("app", "lib")
            for kind in ("pom", "jar")]
ELSEWHERE = [f"{BASE}/other/1.0/other-1.0.pom", f"{BASE}/other/maven-metadata.xml"]


class Maven(PackageRecipe, Case):
    def setUp(self):
        super().setUp()
        self.curl = need_program("curl")
        self.repository = self.directory / "repository"
        for number, path in enumerate([METADATA, SNAPSHOT, *RELEASES]):
            self.publish(path, random.Random(number).randbytes(60_000))
        self.nginx = Nginx(self, self.repository, expires="off")
        self.encore = Recipe(self, "maven", [self.nginx.url("")])

    def publish(self, path, content):
        file = self.repository / path[1:]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        file.with_name(file.name + ".sha1").write_text(hashlib.sha1(content).hexdigest())

    def fetch(self, machine, path):
        to = machine / path.replace("/", "_")
        status = self.run_client([self.curl, "-sS", "-o", to, "-w", "%{http_code}",
                                  self.encore.url + path]).stdout.decode()
        return status, to.read_bytes()

    def ask(self, path):
        return ask(self.encore.port, path, host=f"127.0.0.1:{self.encore.port}")

    def install(self, number):
        machine = self.directory / f"machine{number}"
        machine.mkdir()
        for path in [METADATA, SNAPSHOT, *RELEASES]:
            status, body = self.fetch(machine, path)
            self.assertEqual(("200", (self.repository / path[1:]).read_bytes()), (status, body))
            status, digest = self.fetch(machine, path + ".sha1")
            self.assertEqual(("200", hashlib.sha1(body).hexdigest()), (status, digest.decode()))
        for path in ELSEWHERE:
            self.assertEqual("404", self.fetch(machine, path)[0])

    def test_a_snapshot_and_metadata_are_seen_at_once_and_a_release_never_asked_for(self):
        self.install(1)
        for path in (METADATA, SNAPSHOT):
            self.publish(path, b"something newer")
        self.publish(RELEASES[0], b"a release that was tampered with")
        origin = Mirrored(self.nginx, self.encore)
        for path in (METADATA, SNAPSHOT):
            self.assertEqual(b"something newer", self.ask(path).body)
            self.assertEqual(b"something newer", self.ask(path).body)
        answer = self.ask(RELEASES[0])
        self.assertEqual(60_000, len(answer.body))
        self.assertIn("; hit", field(answer, "Cache-Status"))
        self.assertEqual([f"GET {METADATA} 200", f"GET {SNAPSHOT} 200"], origin.full())
        self.assertEqual([f"GET {METADATA} 304", f"GET {SNAPSHOT} 304"], origin.validations())

    def test_that_an_artefact_is_not_there_is_remembered_for_a_minute(self):
        for path, life in zip(ELSEWHERE, (60, 10)):
            self.ask(path)
            answer = self.ask(path)
            self.assertEqual(404, answer.status)
            said = field(answer, "Cache-Status")
            self.assertLessEqual(int(said.partition("hit; ttl=")[2].partition(";")[0]), life, said)


if __name__ == "__main__":
    unittest.main()
