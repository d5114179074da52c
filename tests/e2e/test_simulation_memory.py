"""encore-sim refuses, with the amount, what the memory that it may have cannot hold."""

import resource
import subprocess
import unittest

from harness import Case, clean_environment, need_simulator, sanitized

GIB = 1 << 30


class Memory(Case):
    def setUp(self):
        super().setUp()
        self.program = need_simulator()
        if sanitized():
            self.skipTest("a sanitizer takes more memory than the program")

    def run_with(self, limit, arguments, **more):
        def set_limit():
            resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

        return subprocess.run([self.program, *arguments.split()], capture_output=True, cwd=self.directory,
                              preexec_fn=set_limit, env=clean_environment(), timeout=120, check=False,
                              **more)

    def test_sizes_are_refused_before_anything_is_allocated(self):
        for fits, arguments in (
                (True, "blocks --hash xxh3 --hashes 7 --events 1000 --bits 1000000000"),
                (False, "blocks --hash xxh3 --hashes 7 --events 1000 --bits 10000000000"),
                (False, "blocks --hash xxh3 --hashes 1..8 --events 1000 --bits 2000000000"),
                (False, "blocks --hashes 7 --events 1000 --reused-blocks 2000 --block-size 1048576")):
            with self.subTest(arguments):
                ran = self.run_with(GIB, arguments)
                self.assertEqual(0 if fits else 2, ran.returncode, ran.stderr)
                self.assertEqual(not fits, b"of memory; available: 1GiB" in ran.stderr)

    def test_a_trace_of_too_many_objects_ends_with_a_sentence(self):
        trace = "".join(f"{n},{n},1\n" for n in range(1_500_000)).encode()
        ran = self.run_with(64 << 20, "stats --format csv -", input=trace)
        self.assertEqual(2, ran.returncode, ran.stderr)
        self.assertEqual(b"encore-sim: out of memory\n", ran.stderr)


if __name__ == "__main__":
    unittest.main()
