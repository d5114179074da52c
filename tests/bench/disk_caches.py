"""The caches that `claim` compares: how each is configured for a cache of a given size, and started.

All stand in reverse before 127.0.0.1:ORIGIN, say by Cache-Status what became of a request, and have
no access log. They begin empty and run unprivileged, also where root starts them.
"""

import collections
import os
import pathlib
import re
import shutil
import subprocess

from peers import free_port, missing_server
from written import WritingServer

# How many keys Traffic Server remembers that were asked for once; nginx keeps them for a day, encore
# derives it from the cache's size.
REMEMBERED_KEYS = 1_000_000
# Of encore's cache, what is in memory: the index of the disk with it.
ENCORE_MEMORY = 16 << 20
ENCORE_SEGMENT = 8 << 20
# `bytes_max` is the size of the cache, `files` where its files go, `folder` what else it needs.
Setup = collections.namedtuple("Setup", "folder files bytes_max origin_port")

# A cache manager looks at its cache when the oldest entry expires, and no later than ten seconds
# after the last time. A second cache, which is asked for something new all the time that expires
# after two seconds, makes it look at both once a second: else the first would be far beyond its
# size. An entry that is asked for once has no file there.
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

TRAFFIC_SERVER = {
    "runroot.yaml": """
prefix: {dir}
exec_prefix: {dir}
bindir: {programs}
sbindir: {programs}
sysconfdir: {dir}
datadir: {dir}
includedir: {dir}
libdir: {dir}
libexecdir: {plugins}
localstatedir: {dir}
runtimedir: {dir}
logdir: {dir}
mandir: {dir}
infodir: {dir}
cachedir: {files}
""",
    "records.config": """
CONFIG proxy.config.http.server_ports STRING {port}:ip-in=127.0.0.1
CONFIG proxy.config.admin.user_id STRING #-1
CONFIG proxy.config.http.wait_for_cache INT 1
CONFIG proxy.config.cache.ram_cache.size INT 0
CONFIG proxy.config.log.logging_enabled INT 0
CONFIG proxy.config.exec_thread.autoconfig INT 0
CONFIG proxy.config.exec_thread.limit INT 1
CONFIG proxy.config.http.keep_alive_no_activity_timeout_in INT 300
CONFIG proxy.config.http.keep_alive_no_activity_timeout_out INT 300
CONFIG proxy.config.http.insert_response_via_str INT 0
CONFIG proxy.config.url_remap.remap_required INT 1
""",
    "storage.config": "{files} {size}\n",
    "remap.config": "map / http://127.0.0.1:{origin}/ {rule}\n",
    "plugin.config": "header_rewrite.so {dir}/said.config\n",
    "said.config": """
cond %{{SEND_RESPONSE_HDR_HOOK}} [AND]
cond %{{CACHE}} ="hit-fresh"
  set-header Cache-Status "trafficserver; hit"
cond %{{SEND_RESPONSE_HDR_HOOK}} [AND]
cond %{{CACHE}} ="hit-fresh" [NOT]
  set-header Cache-Status "trafficserver; fwd=miss"
""",
    "ip_allow.yaml": """
ip_allow:
  - apply: in
    ip_addrs: 127.0.0.0/8
    action: allow
    methods: ALL
""",
}

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
segment = "{segment}"
[admission]
policy = "{policy}"
seed = "1"
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


def start_nginx(name, setup, rule):
    program = find_program("nginx")
    if not program:
        return missing_server(name, "missing")
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
        return missing_server(name, "missing")
    layout = subprocess.run(["traffic_layout"], capture_output=True, text=True, check=False).stdout
    plugins = re.search(r"^PLUGINDIR: (.*)$", layout, re.M)
    if not plugins:
        return missing_server(name, "traffic_layout does not say where its plugins are")
    port = free_port()
    for file, text in TRAFFIC_SERVER.items():
        (setup.folder / file).write_text(text.format(
            dir=setup.folder, files=setup.files, size=setup.bytes_max, origin=setup.origin_port,
            port=port, rule=rule, plugins=plugins.group(1), programs=pathlib.Path(program).parent))
    give_away(setup.folder, setup.files)
    return WritingServer(name, [program, f"--run-root={setup.folder}/runroot.yaml"], port,
                         log=setup.folder / "output", account=account())


def encore_config(setup, policy, port, memory):
    """The text of encore's configuration: the one place where it is said what a cache of
    `setup.bytes_max` is."""
    return ENCORE.format(port=port, origin=setup.origin_port, memory=memory, files=setup.files,
                         size=setup.bytes_max - memory, segment=ENCORE_SEGMENT, policy=policy)


def start_encore(name, setup, policy, programs, memory=ENCORE_MEMORY):
    program = pathlib.Path(programs) / "encore"
    if not program.exists():
        return missing_server(name, "not built")
    port = free_port()
    (setup.folder / "encore.toml").write_text(encore_config(setup, policy, port, memory))
    return WritingServer(name, [program, "--config", setup.folder / "encore.toml"], port,
                         log=setup.folder / "output")


# `always` is the name of the same cache that stores whatever it may; `simulated` eviction and
# admission of the simulator that come nearest; `disk` whether it keeps its objects there.
Cache = collections.namedtuple("Cache", "name always simulated disk start")


def caches(programs):
    promote = ("@plugin=cache_promote.so @pparam=--policy=lru @pparam=--hits=2 "
               f"@pparam=--buckets={REMEMBERED_KEYS}")
    nginx, traffic, encore = "nginx", "Traffic Server", "encore always"
    return [
        Cache(nginx, nginx, ("lru", "always"), True,
              lambda setup: start_nginx(nginx, setup, "")),
        Cache("nginx min_uses 2", nginx, ("lru", "exact-second-hit"), True,
              lambda setup: start_nginx(nginx, setup, "proxy_cache_min_uses 2;")),
        Cache(traffic, traffic, ("fifo", "always"), True,
              lambda setup: start_traffic_server(traffic, setup, "")),
        Cache("Traffic Server cache_promote", traffic, ("fifo", "exact-second-hit"), True,
              lambda setup: start_traffic_server(traffic, setup, promote)),
        Cache(encore, encore, ("sieve", "always"), True,
              lambda setup: start_encore(encore, setup, "always", programs)),
        Cache("encore second-hit", encore, ("sieve", "second-hit"), True,
              lambda setup: start_encore(encore, setup, "second-hit", programs)),
    ]


def versions():
    """Of what is compared, for the report."""
    found = {}
    for name, command in (("nginx", ["nginx", "-v"]), ("Traffic Server", ["traffic_server", "-V"])):
        program = find_program(command[0])
        if program:
            said = subprocess.run([program, *command[1:]], text=True, check=False,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
            number = re.search(r"\d+\.\d+\.\d+", said)
            found[name] = number.group(0) if number else said.strip()[:40]
    return found
