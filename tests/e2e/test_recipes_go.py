"""recipes/go.toml: go mod download on machines that have nothing, against a module mirror."""

import io
import json
import unittest
import zipfile

from client import field
from harness import Case, clean_environment, need_program
from nginx import Nginx
from recipes import PackageRecipe, Recipe
from test_reverse import ask

MODULES = {"example.com/app": ["v1.2.0", "v1.3.0"], "example.com/lib": ["v0.1.0"]}


def archive(module, version, text):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as into:
        into.writestr(f"{module}@{version}/go.mod", text)
        into.writestr(f"{module}@{version}/main.go",
                      f"package sample // {module} {version}\n" * 3000)
    return packed.getvalue()


class Go(PackageRecipe, Case):
    def setUp(self):
        super().setUp()
        self.go = need_program("go")
        self.mirror = self.directory / "mirror"
        for module, versions in MODULES.items():
            for version in versions:
                self.publish(module, version)
        # No word of freshness.
        self.nginx = Nginx(self, self.mirror, expires="off")
        self.encore = Recipe(self, "go", [self.nginx.url("")])

    def publish(self, module, version):
        folder = self.mirror / module / "@v"
        folder.mkdir(parents=True, exist_ok=True)
        text = f"module {module}\n\ngo 1.19\n"
        if module.endswith("app"):
            text += "\nrequire example.com/lib v0.1.0\n"
        (folder / f"{version}.mod").write_text(text)
        (folder / f"{version}.info").write_text(
            json.dumps({"Version": version, "Time": "2024-01-01T00:00:00Z"}))
        (folder / f"{version}.zip").write_bytes(archive(module, version, text))
        with open(folder / "list", "a") as names:
            names.write(f"{version}\n")

    def install(self, number):
        machine = self.directory / f"machine{number}"
        machine.mkdir()
        environment = clean_environment(
            HOME=machine, GOPATH=machine / "go", GOCACHE=machine / "build", GOFLAGS="-modcacherw",
            GOPROXY=self.encore.url, GOSUMDB="off",
            GOTOOLCHAIN="local", GOENV="off")
        (machine / "go.mod").write_text("module sample\n\ngo 1.19\n")
        self.run_client([self.go, "get", "example.com/app@latest"], cwd=machine, env=environment,
                        timeout=400)
        self.run_client([self.go, "mod", "download", "all"], cwd=machine, env=environment,
                        timeout=400)
        self.assertIn("example.com/app v1.3.0", (machine / "go.mod").read_text())
        for module, version in (("app", "v1.3.0"), ("lib", "v0.1.0")):
            path = f"example.com/{module}@{version}"
            file = machine / "go" / "pkg" / "mod" / path / "main.go"
            self.assertIn(f"example.com/{module} {version}", file.read_text())

    def test_a_version_is_fresh_for_ever_and_a_list_for_a_minute(self):
        for path, life in (("/example.com/app/@v/v1.3.0.zip", 365 * 86400),
                           ("/example.com/app/@v/v1.3.0.mod", 365 * 86400),
                           ("/example.com/app/@v/v1.3.0.info", 60),
                           ("/example.com/app/@v/list", 60)):
            ask(self.encore.port, path)
            said = field(ask(self.encore.port, path), "Cache-Status")
            ttl = int(said.partition("hit; ttl=")[2].partition(";")[0])
            self.assertTrue(life - 60 <= ttl <= life, (path, said))


if __name__ == "__main__":
    unittest.main()
