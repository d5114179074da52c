"""A clean Debian in a directory, which runs in a container of its own: systemd boots in it, or nothing but a shell.

Needs root, mmdebstrap and systemd-nspawn. Its network has a loopback interface and nothing else, so its ports meet
nobody's; packages that are to be installed are fetched before.
"""

import contextlib
import glob
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile

# In addition to essential packages: a service manager, a client, and what rotates logs.
PACKAGES = ("ca-certificates", "curl", "dbus", "logrotate", "systemd", "systemd-sysv")
BOOT_SECONDS = 300
COMMAND_SECONDS = 300


def make_base(suite, tar):
    """Writes a clean system of a suite to the file `tar`, once: a mirror takes minutes."""
    if tar.exists():
        return
    unfinished = tar.with_suffix(".unfinished")
    subprocess.run(["mmdebstrap", "--quiet", "--variant=apt", "--format=tar", f"--include={','.join(PACKAGES)}", suite,
                    unfinished], check=True)
    unfinished.rename(tar)


def remove_groups():
    """Removes the control groups that systemd-nspawn has left, if they are empty."""
    for group in "payload/init.scope", "payload", "supervisor":
        for path in glob.glob(f"/sys/fs/cgroup/{group}") + glob.glob(f"/sys/fs/cgroup/*/{group}"):
            with contextlib.suppress(OSError):
                os.rmdir(path)


class Root:
    """A running system. Use it in a `with`: at the end its processes are gone, and its directory."""

    def __init__(self, base, debs, boots):
        self.boots = boots
        self.archives = base.with_suffix(".archives")
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="encore-root-"))
        self.tree = self.directory / "root"
        self.log = self.directory / "nspawn.log"
        self.tree.mkdir()
        subprocess.run(["tar", "-x", "--numeric-owner", "--exclude=./dev/*", "-C", self.tree, "-f", base], check=True)
        for deb in debs:
            shutil.copy(deb, self.tree / "root")
        self.fetch_dependencies()

    def fetch_dependencies(self):
        """Fills apt's cache with what the packages depend on: the network is the machine's for this alone.
        Fetched packages are kept for the next run."""
        archives = self.tree / "var/cache/apt/archives"
        if self.archives.exists():
            shutil.copytree(self.archives, archives, dirs_exist_ok=True)
        shutil.copy("/etc/resolv.conf", self.tree / "etc/resolv.conf")
        self.container = ["systemd-nspawn", "--quiet", f"--directory={self.tree}", "--register=no", "--keep-unit",
                          "--resolv-conf=off", "--timezone=off", "--link-journal=no"]
        subprocess.run([*self.container, "--as-pid2", "sh", "-c",
                        "apt-get -q update && apt-get -q --yes --download-only --no-install-recommends install "
                        "/root/*.deb"],
                       check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, timeout=1200)
        shutil.copytree(archives, self.archives, dirs_exist_ok=True, ignore=shutil.ignore_patterns("lock", "partial"))

    def __enter__(self):
        path = str(self.directory / "notify")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            ready.bind(path)
            ready.settimeout(BOOT_SECONDS)
            words = [*self.container, "--private-network", "--notify-ready=" + ("yes" if self.boots else "no")]
            words += ["--boot"] if self.boots else ["--as-pid2", "sleep", "infinity"]
            with open(self.log, "wb") as log:
                self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                env={**os.environ, "NOTIFY_SOCKET": path})
            self.leader = None
            while True:
                said = dict(line.split("=", 1) for line in ready.recv(4096).decode().splitlines() if "=" in line)
                self.leader = said.get("X_NSPAWN_LEADER_PID", self.leader)
                if said.get("READY") == "1":
                    return self

    def __exit__(self, *_):
        os.kill(int(self.leader), signal.SIGKILL)
        self.process.wait(timeout=60)
        shutil.rmtree(self.directory)
        remove_groups()

    def run(self, command, check=True):
        """Runs a line of shell in the system; what it says goes to `stdout`, errors too."""
        said = subprocess.run(["nsenter", "--target", self.leader, "--mount", "--uts", "--ipc", "--net", "--pid", "env", "-i",
                               "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "DEBIAN_FRONTEND=noninteractive",
                               "LC_ALL=C.UTF-8", "sh", "-c", f"cd && {command}"], check=False, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=COMMAND_SECONDS)
        if check and said.returncode != 0:
            raise AssertionError(f"status {said.returncode} of: {command}\n{said.stdout}")
        return said

    def say(self, command):
        """Returns the output of a line of shell, without the line's end."""
        return self.run(command).stdout.strip()

    def start(self, command):
        """Starts a line of shell in the background; it ends with the system."""
        self.run(f"{command} >/dev/null 2>&1 &")

    def files(self):
        """Paths of all files but those that change by themselves."""
        return set(self.say("find / -xdev -not -path '/proc/*' -not -path '/sys/*' -not -path '/root/*' "
                            "-not -path '/tmp/*' -not -path '/var/cache/apt/*' -not -path '/var/lib/apt/*' "
                            "-not -path '/var/log/*.log' -not -path '/var/log/apt/*' -not -path '/var/log/journal*' "
                            "-not -path /var/lib/logrotate/status -not -path /var/cache/ldconfig/aux-cache "
                            "-not -path '/var/lib/systemd/*' -not -path '/var/lib/dpkg/*' -not -path '/run/*' | sort"
                            ).splitlines())
