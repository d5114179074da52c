"""Replacing the running process: no request fails, and an upgrade that fails changes nothing."""

import os
import signal
import socket
import ssl
import subprocess
import threading
import unittest

from client import Client, NoResponse, field, get
from halfway import HalfwayCase
from harness import Case, eventually, free_port, sanitized, stop_process
from http2 import Http2Client
from operate import REFUSED, UNREACHABLE, Operator
from origin import Origin, fresh
from test_tunnel import EchoServer
from tls import SecureClient, TlsCase, ask_on
from upgrading import Load, UpgradingEncore, kept_alive, one_shot

UPGRADES = 2 if sanitized() else 6
BODY = b"a page of some bytes\n" * 50


class Upgrade(Case):
    def setUp(self):
        super().setUp()
        self.origin = Origin(self, default=fresh(BODY))

    def start_proxy(self, **sections):
        sections.setdefault("upgrade", {"idle": "200ms"})
        self.proxy = UpgradingEncore(self, **sections)
        return self.proxy

    def tunnel(self, echo):
        client = Client(self.proxy.port)
        self.addCleanup(client.close)
        authority = f"127.0.0.1:{echo.port}"
        client.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n\r\n")
        self.assertEqual(200, client.read_response("CONNECT").status)
        return client

    def check_tunnel(self, client):
        client.send("ping")
        self.assertEqual(b"ping", client.read_exactly(4))


class UnderLoad(Upgrade):
    def test_no_request_fails_with_two_workers_one_and_four(self):
        proxy = self.start_proxy(workers={"count": 2})
        load = Load(self)
        load.add("kept", kept_alive(proxy.port, self.origin.url("/kept"), BODY), 3)
        load.add("one-shot", one_shot(proxy.port, self.origin.url("/shot"), BODY), 3)
        for i in range(UPGRADES):
            proxy.sections["workers"]["count"] = (1, 4, 2)[i % 3]
            proxy.write_config()
            proxy.upgrade()
            for name in ("kept", "one-shot"):
                load.wait_for(name)
            eventually(lambda: proxy.stats()["predecessors"] == 0, "the old process has ended")
            self.assertEqual(0, proxy.exit_code(proxy.replaced[-1]))
        self.assertEqual((1, 4, 2)[(UPGRADES - 1) % 3], proxy.stats()["workers"])
        load.stop()

    def test_sigusr2_replaces_the_process(self):
        proxy = self.start_proxy()
        proxy.signal(signal.SIGUSR2)
        self.assertEqual(0, proxy.exit_code(proxy.process.pid))
        self.assertEqual(200, get(proxy.port, self.origin.url("/")).status)
        text = proxy.output_path.read_text()
        proxy.replaced.append(proxy.process.pid)
        proxy.serving = int(text.partition("upgrade: process ")[2].split()[0])

    def test_the_command_waits_and_says_how_it_went(self):
        proxy = self.start_proxy()
        command = [proxy.program, "--config", proxy.config_path, "upgrade", "--text"]
        done = self.run_client(command).stdout.decode()
        self.assertRegex(done, r"^process \d+ serves\n$")
        proxy.replaced.append(proxy.serving)
        proxy.serving = int(done.split()[1])
        self.assertEqual(BODY, get(proxy.port, self.origin.url("/")).body)
        # The running process has the configuration of its start; the new one would have another.
        proxy.sections["listen"].append({"address": "192.0.2.1:1", "mode": "forward"})
        proxy.write_config()
        failed = self.run_client(command, check=False)
        self.assertEqual(1, failed.returncode)
        self.assertIn(b"refused (409): nothing has changed: ", failed.stdout)
        self.assertIn(b"192.0.2.1", failed.stdout)

    def test_a_client_that_waits_to_be_accepted_is_served(self):
        proxy = self.start_proxy()
        os.kill(proxy.serving, signal.SIGSTOP)
        waiting = []
        try:
            for _ in range(100):
                client = Client(proxy.port)
                self.addCleanup(client.close)
                client.request(self.origin.url("/waits"))
                waiting.append(client)
            # It has the signal when it goes on, in front of those that wait or behind them.
            os.kill(proxy.serving, signal.SIGUSR2)
        finally:
            os.kill(proxy.serving, signal.SIGCONT)
        for client in waiting:
            self.assertEqual(BODY, client.read_response().body)
            client.close()
        self.assertEqual(0, proxy.exit_code(proxy.process.pid))
        proxy.replaced.append(proxy.process.pid)
        proxy.serving = int(proxy.output_path.read_text().partition("upgrade: process ")[2].split()[0])

    def test_unix_sockets_and_the_admin_listener_go_over(self):
        path = self.directory / "proxy.sock"
        port = free_port()
        proxy = self.start_proxy(listen=[
            {"address": f"127.0.0.1:{port}", "mode": "forward"},
            {"address": f"unix:{path}", "mode": "forward"}])
        inode = path.stat().st_ino
        for _ in range(2):
            old = proxy.serving
            proxy.upgrade()
            self.assertEqual(0, proxy.exit_code(old))
            self.assertEqual(inode, path.stat().st_ino)
            with socket.socket(socket.AF_UNIX) as client:
                client.connect(str(path))
                url = self.origin.url("/unix")
                client.sendall(f"GET {url} HTTP/1.1\r\nHost: {self.origin.authority}\r\n"
                               "Connection: close\r\n\r\n".encode())
                self.assertIn(BODY, b"".join(iter(lambda: client.recv(65536), b"")))
            self.assertEqual(200, proxy.admin("/readyz")[0])
        proxy.stop()
        self.assertFalse(path.exists())

    def test_every_admin_listener_goes_over_and_one_that_is_gone_is_closed(self):
        state, path = self.directory / "state", self.directory / "other.sock"
        tcp = f"127.0.0.1:{free_port()}"
        sockets = [state / "admin.sock", path]
        proxy = self.start_proxy(state={"directory": str(state)}, start=False)
        by_tcp = proxy.sections["admin"]["address"]
        addresses = [by_tcp, tcp, *(f"unix:{each}" for each in sockets)]
        proxy.sections["admin"]["address"] = addresses
        proxy.start()
        operator = Operator(self, proxy.program)
        inodes = [each.stat().st_ino for each in sockets]
        for _ in range(2):
            old = proxy.serving
            proxy.upgrade()
            for address in addresses:
                said = operator.run("status", "--admin", address).json
                self.assertEqual("ready", said["state"])
            self.assertEqual(0, proxy.exit_code(old))
            self.assertEqual(inodes, [each.stat().st_ino for each in sockets])
        proxy.sections["admin"]["address"] = [by_tcp, f"unix:{sockets[0]}"]
        proxy.write_config()
        proxy.upgrade()
        self.assertEqual(0, proxy.exit_code(proxy.replaced[-1]))
        self.assertFalse(path.exists())
        operator.run("status", "--admin", tcp, status=UNREACHABLE)
        operator.run("status", "--admin", f"unix:{sockets[0]}")
        proxy.stop()
        self.assertFalse(sockets[0].exists())

    def test_a_command_that_follows_requests_follows_those_of_the_new_process(self):
        proxy = self.start_proxy()
        operator = Operator(self, proxy.program, "--config", proxy.config_path)
        follower = operator.start("log", "--follow", "--json")
        seen = []

        def read():
            for line in follower.stdout:
                seen.append(line)
        reading = threading.Thread(target=read, daemon=True)
        reading.start()
        self.addCleanup(reading.join)
        self.addCleanup(stop_process, follower)

        def sees(path):
            get(proxy.port, self.origin.url(path))
            return any(path in each for each in list(seen))
        eventually(lambda: sees("/before"), "it follows")
        proxy.upgrade()
        eventually(lambda: sees("/after"), "it follows the new process")
        self.assertEqual(0, proxy.exit_code(proxy.replaced[-1]))

    def test_a_listener_that_the_new_configuration_lacks_is_closed(self):
        ports, path = [free_port(), free_port()], self.directory / "gone.sock"
        listen = [{"address": f"127.0.0.1:{port}", "mode": "forward"} for port in ports]
        proxy = self.start_proxy(listen=[*listen, {"address": f"unix:{path}", "mode": "forward"}])
        proxy.sections["listen"] = listen[:1]
        proxy.write_config()
        proxy.upgrade()
        self.assertEqual(0, proxy.exit_code(proxy.replaced[0]))
        self.assertEqual(200, get(ports[0], self.origin.url("/")).status)
        with self.assertRaises(ConnectionRefusedError):
            Client(ports[1])
        self.assertFalse(path.exists())


class Draining(Upgrade, HalfwayCase):
    def test_a_response_of_minutes_goes_on_and_its_client_is_told(self):
        route, go = self.halfway(b"x" * 100_000)
        origin = Origin(self, {"/half": route}, default=fresh(BODY))
        proxy = self.start_proxy()
        client = self.begin(proxy, origin, "/half")
        idle = Client(proxy.port)
        self.addCleanup(idle.close)
        self.assertEqual(200, idle.ask(origin.url("/")).status)
        proxy.upgrade()
        told = idle.ask(origin.url("/"))
        self.assertEqual("close", field(told, "Connection"))
        self.assertTrue(idle.at_end())
        eventually(lambda: proxy.stats()["predecessors"] == 1, "the old process is shown")
        go.set()
        self.assertEqual(100_000, len(client.read_exactly(100_000)))
        client.close()
        self.assertEqual(0, proxy.exit_code(proxy.replaced[0]))

    def test_a_client_that_stays_idle_is_closed(self):
        proxy = self.start_proxy()
        idle = [Client(proxy.port) for _ in range(20)]
        for client in idle:
            self.addCleanup(client.close)
            self.assertEqual(200, client.ask(self.origin.url("/")).status)
        proxy.upgrade()
        for client in idle:
            self.assertTrue(client.at_end())
        self.assertEqual(0, proxy.exit_code(proxy.replaced[0]))

    def test_requests_and_tunnels_have_limits_of_their_own(self):
        half, _ = self.halfway(b"x" * 1000)
        origin = Origin(self, {"/half": half})
        echo = EchoServer(self)
        proxy = self.start_proxy(upgrade={"idle": "100ms", "drain": "300ms", "tunnels": "20m"},
                                 forward={"connect_ports": [echo.port]})
        client = self.begin(proxy, origin, "/half")
        tunnel = self.tunnel(echo)
        proxy.upgrade()
        client.read_exactly(500)
        with self.assertRaises(NoResponse):
            client.read_exactly(500)
        self.check_tunnel(tunnel)
        tunnel.close()
        self.assertEqual(0, proxy.exit_code(proxy.replaced[0]))

    def test_a_tunnel_outlives_three_upgrades_and_a_fourth_is_refused(self):
        echo = EchoServer(self)
        proxy = self.start_proxy(forward={"connect_ports": [echo.port]})
        tunnels = []
        for number in range(3):
            tunnels.append(self.tunnel(echo))
            proxy.upgrade()
            eventually(lambda: proxy.metrics()["encore_predecessor_tunnels"] == number + 1,
                       "its tunnels are counted")
        self.assertEqual(3, proxy.metrics()["encore_predecessors"])
        self.assertIn("predecessor", proxy.admin("/api/status")[1])
        operator = Operator(self, proxy.program, "--config", proxy.config_path)
        shown = operator.run("status").json["predecessors"]
        self.assertEqual(sorted(proxy.replaced), sorted(each["process"] for each in shown))
        self.assertEqual([1, 1, 1], [each["tunnels"] for each in shown])
        self.assertRegex(operator.run("status", "--text").out, r"(?m)^predecessor +process \d+, ")
        self.assertIn("3 processes that were replaced still have clients", proxy.refused())
        self.assertEqual(1, proxy.metrics()["encore_process_upgrade_failures_total"])
        for tunnel in tunnels:
            self.check_tunnel(tunnel)
        # The middle one ends first: the oldest is still known.
        tunnels[1].close()
        eventually(lambda: proxy.metrics()["encore_predecessors"] == 2, "one has ended")
        self.check_tunnel(tunnels[0])
        proxy.upgrade()
        for tunnel in tunnels:
            tunnel.close()
        eventually(lambda: proxy.metrics()["encore_predecessors"] == 0, "all have ended")

    def test_the_end_of_the_new_one_ends_the_old_ones(self):
        echo = EchoServer(self)
        proxy = self.start_proxy(forward={"connect_ports": [echo.port]}, timeouts={"drain": "2s"})
        self.tunnel(echo)
        proxy.upgrade()
        proxy.stop()


class Counters(Upgrade):
    def test_counters_do_not_fall_and_end_as_the_requests_were(self):
        proxy = self.start_proxy()
        route_count = 7
        kept = Client(proxy.port)
        self.addCleanup(kept.close)
        for _ in range(route_count):
            self.assertEqual(200, kept.ask(self.origin.url("/counted")).status)
        before = proxy.metrics()
        proxy.upgrade()
        after = proxy.metrics()
        counters = {name for name in before if "_total" in name or "_bucket" in name}
        fallen = {name: (before[name], after.get(name)) for name in counters
                  if after.get(name, 0) < before[name]}
        self.assertEqual({}, fallen)
        # One more in the old process, which it tells at its end.
        self.assertEqual(200, kept.ask(self.origin.url("/counted")).status)
        eventually(lambda: sum(proxy.outcomes().values()) == route_count + 1, "all are counted")

    def test_admission_remembers_a_first_request_over_an_upgrade(self):
        proxy = self.start_proxy(admission={"policy": "second-hit"})
        url = self.origin.url("/twice")
        # A client that comes while the old process stops to accept may be that one's.
        def upgrade():
            old = proxy.serving
            proxy.upgrade()
            proxy.exit_code(old)

        for _ in range(2):
            get(proxy.port, url)
            upgrade()
        asked = self.origin.count("/twice")
        self.assertEqual(2, asked)
        get(proxy.port, self.origin.url("/once-more"))
        upgrade()
        get(proxy.port, self.origin.url("/once-more"))
        get(proxy.port, self.origin.url("/once-more"))
        self.assertEqual(2, self.origin.count("/once-more"))


class Failing(Upgrade):
    def program(self, text):
        """A program in the place of encore, which a later upgrade would start."""
        self.script.write_text(f"#!/bin/bash\n{text}\n")
        self.script.chmod(0o755)

    def start_script(self, **sections):
        self.script = self.directory / "encore"
        self.real = os.environ["ENCORE"]
        os.environ["ENCORE"] = str(self.script)
        self.addCleanup(os.environ.__setitem__, "ENCORE", self.real)
        self.program(f"exec -a \"$0\" '{self.real}' \"$@\"")
        return self.start_proxy(**sections)

    def check_unchanged(self, process):
        self.assertEqual(process, self.proxy.serving)
        self.assertEqual(BODY, get(self.proxy.port, self.origin.url("/")).body)
        self.assertEqual(0, self.proxy.stats()["predecessors"])

    def test_a_wrong_configuration_is_refused_with_its_reason(self):
        proxy = self.start_proxy()
        good = proxy.config_path.read_text()
        proxy.config_path.write_text(good + "[nothing]\nx = 1\n")
        self.assertIn("nothing", proxy.refused())
        self.check_unchanged(proxy.process.pid)
        proxy.config_path.write_text(good)
        proxy.upgrade()
        self.assertEqual(BODY, get(proxy.port, self.origin.url("/")).body)

    def test_an_address_in_use_is_refused_with_its_reason(self):
        taken = socket.socket()
        self.addCleanup(taken.close)
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        proxy = self.start_proxy()
        proxy.sections["listen"] = [{"address": f"127.0.0.1:{proxy.port}", "mode": "forward"},
                                    {"address": f"127.0.0.1:{taken.getsockname()[1]}",
                                     "mode": "forward"}]
        proxy.write_config()
        self.assertIn("in use", proxy.refused())
        self.check_unchanged(proxy.process.pid)

    def test_a_program_that_ends_or_does_nothing_is_rolled_back(self):
        proxy = self.start_script(upgrade={"start": "1s"})
        load = Load(self)
        load.add("kept", kept_alive(proxy.port, self.origin.url("/kept"), BODY))
        load.add("one-shot", one_shot(proxy.port, self.origin.url("/shot"), BODY))
        self.program("exit 7")
        self.assertIn("status 7", proxy.refused())
        self.program("exec sleep 1000")
        self.assertIn("upgrade.start", proxy.refused())
        self.program("printf nonsense >&3; exec sleep 1000")
        self.assertIn("ended before it served", proxy.refused())
        self.script.unlink()
        self.assertIn("cannot start", proxy.refused())
        self.program(f"exec -a \"$0\" '{self.real}' \"$@\"")
        load.wait_for("kept")
        load.wait_for("one-shot")
        load.stop()
        self.check_unchanged(proxy.process.pid)
        proxy.upgrade()
        self.assertEqual(BODY, get(proxy.port, self.origin.url("/")).body)

    def test_a_reload_and_a_second_upgrade_are_refused_meanwhile(self):
        proxy = self.start_script()
        self.program("echo $$ > pid.new; mv pid.new pid; exec sleep 1000".replace(
            "pid", str(self.directory / "pid")))
        results = []
        asking = threading.Thread(target=lambda: results.append(proxy.refused()))
        asking.start()
        self.addCleanup(asking.join)
        eventually((self.directory / "pid").exists, "the new process has started")
        process = int((self.directory / "pid").read_text())
        operator = Operator(self, self.real, "--config", proxy.config_path)
        for command in ("reload", "upgrade"):
            self.assertIn("an upgrade is in progress", operator.run(command, status=REFUSED).err)
        os.kill(process, signal.SIGKILL)
        asking.join()
        self.assertIn("ended before it served", results[0])
        self.assertEqual("reloaded\n", operator.run("reload", "--text").out)
        self.check_unchanged(proxy.process.pid)

    def test_a_journal_of_decisions_needs_a_restart(self):
        proxy = self.start_proxy(log={"decisions": str(self.directory / "decisions")})
        self.assertIn("log.decisions", proxy.refused())
        self.check_unchanged(proxy.process.pid)

    def test_a_unix_socket_survives_a_new_process_that_fails(self):
        path = self.directory / "proxy.sock"
        port = free_port()
        proxy = self.start_proxy(listen=[{"address": f"127.0.0.1:{port}", "mode": "forward"},
                                         {"address": f"unix:{path}", "mode": "forward"}])
        proxy.sections["listen"] = [*proxy.sections["listen"],
                                    {"address": f"unix:{self.directory}", "mode": "forward"}]
        proxy.write_config()
        self.assertIn("is not a socket", proxy.refused())
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(path))


class Secure(TlsCase):
    def test_no_request_fails_by_tls_and_http2_and_tickets_resume(self):
        self.encore = lambda **sections: UpgradingEncore(self, **sections)
        self.serve(listen={"http2": True}, upgrade={"idle": "300ms"})
        context = self.authority.trusting(maximum_version=ssl.TLSVersion.TLSv1_2)
        with self.client(context=context) as client:
            ask_on(client, "/page")
            session = client.sock.session
        load = Load(self)

        def secure(_):
            with SecureClient(self.port, context, "www.example") as client:
                for _ in range(3):
                    answer = ask_on(client, "/page")
                    if answer.body != b"page":
                        raise AssertionError(answer)
                    if field(answer, "Connection") == "close":
                        break
            return 1
        h2_context = self.authority.trusting()
        h2_context.set_alpn_protocols(["h2"])

        def http2(state):
            client = state.get("client")
            if client is None:
                client = state["client"] = Http2Client(self.port, h2_context)
            answer = client.ask("/page")
            if answer.status != 200 or answer.body != b"page":
                raise AssertionError(f"{answer.status} after {client.goaways}")
            if client.goaways:
                client.close()
                del state["client"]
            return 1
        load.add("tls", secure, 2)
        load.add("h2", http2, 2)
        for _ in range(UPGRADES):
            self.proxy.upgrade()
            load.wait_for("tls")
            load.wait_for("h2")
            eventually(lambda: self.proxy.stats()["predecessors"] == 0, "the old process has ended")
            with SecureClient(self.port, context, "www.example", session) as client:
                self.assertEqual(b"page", ask_on(client, "/page").body)
                self.assertTrue(client.sock.session_reused)
        load.stop()


class ServiceManager(Upgrade):
    """The protocol of systemd: a socket for notices, and descriptors behind the standard ones."""

    def setUp(self):
        super().setUp()
        self.notices = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.notices.close)
        path = str(self.directory / "notify")
        self.notices.bind(path)
        self.notices.setblocking(False)
        os.environ["NOTIFY_SOCKET"] = path
        self.addCleanup(os.environ.pop, "NOTIFY_SOCKET", None)
        self.heard, self.stored = [], []
        self.addCleanup(lambda: [os.close(each) for each in self.stored])

    def hear(self):
        while True:
            try:
                text, descriptors, _, _ = socket.recv_fds(self.notices, 4096, 64)
            except BlockingIOError:
                return self.heard
            self.heard += text.decode().split("\n")
            self.stored += descriptors

    def wait_for(self, line):
        eventually(lambda: line in self.hear(), line)

    def test_it_hears_who_serves(self):
        os.environ["WATCHDOG_USEC"] = "200000"
        self.addCleanup(os.environ.pop, "WATCHDOG_USEC", None)
        proxy = self.start_proxy()
        self.wait_for("READY=1")
        self.wait_for("WATCHDOG=1")
        self.wait_for(f"MAINPID={proxy.serving}")
        self.heard.clear()
        proxy.upgrade()
        self.wait_for(f"MAINPID={proxy.serving}")
        self.wait_for("READY=1")
        self.assertEqual(0, proxy.exit_code(proxy.replaced[0]))
        self.heard.clear()
        self.wait_for("WATCHDOG=1")
        proxy.stop()
        self.assertEqual(1, self.hear().count("STOPPING=1"))

    def test_a_crash_refuses_nobody(self):
        proxy = self.start_proxy(workers={"count": 2})
        self.wait_for("READY=1")
        eventually(lambda: self.hear() and len(self.stored) == 2, "both sockets are stored")
        proxy.process.kill()
        proxy.process.wait()
        waiting = [Client(proxy.port) for _ in range(20)]
        for client in waiting:
            self.addCleanup(client.close)
            client.request(self.origin.url("/"))
        stored = list(self.stored)
        script = self.directory / "start"
        copies = " ".join(f"{3 + i}<&{100 + i}" for i in range(len(stored)))
        script.write_text(f"#!/bin/bash\nexport LISTEN_PID=$$ LISTEN_FDS={len(stored)}\n"
                          f"exec '{proxy.program}' \"$@\" {copies}\n")
        script.chmod(0o755)
        for i, descriptor in enumerate(stored):
            os.dup2(descriptor, 100 + i, inheritable=True)
            self.addCleanup(os.close, 100 + i)
        with open(proxy.output_path, "ab") as output:
            proxy.process = subprocess.Popen([script, "--config", proxy.config_path],
                                             stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                             close_fds=False)
        proxy.serving = proxy.process.pid
        for client in waiting:
            self.assertEqual(BODY, client.read_response().body)
        self.assertEqual(2, proxy.stats()["workers"])


if __name__ == "__main__":
    unittest.main()
