"""The recipes with other programs around them: nginx before encore, and Prometheus that looks on.
Their shipped configurations, too, with other ports. (Fleets: test_fleet_recipes.)"""

import json
import os
import unittest
import urllib.parse
import urllib.request

from client import Client, field
from harness import Case, clean_environment, eventually, free_port, need_program
from nginx import Nginx
from origin import Origin, fresh
from recipes import Recipe, shipped
from test_reverse import ask

HOST = "www.example"


class BehindNginx(Case):
    def setUp(self):
        super().setUp()
        program = need_program("nginx")
        self.origin = Origin(self, default=lambda x: fresh(x.request.target.encode() * 100))
        self.encore = Recipe(self, "behind-nginx", [self.origin.url("")])
        self.port = free_port()
        folder = self.directory / "front"
        folder.mkdir()
        user = "user root;" if os.getuid() == 0 else ""
        included = shipped("behind-nginx.conf", ("127.0.0.1:8080", f"127.0.0.1:{self.encore.port}"),
                           ("127.0.0.1:8000", self.origin.authority),
                           ("listen 127.0.0.1:80;", f"listen 127.0.0.1:{self.port};"))
        temporary = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in (
            "client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        (folder / "nginx.conf").write_text(
            f"daemon off; pid {folder}/pid; error_log {folder}/error.log; {user}\n"
            f"events {{}} http {{ access_log off; {temporary}\n{included}}}\n")
        self.start([program, "-p", folder, "-c", folder / "nginx.conf"], self.port)

    def test_hits_come_through_and_the_client_is_known(self):
        for number in range(4):
            with Client(self.port, source="127.0.0.9") as client:
                client.send(f"GET /page HTTP/1.1\r\nHost: {HOST}\r\n"
                            "X-Forwarded-For: 10.9.9.9\r\n\r\n")
                answer = client.read_response()
            self.assertEqual(b"/page" * 100, answer.body)
        self.assertIn("; hit", field(answer, "Cache-Status"))
        self.assertEqual(2, self.origin.count("/page"))
        fields = dict(self.origin.last("/page").fields)
        self.assertEqual(HOST, fields["host"])
        self.assertIn("127.0.0.9", fields["x-forwarded-for"])
        self.assertEqual({"127.0.0.9"},
                         {record["client"] for record in self.encore.access_records(4)})

    def test_while_encore_is_restarted_nginx_asks_the_application(self):
        for number in range(20):
            if number == 10:
                self.encore.stop()
            answer = ask(self.port, f"/{number}", HOST)
            self.assertEqual((200, f"/{number}".encode() * 100), (answer.status, answer.body))
        self.encore.start()
        eventually(lambda: field(ask(self.port, "/back", HOST), "Cache-Status"),
                   "nginx asks encore again")


class WatchedByPrometheus(Case):
    def test_prometheus_has_the_counters_and_the_rules_are_good(self):
        prometheus, promtool = need_program("prometheus", "promtool")
        origin = Origin(self, default=fresh(b"body"))
        encore = Recipe(self, "prometheus")
        with Client(encore.port) as client:
            for _ in range(5):
                client.ask(origin.url("/a"))
        folder = self.directory / "prometheus"
        folder.mkdir()
        config = folder / "prometheus.yml"
        config.write_text(shipped("prometheus.yml", ("cache.example:3129",
                                                     f"127.0.0.1:{encore.admin_port}"),
                                  ("scrape_interval: 15s", "scrape_interval: 200ms")))
        (folder / "prometheus-rules.yml").write_text(shipped("prometheus-rules.yml"))
        self.run_client([promtool, "check", "config", config])
        port = free_port()
        self.start([prometheus, f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
                    f"--web.listen-address=127.0.0.1:{port}"], port, env=clean_environment())

        def value(query):
            url = (f"http://127.0.0.1:{port}/api/v1/query?"
                   + urllib.parse.urlencode({"query": query}))
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            try:
                found = json.load(opener.open(url, timeout=30))["data"]["result"]
            except OSError:  # not ready
                return None
            return float(found[0]["value"][1]) if found else None
        self.assertEqual(1, eventually(lambda: value('up{job="encore"}'), "it is scraped"))
        self.assertEqual(3, eventually(
            lambda: value('sum(encore_requests_total{outcome="hit"})'), "hits are known"))
        self.assertEqual(2, value("sum(encore_origin_requests_total)"))

    def test_a_name_that_is_listed_is_answered_and_another_is_not(self):
        encore = Recipe(self, "prometheus")
        for host, status in (("cache.example", 200), ("other.example", 403)):
            self.assertEqual(status, encore.admin("/metrics", headers={"Host": host})[0])


if __name__ == "__main__":
    unittest.main()
