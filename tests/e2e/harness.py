"""Shared parts of the tests: a temporary directory, free ports, and encore as a process under test.

Everything listens on loopback at free ports and is stopped, by its own process id, when the test
ends. `eventually` polls a condition; nothing sleeps for a fixed time and hopes.
"""

import ctypes
import http.client
import ipaddress
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import unittest

# Whether encore runs under memcheck (./dev test --memcheck): ENCORE then names the script that
# starts it so.
MEMCHECK = bool(os.environ.get("ENCORE_MEMCHECK"))
if MEMCHECK and "ENCORE_BARE" not in os.environ:
    os.environ["ENCORE_BARE"] = os.environ["ENCORE"]
    os.environ["ENCORE"] = str(pathlib.Path(__file__).with_name("memcheck"))
# Factor for a test's time limits.
SLOWDOWN = 4 if MEMCHECK else 1
# Seconds until what must come counts as never; generous, for sanitizers are slow.
DEADLINE = float(os.environ.get("ENCORE_E2E_DEADLINE", 60 * SLOWDOWN))
PR_SET_PDEATHSIG = 1
SANITIZER_REPORT = re.compile(
    r"ERROR: \w*Sanitizer|WARNING: ThreadSanitizer|runtime error:|ENCORE_CHECK|^panic|^==\d+== ",
    re.M)


claimed_ports = []


def claim_port(port):
    """Returns true if this port is reserved for the caller from now on, until this process ends: a
    name represents it that only one socket of the machine can have."""
    claim = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        claim.bind(f"\0encore-test-port-{port}")
    except OSError:
        claim.close()
        return False
    claimed_ports.append(claim)
    return True


def free_port(host="127.0.0.1"):
    """A port that nothing listens on, below those that the system gives to clients: between this
    answer and its use neither a connection nor another test can take it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    while True:
        port = random.SystemRandom().randrange(10240, 32000)
        if not claim_port(port):
            continue
        with socket.socket(family) as s:
            try:
                s.bind((host, port))
            except OSError:
                continue
            return port


def eventually(condition, what, deadline=DEADLINE):
    """Polls until `condition()` is true and returns its value; fails naming `what` otherwise."""
    end = time.monotonic() + deadline
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"did not come within {deadline:.0f} s: {what}")
        time.sleep(0.01)


def listening(port, host="127.0.0.1"):
    try:
        socket.create_connection((host, port), timeout=1).close()
        return True
    except OSError:
        return False


def find_program(name):
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


def need_program(*names):
    """The paths of client programs; skips the test where one is missing."""
    paths = [find_program(name) for name in names]
    for name, path in zip(names, paths):
        if not path:
            raise unittest.SkipTest(f"{name} is not installed")
    return paths[0] if len(paths) == 1 else paths


def need_simulator():
    """The path of encore-sim; skips the test where none is named."""
    program = os.environ.get("ENCORE_SIM")
    if not program:
        raise unittest.SkipTest("ENCORE_SIM does not name the simulator")
    return program


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def clean_environment(**more):
    """The environment without proxy settings of the machine."""
    kept = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    return {**kept, **{k: str(v) for k, v in more.items()}}


class Case(unittest.TestCase):
    """A test with a temporary directory of its own, removed when it ends."""

    maxDiff = 2000

    def setUp(self):
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="encore-e2e-"))
        self.addCleanup(shutil.rmtree, self.directory, ignore_errors=True)

    def start(self, command, port=None, **options):
        """Starts a helper process, waits until it listens on `port`, stops it after the test."""
        log = open(self.directory / f"{pathlib.Path(command[0]).name}.out", "ab")
        self.addCleanup(log.close)
        process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log, preexec_fn=die_with_parent, **options)
        self.addCleanup(stop_process, process)
        if port:
            eventually(lambda: listening(port) or process.poll() is not None,
                       f"{command[0]} listens")
            if process.poll() is not None:
                text = pathlib.Path(log.name).read_text(errors="replace")
                self.fail(f"{command[0]} ended: {text[-800:]}")
        return process

    def run_client(self, command, timeout=180, check=True, **options):
        """Runs a client to its end; fails with its output where it fails."""
        options.setdefault("env", clean_environment())
        ended = subprocess.run([str(c) for c in command], stdin=subprocess.DEVNULL, timeout=timeout,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **options)
        if check and ended.returncode != 0:
            self.fail(f"{' '.join(map(str, command))} gave {ended.returncode}:\n"
                      + ended.stdout.decode(errors="replace")[-2000:])
        return ended

    def encore(self, **sections):
        return Encore(self, **sections)


def stop_process(process):
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def toml_value(value):
    """A value as TOML has it; dictionaries in a list are written in a line."""
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[" + ", ".join(toml_value(each) for each in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {json.dumps(item)}" for key, item in value.items()) + "}"
    return json.dumps(value)


def toml(sections):
    """Sections as TOML. A list of dictionaries becomes an array of tables."""
    lines = []
    for name, value in sections.items():
        for table in value if isinstance(value, list) else [value]:
            lines.append(f"[[{name}]]" if isinstance(value, list) else f"[{name}]")
            lines += [f"{key} = {toml_value(item)}" for key, item in table.items()]
    return "\n".join(lines) + "\n"


class Encore:
    """encore as a process: started with a config of these sections, ready when this returns.

    Without a `listen` section it is a forward proxy on `self.port`. When the test ends it gets
    SIGTERM and must exit 0 without a sanitizer's report.
    """

    def __init__(self, case, listen=None, expect_exit=0, start=True, arguments=(), **sections):
        self.case, self.expect_exit, self.arguments = case, expect_exit, arguments
        self.program = os.environ.get("ENCORE")
        if not self.program:
            raise RuntimeError("ENCORE does not name the program under test")
        self.port, self.admin_port = free_port(), free_port()
        self.output_path = case.directory / f"encore-{self.port}.out"
        self.access_path = case.directory / f"access-{self.port}.log"
        self.config_path = case.directory / f"encore-{self.port}.toml"
        self.sections = {
            "listen": listen or [{"address": f"127.0.0.1:{self.port}", "mode": "forward"}],
            "cache": {"memory": "64MiB"},
            "workers": {"count": 2},
            "admin": {"address": f"127.0.0.1:{self.admin_port}"},
            "log": {"access": str(self.access_path), "format": "json"},
            "upstream": {},
            "timeouts": {},
        }
        for name, section in sections.items():
            if isinstance(section, dict):
                self.sections[name] = {**self.sections.get(name, {}), **section}
            else:
                self.sections[name] = section
        if listen:
            self.port = int(listen[0]["address"].rpartition(":")[2])
        self.process = None
        self.ending = None  # the process that was asked to end
        if start:
            self.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def write_config(self):
        self.config_path.write_text(toml(self.sections))

    def start(self, before_ready=None):
        """Starts it and waits until it is ready; `before_ready` runs in between, with a config
        that the caller has written."""
        if before_ready is None:
            self.write_config()
        with open(self.output_path, "ab") as output:
            self.process = subprocess.Popen(
                [self.program, "--config", self.config_path, *self.arguments],
                stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                env=clean_environment(), preexec_fn=die_with_parent)
        self.case.addCleanup(self.stop)
        if before_ready is not None:
            before_ready()
        eventually(lambda: self.process.poll() is not None or self.ready(), "encore is ready")
        if self.process.poll() is not None:
            self.case.fail(f"encore gave {self.process.returncode} at start:\n{self.output()}")

    def slow_down(self, call, seconds, when="1+"):
        """To be called before start(): system calls of that name take so long; `when` says which
        of a thread's, as strace has it."""
        strace = need_program("strace")
        if MEMCHECK or carries("__tsan_init"):
            raise unittest.SkipTest("strace and memcheck or the thread sanitizer: one at a time")
        script = self.case.directory / "slow"
        script.write_text(
            "#!/bin/sh\n"
            "export ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0\n"  # it is a debugger itself
            f"exec {strace} -D -f -o /dev/null -e trace={call} "
            f"-e inject={call}:delay_enter={seconds}000000:when={when} '{self.program}' \"$@\"\n")
        script.chmod(0o755)
        self.program = script

    def ready(self):
        try:
            return self.admin("/readyz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def admin(self, path, method="GET", headers=None):
        """(status, text) of a page of the admin listener."""
        connection = http.client.HTTPConnection("127.0.0.1", self.admin_port,
                                                timeout=30 * SLOWDOWN)
        try:
            connection.request(method, path, headers=headers or {})
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def stats(self):
        status, text = self.admin("/api/stats")
        self.case.assertEqual(200, status, text)
        return json.loads(text)

    def metrics(self):
        """{name with labels as written: value}"""
        status, text = self.admin("/metrics")
        self.case.assertEqual(200, status, text)
        lines = [line for line in text.splitlines() if line and not line.startswith("#")]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}

    def outcomes(self, metrics=None):
        """{outcome: requests}, those that occurred, of these metrics or of those now."""
        pattern = re.compile(r'encore_requests_total\{.*?outcome="([^"]+)"')
        found = {}
        for name, value in (metrics or self.metrics()).items():
            match = pattern.match(name)
            if match and value:
                found[match.group(1)] = found.get(match.group(1), 0) + int(value)
        return found

    def access_records(self, count):
        """The access log's records as dictionaries once there are `count`."""
        def enough():
            if not self.access_path.exists():
                return None
            lines = self.access_path.read_text().splitlines()
            return lines if len(lines) >= count else None
        return [json.loads(line) for line in eventually(enough, f"{count} records are logged")]

    def output(self):
        return self.output_path.read_text(errors="replace")[-4000:]

    def resident_bytes(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", text).group(1)) * 1024

    def peak_resident_bytes(self):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", text).group(1)) * 1024

    def signal(self, number):
        if number in (signal.SIGTERM, signal.SIGINT):
            self.ending = self.process
        self.process.send_signal(number)

    def stop(self):
        """Drains and ends it, and checks how it ended. Harmless when it has been stopped."""
        if self.process is None:
            return
        process, self.process = self.process, None
        # A second signal would end a drain immediately.
        if process.poll() is None and process is not self.ending:
            process.terminate()
        try:
            code = process.wait(DEADLINE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            self.case.fail(f"encore did not end on SIGTERM:\n{self.output()}")
        text = self.output_path.read_text(errors="replace")
        report = SANITIZER_REPORT.search(text)
        if report:
            self.case.fail(f"encore reported:\n{text[report.start():report.start() + 6000]}")
        self.case.assertEqual(self.expect_exit, code, f"exit code; it said:\n{self.output()}")

    def wait_for_exit(self):
        eventually(lambda: self.process.poll() is not None, "encore ends")
        return self.process.returncode


def carries(name):
    """Whether the program under test has this symbol's name in it."""
    return name.encode() in pathlib.Path(os.environ["ENCORE"]).read_bytes()


def sanitized():
    """Whether the program under test carries a sanitizer, or runs under memcheck (it needs far more
    memory then)."""
    return MEMCHECK or carries("__asan_init") or carries("__tsan_init")


class CertificateAuthority:
    """A CA made for the test, and certificates signed by it."""

    def __init__(self, case):
        self.openssl = need_program("openssl")
        self.directory = case.directory
        self.certificate = self.directory / "ca.pem"
        self.key = self.directory / "ca.key"
        self._run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                  "-days", "2", "-subj", "/CN=encore test CA", "-keyout", self.key,
                  "-out", self.certificate)

    def _run(self, *arguments):
        subprocess.run([self.openssl, *map(str, arguments)], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=60)

    def issue(self, name):
        """(certificate file, key file) for a host name or an address."""
        stem = self.directory / name.replace(":", "_")
        key, request, certificate = (stem.with_name(stem.name + end)
                                     for end in (".key", ".csr", ".pem"))
        try:
            alternative = f"IP:{ipaddress.ip_address(name)}"
        except ValueError:
            alternative = f"DNS:{name}"
        extensions = stem.with_name(stem.name + ".ext")
        extensions.write_text(f"subjectAltName={alternative}\n")
        self._run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                  "-subj", f"/CN={name}", "-keyout", key, "-out", request)
        self._run("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key,
                  "-CAcreateserial", "-days", "2", "-extfile", extensions, "-out", certificate)
        return certificate, key

    def server_context(self, name):
        certificate, key = self.issue(name)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        return context
