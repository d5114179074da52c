"""Traffic Server's configuration: a cache in front of one origin, without a log, on disk or in memory too."""

import pathlib
import re
import subprocess

FILES = {
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
CONFIG proxy.config.cache.ram_cache.size INT {ram}
CONFIG proxy.config.log.logging_enabled INT 0
CONFIG proxy.config.exec_thread.autoconfig INT 0
CONFIG proxy.config.exec_thread.limit INT {workers}
CONFIG proxy.config.http.keep_alive_no_activity_timeout_in INT 300
CONFIG proxy.config.http.keep_alive_no_activity_timeout_out INT 300
CONFIG proxy.config.http.insert_response_via_str INT 0
CONFIG proxy.config.url_remap.remap_required INT 1
{more}
""",
    "storage.config": "{files} {size}\n",
    "remap.config": "map / http://127.0.0.1:{origin}/ {rule}\n",
    "plugin.config": "{plugin}",
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

SAID = "header_rewrite.so {dir}/said.config\n"
# It has all in memory from the first read on, and as many clients as the system allows (0), slow ones too.
IN_MEMORY = """CONFIG proxy.config.cache.ram_cache.use_seen_filter INT 0
CONFIG proxy.config.net.connections_throttle INT 0
CONFIG proxy.config.http.transaction_no_activity_timeout_in INT 300"""


def write_config(program, folder, files, bytes_max, origin_port, port, rule):
    """For a cache on disk that says by Cache-Status what it did. Returns why it cannot be, or nothing."""
    return _write(program, folder, files, bytes_max, origin_port, port, rule=rule, ram=0, workers=1, more="",
                  plugin=SAID.format(dir=folder))


def write_memory_config(program, folder, origin_port, port, workers, ram, bytes_max):
    """For one that has all it is asked for in memory, as `write_config`; it has `bytes_max` on disk, too."""
    files = folder / "files"
    files.mkdir()
    return _write(program, folder, files, bytes_max, origin_port, port, rule="", ram=ram, workers=workers,
                  more=IN_MEMORY, plugin="")


def _write(program, folder, files, bytes_max, origin_port, port, **more):
    layout = subprocess.run(["traffic_layout"], capture_output=True, text=True, check=False).stdout
    plugins = re.search(r"^PLUGINDIR: (.*)$", layout, re.M)
    if not plugins:
        return "traffic_layout does not say where its plugins are"
    for file, text in FILES.items():
        (folder / file).write_text(text.format(dir=folder, files=files, size=bytes_max, origin=origin_port, port=port,
                                               plugins=plugins.group(1), programs=pathlib.Path(program).parent, **more))
    return None


def command(program, folder):
    return [program, f"--run-root={folder}/runroot.yaml"]
