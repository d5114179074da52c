"""Starting, draining, reloading, and what the command line promises."""

import os
import re
import signal
import subprocess
import threading
import tomllib
import unittest

from client import Client, field, get
from halfway import HalfwayCase
from harness import Case, clean_environment, eventually, free_port, listening
from origin import Origin, fresh, response


class Lifecycle(HalfwayCase):
    def test_sigterm_finishes_what_is_under_way_and_takes_nothing_new(self):
        for number in (signal.SIGTERM, signal.SIGINT):
            body = os.urandom(100_000)
            route, go = self.halfway(body)
            origin = Origin(self, {"/page": route})
            encore = self.encore()
            client = self.begin(encore, origin, "/page")
            encore.signal(number)
            eventually(lambda: not listening(encore.port), "the listener is closed")
            self.assertIsNone(encore.process.poll())
            go.set()
            self.assertEqual(body, client.read_exactly(len(body)))
            self.assertEqual(0, encore.wait_for_exit())

    def test_whoever_watches_learns_that_it_drains(self):
        body = os.urandom(100_000)
        route, go = self.halfway(body)
        origin = Origin(self, {"/page": route})
        encore = self.encore()
        client = self.begin(encore, origin, "/page")
        encore.signal(signal.SIGTERM)
        eventually(lambda: not listening(encore.port), "the listener is closed")
        self.assertEqual((200, "ok\n"), encore.admin("/healthz"))
        self.assertEqual((503, "draining\n"), encore.admin("/readyz"))
        self.assertEqual(200, encore.admin("/metrics")[0])
        encore.signal(signal.SIGHUP)
        eventually(lambda: "reload refused" in encore.output(), "the reload is refused")
        go.set()
        self.assertEqual(body, client.read_exactly(len(body)))
        self.assertEqual(0, encore.wait_for_exit())

    def test_pages_and_signals_do_not_wait_for_a_slow_disk(self):
        origin = Origin(self, default=fresh(b"page"))
        state = self.directory / "state"
        encore = self.encore(start=False, state={"directory": str(state), "save_interval": "1s"})
        encore.slow_down("fsync", 4)
        encore.start()
        unsynced = state / "admission.new"
        for _ in range(2):
            eventually(unsynced.exists, "a save has begun")
            reloads = encore.stats()["reloads"]
            encore.signal(signal.SIGHUP)
            eventually(lambda: encore.stats()["reloads"] > reloads, "the reload is done")
            get(encore.port, origin.url("/page"))
            self.assertEqual(200, encore.admin("/readyz")[0])
            self.assertTrue(unsynced.exists())
            eventually(lambda: not unsynced.exists(), "the save is done")
        # A save in progress when the end comes is finished, and the last one follows it.
        eventually(unsynced.exists, "a save has begun")
        get(encore.port, origin.url("/last"))
        encore.stop()
        self.assertFalse(unsynced.exists())
        encore.start()
        said = field(get(encore.port, origin.url("/last")), "Cache-Status")
        self.assertIn("second-request", said)

    def test_a_drain_does_not_wait_for_idle_connections_nor_beyond_its_limit(self):
        route, _ = self.halfway(b"x" * 1000)
        origin = Origin(self, {"/page": route, "/quick": fresh(b"q")})
        encore = self.encore(timeouts={"drain": "1s"})
        with Client(encore.port) as idle:
            idle.ask(origin.url("/quick"))
            self.begin(encore, origin, "/page")
            encore.signal(signal.SIGTERM)
            self.assertEqual(0, encore.wait_for_exit())

    def test_a_drain_waits_for_what_is_fetched_in_the_background(self):
        asked, go, taken = threading.Event(), threading.Event(), threading.Event()
        body = os.urandom(16 << 20)

        def page(exchange):
            if origin.count() == 1:
                return response(b"old", ETag='"a"', Age="70",
                                Cache_Control="max-age=60, stale-while-revalidate=600")
            asked.set()
            exchange.wait(go)
            exchange.send(fresh(body))  # more than fits between the two
            taken.set()
            return None
        origin = Origin(self, {"/page": page})
        encore = self.encore(admission={"policy": "always"}, workers={"count": 1},
                             cache={"memory": "256MiB"})
        for _ in range(2):
            self.assertEqual(b"old", get(encore.port, origin.url("/page")).body)
        self.assertTrue(asked.wait(60))
        encore.signal(signal.SIGTERM)
        eventually(lambda: not listening(encore.port), "the listener is closed")
        go.set()
        self.assertEqual(0, encore.wait_for_exit())
        self.assertTrue(taken.is_set(), "the answer was not read")

    def test_a_hit_during_a_drain_says_that_its_connection_ends(self):
        for size in (10, 100_000):  # in its slot, and by itself
            origin = Origin(self, {"/page": fresh(b"x" * size)})
            encore = self.encore(admission={"policy": "always"}, workers={"count": 1})
            get(encore.port, origin.url("/page"))
            self.assertIn("; hit", field(get(encore.port, origin.url("/page")), "Cache-Status"))
            with Client(encore.port) as client:
                # Not idle: with one request it has begun the next.
                line, rest = f"GET {origin.url('/page')} HTTP/1.1\r\n", "Host: a\r\n\r\n"
                client.send(line + rest + line)
                self.assertIsNone(field(client.read_response(), "Connection"))
                encore.signal(signal.SIGTERM)
                eventually(lambda: not listening(encore.port), "the listener is closed")
                client.send(rest)
                answer = client.read_response()
                self.assertEqual((200, size), (answer.status, len(answer.body)))
                self.assertIn("; hit", field(answer, "Cache-Status"))
                self.assertEqual("close", field(answer, "Connection"))
                self.assertTrue(client.at_end())
            self.assertEqual(0, encore.wait_for_exit())

    def test_a_full_pipe_that_nobody_reads_does_not_hold_back_requests_nor_the_end(self):
        origin = Origin(self, {"/page": fresh(b"page")})
        encore = self.encore(start=False, log={"access": "-"})
        encore.write_config()
        with open(encore.output_path, "ab") as errors, subprocess.Popen(
                [encore.program, "--config", encore.config_path], stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=errors, env=clean_environment()) as process:
            encore.process = process
            self.addCleanup(encore.stop)
            eventually(encore.ready, "encore is ready")
            # A pipe holds 64 KiB; each record is a few hundred bytes.
            url = origin.url("/page?" + "x" * 4000)
            with Client(encore.port) as client:
                for _ in range(100):
                    self.assertEqual(b"page", client.ask(url).body)
            encore.signal(signal.SIGTERM)
            self.assertEqual(0, encore.wait_for_exit())

    def test_reload_keeps_connections_transfers_and_the_cache(self):
        body = os.urandom(100_000)
        route, go = self.halfway(body)
        origin = Origin(self, {"/slow": route, "/page": fresh(b"page")})
        encore = self.encore()
        for _ in range(2):
            get(encore.port, origin.url("/page"))
        with Client(encore.port) as kept:
            kept.ask(origin.url("/page"))
            transfer = self.begin(encore, origin, "/slow")
            encore.sections["forward"] = {"connect_ports": [origin.port]}
            self.assertEqual(403, self.connect(encore, origin))
            encore.write_config()
            encore.signal(signal.SIGHUP)
            eventually(lambda: self.connect(encore, origin) == 200, "the new config is in force")
            self.assertIn("; hit", field(kept.ask(origin.url("/page")), "Cache-Status"))
            go.set()
            self.assertEqual(body, transfer.read_exactly(len(body)))
        self.assertEqual(2, origin.count("/page"))

    def reload_memory(self, encore, size):
        encore.sections["cache"]["memory"] = size
        encore.write_config()
        encore.signal(signal.SIGHUP)

    def test_a_reload_to_less_memory_evicts_and_one_to_more_makes_room(self):
        bodies = {f"/{n}": bytes([65 + n % 26]) * 20_000 for n in range(300)}
        origin = Origin(self, {path: fresh(body) for path, body in bodies.items()})
        # Little transfer memory, so that the store's limit must grow, too.
        encore = self.encore(admission={"policy": "always"}, cache={"memory": "4MiB"},
                             limits={"transfer_memory": "1MiB"})

        def fill():
            with Client(encore.port) as client:
                for path, body in bodies.items():
                    self.assertEqual(body, client.ask(origin.url(path)).body)
            return encore.metrics()["encore_cache_used_bytes"]
        self.assertGreater(fill(), 3 << 20)
        self.reload_memory(encore, "1MiB")
        eventually(lambda: encore.metrics()["encore_cache_used_bytes"] <= 1 << 20, "it shrinks")
        self.assertLessEqual(fill(), 1 << 20)
        self.reload_memory(encore, "16MiB")
        eventually(lambda: encore.metrics()["encore_cache_capacity_bytes"] == 16 << 20, "it grows")
        self.assertGreater(fill(), 300 * 20_000)
        asked = origin.count()
        fill()
        self.assertEqual(asked, origin.count())

    def test_a_reload_to_a_larger_max_object_lets_larger_ones_in(self):
        origin = Origin(self, default=fresh(b"x" * 10_000))
        encore = self.encore(admission={"policy": "always"}, cache={"max_object": "4KiB"})

        def said():
            return field(get(encore.port, origin.url("/page")), "Cache-Status")
        for _ in range(2):
            self.assertIn("detail=too-large", said())
        encore.sections["cache"]["max_object"] = "16KiB"
        encore.write_config()
        encore.signal(signal.SIGHUP)
        eventually(lambda: "; hit" in said(), "it is stored")

    def test_a_reload_to_more_memory_than_can_be_addressed_is_refused(self):
        encore = self.encore()
        self.reload_memory(encore, "1TiB")
        refusal = "`encore upgrade` is needed for a cache.memory this large"
        eventually(lambda: refusal in encore.output(), "the refusal is told")
        self.assertEqual(64 << 20, encore.metrics()["encore_cache_capacity_bytes"])

    @staticmethod
    def connect(encore, origin):
        with Client(encore.port) as client:
            client.send(f"CONNECT {origin.authority} HTTP/1.1\r\nHost: {origin.authority}\r\n\r\n")
            return client.read_response("CONNECT").status

    def test_a_bad_config_changes_nothing_and_is_named(self):
        origin = Origin(self, {"/page": fresh(b"page")})
        encore = self.encore()
        for _ in range(2):
            get(encore.port, origin.url("/page"))
        good = encore.config_path.read_text()
        encore.config_path.write_text(good.replace("[cache]", "[cache]\nmemry = \"1MiB\"")
                                      + f"\n[forward]\nconnect_ports = [{origin.port}]\n")
        encore.signal(signal.SIGHUP)
        eventually(lambda: "memry" in encore.output(), "the error is reported")
        self.assertIn(encore.config_path.name, encore.output())
        self.assertEqual(403, self.connect(encore, origin))
        self.assertIn("; hit", field(get(encore.port, origin.url("/page")), "Cache-Status"))
        encore.config_path.write_text(good)
        encore.signal(signal.SIGHUP)
        self.assertIn("; hit", field(get(encore.port, origin.url("/page")), "Cache-Status"))

    def test_a_reload_that_needs_a_restart_is_refused_whole_and_names_the_keys(self):
        origin = Origin(self, {"/page": fresh(b"page")})
        encore = self.encore()
        encore.sections["forward"] = {"connect_ports": [origin.port]}
        encore.sections["log"]["access"] = str(self.directory / "other.log")
        encore.write_config()
        encore.signal(signal.SIGHUP)
        eventually(lambda: "`encore upgrade` is needed for log.access" in encore.output(), "it is named")
        self.assertEqual(403, self.connect(encore, origin))
        self.assertEqual(1, encore.stats()["reload_failures"])

    def test_signals_during_the_start_wait_until_they_can_be_obeyed(self):
        encore = self.encore(start=False)
        encore.write_config()
        text = encore.config_path.read_text()
        encore.config_path.unlink()
        os.mkfifo(encore.config_path)

        def being_read():
            try:  # there is a reader: it has begun
                return os.open(encore.config_path, os.O_WRONLY | os.O_NONBLOCK)
            except OSError:
                return None

        def go_on():
            pipe = eventually(being_read, "the config is read")
            encore.config_path.unlink()
            encore.config_path.write_text(text)  # for the reload
            encore.signal(signal.SIGHUP)
            encore.signal(signal.SIGUSR1)
            os.write(pipe, text.encode())
            os.close(pipe)
        encore.start(before_ready=go_on)
        eventually(lambda: encore.stats()["reloads"] == 1, "the reload is not forgotten")

    def test_sigusr1_reopens_the_access_log(self):
        origin = Origin(self, {"/page": fresh(b"page")})
        encore = self.encore()
        get(encore.port, origin.url("/page"))
        encore.access_records(1)
        rotated = encore.access_path.with_suffix(".1")
        encore.access_path.rename(rotated)
        encore.signal(signal.SIGUSR1)
        eventually(encore.access_path.exists, "the log is opened anew")
        get(encore.port, origin.url("/page"))
        self.assertEqual(1, len(encore.access_records(1)))
        self.assertEqual(1, len(rotated.read_text().splitlines()))

    def test_the_filter_outlives_a_restart(self):
        origin = Origin(self, default=fresh(b"page"))
        state = self.directory / "state"
        state.mkdir()
        encore = self.encore(state={"directory": str(state)})
        for number in range(50):
            get(encore.port, origin.url(f"/{number}"))
        encore.stop()
        encore.start()
        for number in range(50):
            said = field(get(encore.port, origin.url(f"/{number}")), "Cache-Status")
            self.assertIn("detail=second-request", said)
        self.assertIn("first-request", field(get(encore.port, origin.url("/new")), "Cache-Status"))

    def test_state_of_others_is_not_used_and_ours_is_for_us_alone(self):
        origin = Origin(self, default=fresh(b"page"))
        state = self.directory / "shared"
        state.mkdir()
        state.chmod(0o1777)
        encore = self.encore(state={"directory": str(state)})
        get(encore.port, origin.url("/a"))
        (state / "admission.new").symlink_to(self.directory / "elsewhere")
        encore.stop()
        self.assertFalse((self.directory / "elsewhere").exists())
        for file in ("seed", "admission"):
            self.assertEqual(0o600, (state / file).stat().st_mode & 0o777)
            (state / file).chmod(0o644)
        encore.start()
        self.assertIn("second-request", field(get(encore.port, origin.url("/a")), "Cache-Status"))
        encore.stop()
        for file in ("seed", "admission"):
            self.assertEqual(0o600, (state / file).stat().st_mode & 0o777)
        (state / "seed").unlink()
        (state / "seed").symlink_to(self.directory / "elsewhere")
        encore.write_config()
        ended = self.run_client([encore.program, "--config", encore.config_path], check=False)
        self.assertEqual(1, ended.returncode)
        self.assertIn(str(state / "seed"), ended.stdout.decode())

    def test_a_damaged_state_is_reported_and_not_trusted(self):
        origin = Origin(self, default=fresh(b"page"))
        state = self.directory / "state"
        state.mkdir()
        encore = self.encore(state={"directory": str(state)})
        get(encore.port, origin.url("/a"))
        encore.stop()
        files = [f for f in state.rglob("*") if f.is_file() and f.stat().st_size > 1000]
        self.assertTrue(files, "nothing was saved")
        for file in files:
            data = bytearray(file.read_bytes())
            data[len(data) // 2] ^= 0xFF
            file.write_bytes(data)
        encore.start()
        self.assertEqual(200, get(encore.port, origin.url("/a")).status)


class CommandLine(Case):
    def run_encore(self, *arguments):
        return subprocess.run([os.environ["ENCORE"], *map(str, arguments)], timeout=60,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=clean_environment())

    def config(self, text):
        path = self.directory / "encore.toml"
        path.write_text(text)
        return path

    def test_version_and_help(self):
        ended = self.run_encore("--version")
        self.assertEqual(0, ended.returncode)
        self.assertRegex(ended.stdout, r"\d+\.\d+\.\d+")
        ended = self.run_encore("--help")
        self.assertEqual(0, ended.returncode)
        listed = ended.stdout[ended.stdout.index("Subcommands:"):ended.stdout.index("Examples:")]
        for command in "explain", "status", "intercept", "disk", "ca":
            self.assertRegex(listed, rf"(?m)^  {command} +\S")
            ended = self.run_encore(command, "--help")
            self.assertEqual(0, ended.returncode)
            self.assertRegex(ended.stdout, rf"(?m)^Examples?:\n  encore .*{command}", command)

    def test_a_command_that_must_come_first_says_so(self):
        for command in ("disk", "list", "x"), ("ca", "show"):
            ended = self.run_encore("--set", "cache.memory=1MiB", *command)
            self.assertEqual(2, ended.returncode)
            self.assertIn(f'"{command[0]}" must be the first argument', ended.stderr)

    def test_check_config_prints_what_follows_for_the_filter(self):
        ended = self.run_encore("--check-config", "--config",
                                self.config("[admission]\ncapacity = 1000000\nfpr = 0.01\n"))
        self.assertEqual(0, ended.returncode, ended.stderr)
        for word in ("split", "1000000 insertions a generation", "fpr over a cycle", "remembered"):
            self.assertIn(word, ended.stdout)

    def test_check_config_fails_where_a_start_would_with_key_and_line(self):
        (self.directory / "file").write_text("")
        (self.directory / "seeded").mkdir()
        (self.directory / "seeded/seed").write_text("damaged")
        taken = Origin(self)
        good = {"listen": {"address": f'"127.0.0.1:{free_port()}"'},
                "admin": {"address": f'"127.0.0.1:{free_port()}"'}}
        missing = f'"{self.directory}/missing/x"'
        for section, key, value in (
                ("listen", "address", f'"127.0.0.1:{taken.port}"'),
                ("listen", "address", '"192.0.2.1:3128"'),  # RFC 5737: nobody's
                ("admin", "address", f'"127.0.0.1:{taken.port}"'),
                ("log", "access", missing), ("log", "access", f'"{self.directory}"'),
                ("log", "decisions", missing),
                ("state", "directory", f'"{self.directory}/file/state"'),
                ("state", "directory", f'"{self.directory}/seeded"'),
                ("upstream", "tls_ca_file", missing), ("upstream", "tls_ca_file", '"/dev/null"'),
                ("origin", "tls_ca_file", missing)):
            with self.subTest(f"{section}.{key} = {value}"):
                sections = {**good, section: {**good.get(section, {}), key: value}}
                if section == "origin":
                    sections["origin"]["servers"] = '["https://a.example"]'
                lines = []
                for name, keys in sections.items():
                    lines.append(f"[[{name}]]" if name in ("listen", "origin") else f"[{name}]")
                    lines += [f"{k} = {v}" for k, v in keys.items()]
                line = lines.index(f"{key} = {value}") + 1
                path = self.config("\n".join(lines) + "\n")
                path_of_key = f"{section}.0.{key}" if section in ("listen", "origin") else \
                    f"{section}.{key}"
                checked = self.run_encore("--check-config", "--config", path)
                self.assertEqual(1, checked.returncode, checked.stderr)
                self.assertRegex(checked.stderr,
                                 rf"^{re.escape(str(path))}:{line}:\d+: {path_of_key}: .")
                self.assertEqual(1, len(checked.stderr.splitlines()), checked.stderr)
                self.assertEqual(1, self.run_encore("--config", path).returncode)
        self.assertFalse((self.directory / "missing").exists())

    def test_check_config_makes_nothing_and_names_all_faults_at_once(self):
        places = {"log.access": "a.log", "log.decisions": "d.log", "state.directory": "deep/state"}
        sets = [f"--set={key}={self.directory / name}" for key, name in places.items()]
        sets += [f"--set=listen.0.address=127.0.0.1:{free_port()}",
                 f"--set=admin.address=127.0.0.1:{free_port()}"]
        self.assertEqual(0, self.run_encore("--check-config", *sets).returncode)
        self.assertEqual([], list(self.directory.iterdir()))
        ended = self.run_encore("--check-config", *sets, "--set=log.access=/dev/null/x",
                                "--set=upstream.tls_ca_file=/dev/null")
        self.assertEqual(1, ended.returncode)
        for key in ("log.access", "upstream.tls_ca_file"):
            self.assertIn(f"--set {key}: ", ended.stderr)

    def test_check_config_fails_by_an_address_of_nobody_beside_an_encore_on_that_port(self):
        encore = self.encore()
        address = f"192.0.2.1:{encore.port}"
        ended = self.run_encore("--check-config", f"--set=listen.0.address={address}",
                                f"--set=admin.address=127.0.0.1:{free_port()}")
        self.assertEqual(1, ended.returncode, ended.stdout)
        self.assertIn(f"cannot listen on {address}: ", ended.stderr)

    def test_check_config_beside_the_encore_that_runs_with_it_says_so_and_is_content(self):
        encore = self.encore(state={"directory": str(self.directory / "state")})
        ended = self.run_encore("--check-config", "--config", encore.config_path)
        self.assertEqual(0, ended.returncode, ended.stderr)
        for what in (encore.port, encore.admin_port, "state directory"):
            self.assertRegex(ended.stdout, rf"note: .*{what}.* in use by a running encore")

    def test_a_second_encore_does_not_share_the_first_ones_state(self):
        encore = self.encore(state={"directory": str(self.directory / "state")})
        ended = self.run_encore("--set", f"listen.0.address=127.0.0.1:{free_port()}",
                                "--set", f"admin.address=127.0.0.1:{free_port()}",
                                "--set", f"state.directory={self.directory}/state")
        self.assertEqual(1, ended.returncode)
        self.assertIn(f"{self.directory}/state is in use by another encore (process "
                      f"{encore.process.pid})", ended.stderr)
        encore.stop()
        encore.start()

    def test_the_help_names_the_log_that_sigusr1_opens_again(self):
        self.assertIn("SIGUSR1 reopens log.access", self.run_encore("--help").stdout)

    def test_a_bad_config_is_refused_with_file_line_column_key_and_suggestion(self):
        path = self.config('[cache]\nmemory = "64MiB"\nmemmory = "1MiB"\nshards = "many"\n')
        for arguments in (("--check-config", "--config", path), ("--config", path)):
            ended = self.run_encore(*arguments)
            self.assertEqual(2, ended.returncode)
            self.assertRegex(ended.stderr, r"encore\.toml:3:\d+: .*memmory")
            self.assertIn("memory", ended.stderr.replace("memmory", ""))
            self.assertRegex(ended.stderr, r"encore\.toml:4:\d+: .*shards")

    def test_wrong_use_exits_2(self):
        self.assertEqual(2, self.run_encore("--no-such-option").returncode)
        self.assertEqual(2, self.run_encore("--config", self.directory / "missing").returncode)
        self.assertEqual(2, self.run_encore("--check-config", "--set", "cache.memory=x").returncode)

    def test_set_overrides_the_file_and_a_dump_is_a_config(self):
        path = self.config('[cache]\nmemory = "64MiB"\n')
        ended = self.run_encore("--dump-config", "--config", path, "--set", "cache.memory=32MiB")
        self.assertEqual(0, ended.returncode, ended.stderr)
        dumped = tomllib.loads(ended.stdout)
        self.assertEqual("32MiB", dumped["cache"]["memory"])
        again = self.run_encore("--dump-config", "--config", self.config(ended.stdout))
        self.assertEqual(dumped, tomllib.loads(again.stdout))

    def test_an_address_in_use_exits_1(self):
        origin = Origin(self)
        ended = self.run_encore("--set", f"listen.0.address=127.0.0.1:{origin.port}",
                                "--set", f"admin.address=127.0.0.1:{free_port()}")
        self.assertEqual(1, ended.returncode)
        self.assertIn(str(origin.port), ended.stderr + ended.stdout)

    def test_a_second_encore_does_not_share_the_first_ones_port(self):
        encore = self.encore()
        ended = self.run_encore("--set", f"listen.0.address=127.0.0.1:{encore.port}",
                                "--set", f"admin.address=127.0.0.1:{free_port()}")
        self.assertEqual(1, ended.returncode)
        self.assertIn(f"127.0.0.1:{encore.port}: Address already in use", ended.stderr)

    def test_what_cannot_be_opened_exits_1_and_is_named(self):
        for key, path in (("log.access", "missing/access.log"), ("log.decisions", "missing/d"),
                          ("state.directory", "file/state"), ("upstream.tls_ca_file", "no.pem")):
            (self.directory / "file").write_text("")
            path = self.directory / path
            ended = self.run_encore("--set", f"listen.0.address=127.0.0.1:{free_port()}",
                                    "--set", f"admin.address=127.0.0.1:{free_port()}",
                                    "--set", f"{key}={path}")
            self.assertEqual(1, ended.returncode, key)
            self.assertIn(str(path), ended.stderr)

    def test_what_a_start_refuses_the_check_refuses(self):
        port, admin = free_port(), free_port()
        long_name = "a" * 300
        (self.directory / "taken").mkdir()
        (self.directory / "taken" / "lock").mkdir()
        for status, settings in (
                (2, {"listen.0.address": f"0.0.0.0:{port}",
                     "listen.1.address": f"127.0.0.1:{port}"}),
                (2, {"listen.0.address": f"[::]:{port}", "listen.1.address": f"0.0.0.0:{port}"}),
                (2, {"listen.0.address": f"127.0.0.1:{port}", "listen.1.address": f"*:{port}"}),
                (2, {"listen.0.address": f"*:{admin}"}),
                (1, {"state.directory": "/proc/encore/state"}),
                (1, {"state.directory": str(self.directory / long_name)}),
                (1, {"state.directory": str(self.directory / "taken")}),
                (1, {"log.access": "/proc/encore.log"}),
                (1, {"log.decisions": str(self.directory / long_name)}),
                (1, {"listen.0.address": "unix:/proc/encore.sock"})):
            settings = {"listen.0.address": f"127.0.0.1:{port}",
                        "admin.address": f"127.0.0.1:{admin}", **settings}
            words = [word for key, value in settings.items()
                     for word in ("--set", f"{key}={value}")]
            for more in ((), ("--check-config",)):
                ended = self.run_encore(*words, *more)
                self.assertEqual(status, ended.returncode, (settings, more, ended.stderr))

    def test_a_state_directory_keeps_the_mode_it_had(self):
        shared, own = self.directory / "shared", self.directory / "own"
        shared.mkdir()
        shared.chmod(0o755)
        for directory in (shared, own):
            self.encore(state={"directory": str(directory)}).stop()
        self.assertEqual(0o755, shared.stat().st_mode & 0o777)
        self.assertEqual(0o700, own.stat().st_mode & 0o777)
        self.assertEqual(0o600, (shared / "seed").stat().st_mode & 0o777)


if __name__ == "__main__":
    unittest.main()
