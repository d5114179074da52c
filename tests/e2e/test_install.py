"""`cmake --install`: programs that start, their manual pages and completions, recipes, dashboard and alerts, and
documents whose links hold in the place that they get."""

import os
import pathlib
import re
import subprocess
import unittest

from harness import Case, clean_environment, need_program

BUILD = pathlib.Path(os.environ.get("ENCORE", ".")).resolve().parent
ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAMS = ("encore", "encore-sim", "encore-filter")


@unittest.skipUnless((BUILD / "cmake_install.cmake").exists(), "ENCORE is in no build directory")
class Install(Case):
    def setUp(self):
        super().setUp()
        self.run_client([need_program("cmake"), "--install", BUILD, "--prefix", self.directory])

    def test_all_files_are_there(self):
        share = self.directory / "share"
        expected = [share / "encore/monitoring/encore-alerts.yml", share / "encore/monitoring/encore-dashboard.json",
                    share / "man/man5/encore.toml.5"]
        for program in PROGRAMS:
            expected += [share / f"man/man1/{program}.1", share / f"bash-completion/completions/{program}",
                         share / f"zsh/vendor-completions/_{program}", share / f"fish/vendor_completions.d/{program}.fish"]
        expected += [share / "encore" / path.relative_to(ROOT) for path in (ROOT / "recipes").iterdir()]
        self.assertEqual([], [str(path) for path in expected if not path.is_file() or not path.stat().st_size])

    def test_programs_start_and_links_of_the_documents_hold(self):
        for program in PROGRAMS:
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
