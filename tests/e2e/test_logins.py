"""Logging in: Basic and Bearer, to forward and reverse listeners, with curl and by hand."""

import base64
import hashlib
import json
import re
import threading
import unittest

from client import Client, field, get
from harness import Case, eventually, free_port, need_program
from origin import Origin, fresh

# Hashes of "secret", by htpasswd -B -C 4 and openssl passwd -6.
SLOW_BCRYPT = "$2y$11$o7a32LtrLk7cLYVa2tWvvuqqIIk67lu5nw9er8lV8KIiTOm5LqwMm"
BCRYPT = "$2y$04$o7a32LtrLk7cLYVa2tWvvuNuGjv5ZEqlqmcmgXtp43nGtcdDlIgTm"
SHA512 = ("$6$abcdefgh$ltjgWl6579NluT/Vi1nwEvcil.G5Nbc4NiXZaNGStk8PSwGfQv72N2CKPPrVACtLtip/cZ/"
          "1GM/O6IND4WQhG.")
TOKEN = "f5ba8dc1f6a24bd09e1f"


def basic(name, password):
    return "Basic " + base64.b64encode(f"{name}:{password}".encode()).decode()


class Logins(Case):
    def setUp(self):
        super().setUp()
        self.origin = Origin(self, default=fresh(b"ok"))
        self.users = self.directory / "users"
        self.users.write_text(f"ann:{BCRYPT}\nbob:{SHA512}\n")
        self.tokens = self.directory / "tokens"
        self.tokens.write_text(f"ci:{hashlib.sha256(TOKEN.encode()).hexdigest()}\n")

    def start_one(self, mode, listen, **sections):
        if mode == "reverse":
            sections["origin"] = [{"servers": [self.origin.url("")]}]
        return self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": mode, **listen}],
            admission={"policy": "always"},
            forward={"connect_ports": [self.origin.port]}, **sections)

    def reverse(self, **sections):
        return self.start_one("reverse", {"users_file": str(self.users)}, **sections)

    def ask(self, encore, login=None, path="/", source=None, more=""):
        with Client(encore.port, source=source) as client:
            said = f"Authorization: {login}\r\n" if login else ""
            client.send(f"GET {path} HTTP/1.1\r\nHost: a\r\n{said}{more}\r\n")
            return client.read_response()

    def told_credentials(self):
        return [name for request in self.origin.requests for name, _ in request.fields
                if "authorization" in name]

    def test_a_reverse_listener_serves_who_has_logged_in(self):
        encore = self.reverse()
        table = [(None, 401), (basic("ann", "secret"), 200), (basic("bob", "secret"), 200),
                 (basic("ann", "Secret"), 401), (basic("ann", "secret\0x"), 401),
                 (basic("ann", ""), 401), (basic("eve", "secret"), 401), ("Basic !", 401),
                 (f"Bearer {TOKEN}", 401), ("Digest username=ann", 401),
                 (basic("ann", "secret"), 200)]
        self.assertEqual([status for _, status in table],
                         [self.ask(encore, login).status for login, _ in table])
        answer = self.ask(encore)
        self.assertEqual('Basic realm="encore", charset="UTF-8"',
                         dict(answer.fields)["www-authenticate"])
        # Stored responses are for all users, and for no other client.
        self.assertEqual(1, self.origin.count())
        self.assertEqual([], self.told_credentials())
        self.assertEqual(7, encore.metrics()["encore_logins_failed_total"])
        logged = encore.access_path.read_text() + encore.output()
        for secret in ("secret", base64.b64encode(b"ann:secret").decode(), "Authorization"):
            self.assertNotIn(secret, logged)

    def test_who_is_asked_to_log_in_does_so_on_the_same_connection(self):
        encore = self.reverse(limits={"failed_logins_per_client": 2})
        def ask(client, login=None, method="GET", more=""):
            said = f"Authorization: {login}\r\n" if login else ""
            client.send(f"{method} / HTTP/1.1\r\nHost: a\r\n{said}{more}\r\n")
            answer = client.read_response(method)
            return answer.status, field(answer, "Connection")
        with Client(encore.port) as client:
            self.assertEqual((401, None), ask(client))
            self.assertEqual((401, None), ask(client, basic("ann", "wrong")))
            self.assertEqual((401, None), ask(client, method="HEAD"))
            self.assertEqual((200, None), ask(client, basic("ann", "secret")))
            self.assertEqual((401, None), ask(client))
            # With content that has not been sent, or is not read, it ends.
            self.assertEqual((401, "close"), ask(client, None, "POST", "Content-Length: 6\r\n"))
            self.assertTrue(client.at_end())
        # A guesser's connection ends immediately.
        with Client(encore.port) as client:
            self.assertEqual((401, None), ask(client, basic("ann", "guess1")))
            self.assertEqual((429, "close"), ask(client, basic("ann", "guess2")))
            self.assertTrue(client.at_end())

    def test_curl_needs_no_second_connection_to_log_in(self):
        curl = need_program("curl")
        encore = self.start_one("forward", {"users_file": str(self.users)})
        answer = self.run_client([curl, "-sS", "-o", "/dev/null", "-w",
                                  "%{http_code} %{num_connects}", "-x", encore.url,
                                  "--proxy-anyauth", "-U", "ann:secret", self.origin.url("/")])
        self.assertEqual(b"200 1", answer.stdout)
        self.assertEqual([407, 200], [record["status"] for record in encore.access_records(2)])

    def test_two_fields_are_no_login(self):
        encore = self.reverse()
        login = basic("ann", "secret")
        self.assertEqual(401, self.ask(encore, login, more=f"Authorization: {login}\r\n").status)

    def test_curl_logs_in_to_a_forward_listener(self):
        curl = need_program("curl")
        encore = self.start_one("forward", {"users_file": str(self.users),
                                            "tokens_file": str(self.tokens)})
        def asked(*more, url="/a"):
            answer = self.run_client([curl, "-sS", "-o", "/dev/null", "-w",
                                      "%{http_code} %{http_connect}", "-x", encore.url, *more,
                                      self.origin.url(url)], check=False)
            return re.search(rb"\d{3} \d{3}(?!\d)", answer.stdout).group().decode()
        self.assertEqual("407 000", asked())
        self.assertEqual("407 000", asked("-U", "ann:wrong"))
        for _ in range(2):
            self.assertEqual("200 000", asked("-U", "ann:secret"))
        self.assertEqual("200 000", asked("--proxy-anyauth", "-U", "bob:secret", url="/b"))
        self.assertEqual("200 000",
                         asked("--proxy-header", f"Proxy-Authorization: Bearer {TOKEN}", url="/c"))
        self.assertEqual("407 000",
                         asked("--proxy-header", f"Proxy-Authorization: Bearer {TOKEN}x"))
        # Tunnels too, and what goes through them is untouched.
        self.assertEqual("000 407", asked("-p", url="/d"))
        self.assertEqual("200 200", asked("-p", "-U", "ann:secret", url="/d"))
        self.assertEqual([], self.told_credentials())
        # The origin's own login is none of ours.
        self.assertEqual("200 000", asked("-U", "ann:secret", "-u", "own:login", url="/e"))
        self.assertEqual(["authorization"], self.told_credentials())

    def test_without_credentials_of_ours_an_origin_has_its_own(self):
        encore = self.start_one("reverse", {})
        self.assertEqual(200, self.ask(encore, basic("ann", "x")).status)
        self.assertEqual(["authorization"], self.told_credentials())

    def test_the_log_names_who_has_logged_in_and_nobody_who_has_not(self):
        name = 'a "b\\\x01é'
        self.users.write_text(f"ann:{BCRYPT}\n{name}:{BCRYPT}\n-:{BCRYPT}\n")
        self.origin = Origin(self, {"/large": fresh(b"x" * 3_000_000)}, default=fresh(b"ok"))
        listen = {"users_file": str(self.users), "tokens_file": str(self.tokens),
                  "deny_paths": ["/no"]}
        ann, token = basic("ann", "secret"), f"Bearer {TOKEN}"
        # Requests, their users, and the users in the log: by the fast path, the slow path, after a
        # hit that its client reads slowly, and for requests that are refused before and after the
        # login.
        asked = [("/a", ann, "ann"), ("/a", token, "ci"), ("/b", token, "ci"), ("/a", ann, "ann"),
                 ("/large", ann, "ann"), ("/large", token, "ci"),
                 ("/a", basic("ann", "wrong"), None), ("/a", basic("eve", "secret"), None),
                 ("/a", f"Bearer {TOKEN}x", None), ("/a", None, None), ("/no", ann, None),
                 ("/a", basic(name, "secret"), name), ("/a", basic("-", "secret"), "-"),
                 ("/c", basic("x" * 9000, "secret"), None)]
        limit = [{"rate": 0.01, "burst": 1, "paths": ["/limited"]}]
        logs = {}
        for form in ("json", "combined", "squid"):
            encore = self.start_one("reverse", listen, log={"format": form}, limit=limit,
                                    workers={"count": 1})
            for path, login, _ in asked:
                self.ask(encore, login, path)
            self.assertEqual([200, 429], [self.ask(encore, ann, "/limited").status for _ in range(2)])
            # One connection, one user after the other, and nobody behind them.
            with Client(encore.port) as client:
                for login, status in ((ann, 200), (token, 200), (None, 401)):
                    said = f"Authorization: {login}\r\n" if login else ""
                    client.send(f"GET /d HTTP/1.1\r\nHost: a\r\n{said}\r\n")
                    self.assertEqual(status, client.read_response().status)
            with Client(encore.port) as client:
                client.send(f"GET /d HTTP/1.1\r\nHost: a\r\nAuthorization: {ann}\r\n\r\n"
                            "GET /d HTTP/1.1\r\nBad\r\n\r\n")
                self.assertEqual([200, 400], [client.read_response().status for _ in range(2)])
            count = len(asked) + 7
            eventually(lambda log=encore.access_path: log.exists() and
                       log.read_bytes().count(b"\n") == count, "all are logged")
            logs[form] = encore.access_path.read_text()
            self.assertEqual(13, encore.metrics()["encore_logins_accepted_total"])
        users = [user for _, _, user in asked] + ["ann", "ann", "ann", "ci", None, "ann", None]
        octets = [user and user.encode().decode("latin-1") for user in users]
        self.assertEqual(octets, [json.loads(line).get("user") for line in logs["json"].splitlines()])
        plain = [{None: "-", "-": "%2d", name: "a%20%22b%5c%01%c3%a9"}.get(user, user)
                 for user in users]
        self.assertEqual(plain, [line.split()[2] for line in logs["combined"].splitlines()])
        self.assertEqual(plain, [line.split()[7] for line in logs["squid"].splitlines()])
        for secret in ("secret", TOKEN, ann.partition(" ")[2], "eve", "xxxx"):
            self.assertNotIn(secret, "".join(logs.values()))

    def test_the_log_names_who_has_opened_a_tunnel(self):
        encore = self.start_one("forward", {"users_file": str(self.users)})
        for login, status in ((basic("bob", "secret"), 200), (basic("bob", "wrong"), 407)):
            with Client(encore.port) as client:
                client.send(f"CONNECT {self.origin.authority} HTTP/1.1\r\nHost: a\r\n"
                            f"Proxy-Authorization: {login}\r\n\r\n")
                self.assertEqual(status, client.read_response("CONNECT").status)
        records = {record["status"]: record.get("user") for record in encore.access_records(2)}
        self.assertEqual({200: "bob", 407: None}, records)

    def test_a_pipeline_keeps_its_order_while_passwords_are_looked_at(self):
        encore = self.reverse()
        names = ["ann", "bob", "ann", "bob", "bob"]
        with Client(encore.port) as client:
            client.send("".join(
                f"GET /{n} HTTP/1.1\r\nHost: a\r\nAuthorization: {basic(name, 'secret')}\r\n\r\n"
                for n, name in enumerate(names)))
            self.assertEqual([200] * 5, [client.read_response().status for _ in names])
        self.assertEqual([f"/{n}" for n in range(5)], [r.target for r in self.origin.requests])

    def test_bodies_wait_and_clients_may_go_meanwhile(self):
        slow = "$2y$12$" + "o7a32LtrLk7cLYVa2tWvvuNuGjv5ZEqlqmcmgXtp43nGtcdDlIgTm"
        self.users.write_text(f"ann:{BCRYPT}\nslow:{slow}\n")
        encore = self.reverse()
        gone = [Client(encore.port) for _ in range(8)]
        for client in gone:
            client.send(f"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: {basic('slow', 'x')}\r\n\r\n")
        for client in gone[:4]:
            client.reset()
        for client in gone[4:]:
            client.shutdown()
            self.assertEqual(401, client.read_response().status)
            client.close()
        body = b"x" * 1_000_000
        with Client(encore.port) as client:
            client.send(f"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n"
                        f"Authorization: {basic('ann', 'secret')}\r\n\r\n".encode() + body)
            self.assertEqual(200, client.read_response().status)
        self.assertEqual(body, self.origin.last().body)
        eventually(lambda: encore.metrics()["encore_client_connections"] == 0, "all have gone")

    def test_a_guesser_is_stopped_and_others_are_not(self):
        encore = self.reverse(limits={"failed_logins_per_client": 3})
        self.assertEqual(200, self.ask(encore, basic("bob", "secret")).status)
        self.assertEqual([401] * 3 + [429] * 2,
                         [self.ask(encore, basic("ann", f"guess{n}")).status for n in range(5)])
        answer = self.ask(encore, basic("ann", "secret"))
        self.assertEqual((429, "60"), (answer.status, dict(answer.fields)["retry-after"]))
        # A known user is admitted, and one from elsewhere is checked.
        self.assertEqual(200, self.ask(encore, basic("bob", "secret")).status)
        self.assertEqual(200, self.ask(encore, basic("ann", "secret"), source="127.0.0.2").status)
        metrics = encore.metrics()
        self.assertEqual((3, 3), (metrics["encore_logins_failed_total"],
                                  metrics["encore_logins_limited_total"]))

    def test_a_right_token_passes_whatever_others_at_its_address_have_tried(self):
        encore = self.start_one("reverse", {"users_file": str(self.users),
                                            "tokens_file": str(self.tokens)},
                                limits={"failed_logins_per_client": 3})
        self.assertEqual([401] * 3 + [429] * 2,
                         [self.ask(encore, f"Bearer guess{n}").status for n in range(5)])
        self.assertEqual(429, self.ask(encore, basic("ann", "secret")).status)
        # With what is wrong in between, which stays refused.
        self.assertEqual([200, 429, 200, 429], [
            self.ask(encore, login).status
            for login in (f"Bearer {TOKEN}", f"Bearer {TOKEN}x", f"Bearer {TOKEN}", "Bearer x")])
        metrics = encore.metrics()
        self.assertEqual((2, 3, 5), tuple(metrics[f"encore_logins_{name}_total"]
                                          for name in ("accepted", "failed", "limited")))

    def test_a_guesser_leaves_others_their_turns(self):
        # A check of the guesser's takes some 200 ms.
        slow = "$2y$12$" + "o7a32LtrLk7cLYVa2tWvvuNuGjv5ZEqlqmcmgXtp43nGtcdDlIgTm"
        self.users.write_text(f"ann:{BCRYPT}\nslow:{slow}\n")
        encore = self.reverse(limits={"failed_logins_per_client": 100})
        guessers = [Client(encore.port) for _ in range(60)]
        for n, client in enumerate(guessers):
            self.addCleanup(client.close)
            login = basic("slow", f"guess{n}")
            client.send(f"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: {login}\r\n\r\n")
        # Requests beyond the capacity are refused immediately: half of 64 wait, and two are
        # checked.
        eventually(lambda: encore.metrics()["encore_logins_limited_total"] >= 60 - 34 - 2,
                   "there is no more room for him")
        before = encore.metrics()["encore_logins_failed_total"]
        self.assertEqual(200, self.ask(encore, basic("ann", "secret"), source="127.0.0.2").status)
        # Admitted before most of the guesses in front were checked.
        self.assertLess(encore.metrics()["encore_logins_failed_total"] - before, 12)

    def test_many_may_log_in_at_once(self):
        # Looking takes some 100 ms: all are there before it is known that the first was right.
        self.users.write_text(f"ann:{SLOW_BCRYPT}\n")
        encore = self.reverse()
        answers = []
        threads = [threading.Thread(target=lambda n=n: answers.append(
            self.ask(encore, basic("ann", "secret"), f"/{n}").status)) for n in range(40)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([200] * 40, answers)

    def test_a_reload_reads_the_files_again(self):
        encore = self.reverse()
        login = basic("ann", "secret")
        with Client(encore.port) as client:
            ask = f"GET / HTTP/1.1\r\nHost: a\r\nAuthorization: {login}\r\n\r\n"
            client.send(ask)
            self.assertEqual(200, client.read_response().status)
            self.users.write_text("ann:$1$abcdefgh$irWbblnpmw.5z7wgBnprh0\n")
            encore.signal(1)
            eventually(lambda: encore.stats()["reload_failures"] == 1, "it is refused")
            self.assertIn(f"{self.users}:1: has a weak or unknown hash", encore.output())
            client.send(ask)
            self.assertEqual(200, client.read_response().status)
            self.users.write_text(f"bob:{SHA512}\n")
            encore.signal(1)
            eventually(lambda: encore.stats()["reloads"] == 1, "it is reloaded")
            # Its connection has ended, for ann is not there any more.
            self.assertTrue(client.at_end())
        with Client(encore.port) as client:
            client.send(ask)
            self.assertEqual(401, client.read_response().status)

    def test_a_file_that_others_can_write_is_refused_with_the_mode_to_set(self):
        encore = self.start_one("forward", {"users_file": str(self.users),
                                            "tokens_file": str(self.tokens)})
        for number, file in enumerate((self.users, self.tokens), 1):
            remedy = f"run: chmod 600 {file}"
            for mode in (0o666, 0o660, 0o602):
                file.chmod(mode)
                ended = self.run_client([encore.program, "--config", encore.config_path,
                                         "--check-config"], check=False)
                self.assertEqual(1, ended.returncode)
                self.assertIn(remedy, ended.stdout.decode())
            encore.signal(1)
            eventually(lambda: encore.stats()["reload_failures"] == number, "it is refused")
            self.assertIn(remedy, encore.output())
            # A reader has no password yet: a warning is enough.
            file.chmod(0o644)
            ended = self.run_client([encore.program, "--config", encore.config_path,
                                     "--check-config"], check=False)
            self.assertIn(f"{file}: others can read it; it has mode 0644, {remedy}",
                          ended.stdout.decode())
            file.chmod(0o600)
        encore.stop()
        self.users.chmod(0o666)
        ended = self.run_client([encore.program, "--config", encore.config_path], check=False)
        self.assertEqual(1, ended.returncode)
        self.assertIn(f"chmod 600 {self.users}", ended.stdout.decode())

    def test_a_file_that_cannot_be_used_keeps_it_from_starting(self):
        encore = self.start_one("reverse", {"users_file": str(self.directory / "none")}, start=False,
                                expect_exit=1)
        encore.write_config()
        for arguments in ([], ["--check-config"]):
            ended = self.run_client([encore.program, "--config", encore.config_path, *arguments],
                                    check=False)
            self.assertEqual(1, ended.returncode)
            self.assertIn(b"none: cannot be read", ended.stdout)
        # With the place in the config, as it is checked.
        self.assertIn(f"{encore.config_path}:4:14: listen.0.users_file: ".encode(), ended.stdout)


if __name__ == "__main__":
    unittest.main()
