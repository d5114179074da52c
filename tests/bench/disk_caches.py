"""The caches that `claim` compares: how each is configured for a cache of a given size, and started.

All stand in reverse before 127.0.0.1:ORIGIN, report the outcome of a request by Cache-Status, and
have no access log. They begin empty and run unprivileged, also where root starts them.
"""

import collections
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request

import traffic_server
from measure import Problem
from peers import START_SECONDS, free_port, missing_server
from written import WritingServer

# How many keys Traffic Server remembers that were asked for once; nginx keeps them for a day, encore
# derives it from the cache's size.
REMEMBERED_KEYS = 1_000_000
# The part of encore's cache in memory, with the disk's index.
ENCORE_MEMORY = 16 << 20
ENCORE_SEGMENT = 8 << 20
MEMORY = "/dev/shm"
# `bytes_max` is the size of the cache, `files` where its files go, `folder` what else it needs.
Setup = collections.namedtuple("Setup", "folder files bytes_max origin_port")

# A cache manager checks its cache when the oldest entry expires, and no later than ten seconds
# after the last time. A second cache, with constant requests for new objects that expire after two
# seconds, makes it check both once a second: else the first would be far beyond its size. An entry
# that is requested once has no file there.
NGINX = """
worker_processes 1; daemon off; pid {dir}/nginx.pid; error_log {dir}/nginx.error crit;
worker_rlimit_nofile 8192;
events {{ worker_connections 2048; }}
http {{
  access_log off; tcp_nodelay on; keepalive_requests 1000000000;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/temp; fastcgi_temp_path {dir}/fcgi;
  uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  proxy_cache_path {files}/nginx levels=1:2 keys_zone=c:256m max_size={size} inactive=1d
                   use_temp_path=off;
  proxy_cache_path {dir}/tick keys_zone=tick:1m inactive=2s;
  map $upstream_cache_status $said {{ HIT "nginx; hit"; default "nginx; fwd=miss"; }}
  upstream origin {{ server 127.0.0.1:{origin} max_fails=0; keepalive 64;
                     keepalive_requests 1000000000; }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection "";
      proxy_cache c; proxy_cache_key $request_uri; {rule}
      add_header Cache-Status $said;
    }}
    location = /tick {{
      proxy_pass http://127.0.0.1:{tick}; proxy_cache tick; proxy_cache_valid 1d;
      proxy_cache_key $request_uri; proxy_cache_min_uses 2;
    }}
  }}
  server {{ listen 127.0.0.1:{tick}; return 200 "tick"; }}
}}
"""

# Squid removes what is too much once a second, at most 300 objects for each watermark's width that it
# is beyond the lower one, and stores nothing while it is beyond its size. So its size is twice what it
# is to hold, and its watermarks say how much that is: between the two it would lose hits.
SQUID = """
http_port 127.0.0.1:{port} accel defaultsite=127.0.0.1:{origin} no-vhost
always_direct allow all
http_access allow all
cache_replacement_policy {policy}
maximum_object_size 64 MB
cache_dir ufs {files}/squid {twice_mib} 16 256
cache_swap_low 50
cache_swap_high 51
cache_mem 0 MB
store_avg_object_size 16 KB
access_log none
cache_log {dir}/cache.log
cache_store_log none
netdb_filename none
pid_filename {dir}/squid.pid
coredump_dir {dir}
icon_directory {dir}
logfile_rotate 0
pinger_enable off
icp_port 0
via off
shutdown_lifetime 0 seconds
max_filedescriptors 4096
"""

VARNISH = """
vcl 4.1;
backend default {{ .host = "127.0.0.1"; .port = "{origin}"; }}
sub vcl_backend_response {{ set beresp.grace = 0s; set beresp.keep = 0s; }}
sub vcl_deliver {{
  if (obj.hits > 0) {{ set resp.http.Cache-Status = "varnish; hit"; }}
  else {{ set resp.http.Cache-Status = "varnish; fwd=miss"; }}
}}
"""

ENCORE = """
[[listen]]
address = "127.0.0.1:{port}"
mode = "reverse"
[[origin]]
servers = ["http://127.0.0.1:{origin}"]
[cache]
memory = "{memory}"
[[disk]]
path = "{files}/encore"
size = "{size}"
{segment}
[admission]
seed = "1"
{policy}
[workers]
count = 1
[admin]
address = ""
[log]
level = "warn"
"""


def account():
    """Popen's, for what must not run as root."""
    if os.geteuid() != 0:
        return None
    return {"user": "nobody", "group": "nogroup", "extra_groups": []}


def give_away(*paths):
    if os.geteuid() == 0:
        for path in paths:
            shutil.chown(path, "nobody", "nogroup")


def find_program(name):
    return shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


def missing_text(package):
    return f"not installed: apt-get install --no-install-recommends {package}"


def start_nginx(name, setup, rule):
    program = find_program("nginx")
    if not program:
        return missing_server(name, missing_text("nginx-light"))
    port, tick = free_port(), free_port()
    (setup.folder / "nginx.conf").write_text(NGINX.format(
        dir=setup.folder, files=setup.files, size=setup.bytes_max, origin=setup.origin_port,
        port=port, tick=tick, rule=rule))
    give_away(setup.folder, setup.files)
    server = WritingServer(name, [program, "-c", setup.folder / "nginx.conf", "-e", "stderr"], port,
                           log=setup.folder / "output", account=account())
    server.tick_url = f"http://127.0.0.1:{port}/tick?"
    return server


def start_traffic_server(name, setup, rule):
    program = find_program("traffic_server")
    if not program:
        return missing_server(name, missing_text("trafficserver"))
    port = free_port()
    why_not = traffic_server.write_config(program, setup.folder, setup.files, setup.bytes_max,
                                          setup.origin_port, port, rule)
    if why_not:
        return missing_server(name, why_not)
    give_away(setup.folder, setup.files)
    return WritingServer(name, traffic_server.command(program, setup.folder), port,
                         log=setup.folder / "output", account=account())


class Squid(WritingServer):
    """Squid, which refuses requests until it has looked through its empty directories, and does not
    say in its responses what it served from them."""

    def __init__(self, *arguments, cache_log, service, **options):
        """`service`: the name of its shared memory, which it leaves behind."""
        self.service = service
        super().__init__(*arguments, **options)
        deadline = time.monotonic() + START_SECONDS
        while not self.missing and "storeLateRelease" not in cache_log.read_text(errors="replace"):
            if not self.alive() or time.monotonic() > deadline:
                self.stop()
                self.missing = "does not say that it has read its directories"
            time.sleep(0.05)

    def stop(self):
        super().stop()
        for file in pathlib.Path(MEMORY).glob(f"{self.service}-*"):
            file.unlink(missing_ok=True)

    def own_hits(self):
        """By its own count."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/squid-internal-mgr/counters",
                                    timeout=10) as answer:
            return squid_hits(answer.read().decode(errors="replace"))


def squid_hits(counters):
    """Hits in what its cache manager says; Problem where it says none."""
    found = re.search(r"^client_http\.hits = (\d+)$", counters, re.M)
    if not found:
        raise Problem("Squid's cache manager does not say how many hits there were")
    return int(found.group(1))


def start_squid(name, setup, policy):
    program = find_program("squid")
    if not program:
        return missing_server(name, missing_text("squid"))
    port = free_port()
    config = setup.folder / "squid.conf"
    config.write_text(SQUID.format(
        dir=setup.folder, files=setup.files, twice_mib=2 * setup.bytes_max >> 20, port=port,
        origin=setup.origin_port, policy=policy))
    give_away(setup.folder, setup.files)
    command = [program, "-N", "-n", f"encore{port}", "-f", config]
    made = subprocess.run([*command, "-z"], capture_output=True, text=True,
                          check=False, timeout=60, **(account() or {}))
    if made.returncode != 0:
        said = [line for line in made.stderr.splitlines() if "FATAL" in line or "ERROR" in line]
        return missing_server(name, f"cannot make its directories: {(said or ['no message'])[0]}")
    return Squid(name, command, port, log=setup.folder / "output", account=account(),
                 cache_log=setup.folder / "cache.log", service=f"encore{port}")


class Varnish(WritingServer):
    """Varnish, whose working directory is in memory: its log would count as writes. Its storage is a
    mapped file: the kernel counts a page once, however often it is overwritten, until it is written
    back, half a minute later. A cache of this size turns over sooner at the pace of a measurement, so
    the file is written back all the time (`flushed`), as it would be at the pace of real traffic."""

    def __init__(self, name, setup, program):
        port = free_port()
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="encore-varnish-", dir=MEMORY))
        (setup.folder / "cache.vcl").write_text(VARNISH.format(origin=setup.origin_port))
        give_away(setup.folder, setup.files, self.directory)
        # It must be able to remove as many objects as a large one needs.
        super().__init__(name, [
            program, "-F", "-j", "none", "-n", self.directory / "run", "-T", "none",
            "-f", setup.folder / "cache.vcl", "-a", f"127.0.0.1:{port}", "-p", "nuke_limit=1000000",
            "-p", "thread_pools=1", "-s", f"file,{setup.files}/varnish,{setup.bytes_max}"],
            port, log=setup.folder / "output", account=account())
        if self.missing:
            shutil.rmtree(self.directory, ignore_errors=True)
        self.flushed = setup.files / "varnish"

    def stop(self):
        super().stop()
        shutil.rmtree(self.directory, ignore_errors=True)


def start_varnish(name, setup):
    program = find_program("varnishd")
    return Varnish(name, setup, program) if program else \
        missing_server(name, missing_text("varnish"))


def encore_config(setup, policy, port, memory):
    """The text of encore's configuration: the one place where it is said what a cache of
    `setup.bytes_max` is. `policy` None: admission and segments are left to the defaults."""
    chosen = {"policy": "", "segment": ""} if policy is None else {
        "policy": f'policy = "{policy}"', "segment": f'segment = "{ENCORE_SEGMENT}"'}
    return ENCORE.format(port=port, origin=setup.origin_port, memory=memory, files=setup.files,
                         size=setup.bytes_max - memory, **chosen)


def start_encore(name, setup, policy, programs, memory=ENCORE_MEMORY):
    program = pathlib.Path(programs) / "encore"
    if not program.exists():
        return missing_server(name, "not built")
    port = free_port()
    (setup.folder / "encore.toml").write_text(encore_config(setup, policy, port, memory))
    return WritingServer(name, [program, "--config", setup.folder / "encore.toml"], port,
                         log=setup.folder / "output")


# `id` is the name for --systems, `always` the id of the same cache that stores all it may.
# `simulated` has the nearest eviction and admission of the simulator; `memory` is the part of the
# size that is not on disk; `default`: it runs if no systems are named. `start(setup)` starts it;
# `program` of `package` it needs, None: it is built here.
Cache = collections.namedtuple(
    "Cache", "id name always simulated start program package memory default",
    defaults=(0, True))


def caches(programs):
    promote = ("@plugin=cache_promote.so @pparam=--policy=lru @pparam=--hits=2 "
               f"@pparam=--buckets={REMEMBERED_KEYS}")

    def nginx(id_, name, admission, rule):
        return Cache(id_, name, "nginx", ("lru", admission),
                     lambda setup: start_nginx(name, setup, rule), "nginx", "nginx-light")

    def traffic_server(id_, name, admission, rule):
        return Cache(id_, name, "ats", ("fifo", admission),
                     lambda setup: start_traffic_server(name, setup, rule), "traffic_server",
                     "trafficserver")

    def squid(id_, name, eviction, policy):
        return Cache(id_, name, id_, (eviction, "always"),
                     lambda setup: start_squid(name, setup, policy), "squid", "squid")

    def encore(id_, name, admission, policy, default):
        return Cache(id_, name, "encore-always", ("sieve", admission),
                     lambda setup: start_encore(name, setup, policy, programs), None, None,
                     ENCORE_MEMORY, default=default)

    return [
        encore("encore", "Encore", "proxy-probation", None, True),
        nginx("nginx", "nginx", "always", ""),
        nginx("nginx-min-uses", "nginx, min_uses 2", "exact-second-hit", "proxy_cache_min_uses 2;"),
        traffic_server("ats", "Traffic Server", "always", ""),
        traffic_server("ats-promote", "Traffic Server, cache_promote", "exact-second-hit", promote),
        squid("squid", "Squid", "lru", "lru"),
        squid("squid-gdsf", "Squid, heap GDSF", "gdsf", "heap GDSF"),
        Cache("varnish", "Varnish, file storage", "varnish", ("lru", "always"),
              lambda setup: start_varnish("Varnish, file storage", setup), "varnishd", "varnish"),
        encore("encore-second-hit", "Encore, second-hit", "second-hit", "second-hit", False),
        encore("encore-always", "Encore, always", "always", "always", False),
    ]


PROGRAMS = {"nginx": ["nginx", "-v"], "Traffic Server": ["traffic_server", "-V"],
            "Squid": ["squid", "-v"], "Varnish": ["varnishd", "-V"]}


def versions():
    """Returns the versions of the compared programs, for the report."""
    found = {}
    for name, command in PROGRAMS.items():
        program = find_program(command[0])
        if program:
            said = subprocess.run([program, *command[1:]], text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
            number = re.search(r"\d+\.\d+(\.\d+)?", said)
            found[name] = number.group(0) if number else said.strip()[:40]
    return found
