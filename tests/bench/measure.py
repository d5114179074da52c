"""One measurement each: CPU time a request under wrk, system calls a request, resident memory."""

import collections
import http.client
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import ssl
import statistics
import subprocess
import time

from peers import LOAD_CPU, OPEN_FILES, pinned

LUA = pathlib.Path(__file__).with_name("load.lua")

Round = collections.namedtuple("Round", "cpu_us cpu_s_per_gb per_second p50_us origin_share error")
# A load: mode of load.lua, target (with {o} for http://origin in absolute form), keys, and the server to ask;
# None: the origin.
Load = collections.namedtuple("Load", "mode target keys connections forward host",
                              defaults=(0, 50, False, None))


class Problem(Exception):
    """A measurement that cannot be had here; the text goes into the table."""


def origin_count(fleet):
    """Requests that the origin has seen since this was last asked."""
    connection = http.client.HTTPConnection("127.0.0.1", fleet.origin.port, timeout=10)
    connection.request("GET", "/count")
    count = int(connection.getresponse().read())
    connection.close()
    return count


def wrk_command(fleet, server, load, seconds, tag):
    host = load.host or f"127.0.0.1:{fleet.origin.port}"
    target = (f"http://{host}" if load.forward else "") + load.target.format(tag=tag)
    port = server.forward_port if load.forward else server.port
    return ["wrk", "-t1", f"-c{load.connections}", f"-d{seconds}s", "--timeout", "10s", "-s", LUA,
            f"{server.scheme}://{server.host}:{port}/", "--", load.mode, target, host, str(load.keys)]


# `p50`, `p99`: of the time until an answer is there, in us.
WrkResult = collections.namedtuple("WrkResult", "requests bytes failures p50 p99")


def run_wrk(fleet, server, load, seconds, tag, before_all=False):
    """`before_all`: it has its CPU whenever it wants it, where we may say so."""
    if not shutil.which("wrk"):
        raise Problem("wrk is missing")
    ended = subprocess.run(wrk_command(fleet, server, load, seconds, tag), text=True,
                           timeout=seconds + 60, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           preexec_fn=pinned(LOAD_CPU, before_all))
    found = re.search(r"^RESULT (\d+) (\d+) (\d+) (\d+) (\d+) (\d+)$", ended.stdout, re.M)
    if not found:
        raise Problem("wrk: " + ended.stdout.strip()[-100:])
    requests, size, status, broken, p50, p99 = map(int, found.groups())
    if requests == 0:
        raise Problem("no request was answered")
    return WrkResult(requests, size, status + broken, p50, p99)


def round_of(fleet, server, load, seconds, tag):
    """One round under load. A round with errors says so."""
    origin_count(fleet)
    before = server.cpu_seconds()
    requests, size, failures, p50, _ = run_wrk(fleet, server, load, seconds, tag)
    used = server.cpu_seconds() - before
    if not server.alive():
        raise Problem("died under load")
    return Round(cpu_us=used / requests * 1e6, cpu_s_per_gb=used / size * 1e9,
                 per_second=requests / seconds, p50_us=p50,
                 origin_share=origin_count(fleet) / requests,
                 error=f"{failures} of {requests} failed" if failures else "")


def system_calls(fleet, server, load, seconds=2):
    """System calls a request, of the process that makes most of them, by strace."""
    if not shutil.which("strace"):
        raise Problem("strace is missing")
    threads = [f"-p{server.process.pid}"]
    for child in pathlib.Path(f"/proc/{server.process.pid}/task").glob("*/children"):
        threads += [f"-p{pid}" for pid in child.read_text().split()]
    tracer = subprocess.Popen(["strace", "-c", "-f", *threads], stdout=subprocess.DEVNULL,
                              stderr=subprocess.PIPE, text=True, preexec_fn=pinned(LOAD_CPU))
    try:
        time.sleep(0.5)
        requests = run_wrk(fleet, server, load, seconds, "strace")[0]
        tracer.send_signal(signal.SIGINT)
        report = tracer.communicate(timeout=20)[1]
    finally:
        if tracer.poll() is None:
            tracer.kill()
            tracer.wait()
    found = re.search(r"^\s*100\.00\s+\S+\s+(?:\d+\s+)(\d+)(?:\s+\d+)?\s+total$", report, re.M)
    if not found:
        raise Problem("strace: " + report.strip()[-80:])
    return int(found.group(1)) / requests


def raise_file_limit():
    """Returns how many files may be open from now on."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft == unlimited or soft >= OPEN_FILES:
        return OPEN_FILES
    try:
        # Only root may raise the hard limit.
        higher = hard if hard == unlimited else max(hard, OPEN_FILES)
        resource.setrlimit(resource.RLIMIT_NOFILE, (OPEN_FILES, higher))
        return OPEN_FILES
    except (ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        return hard


def read_response(sock):
    """Reads one response with Content-Length; returns its status line."""
    data = sock.recv(65536)
    while b"\r\n\r\n" not in data:
        more = sock.recv(65536)
        if not more:
            raise Problem("connection closed within a response head")
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
    if not length:
        raise Problem("a response without Content-Length: " + repr(head[:60]))
    left = int(length.group(1)) - len(body)
    while left > 0:
        more = sock.recv(min(left, 1 << 20))
        if not more:
            raise Problem("connection closed within a response body")
        left -= len(more)
    return head.partition(b"\r\n")[0]


def prime(fleet, server, load, times=None, connections=64):
    """Requests every key until it is stored: encore's are by the second request, and one more shows
    that nothing depends on the exact number. Traffic Server has them in memory once it has read them.
    Each connection has at most one request in progress."""
    times = times or (3 if server.name.startswith(("encore", "trafficserver")) else 1)
    host = f"127.0.0.1:{fleet.origin.port}"
    prefix = (f"http://{host}" if load.forward else "") + load.target.format(tag="")
    names = [f"{prefix}{key}" for key in range(load.keys)] if load.mode == "keys" else [prefix]
    port = server.forward_port if load.forward else server.port
    count = min(connections, len(names))
    sockets = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(count)]
    try:
        for sock in sockets:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(times):
            for start in range(0, len(names), count):
                batch = names[start:start + count]
                for sock, name in zip(sockets, batch):
                    sock.sendall(f"GET {name} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                for sock, name in zip(sockets, batch):
                    status = read_response(sock)
                    if b" 200 " not in status:
                        raise Problem(f"priming {name}: {status.decode(errors='replace')}")
    except OSError as error:
        raise Problem(f"priming: {error}") from error
    finally:
        for sock in sockets:
            sock.close()


def prime_once(server, target, times=3, host="localhost"):
    """Asks a server of TLS for one target until it is stored; the third answer is a hit."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as plain:
        with context.wrap_socket(plain, server_hostname="localhost") as sock:
            for _ in range(times):
                sock.sendall(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                status = read_response(sock)
                if b" 200 " not in status:
                    raise Problem(f"priming {target}: {status.decode(errors='replace')}")


class IdleConnections:
    """Connections that have made one request each and now wait."""

    def __init__(self, fleet, server, load, count):
        host = f"127.0.0.1:{fleet.origin.port}"
        request = f"GET {load.target.format(tag='')} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        self.sockets = []
        try:
            for _ in range(count):
                sock = socket.create_connection(("127.0.0.1", server.port), timeout=30)
                self.sockets.append(sock)
                sock.sendall(request)
                read_response(sock)
        except OSError as error:
            self.close()
            raise Problem(f"idle connections: {error}") from error

    def close(self):
        for sock in self.sockets:
            sock.close()


def bytes_per_idle_connection(fleet, server, load, count):
    warm = IdleConnections(fleet, server, load, 64)
    before = server.resident_bytes()
    idle = IdleConnections(fleet, server, load, count)
    used = server.resident_bytes() - before
    idle.close()
    warm.close()
    return used / count


def bytes_per_object(fleet, server, load):
    """Resident bytes that each of `load.keys` stored objects costs, all told, and the share of a
    sample that is then answered without the origin."""
    warm = Load("keys", "/s/1024/warm/", 64)
    prime(fleet, server, warm)
    before = server.resident_bytes()
    prime(fleet, server, load)
    used = server.resident_bytes() - before
    origin_count(fleet)
    sample = min(2000, load.keys)
    prime(fleet, server, load._replace(keys=sample), times=1)
    return used / load.keys, 1 - origin_count(fleet) / sample


def median_or_text(values):
    """The first text among them, which says why there is no figure, else their median."""
    texts = [value for value in values if isinstance(value, str)]
    return texts[0] if texts else statistics.median(values)


def write_json(path, rows):
    """`rows`: {name: {server: a figure, or a text that says why there is none}}"""
    pathlib.Path(path).write_text(json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n")


def machine():
    model = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())
    return (f"{model.group(1) if model else os.uname().machine}, {os.cpu_count()} CPUs, "
            f"Linux {os.uname().release}, load {os.getloadavg()[0]:.1f}")
