"""encore-sim drive against a proxy that gives wrong answers, and when it is interrupted."""

import json
import signal
import subprocess
import unittest

from harness import Case, clean_environment, eventually, need_simulator
from origin import Origin, fresh, response


class Drive(Case):
    def setUp(self):
        super().setUp()
        program = need_simulator()
        self.trace = self.directory / "trace.csv"
        self.trace.write_text("time,key,size\n" + "".join(f"{n},{n % 10},5\n" for n in range(40)))
        self.command = [program, "drive", self.trace, "--json"]

    def drive(self, proxy, *more):
        process = subprocess.Popen([*self.command, "--proxy", proxy.url("").rstrip("/"), *more],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True, env=clean_environment())
        self.addCleanup(process.kill)
        return process

    def report(self, process, expect):
        out, err = process.communicate(timeout=60)
        self.assertEqual(expect, process.returncode, out + err)
        return json.loads(out)

    def test_wrong_bytes_and_wrong_lengths_are_found(self):
        for body in (b"wrong", b"toolong", b""):
            report = self.report(self.drive(Origin(self, default=fresh(body))), expect=1)
            row = report["rows"][0]
            self.assertEqual((40, 0, 40), (row["requests"], row["errors"], row["mismatches"]))
            self.assertIn(f"{len(body)} bytes came of 5", report["notes"][0])

    def test_refusals_are_errors_and_say_why(self):
        refusing = Origin(self, default=response(b"no", "403 Forbidden",
                                                 Cache_Status="encore; fwd=bypass; detail=denied"))
        report = self.report(self.drive(refusing), expect=1)
        self.assertEqual(40, report["rows"][0]["errors"])
        self.assertIn("status 403, Cache-Status: encore; fwd=bypass; detail=denied",
                      report["notes"][0])

    def test_an_interrupt_prints_what_is_known_so_far(self):
        proxy = Origin(self, default=fresh(b"wrong"))
        process = self.drive(proxy, "--rate", "0.02")
        eventually(lambda: proxy.count() > 0, "the first request has come")
        process.send_signal(signal.SIGINT)
        report = self.report(process, expect=130)
        self.assertTrue(report["interrupted"])
        self.assertLessEqual(report["rows"][0]["requests"], 1)


if __name__ == "__main__":
    unittest.main()
