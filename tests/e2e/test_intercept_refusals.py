"""How often a client refuses the certificate before a host goes through unread, and who forgets it."""

import json
import ssl
import subprocess
import unittest

from harness import eventually
from intercept import HOST, InterceptCase


class Refusals(InterceptCase):
    def test_one_look_or_two_switch_nothing_off(self):
        origin = self.start_origin()
        encore = self.proxy(origin, intercept={"reject_after": 3, "reject_first": "1m"})
        noted = "encore_intercepts_rejected_total"
        for count in (1, 2):
            with self.assertRaises(ssl.SSLError):
                self.inside(encore, origin, self.unprepared())
            eventually(lambda: encore.metrics()[noted] == count, "it is counted")
            self.assertEqual(200, self.inside(encore, origin).get("/").status)
        self.assertNotIn("does not accept our certificate", encore.output())
        shown = encore.stats()["intercept"]
        self.assertEqual(0, shown["rejected_pairs"])
        self.assertEqual([(2, 0)], [(pair["refusals"], pair["seconds_left"])
                                    for pair in shown["rejected_newest"]])
        with self.assertRaises(ssl.SSLError):
            self.inside(encore, origin, self.unprepared())
        eventually(lambda: encore.metrics()[noted] == 3, "it is counted")
        self.assertTrue(self.is_spliced(encore, origin))
        self.assertIn("passes unread for 1m", encore.output())

    def test_it_is_listed_and_cleared_by_a_command_and_the_admin_listener(self):
        origin = self.start_origin()
        encore = self.proxy(origin)

        def refuse():
            with self.assertRaises(ssl.SSLError):
                self.inside(encore, origin, self.unprepared())
            eventually(lambda: encore.stats()["intercept"]["rejected_pairs"] == 1, "it is known")
            self.assertTrue(self.is_spliced(encore, origin))

        def command(*words):
            ended = subprocess.run(
                [encore.program, "--config", encore.config_path, "intercept", *words],
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
            self.assertEqual(0, ended.returncode, ended.stdout.decode())
            return ended.stdout.decode()

        refuse()
        self.assertIn(f"127.0.0.1 {HOST} refusals 1 unread for ", command("list"))
        self.assertEqual('{"cleared": 0}\n', command("clear", "--client", "127.0.0.2"))
        self.assertEqual('{"cleared": 1}\n',
                         command("clear", "--client", "127.0.0.1", "--host", HOST.upper()))
        self.assertFalse(self.is_spliced(encore, origin))
        self.assertTrue(command("list").startswith("0 pairs "))
        refuse()
        self.assertEqual((200, '{"cleared": 1}\n'),
                         encore.admin("/intercept/clear", method="POST"))
        self.assertFalse(self.is_spliced(encore, origin))
        self.assertEqual(405, encore.admin("/intercept/clear")[0])
        self.assertEqual(400, encore.admin("/intercept/clear?hosts=a", method="POST")[0])
        self.assertEqual(400, encore.admin("/intercept/clear?client=a", method="POST")[0])
        self.assertEqual({"unread": 0, "newest": []}, json.loads(encore.admin("/api/intercept")[1]))


if __name__ == "__main__":
    unittest.main()
