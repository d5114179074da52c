"""CONNECTs that are decrypted: what clients get inside, what is shared, what holds there."""

import base64
import os
import pathlib
import ssl
import subprocess
import threading
import unittest
import urllib.parse

import websocket
from client import Client, field
from harness import clean_environment, eventually, free_port
from intercept import HOST, InterceptCase
from origin import Origin, fresh, response
from test_logins import BCRYPT
from tls import Authority
from websocket import TEXT, frame, handshake_fields


class Served(InterceptCase):
    def test_the_second_client_costs_the_origin_nothing(self):
        origin = self.start_origin({"/a": fresh(b"one package")})
        encore = self.proxy(origin)
        first = self.inside(encore, origin)
        answer = first.get("/a")
        self.assertEqual((200, b"one package"), (answer.status, answer.body))
        self.assertIn("fwd=uri-miss", field(answer, "Cache-Status"))
        connections = origin.connections
        second = self.inside(encore, origin)
        self.assertEqual("encore on " + os.uname().nodename, second.issuer())
        answer = second.get("/a")
        self.assertEqual(b"one package", answer.body)
        self.assertIn("encore; hit", field(answer, "Cache-Status"))
        # With nobody there either: no address is asked for, and nobody connected to.
        asked = len(self.names.asked)
        origin.stop()
        third = self.inside(encore, origin)
        for _ in range(3):
            self.assertEqual(b"one package", third.get("/a").body)
        self.assertEqual(asked, len(self.names.asked))
        self.assertEqual((1, connections), (origin.count(), origin.connections))

    def test_what_is_stored_is_shared_with_absolute_form(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        url = f"https://{HOST}:{origin.port}"
        self.assertEqual(200, self.inside(encore, origin).get("/inside").status)
        with Client(encore.port) as client:
            self.assertIn("hit", field(client.ask(url + "/inside"), "Cache-Status"))
            self.assertNotIn("hit", field(client.ask(url + "/outside"), "Cache-Status"))
        answer = self.inside(encore, origin).get("/outside")
        self.assertIn("hit", field(answer, "Cache-Status"))
        self.assertEqual(2, origin.count())

    def test_many_requests_of_one_connection_come_in_their_order(self):
        routes = {f"/{n}": fresh(bytes([65 + n]) * (1 << (2 * n))) for n in range(10)}
        origin = self.start_origin(routes)
        encore = self.proxy(origin)
        client = self.inside(encore, origin)
        for _ in range(2):
            client.send(b"".join(f"GET /{n} HTTP/1.1\r\nHost: {client.authority}\r\n\r\n".encode()
                                 for n in range(10)))
            for n in range(10):
                self.assertEqual(bytes([65 + n]) * (1 << (2 * n)), client.read_response().body)
        self.assertEqual(10, origin.count())

    def test_two_clients_at_once_share_one_answer(self):
        go_on = threading.Event()

        def slow(exchange):
            exchange.wait(go_on)
            return fresh(b"shared" * 1000)

        origin = self.start_origin({"/slow": slow})
        encore = self.proxy(origin)
        clients = [self.inside(encore, origin, source=f"127.0.0.{n + 2}") for n in range(4)]
        for client in clients:
            client.send(f"GET /slow HTTP/1.1\r\nHost: {client.authority}\r\n\r\n")
        eventually(lambda: origin.count() == 1, "one asks")
        go_on.set()
        for client in clients:
            self.assertEqual(b"shared" * 1000, client.read_response().body)
        self.assertEqual(1, origin.count())

    def test_bodies_go_both_ways(self):
        def echo(exchange):
            return response(exchange.request.body)

        origin = self.start_origin({"/echo": echo})
        client = self.inside(self.proxy(origin), origin)
        for size in (1, 16383, 16384, 16385, 1_000_003):
            body = os.urandom(size)
            self.assertEqual(body, client.get("/echo", "POST", body=body).body)

    def test_private_answers_are_for_one(self):
        origin = self.start_origin({
            "/private": response(b"mine", Cache_Control="private, max-age=600"),
            "/cookie": fresh(b"ok", Set_Cookie="session=1")})
        encore = self.proxy(origin)
        for _ in range(2):
            client = self.inside(encore, origin)
            self.assertEqual(b"mine", client.get("/private").body)
            client.get("/authorized", fields=[("Authorization", "Basic eA==")])
            client.get("/cookie")
        self.assertEqual(2, origin.count("/private"))
        self.assertEqual(2, origin.count("/authorized"))
        self.assertEqual("Basic eA==", dict(origin.last("/authorized").fields)["authorization"])

    def test_no_other_protocol_is_offered(self):
        origin = self.start_origin({"/a": fresh(b"a", Alt_Svc='h3=":443"', X_Kept="yes")})
        encore = self.proxy(origin)
        for _ in range(2):
            answer = self.inside(encore, origin).get("/a")
            self.assertIsNone(field(answer, "Alt-Svc"))
            self.assertEqual("yes", field(answer, "X-Kept"))
        answer = self.inside(encore, origin).get("/pass", fields=[("Cache-Control", "no-store")])
        self.assertIsNone(field(answer, "Alt-Svc"))

    def test_websocket_goes_through(self):
        def talk(exchange):
            websocket.answer_handshake(exchange)
            while True:
                kind, data = websocket.read_frame(websocket.exact_reader(exchange.sock))
                exchange.send(frame(data[::-1], kind))

        origin = self.start_origin({"/socket": talk})
        encore = self.proxy(origin)
        client = self.inside(encore, origin)
        lines = [f"{name}: {value}\r\n" for name, value in handshake_fields()]
        client.send(f"GET /socket HTTP/1.1\r\nHost: {client.authority}\r\n{''.join(lines)}\r\n")
        self.assertEqual(101, client.read_head().status)
        for text in (b"hello", b"x" * 70000):
            client.send(frame(text, TEXT, masked=True))
            self.assertEqual((TEXT, text[::-1]), websocket.read_frame(client.read_exactly))


class Origins(InterceptCase):
    def refused(self, context, name=HOST):
        origin = Origin(self, tls=context, default=fresh(b"never seen"))
        encore = self.proxy(origin)
        answer = self.inside(encore, origin).get("/")
        self.assertEqual(502, answer.status)
        self.assertIn("detail=tls-verify", field(answer, "Cache-Status"))
        self.assertEqual(0, origin.count())
        return answer.body.decode()

    def test_a_self_signed_origin_is_502(self):
        key, certificate = self.directory / "self.key", self.directory / "self.pem"
        self.public._run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                         "-nodes", "-days", "2", "-subj", f"/CN={HOST}", "-addext",
                         f"subjectAltName=DNS:{HOST}", "-keyout", key, "-out", certificate)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.assertIn("the origin's certificate is invalid: self-signed certificate",
                      self.refused(context))

    def test_the_certificate_of_another_name_is_502(self):
        self.assertIn("hostname mismatch", self.refused(self.public.server_context("other.example")))

    def test_an_expired_certificate_is_502(self):
        certificate, key = self.public.issue(HOST)
        expired = self.directory / "expired.pem"
        request = self.directory / f"{HOST}.csr"
        self.public._run("x509", "-req", "-in", request, "-CA", self.public.certificate, "-CAkey",
                         self.public.key, "-CAcreateserial", "-days", "-1", "-extfile",
                         self.directory / f"{HOST}.ext", "-out", expired)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(expired, key)
        self.assertIn("certificate has expired", self.refused(context))

    def test_an_origin_that_is_ours_is_never_reached(self):
        # The name leads to our own listener: inside it is what it is for any request.
        # A port that the system gave would be free at one of the two addresses alone.
        origin = self.start_origin(port=free_port())
        port = free_port()
        encore = self.proxy(origin, listen=[
            {"address": f"127.0.0.1:{port}", "mode": "forward"},
            {"address": f"127.0.0.2:{origin.port}", "mode": "forward"}])
        self.names.answers[HOST] = [["127.0.0.2"]]
        answer = self.inside(encore, origin).get("/")
        self.assertEqual(403, answer.status)
        self.assertIn("detail=own-listener", field(answer, "Cache-Status"))


class Rules(InterceptCase):
    def test_rules_hold_inside(self):
        origin = self.start_origin({"/a/x": fresh(b"x"), "/b/y": response(b"y")})
        encore = self.proxy(origin, rule=[
            {"name": "secret", "host": HOST, "path": "/secret/*", "deny": 403},
            {"name": "kept", "host": HOST, "path": "/b/*", "fresh": "1h"}])
        client = self.inside(encore, origin)
        for _ in range(2):
            answer = client.get("/b/y")
        self.assertIn("hit", field(answer, "Cache-Status"))
        self.assertEqual(403, client.get("/secret/x").status)
        self.assertEqual(1, origin.count())

    def test_lists_of_the_listener_hold_inside(self):
        origin = self.start_origin()
        port = free_port()
        encore = self.proxy(origin, listen=[
            {"address": f"127.0.0.1:{port}", "mode": "forward", "deny_paths": ["/secret/*"],
             "deny_hosts": ["bad.many.example"]}])
        client = self.inside(encore, origin)
        self.assertEqual(200, client.get("/public").status)
        answer = client.get("/secret/x")
        self.assertEqual(403, answer.status)
        self.assertEqual(1, origin.count())
        with Client(encore.port) as other:
            other.send(f"CONNECT bad.many.example:{origin.port} HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(403, other.read_response("CONNECT").status)

    def test_limits_hold_inside(self):
        origin = self.start_origin()
        encore = self.proxy(origin, limit=[{"rate": 0.001, "burst": 4}])
        client = self.inside(encore, origin)  # one of the four
        self.assertEqual([200, 200, 200, 429], [client.get("/").status for _ in range(4)])

    def test_who_logged_in_at_the_connect_asks_inside(self):
        users = self.directory / "users"
        users.write_text(f"ann:{BCRYPT}\n")
        origin = self.start_origin()
        port = free_port()
        encore = self.proxy(origin, listen=[
            {"address": f"127.0.0.1:{port}", "mode": "forward", "users_file": str(users)}])
        login = ("Proxy-Authorization", "Basic " + base64.b64encode(b"ann:secret").decode())
        client = self.inside(encore, origin)
        self.assertEqual(407, client.connected.status)
        client = self.inside(encore, origin, fields=[login])
        for _ in range(3):
            self.assertEqual(200, client.get("/").status)
        # Nothing of it is said to the origin, nor what the client says of it inside.
        client.get("/told", fields=[login])
        for request in origin.requests:
            self.assertNotIn("proxy-authorization", dict(request.fields))

    def test_who_was_not_asked_to_log_in_connects_again_when_he_is(self):
        users = self.directory / "users"
        users.write_text(f"ann:{BCRYPT}\n")
        origin = self.start_origin()
        encore = self.proxy(origin)
        client = self.inside(encore, origin)
        self.assertEqual(200, client.get("/").status)
        encore.sections["listen"][0]["users_file"] = str(users)
        encore.write_config()
        encore.signal(1)
        eventually(lambda: encore.stats()["reloads"] == 1, "it is reloaded")
        # The connection of before ends, and the next one has to log in.
        self.assertTrue(client.at_end())
        self.assertEqual(407, self.inside(encore, origin).connected.status)

    def test_what_a_client_says_of_itself_inside_is_its_own_word(self):
        origin = self.start_origin()
        port = free_port()
        encore = self.proxy(origin, listen=[
            {"address": f"127.0.0.1:{port}", "mode": "forward", "forwarded": "x-forwarded",
             "trusted_proxies": ["127.0.0.1"]}])
        # The proxy in front of us names its client in its own CONNECT.
        client = self.inside(encore, origin, fields=[("X-Forwarded-For", "10.1.2.3")])
        if client.connected.status == 403:  # 10.1.2.3 may not use us at all: nor inside
            client = self.inside(encore, origin)
        client.get("/", fields=[("X-Forwarded-For", "10.9.9.9"), ("X-Forwarded-Proto", "http")])
        told = dict(origin.last("/").fields)
        self.assertNotIn("10.9.9.9", told["x-forwarded-for"])
        self.assertEqual("https", told["x-forwarded-proto"])


class Explained(InterceptCase):
    """`encore explain` says by which way an https URL is asked for."""

    def said(self, encore, url, **more):
        query = urllib.parse.urlencode({"url": url, "format": "text", **more})
        status, text = encore.admin("/api/explain?" + query)
        self.assertEqual(200, status, text)
        lines = [line for line in text.splitlines() if line.startswith("connect ")]
        return lines[0].split(None, 1)[1] if lines else ""

    def test_each_reason_is_the_one_that_holds(self):
        origin = self.start_origin()
        secure, plain = free_port(), free_port()
        pair = self.public.issue(HOST)
        encore = self.proxy(
            origin, intercept={"never": ["bank.many.example"]},
            listen=[{"address": f"127.0.0.1:{plain}", "mode": "forward"},
                    {"address": f"127.0.0.1:{secure}", "mode": "forward",
                     "tls": [{"certificate": str(pair[0]), "key": str(pair[1])}]}],
            rule=[{"name": "away", "host": "away.many.example", "deny": 403}])
        port = origin.port
        for host, what in (
                (HOST, "is decrypted: the request arrives inside it"),
                ("bank.many.example", "passes unread: never"),
                ("else.example", "passes unread: not-named"),
                ("192.0.2.1", "passes unread: address"),
                ("[2001:db8::1]", "passes unread: address"),
                ("away.many.example", "is refused: rule-away")):
            with self.subTest(host):
                self.assertEqual(f"{host}:{port} {what}",
                                 self.said(encore, f"https://{host}:{port}/"))
        self.assertEqual(f"{HOST}:{plain} is refused by its port or destination",
                         self.said(encore, f"https://{HOST}:{plain}/"))
        self.assertEqual("", self.said(encore, f"http://{HOST}:{port}/"))
        self.assertEqual(f"{HOST}:{port} passes unread: the listener has TLS",
                         self.said(encore, f"https://{HOST}:{port}/",
                                   listener=f"127.0.0.1:{secure}"))
        # A client's refusals count for it alone.
        with self.assertRaises(ssl.SSLError):
            self.inside(encore, origin, self.unprepared())
        eventually(lambda: encore.metrics()["encore_intercepts_rejected_total"] == 1, "it is noted")
        self.assertEqual(f"{HOST}:{port} passes unread: client-rejects",
                         self.said(encore, f"https://{HOST}:{port}/"))
        self.assertEqual(f"{HOST}:{port} is decrypted: the request arrives inside it",
                         self.said(encore, f"https://{HOST}:{port}/", client="127.0.0.2"))

    def test_the_configuration_alone_says_it_too(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        ended = subprocess.run(
            [encore.program, "--config", encore.config_path, "--check-config", "--url",
             f"https://{HOST}:{origin.port}/a"], text=True, capture_output=True, timeout=120,
            env=clean_environment())
        self.assertEqual(0, ended.returncode, ended.stderr)
        self.assertIn(f"connect         {HOST}:{origin.port} is decrypted", ended.stdout)


class Operated(InterceptCase):
    def test_the_log_says_what_was_decrypted(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        client = self.inside(encore, origin)
        client.get("/a?b=c")
        client.get("/a?b=c")
        client.get("/x", host="other.example")
        client.close()
        records = encore.access_records(4)
        self.assertEqual("intercepted", records[0]["outcome"])
        self.assertEqual("CONNECT", records[0]["method"])
        self.assertNotIn("intercepted", records[0])
        url = f"https://{HOST}:{origin.port}/a?b=c"
        self.assertEqual([url, url], [record["url"] for record in records[1:3]])
        self.assertEqual([True] * 3, [record["intercepted"] for record in records[1:]])
        self.assertEqual([("TLSv1.3", HOST)] * 3, [(record["tls_version"], record["tls_server_name"])
                                                   for record in records[1:]])
        self.assertEqual(421, records[3]["status"])
        metrics = encore.metrics()
        self.assertEqual(1, metrics["encore_intercepts_total"])
        self.assertEqual(0, metrics["encore_intercepts_spliced_total"])

    def test_the_certificate_is_given_to_who_asks_and_the_key_never(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        for method in ("GET", "HEAD"):
            with Client(encore.port) as client:
                client.send(f"{method} /ca.crt HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                answer = client.read_response(method)
                self.assertEqual(200, answer.status)
                self.assertEqual("application/x-x509-ca-cert", field(answer, "Content-Type"))
        with Client(encore.port) as client:
            client.send("GET /ca.crt HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
            body = client.read_response().body
            self.assertEqual((self.home / "ca.crt").read_bytes(), body)
        # A request to an origin by that path belongs to the origin.
        self.assertEqual(b"packages", self.inside(encore, origin).get("/ca.crt").body)
        for path in ("/ca.key", "/ca.crt/", "/x"):
            with Client(encore.port) as client:
                client.send(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                self.assertEqual(400, client.read_response().status)

    def serial(self, client):
        return client.sock.getpeercert()["serialNumber"]

    def test_a_reload_breaks_nothing(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        client = self.inside(encore, origin)
        self.assertEqual(200, client.get("/").status)
        self.names.answers["a.many.example"] = [["127.0.0.1"]]
        former = self.inside(encore, origin, host="a.many.example")
        self.assertEqual(502, former.get("/").status)  # the origin's certificate is for another
        encore.sections["intercept"]["hosts"] = [HOST]
        encore.write_config()
        encore.signal(1)
        either = self.trusting()
        either.load_verify_locations(self.public.certificate)
        either.check_hostname = False

        def is_spliced():
            other = self.inside(encore, origin, either, host="a.many.example")
            other.get("/")
            return other.issuer() == "encore test CA"

        eventually(is_spliced, "the reload is in force")
        self.assertEqual(200, client.get("/").status)
        # The proxy reads nothing more from a host that is no longer listed, and its client is
        # notified.
        answer = former.get("/again")
        self.assertEqual(421, answer.status)
        self.assertIn("detail=no-longer-decrypted", field(answer, "Cache-Status"))
        self.assertTrue(former.at_end())
        # The same authority: the same certificate.
        self.assertEqual(self.serial(client), self.serial(self.inside(encore, origin)))

    def test_a_reload_with_a_key_that_others_can_read_is_refused(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        (self.home / "ca.key").chmod(0o644)
        encore.signal(1)
        eventually(lambda: "ca.key: others can read or write it" in encore.output(), "why")
        self.assertEqual(200, self.inside(encore, origin).get("/").status)

    def test_a_renewed_authority_takes_effect_at_a_reload(self):
        origin = self.start_origin()
        encore = self.proxy(origin)
        old = self.trusting()
        client = self.inside(encore, origin)
        self.ca("renew", self.home, "--days", "20")
        encore.signal(1)
        eventually(lambda: self.serial(self.inside(encore, origin)) != self.serial(client), "it is")
        # A client with the old certificate accepts new signatures, for the key is the same.
        self.assertEqual(200, self.inside(encore, origin, old).get("/").status)

    def test_an_authority_below_a_root_is_shown_with_what_signs(self):
        root = Authority(self)
        middle = root.pair(subject="middle", authority=True)
        lower = root.pair(subject="lower", signer=middle, authority=True)
        self.home.mkdir()
        (self.home / "ca.key").write_bytes(pathlib.Path(lower["key"]).read_bytes())
        (self.home / "ca.key").chmod(0o600)
        certificates = [lower["certificate"], middle["certificate"], root.certificate]
        (self.home / "ca.crt").write_text("".join(pathlib.Path(each).read_text()
                                                  for each in certificates))
        origin = self.start_origin()
        encore = self.proxy(origin)
        client = self.inside(encore, origin, root.trusting())
        self.assertEqual(200, client.get("/").status)
        self.assertEqual("lower", client.issuer())
        # Below a root that clients have alone: a gap is found before anybody meets it.
        (self.home / "ca.crt").write_text("".join(pathlib.Path(each).read_text()
                                                  for each in certificates[::2]))
        encore.signal(1)
        eventually(lambda: "the chain is out of order: certificate 1" in encore.output(), "why")
        self.assertEqual(200, self.inside(encore, origin, root.trusting()).get("/").status)

    def test_an_authority_that_ends_soon_is_said(self):
        origin = self.start_origin()
        self.ca("create", "--out", self.home, "--host", HOST, "--host", "many.example",
                "--days", "5")
        encore = self.proxy(origin)
        self.assertIn("ends in 4 days", encore.output())

    def test_a_drain_ends_what_is_idle_and_finishes_what_is_under_way(self):
        go_on = threading.Event()

        def slow(exchange):
            exchange.wait(go_on)
            return fresh(b"finished")

        origin = self.start_origin({"/slow": slow})
        encore = self.proxy(origin)
        unused = self.inside(encore, origin)
        idle = self.inside(encore, origin)
        idle.get("/")
        busy = self.inside(encore, origin)
        busy.send(f"GET /slow HTTP/1.1\r\nHost: {busy.authority}\r\n\r\n")
        eventually(lambda: origin.count("/slow") == 1, "it is under way")
        encore.process.terminate()
        self.assertTrue(idle.at_end())
        self.assertTrue(unused.at_end())
        go_on.set()
        self.assertEqual(b"finished", busy.read_response().body)
        encore.wait_for_exit()

    def test_check_config_says_what_is_decrypted_and_what_is_wrong(self):
        origin = self.start_origin()
        self.create(*self.hosts)
        encore = self.encore(start=False, **self.settings(origin))

        def check():
            encore.write_config()
            ended = self.run_client([encore.program, "--config", encore.config_path,
                                     "--check-config"], check=False)
            return ended.returncode, ended.stdout.decode()

        code, said = check()
        self.assertEqual(0, code, said)
        self.assertIn(f"CONNECT to {HOST}, *.many.example at port {origin.port}", said)
        encore.sections["intercept"]["hosts"] = [HOST, "bank.example"]
        code, said = check()
        self.assertEqual(1, code, said)
        self.assertIn('may not sign for "bank.example" of intercept.hosts; accepted: many.example',
                      said)
        encore.sections["intercept"]["hosts"] = ["*"]
        encore.sections["intercept"]["any_host"] = True
        self.assertEqual(1, check()[0])
        encore.sections["intercept"]["hosts"] = [HOST]
        (self.home / "ca.key").chmod(0o604)
        code, said = check()
        self.assertEqual(1, code, said)
        self.assertRegex(said, r":\d+:\d+: intercept\.ca_key: .*others can read or write it")
        (self.home / "ca.key").unlink()
        missing = f"intercept.ca_key: {self.home}/ca.key: No such file or directory"
        self.assertIn(missing, check()[1])
        # The start itself says it too.
        ended = self.run_client([encore.program, "--config", encore.config_path], check=False)
        self.assertEqual(1, ended.returncode)
        self.assertIn(missing, ended.stdout.decode())


if __name__ == "__main__":
    unittest.main()
