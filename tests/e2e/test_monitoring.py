"""docs/monitoring and the list of series in METRICS.md, held to what a real proxy says; promtool;
and a real Prometheus that sees a server killed."""

import itertools
import json
import re
import subprocess
import threading
import unittest

from client import Client, NoResponse
from harness import Case, eventually, free_port, need_program
from monitoring import (ALERTS, DASHBOARD, MONITORING, ROOT, SCRAPED, Prometheus, alert_expressions,
                        dashboard_expressions, families, grouped_labels, samples, selectors, value)
from origin import Origin, fresh, response
from test_reverse import ask
from tls import Authority


class Everything(Case):
    """A proxy with one of all that has series: listeners of both modes, TLS, a rule, two servers, a
    disk, shadow policies, an authority; and requests of all classes."""

    def setUp(self):
        super().setUp()
        self.origin = Origin(self, default=lambda x: fresh(x.request.target.encode() * 50))
        pair = Authority(self).pair("www.example")
        authority = self.directory / "authority"
        encore = self.encore(start=False)
        made = self.run_client([encore.program, "ca", "create", "--out", authority, "--host",
                                "inside.example"], check=False)
        self.assertEqual(0, made.returncode, made.stdout.decode())
        self.secure_port, self.forward_port = free_port(), free_port()
        encore.sections.update({
            "listen": [{"address": f"127.0.0.1:{encore.port}", "mode": "reverse"},
                       {"address": f"127.0.0.1:{self.secure_port}", "mode": "reverse",
                        "tls": [pair]},
                       {"address": f"127.0.0.1:{self.forward_port}", "mode": "forward"}],
            "origin": [{"servers": [self.origin.url(""),
                                    f"http://127.0.0.1:{free_port()} backup"]}],
            "rule": [{"name": "kept", "path": "/kept/*", "fresh": "1h"}],
            "disk": [{"path": str(self.directory / "disk"), "size": "64MiB", "segment": "1MiB"}],
            "admission": {"policy": "probation"},
            "shadow": {"policies": ["always"]},
            "intercept": {"hosts": ["inside.example"], "ca_certificate": str(authority / "ca.crt"),
                          "ca_key": str(authority / "ca.key")},
            "fleet": {"purges": "redis://127.0.0.1:1"},
        })
        self.proxy = encore
        encore.start()
        for path in ("/kept/a", "/b"):
            for _ in range(3):
                self.assertEqual(200, ask(encore.port, path).status)
        with Client(encore.port) as client:
            client.send("GET nonsense HTTP/1.1\r\nHost: a\r\n\r\n")
            client.read_response()
        self.text = eventually(self.whole_page, "what was asked is counted")

    def whole_page(self):
        text = self.proxy.admin("/metrics")[1]
        return text if value(text, "encore_errors_total") else None

    def assert_is_there(self, where, expression):
        """That what an expression selects is on the page, with the labels and values that it wants."""
        known = set(SCRAPED)
        for name, matchers in selectors(expression):
            if name == "up":
                continue
            self.assertIn(name, self.there, f"{where}: {expression}")
            series = self.there[name]
            labels = {label for each, _ in series for label in each}
            known |= labels
            for label, (operator, wanted) in matchers.items():
                if label in SCRAPED:
                    continue
                self.assertIn(label, labels, f"{where}: {name}")
                if operator == "=":
                    self.assertIn(wanted, [each.get(label) for each, _ in series], where)
                if operator == "=~":
                    for one in wanted.split("|"):
                        self.assertIn(one, [each.get(label) for each, _ in series], where)
        self.assertLessEqual(grouped_labels(expression), known, f"{where}: {expression}")

    @property
    def there(self):
        return samples(self.text)

    def test_promtool_finds_nothing_in_the_page(self):
        promtool = need_program("promtool")
        checked = subprocess.run([promtool, "check", "metrics"], input=self.text.encode(),
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        self.assertEqual((0, ""), (checked.returncode, checked.stdout.decode()))

    def test_all_that_dashboard_and_alerts_name_is_on_the_page(self):
        alerts, panels = alert_expressions(), dashboard_expressions()
        self.assertEqual(len(alerts), ALERTS.read_text().count("- alert:"))
        self.assertGreater(len(panels), 50)
        for where, expression in alerts + panels:
            self.assertTrue(list(selectors(expression)), f"{where} selects something")
            self.assert_is_there(where, expression)
        for wrong in ("rate(encore_no_such_total[5m])", 'encore_ready{no_such="a"}',
                      'encore_requests_total{outcome="no-such"}', "sum by (no_such) (encore_ready)"):
            with self.assertRaises(AssertionError):
                self.assert_is_there("planted", wrong)

    def test_what_an_alert_says_names_labels_that_it_has(self):
        """The labels in annotations exist: those of the series, except those that the expression
        drops."""
        for name, block in re.findall(r"- alert: (\w+)\n(.*?)(?=\n\n|\Z)", ALERTS.read_text(), re.S):
            used = set(re.findall(r"\$labels\.(\w+)", block))
            expression = dict(alert_expressions())[name]
            by = re.findall(r"sum by \(([^)]*)\)", expression)
            if by:
                known = {label.strip() for label in by[0].split(",")}
            else:
                known = SCRAPED | {label for metric, _ in selectors(expression)
                                   for each, _ in self.there.get(metric, []) for label in each}
            self.assertLessEqual(used, known, name)

    def test_the_reference_lists_every_series(self):
        """The list of docs/METRICS.md is what /metrics says, word for word."""
        document = (ROOT / "docs" / "METRICS.md").read_text()
        histograms = re.search(r"counters; (.*?) are histograms; all others are gauges", document, re.S)
        histograms = re.findall(r"`encore_(\w+)`", histograms.group(1))

        def kind_by_name(name):
            return "counter" if name.endswith("_total") else "histogram" if name in histograms else "gauge"

        listed = [(name, kind_by_name(name), labels, meaning) for name, labels, meaning in re.findall(
            r"^- `encore_(\w+)`(?: \((.*?)\))?: (.*)$", document, re.M)]
        said = [(name.removeprefix("encore_"), kind, ", ".join(f"`{each}`" for each in labels), meaning)
                for name, (kind, meaning, labels) in families(self.text).items()]
        lines = [f"- `encore_{name}`{' (' if labels else ''}{labels}{')' if labels else ''}: {meaning}, a {kind}"
                 for name, kind, labels, meaning in said]
        missing = [line for each, line in zip(said, lines) if each not in listed]
        self.assertEqual([], missing, "lines that the document has not")
        self.assertEqual([], [each for each in listed if each not in said], "lines that are too many")


class Rules(Case):
    def test_alerts_are_good_and_their_tests_hold(self):
        promtool = need_program("promtool")
        self.run_client([promtool, "check", "rules", ALERTS])
        tests = MONITORING / "encore-alerts-test.yml"
        self.run_client([promtool, "test", "rules", tests], cwd=MONITORING)
        tested = set(re.findall(r"alertname: (\w+)", tests.read_text()))
        self.assertGreaterEqual(len(tested), 4)
        self.assertLessEqual(tested, {name for name, _ in alert_expressions()})
        # They can fail.
        broken = self.directory / "rules"
        broken.mkdir()
        text = ALERTS.read_text().replace('up{job="encore"} == 0', 'up{job="encore"} == 2')
        (broken / ALERTS.name).write_text(text)
        (broken / tests.name).write_text(tests.read_text())
        failed = self.run_client([promtool, "test", "rules", broken / tests.name], check=False)
        self.assertNotEqual(0, failed.returncode)

    def test_the_dashboard_can_be_imported(self):
        board = json.loads(DASHBOARD.read_text())
        names = {variable["name"]: variable for variable in board["templating"]["list"]}
        self.assertEqual("datasource", names["datasource"]["type"])
        self.assertIsNone(board["id"])
        panels = board["panels"]
        self.assertEqual(len(panels), len({panel["id"] for panel in panels}))
        places = set()
        for panel in panels:
            place = panel["gridPos"]
            cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
                     for y in range(place["y"], place["y"] + place["h"])}
            self.assertLessEqual(place["x"] + place["w"], 24, panel["title"])
            self.assertFalse(places & cells, f"{panel['title']} lies on another one")
            places |= cells
            if panel["type"] == "row":
                continue
            self.assertEqual("${datasource}", panel["datasource"]["uid"], panel["title"])
            for target in panel["targets"]:
                self.assertEqual("${datasource}", target["datasource"]["uid"], panel["title"])
                used = set(re.findall(r"\$(\w+)", target["expr"])) - {"__rate_interval"}
                self.assertLessEqual(used, set(names), panel["title"])


class Watched(Case):
    """A real Prometheus, a real proxy, and clients that ask all the time."""

    def setUp(self):
        super().setUp()
        self.prometheus = need_program("prometheus")
        self.servers = [self.server() for _ in range(2)]
        self.proxy = self.encore(
            start=False, upstream={"eject_after": 1, "set_aside": "1h", "set_aside_max": "1h"})
        self.proxy.sections["listen"] = [{"address": f"127.0.0.1:{self.proxy.port}",
                                          "mode": "reverse"}]
        self.proxy.sections["origin"] = [{"servers": [each.url("") for each in self.servers]}]
        self.proxy.start()

    def server(self, port=0):
        return Origin(self, default=response(b"body", Cache_Control="no-store"), port=port)

    def load(self):
        over = threading.Event()

        def ask_on(number):
            for turn in itertools.count():
                if over.is_set():
                    return
                try:
                    ask(self.proxy.port, f"/{number}/{turn}")
                except (OSError, NoResponse):
                    pass
        threads = [threading.Thread(target=ask_on, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()

        def stop():
            over.set()
            for thread in threads:
                thread.join()
        self.addCleanup(stop)

    def test_an_alert_fires_when_all_servers_are_killed_and_none_before(self):
        watch = Prometheus(self, self.prometheus, [self.proxy.admin_port])
        self.load()
        one, two = (each.url("") for each in self.servers)
        rate = "rate(encore_origin_server_sent_requests_total[5s]) > 0"

        def asked():
            return {labels["server"] for labels, _ in watch.query(rate)}
        eventually(lambda: asked() == {one, two}, "both servers are seen to be asked")
        rates = watch.query("sum by (class) (encore_listener_requests_total)")
        self.assertEqual({"hit", "miss", "pass", "error"}, {each["class"] for each, _ in rates})
        self.assertEqual(set(), set(watch.firing()) - {"EncoreReloadFailed"})

        self.servers[0].stop()
        eventually(lambda: "EncoreServerOut" in watch.firing(), "the first server is seen to be out")
        self.assertEqual([one], [labels["server"] for labels in watch.firing()["EncoreServerOut"]])
        self.assertNotIn("EncoreAllServersOut", watch.firing())

        self.servers[1].stop()
        fired = eventually(lambda: watch.firing().get("EncoreAllServersOut"), "all are out")
        self.assertEqual(["*/"], [labels["origin"] for labels in fired])
        eventually(lambda: "EncoreServerErrors" in watch.firing(), "errors are seen")
        kinds = watch.query('sum by (kind) (encore_origin_server_failures_total) > 0')
        self.assertIn("connect", {labels["kind"] for labels, _ in kinds})
        details = watch.query("encore_errors_total")
        self.assertIn(("origin-unreachable", "connect-refused"),
                      {(labels["outcome"], labels["detail"]) for labels, _ in details})

    def test_a_proxy_that_is_gone_is_told(self):
        watch = Prometheus(self, self.prometheus, [self.proxy.admin_port])
        eventually(lambda: watch.query("encore_ready") and watch.query("encore_ready")[0][1] == 1,
                   "it is scraped")
        self.assertNotIn("EncoreDown", watch.firing())
        self.proxy.process.kill()
        self.proxy.expect_exit = -9
        fired = eventually(lambda: watch.firing().get("EncoreDown"), "it is seen to be gone")
        self.assertEqual([f"127.0.0.1:{self.proxy.admin_port}"],
                         [labels["instance"] for labels in fired])


if __name__ == "__main__":
    unittest.main()
