"""The admin listener, counters that add up, and the access log's formats."""

import re
import unittest

from client import Client, NoResponse, get
from harness import Case, eventually
from origin import Origin, fresh, response


class Admin(Case):
    def mixed_load(self, encore, origin):
        """Requests of every kind; returns how many."""
        for _ in range(3):
            get(encore.port, origin.url("/page"))
            get(encore.port, origin.url("/private"))
        get(encore.port, origin.url("/page"), method="POST", body=b"x")
        get(encore.port, origin.url("/missing"))
        with Client(encore.port) as client:
            client.send("GET nonsense HTTP/1.1\r\nHost: a\r\n\r\n")
            client.read_response()
        with Client(encore.port) as client:
            client.send("CONNECT a.example:25 HTTP/1.1\r\nHost: a.example:25\r\n\r\n")
            client.read_response("CONNECT")
        try:
            get(encore.port, origin.url("/dying"))
        except NoResponse:
            pass
        return 11

    def site(self):
        return Origin(self, {
            "/page": fresh(b"p" * 1000), "/private": response(b"x", Cache_Control="private"),
            "/dying": lambda x: x.reset(),
        })

    def test_health_and_readiness(self):
        encore = self.encore()
        for page in ("/healthz", "/readyz"):
            self.assertEqual(200, encore.admin(page)[0])
            self.assertEqual(200, encore.admin(page, headers={"Host": "node7.example"})[0])
            self.assertEqual(405, encore.admin(page, "POST")[0])
        self.assertEqual(404, encore.admin("/no-such-page")[0])

    def test_outcomes_add_up_to_the_requests(self):
        origin, encore = self.site(), self.encore()
        sent = self.mixed_load(encore, origin)
        # A request is counted once its answer has left.
        eventually(lambda: sum(encore.outcomes().values()) >= sent, "all are counted")
        outcomes = encore.outcomes()
        self.assertEqual(sent, sum(outcomes.values()), outcomes)
        self.assertEqual(1, outcomes.get("hit"))
        for outcome in ("first-request", "second-request", "uncacheable", "bad-request", "denied"):
            self.assertGreaterEqual(outcomes.get(outcome, 0), 1, outcomes)
        self.assertEqual(origin.count(), encore.metrics()["encore_origin_requests_total"])
        records = encore.access_records(sent)
        self.assertEqual(sent, len(records))
        logged = {}
        for record in records:
            logged[record["outcome"]] = logged.get(record["outcome"], 0) + 1
        self.assertEqual(outcomes, logged)

    def test_stats_and_metrics_agree(self):
        origin, encore = self.site(), self.encore()
        sent = self.mixed_load(encore, origin)
        # A request is counted when its last byte has been handed over, which its client may outrun.
        eventually(lambda: sum(encore.stats()["requests"].values()) >= sent, "all are counted")
        stats, outcomes = encore.stats(), encore.outcomes()
        self.assertEqual(outcomes, {k: v for k, v in stats["requests"].items() if v})
        self.assertEqual(sent, sum(stats["requests"].values()))

    def test_metrics_are_what_prometheus_reads(self):
        origin, encore = self.site(), self.encore()
        self.mixed_load(encore, origin)
        status, text = encore.admin("/metrics")
        self.assertEqual(200, status)
        sample = re.compile(r'^[a-zA-Z_:][\w:]*(\{\w+="[^"]*"(,\w+="[^"]*")*\})? '
                            r'(-?[0-9.]+(e[-+]?\d+)?|\+Inf|-Inf|NaN)$')
        typed = set()
        for line in text.splitlines():
            if line.startswith("# TYPE "):
                name = line.split()[2]
                self.assertNotIn(name, typed, "a type is given twice")
                typed.add(name)
            elif line and not line.startswith("#"):
                self.assertRegex(line, sample)
                name = re.match(r"[\w:]+", line).group()
                base = re.sub(r"_(bucket|sum|count)$", "", name)
                self.assertTrue(name in typed or base in typed, line)

    def test_the_filter_shows_its_truth(self):
        origin = Origin(self, default=fresh(b"x"))
        encore = self.encore()
        with Client(encore.port) as client:
            for number in range(100):
                client.ask(origin.url(f"/{number}"))
        text = encore.admin("/metrics")[1]
        for word in ("fill", "rotations", "fpr"):
            self.assertIn(word, text)

    def test_only_known_hosts_are_answered(self):
        encore = self.encore()
        for host in ("evil.example", f"evil.example:{encore.admin_port}", "127.0.0.1.evil.example"):
            self.assertIn(encore.admin("/api/stats", headers={"Host": host})[0], (403, 421), host)
        for host in (f"localhost:{encore.admin_port}", f"127.0.0.1:{encore.admin_port}"):
            self.assertEqual(200, encore.admin("/api/stats", headers={"Host": host})[0], host)

    def test_a_post_from_another_site_is_refused(self):
        encore = self.encore()
        for fields in ({"Origin": "http://evil.example"}, {"Origin": "null"},
                       {"Sec-Fetch-Site": "cross-site"},
                       {"Origin": f"http://127.0.0.1:{encore.port}"}):
            self.assertEqual(403, encore.admin("/purge", "POST", fields)[0], fields)


class AccessLog(Case):
    def one_line(self, form):
        origin = Origin(self, {"/a%20b": fresh(b"12345", Content_Type="text/plain")})
        encore = self.encore(log={"format": form})
        get(encore.port, origin.url("/a%20b"), fields=[
            ("User-Agent", 'sly "agent"'), ("Referer", "http://ref.example/"),
            ("Authorization", "Basic c2VjcmV0"), ("Cookie", "secret=1")])
        encore.stop()
        lines = encore.access_path.read_text().splitlines()
        self.assertEqual(1, len(lines))
        self.assertNotIn("c2VjcmV0", lines[0])
        return lines[0], origin

    def test_squid(self):
        line, origin = self.one_line("squid")
        self.assertRegex(line, r"^\d+\.\d{3} +\d+ 127\.0\.0\.1 [A-Z_]+/200 \d+ GET "
                         + re.escape(origin.url("/a%20b")) + r" - [A-Z_]+/\S+ text/plain$")

    def test_combined(self):
        line, origin = self.one_line("combined")
        time = r"\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}"
        self.assertRegex(line, rf'^127\.0\.0\.1 - - \[{time}\] "GET '
                         + re.escape(origin.url("/a%20b")) + r' HTTP/1\.1" 200 \d+ '
                         r'"http://ref\.example/" "sly .*agent.*"')

    def test_json(self):
        origin = Origin(self, {"/page": fresh(b"12345")})
        encore = self.encore()
        for _ in range(3):
            get(encore.port, origin.url("/page"))
        # Each worker hands over its own records: the file is in order by worker only.
        records = sorted(encore.access_records(3), key=lambda record: record["time"])
        self.assertEqual(["first-request", "second-request", "hit"],
                         [r["outcome"] for r in records])
        for record in records:
            self.assertEqual(("GET", 200), (record["method"], record["status"]))
            self.assertIn(origin.url("/page"), record.values())


if __name__ == "__main__":
    unittest.main()
