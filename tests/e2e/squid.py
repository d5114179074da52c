"""A real Squid with cache digests, on a free port."""

import os
import subprocess
import unittest

from harness import eventually, free_port, listening, need_program

CONFIG = """
http_port 127.0.0.1:{port}
http_access allow all
visible_hostname localhost
pid_filename none
access_log {access_log}
cache_store_log none
cache_log {dir}/cache.log
coredump_dir {dir}
cache_dir ufs {dir}/cache 64 4 4
cache_mem 8 MB
digest_generation on
digest_rebuild_period 1 second
digest_rewrite_period 1 second
refresh_pattern . 60 20% 60
logfile_rotate 0
pinger_enable off
netdb_filename none
shutdown_lifetime 0 seconds
{extra}
"""


class Squid:
    """Runs until the test ends. As root it works as the user of Debian's package, who must be able
    to write into its directory."""

    def __init__(self, case, extra="", logs=False):
        program = need_program("squid")
        version = subprocess.run([program, "-v"], capture_output=True, text=True, check=False).stdout
        if "--enable-cache-digests" not in version:
            raise unittest.SkipTest("this Squid has no cache digests")
        self.port = free_port()
        self.directory = case.directory / f"squid-{self.port}"
        self.directory.mkdir()
        if os.getuid() == 0:
            case.directory.chmod(0o711)
            self.directory.chmod(0o777)
        config = self.directory / "squid.conf"
        self.access_path = self.directory / "access.log"
        config.write_text(CONFIG.format(
            port=self.port, dir=self.directory, extra=extra,
            access_log=f"stdio:{self.access_path} squid" if logs else "none"))
        # Squids share what they have in /dev/shm by this name.
        command = [program, "-N", "-n", f"encore{self.port}", "-f", config]
        case.run_client([*command, "-z"])
        case.start(command, self.port)
        eventually(lambda: listening(self.port), "Squid listens")

    def url(self, path):
        return f"http://127.0.0.1:{self.port}{path}"

    def log(self):
        return (self.directory / "cache.log").read_text(errors="replace")
