"""recipes/registry.toml: machines pull images with skopeo. The registry is Debian's docker-registry,
and its users log in."""

import gzip
import hashlib
import json
import random
import sys
import unittest

from client import get
from harness import Case, free_port, need_program
from nginx import Nginx
from recipes import Mirrored, Recipe, at_once

REGISTRY = """
version: 0.1
log: {{ level: warn, accesslog: {{ disabled: true }} }}
storage: {{ filesystem: {{ rootdirectory: {dir}/images }} }}
http: {{ addr: "127.0.0.1:{port}", secret: of-the-test }}
auth: {{ htpasswd: {{ realm: registry, path: {dir}/users }} }}
"""
# The password is "secret"; made with htpasswd -B -C 4.
HASH = "$2y$04$o7a32LtrLk7cLYVa2tWvvuNuGjv5ZEqlqmcmgXtp43nGtcdDlIgTm"
LAYERS = 3


class Registry(Case):
    def setUp(self):
        super().setUp()
        program, self.skopeo = need_program("docker-registry", "skopeo")
        port = free_port()
        (self.directory / "users").write_text(
            "".join(f"{user}:{HASH}\n" for user in ("ann", "bob", "publisher")))
        (self.directory / "registry.yml").write_text(
            REGISTRY.format(dir=self.directory, port=port))
        self.start([program, "serve", self.directory / "registry.yml"], port)
        # In front of it, for its log.
        self.nginx = Nginx(self, self.directory, expires="off", extra=(
            f"location / {{ proxy_pass http://127.0.0.1:{port}; "
            "proxy_set_header Host $http_host; proxy_set_header X-Forwarded-Proto http; }"))
        self.registry = f"127.0.0.1:{port}"
        self.encore = Recipe(self, "registry", [self.nginx.url("")])
        self.publish("app:1", LAYERS)

    def publish(self, name, layers):
        """An image of so many layers of 1 MiB, the first of them the same in each image."""
        layout = self.directory / name.replace(":", "-")
        blobs = layout / "blobs" / "sha256"
        blobs.mkdir(parents=True)

        def put(kind, content):
            digest = hashlib.sha256(content).hexdigest()
            (blobs / digest).write_bytes(content)
            return {"mediaType": f"application/vnd.oci.image.{kind}", "size": len(content),
                    "digest": f"sha256:{digest}"}

        plain = [random.Random(number and f"{name} {number}").randbytes(1 << 20)
                 for number in range(layers)]
        config = put("config.v1+json", json.dumps({
            "architecture": "amd64", "os": "linux", "config": {}, "rootfs": {
                "type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(each).hexdigest()}"
                                               for each in plain]}}).encode())
        manifest = put("manifest.v1+json", json.dumps({
            "schemaVersion": 2, "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config,
            "layers": [put("layer.v1.tar+gzip", gzip.compress(each, 1, mtime=0)) for each in plain]
        }).encode())
        manifest["annotations"] = {"org.opencontainers.image.ref.name": "latest"}
        (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [manifest]}))
        (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        self.run_client([self.skopeo, "copy", "--quiet", "--insecure-policy",
                         "--dest-tls-verify=false", "--dest-creds=publisher:secret",
                         f"oci:{layout}:latest", f"docker://{self.registry}/{name}"])
        self.layers = {each["digest"] for each in json.loads(
            (blobs / manifest["digest"].removeprefix("sha256:")).read_bytes())["layers"]}

    def pull(self, machine, name="app:1", user="ann", check=True):
        """True if the machine has all of the image then."""
        to = self.directory / f"machine-{machine}-{name}".replace(":", "-")
        ended = self.run_client(
            [self.skopeo, "copy", "--quiet", "--insecure-policy", "--src-tls-verify=false",
             f"--src-creds={user}:secret", f"docker://127.0.0.1:{self.encore.port}/{name}",
             f"dir:{to}"], check=check)
        if ended.returncode != 0:
            return False
        for digest in self.layers:
            content = (to / digest.removeprefix("sha256:")).read_bytes()
            self.assertEqual(digest, f"sha256:{hashlib.sha256(content).hexdigest()}")
        return True

    def bodies(self, origin):
        return [line for line in origin.full() if line.startswith("GET") and line.endswith(" 200")
                and not line.startswith("GET /v2/ ")]

    def blobs(self, origin):
        return [line for line in self.bodies(origin) if "/blobs/" in line]

    def test_the_second_machine_gets_no_layer_from_the_registry(self):
        origin = Mirrored(self.nginx, self.encore)
        self.pull(1)
        first = self.bodies(origin)
        self.assertEqual(LAYERS + 2, len(first))  # with the configuration and the manifest
        origin.mark()
        self.pull(2, user="bob")
        self.assertEqual([], self.bodies(origin))
        checks = [line for line in origin.all()[origin.begun:] if line.startswith("HEAD")]
        print(f"registry: machine 1: {len(first)} full; machine 2: 0 full, "
              f"{len(origin.validations()) + len(checks)} validations", file=sys.stderr)

    def test_layers_are_shared_by_images(self):
        self.pull(1)
        self.publish("other:1", LAYERS)
        origin = Mirrored(self.nginx, self.encore)
        self.pull(1, "other:1")
        self.assertEqual(LAYERS, len(self.blobs(origin)))

    def test_a_tag_that_moves_is_seen_at_once(self):
        self.pull(1)
        old = self.layers
        (self.directory / "app-1").rename(self.directory / "app-old")
        self.publish("app:1", LAYERS + 1)
        self.assertNotEqual(old, self.layers)
        self.pull(2)

    def test_who_may_not_pull_gets_nothing_stored(self):
        self.pull(1)
        self.assertFalse(self.pull(2, user="eve", check=False))
        layer = sorted(self.layers)[0]
        url = f"{self.encore.url}/v2/app/blobs/{layer}"
        for fields in ([], [("Authorization", "Basic bm9ib2R5OndvcmQ=")]):
            self.assertEqual(401, get(self.encore.port, url, fields=fields).status)

    def test_twenty_machines_at_once(self):
        self.pull(0)
        origin = Mirrored(self.nginx, self.encore)
        at_once(20, lambda number: self.pull(number + 1, user=("ann", "bob")[number % 2]))
        self.assertEqual([], self.blobs(origin))


if __name__ == "__main__":
    unittest.main()
