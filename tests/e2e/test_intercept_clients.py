"""Programs inside decrypted CONNECTs: each told of our authority, and each that was not."""

import os
import pathlib
import subprocess
import unittest

from harness import find_program, need_program
from intercept import HOST, InterceptCase, of_a_machine
from origin import fresh, response

GO = """package main

import ("fmt"; "io"; "net/http"; "os")

func main() {
	answer, err := http.Get(os.Args[1])
	if err != nil { fmt.Println(err); os.Exit(1) }
	body, err := io.ReadAll(answer.Body)
	if err != nil { fmt.Println(err); os.Exit(1) }
	os.Stdout.Write(body)
}
"""
# Node's own client, by CONNECT as its libraries do it.
NODE = """
const http = require('http'), https = require('https');
const [proxy, host, port, path] = process.argv.slice(2);
const asked = http.request({host: '127.0.0.1', port: proxy, method: 'CONNECT', path: `${host}:${port}`});
asked.on('connect', (answer, socket) => {
  https.get({host, port, path, socket, agent: false, servername: host}, (got) => got.pipe(process.stdout))
    .on('error', (error) => { console.log(error.code); process.exit(1); });
});
asked.end();
"""


class Programs(InterceptCase):
    def setUp(self):
        super().setUp()
        self.origin = self.start_origin(default=fresh(b"one package"))
        self.encore_ = self.proxy(self.origin)
        self.url = f"https://{HOST}:{self.origin.port}/file"
        self.ours = self.home / "ca.crt"

    def check(self, run):
        """`run(certificates, check)` fetches the URL as a machine that trusts these."""
        for attempt in range(2):
            self.assertEqual(b"one package", run(self.ours, True).stdout, attempt)
        self.assertEqual(1, self.origin.count(), "the second machine costs nothing")
        self.assertEqual(0, self.encore_.metrics()["encore_intercepts_rejected_total"])
        # One that was not told fails once, and goes through from then on.
        self.assertNotEqual(0, run(self.public.certificate, False).returncode)
        for _ in range(2):
            self.assertEqual(b"one package", run(self.public.certificate, True).stdout)
        self.assertEqual(3, self.origin.count())

    def environment(self, **more):
        return of_a_machine(HOME=self.directory, HTTPS_PROXY=self.encore_.url,
                                 https_proxy=self.encore_.url, **more)

    def test_curl(self):
        curl = need_program("curl")
        self.check(lambda trusted, check: self.run_client(
            [curl, "-sS", "--proxy", self.encore_.url, "--cacert", trusted, self.url],
            env=of_a_machine(), check=check))

    def test_wget_which_speaks_gnutls(self):
        wget = need_program("wget")
        self.check(lambda trusted, check: self.run_client(
            [wget, "-q", "-O-", "--tries=1", f"--ca-certificate={trusted}", self.url],
            env=self.environment(), check=check))

    def test_node(self):
        node = need_program("node")
        script = self.directory / "get.js"
        script.write_text(NODE)
        self.check(lambda trusted, check: self.run_client(
            [node, script, self.encore_.port, HOST, self.origin.port, "/file"],
            env=self.environment(NODE_EXTRA_CA_CERTS=trusted), check=check))

    def test_go(self):
        go = need_program("go")
        source = self.directory / "get.go"
        source.write_text(GO)
        program = self.directory / "get"
        self.run_client([go, "build", "-o", program, source], env=of_a_machine(
            HOME=self.directory, GO111MODULE="off", GOCACHE=self.directory / "gocache"))
        self.check(lambda trusted, check: self.run_client(
            [program, self.url],
            env=self.environment(SSL_CERT_FILE=trusted, SSL_CERT_DIR="/nowhere"), check=check))

    def test_python(self):
        python = need_program("python3")
        text = ("import ssl, sys, urllib.request as u; sys.stdout.buffer.write(u.urlopen(sys.argv[1],"
                " context=ssl.create_default_context(cafile=sys.argv[2])).read())")
        self.check(lambda trusted, check: self.run_client(
            [python, "-c", text, self.url, trusted], env=self.environment(), check=check))


class Tools(InterceptCase):
    """Those that ask for many things."""

    def serve(self, folder):
        """A file of the folder, by its path."""
        def answer(exchange):
            path = folder / exchange.request.target.partition("?")[0].lstrip("/")
            if not path.is_file():
                return response(b"", "404 Not Found")
            return fresh(path.read_bytes())
        return answer

    def start_both(self, folder):
        origin = self.start_origin(default=self.serve(folder))
        return origin, self.proxy(origin)

    def test_git(self):
        git = need_program("git")
        environment = of_a_machine(
            HOME=self.directory, GIT_CONFIG_NOSYSTEM=1, GIT_TERMINAL_PROMPT=0, GIT_AUTHOR_NAME="a",
            GIT_AUTHOR_EMAIL="a@example", GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@example")

        def run(*words, check=True):
            return self.run_client([git, *words], env=environment, check=check)

        work, folder = self.directory / "work", self.directory / "www"
        run("init", "-q", "-b", "main", work)
        (work / "data").write_bytes(os.urandom(100_000))
        run("-C", work, "add", ".")
        run("-C", work, "commit", "-q", "-m", "first")
        run("clone", "-q", "--bare", work, folder / "sample.git")
        run("-C", folder / "sample.git", "update-server-info")
        origin, encore = self.start_both(folder)
        url = f"https://{HOST}:{origin.port}/sample.git"

        def clone(name, trusted, check=True):
            return run("-c", f"http.proxy={encore.url}", "-c", f"http.sslCAInfo={trusted}",
                       "-c", "protocol.version=0", "clone", "-q", url, self.directory / name,
                       check=check)

        clone("first", self.home / "ca.crt")
        before = origin.count()
        clone("second", self.home / "ca.crt")
        self.assertEqual((work / "data").read_bytes(),
                         (self.directory / "second" / "data").read_bytes())
        # Requests of git with Pragma: no-cache are sent again, objects are not.
        self.assertLess(origin.count(), 2 * before)
        self.assertNotEqual(0, clone("third", self.public.certificate, check=False).returncode)
        clone("fourth", self.public.certificate)

    def test_apt(self):
        apt, deb, _ = need_program("apt-get", "dpkg-deb", "apt-ftparchive")
        folder = self.directory / "repository"
        folder.mkdir()
        tree = self.directory / "tree"
        (tree / "DEBIAN").mkdir(parents=True)
        (tree / "DEBIAN" / "control").write_text(
            "Package: encore-sample\nVersion: 1.0\nArchitecture: all\nMaintainer: n <n@example>\n"
            "Description: sample\n")
        (tree / "data").write_bytes(os.urandom(100_000))
        self.run_client([deb, "--root-owner-group", "-b", tree, folder])
        for name in ("packages", "release"):
            text = subprocess.run(["apt-ftparchive", name, "."], cwd=folder, check=True,
                                  stdout=subprocess.PIPE, timeout=60).stdout
            (folder / name.capitalize()).write_bytes(text)
        origin, encore = self.start_both(folder)

        def install(name, trusted, check=True):
            root = self.directory / name
            for part in ("state/lists/partial", "cache/archives/partial", "etc", "work"):
                (root / part).mkdir(parents=True)
            (root / "status").touch()
            (root / "sources.list").write_text(
                f"deb [trusted=yes] https://{HOST}:{origin.port}/ ./\n")
            options = {
                "Dir": root, "Dir::State": root / "state", "Dir::State::status": root / "status",
                "Dir::Cache": root / "cache", "Dir::Etc": root / "etc",
                "Dir::Etc::sourcelist": root / "sources.list", "Dir::Etc::sourceparts": "-",
                "Acquire::https::Proxy": encore.url, "Acquire::https::CAInfo": trusted,
                "Acquire::Languages": "none", "Acquire::Retries": "0",
                "APT::Sandbox::User": "root", "APT::Architecture": "amd64",
                "Debug::NoLocking": "1", "APT::Update::Error-Mode": "any"}
            words = [apt, "-q"]
            for key, value in options.items():
                words += ["-o", f"{key}={value}"]
            updated = self.run_client([*words, "update"], check=check)
            if updated.returncode == 0:
                self.run_client([*words, "download", "encore-sample"], cwd=root / "work")
            return updated

        install("first", self.home / "ca.crt")
        install("second", self.home / "ca.crt")
        package = "encore-sample_1.0_all.deb"
        self.assertEqual(1, origin.count(f"/{package}"), [r.target for r in origin.requests])
        self.assertEqual((folder / package).read_bytes(),
                         (self.directory / "second" / "work" / package).read_bytes())
        self.assertNotEqual(0, install("third", self.public.certificate, check=False).returncode)
        install("fourth", self.public.certificate)

    def browse(self, encore, url, *certificates):
        """Returns the page of a fresh Chromium that trusts these certificates."""
        browser = find_program("chromium") or find_program("google-chrome")
        certutil = find_program("certutil")
        if not browser or not certutil:
            self.skipTest("chromium and certutil are not both installed")
        home = self.directory / f"home{len(list(self.directory.glob('home*')))}"
        store = home / ".pki" / "nssdb"
        store.mkdir(parents=True)
        self.run_client([certutil, "-d", f"sql:{store}", "-N", "--empty-password"])
        for number, certificate in enumerate(certificates):
            self.run_client([certutil, "-d", f"sql:{store}", "-A", "-t", "C,,", "-n",
                             f"ca{number}", "-i", certificate])
        ended = self.run_client(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
             "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--disable-default-apps", "--disable-extensions",
             "--disable-dev-shm-usage", f"--user-data-dir={home / 'profile'}",
             f"--proxy-server={encore.url}", "--dump-dom", url],
            env=of_a_machine(HOME=home), cwd=home)
        return ended.stdout.decode(errors="replace")

    def test_chromium(self):
        folder = self.directory / "www"
        folder.mkdir()
        origin = self.start_origin(default=fresh("<p>read</p>", Content_Type="text/html"))
        encore = self.proxy(origin)
        url = f"https://{HOST}:{origin.port}/page"
        self.assertIn("<p>read</p>", self.browse(encore, url, self.home / "ca.crt"))
        before = origin.count("/page")
        self.assertIn("<p>read</p>", self.browse(encore, url, self.home / "ca.crt"))
        self.assertEqual(before, origin.count("/page"))
        self.browse(encore, url, self.public.certificate)
        self.assertIn("<p>read</p>", self.browse(encore, url, self.public.certificate))


class Installed(InterceptCase):
    def test_the_lines_of_show_install_are_lines_of_a_shell(self):
        self.create(HOST)
        lines = self.ca("show", "--install", self.home / "ca.crt")
        script = self.directory / "install.sh"
        script.write_text(lines)
        self.run_client(["sh", "-n", script])
        self.assertIn(str(pathlib.Path(self.home / "ca.crt")), lines)
        # Those that need neither root nor a network do what they say.
        environment = of_a_machine(HOME=self.directory)
        for line in lines.splitlines():
            if line.startswith("git config") and find_program("git"):
                self.run_client(["sh", "-c", line], env=environment)
                said = self.run_client(["git", "config", "--global", "--get-urlmatch",
                                        "http.sslCAInfo", f"https://{HOST}/x"], env=environment)
                self.assertEqual(f"{self.home / 'ca.crt'}\n", said.stdout.decode())
            if line.startswith("certutil") and find_program("certutil"):
                store = self.directory / ".pki" / "nssdb"
                store.mkdir(parents=True)
                self.run_client(["certutil", "-d", f"sql:{store}", "-N", "--empty-password"])
                self.run_client(["sh", "-c", line], env=environment)
                said = self.run_client(["certutil", "-d", f"sql:{store}", "-L"])
                self.assertIn("encore", said.stdout.decode())


if __name__ == "__main__":
    unittest.main()
