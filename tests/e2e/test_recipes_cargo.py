"""recipes/cargo.toml: cargo on machines that have nothing, against a sparse index and files as
crates.io has them."""

import hashlib
import io
import json
import re
import subprocess
import tarfile
import unittest

from harness import Case, clean_environment, need_program
from nginx import Nginx
from recipes import PackageRecipe, Recipe

NAMES = ("encore-a", "encore-b")
# As the index has it, and the files.
EXTRA = """
location ~ ^/en/ { default_type text/plain; expires 10m; }
location ~ /download$ { default_type application/gzip; expires off; etag off; }
"""


def crate(name, needs):
    packed = io.BytesIO()
    manifest = (f'[package]\nname = "{name}"\nversion = "1.0.0"\nedition = "2018"\n[dependencies]\n'
                + "".join(f'{each} = "1"\n' for each in needs))
    with tarfile.open(fileobj=packed, mode="w:gz") as into:
        for path, text in (("Cargo.toml", manifest), ("src/lib.rs", f"// {name}\n")):
            entry = tarfile.TarInfo(f"{name}-1.0.0/{path}")
            entry.size = len(text)
            into.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


class Cargo(PackageRecipe, Case):
    def setUp(self):
        super().setUp()
        # Debian's: others want to be in somebody's home.
        self.cargo, self.rustc = need_program("/usr/bin/cargo", "/usr/bin/rustc")
        said = subprocess.run([self.cargo, "--version"], stdout=subprocess.PIPE, timeout=60,
                              check=True, env=self.environment(self.directory)).stdout.decode()
        version = tuple(int(part) for part in re.search(r"cargo (\d+)\.(\d+)", said).groups())
        # Until 1.68 a sparse index was a feature to be asked for.
        self.sparse = ["-Z", "sparse-registry"] if version < (1, 68) else []
        registry = self.directory / "registry"
        for name, needs in zip(NAMES, ((NAMES[1],), ())):
            content = crate(name, needs)
            file = registry / "crates" / name / "1.0.0" / "download"
            file.parent.mkdir(parents=True)
            file.write_bytes(content)
            entry = registry / "en" / "co" / name
            entry.parent.mkdir(parents=True, exist_ok=True)
            entry.write_text(json.dumps({
                "name": name, "vers": "1.0.0", "features": {}, "yanked": False,
                "cksum": hashlib.sha256(content).hexdigest(), "deps": [
                    {"name": each, "req": "^1", "features": [], "optional": False,
                     "default_features": True, "target": None, "kind": "normal"}
                    for each in needs]}) + "\n")
        self.nginx = Nginx(self, registry, extra=EXTRA)
        self.encore = Recipe(self, "cargo", start=False)
        self.encore.arguments += [
            f"--set=origin.{number}.servers={self.nginx.url('')}" for number in (0, 1)]
        self.encore.arguments.append(
            f'--set=rule.0.static_body={{"dl": "{self.encore.url}/crates"}}')
        self.encore.start()

    def environment(self, machine):
        return clean_environment(HOME=machine, CARGO_HOME=machine / "home", RUSTC_BOOTSTRAP="1",
                                 RUSTC=self.rustc, CARGO_TERM_COLOR="never")

    def install(self, number):
        machine = self.directory / f"machine{number}"
        (machine / "home").mkdir(parents=True)
        (machine / "src").mkdir()
        (machine / "src" / "lib.rs").touch()
        (machine / "home" / "config.toml").write_text(
            '[source.crates-io]\nreplace-with = "cache"\n'
            f'[source.cache]\nregistry = "sparse+{self.encore.url}/"\n')
        (machine / "Cargo.toml").write_text(
            '[package]\nname = "sample"\nversion = "0.1.0"\nedition = "2018"\n'
            '[dependencies]\nencore-a = "1"\n')
        self.run_client([self.cargo, *self.sparse, "fetch"], cwd=machine,
                        env=self.environment(machine))
        for name in NAMES:
            found = list((machine / "home").glob(f"registry/src/*/{name}-1.0.0/src/lib.rs"))
            self.assertEqual([f"// {name}\n"], [each.read_text() for each in found])


if __name__ == "__main__":
    unittest.main()
