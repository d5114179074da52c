"""The hand-over of the admission memory: a node that starts cold knows the requests that its peer
saw."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import threading

from client import Client, field
from harness import Case, CertificateAuthority, SLOWDOWN, eventually, sanitized
from origin import Origin, fresh, response

TOKEN = "0123456789abcdef.the-token"
OTHER = "fedcba9876543210.the-other"
OBJECTS = 60


class HandoverCase(Case):
    def setUp(self):
        super().setUp()
        self.token_file = self.directory / "token"
        self.give_token(TOKEN)
        self.origin = Origin(self, {}, default=lambda exchange: fresh(exchange.request.target))

    def give_token(self, token):
        self.token_file.write_text(token + "\n")
        self.token_file.chmod(0o600)

    def node(self, admission=None, **sections):
        return self.encore(admin={"token_file": str(self.token_file)},
                           admission={"capacity": 20000, "fpr": 0.001, **(admission or {})},
                           **sections)

    def call(self, node, method, path, body=None, token=TOKEN):
        """(status, fields, body) of a request to the admin listener."""
        connection = http.client.HTTPConnection("127.0.0.1", node.admin_port,
                                                timeout=30 * SLOWDOWN)
        try:
            fields = {"Authorization": f"Bearer {token}"} if token else {}
            try:
                connection.request(method, path, body=body, headers=fields)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it was refused before it was read
            response = connection.getresponse()
            return response.status, response.headers, response.read()
        finally:
            connection.close()

    def announce(self, node, method, path, token, length):
        """(status, body) of a request whose body is announced and never sent."""
        connection = http.client.HTTPConnection("127.0.0.1", node.admin_port,
                                                timeout=30 * SLOWDOWN)
        with contextlib.closing(connection):
            connection.putrequest(method, path)
            if token:
                connection.putheader("Authorization", f"Bearer {token}")
            connection.putheader("Content-Length", str(length))
            connection.endheaders()
            response = connection.getresponse()
            return response.status, response.read()

    def ask_all(self, node, objects=range(OBJECTS)):
        """Returns the Cache-Status of each object, requested once."""
        with Client(node.port) as client:
            return [field(client.ask(self.origin.url(f"/object/{i}")), "cache-status")
                    for i in objects]

    def assert_stored_at_first(self, node):
        for status in self.ask_all(node):
            self.assertIn("fwd=uri-miss", status)
            self.assertIn("stored", status)
        for status in self.ask_all(node):
            self.assertIn("; hit", status)

    def sim(self, *arguments):
        return subprocess.run([os.environ["ENCORE_SIM"], *map(str, arguments)], timeout=300,
                              capture_output=True, text=True)

    def assert_replays(self, journal, adoptions):
        """Every decision is the kernel's; `adoptions` of them adopted a memory."""
        verified = self.sim("verify", journal, "--json")
        self.assertEqual(0, verified.returncode, verified.stdout + verified.stderr)
        rows = {row["kind"]: row for row in json.loads(verified.stdout)["rows"]}
        self.assertEqual(0, sum(row["differences"] for row in rows.values()))
        self.assertEqual(adoptions, rows["adopt"]["events"])
        self.assertGreaterEqual(rows["admit"]["events"], OBJECTS)


class HandoverTest(HandoverCase):
    def test_a_cold_node_stores_at_the_first_request_what_its_neighbour_saw(self):
        # Unlike in everything: shards, layout, hash, size.
        warm = self.node({"layout": "classic", "hash": "siphash", "hashes": 7, "bits": 400000,
                          "fpr": 0}, cache={"shards": 32})
        for status in self.ask_all(warm):
            self.assertIn("first-request", status)
        status, fields, memory = self.call(warm, "GET", "/filter")
        self.assertEqual((200, "application/octet-stream", "no-store"),
                         (status, fields["Content-Type"], fields["Cache-Control"]))
        self.assertTrue(memory.startswith(b"ENCADMIT"))

        journal = self.directory / "cold.journal"
        cold = self.node(cache={"shards": 4}, log={"decisions": str(journal)})
        self.assertIn("first-request", self.ask_all(cold, [OBJECTS])[0])
        status, _, answer = self.call(cold, "POST", "/filter/adopt", memory)
        self.assertEqual(200, status, answer)
        taken = json.loads(answer)
        self.assertEqual((2, 32, OBJECTS),
                         (taken["generations"], taken["shards"], taken["insertions"]))
        self.assertAlmostEqual(OBJECTS, taken["keys_estimated"], delta=3)
        self.assertLess(taken["fpr"], 1e-4)
        self.assert_stored_at_first(cold)
        # Nothing of its own is forgotten, and what nobody saw is new.
        statuses = self.ask_all(cold, [OBJECTS, OBJECTS + 1])
        self.assertIn("stored", statuses[0])
        self.assertIn("first-request", statuses[1])
        metrics = cold.metrics()
        self.assertEqual(1, metrics["encore_filter_adoptions_total"])
        self.assertEqual(2, metrics["encore_filter_adopted_generations"])
        self.assertEqual(taken["memory_bytes"], metrics["encore_filter_adopted_memory_bytes"])
        self.assertEqual(OBJECTS, metrics["encore_filter_adopted_answers_total"])
        adopted = cold.stats()["admission"]["filter"]["adopted"]
        self.assertEqual((1, 1, OBJECTS),
                         (adopted["adoptions"], adopted["memories"], adopted["answers"]))
        cold.stop()
        self.assert_replays(journal, adoptions=4)
        self.check_that_replay_needs_the_memory(journal)
        self.assert_no_secret_in(cold.output() + warm.output(), memory)

    def check_that_replay_needs_the_memory(self, journal):
        beside = list(self.directory.glob("cold.journal.adopted.*"))
        self.assertEqual(1, len(beside))
        self.assertEqual(0o600, beside[0].stat().st_mode & 0o777)
        memory = beside[0].read_bytes()
        for changed in (memory[:-1], memory[:200] + b"x" + memory[201:], b""):
            beside[0].write_bytes(changed)
            refused = self.sim("verify", journal)
            self.assertNotEqual(0, refused.returncode)
            self.assertIn("not at hand", refused.stderr + refused.stdout)

    def assert_no_secret_in(self, text, memory):
        seeds = [memory[16:24][::-1].hex(), memory[24:32][::-1].hex()]
        for secret in (TOKEN, *seeds):
            self.assertNotIn(secret, text)

    def test_nobody_without_the_token_gets_or_gives_a_memory(self):
        node = self.node()
        _, _, memory = self.call(node, "GET", "/filter")
        for token in (None, OTHER, TOKEN[:-1], TOKEN + "x"):
            for method, path, body in (("GET", "/filter", None), ("POST", "/filter/adopt", memory)):
                status, fields, _ = self.call(node, method, path, body, token)
                self.assertEqual((401, "Bearer"), (status, fields["WWW-Authenticate"]))
        self.assertEqual(0, node.metrics()["encore_filter_adoptions_total"])
        # Nothing of a stranger's is read: the answer comes before the body does.
        for method, path, token, status in (("POST", "/filter/adopt", OTHER, 401),
                                            ("POST", "/filter/adopt", None, 401),
                                            ("PUT", "/filter/adopt", TOKEN, 405),
                                            ("POST", "/filter", TOKEN, 405)):
            self.assertEqual(status, self.call(node, method, path, bytes(3_000_000), token)[0])
            self.assertEqual(status, self.announce(node, method, path, token, 1 << 40)[0])
        before = node.resident_bytes()
        for _ in range(20):
            self.call(node, "POST", "/filter/adopt", bytes(20_000_000), OTHER)
        if not sanitized():
            self.assertLess(node.resident_bytes() - before, 16 << 20)
        plain = self.encore()
        status, _, answer = self.call(plain, "GET", "/filter")
        self.assertEqual(403, status)
        self.assertIn(b"admin.token_file", answer)
        status, answer = self.announce(plain, "POST", "/filter/adopt", TOKEN, 1 << 40)
        self.assertEqual(403, status)
        self.assertIn(b"admin.token_file", answer)

    def test_the_token_is_read_again_at_a_reload(self):
        node = self.node()
        self.give_token(OTHER)
        self.assertEqual(401, self.call(node, "GET", "/filter", token=OTHER)[0])
        node.signal(signal.SIGHUP)
        eventually(lambda: self.call(node, "GET", "/filter", token=OTHER)[0] == 200, "the new one")
        self.assertEqual(401, self.call(node, "GET", "/filter", token=TOKEN)[0])
        # One that others can read is no secret: the reload is refused, the old one stays.
        self.give_token(TOKEN)
        self.token_file.chmod(0o644)
        node.signal(signal.SIGHUP)
        eventually(lambda: node.stats()["reload_failures"] == 1, "the reload is refused")
        self.assertIn("others can read", node.output())
        self.assertEqual(200, self.call(node, "GET", "/filter", token=OTHER)[0])

    def test_a_token_that_others_can_read_is_no_start(self):
        self.token_file.chmod(0o644)
        node = self.encore(start=False, admin={"token_file": str(self.token_file)})
        node.write_config()
        for arguments in ([], ["--check-config"]):
            ended = subprocess.run([node.program, "--config", node.config_path, *arguments],
                                   capture_output=True, text=True, timeout=60)
            self.assertEqual(1, ended.returncode)
            self.assertIn("others can read or write it", ended.stderr)
            self.assertNotIn(TOKEN, ended.stderr)

    def test_hostile_memories_are_refused(self):
        node = self.node({"adopted_memory": "1MiB"})
        self.ask_all(node)
        _, _, memory = self.call(node, "GET", "/filter")
        places = [*range(0, 64), len(memory) // 2, len(memory) - 1]
        hostile = [memory[:size] for size in places]
        hostile += [memory[:at] + bytes([memory[at] ^ 0x80]) + memory[at + 1:] for at in places]
        hostile += [memory + b"x", b"\xff" * 4096]
        for body in hostile:
            status, _, answer = self.call(node, "POST", "/filter/adopt", body)
            self.assertEqual(400, status, answer)
        status, answer = self.announce(node, "POST", "/filter/adopt", TOKEN, 4 << 20)
        self.assertEqual(413, status)
        self.assertIn(b"at most 3145728 bytes (admission.adopted_memory)", answer)
        refusing = self.node({"adopted_memory": "0B"})
        status, answer = self.announce(refusing, "POST", "/filter/adopt", TOKEN, 4 << 20)
        self.assertEqual(409, status)
        self.assertIn(b"admission.adopted_memory is 0", answer)
        self.assertEqual(0, node.metrics()["encore_filter_adoptions_total"])

    def test_adopted_memories_are_bounded(self):
        node = self.node({"adopted_memory": "1MiB"})
        large = self.node({"capacity": 400000})
        _, _, memory = self.call(large, "GET", "/filter")
        status, _, answer = self.call(node, "POST", "/filter/adopt", memory)
        self.assertEqual(409, status, answer)
        self.assertRegex(answer, rb"it takes \d+ bytes, accepted: up to 1048576 bytes in all, as "
                                 rb"admission\.adopted_memory has it")
        _, _, memory = self.call(node, "GET", "/filter")
        statuses = [self.call(node, "POST", "/filter/adopt", memory)[0] for _ in range(5)]
        self.assertEqual([200, 200, 200, 200, 409], statuses)
        never = self.node({"policy": "always"})
        status, _, answer = self.call(never, "POST", "/filter/adopt", memory)
        self.assertEqual(409, status)
        self.assertIn(b"the policy is always", answer)
        self.assertEqual(404, self.call(never, "GET", "/filter")[0])

    def slow_reader(self, node):
        """A connection on which the memory is asked for, and no more of it read than its head."""
        reader = socket.socket()
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        reader.settimeout(60 * SLOWDOWN)
        self.addCleanup(reader.close)
        reader.connect(("127.0.0.1", node.admin_port))
        reader.sendall(f"GET /filter HTTP/1.0\r\nHost: localhost\r\n"
                       f"Authorization: Bearer {TOKEN}\r\n\r\n".encode())
        return reader, reader.recv(1000)

    @staticmethod
    def read_all(reader, received):
        pieces = [received]
        while piece := reader.recv(1 << 20):
            pieces.append(piece)
        return b"".join(pieces).partition(b"\r\n\r\n")[2]

    def test_a_slow_reader_keeps_the_memory_from_nobody(self):
        node = self.node({"capacity": 8_000_000})
        before = node.peak_resident_bytes()
        readers = [self.slow_reader(node) for _ in range(8)]
        for _, begun in readers:
            self.assertTrue(begun.startswith(b"HTTP/1.0 200 "), begun)
        status, _, memory = self.call(node, "GET", "/filter")
        self.assertEqual(200, status)
        self.assertGreater(len(memory), 20 << 20)
        # One copy is given to all of them; a sanitizer holds more of its own.
        if not sanitized():
            self.assertLess(node.peak_resident_bytes() - before, 4 * len(memory))
        for reader, begun in readers:
            self.assertEqual(memory, self.read_all(reader, begun))

    def test_a_drain_waits_for_a_memory_that_is_on_its_way(self):
        node = self.node({"capacity": 8_000_000})
        reader, begun = self.slow_reader(node)
        length = int(re.search(rb"Content-Length: (\d+)", begun).group(1))
        node.signal(signal.SIGTERM)
        eventually(lambda: not node.ready() and "draining" in node.output(), "it drains")
        self.assertEqual(length, len(self.read_all(reader, begun)))
        self.assertEqual(0, node.wait_for_exit())
        self.assertNotIn("are cut", node.output())

    def test_a_drain_that_is_over_cuts_who_reads_too_slowly(self):
        node = self.node({"capacity": 8_000_000}, timeouts={"drain": "1s"})
        reader, begun = self.slow_reader(node)
        length = int(re.search(rb"Content-Length: (\d+)", begun).group(1))
        node.signal(signal.SIGTERM)
        self.assertEqual(0, node.wait_for_exit())
        self.assertIn("the drain is over: 1 requests of the admin listener were cut", node.output())
        with contextlib.suppress(ConnectionResetError):
            self.assertLess(len(self.read_all(reader, begun)), length)

    def test_an_adopted_memory_leaves_as_the_filter_rotates(self):
        warm, cold = self.node(), self.node({"capacity": 64}, cache={"shards": 1})
        self.ask_all(warm)
        _, _, memory = self.call(warm, "GET", "/filter")
        self.assertEqual(200, self.call(cold, "POST", "/filter/adopt", memory)[0])
        self.ask_all(cold, range(1000, 1064))
        metrics = cold.metrics()
        self.assertEqual(1, metrics["encore_filter_rotations_total"])
        self.assertEqual(0, metrics["encore_filter_adopted_generations"])
        eventually(lambda: cold.metrics()["encore_filter_adopted_memory_bytes"] == 0,
                   "its memory is given back")
        self.assertIn("first-request", self.ask_all(cold, [0])[0])


class AdoptFromTest(HandoverCase):
    """encore --adopt-from URL."""

    def warm_node(self):
        warm = self.node(cache={"shards": 2})
        self.ask_all(warm)
        return warm

    @staticmethod
    def admin_url(node):
        return f"http://127.0.0.1:{node.admin_port}"

    def test_a_node_that_starts_knows_what_its_neighbour_saw(self):
        warm = self.warm_node()
        journal = self.directory / "cold.journal"
        cold = self.node(arguments=["--adopt-from", self.admin_url(warm)],
                         log={"decisions": str(journal)}, cache={"shards": 8})
        self.assertIn(f"adopted 2 generations of 2 shards, {OBJECTS} insertions", cold.output())
        self.assert_stored_at_first(cold)
        cold.stop()
        self.assert_replays(journal, adoptions=8)

    def test_the_neighbour_may_have_another_token_and_be_known_by_name(self):
        warm = self.warm_node()
        other = self.directory / "other"
        other.write_text(OTHER + "\n")
        other.chmod(0o600)
        url = f"http://localhost:{warm.admin_port}/"
        cold = self.node(arguments=["--adopt-from", url, "--adopt-token-file", str(other)])
        self.assertIn("it answers 401 Unauthorized", cold.output())
        self.assertIn("first-request", self.ask_all(cold, [0])[0])
        self.give_token(OTHER)
        warm.signal(signal.SIGHUP)
        eventually(lambda: warm.stats()["reloads"] == 1, "the token is read again")
        cold = self.node(arguments=["--adopt-from", url, "--adopt-token-file", str(other)])
        self.assert_stored_at_first(cold)

    def test_what_a_neighbour_does_wrong_is_a_warning_and_no_end(self):
        """It serves, with nothing adopted."""
        memory = self.call(self.warm_node(), "GET", "/filter")[2]
        length = {"Content_Length": len(memory)}
        answers = {
            "it answers 404 Not Found": response(b"no", status="404 Not Found"),
            "it answers 302 Found": response(status="302 Found", Location="http://127.0.0.1:1/"),
            "its response is not HTTP": b"SSH-2.0-OpenSSH_9.2\r\n\r\n",
            "it ended the response early": response(memory[:-1], **length),
            "it answers 403 Forbidden: Host ?? is not": response(
                b"403 Forbidden\nHost \x1b\xff is not\n", status="403 Forbidden"),
            "it sent no Content-Length": response(memory, Content_Length=None),
            "it has 4611686018427387904 bytes, accepted: at most 270532608, as admission.adopted"
            "_memory has it": response(b"", Content_Length=1 << 62),
            "it sent more than announced": response(b"more", Content_Length=2),
            "wrong checksum": response(memory[:-1] + bytes([memory[-1] ^ 1])),
            "not a saved admission memory": response(b"<html>"),
        }
        for said, answer in answers.items():
            def serve(exchange, answer=answer):
                exchange.send(answer)
                exchange.close()
            hostile = Origin(self, {"/filter": serve})
            cold = self.node(arguments=["--adopt-from", hostile.url("").rstrip("/")])
            with self.subTest(said):
                self.assertRegex(cold.output(), "no filter was adopted: .*" + re.escape(said))
                self.assertIn("first-request", self.ask_all(cold, [0])[0])
                self.assertEqual(f"Bearer {TOKEN}",
                                 dict(hostile.last().fields)["authorization"])
            cold.stop()

    def test_a_neighbour_that_has_no_time_is_asked_again(self):
        memory = self.call(self.warm_node(), "GET", "/filter")[2]
        answers = [response(b"later\n", status="503 Service Unavailable")] * 2 + [response(memory)]
        busy = Origin(self, {"/filter": lambda exchange: answers.pop(0)})
        cold = self.node(arguments=["--adopt-from", busy.url("").rstrip("/")])
        self.assertEqual([], answers)
        self.assert_stored_at_first(cold)

    def test_a_neighbour_that_is_not_there_is_a_warning(self):
        cold = self.node(arguments=["--adopt-from", "http://127.0.0.1:1"])
        self.assertIn("no filter was adopted: http://127.0.0.1:1/filter: ", cold.output())
        self.assertIn("first-request", self.ask_all(cold, [0])[0])

    def test_an_order_to_end_does_not_wait_for_a_neighbour(self):
        asked, over = threading.Event(), threading.Event()
        self.addCleanup(over.set)

        def drip(exchange):
            exchange.send(response(Content_Length=1 << 20))
            asked.set()
            while not over.wait(0.05):
                exchange.send(b"x")
        slow = Origin(self, {"/filter": drip})
        for order in (signal.SIGTERM, signal.SIGINT):
            asked.clear()
            node = self.encore(start=False, admin={"token_file": str(self.token_file)})
            node.write_config()
            with subprocess.Popen(
                    [node.program, "--config", node.config_path, "--adopt-from",
                     slow.url("").rstrip("/")], stderr=subprocess.PIPE, text=True) as process:
                self.assertTrue(asked.wait(60))
                process.send_signal(order)
                _, said = process.communicate(timeout=120)
            self.assertIn("no filter was adopted: ", said)
            self.assertIn("/filter: stopped", said)
            self.assertEqual(0, process.returncode, said)

    def test_a_neighbour_under_tls_is_verified(self):
        authority = CertificateAuthority(self)
        warm = self.warm_node()
        memory = self.call(warm, "GET", "/filter")[2]
        terminator = Origin(self, {"/filter": lambda exchange: response(memory)},
                            tls=authority.server_context("127.0.0.1"))
        arguments = ["--adopt-from", terminator.url("").rstrip("/")]
        cold = self.node(arguments=arguments)
        self.assertIn("no filter was adopted: https://", cold.output())
        trusting = self.node(arguments=arguments,
                             upstream={"tls_ca_file": str(authority.certificate)})
        self.assert_stored_at_first(trusting)

    def test_a_command_line_that_cannot_work_is_no_start(self):
        node = self.encore(start=False)
        node.write_config()
        url = "http://127.0.0.1:1"
        for arguments, said in ((["--adopt-from", url], "--adopt-token-file or admin.token_file"),
                                (["--adopt-from", "ftp://a"], '--adopt-from "ftp://a": '),
                                (["--adopt-from", url + "/filter"], "--adopt-from"),
                                (["--adopt-from", ""], '--adopt-from "": '),
                                (["--adopt-from", url + "?x"], "with no path"),
                                (["--adopt-token-file", "x"], "needs --adopt-from")):
            for check in ([], ["--check-config"]):
                ended = subprocess.run(
                    [node.program, "--config", node.config_path, *arguments, *check],
                    capture_output=True, text=True, timeout=60)
                self.assertEqual(2, ended.returncode, ended.stderr)
                self.assertIn(said, ended.stderr)
        # A token that is none keeps it from starting: the check says so too.
        self.token_file.write_text(f"{TOKEN}\n{OTHER}\n")
        for check in ([], ["--check-config"]):
            ended = subprocess.run(
                [node.program, "--config", node.config_path, "--adopt-from", url,
                 "--adopt-token-file", str(self.token_file), *check],
                capture_output=True, text=True, timeout=60)
            self.assertEqual(1, ended.returncode, ended.stderr)
            self.assertIn("found more than one line", ended.stderr)
            self.assertNotIn(TOKEN, ended.stderr + ended.stdout)
