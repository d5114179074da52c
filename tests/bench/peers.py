"""The servers that `run` measures: how each is configured, started on CPU 0 and stopped.

Every server is a cache in front of one origin, or a floor that answers by itself. All listen on
127.0.0.1 at free ports, keep their files in one temporary directory, and die with the script.
"""

import contextlib
import ctypes
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import time

import traffic_server

PROXY_CPU = 0
LOAD_CPU = 1
OPEN_FILES = 40000
START_SECONDS = 10
STOP_SECONDS = 10
PR_SET_PDEATHSIG = 1


def free_port():
    """A port below those that the system gives to clients, so that no connection takes it."""
    while True:
        port = random.SystemRandom().randrange(10240, 32000)
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def pinned(cpu, before_all=False):
    """Returns a child's steps before exec: it runs on one CPU, dies with us, may open many files.
    `before_all`: scheduled before all others there, if we have the right."""
    libc = ctypes.CDLL(None)

    def prepare():
        libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if cpu in os.sched_getaffinity(0):
            os.sched_setaffinity(0, {cpu})
        if before_all:
            with contextlib.suppress(PermissionError):
                os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))

    return prepare


def process_tree(pid):
    """The process and all its descendants that are alive."""
    found = [pid]
    for parent in found:
        for task in pathlib.Path(f"/proc/{parent}/task").glob("*/children"):
            try:
                found += [int(child) for child in task.read_text().split()]
            except OSError:
                pass
    return found


class Server:
    """One process under measurement. `port` is where the load goes, `origin_port` where it
    fetches from, `missing` why it cannot run on this machine (then nothing was started)."""

    scheme, host = "http", "127.0.0.1"  # those of the requests that it accepts

    def __init__(self, name, command, port, forward_port=None, missing=None, log=None,
                 cpu=PROXY_CPU, account=None):
        """`cpu`: where it runs, None: wherever. `account`: user, group and extra_groups of Popen."""
        self.name, self.port, self.missing = name, port, missing
        self.forward_port = forward_port or port
        self.process = None
        if missing:
            return
        output = open(log, "wb") if log else subprocess.DEVNULL
        self.process = subprocess.Popen(
            [str(part) for part in command], stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            preexec_fn=pinned(LOAD_CPU if name == "origin" else cpu), **(account or {}))
        self._wait_until_listening(log)

    def _wait_until_listening(self, log):
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return
            except OSError:
                if self.process.poll() is None and time.monotonic() < deadline:
                    time.sleep(0.02)
                    continue
            said = pathlib.Path(log).read_text(errors="replace")[-400:].strip() if log else ""
            self.stop()
            self.missing = "does not start: " + (said.splitlines()[-1] if said else "no message")
            return

    def cpu_seconds(self):
        """User and system time of the whole tree so far."""
        ticks = 0
        for pid in process_tree(self.process.pid):
            try:
                fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
                ticks += int(fields[11]) + int(fields[12])
            except OSError:
                pass
        return ticks / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self):
        pages = 0
        for pid in process_tree(self.process.pid):
            try:
                pages += int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
            except OSError:
                pass
        return pages * os.sysconf("SC_PAGE_SIZE")

    def alive(self):
        return self.process is not None and self.process.poll() is None

    def stop(self):
        if not self.alive():
            return
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def missing_server(name, why):
    return Server(name, [], 0, missing=why)


NGINX = """
worker_processes {workers}; daemon off; pid {dir}/nginx.pid; error_log {dir}/nginx.error crit;
worker_rlimit_nofile {files};
events {{ worker_connections {connections}; }}
http {{
  access_log {log};
  sendfile off; tcp_nodelay on;
  keepalive_timeout 300s; keepalive_requests 1000000000;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/temp; fastcgi_temp_path {dir}/fcgi;
  uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  proxy_cache_path {dir}/cache levels=1:2 keys_zone=c:128m max_size=4g inactive=1d
                   use_temp_path=off;
  open_file_cache max=8000 inactive=1d; open_file_cache_valid 1d;
  upstream origin {{ server 127.0.0.1:{origin}; keepalive 256; keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port} backlog=16384;
    location / {{
      proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_cache c; proxy_cache_key $request_uri;
    }}
  }}
}}
"""

HAPROXY = """
global
  nbthread {workers}
  maxconn {connections}
  no strict-limits
  {global_log}
defaults
  mode http
  timeout connect 5s
  timeout client 300s
  timeout server 300s
  {log}
cache c
  total-max-size 1024
  max-object-size 8388608
  max-age 86400
frontend f
  bind 127.0.0.1:{port} backlog 16384
  http-request cache-use c
  http-response cache-store c
  default_backend b
backend b
  http-reuse always
  server s 127.0.0.1:{origin}
"""

ENCORE = """
[[listen]]
address = "127.0.0.1:{port}"
mode = "reverse"
[[listen]]
address = "127.0.0.1:{forward}"
mode = "forward"
[[origin]]
servers = ["http://127.0.0.1:{origin}"]
[cache]
memory = "1GiB"
[admission]
policy = "{policy}"
[workers]
count = {workers}
[limits]
connections_per_client = 0
[admin]
address = "127.0.0.1:{admin}"
[log]
access = "{log}"
level = "warn"
"""


class Fleet:
    """Starts servers by name when they are first asked for, and stops them all at the end."""

    connections = 16384  # that nginx and HAProxy take

    def __init__(self, programs, directory):
        """`programs` is the folder of the load programs' build, with `encore` next to `bench/`."""
        self.programs, self.directory = pathlib.Path(programs), pathlib.Path(directory)
        self.servers = {}
        self.origin = self.get("origin")

    def get(self, name):
        """`origin`, `relay`, `floor:BYTES[:OBJECTS]`, the last two on io_uring (`uring`, `uring:BYTES`). Or
        encore, nginx, haproxy with `+log`; they, the floor and trafficserver with `+two`: two workers, on any CPU.
        `encore+always` stores at the first request, `encore+disk` on a disk as well."""
        if name not in self.servers:
            kind = name.partition(":")[0].partition("+")[0]
            self.servers[name] = getattr(self, "_start_" + kind)(name)
        return self.servers[name]

    def fresh(self, name):
        """As `get`, but a process that has served nothing yet."""
        self.forget(name)
        return self.get(name)

    def forget(self, name):
        if name in self.servers:
            self.servers.pop(name).stop()

    def stop(self):
        for server in self.servers.values():
            server.stop()

    def _folder(self, name):
        folder = self.directory / name.replace(":", "-")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        return folder

    def _workers(self, name):
        return 2 if "+two" in name else 1

    def _cpu(self, name):
        return None if "+two" in name else PROXY_CPU

    def _load_program(self, name, program, arguments):
        path = self.programs / "bench" / program
        if not path.exists():
            return missing_server(name, f"{path.name} is not built")
        port = free_port()
        return Server(name, [path, f"--port={port}", *arguments], port,
                      log=self.directory / f"{program}.out", cpu=self._cpu(name))

    def _start_origin(self, name):
        return self._load_program(name, "origin", [])

    def _start_relay(self, name):
        return self._load_program(name, "relay", [f"--upstream={self.origin.port}"])

    def _start_floor(self, name):
        size, _, objects = name.partition("+")[0].partition(":")[2].partition(":")
        return self._load_program(name, "floor_server", [f"--bytes={size}", f"--objects={objects or 1}",
                                                         f"--workers={self._workers(name)}"])

    def _start_uring(self, name):
        size = name.partition(":")[2]
        what = f"--bytes={size}" if size else f"--upstream={self.origin.port}"
        return self._load_program(name, "uring_floor", [what])

    def _start_nginx(self, name):
        program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
        if not program:
            return missing_server(name, "missing")
        folder, port = self._folder(name), free_port()
        log = f"{folder}/access.log combined buffer=64k flush=1s" if "+log" in name else "off"
        if os.getuid() == 0:
            folder.chmod(0o755)
        (folder / "nginx.conf").write_text(NGINX.format(
            dir=folder, port=port, origin=self.origin.port, log=log, files=OPEN_FILES,
            workers=self._workers(name), connections=self.connections))
        user = ["-g", "user root;"] if os.getuid() == 0 else []
        return Server(name, [program, "-p", folder, "-c", folder / "nginx.conf", *user], port,
                      log=folder / "output", cpu=self._cpu(name))

    def _start_haproxy(self, name):
        program = shutil.which("haproxy", path=os.environ["PATH"] + ":/usr/sbin")
        if not program:
            return missing_server(name, "missing")
        folder, port = self._folder(name), free_port()
        logged = "+log" in name
        (folder / "haproxy.cfg").write_text(HAPROXY.format(
            port=port, origin=self.origin.port, workers=self._workers(name),
            connections=self.connections,
            log="log global\n  option httplog" if logged else "",
            global_log="log stdout format raw local0" if logged else ""))
        return Server(name, [program, "-f", folder / "haproxy.cfg"], port, log=folder / "output",
                      cpu=self._cpu(name))

    def _start_trafficserver(self, name):
        program = shutil.which("traffic_server", path=os.environ["PATH"] + ":/usr/sbin")
        if not program:
            return missing_server(name, "missing")
        folder, port = self._folder(name), free_port()
        why_not = traffic_server.write_memory_config(program, folder, self.origin.port, port, self._workers(name),
                                                     ram=1 << 30, bytes_max=4 << 30)
        if why_not:
            return missing_server(name, why_not)
        return Server(name, traffic_server.command(program, folder), port, log=folder / "output",
                      cpu=self._cpu(name))

    def _start_encore(self, name):
        program = self.programs / "encore"
        if not program.exists():
            return missing_server(name, "not built")
        folder, port, forward = self._folder(name), free_port(), free_port()
        config = ENCORE.format(
            port=port, forward=forward, admin=free_port(), origin=self.origin.port,
            policy="always" if "+always" in name else "second-hit", workers=self._workers(name),
            log=folder / "access.log" if "+log" in name else "")
        if "+disk" in name:
            config += f'\n[[disk]]\npath = "{folder / "disk"}"\nsize = "4GiB"\n'
        (folder / "encore.toml").write_text(config)
        return Server(name, [program, "--config", folder / "encore.toml"], port,
                      forward_port=forward, log=folder / "output", cpu=self._cpu(name))
