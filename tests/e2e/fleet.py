"""Three nodes, a real redis-server, and an origin whose pages are edited."""

import json
import urllib.parse

from client import field, get
from engine import Engine
from harness import Case, Encore, eventually
from origin import Origin, fresh

NAMES = ("n0", "n1", "n2")


class FleetCase(Case):
    def setUp(self):
        super().setUp()
        self.engine = Engine(self)
        self.versions = {}
        self.asked = []
        self.origin = Origin(self, default=self.page)
        self.nodes = {}

    def page(self, exchange):
        """A page of the path's present version; its tags are the path's parts."""
        path = urllib.parse.urlsplit(exchange.request.target).path
        version = self.versions.get(path, 0)
        tags = " ".join(part for part in path.split("/") if part)
        etag = f'"{path}-{version}"'
        conditional = dict((name.lower(), value) for name, value in exchange.request.fields)
        self.asked.append((path, conditional.get("if-none-match")))
        exchange.send(fresh(f"{path} {version}".encode(), ETag=etag, Surrogate_Key=tags))

    def node(self, name, made=Encore, engine=None, **sections):
        fleet = {"purges": engine or self.engine.url, "node": name, **sections.pop("fleet", {})}
        proxy = made(self, admission={"policy": "always"}, fleet=fleet, **sections)
        self.nodes[name] = proxy
        return proxy

    def start_all(self, **sections):
        for name in NAMES:
            self.node(name, **sections)
        self.wait_for_all()

    def wait_for_all(self, names=NAMES):
        for name in names:
            eventually(lambda: set(names) <= set(self.present(self.nodes[name])),
                       f"{name} sees all nodes")

    def fleet(self, proxy):
        status, text = proxy.admin("/fleet")
        self.assertEqual(200, status, text)
        return json.loads(text)

    def present(self, proxy):
        return [node["node"] for node in self.fleet(proxy)["nodes"] if node["present"]]

    def purge(self, proxy, status=200, **targets):
        query = urllib.parse.urlencode(targets, doseq=True)
        got, text = proxy.admin("/purge?" + query, method="POST")
        self.assertEqual(status, got, text)
        return json.loads(text) if status == 200 else text

    def body(self, proxy, path):
        return get(proxy.port, self.origin.url(path)).body.decode()

    def hit(self, proxy, path):
        return field(get(proxy.port, self.origin.url(path)), "Cache-Status")

    def fill(self, *paths):
        for proxy in self.nodes.values():
            for path in paths:
                self.body(proxy, path)
                self.assertIn("; hit", self.hit(proxy, path))

    def check_new(self, proxy, *paths):
        for path in paths:
            self.assertEqual(f"{path} {self.versions.get(path, 0)}", self.body(proxy, path))

    def edit(self, *paths):
        for path in paths:
            self.versions[path] = self.versions.get(path, 0) + 1

    def metric(self, proxy, name):
        return proxy.metrics()[f"encore_fleet_{name}"]

    def wait_for_metric(self, proxy, name, expected):
        eventually(lambda: self.metric(proxy, name) == expected, f"{name} is {expected}")

    def check_late(self, proxy):
        eventually(lambda: self.metric(proxy, "late") == 1, "purges are late")
        self.assertEqual(0, self.metric(proxy, "engine_connected"))
        self.assertGreater(self.metric(proxy, "lag_seconds"), 0)
        status, text = proxy.admin("/readyz")
        self.assertEqual(200, status)
        self.assertRegex(text, r"^ready, but purges are late: \d+ s \(")

    def check_current(self, proxy):
        eventually(lambda: self.metric(proxy, "late") == 0 and
                   self.metric(proxy, "engine_connected") == 1 and
                   self.metric(proxy, "purges_pending") == 0, "purges are not late any more")
        self.assertEqual((200, "ready\n"), proxy.admin("/readyz"))
