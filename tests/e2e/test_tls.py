"""TLS to the proxy: names, kinds of keys, versions, schemes, tickets, client certificates, faults."""

import datetime
import resource
import signal
import socket
import ssl
import unittest

import websocket
from client import Client, NoResponse, field
from harness import eventually, free_port, sanitized
from origin import Origin, fresh, response
from tls import Authority, SecureClient, TlsCase, ask_on, subject_of


class Served(TlsCase):
    def test_a_page_is_served_and_hit_by_tls(self):
        self.serve()
        with self.client() as client:
            said = [field(ask_on(client, "/page"), "cache-status") for _ in range(3)]
        self.assertEqual("encore; hit", said[2].partition(";")[0] + ";" + said[2].split(";")[1])
        self.assertEqual(2, self.origin.count("/page"))
        self.assertEqual(1, self.counter("tls_handshakes_total"))

    def test_large_bodies_and_many_requests_in_one_piece_arrive_whole(self):
        self.serve()
        body = bytes(range(256)) * 12345
        self.origin.routes["/large"] = fresh(body)
        self.origin.routes["/empty"] = fresh(b"")
        paths = ["/page", "/empty", "/large"] * 8
        for _ in range(2):  # as they come and as they are stored
            with self.client() as client:
                client.send("".join(f"GET {path} HTTP/1.1\r\nHost: www.example\r\n\r\n"
                                    for path in paths))
                for path in paths:
                    wanted = {"/page": b"page", "/empty": b"", "/large": body}[path]
                    self.assertEqual(wanted, client.read_response().body, path)

    def test_a_body_is_taken_in_and_the_end_of_the_client_is_seen(self):
        self.serve()
        self.origin.routes["/upload"] = lambda e: response(str(len(e.request.body)))
        with self.client() as client:
            client.send("POST /upload HTTP/1.1\r\nHost: www.example\r\n"
                        f"Content-Length: {3 << 20}\r\n\r\n")
            client.send(b"x" * (3 << 20))
            self.assertEqual(str(3 << 20).encode(), client.read_response("POST").body)
            client.sock = client.sock.unwrap()  # close_notify, and that of the proxy
            self.assertTrue(client.at_end())

    def test_another_protocol_goes_through(self):
        self.serve()
        self.origin.routes["/raw"] = websocket.RawSwitch(lambda s: s.sendall(s.recv(10)))
        with self.client() as client:
            client.send("GET /raw HTTP/1.1\r\nHost: www.example\r\nConnection: upgrade\r\n"
                        "Upgrade: raw/1\r\n\r\n")
            self.assertEqual(101, client.read_head().status)
            client.send(b"0123456789")
            self.assertEqual(b"0123456789", client.read_exactly(10))

    def test_origins_and_logs_know_the_scheme(self):
        self.serve(plain={})
        self.ask("/page")
        with Client(self.plain_port) as client:
            ask_on(client, "/page")
        by_tls, plain = self.origin.requests[:2]
        told = [{name.lower(): value for name, value in request.fields}
                for request in (by_tls, plain)]
        self.assertEqual(["https", "http"], [fields["x-forwarded-proto"] for fields in told])
        self.assertIn("proto=https", told[0]["forwarded"])
        self.assertIn("proto=http", told[1]["forwarded"])
        # Two workers may have written them in either order.
        secure, other = sorted(self.proxy.access_records(2), key=lambda record: record["time"])
        self.assertEqual("TLSv1.3", secure["tls_version"])
        self.assertEqual("www.example", secure["tls_server_name"])
        self.assertTrue(secure["tls_cipher"].startswith("TLS_"), secure)
        self.assertFalse(secure["tls_resumed"])
        self.assertNotIn("tls_version", other)
        self.assertNotIn("client_subject", secure)

    def test_what_is_stored_for_https_is_not_for_http_and_both_are_purged_by_either_url(self):
        self.serve(plain={})
        self.origin.routes["/who"] = lambda e: fresh(
            dict((k.lower(), v) for k, v in e.request.fields)["x-forwarded-proto"])

        def bodies():
            with Client(self.plain_port) as client:
                plain = [ask_on(client, "/who").body for _ in range(3)]
            with self.client() as client:
                return plain + [ask_on(client, "/who").body for _ in range(3)]

        for scheme in ("https", "http"):
            before = self.origin.count("/who")
            self.assertEqual([b"http"] * 3 + [b"https"] * 3, bodies())
            self.assertGreaterEqual(self.origin.count("/who") - before, 2)
            hits = self.origin.count("/who")
            bodies()
            self.assertEqual(hits, self.origin.count("/who"))
            status, text = self.proxy.admin(f"/purge?url={scheme}://www.example/who", "POST")
            self.assertEqual(200, status, text)
            self.assertIn("2", text)

    def test_an_unsafe_method_by_https_invalidates_what_was_stored_for_http(self):
        self.serve(plain={})
        self.origin.routes["/page"] = lambda e: (
            response(b"done") if e.request.method == "POST" else fresh(b"page"))
        with Client(self.plain_port) as client:
            for _ in range(3):
                ask_on(client, "/page")
            before = self.origin.count("/page")
            self.ask("/page", method="POST", fields=[("Content-Length", "0")])
            ask_on(client, "/page")
        self.assertEqual(before + 2, self.origin.count("/page"))


class Names(TlsCase):
    def test_each_name_gets_its_certificate_and_its_kind_of_key(self):
        pairs = [self.pair, self.authority.pair("www.example", rsa=True, subject="rsa"),
                 self.authority.pair("exact.wild.example"),
                 self.authority.pair("*.wild.example")]
        self.serve(pairs)
        for name, subject in [("www.example", "CN = www.example"),
                              ("exact.wild.example", "CN = exact.wild.example"),
                              ("other.wild.example", "CN = *.wild.example"),
                              ("OTHER.Wild.Example", "CN = *.wild.example"),
                              ("a.b.wild.example", "CN = www.example"),
                              ("wild.example", "CN = www.example"),
                              ("unknown.example", "CN = www.example"), (None, "CN = www.example")]:
            self.assertEqual(subject, subject_of(self.s_client(name=name)), name)
        for version in ("-tls1_2", "-tls1_3"):
            self.assertEqual("CN = rsa", subject_of(self.s_client(
                version, "-sigalgs", "RSA-PSS+SHA256:RSA+SHA256")))
            self.assertEqual("CN = www.example", subject_of(self.s_client(
                version, "-sigalgs", "ECDSA+SHA256")))

    def test_an_unknown_name_is_refused_where_that_is_wanted(self):
        self.serve(listen={"tls_unknown_name": "refuse"})
        self.assertIn("unrecognized name", self.s_client(name="other.example"))
        self.assertEqual("CN = www.example", subject_of(self.s_client(name=None)))
        self.assertEqual(b"page", self.ask().body)

    def test_old_protocols_are_refused(self):
        self.serve()
        for version in ("-tls1", "-tls1_1"):
            said = self.s_client(version, "-cipher", "ALL@SECLEVEL=0")
            self.assertIn("no peer certificate available", said)
        for version, name in (("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")):
            self.assertIn(f"New, {name}", self.s_client(version))
        # Nothing without forward secrecy.
        self.assertIn("no peer certificate available",
                      self.s_client("-tls1_2", "-cipher", "AES128-SHA"))
        eventually(lambda: self.counter("tls_handshake_failures_total") >= 3, "they are counted")

    def test_only_tls_13_may_be_wanted(self):
        self.serve(listen={"tls_min_version": "1.3"})
        self.assertIn("protocol version", self.s_client("-tls1_2"))
        self.assertIn("New, TLSv1.3", self.s_client("-tls1_3"))

    def test_alpn_is_answered_and_what_is_not_spoken_refused(self):
        self.serve()
        self.assertIn("ALPN protocol: h2", self.s_client("-alpn", "http/1.1,h2"))
        self.assertIn("ALPN protocol: http/1.1", self.s_client("-alpn", "h3,http/1.1"))
        self.assertIn("no application protocol", self.s_client("-alpn", "h3"))
        self.assertIn("No ALPN negotiated", self.s_client())

    def test_http_2_is_not_offered_where_it_is_off(self):
        self.serve(listen={"http2": False})
        self.assertIn("ALPN protocol: http/1.1", self.s_client("-alpn", "h2,http/1.1"))
        self.assertIn("no application protocol", self.s_client("-alpn", "h2"))

    def test_a_stapled_response_is_shown(self):
        self.serve()
        self.assertIn("OCSP response: no response sent", self.s_client("-status"))
        index = self.directory / "index.txt"
        serial = self.openssl("x509", "-in", self.pair["certificate"], "-noout",
                              "-serial").strip().partition("=")[2]
        index.write_text(f"V\t991231235959Z\t\t{serial}\tunknown\t/CN=www.example\n")
        staple = self.directory / "staple.der"
        self.openssl("ocsp", "-index", index, "-rsigner", self.authority.certificate, "-rkey",
                     self.authority.key, "-CA", self.authority.certificate, "-issuer",
                     self.authority.certificate, "-cert", self.pair["certificate"], "-ndays", 1,
                     "-respout", staple, "-noverify")
        self.proxy.sections["listen"][0]["tls"] = [{**self.pair, "ocsp": str(staple)}]
        self.proxy.write_config()
        self.proxy.signal(signal.SIGHUP)
        eventually(lambda: self.counter("reloads_total") == 1, "the reload is done")
        self.assertIn("OCSP Response Status: successful", self.s_client("-status"))
        self.assertIn("Cert Status: good", self.s_client("-status"))
        self.proxy.sections["listen"][0]["tls"] = [
            {**self.authority.pair("www.example"), "ocsp": str(staple)}]
        self.assertIn("an OCSP response for another certificate", self.check_config())

    def openssl(self, *arguments):
        return self.run_client([self.authority.openssl, *arguments]).stdout.decode()


class Tickets(TlsCase):
    def resumed(self, context, session, port=None):
        with SecureClient(port or self.port, context, "www.example", session=session) as client:
            ask_on(client, "/page")
            return client.sock.session_reused, client.sock.session

    def test_tickets_are_taken_up_over_reloads_and_new_certificates(self):
        self.serve()
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            context = self.authority.trusting(maximum_version=version)
            reused, session = self.resumed(context, None)
            self.assertFalse(reused)
            self.proxy.sections["listen"][0]["tls"] = [self.authority.pair("www.example")]
            self.proxy.write_config()
            done = self.counter("reloads_total")
            self.proxy.signal(signal.SIGHUP)
            eventually(lambda: self.counter("reloads_total") == done + 1, "the reload is done")
            for _ in range(3):
                reused, session = self.resumed(context, session)
                self.assertTrue(reused)
        self.assertEqual(6, self.counter("tls_resumed_total"))
        records = self.proxy.access_records(8)
        self.assertEqual(6, sum(record["tls_resumed"] for record in records))

    def test_one_ticket_is_given(self):
        self.serve()
        said = self.s_client("-tls1_3", "-msg", "-ign_eof",
                             request=b"GET / HTTP/1.0\r\nHost: www.example\r\n\r\n")
        self.assertEqual(1, said.count("NewSessionTicket"))
        self.assertNotIn("Max Early Data: 1", said)

    def test_machines_that_share_keys_take_up_each_others_tickets(self):
        keys = self.directory / "tickets"
        line = self.run_client([self.authority.openssl, "rand", "-hex", "80"]).stdout.decode()
        keys.write_text(line)
        keys.chmod(0o600)
        self.serve(listen={"tls_ticket_file": str(keys)})
        first, first_proxy = self.port, self.proxy
        self.serve(listen={"tls_ticket_file": str(keys)})
        context = self.authority.trusting()
        _, session = self.resumed(context, None, first)
        reused, session = self.resumed(context, session)
        self.assertTrue(reused)
        # A new key goes in front; what the old one has encrypted is still understood.
        keys.write_text(line.replace(line[0], "f" if line[0] != "f" else "0") + line)
        self.proxy.signal(signal.SIGHUP)
        eventually(lambda: self.counter("reloads_total") == 1, "the reload is done")
        reused, session = self.resumed(context, session)
        self.assertTrue(reused)
        reused, _ = self.resumed(context, session, first)
        self.assertFalse(reused)
        keys.chmod(0o644)
        self.assertIn("listen.0.tls_ticket_file: " + str(keys), self.check_config())
        self.assertTrue(first_proxy.ready())


class ClientCertificates(TlsCase):
    def setUp(self):
        super().setUp()
        self.own = self.authority.pair("me.example", subject="Somebody, Known")
        self.stranger = Authority(self, "strangers").pair("you.example")

    def verify(self, how, **listen):
        return {"tls_client_verify": how, "tls_client_ca": str(self.authority.certificate),
                **listen}

    def showing(self, pair):
        context = self.authority.trusting()
        context.load_cert_chain(pair["certificate"], pair["key"])
        return context

    def refused(self, context):
        """By TLS 1.3 a client learns it with the first read."""
        with self.assertRaises((ssl.SSLError, ConnectionError)) as caught:
            with self.client(context=context) as client:
                client.send("GET / HTTP/1.1\r\nHost: www.example\r\n\r\n")
                if not client.sock.recv(1):
                    raise ConnectionError("ended")
        return str(caught.exception)

    def test_who_must_show_a_certificate_gets_in_with_it_alone(self):
        self.serve(listen=self.verify("require"))
        self.refused(self.authority.trusting())
        self.refused(self.showing(self.stranger))
        self.assertEqual(b"page", self.ask(context=self.showing(self.own)).body)
        record = self.proxy.access_records(1)[0]
        self.assertEqual("CN=Somebody\\, Known", record["client_subject"])
        self.assertEqual(64, len(record["client_fingerprint"]))
        self.assertEqual(1, self.origin.count())

    def test_who_may_show_one_is_told_apart_and_nobody_can_forge_it(self):
        self.serve(listen=self.verify("request", tls_client_field="X-Client-Cert"), plain={})
        forged = [("X-Client-Cert", "CN=Somebody"), ("x_client-cert", "CN=Somebody"),
                  ("X-CLIENT-CERT", "CN=Another")]
        self.ask("/1", context=self.showing(self.own), fields=forged)
        self.ask("/2", fields=forged)
        with Client(self.plain_port) as client:
            ask_on(client, "/3", fields=forged)
        told = [[value for name, value in request.fields
                 if name.lower().replace("_", "-") == "x-client-cert"]
                for request in self.origin.requests]
        self.assertEqual([["CN=Somebody\\, Known"], [], []], told)
        self.refused(self.showing(self.stranger))

    def test_a_ticket_is_good_for_no_longer_than_the_certificate(self):
        self.serve(listen=self.verify("require"))
        now = datetime.datetime.now(datetime.timezone.utc)
        end = now.replace(microsecond=0) + datetime.timedelta(seconds=6)
        context = self.showing(self.authority.pair("brief.example", end=end))
        session, reused = None, []

        def resume():
            nonlocal session
            with SecureClient(self.port, context, "www.example", session=session) as client:
                self.assertEqual(200, ask_on(client, "/page").status)
                session = client.sock.session
                reused.append(client.sock.session_reused)

        def refused():
            try:
                resume()
            except (ssl.SSLError, ConnectionError, NoResponse):
                return True
            return False
        resume()
        eventually(refused, "the certificate is over")
        self.assertGreaterEqual(datetime.datetime.now(datetime.timezone.utc), end)
        self.assertEqual([False] + [True] * (len(reused) - 1), reused)

    def test_what_an_origin_selects_by_the_certificate_is_nobody_elses(self):
        self.serve(listen=self.verify("request", tls_client_field="X-Client-Cert"))
        self.origin.routes["/mine"] = lambda e: fresh(
            dict(e.request.fields).get("x-client-cert", "nobody"), Vary="X-Client-Cert")
        for _ in range(3):
            self.assertEqual(b"CN=Somebody\\, Known",
                             self.ask("/mine", context=self.showing(self.own)).body)
            self.assertEqual(b"nobody", self.ask("/mine").body)

    def test_a_ticket_does_not_lead_around_a_check_that_a_reload_has_brought(self):
        self.serve()
        context = self.authority.trusting(maximum_version=ssl.TLSVersion.TLSv1_2)
        with self.client(context=context) as client:
            ask_on(client, "/")
            session = client.sock.session
        self.proxy.sections["listen"][0].update(self.verify("require"))
        self.proxy.write_config()
        self.proxy.signal(signal.SIGHUP)
        eventually(lambda: self.counter("reloads_total") == 1, "the reload is done")
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.client(context=context, session=session)


class Redirects(TlsCase):
    def test_who_asks_by_http_is_sent_to_https(self):
        self.serve(plain={"redirect_https": True, "trusted_proxies": ["127.0.0.2"]})

        def ask(path, method="GET", fields=(), host="www.Example:8080", source=None):
            with Client(self.plain_port, source=source) as client:
                return ask_on(client, path, host, method, fields)

        answer = ask("/a%20b/../c?x=1&y=%2f")
        self.assertEqual((301, "https://www.example/a%20b/../c?x=1&y=%2f"),
                         (answer.status, field(answer, "location")))
        self.assertEqual(308, ask("/", "POST", [("Content-Length", "0")]).status)
        self.assertEqual(301, ask("/", "HEAD").status)
        self.assertEqual("https://[::1]/", field(ask("/", host="[::1]:80"), "location"))
        said = [("X-Forwarded-For", "9.9.9.9"), ("X-Forwarded-Proto", "https")]
        self.assertEqual(200, ask("/", fields=said, source="127.0.0.2").status)
        self.assertEqual(301, ask("/", fields=said).status)
        with Client(self.plain_port) as client:
            client.send("GET / HTTP/1.0\r\n\r\n")
            self.assertEqual(400, client.read_response().status)
        self.assertEqual(1, self.origin.count())

    def test_the_port_of_https_may_be_another(self):
        self.serve(plain={"redirect_https": True, "redirect_https_port": 8443})
        with Client(self.plain_port) as client:
            self.assertEqual("https://www.example:8443/x",
                             field(ask_on(client, "/x"), "location"))

    def test_a_rule_sends_one_listener_to_https_and_another_says_strict_transport_security(self):
        plain = free_port()
        self.serve(rule=[{"listener": f"127.0.0.1:{plain}",
                          "redirect": "https://{host}{path}{query}"},
                         {"response_set": "Strict-Transport-Security: max-age=31536000"}],
                   plain={"address": f"127.0.0.1:{plain}"})
        with Client(plain) as client:
            answer = ask_on(client, "/x?y")
        self.assertEqual("https://www.example/x?y", field(answer, "location"))
        for _ in range(3):
            self.assertEqual("max-age=31536000",
                             field(self.ask("/x?y"), "strict-transport-security"))


class Faults(TlsCase):
    def test_a_pair_that_is_wrong_is_refused_with_its_file_and_reason(self):
        self.serve()
        other = self.authority.pair("other.example")
        old = self.authority.pair("old.example", days=-1)
        between = self.authority.pair(subject="between", authority=True)
        leaf = self.authority.pair("leaf.example", signer=between)
        right = self.authority.chain("right.pem", leaf["certificate"], between["certificate"])
        wrong = self.authority.chain("wrong.pem", leaf["certificate"], self.authority.certificate,
                                     between["certificate"])
        last = self.authority.chain("last.pem", between["certificate"], leaf["certificate"])
        cases = [
            ({**self.pair, "key": other["key"]}, other["key"], "does not match the certificate"),
            (old, old["certificate"], "has expired at"),
            ({**leaf, "certificate": wrong}, wrong, "the chain is out of order"),
            ({**leaf, "certificate": last}, last, "that of the key is certificate 2"),
            ({**leaf, "certificate": "/nowhere"}, "/nowhere", "cannot be read"),
            ({**leaf, "certificate": leaf["key"]}, leaf["key"], "contains no certificate"),
        ]
        listen = self.proxy.sections["listen"][0]
        for number, (pair, file, reason) in enumerate(cases, 1):
            listen["tls"] = [self.pair, pair]
            said = self.check_config()
            self.assertIn(f"{self.proxy.config_path}:", said)
            self.assertIn("listen.0.tls: ", said)
            self.assertIn(f'"{file}"', said)
            self.assertIn(reason, said)
            self.proxy.signal(signal.SIGHUP)
            eventually(lambda: self.counter("reload_failures_total") == number, "it is refused")
            self.assertIn(reason, self.proxy.output())
            self.assertEqual(b"page", self.ask().body)
        listen["tls"] = [{**leaf, "certificate": right}]
        self.assertIn("note: listen", self.check_config(refused=False))

    def test_a_certificate_that_ends_soon_is_warned_of_and_measured(self):
        long = self.authority.pair("*.long.example", days=60)
        end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(hours=47.5)
        soon = self.authority.pair("soon.example", end=end)
        self.serve([self.pair, long, soon])
        found = {name: value for name, value in self.proxy.metrics().items()
                 if name.startswith("encore_tls_certificate_expiry_seconds")}
        self.assertEqual(3, len(found))
        for name, value in found.items():
            self.assertIn(f'listener="127.0.0.1:{self.port}"', name)
            days = 60 if 'names="*.long.example"' in name else 2
            self.assertGreater(value, (days - 1) * 86400)
            self.assertLessEqual(value, days * 86400)
        said = self.proxy.output()
        self.assertIn("for soon.example ends in 47 hours", said)
        # Its life of two days has just begun: it is not to be renewed yet.
        self.assertNotIn("www.example ends", said)
        self.assertNotIn("long.example", said)


class Memory(TlsCase):
    @unittest.skipIf(sanitized(), "a sanitizer takes memory of its own")
    def test_an_idle_connection_takes_16_kib_at_most(self):
        resource.setrlimit(resource.RLIMIT_NOFILE,
                           (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
        self.serve()
        context = self.authority.trusting()
        held = []

        def hold(count):
            for _ in range(count):
                held.append(self.client(context=context))
                self.assertEqual(b"page", ask_on(held[-1], "/page").body)
            return self.proxy.resident_bytes()

        before = hold(300)  # memory that is allocated once is there by then
        taken = hold(1000) - before
        for client in held:
            client.close()
        self.assertLess(taken / 1000, 16 * 1024)


class Sockets(TlsCase):
    def test_a_unix_socket_may_speak_tls(self):
        path = self.directory / "tls.sock"
        self.serve(plain={"address": f"unix:{path}", "tls": [self.pair]})
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(30)
            sock.connect(str(path))
            with self.authority.trusting().wrap_socket(sock, server_hostname="www.example") as by:
                by.sendall(b"GET / HTTP/1.0\r\nHost: www.example\r\n\r\n")
                said = b""
                while part := by.recv(65536):
                    said += part
        self.assertTrue(said.endswith(b"page"), said)
        self.assertEqual("https", dict(self.origin.requests[0].fields)["x-forwarded-proto"])

    def test_a_proxy_header_comes_before_tls(self):
        self.serve(listen={"proxy_protocol": True})
        for header in (b"PROXY TCP4 9.8.7.6 1.2.3.4 1000 443\r\n",):
            for pieces in (1, 3, 1000):
                with socket.create_connection(("127.0.0.1", self.port), timeout=30) as sock:
                    for at in range(0, len(header), pieces):
                        sock.sendall(header[at:at + pieces])
                    context = self.authority.trusting()
                    with context.wrap_socket(sock, server_hostname="www.example") as by:
                        by.sendall(b"GET / HTTP/1.1\r\nHost: www.example\r\n\r\n")
                        self.assertTrue(by.recv(65536).startswith(b"HTTP/1.1 200"))
        self.assertEqual({"9.8.7.6"}, {r["client"] for r in self.proxy.access_records(3)})
        told = dict(self.origin.requests[0].fields)
        self.assertEqual(("9.8.7.6", "https"),
                         (told["x-forwarded-for"], told["x-forwarded-proto"]))
        with self.assertRaises((ssl.SSLError, ConnectionError)):
            self.client()
        eventually(lambda: self.counter("proxy_headers_refused_total") == 1, "it is refused")


class ForwardProxy(TlsCase):
    def test_a_forward_proxy_by_tls_carries_requests_and_tunnels(self):
        self.serve(listen={"mode": "forward"})
        self.proxy_url = f"https://www.example:{self.port}"
        inner = Authority(self, "inner")
        pair = inner.pair("127.0.0.1.example")
        secure = self.secure_origin(pair)
        with self.client() as client:
            for _ in range(3):
                client.send(f"GET {self.origin.url('/x')} HTTP/1.1\r\n"
                            f"Host: 127.0.0.1:{self.origin.port}\r\n\r\n")
                answer = client.read_response()
            self.assertIn("hit", field(answer, "cache-status"))
            client.send(f"CONNECT 127.0.0.1:{secure.port} HTTP/1.1\r\n"
                        f"Host: 127.0.0.1:{secure.port}\r\n\r\n")
            self.assertEqual(200, client.read_response("CONNECT").status)
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            within = inner.trusting().wrap_bio(incoming, outgoing,
                                               server_hostname="127.0.0.1.example")
            sent = False
            body = b""
            while b"inner" not in body:
                try:
                    if not sent:
                        within.do_handshake()
                        within.write(b"GET /in HTTP/1.1\r\nHost: x\r\n\r\n")
                        sent = True
                    body += within.read(65536)
                except ssl.SSLWantReadError:
                    client.send(outgoing.read())
                    incoming.write(client.sock.recv(65536))
            self.assertIn(b"200 OK", body)

    def secure_origin(self, pair):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair["certificate"], pair["key"])
        origin = Origin(self, {"/in": response(b"inner")}, tls=context)
        self.proxy.sections["forward"] = {"connect_ports": [origin.port]}
        self.proxy.write_config()
        self.proxy.signal(signal.SIGHUP)
        eventually(lambda: self.counter("reloads_total") == 1, "the reload is done")
        return origin
