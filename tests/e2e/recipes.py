"""encore with a config of recipes/ as it is shipped, and machines that use it.

A test overrides by --set what it must: addresses, origin servers, where the disk lies and how large
memory and disk are. All else is the shipped file's.
"""

import pathlib
import sys
import threading

from harness import Encore, eventually, free_port

RECIPES = pathlib.Path(__file__).resolve().parents[2] / "recipes"


def shipped(name, *replaced):
    """The text of a shipped file for another program, with these (old, new), each there once or
    more."""
    text = (RECIPES / name).read_text()
    for old, new in replaced:
        if old not in text:
            raise AssertionError(f"{name} has no {old!r}")
        text = text.replace(old, new)
    return text


class Recipe(Encore):
    """encore with recipes/NAME.toml."""

    def __init__(self, case, name, servers=None, port=None, start=True, **settings):
        super().__init__(case, start=False)
        self.config_path = RECIPES / f"{name}.toml"
        if port:
            self.port = port
        text = self.config_path.read_text()
        settings = {"listen.0.address": f"127.0.0.1:{self.port}",
                    "admin.address": f"127.0.0.1:{self.admin_port}", "workers.count": 2,
                    "cache.memory": "64MiB", "log.access": self.access_path,
                    **{key.replace("__", "."): value for key, value in settings.items()}}
        for further in range(1, text.count("[[listen]]")):
            settings.setdefault(f"listen.{further}.address", f"127.0.0.1:{free_port()}")
        if servers:
            settings["origin.0.servers"] = ",".join(servers)
        if "disk = " in text:
            settings["disk.0.path"] = case.directory / f"disk-{self.port}"
            settings["disk.0.size"] = "80MiB"
        self.arguments = [f"--set={key}={value}" for key, value in settings.items()]
        if start:
            self.start()

    def write_config(self):
        """The config is the shipped file."""


class Mirrored:
    """The responses of encore's only origin, an nginx, since this was made or marked."""

    def __init__(self, nginx, encore):
        self.nginx, self.encore = nginx, encore
        self.mark()

    def all(self):
        """nginx logs an answer after it was sent."""
        asked = self.encore.metrics()["encore_origin_requests_total"]
        return eventually(lambda: len(lines := self.nginx.requests()) >= asked and [lines],
                          "nginx has logged what it answered")[0]

    def mark(self):
        self.begun = len(self.all())

    def full(self):
        """Answers with a body: all but those that confirm what the cache has."""
        return [line for line in self.all()[self.begun:] if not line.endswith(" 304")]

    def validations(self):
        return [line for line in self.all()[self.begun:] if line.endswith(" 304")]


def at_once(count, action):
    """Runs action(0) .. action(count - 1) in threads that begin together; the first failure is this
    call's."""
    barrier, failures = threading.Barrier(count), []

    def run(number):
        try:
            barrier.wait(60)
            action(number)
        except BaseException as error:  # noqa: BLE001  it is raised below
            failures.append(error)
    threads = [threading.Thread(target=run, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


class PackageRecipe:
    """The four tests of each recipe for packages, mixed into a Case. A recipe's Case has
    `nginx` (the repository) and `encore`, and `install(number)`, which installs on a machine that
    has nothing yet, and fails where it does not get what the repository has."""

    def test_the_second_machine_gets_no_body_from_the_origin(self):
        origin = Mirrored(self.nginx, self.encore)
        self.install(1)
        first = origin.full()
        self.assertNotEqual([], first)
        origin.mark()
        self.install(2)
        self.assertEqual([], origin.full())
        print(f"{type(self).__name__}: machine 1: {len(first)} full; machine 2: 0 full, "
              f"{len(origin.validations())} validations", file=sys.stderr)

    def test_with_the_origin_down_the_third_machine_still_installs(self):
        self.install(1)
        self.install(2)
        self.nginx.stop()
        self.install(3)

    def test_twenty_machines_at_once_are_one_fetch(self):
        origin = Mirrored(self.nginx, self.encore)
        at_once(20, self.install)
        full = origin.full()
        self.assertNotEqual([], full)
        self.assertEqual(sorted(set(full)), sorted(full))
