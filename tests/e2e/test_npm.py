"""npm install against a small registry."""

import base64
import hashlib
import io
import json
import tarfile
import unittest

from harness import Case, clean_environment, need_program
from origin import Origin, fresh


def package(name, dependencies):
    """(packument's version, tarball)"""
    manifest = {"name": name, "version": "1.0.0", "main": "index.js", "dependencies": dependencies}
    files = {"package/package.json": json.dumps(manifest).encode(),
             "package/index.js": f"module.exports = '{name}';\n".encode() * 500}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, data in files.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return manifest, packed.getvalue()


class Npm(Case):
    def registry(self):
        origin = Origin(self)
        for name, needs in (("encore-a", {"encore-b": "^1.0.0"}), ("encore-b", {})):
            manifest, tarball = package(name, needs)
            path = f"/{name}/-/{name}-1.0.0.tgz"
            digest = base64.b64encode(hashlib.sha512(tarball).digest()).decode()
            manifest["dist"] = {"tarball": origin.url(path), "integrity": f"sha512-{digest}"}
            packument = {"name": name, "dist-tags": {"latest": "1.0.0"},
                         "versions": {"1.0.0": manifest}}
            origin.routes[f"/{name}"] = fresh(json.dumps(packument),
                                              Content_Type="application/json")
            origin.routes[path] = fresh(tarball, Content_Type="application/octet-stream")
        return origin

    def test_the_third_install_with_an_empty_cache_asks_the_registry_nothing(self):
        npm = need_program("npm")
        origin = self.registry()
        encore = self.encore()
        counts = []
        for attempt in range(3):
            project = self.directory / f"project{attempt}"
            project.mkdir()
            (project / "package.json").write_text('{"name": "sample", "version": "1.0.0"}')
            self.run_client(
                [npm, "install", "encore-a", "--no-audit", "--no-fund", "--no-update-notifier"],
                cwd=project, env=clean_environment(
                    HOME=self.directory, npm_config_registry=origin.url("/"),
                    npm_config_cache=self.directory / f"cache{attempt}",
                    npm_config_proxy=encore.url, npm_config_noproxy="",
                    npm_config_userconfig=self.directory / "npmrc"))
            for name in ("encore-a", "encore-b"):
                self.assertTrue((project / "node_modules" / name / "index.js").exists())
            counts.append(origin.count())
        self.assertGreaterEqual(counts[0], 4)
        self.assertEqual([2 * counts[0]] * 2, counts[1:])


if __name__ == "__main__":
    unittest.main()
