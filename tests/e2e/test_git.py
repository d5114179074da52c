"""git over http: the smart protocol both ways, and the dumb one from the cache."""

import os
import random
import subprocess
import unittest

from harness import Case, clean_environment, need_program
from nginx import Nginx
from origin import Origin

DATA = random.Random(7).randbytes(400_000)


class Git(Case):
    def setUp(self):
        super().setUp()
        self.program = need_program("git")
        self.home = self.directory / "home"
        self.home.mkdir()
        self.environment = clean_environment(
            HOME=self.home, GIT_CONFIG_NOSYSTEM=1, GIT_TERMINAL_PROMPT=0, GIT_AUTHOR_NAME="a",
            GIT_AUTHOR_EMAIL="a@example", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@example")
        work = self.directory / "work"
        self.git("init", "-q", "-b", "main", work)
        (work / "data").write_bytes(DATA)
        self.commit(work, "first")
        self.repository = self.directory / "www" / "sample.git"
        self.git("clone", "-q", "--bare", work, self.repository)
        self.git("-C", self.repository, "config", "http.receivepack", "true")
        self.git("-C", self.repository, "update-server-info")

    def git(self, *arguments):
        return self.run_client([self.program, *arguments], env=self.environment)

    def commit(self, work, message):
        self.git("-C", work, "add", ".")
        self.git("-C", work, "commit", "-q", "-m", message)

    def backend(self, exchange):
        """git http-backend as CGI."""
        request = exchange.request
        path, _, query = request.target.partition("?")
        fields = dict(request.fields)
        environment = {
            "PATH": os.environ["PATH"], "HOME": str(self.home), "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROJECT_ROOT": str(self.repository.parent), "PATH_INFO": path,
            "QUERY_STRING": query, "REQUEST_METHOD": request.method, "REMOTE_ADDR": "127.0.0.1",
            "REMOTE_USER": "tester", "CONTENT_TYPE": fields.get("content-type", ""),
            "CONTENT_LENGTH": str(len(request.body)),
            "HTTP_CONTENT_ENCODING": fields.get("content-encoding", ""),
            "GIT_PROTOCOL": fields.get("git-protocol", ""),
        }
        answer = subprocess.run([self.program, "http-backend"], input=request.body, env=environment,
                                stdout=subprocess.PIPE, timeout=60, check=True).stdout
        head, _, body = answer.partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"status:")]
        status = next((line[7:].strip() for line in head.split(b"\r\n")
                       if line.lower().startswith(b"status:")), b"200 OK")
        lines.append(b"Content-Length: %d" % len(body))
        return b"HTTP/1.1 " + status + b"\r\n" + b"\r\n".join(lines) + b"\r\n\r\n" + body

    def test_clone_fetch_and_push_by_the_smart_protocol(self):
        origin = Origin(self, default=self.backend)
        encore = self.encore()
        proxy = f"http.proxy={encore.url}"
        for attempt in range(3):
            clone = self.directory / f"clone{attempt}"
            self.git("-c", proxy, "clone", "-q", origin.url("/sample.git"), clone)
            self.assertEqual(DATA, (clone / "data").read_bytes())
        (clone / "more").write_bytes(DATA[::-1])
        self.commit(clone, "second")
        # Beyond the buffer git sends the pack in chunks, after asking with a small request.
        self.git("-C", clone, "-c", proxy, "-c", "http.postBuffer=65536", "push", "-q")
        again = self.directory / "again"
        self.git("-c", proxy, "clone", "-q", origin.url("/sample.git"), again)
        self.assertEqual(DATA[::-1], (again / "more").read_bytes())
        sent = [dict(r.fields).get("transfer-encoding") for r in origin.requests
                if r.target.endswith("git-receive-pack") and r.method == "POST"]
        self.assertIn("chunked", sent)

    def test_the_third_dumb_clone_takes_its_objects_from_the_cache(self):
        nginx = Nginx(self, self.repository.parent)
        encore = self.encore()
        objects = []
        for attempt in range(3):
            clone = self.directory / f"clone{attempt}"
            self.git("-c", f"http.proxy={encore.url}", "clone", "-q", nginx.url("/sample.git"),
                     clone)
            self.assertEqual(DATA, (clone / "data").read_bytes())
            objects.append(sum(" 200" in line and "/objects/" in line for line in nginx.requests()))
        self.assertGreater(objects[1], objects[0])
        self.assertEqual(objects[1], objects[2], nginx.requests())


if __name__ == "__main__":
    unittest.main()
