"""recipes/git.toml: git clone of the dumb protocol from a cache, LFS objects as files, and the smart
protocol, which goes through and is never answered from the cache."""

import hashlib
import os
import random
import unittest

from client import field
from nginx import Nginx
from origin import Origin
from recipes import PackageRecipe, Recipe, at_once
from test_git import DATA, Git
from test_reverse import ask

LARGE = random.Random(9).randbytes(300_000)
LFS = f"/sample.git/info/lfs/objects/{hashlib.sha256(LARGE).hexdigest()}"


class GitRecipe(PackageRecipe, Git):
    # Git's own tests run in test_git.
    test_clone_fetch_and_push_by_the_smart_protocol = None
    test_the_third_dumb_clone_takes_its_objects_from_the_cache = None

    def setUp(self):
        super().setUp()
        lfs = self.repository.parent / LFS[1:]
        lfs.parent.mkdir(parents=True)
        lfs.write_bytes(LARGE)
        # nginx tells files of one size apart by the second in which they were written.
        for file in ("info/refs", "HEAD"):
            os.utime(self.repository / file, (0, 0))
        self.nginx = Nginx(self, self.repository.parent, expires="off")
        self.encore = Recipe(self, "git", [self.nginx.url("")])

    def clone(self, encore, name):
        clone = self.directory / name
        self.git("-c", f"url.{encore.url}/.insteadOf=https://git.example/", "clone", "-q",
                 "https://git.example/sample.git", clone)
        self.assertEqual(DATA, (clone / "data").read_bytes())
        return clone

    def install(self, number):
        self.clone(self.encore, f"machine{number}")
        answer = ask(self.encore.port, LFS)
        self.assertEqual((200, LARGE), (answer.status, answer.body))

    def test_what_is_named_after_its_content_is_had_with_the_origin_down(self):
        self.install(1)
        self.nginx.stop()
        self.assertEqual(LARGE, ask(self.encore.port, LFS).body)

    def test_a_commit_is_seen_by_the_next_clone(self):
        self.clone(self.encore, "before")
        work = self.directory / "work"
        (work / "more").write_bytes(b"more")
        self.commit(work, "second")
        self.git("-C", work, "push", "-q", self.repository, "main")
        self.git("-C", self.repository, "update-server-info")
        clone = self.clone(self.encore, "after")
        self.assertEqual(b"more", (clone / "more").read_bytes())

    def test_the_smart_protocol_goes_through_and_is_asked_for_each_time(self):
        origin = Origin(self, default=self.backend)
        encore = Recipe(self, "git", [origin.url("")])
        at_once(6, lambda number: self.clone(encore, f"clone{number}"))
        # One POST for what there is, and one for the pack, of each.
        self.assertEqual(12, origin.count("/sample.git/git-upload-pack"))
        self.assertEqual(6, origin.count("/sample.git/info/refs?service=git-upload-pack"))
        self.assertEqual(0, encore.outcomes().get("hit", 0))

    def test_a_file_asked_for_with_credentials_is_nobody_elses(self):
        for _ in range(2):
            answer = ask(self.encore.port, LFS, fields=[("Authorization", "Basic YTpi")])
            self.assertEqual(LARGE, answer.body)
            self.assertNotIn("; hit", field(answer, "Cache-Status"))
        self.assertNotIn("; hit", field(ask(self.encore.port, LFS), "Cache-Status"))


del Git

if __name__ == "__main__":
    unittest.main()
