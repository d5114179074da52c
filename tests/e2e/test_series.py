"""Series by listener, rule, server and error: that they count all events, with two concurrent
clients and two workers, over reloads and clipped; and that no name breaks the page."""

import signal
import socket
import subprocess
import threading
import unittest

from client import Client, NoResponse
from harness import Case, CertificateAuthority, eventually, free_port, need_program
from monitoring import families, samples, value
from origin import Origin, fresh, response
from recipes import at_once
from test_reverse import ask

CLASSES = ("hit", "miss", "pass", "error")


class SeriesCase(Case):
    def reverse(self, servers, listen=(), start=True, **sections):
        """A reverse listener, whose address is self.address, with these servers."""
        encore = self.encore(start=False, **sections)
        self.address = f"127.0.0.1:{encore.port}"
        encore.sections["listen"] = [{"address": self.address, "mode": "reverse"}, *listen]
        encore.sections["origin"] = [{"servers": servers}]
        if start:
            encore.start()
        return encore

    def page(self, encore):
        status, text = encore.admin("/metrics")
        self.assertEqual(200, status)
        return text

    def reload(self, encore):
        before = encore.stats()["reloads"]
        encore.write_config()
        encore.signal(signal.SIGHUP)
        eventually(lambda: encore.stats()["reloads"] == before + 1, "it is reloaded")

    def await_value(self, encore, wanted, metric, **labels):
        eventually(lambda: value(self.page(encore), metric, **labels) == wanted,
                   f"{metric} {labels} is {wanted}")


class Counted(SeriesCase):
    def test_listeners_and_rules_count_what_many_clients_ask_at_once(self):
        origin = Origin(self, default=lambda x: fresh(x.request.target.encode() * 9))
        other = free_port()
        encore = self.reverse([origin.url("")], [{"address": f"127.0.0.1:{other}", "mode": "reverse"}],
                              rule=[{"name": "a", "path": "/a*", "fresh": "1h"},
                                    {"path": "/gone*", "deny": 410}],
                              admission={"policy": "always"})
        asked, clients = 40, 4

        def ask_all(number):
            with Client(encore.port) as client:
                for turn in range(asked):
                    client.send(f"GET /{'ab'[turn % 2]}{turn % 4} HTTP/1.1\r\nHost: a\r\n\r\n")
                    client.read_response()
                client.send("GET /gone HTTP/1.1\r\nHost: a\r\n\r\n")
                self.assertEqual(410, client.read_response().status)
        at_once(clients, ask_all)
        own = {"listener": self.address}
        whole = clients * (asked + 1)
        self.await_value(encore, whole, "encore_listener_requests_total", **own)
        text = self.page(encore)
        by_class = {each: value(text, "encore_listener_requests_total", **own, **{"class": each})
                    for each in CLASSES}
        # Each was stored once; who came at the same time was a miss as well.
        self.assertEqual(clients, by_class["error"] + by_class["pass"], by_class)
        self.assertGreaterEqual(by_class["miss"], 4)
        self.assertEqual(clients * asked, by_class["hit"] + by_class["miss"])
        self.assertEqual(clients * asked / 2, value(text, "encore_rule_requests_total", rule="a"))
        self.assertEqual(clients, value(text, "encore_rule_requests_total", rule="rule-1"))
        self.assertGreaterEqual(value(text, "encore_rule_requests_total", rule="a", **{"class": "hit"}),
                                clients * (asked / 2 - 2))
        self.assertEqual(2, value(text, "encore_rule_responses_total", rule="a"))
        self.assertEqual(0, value(text, "encore_listener_requests_total",
                                  listener=f"127.0.0.1:{other}"))
        self.assertEqual(clients, value(text, "encore_listener_accepted_connections_total", **own))
        for name in ("sent", "received"):
            self.assertEqual(value(text, f"encore_client_{name}_bytes_total"),
                             value(text, f"encore_listener_{name}_bytes_total", **own), name)
        self.await_value(encore, 0, "encore_listener_connections", **own)

    def test_open_connections_are_those_that_are_open(self):
        origin = Origin(self, default=fresh(b"x"))
        encore = self.reverse([origin.url("")])
        clients = [Client(encore.port) for _ in range(5)]
        for client in clients:
            client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            client.read_response()
        self.assertEqual(5, value(self.page(encore), "encore_listener_connections"))
        for count, client in enumerate(clients):
            client.reset() if count % 2 else client.close()
            self.await_value(encore, 4 - count, "encore_listener_connections")
        self.assertEqual(value(self.page(encore), "encore_client_connections"), 0)

    def test_a_rule_by_content_type_has_the_responses_that_it_held_for(self):
        origin = Origin(self, {"/i": fresh(b"i", Content_Type="image/png"),
                               "/t": fresh(b"t", Content_Type="text/html")})
        encore = self.reverse([origin.url("")], admission={"policy": "never"},
                              rule=[{"name": "images", "content_type": "image/*", "fresh": "1h"},
                                    {"name": "all", "path": "*", "fresh": "1m"}])
        for path in ("/i", "/t", "/i"):
            ask(encore.port, path)
        self.await_value(encore, 2, "encore_rule_responses_total", rule="images")
        self.await_value(encore, 1, "encore_rule_responses_total", rule="all")
        self.assertEqual(0, value(self.page(encore), "encore_rule_requests_total", rule="images"))
        self.await_value(encore, 3, "encore_rule_requests_total", rule="all")

    def test_what_servers_fail_at_is_told_by_kind(self):
        def broken(exchange):
            exchange.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            exchange.close()
        origins = {
            "closed": Origin(self, default=lambda x: x.reset()),
            "no-answer": Origin(self, default=lambda x: x.wait_until_closed()),
            "invalid": Origin(self, default=b"no HTTP at all\r\n\r\n"),
            "broken": Origin(self, default=broken),
        }
        urls = {kind: origin.url("") for kind, origin in origins.items()}
        urls["connect"] = f"http://127.0.0.1:{free_port()}"
        urls["name"] = "http://no-such-name.invalid:80"
        untrusted = CertificateAuthority(self).server_context("127.0.0.1")
        urls["tls"] = Origin(self, tls=untrusted).url("")
        encore = self.encore(start=False, upstream={"first_byte": "300ms", "retries": 0})
        encore.sections["listen"] = [{"address": f"127.0.0.1:{encore.port}", "mode": "reverse"}]
        encore.sections["origin"] = [{"host": f"{kind}.example", "servers": [url]}
                                     for kind, url in urls.items()]
        encore.start()
        for kind in urls:
            try:
                self.assertGreaterEqual(ask(encore.port, "/", f"{kind}.example").status, 500, kind)
            except NoResponse:
                self.assertEqual("broken", kind)
        for kind, url in urls.items():
            self.await_value(encore, 1, "encore_origin_server_failures_total",
                             origin=f"{kind}.example/", server=url)
            self.assertEqual(1, value(self.page(encore), "encore_origin_server_failures_total",
                                      origin=f"{kind}.example/", kind=kind), kind)
        text = self.page(encore)
        details = {labels["detail"] for labels, _ in samples(text)["encore_errors_total"]}
        self.assertLessEqual({"connect-refused", "response-timeout"}, details, details)
        self.assertEqual(value(text, "encore_origin_requests_total"),
                         value(text, "encore_origin_server_sent_requests_total"))

    def test_a_server_has_its_bytes_answers_and_connections(self):
        origin = Origin(self, {"/e": response(b"", "503 Busy"), "/n": response(b"", "404 Nothing")},
                        default=response(b"x" * 5000, Cache_Control="no-store"))
        encore = self.reverse([origin.url("")], workers={"count": 1})
        for path in ("/1", "/e", "/n"):
            ask(encore.port, path)
        own = {"origin": "*/", "server": origin.url("")}
        self.await_value(encore, 3, "encore_origin_server_answer_seconds_count", **own)
        text = self.page(encore)
        for name in ("sent", "received"):
            self.assertEqual(value(text, f"encore_origin_{name}_bytes_total"),
                             value(text, f"encore_origin_server_{name}_bytes_total", **own), name)
        self.assertEqual(1, value(text, "encore_origin_server_error_answers_total", status="5xx"))
        self.assertEqual(1, value(text, "encore_origin_server_error_answers_total", status="4xx"))
        self.assertEqual(1, value(text, "encore_origin_server_connections", **own))
        self.assertEqual(1, value(text, "encore_origin_servers", origin="*/", state="up"))
        self.assertEqual(value(text, "encore_origin_connects_total"),
                         value(text, "encore_origin_server_connects_total", **own))
        origin.stop()  # its idle connection ends
        self.await_value(encore, 0, "encore_origin_server_connections", **own)
        self.await_value(encore, 0, "encore_origin_connections")


class Reloads(SeriesCase):
    def test_counters_go_on_while_clients_ask_and_go_with_their_names(self):
        origin = Origin(self, default=fresh(b"x"))
        second = free_port()
        extra = {"address": f"127.0.0.1:{second}", "mode": "reverse"}
        encore = self.reverse([origin.url("")], [extra],
                              rule=[{"name": "kept", "path": "/*", "fresh": "1h"}])
        over, failed = threading.Event(), []

        def ask_on(number):
            while not over.is_set():
                try:
                    ask(encore.port, f"/{number}")
                except (OSError, NoResponse) as error:
                    failed.append(error)

        def watch():
            """Nothing that is there before and after goes back."""
            before = {}
            while not over.is_set():
                now = {(name, *sorted(labels.items())): number
                       for name, series in samples(self.page(encore)).items()
                       if name.startswith(("encore_listener_", "encore_rule_", "encore_origin_server_"))
                       and name.endswith(("_total", "_count", "_bucket"))
                       for labels, number in series}
                fallen = [(key, before[key], number) for key, number in now.items()
                          if number < before.get(key, 0)]
                if fallen:
                    failed.append(fallen)
                    return
                before = now
        threads = [threading.Thread(target=ask_on, args=(n,)) for n in range(2)]
        threads.append(threading.Thread(target=watch))
        for thread in threads:
            thread.start()
        self.addCleanup(lambda: [thread.join() for thread in threads])
        self.addCleanup(over.set)
        counted = "encore_rule_requests_total"
        for turn in range(6):
            eventually(lambda: value(self.page(encore), counted, rule="kept"), "requests are counted")
            before = value(self.page(encore), counted, rule="kept")
            encore.sections["rule"] = [
                *([{"name": f"new-{turn}", "path": "/none", "fresh": "1h"}] if turn % 2 else []),
                {"name": "kept", "path": "/*", "fresh": f"{turn + 1}h"}]
            encore.sections["listen"][1:] = [extra] if turn % 2 else []
            encore.sections["origin"][0]["tls_verify"] = bool(turn % 2)
            self.reload(encore)
            text = self.page(encore)
            self.assertGreaterEqual(value(text, counted, rule="kept"), before)
            self.assertEqual(0 if turn % 2 else None, value(text, counted, rule=f"new-{turn}"))
            self.assertIsNone(value(text, counted, rule=f"new-{turn - 1}"))
            there = value(text, "encore_listener_requests_total", listener=extra["address"])
            self.assertEqual(0 if turn % 2 else None, there)
        over.set()
        for thread in threads:
            thread.join()
        self.assertEqual([], failed)

    def test_what_is_beyond_the_bound_is_counted_as_other_and_who_has_series_keeps_them(self):
        origins = [Origin(self, default=response(b"x", Cache_Control="no-store")) for _ in range(4)]
        urls = [origin.url("") for origin in origins]
        rules = [{"name": f"r{n}", "path": f"/{n}", "fresh": "1h"} for n in range(4)]
        encore = self.reverse(urls, rule=rules, admin={"metrics_series": 2}, workers={"count": 1})

        def ask_all():
            for number in range(8):
                self.assertEqual(200, ask(encore.port, f"/{number % 4}").status)
        ask_all()
        sent, ruled = "encore_origin_server_sent_requests_total", "encore_rule_requests_total"
        self.await_value(encore, 4, ruled, rule="other")
        text = self.page(encore)
        self.assertEqual([2, 2, None, None], [value(text, ruled, rule=f"r{n}") for n in range(4)])
        self.assertEqual([2, 2, None, None], [value(text, sent, server=url) for url in urls])
        self.assertEqual(4, value(text, sent, origin="other", server="other"))
        self.assertEqual(2, value(text, "encore_origin_server_up", server="other"))
        self.assertEqual(4, value(text, "encore_origin_servers", origin="*/", state="up"))
        clipped = "encore_metrics_series_clipped"
        self.assertEqual([2, 2, 0, 0], [value(text, clipped, kind=kind)
                                        for kind in ("rule", "server", "listener", "origin")])
        # Those in front are new, and have to wait.
        encore.sections["rule"] = [{"name": "new", "path": "/new", "fresh": "1h"}, *reversed(rules)]
        encore.sections["origin"][0]["servers"] = urls[::-1]
        self.reload(encore)
        ask_all()
        self.await_value(encore, 8, ruled, rule="other")
        text = self.page(encore)
        self.assertEqual([4, 4, None, None], [value(text, ruled, rule=f"r{n}") for n in range(4)])
        self.assertEqual([4, 4, None, None], [value(text, sent, server=url) for url in urls])
        self.assertEqual(8, value(text, sent, server="other"))
        # One that has them goes: the next one begins with none, and what others had stays theirs.
        encore.sections["rule"] = rules[1:]
        encore.sections["origin"][0]["servers"] = urls[1:]
        self.reload(encore)
        text = self.page(encore)
        self.assertEqual([None, 4, 0, None], [value(text, ruled, rule=f"r{n}") for n in range(4)])
        self.assertEqual(8, value(text, ruled, rule="other"))
        self.assertEqual(8, value(text, sent, server="other"))
        encore.sections["admin"]["metrics_series"] = 10
        self.reload(encore)
        text = self.page(encore)
        self.assertIsNone(value(text, ruled, rule="other"))
        self.assertEqual(0, sum(number for _, number in samples(text)[clipped]))


class Names(SeriesCase):
    def test_no_name_breaks_the_page(self):
        """A socket whose file has a quotation mark, a rule that is called other, a server that is
        named twice, two rules of one name."""
        promtool = need_program("promtool")
        origin = Origin(self, default=fresh(b"x"))
        path = self.directory / 'a"b\\c'
        encore = self.reverse([origin.url(""), origin.url("") + " weight=3"],
                              [{"address": f"unix:{path}", "mode": "reverse"}],
                              rule=[{"name": "other", "path": "/a", "fresh": "1h"},
                                    {"name": "same", "path": "/b", "fresh": "1h"},
                                    {"name": "same", "path": "/c", "fresh": "1h"}])
        for number in range(6):
            ask(encore.port, f"/{'abc'[number % 3]}{number}"[:2])
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))
            client.sendall(b"GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            while client.recv(65536):
                pass
        self.await_value(encore, 4, "encore_rule_requests_total", rule="same")
        text = self.page(encore)
        self.assertEqual(3, value(text, "encore_rule_requests_total", rule="other"))
        self.assertEqual(1, value(text, "encore_origin_server_up", server=origin.url("")))
        names = [line.rpartition(" ")[0] for line in text.splitlines() if not line.startswith("#")]
        self.assertEqual(len(names), len(set(names)), "no sample comes twice")
        said = [labels["listener"] for labels, _ in samples(text)["encore_listener_connections"]]
        self.assertIn(f"unix:{self.directory}/a\\\"b\\\\c", said)
        checked = subprocess.run([promtool, "check", "metrics"], input=text.encode(),
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        self.assertEqual((0, b""), (checked.returncode, checked.stdout))
        self.assertEqual("histogram", families(text)["encore_response_body_bytes"][0])


if __name__ == "__main__":
    unittest.main()
