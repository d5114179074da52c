"""How many bytes a cache writes: what its processes say, and what its file system says.

`write_bytes` of /proc/PID/io counts a page when it becomes dirty and direct I/O when it is sent; of
the file system's own inodes and journal it knows next to nothing. A page that is truncated before it was
written back is in `cancelled_write_bytes`, too. The file system's count is that of the block device
below it: taken after a sync, it has all that really went out, metadata included.
"""

import collections
import ctypes
import os
import pathlib
import shutil
import subprocess
import threading
import urllib.request

from peers import STOP_SECONDS, Server, process_tree

CLONE_NEWNS = 0x00020000
SECTOR_BYTES = 512  # the unit of /sys/dev/block/*/stat, whatever the device's own is
SAMPLE_SECONDS = 0.2
WALK_SECONDS = 2.0
FLUSH_SECONDS = 1.0
IMAGE_ROOM_BYTES = 512 << 20

# Bytes by one process, or by many. `read`: from the device.
Io = collections.namedtuple("Io", "written cancelled read", defaults=(0,))


def parse_io(text):
    """The Io of a /proc/PID/io."""
    fields = dict(line.split(": ") for line in text.splitlines())
    return Io(int(fields["write_bytes"]), int(fields["cancelled_write_bytes"]),
              int(fields["read_bytes"]))


def io_of(pid):
    """Returns the counts of the process, its threads, and its children that it has waited for."""
    return parse_io(pathlib.Path(f"/proc/{pid}/io").read_text())


def io_of_tree(pid):
    total = Io(0, 0, 0)
    for one in process_tree(pid):
        try:
            total = Io(*(a + b for a, b in zip(total, io_of(one))))
        except OSError:
            pass  # ended meanwhile: its parent has it
    return total


class WritingServer(Server):
    """A server whose writes are counted to the last: `io_at_start` when it listened, `io` when all
    its processes had ended. REQUIRES: we write nothing ourselves during `stop`."""

    def __init__(self, *arguments, **options):
        self.io, self.killed = None, False
        super().__init__(*arguments, **{"cpu": None, **options})
        self.io_at_start = None if self.missing else io_of_tree(self.process.pid)

    def stop(self):
        if not self.alive():
            return
        # The bytes that a process and its waited-for children have written are added to the process
        # that waits for it: us.
        before, alive = io_of("self"), io_of_tree(self.process.pid)
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.killed = True
            self.process.kill()
            self.process.wait()
        # A child that it does not wait for is lost there, but has been seen alive.
        self.io = Io(*(max(b - a, c) for a, b, c in zip(before, io_of("self"), alive)))


def own_mounts():
    """From now on our mounts are seen by us and our children only, and end with us. False where
    that is not permitted."""
    if os.geteuid() != 0 or ctypes.CDLL(None).unshare(CLONE_NEWNS) != 0:
        return False
    return subprocess.run(["mount", "--make-rprivate", "/"], stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def file_system(path):
    """(type, device) as df has them."""
    said = subprocess.run(["df", "--output=fstype,source", path], capture_output=True, text=True,
                          check=True).stdout
    return tuple(said.splitlines()[1].split())


def bytes_below(directory):
    """Allocated to files below it."""
    total = 0
    for folder, _, names in os.walk(directory):
        for name in names:
            try:
                total += os.lstat(os.path.join(folder, name)).st_blocks * SECTOR_BYTES
            except OSError:
                pass  # gone meanwhile
    return total


def write_back(path):
    """Waits until no page of the file is dirty, by whomever it was made so."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


class CacheArea:
    """An empty directory for one cache's files: `path`. With `mounts` it is an ext4 of its own on a
    loop device, so that all that reaches the device is this cache's; else a plain directory."""

    def __init__(self, directory, cache_bytes, mounts):
        self.path = pathlib.Path(directory) / "cache"
        self.image = pathlib.Path(directory) / "image"
        self.path.mkdir()
        self.statistics = None
        if mounts:
            self._mount(3 * cache_bytes + IMAGE_ROOM_BYTES)
        self.kind = " on ".join(file_system(self.path))
        self._used_at_start = self._used()
        self._written_at_start = self._sectors()

    def _mount(self, image_bytes):
        with open(self.image, "wb") as file:
            file.truncate(image_bytes)
        subprocess.run(["mkfs.ext4", "-q", "-m", "0", "-E", "lazy_itable_init=0,lazy_journal_init=0",
                        self.image], check=True)
        subprocess.run(["mount", "-o", "loop,noatime", self.image, self.path], check=True)
        device = os.stat(self.path).st_dev
        self.statistics = pathlib.Path(
            f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")

    def _sectors(self):
        if not self.statistics:
            return None
        subprocess.run(["sync", "--file-system", self.path], check=True)
        return int(self.statistics.read_text().split()[6])

    def _used(self):
        if not self.statistics:
            return bytes_below(self.path)
        state = os.statvfs(self.path)
        return (state.f_blocks - state.f_bfree) * state.f_frsize

    def used_bytes(self):
        """Taken from the file system since the start."""
        return self._used() - self._used_at_start

    def device_bytes(self):
        """Written to the device since the start, after a sync; None where it is not ours alone."""
        now = self._sectors()
        return None if now is None else (now - self._written_at_start) * SECTOR_BYTES

    def close(self):
        if self.statistics:
            subprocess.run(["umount", self.path], check=True)
        self.image.unlink(missing_ok=True)
        shutil.rmtree(self.path)


class Watch(threading.Thread):
    """Watches the size of an area, until `finish`; each time requests `tick_url` and a number, if
    any, and every second writes back the dirty pages of the file `flushed`, if any."""

    def __init__(self, area, tick_url=None, flushed=None):
        super().__init__(daemon=True)
        self.area, self.tick_url, self.flushed, self.samples = area, tick_url, flushed, []
        self.over = threading.Event()
        self.start()

    def run(self):
        every = SAMPLE_SECONDS if self.area.statistics else WALK_SECONDS
        while not self.over.wait(every):
            self.samples.append(self.area.used_bytes())
            if self.tick_url:
                urllib.request.urlopen(f"{self.tick_url}{len(self.samples)}", timeout=10).close()
            if self.flushed and len(self.samples) % max(1, round(FLUSH_SECONDS / every)) == 0:
                write_back(self.flushed)

    def finish(self):
        """(mean of the second half, most) bytes"""
        self.over.set()
        self.join()
        later = self.samples[len(self.samples) // 2:] or [0]
        return sum(later) // len(later), max(self.samples, default=0)
