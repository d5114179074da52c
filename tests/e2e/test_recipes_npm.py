"""recipes/npm.toml: npm install on machines that have nothing, against a registry as the public one
is: fresh for five minutes, tarballs named at the registry's own address, a cookie on each answer."""

import base64
import hashlib
import json
import unittest

from harness import Case, clean_environment, need_program
from nginx import Nginx
from recipes import PackageRecipe, Recipe
from test_npm import package

REGISTRY = "https://registry.npmjs.org"
EXTRA = """
location ~ [.]tgz$ { default_type application/octet-stream; expires 1y;
  add_header Set-Cookie "session=$connection$connection_requests"; }
location / { try_files $uri/index.json =404; default_type application/json; expires off;
  add_header Cache-Control "public, max-age=300"; add_header Vary "accept-encoding, accept";
  add_header Set-Cookie "session=$connection$connection_requests"; }
"""


class Npm(PackageRecipe, Case):
    def setUp(self):
        super().setUp()
        self.npm = need_program("npm")
        self.tarballs = {}
        registry = self.directory / "registry"
        for name, needs in (("encore-a", {"encore-b": "^1.0.0", "encore-c": "^1.0.0"}),
                            ("encore-b", {"encore-c": "^1.0.0"}), ("encore-c", {})):
            manifest, tarball = package(name, needs)
            path = f"{name}/-/{name}-1.0.0.tgz"
            (registry / path).parent.mkdir(parents=True)
            (registry / path).write_bytes(tarball)
            digest = base64.b64encode(hashlib.sha512(tarball).digest()).decode()
            manifest["dist"] = {"tarball": f"{REGISTRY}/{path}", "integrity": f"sha512-{digest}"}
            (registry / name / "index.json").write_text(json.dumps(
                {"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": manifest}}))
        self.nginx = Nginx(self, registry, extra=EXTRA)
        self.encore = Recipe(self, "npm", [self.nginx.url("")])

    def install(self, number):
        machine = self.directory / f"machine{number}"
        machine.mkdir()
        (machine / "package.json").write_text('{"name": "sample", "version": "1.0.0"}')
        self.run_client(
            [self.npm, "install", "encore-a", "--no-audit", "--no-fund", "--no-update-notifier"],
            cwd=machine, timeout=400, env=clean_environment(
                HOME=machine, npm_config_registry=f"{self.encore.url}/",
                npm_config_cache=machine / "cache", npm_config_noproxy="",
                npm_config_userconfig=machine / "npmrc"))
        for name in ("encore-a", "encore-b", "encore-c"):
            self.assertIn(name, (machine / "node_modules" / name / "index.js").read_text())


if __name__ == "__main__":
    unittest.main()
