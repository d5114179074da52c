"""Probation: what comes waits in memory, and objects requested again after they left the memory is
written to disk."""

import signal
import unittest

from harness import eventually
from test_disk_tier import KIB, DiskCase


class Probation(DiskCase):
    def start(self, size="64MiB", **admission):
        self.start_proxy(size, admission={"policy": "probation", "fill": False, **admission})

    def flush(self, count=160, size=40 * KIB):
        """More than the memory takes, each for the first time."""
        self.flushes = getattr(self, "flushes", 0) + 1
        for i in range(count):
            name = f"/flush-{self.flushes}-{i}-{size}"
            self.assertIn("detail=probation", self.detail(name))

    def counted(self, name):
        return self.proxy.metrics()[f"encore_{name}"]

    def test_a_burst_waits_and_is_not_written(self):
        self.start()
        first = self.detail("/a-20000")
        self.assertIn("stored", first)
        self.assertIn("detail=probation", first)
        for _ in range(5):
            again = self.detail("/a-20000")
            self.assertIn("hit", again)
            self.assertIn("detail=probation", again)
        self.assertEqual(1, self.asked["/a-20000"])
        self.assertEqual(0, self.counted("disk_admitted_total"))
        self.assertEqual(1, self.counted("probation_objects"))
        self.assertEqual(5, self.counted("probation_hits_total"))

    def test_what_is_known_when_it_comes_again_is_written(self):
        self.start()
        self.detail("/a-20000")
        self.flush()
        self.assertIn("detail=second-request", self.detail("/a-20000"))
        self.assertEqual(2, self.asked["/a-20000"])
        eventually(self.is_written, "it is on disk")
        self.assertEqual(1, self.counted("disk_admitted_total"))
        hit = self.detail("/a-20000")
        self.assertIn("hit", hit)
        self.assertNotIn("probation", hit)
        self.restart(signal.SIGKILL)
        eventually(lambda: self.is_disk_hit("/a-20000"), "it is found on disk")

    def test_a_clean_stop_keeps_the_keys_of_what_waits_and_a_crash_does_not(self):
        state = {"directory": str(self.directory / "state")}
        self.start_proxy(state=state, admission={"policy": "probation", "fill": False})
        self.detail("/a-20000")
        self.restart()
        self.assertIn("detail=second-request", self.detail("/a-20000"))
        self.detail("/b-20000")
        self.restart(signal.SIGKILL)
        self.assertIn("detail=probation", self.detail("/b-20000"))

    def test_a_new_disk_is_filled(self):
        self.start(fill=True)
        filled = self.detail("/a-20000")
        self.assertIn("stored", filled)
        self.assertIn("detail=fill", filled)
        self.assertEqual(1, self.counted("disk_filled_total"))
        eventually(self.is_written, "it is on disk")
        self.restart(signal.SIGKILL)
        eventually(lambda: self.is_disk_hit("/a-20000"), "it is found on disk")

    def test_what_is_purged_while_it_waits_leaves_no_trace(self):
        self.start()
        self.detail("/a-20000")
        self.purge("url=" + self.origin.url("/a-20000"))
        self.assertEqual(0, self.counted("probation_objects"))
        self.flush()
        self.assertIn("detail=probation", self.detail("/a-20000"))

    def test_the_key_of_what_is_too_large_for_the_memory_waits(self):
        self.start()
        name = f"/large-{900 * KIB}"
        # Something waits in each shard.
        for i in range(200):
            self.detail(f"/other-{i}-2000")
        for _ in range(2):
            said = self.detail(name)
            self.assertIn("detail=too-large-to-wait", said)
            self.assertNotIn("; stored;", said)
        self.assertEqual(1, self.counted("probation_keys"))
        self.flush()
        self.assertIn("detail=second-request", self.detail(name))
        eventually(self.is_written, "it is on disk")
        eventually(lambda: self.is_disk_hit(name), "it is sent from there")

    def test_the_samples_are_shown(self):
        self.start(fill=True)
        for i in range(300):
            self.detail(f"/{i}-2000")
        eventually(lambda: self.counted("probation_sample_rate") != 0, "samples are taken")
        # About 1,024 objects' worth of those that the disk has room for.
        self.assertLess(1024 / 64000, self.counted("probation_sample_rate"))
        self.assertGreater(1024 / 10000, self.counted("probation_sample_rate"))
        followed = [name for name, value in self.proxy.metrics().items()
                    if name.startswith("encore_probation_sample_followed") and value == 1]
        self.assertEqual(1, len(followed))
        status, page = self.proxy.admin("/shadow")
        self.assertEqual(200, status)
        self.assertIn("What another admission.write_cost would give", page)

    def test_its_config_is_checked(self):
        for admission, said in ((
                {"write_cost": -1}, "admission.write_cost"),
                ({"write_cost": 101}, "admission.write_cost"),
                ({"fill": "yes"}, "admission.fill"),
                ({"hash": "siphash"}, "admission.hash"),
                ({"refresh": False}, "admission.refresh")):
            with self.subTest(admission=admission):
                self.refused(said, admission=admission,
                             disk=[{"path": str(self.directory / "disk"), "size": "64MiB"}])
        self.refused("admission.policy", admission={})

    def refused(self, said, admission, **sections):
        encore = self.encore(start=False, admission={"policy": "probation", **admission},
                             **sections)
        encore.write_config()
        checked = self.run_client([encore.program, "--config", encore.config_path,
                                   "--check-config"], check=False)
        self.assertNotEqual(0, checked.returncode)
        self.assertIn(said, checked.stdout.decode())


del DiskCase

if __name__ == "__main__":
    unittest.main()
