"""Caches that hold all of some objects on disk, out of the kernel's page cache."""

import os
import threading

from disk_caches import Setup
from measure import Problem, origin_count, prime
from written import CacheArea

EMPTY_SECONDS = 0.05  # between two rounds over all files
FILLINGS_MAX = 30


class Emptier(threading.Thread):
    """Keeps the page cache empty of the files below a directory, until `finish`."""

    def __init__(self, directory):
        super().__init__(daemon=True)
        self.over = threading.Event()
        self.files = [os.open(os.path.join(folder, name), os.O_RDONLY)
                      for folder, _, names in os.walk(directory) for name in names]
        for file in self.files:
            os.fsync(file)  # dirty pages cannot go
        self.empty()
        self.start()

    def empty(self):
        for file in self.files:
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)

    def run(self):
        while not self.over.wait(EMPTY_SECONDS):
            self.empty()

    def finish(self):
        self.over.set()
        self.join()
        for file in self.files:
            os.close(file)


class Held:
    """A cache that holds all objects, on an area of its own."""

    def __init__(self, name, start, fleet, bytes_held, directory):
        """`start(name, setup)` starts it."""
        self.directory = directory
        (directory / "folder").mkdir(parents=True)
        directory.chmod(0o711)
        # A quarter on top for the format, and for a log that overwrites its oldest.
        size = bytes_held * 5 // 4 + (64 << 20)
        # No loop device: what it reads comes out of another page cache.
        self.area = CacheArea(directory, size, mounts=False)
        self.server = start(name, Setup(directory / "folder", self.area.path, size,
                                        fleet.origin.port))

    def close(self):
        self.server.stop()
        self.area.close()


def fill(fleet, server, load):
    """Asks for all objects until the origin is not asked for any: what comes faster than a disk
    takes it may be dropped."""
    for _ in range(FILLINGS_MAX):
        origin_count(fleet)
        prime(fleet, server, load, times=1, connections=4)
        if origin_count(fleet) == 0:
            return
    raise Problem(f"{server.name} does not hold all of {load.keys} objects")
