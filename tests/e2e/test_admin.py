"""The admin listener, counters that add up, and the access log's formats."""

import re
import signal
import socket
import threading
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


class Access(Case):
    """The clients that the admin listener serves, and the requests that need the token."""

    TOKEN = "0123456789abcdef-token"

    def everywhere(self, **admin):
        """With a listener on every address."""
        encore = self.encore(start=False)
        encore.sections["admin"] = {"address": f"0.0.0.0:{encore.admin_port}", **admin}
        encore.start()
        return encore

    def token_file(self):
        path = self.directory / "token"
        path.write_text(self.TOKEN + "\n")
        path.chmod(0o600)
        return str(path)

    def test_away_from_loopback_a_purge_takes_the_token(self):
        encore = self.everywhere()
        self.assertIn("is not on loopback", encore.output())
        purge, right = "/purge?tag=a", {"Authorization": f"Bearer {self.TOKEN}"}
        self.assertEqual(403, encore.admin(purge, "POST", right)[0])
        self.assertEqual(200, encore.admin("/api/stats")[0])
        encore.sections["admin"]["token_file"] = self.token_file()
        encore.write_config()
        encore.signal(signal.SIGHUP)
        eventually(lambda: encore.stats()["reloads"] == 1, "it is reloaded")
        self.assertEqual(401, encore.admin(purge, "POST")[0])
        self.assertEqual(401, encore.admin(purge, "POST", {"Authorization": "Bearer x"})[0])
        self.assertEqual(200, encore.admin(purge, "POST", right)[0])

    def test_a_reload_changes_who_may_come_and_the_probes_stay(self):
        encore = self.encore()
        encore.sections["admin"]["allow_clients"] = ["192.0.2.0/24"]
        encore.write_config()
        encore.signal(signal.SIGHUP)
        eventually(lambda: encore.admin("/api/stats")[0] == 403, "this client is let in no more")
        for page in ("/", "/metrics", "/api/live", "/filter", "/no-such-page"):
            self.assertEqual(403, encore.admin(page)[0], page)
        self.assertEqual(403, encore.admin("/purge?tag=a", "POST")[0])
        for page in ("/healthz", "/readyz"):
            self.assertEqual(200, encore.admin(page, headers={"Host": "node7.example"})[0])

    def test_probes_as_load_balancers_send_them(self):
        encore = self.encore()
        for head in ("GET /readyz HTTP/1.0\r\n\r\n", "GET /healthz HTTP/1.0\r\nHost: a:1\r\n\r\n",
                     "HEAD /readyz HTTP/1.0\r\n\r\n"):
            with Client(encore.admin_port) as client:
                client.send(head)
                self.assertTrue(client.read_until(b"\r\n").endswith(b" 200 OK"), head)
        # A drain is reported as long as it lasts.
        origin = Origin(self, default=lambda exchange: exchange.wait(threading.Event()))
        with Client(encore.port) as held:
            held.send(f"GET {origin.url('/held')} HTTP/1.1\r\nHost: a\r\n\r\n")
            eventually(origin.count, "a request is under way")
            encore.signal(signal.SIGTERM)
            eventually(lambda: encore.admin("/readyz")[0] == 503, "the drain is told")
            self.assertEqual(200, encore.admin("/healthz", headers={"Host": "b"})[0])
            held.reset()

    def test_the_status_counts_in_words(self):
        origin = Origin(self, default=fresh(b"x"))
        encore = self.encore(admission={"policy": "always"})
        for words in r"0 reloads, 0 refused", r"0 responses, \S+ of 64MiB", "0 responses not stored":
            self.assertRegex(encore.admin("/api/status")[1], words)
        get(encore.port, origin.url("/a"))
        eventually(lambda: "1 response, " in encore.admin("/api/status")[1], "it is counted")

    def test_of_the_seed_only_a_fingerprint_is_shown(self):
        seed = "00112233445566778899aabbccddeeff"
        encore = self.encore(admission={"seed": seed})
        self.assertRegex(encore.output(), r"ready: 2 workers, seed fingerprint [0-9a-f]{16}\n")
        shown = [encore.output()] + [encore.admin(path)[1] for path in (
            "/", "/metrics", "/api/stats", "/api/status", "/api/live", "/api/history",
            "/api/explain?url=http://a.example/", "/explain", "/api/shadow", "/shadow")]
        for text in shown:
            self.assertNotIn(seed[:12], text.lower())

    def test_the_admin_listener_on_a_socket(self):
        path = self.directory / "admin.sock"
        encore = self.encore()
        encore.stop()
        encore.sections["admin"] = {"address": f"unix:{path}", "socket_mode": "0600"}
        encore.ready = path.exists

        def ask(text):
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(30)
                client.connect(str(path))
                client.sendall(text)
                answer = b""
                while more := client.recv(65536):
                    answer += more
            return answer
        encore.start()
        self.assertEqual(0o600, path.stat().st_mode & 0o777)
        close = b"Connection: close\r\n\r\n"
        self.assertIn(b"200 OK", ask(b"GET /api/stats HTTP/1.1\r\nHost: localhost\r\n" + close))
        self.assertIn(b'"purged": 0', ask(b"POST /purge?url=http://a/ HTTP/1.1\r\n"
                                          b"Host: localhost\r\nContent-Length: 0\r\n" + close))
        self.assertIn(b" 403 ", ask(b"GET /api/stats HTTP/1.1\r\nHost: evil\r\n" + close))
        for probe in (b"/healthz", b"/readyz"):
            self.assertIn(b" 200 ", ask(b"GET " + probe + b" HTTP/1.0\r\n\r\n"))

        def command(*arguments, status):
            ended = self.run_client([encore.program, "--config", encore.config_path, *arguments],
                                    check=False)
            text = ended.stdout.decode()
            self.assertEqual(status, ended.returncode, text)
            return text
        self.assertRegex(command("status", "--text", status=0), r"state +\S+ ready")
        self.assertIn("remembered ", command("explain", "http://a.example/", status=0))
        self.assertIn("no host is decrypted", command("intercept", "list", status=1))
        encore.stop()
        self.assertFalse(path.exists())
        self.assertIn(f"unix:{path} /api/status: ", command("status", status=3))


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
                         + re.escape(origin.url("/a%20b")) + r" - [A-Z_]+/\S+ text/plain "
                         r"[a-z-]+/[a-z-]+$")

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
