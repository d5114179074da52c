"""A program with an eviction policy of its own: find_package(encore-sim) of an installed build, and its replay
has the hits of the same policy in encore-sim."""

import json
import os
import pathlib
import unittest

from harness import Case, clean_environment, need_program, need_simulator

BUILD = pathlib.Path(os.environ.get("ENCORE", ".")).resolve().parent
ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "tests" / "package" / "own_policy"


@unittest.skipUnless((BUILD / "cmake_install.cmake").exists(), "ENCORE is in no build directory")
class OwnPolicy(Case):
    def test_a_policy_of_an_installed_package(self):
        cmake = need_program("cmake")
        sim = need_simulator()
        installed, build = self.directory / "installed", self.directory / "build"
        self.run_client([cmake, "--install", BUILD, "--prefix", installed, "--component", "encore_sim_package"])
        # Nothing of the source tree is used, and no option of its compiler.
        made = installed / "lib/cmake/encore-sim/encore-sim-targets.cmake"
        self.assertNotIn(str(ROOT), made.read_text())
        self.assertNotIn("-Werror", made.read_text())
        self.run_client([cmake, "-S", EXAMPLE, "-B", build, f"-DCMAKE_PREFIX_PATH={installed}"])
        self.run_client([cmake, "--build", build])
        trace = self.directory / "trace.csv"
        self.run_client([sim, "generate", "zipf", "-o", trace, "--requests", "50000", "--size", "2KiB"])
        said = self.run_client([build / "own_policy", trace]).stdout.decode()
        report = self.run_client([sim, "replay", trace, "--eviction", "fifo", "--admission", "always",
                                  "--cache-size", "1MiB", "--json"], env=clean_environment()).stdout
        row = json.loads(report)["rows"][0]
        self.assertGreater(row["hits"], 10000)
        self.assertEqual(f"{row['requests']} requests, {row['hits']} hits\n", said)
        refused = self.run_client([build / "own_policy", "/nonexistent"], check=False)
        self.assertEqual(2, refused.returncode)
        self.assertIn("cannot open /nonexistent", refused.stdout.decode())


if __name__ == "__main__":
    unittest.main()
