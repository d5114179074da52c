"""recipes/https-*.toml: programs that fetch by https from the names that the recipes decrypt."""

import io
import subprocess
import tarfile
import unittest
import zipfile

from harness import need_program
from intercept import InterceptCase, of_a_machine
from origin import fresh, response
from recipes import RECIPES, Recipe


class HttpsRecipe(InterceptCase):
    def recipe(self, name, host, routes, **settings):
        """(encore with that recipe, the origin of that host), which answers by these routes."""
        origin = self.start_origin(routes, name=host, default=response(b"", "404 Not Found"))
        self.names.answers[host] = [["127.0.0.1"]]
        self.ca("create", "--out", self.home, "--config", RECIPES / f"https-{name}.toml")
        encore = Recipe(self, f"https-{name}", **{
            "intercept.ca_certificate": self.home / "ca.crt",
            "intercept.ca_key": self.home / "ca.key",
            "intercept.ports": origin.port, "forward.connect_ports": origin.port,
            "upstream.nameservers": self.names.address,
            "upstream.tls_ca_file": self.public.certificate, **settings})
        return encore, origin

    def environment(self, machine, encore, **more):
        home = self.directory / machine
        home.mkdir(exist_ok=True)
        return of_a_machine(HOME=home, HTTPS_PROXY=encore.url, https_proxy=encore.url, **more)

    def test_npm(self):
        npm = need_program("npm", "node")[0]
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:gz") as into:
            text = b'{"name": "encore-sample", "version": "1.0.0"}'
            entry = tarfile.TarInfo("package/package.json")
            entry.size = len(text)
            into.addfile(entry, io.BytesIO(text))
        host = "registry.npmjs.org"

        def document(exchange):
            base = f"https://{host}:{exchange.origin.port}"
            return fresh('{"name": "encore-sample", "dist-tags": {"latest": "1.0.0"}, "versions":'
                         ' {"1.0.0": {"name": "encore-sample", "version": "1.0.0", "dist":'
                         f' {{"tarball": "{base}/encore-sample/-/encore-sample-1.0.0.tgz"}}}}}}}}',
                         Content_Type="application/json")

        encore, origin = self.recipe("npm", host, {
            "/encore-sample": document,
            "/encore-sample/-/encore-sample-1.0.0.tgz": response(packed.getvalue())})

        def install(machine):
            environment = self.environment(machine, encore,
                                           NODE_EXTRA_CA_CERTS=self.home / "ca.crt",
                                           NPM_CONFIG_GLOBALCONFIG="/dev/null")
            work = self.directory / machine / "work"
            work.mkdir()
            self.run_client([npm, "install", "--no-audit", "--no-fund", "--no-update-notifier",
                             f"--registry=https://{host}:{origin.port}/",
                             f"--https-proxy={encore.url}", f"--proxy={encore.url}",
                             "encore-sample"], env=environment, cwd=work)
            self.assertTrue((work / "node_modules/encore-sample/package.json").exists())

        install("one")
        before = origin.count()
        install("two")
        self.assertEqual(before, origin.count())

    def test_pip(self):
        python = need_program("python3")
        if subprocess.run([python, "-m", "pip", "--version"], stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, timeout=60).returncode:
            self.skipTest("pip is not installed")
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as into:
            into.writestr("encore_sample.py", "x = 1\n")
            into.writestr("encore_sample-1.0.dist-info/METADATA",
                          "Metadata-Version: 2.1\nName: encore-sample\nVersion: 1.0\n")
            into.writestr("encore_sample-1.0.dist-info/WHEEL",
                          "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            into.writestr("encore_sample-1.0.dist-info/RECORD", "")
        host = "pypi.org"
        name = "encore_sample-1.0-py3-none-any.whl"
        encore, origin = self.recipe("pip", host, {
            "/simple/encore-sample/": fresh(f'<a href="/files/{name}">{name}</a>',
                                            Content_Type="text/html"),
            f"/files/{name}": fresh(packed.getvalue())})

        def install(machine):
            environment = self.environment(machine, encore, PIP_CERT=self.home / "ca.crt",
                                           PIP_NO_CACHE_DIR=1,
                                           PIP_CONFIG_FILE="/dev/null", PIP_DISABLE_PIP_VERSION_CHECK=1)
            into = self.directory / machine / "site"
            self.run_client([python, "-m", "pip", "install", "--no-deps", "--target", into,
                             "--index-url", f"https://{host}:{origin.port}/simple/",
                             "encore-sample"], env=environment)
            self.assertEqual("x = 1\n", (into / "encore_sample.py").read_text())

        install("one")
        before = origin.count()
        install("two")
        self.assertEqual(before, origin.count())

    def test_go(self):
        go = need_program("go")
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as into:
            into.writestr("example.com/lib@v1.0.0/go.mod", "module example.com/lib\n")
            into.writestr("example.com/lib@v1.0.0/lib.go", "package lib\n")
        host = "proxy.golang.org"
        encore, origin = self.recipe("go", host, {
            "/example.com/lib/@v/v1.0.0.info": fresh('{"Version": "v1.0.0"}'),
            "/example.com/lib/@v/v1.0.0.mod": response("module example.com/lib\n"),
            "/example.com/lib/@v/v1.0.0.zip": response(packed.getvalue())})

        def download(machine):
            environment = self.environment(
                machine, encore, GOPROXY=f"https://{host}:{origin.port}", GONOSUMDB="*",
                GOFLAGS="-modcacherw", GOPATH=self.directory / machine / "go", GONOSUMCHECK=1,
                GOSUMDB="off", SSL_CERT_FILE=self.home / "ca.crt")
            self.run_client([go, "mod", "download", "example.com/lib@v1.0.0"], env=environment)

        download("one")
        before = origin.count()
        self.assertEqual(3, before, [request.target for request in origin.requests])
        download("two")
        self.assertEqual(before, origin.count())

    def test_apt(self):
        curl = need_program("curl")
        host = "apt.postgresql.org"
        encore, origin = self.recipe("apt", host, {
            "/pool/a.deb": fresh(b"package", ETag='"1"', Last_Modified="Mon, 02 Jan 2023 "
                                 "00:00:00 GMT")})

        def validated(exchange):
            if dict(exchange.request.fields).get("if-none-match") == '"1"':
                return response(b"", "304 Not Modified", ETag='"1"', Content_Length=None)
            return fresh(b"package", ETag='"1"')

        origin.routes["/pool/a.deb"] = validated
        for machine in ("one", "two"):
            got = self.run_client([curl, "-sS", "--cacert", self.home / "ca.crt", "-H",
                                   "Cache-Control: max-age=0",
                                   f"https://{host}:{origin.port}/pool/a.deb"],
                                  env=self.environment(machine, encore))
            self.assertEqual(b"package", got.stdout)
        self.assertEqual([None, '"1"'], [dict(request.fields).get("if-none-match")
                                         for request in origin.requests])
        # If the mirror is down, the cached copy is enough.
        origin.stop()
        got = self.run_client([curl, "-sS", "--cacert", self.home / "ca.crt",
                               f"https://{host}:{origin.port}/pool/a.deb"],
                              env=self.environment("three", encore))
        self.assertEqual(b"package", got.stdout)

    def test_browser(self):
        curl = need_program("curl")
        host = "cdn.jsdelivr.net"
        encore, origin = self.recipe("browser", host, {"/a.js": fresh(b"script")})
        for attempt in range(3):
            got = self.run_client([curl, "-sS", "--cacert", self.home / "ca.crt",
                                   f"https://{host}:{origin.port}/a.js"],
                                  env=self.environment("one", encore))
            self.assertEqual(b"script", got.stdout)
        self.assertEqual(1, origin.count(), "in front of a disk it waits in memory from the first on")


if __name__ == "__main__":
    unittest.main()
