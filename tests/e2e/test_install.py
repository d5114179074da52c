"""`cmake --install`: programs that start, and documents whose links hold in the place that they get."""

import os
import pathlib
import re
import subprocess
import unittest

from harness import Case, clean_environment, need_program

BUILD = pathlib.Path(os.environ.get("ENCORE", ".")).resolve().parent


@unittest.skipUnless((BUILD / "cmake_install.cmake").exists(), "ENCORE is in no build directory")
class Install(Case):
    def test_programs_start_and_links_of_the_documents_hold(self):
        self.run_client([need_program("cmake"), "--install", BUILD, "--prefix", self.directory])
        for program in "encore", "encore-sim", "encore-filter":
            said = subprocess.run([self.directory / "bin" / program, "--version"], timeout=120,
                                  env=clean_environment(), check=True, capture_output=True)
            self.assertRegex(said.stdout.decode(), r"\d+\.\d+\.\d+")
        documents = self.directory / "share" / "doc" / "encore"
        dead, links = [], 0
        for page in sorted(documents.rglob("*.md")):
            for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
                if "://" not in link:
                    links += 1
                    if not (page.parent / link).exists():
                        dead.append(f"{page.relative_to(documents)}: {link}")
        self.assertEqual([], dead)
        self.assertGreater(links, 100)
        for recipe in (documents / "recipes").glob("*.toml"):
            self.run_client([self.directory / "bin" / "encore", "--config", recipe, "--dump-config"])


if __name__ == "__main__":
    unittest.main()
