"""The access log's records of requests, in each format; data that it leaves out; and the messages
on standard error about failed connections."""

import json
import re
import signal
import socket
import threading
import unittest

from client import Client, field, get
from harness import Case, eventually, free_port, listening
from origin import Origin, chunked, fresh, response
from squid import Squid

LOCAL = "127.0.0.0/8"
TRACE = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
FOUND = re.compile(r"[0-9a-f]{32}")


class Logs(Case):
    def setUp(self):
        super().setUp()
        self.origin = Origin(self)

    def encore(self, **sections):
        # One worker: records stand in the order of the requests.
        return super().encore(**{"workers": {"count": 1}, **sections})

    def reverse(self, listen=None, **sections):
        return self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse", **(listen or {})}],
            origin=[{"servers": [self.origin.url("")]}], **sections)

    def lines(self, encore, count):
        def enough():
            text = encore.access_path.read_text() if encore.access_path.exists() else ""
            return text.splitlines() if text.count("\n") >= count else None
        return eventually(enough, f"{count} lines are logged")

    def ask(self, encore, path, fields=(), method="GET", body=b"", host="site.example"):
        with Client(encore.port) as client:
            lines = [f"{method} {path} HTTP/1.1", f"Host: {host}",
                     *(f"{name}: {value}" for name, value in fields)]
            if body:
                lines.append(f"Content-Length: {len(body)}")
            client.send("\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body)
            return client.read_response(method)


class Fields(Logs):
    def test_a_record_says_why_when_and_by_whom(self):
        self.origin.routes = {"/a": fresh(b"x" * 5000, Content_Type="text/plain")}
        encore = self.reverse()
        for _ in range(3):
            self.ask(encore, "/a?b=c", [("traceparent", TRACE), ("User-Agent", "it")])
        first, second, hit = encore.access_records(3)
        for record in (first, second):
            self.assertEqual(f"127.0.0.1:{self.origin.port}", record["origin"])
            self.assertEqual(self.origin.url(""), record["server"])
            self.assertLessEqual(record["origin_us"], record["first_byte_us"])
        self.assertEqual(("first-request", "first-request"), (first["outcome"], first["detail"]))
        self.assertEqual(("second-request", "second-request"), (second["outcome"], second["detail"]))
        self.assertLessEqual(first["connect_us"], first["first_byte_us"])
        self.assertNotIn("connect_us", second)  # the connection was kept
        for record in (first, second, hit):
            self.assertLessEqual(record["first_byte_us"], record["duration_us"])
            self.assertEqual((TRACE, "HTTP/1.1", f"127.0.0.1:{encore.port}"),
                             (record["traceparent"], record["version"], record["listener"]))
            self.assertRegex(record["request_id"], FOUND)
            sent = len(f"GET /a?b=c HTTP/1.1\r\nHost: site.example\r\ntraceparent: {TRACE}\r\n"
                       "User-Agent: it\r\n\r\n")
            self.assertEqual((5000, sent), (record["body_bytes"], record["request_bytes"]))
            self.assertGreater(record["bytes"], 5000)
        self.assertEqual("hit", hit["outcome"])
        for name in ("origin", "server", "connect_us", "origin_us", "detail"):
            self.assertNotIn(name, hit)
        self.assertEqual(3, len({record["request_id"] for record in (first, second, hit)}))
        self.assertEqual(TRACE, dict(self.origin.last().fields)["traceparent"])

    def test_boundaries_between_ranges_are_content(self):
        self.origin.routes = {"/a": fresh(b"x" * 5000)}
        encore = self.reverse()
        for _ in range(2):
            self.ask(encore, "/a")
        answer = self.ask(encore, "/a", [("Range", "bytes=0-9,20-29")])
        self.assertEqual(206, answer.status)
        record = encore.access_records(3)[-1]
        self.assertEqual(len(answer.body), record["body_bytes"])

    def test_content_of_our_own_counts(self):
        forward = free_port()
        encore = self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse",
                     "deny_paths": ["/secret/*"]},
                    {"address": f"127.0.0.1:{forward}", "mode": "forward"}],
            forward={"connect_ports": [443]},
            rule=[{"path": "/said", "static_status": 200, "static_body": "hello body"},
                  {"path": "/moved", "redirect": "/there"}, {"path": "/no", "deny": 403}],
            origin=[{"servers": ["http://127.0.0.1:1"]}])
        paths = ("/said", "/moved", "/no", "/secret/x", "//secret/x", "/nobody", "*")
        sizes = [len(self.ask(encore, path).body) for path in paths]
        with Client(forward) as client:
            client.send("CONNECT 127.0.0.1:2 HTTP/1.1\r\nHost: 127.0.0.1:2\r\n\r\n")
            sizes.append(len(client.read_response("GET").body))
        self.assertEqual(10, sizes[0])
        self.assertTrue(all(sizes[2:]), sizes)
        records = encore.access_records(len(sizes))
        self.assertEqual(sizes, [record["body_bytes"] for record in records])
        self.assertTrue(all(r["body_bytes"] < r["bytes"] for r in records))
        self.assertEqual(0, len(self.ask(encore, "/no", method="HEAD").body))
        self.assertEqual(0, encore.access_records(len(sizes) + 1)[-1]["body_bytes"])

    def test_what_is_refused_for_what_its_head_asks_for_is_named(self):
        encore = self.reverse({"deny_paths": ["/secret/*"]})
        self.assertEqual(400, self.ask(encore, "//secret/x?a=b").status)
        self.assertEqual(400, self.ask(encore, "/a", host="a b").status)
        with Client(encore.port) as client:
            client.send("GET /a HTTP/1.1\r\nHost : it\r\n\r\n")
            self.assertEqual(400, client.read_response().status)
        first, second, third = encore.access_records(3)
        self.assertEqual(("GET", "//secret/x?a=b", "ambiguous-path"),
                         (first["method"], first["url"], first["detail"]))
        self.assertGreater(first["request_bytes"], 20)
        self.assertEqual("GET", second["method"])
        self.assertEqual("", third["method"])  # it could not be read

    def test_bytes_count_both_ways_whatever_frames_them(self):
        self.origin.default = chunked(b"a" * 1000, b"b" * 70)
        encore = self.reverse()
        head = len("POST /up HTTP/1.1\r\nHost: site.example\r\nContent-Length: 3000\r\n\r\n")
        self.ask(encore, "/up", method="POST", body=b"u" * 3000)
        with Client(encore.port) as client:
            text = "POST /up HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
            client.send(text)
            for _ in range(3):
                client.send(b"2\r\nxy\r\n")
            client.send(b"0\r\n\r\n")
            self.assertEqual(1070, len(client.read_response("POST").body))
        plain, piecewise = encore.access_records(2)
        self.assertEqual((head + 3000, 1070), (plain["request_bytes"], plain["body_bytes"]))
        self.assertEqual((len(text) + 6, 1070),
                         (piecewise["request_bytes"], piecewise["body_bytes"]))
        self.assertEqual("method", plain["outcome"])

    def test_a_tunnel_counts_what_went_each_way(self):
        def echo(listener):
            peer, _ = listener.accept()
            with peer:
                while data := peer.recv(65536):
                    peer.sendall(data * 2)
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        port = listener.getsockname()[1]
        threading.Thread(target=echo, args=(listener,), daemon=True).start()
        encore = self.encore(forward={"connect_ports": [port]})
        with Client(encore.port) as client:
            head = f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: a\r\n\r\n"
            client.send(head)
            self.assertEqual(200, client.read_response("CONNECT").status)
            client.send(b"z" * 700)
            client.read_exactly(1400)
        record = encore.access_records(1)[0]
        self.assertEqual(("tunnel", 200), (record["outcome"], record["status"]))
        self.assertEqual(len(head) + 700, record["request_bytes"])
        self.assertGreater(record["bytes"], 1400)
        self.assertEqual(f"127.0.0.1:{port}", record["origin"])
        self.assertIn("connect_us", record)

    def test_failures_say_which_server_and_why(self):
        port = free_port()
        encore = self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
            origin=[{"servers": [f"http://127.0.0.1:{port}"]}])
        self.assertEqual(502, self.ask(encore, "/a").status)
        record = encore.access_records(1)[0]
        self.assertEqual(("origin-unreachable", "connect-refused", f"http://127.0.0.1:{port}"),
                         (record["outcome"], record["detail"], record["server"]))
        self.assertNotIn("origin", record)

    def test_what_is_stale_says_why_it_was_served(self):
        self.origin.routes = {"/a": response(b"old", ETag='"a"', Age="70",
                                                Cache_Control="max-age=60")}
        encore = self.reverse(admission={"policy": "always"})
        self.assertEqual(b"old", self.ask(encore, "/a").body)
        self.origin.stop()
        self.assertEqual(b"old", self.ask(encore, "/a").body)
        record = encore.access_records(2)[1]
        self.assertEqual("stale", record["outcome"])
        self.assertRegex(record["detail"], "^(connect-refused|origin-closed|origin-reset)$")

    def test_a_trace_context_that_is_none_is_passed_on_and_not_logged(self):
        self.origin.default = response(b"ok", Cache_Control="no-store")
        encore = self.reverse()
        wrong = [TRACE.upper(), TRACE[:-1], TRACE + "-more", "ff" + TRACE[2:], '"' + TRACE[1:]]
        for value in wrong:
            self.ask(encore, "/a", [("traceparent", value)])
            self.assertEqual(value, dict(self.origin.last().fields)["traceparent"])
        self.ask(encore, "/a", [("traceparent", "01" + TRACE[2:] + "-more")])
        records = encore.access_records(len(wrong) + 1)
        self.assertEqual(["traceparent" in record for record in records],
                         [False] * len(wrong) + [True])

    def test_a_client_that_leaves_says_how(self):
        go = threading.Event()
        self.addCleanup(go.set)

        def slow(exchange):
            exchange.wait(go)
            return response(b"late")
        self.origin.routes = {"/slow": slow}
        encore = self.reverse()
        client = Client(encore.port)
        client.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n")
        eventually(lambda: self.origin.count("/slow") == 1, "the origin is asked")
        client.reset()
        record = encore.access_records(1)[0]
        self.assertEqual(("client-aborted", "reset", 0),
                         (record["outcome"], record["detail"], record["status"]))


class RequestIds(Logs):
    def id_at_origin(self, path=None):
        return [v for n, v in self.origin.last(path).fields if n == "x-request-id"]

    def test_who_is_trusted_names_a_request_and_nobody_else(self):
        self.origin.default = response(b"ok", Cache_Control="no-store")
        trusted = self.reverse({"trusted_proxies": [LOCAL]})
        longest = "Az09._~+/=:-" * 10 + "12345678"
        self.assertEqual(128, len(longest))
        for name in ("abc-1", longest):
            self.ask(trusted, "/a", [("X-Request-ID", name), ("X-Forwarded-For", "192.0.2.1")])
            self.assertEqual([name], self.id_at_origin())
            self.assertEqual(name, trusted.access_records(1)[-1]["request_id"])
            trusted.access_path.write_text("")
        others = [longest + "x", "a b", 'a"b', "a,b", "", "\xe9"]
        for name in others:
            self.ask(trusted, "/a", [("X-Request-Id", name)])
            self.assertRegex(self.id_at_origin()[0], f"^{FOUND.pattern}$")
        self.ask(trusted, "/a", [("X-Request-Id", "one"), ("x-request-id", "two")])
        self.assertRegex(self.id_at_origin()[0], f"^{FOUND.pattern}$")
        stranger = self.reverse()
        self.ask(stranger, "/a", [("X-Request-Id", "mine"), ("X_Request_Id", "mine")])
        sent = self.id_at_origin()
        self.assertEqual(1, len(sent))
        self.assertEqual(sent[0], stranger.access_records(1)[0]["request_id"])
        self.assertNotIn("mine", self.origin.last().head.decode())

    def test_origins_that_a_client_names_are_told_nothing_and_get_what_it_says(self):
        self.origin.default = response(b"ok", Cache_Control="no-store")
        encore = self.encore()
        get(encore.port, self.origin.url("/a"))
        self.assertEqual([], self.id_at_origin())
        with Client(encore.port) as client:
            client.request(self.origin.url("/a"), fields=[("X-Request-Id", "own")])
            client.read_response()
        self.assertEqual(["own"], self.id_at_origin())
        ids = [record["request_id"] for record in encore.access_records(2)]
        self.assertNotIn("own", ids)

    def test_no_id_of_one_client_comes_to_another_by_what_is_stored_or_shared(self):
        go = threading.Event()

        def echo(exchange):
            exchange.wait(go)
            name = [v for n, v in exchange.request.fields if n == "x-request-id"][0]
            return fresh(b"page", X_Request_Id=name)
        self.origin.routes = {"/page": echo}
        encore = self.reverse(admission={"policy": "always"})
        answers = {}

        def ask(number):
            answers[number] = self.ask(encore, "/page")
        threads = [threading.Thread(target=ask, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        eventually(lambda: encore.metrics()["encore_client_connections"] >= 4, "all are there")
        eventually(lambda: self.origin.count("/page") >= 1, "the origin is asked")
        go.set()
        for thread in threads:
            thread.join()
        hit = self.ask(encore, "/page")
        self.assertIn("; hit", field(hit, "Cache-Status"))
        self.assertIsNone(field(hit, "X-Request-Id"))
        # The client whose request was sent gets the origin's id; those who waited do not.
        seen = [field(answer, "X-Request-Id") for answer in answers.values()]
        self.assertEqual(self.origin.count("/page"), len([each for each in seen if each]))
        self.assertEqual(5, len({record["request_id"] for record in encore.access_records(5)}))

    def test_no_id_of_a_validation_or_of_a_trailer_is_stored(self):
        def echo(exchange):
            told = dict((n.lower(), v) for n, v in exchange.request.fields)
            name = told["x-request-id"]
            if exchange.request.target == "/trailer":
                return chunked(b"abc", trailers=f"X-Request-Id: {name}\r\nX-Sum: 1\r\n")
            if exchange.request.method == "HEAD":
                return response(b"", ETag='"1"', Cache_Control="max-age=600",
                                Content_Length=4, X_Request_Id=name, X_New="1")
            if "if-none-match" in told:
                return response(b"", "304 Not Modified", ETag='"1"', Cache_Control="max-age=600",
                                Content_Length=None, X_Request_Id=name, X_New="1")
            return response(b"page", ETag='"1"', Cache_Control="max-age=1", Age="5")
        self.origin.default = echo
        encore = self.reverse(admission={"policy": "always"})
        for path, method in (("/by-304", "GET"), ("/by-head", "HEAD")):
            with self.subTest(path):
                self.ask(encore, path)
                own = field(self.ask(encore, path, method=method), "X-Request-Id")
                self.assertIn(own, self.id_at_origin(path))
                hit = self.ask(encore, path)
                self.assertIn("; hit", field(hit, "Cache-Status"))
                self.assertEqual(("1", None), (field(hit, "X-New"), field(hit, "X-Request-Id")))
        for _ in range(2):
            answer = self.ask(encore, "/trailer", [("TE", "trailers"), ("Connection", "TE")])
            self.assertEqual([("x-sum", "1")], list(answer.trailers))

    def test_clients_are_told_where_that_is_wanted(self):
        self.origin.default = fresh(b"page", X_Request_Id="of-the-origin")
        encore = self.reverse(admission={"policy": "always"}, log={"request_id": "respond"})
        answers = [self.ask(encore, "/page") for _ in range(3)]
        answers.append(self.ask(encore, "/page", method="TRACE"))
        told = [field(answer, "X-Request-Id") for answer in answers]
        self.assertEqual(told, [record["request_id"] for record in encore.access_records(4)])
        self.assertEqual(4, len(set(told)))
        for name in told:
            self.assertRegex(name, f"^{FOUND.pattern}$")

    def test_without_them_a_client_s_own_goes_to_the_origin(self):
        self.origin.default = response(b"ok", Cache_Control="no-store")
        encore = self.reverse(log={"request_id": "off"})
        self.ask(encore, "/a", [("X-Request-Id", "own")])
        self.assertEqual(["own"], self.id_at_origin())
        self.assertNotIn("request_id", encore.access_records(1)[0])


class Redacted(Logs):
    SECRETS = ("hush1", "hush2", "hush3", "hush4", "hush5", "hush6", "hush7")

    def ask_with_secrets(self, encore):
        self.ask(encore, "/a?token=hush1&q=seen&%54OKEN=hush2;Api_Key=hush3&token", [
            ("Referer", "http://me:hush4@ref.example/p?token=hush5&q=seen2"),
            ("Authorization", "Basic hush6"), ("Cookie", "s=hush7")])

    def test_secrets_are_in_no_format_and_on_no_page(self):
        self.origin.default = response(b"ok", Cache_Control="no-store",
                                       Set_Cookie="s=hush7", Location="/x?token=hush1")
        line = ('%h "%r" %U%q %{Referer}i "%{Authorization}i" %{Cookie}i %{Set-Cookie}o '
                '%{Location}o %{referer}x %{url}x')
        for log_format in ("json", "squid", "combined", line):
            with self.subTest(log_format):
                encore = self.reverse(log={"format": log_format, "level": "debug"},
                                      admin={"show_queries": True})
                self.ask_with_secrets(encore)
                text = self.lines(encore, 1)[0]
                page = encore.admin("/api/outcome?name=uncacheable")[1]
                self.assertIn("q=seen&", text)
                self.assertIn("***", page)
                for secret in self.SECRETS:
                    self.assertNotIn(secret, text)
                    self.assertNotIn(secret, page)
                    self.assertNotIn(secret, encore.output())
                if log_format != "squid":
                    self.assertIn("//***@ref.example/p?token=***&q=seen2", text)

    def test_what_a_response_varies_by_is_explained_without_what_clients_log_in_with(self):
        self.origin.default = fresh(b"page", Vary="Cookie, Accept-Language")
        encore = self.reverse(admission={"policy": "always"})
        self.ask(encore, "/page", [("Cookie", "s=hush"), ("Accept-Language", "de")])
        text = encore.admin("/api/explain?url=http://site.example/page&format=text")[1]
        self.assertIn("accept-language = de, cookie = ***", text)
        self.assertNotIn("hush", text)

    def test_what_is_secret_is_configured(self):
        encore = self.reverse(log={"redact_query": ["Q"]})
        self.ask(encore, "/a?token=shown&q=hush")
        self.assertEqual("/a?token=shown&q=***", encore.access_records(1)[0]["url"])


class Formats(Logs):
    def test_squid_s_format_is_what_squid_writes(self):
        self.origin.routes = {
            "/a": fresh(b"x" * 1000, Content_Type="text/html; charset=utf-8"),
            "/etag": lambda exchange: (
                response(status="304 Not Modified", ETag='"e"', Content_Length=None)
                if any(n == "if-none-match" for n, _ in exchange.request.fields)
                else response(b"tagged", ETag='"e"', Cache_Control="max-age=0",
                              Content_Type="text/css"))}
        squid = Squid(self, logs=True)
        encore = self.encore(log={"format": "squid"}, admission={"policy": "always"})
        for port in (squid.port, encore.port):
            for path, more in (("/a", {}), ("/a", {}), ("/etag", {}), ("/etag", {}),
                               ("/none", {"fields": [("Cache-Control", "only-if-cached")]}),
                               ("/post", {"method": "POST", "body": b"x"})):
                with Client(port) as client:
                    client.request(self.origin.url(path), **more)
                    client.read_response()
            with Client(port) as client:
                client.send("garbage\r\n\r\n")
                self.assertEqual(400, client.read_response().status)
        eventually(lambda: squid.access_path.exists()
                   and squid.access_path.read_text().count("garbage") == 1, "Squid has logged all")
        said = {}
        for name, lines in (("squid", squid.access_path.read_text().splitlines()),
                            ("encore", self.lines(encore, 7))):
            for line in lines:
                self.assertRegex(line, r"^\d+\.\d{3} [ \d]{6} 127\.0\.0\.1 \S+ \d+ \S+ \S+ - \S+ \S+")
            fields = [line.split() for line in lines if "error:transaction-end" not in line]
            # Each format logs its own part of a request that could not be read.
            said[name] = [(each[3], "-" if "error:" in each[6] else each[5], each[6], each[8])
                          for each in fields]
        self.assertEqual(said["squid"], said["encore"])

    def test_a_line_of_one_s_own_has_all_that_is_known(self):
        self.origin.default = response(b"body", Cache_Control="no-store", X_Made="by me")
        encore = self.reverse(log={"format": '%h %l %u %t "%r" %>s %b %B %O %I %D %T %{ms}T %m %U %q '
                                             '%H %v %p %X "%{User-Agent}i" "%{X-Made}o" '
                                             '%{outcome}x %{detail}x %{origin_ip}x %{epoch}x %%'})
        self.ask(encore, "/a/b?c=d", [("User-Agent", "an agent")])
        line = self.lines(encore, 1)[0]
        self.assertRegex(line, re.compile(
            r'^127\.0\.0\.1 - - \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d \+0000\] "GET /a/b\?c=d HTTP/1\.1" '
            r'200 4 4 \d+ \d+ \d+ 0 \d+ GET /a/b \?c=d HTTP/1\.1 site\.example ' + str(encore.port) +
            r' [+-] "an agent" "by me" uncacheable no-store 127\.0\.0\.1 \d+\.\d{3} %$'))

    def test_no_client_forges_a_line_or_a_field(self):
        self.origin.default = response(b"ok", Cache_Control="no-store")
        encore = self.reverse(log={"format": '"%{X}i" %{X}i|%{Referer}i|"%r"|%{Host}i'})
        hostile = 'a" b\\" c\td\xff%n%22'
        self.ask(encore, "/a%22%0a?x='y", [("X", hostile), ("Referer", hostile)])
        line = self.lines(encore, 1)[0]
        self.assertEqual(1, encore.access_path.read_text().count("\n"))
        self.assertTrue(all(" " <= c <= "~" for c in line), line)
        self.assertEqual(4, line.count('"'))
        self.assertEqual(2, line.partition("|")[2].count(" "), line)  # those of the request line

    def test_a_format_that_is_none_is_refused_and_named(self):
        for wrong, shown in (("%h %Z", "%Z"), ("%{outcome}", "%{outcome}"), ("%{nothing}x", "%{nothing}x"),
                             ("%{a b}i", "%{a b}i"), ("%{h}T", "%{h}T"), ("%", "%"), ("squidd", "squidd"),
                             ("%h %{user", "%{user")):
            with self.subTest(wrong):
                encore = self.encore(start=False, log={"format": wrong})
                encore.write_config()
                ended = self.run_client([encore.program, "--check-config", "--config",
                                         encore.config_path], check=False)
                self.assertEqual(2, ended.returncode)
                text = ended.stdout.decode()
                self.assertIn("log.format", text)
                self.assertIn(shown, text)
                self.assertIn("%{Name}i", text)

    def test_a_reload_changes_the_format_in_the_middle_of_a_connection(self):
        self.origin.default = response(b"ok", Cache_Control="no-store")
        encore = self.reverse(log={"format": "%m %U"})
        with Client(encore.port) as client:
            for number, log_format in enumerate(["%m %U", "%s", "json"]):
                if number:
                    encore.sections["log"]["format"] = log_format
                    encore.write_config()
                    reloads = encore.stats()["reloads"]
                    encore.signal(signal.SIGHUP)
                    eventually(lambda: encore.stats()["reloads"] > reloads, "it is reloaded")
                client.send("GET /a HTTP/1.1\r\nHost: a\r\n\r\n")
                client.read_response()
        lines = self.lines(encore, 3)
        self.assertEqual(["GET /a", "200"], lines[:2])
        self.assertEqual("/a", json.loads(lines[2])["url"])

    def test_the_reason_is_in_every_format(self):
        for log_format, end in (("squid", " uncacheable/no-store"), ("combined", " uncacheable/no-store"),
                                ("%{outcome}x/%{detail}x", "uncacheable/no-store")):
            with self.subTest(log_format):
                self.origin.default = response(b"ok", Cache_Control="no-store")
                encore = self.reverse(log={"format": log_format})
                self.ask(encore, "/a")
                self.assertTrue(self.lines(encore, 1)[0].endswith(end))


class Drained(Logs):
    def test_what_a_drain_cuts_is_not_the_clients_doing(self):
        go = threading.Event()
        self.addCleanup(go.set)

        def half(exchange):
            exchange.send(response(b"x" * 100)[:-50])
            exchange.wait(go)

        def silent(exchange):
            exchange.wait(go)
        self.origin.routes = {"/half": half, "/silent": silent,
                              "/large": fresh(b"y" * (8 << 20))}
        tunnelled = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(tunnelled.close)
        port = tunnelled.getsockname()[1]
        encore = self.encore(timeouts={"drain": "1s"}, forward={"connect_ports": [port]},
                             admission={"policy": "always"}, cache={"max_object": "16MiB",
                                                                   "memory": "256MiB"})
        get(encore.port, self.origin.url("/large"))
        clients = [Client(encore.port) for _ in range(3)]
        large = Client(encore.port, receive_buffer=4096)
        for client in [*clients, large]:
            self.addCleanup(client.close)
        clients[0].request(self.origin.url("/half"))
        clients[0].read_head()
        clients[1].request(self.origin.url("/silent"))
        clients[2].send(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nHost: a\r\n\r\n")
        self.assertEqual(200, clients[2].read_response("CONNECT").status)
        large.request(self.origin.url("/large"))
        large.read_head()
        eventually(lambda: self.origin.count("/silent") == 1, "the origin is asked")
        encore.signal(signal.SIGTERM)
        self.assertEqual(0, encore.wait_for_exit())
        records = {(r["url"], r["outcome"]): r for r in encore.access_records(5)}
        self.assertEqual(5, len(records))
        self.assertIn((self.origin.url("/large"), "drained"), records)
        cut = records[(self.origin.url("/half"), "drained")]
        self.assertEqual((200, 50), (cut["status"], cut["body_bytes"]))
        self.assertEqual(0, records[(self.origin.url("/silent"), "drained")]["status"])
        tunnel = records[(f"127.0.0.1:{port}", "drained")]
        self.assertEqual(200, tunnel["status"])
        self.assertGreater(tunnel["bytes"], 0)

    def test_a_client_that_leaves_during_a_drain_did_so_itself(self):
        go = threading.Event()
        self.addCleanup(go.set)
        self.origin.routes = {"/silent": lambda exchange: exchange.wait(go)}
        encore = self.encore()
        client = Client(encore.port)
        client.request(self.origin.url("/silent"))
        eventually(lambda: self.origin.count("/silent") == 1, "the origin is asked")
        encore.signal(signal.SIGTERM)
        eventually(lambda: not listening(encore.port), "it drains")
        client.reset()
        self.assertEqual(0, encore.wait_for_exit())
        self.assertEqual("client-aborted", encore.access_records(1)[0]["outcome"])


class StandardError(Logs):
    def test_what_a_forward_client_names_and_cannot_be_reached_is_told_at_a_limited_rate(self):
        port = free_port()
        encore = self.encore()
        get(encore.port, f"http://127.0.0.1:{port}/a")
        eventually(lambda: re.search(rf"origin http://127\.0\.0\.1:{port}: .*refused",
                                     encore.output()), "the failure is told")
        with Client(encore.port) as client:
            client.send(f"CONNECT 127.0.0.1:443 HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(502, client.read_response("CONNECT").status)
        eventually(lambda: "origin 127.0.0.1:443: " in encore.output(), "that of a tunnel, too")

        def told():
            return encore.output_path.read_text().count("[warning] origin ")
        names = 400
        before = told()
        began = encore.stats()["uptime_seconds"]
        for number in range(names):
            get(encore.port, f"http://127.{number % 200}.{number // 200}.9:{port}/a")
        seconds = encore.stats()["uptime_seconds"] - began
        self.assertLessEqual(told() - before, 8 * (seconds + 2))
        self.assertLess(told() - before, names)

    def test_one_request_is_followed_step_by_step_with_its_id(self):
        self.origin.default = fresh(b"page")
        encore = self.reverse(log={"level": "debug"})
        for _ in range(3):
            self.ask(encore, "/page?token=hush")
        records = encore.access_records(3)
        wanted = [["GET /page?token=*** of ", "exchange: ask", "a new connection to ", "status 200",
                   "first-request", "ended: first-request"],
                  ["exchange: ask", "a kept connection to ", "second-request", "ended: "],
                  ["ended: hit"]]
        for record, steps in zip(records, wanted):
            text = encore.output_path.read_text()
            lines = [line for line in text.splitlines() if f"request {record['request_id']}: " in line]
            at = 0
            for step in steps:
                found = [i for i, line in enumerate(lines) if step in line and i >= at]
                self.assertTrue(found, f"{step} in {lines}")
                at = found[0]
        self.assertNotIn("hush", text)
        quiet = self.reverse()
        self.ask(quiet, "/page")
        quiet.access_records(1)
        self.assertNotIn("request ", quiet.output())


if __name__ == "__main__":
    unittest.main()
