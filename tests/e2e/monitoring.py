"""Shared parts of the tests of /metrics: its samples and families, the expressions of dashboard and
alerts, and a Prometheus that scrapes."""

import json
import pathlib
import re
import urllib.parse
import urllib.request

from harness import clean_environment, eventually, free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
MONITORING = ROOT / "docs" / "monitoring"
ALERTS = MONITORING / "encore-alerts.yml"
DASHBOARD = MONITORING / "encore-dashboard.json"

LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
# Labels that Prometheus itself adds to each sample.
SCRAPED = {"job", "instance"}


def samples(text):
    """{name: [labels of a sample as a dictionary]}, and the same with values, of a page."""
    found = {}
    for line in text.splitlines():
        if not line or line.startswith("#"):
            continue
        name = re.match(r"[\w:]+", line).group()
        labels = {key: value for key, value in LABEL.findall(line[:line.rindex(" ")])}
        found.setdefault(name, []).append((labels, float(line.rpartition(" ")[2])))
    return found


def value(text, metric, **labels):
    """The sum of the samples that have these labels; nothing where there is none."""
    values = [number for each, number in samples(text).get(metric, [])
              if all(each.get(key) == wanted for key, wanted in labels.items())]
    return sum(values) if values else None


def families(text):
    """{name: (type, help, labels)} as the page introduces them; `le` is part of the type."""
    found, seen = {}, samples(text)
    for name, kind in re.findall(r"^# TYPE (\w+) (\w+)$", text, re.M):
        meaning = re.search(rf"^# HELP {name} (.*)$", text, re.M).group(1)
        own = seen.get(name, []) + seen.get(f"{name}_bucket", [])
        labels = sorted({label for each, _ in own for label in each if label != "le"})
        found[name] = (kind, meaning, tuple(labels))
    return found


def dashboard_expressions():
    found = []
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        found += [(panel["title"], target["expr"]) for target in panel.get("targets", [])]
    return found


def alert_expressions():
    """(name of the alert, expression) of each; the file has them as `expr:` with what is indented
    behind it."""
    text = ALERTS.read_text()
    pattern = r"- alert: (\w+)\n +expr: (?:\|\n((?: {10,}.*\n)+)|(.*)\n)"
    return [(name, block or line) for name, block, line in re.findall(pattern, text)]


def selectors(expression):
    """(metric, {label: (operator, value)}) of each selector in a PromQL expression."""
    for name, matchers in re.findall(r"\b(up|encore_\w+)(\{[^}]*\})?", expression):
        yield name, {label: (operator, wanted) for label, operator, wanted
                     in re.findall(r'(\w+)\s*(=~|!=|!~|=)\s*"([^"]*)"', matchers)}


def grouped_labels(expression):
    """Labels that an expression groups, joins or ignores by."""
    lists = re.findall(r"\b(?:by|without|on|ignoring)\s*\(([^)]*)\)", expression)
    return {label.strip() for each in lists for label in each.split(",")}


class Prometheus:
    """A Prometheus that scrapes these admin listeners and evaluates the shipped alerts, both five
    times a second. In these no alert waits, and rates are over a few seconds."""

    def __init__(self, case, program, targets):
        folder = case.directory / "prometheus"
        folder.mkdir()
        rules = re.sub(r"^( +for:) .*$", r"\1 0s", ALERTS.read_text(), flags=re.M)
        rules = re.sub(r"\[\d+[smhd]\]", "[5s]", rules)
        (folder / "alerts.yml").write_text(rules)
        addresses = ", ".join(f'"127.0.0.1:{port}"' for port in targets)
        (folder / "prometheus.yml").write_text(
            "global: {scrape_interval: 200ms, evaluation_interval: 200ms}\n"
            "rule_files: [alerts.yml]\n"
            "scrape_configs:\n"
            f"  - {{job_name: encore, static_configs: [{{targets: [{addresses}]}}]}}\n")
        self.port = free_port()
        case.start([program, f"--config.file={folder}/prometheus.yml",
                    f"--storage.tsdb.path={folder}/data",
                    f"--web.listen-address=127.0.0.1:{self.port}"],
                   self.port, env=clean_environment())
        eventually(lambda: self.ask("targets") is not None, "Prometheus is ready")

    def ask(self, what, **query):
        """The `data` of an answer of its API; nothing while it is not ready."""
        url = (f"http://127.0.0.1:{self.port}/api/v1/{what}?" + urllib.parse.urlencode(query))
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            return json.load(opener.open(url, timeout=30))["data"]
        except OSError:
            return None

    def query(self, expression):
        """[(labels, value)]"""
        data = self.ask("query", query=expression)
        return [(each["metric"], float(each["value"][1])) for each in data["result"]]

    def firing(self):
        """{alert: [its labels]}"""
        found = {}
        for alert in self.ask("alerts")["alerts"]:
            if alert["state"] == "firing":
                found.setdefault(alert["labels"]["alertname"], []).append(alert["labels"])
        return found
