"""The examples of docs/PYTHON.md print what they are said to print, and docs/notebook runs to its end."""

import contextlib
import doctest
import io
import json
import os
import pathlib
import shutil
import sys
import unittest

from documents import blocks_of
from harness import clean_environment, need_program
from laboratory import LaboratoryCase, lab, np

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "PYTHON.md"
NOTEBOOK = ROOT / "docs" / "notebook" / "policies.ipynb"
DATA = pathlib.Path(__file__).parent / "data"

try:
    import matplotlib
except ImportError:
    matplotlib = None
try:
    import ipykernel
    import nbclient
    import nbformat
except ImportError as error:
    nbclient, WHY_NOT = None, f"{error}; install python3-nbclient and python3-ipykernel"
else:
    WHY_NOT = None
NO_PLOTS = "matplotlib is not installed; install python3-matplotlib"


class Page(LaboratoryCase):
    def setUp(self):
        super().setUp()
        for trace in DATA.glob("*.xz"):
            (self.directory / trace.name).symlink_to(trace)
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.directory)

    def test_its_examples(self):
        text = "".join(block for _, block in blocks_of(PAGE, "python"))
        examples = doctest.DocTestParser().get_doctest(text, {}, PAGE.name, str(PAGE), 0)
        self.assertGreater(len(examples.examples), 10)
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            failed = doctest.DocTestRunner(verbose=False).run(examples, out=said.write).failed
        self.assertEqual(0, failed, said.getvalue())

    def test_help_names_all_that_is_public(self):
        for name in lab.__all__:
            with self.subTest(name):
                self.assertTrue(getattr(lab, name) == lab.NO_TTL or getattr(lab, name).__doc__)
        for name in lab.theory.__all__:
            self.assertIn(f"- {name}(", lab.theory.__doc__)


@unittest.skipUnless(matplotlib, NO_PLOTS)
class Plots(LaboratoryCase):
    def report(self, policies):
        row = {"admission": "always", "object_miss_ratio": None}
        return {"rows": [dict(row, eviction=f"policy-{i}", cache_bytes=2**size, object_hit_ratio=(i + size) / 100)
                         for i in range(policies) for size in range(10, 31, 4)]}

    def test_forty_series_are_small_multiples_with_labels_at_their_lines(self):
        from encore_sim import plots

        figure = plots.plot(self.report(40))
        shown = [axis for axis in figure.axes if axis.get_visible()]
        self.assertEqual(10, len(shown))
        names = []
        for axis in shown:
            # All are there, and few in colour.
            self.assertEqual(40, len(axis.lines))
            coloured = [line for line in axis.lines if line.get_color() != plots.GREY]
            self.assertEqual([text.get_text() for text in axis.texts], [line.get_label() for line in coloured])
            self.assertEqual([text.get_color() for text in axis.texts], [line.get_color() for line in coloured])
            self.assertEqual(len(coloured), len({line.get_color() for line in coloured}))
            self.assertIsNone(axis.get_legend())
            names += [text.get_text() for text in axis.texts]
            heights = sorted(axis.transData.transform(text.xy)[1] for text in axis.texts)
            self.assertGreater(np.diff(heights).min(), 8 * figure.dpi / 72)
        self.assertEqual({f"policy-{i}" for i in range(40)}, set(names))

    def test_files(self):
        from encore_sim import plots

        paths = [self.directory / name for name in ("a.png", "a.svg", "b.png", "b.svg")]
        for some in paths[:2], paths[2:]:
            plots.save(plots.plot(self.report(5)), *some)
        self.assertTrue(paths[0].read_bytes().startswith(b"\x89PNG"))
        self.assertIn(b"policy-4", paths[1].read_bytes())
        self.assertEqual(paths[0].read_bytes(), paths[2].read_bytes())
        self.assertEqual(paths[1].read_bytes(), paths[3].read_bytes())
        self.refused("a name that ends in .png or .svg", plots.save, None, "a.gif")
        self.refused("no row of 'rows' has 'cache_bytes' and 'object_miss_ratio', accepted: admission, cache_bytes",
                     plots.plot, self.report(1), y="object_miss_ratio")

    def test_panels_have_a_limit(self):
        from encore_sim import plots

        self.refused("9 series in a panel, accepted: 1 to 6", plots.plot, self.report(3), each=9)
        self.refused("no curve", plots.plot_curves, {})
        self.assertEqual(["1KiB", "1.5GiB", "0B"], [plots.bytes_text(n) for n in (1024, 1.5 * 2**30, 0)])


class Installed(LaboratoryCase):
    def test_it_is_imported_from_where_it_is_installed(self):
        build = pathlib.Path(os.environ["ENCORE_PYTHON"]).parent
        cmake = need_program("cmake")
        self.run_client([cmake, "--install", build, "--prefix", self.directory, "--component", "encore_sim_python"])
        package, = self.directory.glob("lib/python3*/dist-packages")
        for path in package.rglob("*"):
            self.assertFalse(path.is_symlink(), path)
        said = self.run_client([sys.executable, "-B", "-c", "import encore_sim, encore_sim.theory; "
                                "print(encore_sim.__file__, encore_sim.__version__)"],
                               env=clean_environment(PYTHONPATH=package), cwd=self.directory).stdout.decode()
        self.assertRegex(said, rf"^{package}/encore_sim/__init__.py \d+\.\d+\.\d+\n$")
        # Only the entry of the module is seen from outside.
        core, = package.glob("encore_sim/_core*.so")
        if not shutil.which("nm"):
            self.skipTest("nm is not installed")
        names = self.run_client(["nm", "--dynamic", "--defined-only", "--extern-only", core]).stdout.decode()
        self.assertIn(" PyInit__core\n", names)
        self.assertNotIn("_ZN6encore", names)


class Notebook(LaboratoryCase):
    def test_it_is_stored_without_outputs(self):
        cells = json.loads(NOTEBOOK.read_text())["cells"]
        self.assertGreater(len(cells), 6)
        for cell in cells:
            self.assertEqual([], cell.get("outputs", []))
            self.assertIsNone(cell.get("execution_count"))

    @unittest.skipUnless(matplotlib, NO_PLOTS)
    @unittest.skipIf(WHY_NOT, WHY_NOT)
    def test_it_runs(self):
        for trace in DATA.glob("*.xz"):
            (self.directory / trace.name).symlink_to(trace)
        program = ("import sys, nbformat, nbclient\n"
                   "book = nbformat.read(sys.argv[1], as_version=4)\n"
                   "book.metadata.kernelspec = {'name': 'python3', 'display_name': '', 'language': 'python'}\n"
                   "nbclient.NotebookClient(book, timeout=300, kernel_name='python3').execute()\n"
                   "nbformat.write(book, 'done.ipynb')\n")
        # The kernel is this interpreter, wherever Jupyter would look for others.
        kernel = self.directory / "kernels" / "python3"
        kernel.mkdir(parents=True)
        (kernel / "kernel.json").write_text(json.dumps(
            {"argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
             "display_name": "Python", "language": "python"}))
        self.run_client([sys.executable, "-B", "-c", program, NOTEBOOK], timeout=600, cwd=self.directory,
                        env=clean_environment(JUPYTER_PATH=self.directory, JUPYTER_DATA_DIR=self.directory,
                                              IPYTHONDIR=self.directory, MPLCONFIGDIR=self.directory,
                                              HOME=self.directory, PYTHONPATH=os.environ["ENCORE_PYTHON"]))
        done = json.loads((self.directory / "done.ipynb").read_text())
        outputs = [output for cell in done["cells"] for output in cell.get("outputs", [])]
        self.assertTrue(any("image/png" in output.get("data", {}) for output in outputs))
        self.assertEqual([], [output for output in outputs if output["output_type"] == "error"])


if __name__ == "__main__":
    unittest.main()
