"""The simulator reads the proxy's logs: the same requests, objects and bytes."""

import json
import subprocess
import unittest

from client import Client
from harness import Case, clean_environment, eventually, free_port, need_simulator
from origin import Origin, fresh

OBJECTS = 7
ROUNDS = 3
BODY = 1000


class LogsAsTraces(Case):
    def stats(self, log):
        program = need_simulator()
        ended = subprocess.run([program, "stats", log, "--json"], timeout=120, capture_output=True,
                               text=True, env=clean_environment())
        self.assertEqual(0, ended.returncode, ended.stderr)
        return json.loads(ended.stdout)["rows"][0]

    def ask(self, port, host, prefix=""):
        def request(client, number, method):
            client.send(f"{method} {prefix}/object/{number}?q=a HTTP/1.1\r\n"
                        f"Host: {host}\r\n\r\n".encode())
            return client.read_response(method)
        with Client(port) as client:
            for _ in range(ROUNDS):
                for number in range(OBJECTS):
                    self.assertEqual(BODY, len(request(client, number, "GET").body))
            request(client, 0, "HEAD")
        with Client(port) as broken:
            broken.send(b"no request\r\n\r\n")
            self.assertEqual(400, broken.read_response().status)

    def check(self, encore, log_format):
        lines = ROUNDS * OBJECTS + 2
        eventually(lambda: encore.access_path.exists()
                   and encore.access_path.read_text().count("\n") == lines, "all are logged")
        encore.stop()
        row = self.stats(encore.access_path)
        self.assertEqual(log_format, row["format"])
        self.assertEqual((lines, 2, 0), (row["lines"], row["skipped"], row["bad"]))
        self.assertEqual((ROUNDS * OBJECTS, OBJECTS), (row["requests"], row["objects"]))
        self.assertEqual(ROUNDS, row["most_requested"])
        if log_format == "squid":  # counts heads too
            self.assertGreater(row["bytes_requested"], ROUNDS * OBJECTS * BODY)
        else:
            self.assertEqual(ROUNDS * OBJECTS * BODY, row["bytes_requested"])
            self.assertEqual(0, row["size_changes"])

    def test_of_a_forward_proxy_in_every_format(self):
        origin = Origin(self, default=fresh(b"x" * BODY))
        for log_format in ("json", "squid", "combined"):
            with self.subTest(log_format):
                encore = self.encore(log={"format": log_format})
                self.ask(encore.port, f"127.0.0.1:{origin.port}", origin.url(""))
                self.check(encore, log_format)

    def test_of_a_reverse_proxy_as_json(self):
        origin = Origin(self, default=fresh(b"x" * BODY))
        port = free_port()
        encore = self.encore(
            listen=[{"address": f"127.0.0.1:{port}", "mode": "reverse"}],
            origin=[{"servers": [origin.url("")]}])
        self.ask(port, "site.example")
        self.check(encore, "json")


if __name__ == "__main__":
    unittest.main()
