"""A real MediaWiki behind Encore, and for comparison behind Varnish with the configuration of the
wiki's manual: the same readers, users, editors and uploads. Nobody sees a page of another, no page
is older than the last edit whose purge was answered, and readers find as much in the cache as in
Varnish.

WIKI_SOAK_SECONDS says for how long (./dev soak --wiki); without it the test is skipped, for the
application is not among what tests install."""

import hashlib
import os
import random
import re
import struct
import threading
import time
import tomllib
import unittest
import urllib.parse
import zlib

from recipes import RECIPES
from web_app import CacheCase
from wiki import SECRET, Visitor, Wiki, user_of

SECONDS = float(os.environ.get("WIKI_SOAK_SECONDS", 0))
PAGES = [f"Page {number}" for number in range(12)]
PICTURE = "Picture.png"
READERS, USERS, EDITORS = 6, 2, 2

RULE = tomllib.loads((RECIPES / "mediawiki.toml").read_text())["rule"][0]
# Rules that an operator might write instead, for comparison: `_ga` of half of the readers is in the key, or
# sends them to the wiki.
OTHER_RULES = {"without a rule": None, "cookies = bypass": {"cookies": "bypass"}}

# Cookies of readers stay out of the key, as the wiki's manual has it; users go to the wiki.
VCL = """
vcl 4.1;
backend default {{ .host = "127.0.0.1"; .port = "{port}"; }}
acl purgers {{ "127.0.0.1"; }}
sub vcl_recv {{
  if (req.method == "PURGE") {{
    if (client.ip !~ purgers) {{ return (synth(405, "Not allowed.")); }}
    return (purge);
  }}
  if (req.method != "GET" && req.method != "HEAD") {{ return (pass); }}
  if (req.http.Authorization || req.http.Cookie ~ "([sS]ession|Token|UserID|UseDC|UseCDNCache)=") {{
    return (pass);
  }}
  unset req.http.Cookie;
}}
"""


def path_of(title):
    return "/wiki/" + urllib.parse.quote(title.replace(" ", "_"))


def picture_path():
    digest = hashlib.md5(PICTURE.encode()).hexdigest()
    return f"/images/{digest[0]}/{digest[:2]}/{PICTURE}"


def png(version):
    """A picture of one line whose width is its version."""
    def chunk(kind, data):
        return (struct.pack(">I", len(data)) + kind + data
                + struct.pack(">I", zlib.crc32(kind + data)))
    rows = zlib.compress(b"\0" * (1 + version))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", version, 1, 8, 0, 0, 0, 0))
            + chunk(b"IDAT", rows) + chunk(b"IEND", b""))


def version_of(path, data):
    """None: the page does not say one, as before its first edit."""
    if path == picture_path():
        return struct.unpack(">I", data[16:20])[0] if data.startswith(b"\x89PNG") else None
    found = re.search(rb"VERSION (\d+) ", data)
    return int(found.group(1)) if found else None


class Ledger:
    """The versions that everybody has to see by now: those whose purge was answered."""

    def __init__(self):
        self.changed = threading.Condition()
        self.floors, self.purges, self.refused = {}, {}, []

    def on_purge(self, path, began, statuses):
        with self.changed:
            if any(status not in (200, 404) for status in statuses):
                self.refused.append((path, statuses))
            self.purges[path] = max(began, self.purges.get(path, 0))
            self.changed.notify_all()

    def floor(self, path):
        with self.changed:
            return self.floors.get(path, 0)

    def wait_for_purge(self, path, began, version):
        """Waits for the purge of the change that began then; nobody else changes the path."""
        with self.changed:
            if not self.changed.wait_for(lambda: self.purges.get(path, 0) >= began, 120):
                raise AssertionError(f"no purge of {path} came from the wiki")
            self.floors[path] = version


class Cache:
    """One of the caches, what its readers have asked for and what was wrong; the wiki answers it on
    a port of its own."""

    def __init__(self, name, port, origin):
        self.name, self.port, self.origin = name, port, origin
        self.reads = self.user_reads = 0
        self.stale, self.wrong_person, self.failed = [], [], []

    def look(self, visitor, path, floor, user):
        status, _, data = visitor.ask(path)
        if status != 200:
            self.failed.append((path, status))
            return
        if path != picture_path() and user_of(data) != user:
            self.wrong_person.append((path, user, user_of(data)))
        version = version_of(path, data)
        if (version or 0) < floor:
            self.stale.append((path, floor, version))


@unittest.skipUnless(SECONDS, "WIKI_SOAK_SECONDS does not say for how long")
class Soak(CacheCase):
    def setUp(self):
        super().setUp()
        self.ledger = Ledger()
        self.wiki = Wiki(self, self.ledger.on_purge, ports=3 + len(OTHER_RULES))
        own, ours, theirs, *others = self.wiki.ports
        self.editors_port = own
        self.caches = [Cache("encore", self.start_encore(ours, RULE), ours),
                       Cache("varnish", self.start_varnish(VCL.format(port=theirs)), theirs)]
        self.caches += [Cache(f"encore, {name}", self.start_encore(port, rule), port)
                        for port, (name, rule) in zip(others, OTHER_RULES.items())]
        self.wiki.relay.targets = [cache.port for cache in self.caches]
        self.over, self.troubles = threading.Event(), []
        self.versions = {}

    def next_version(self, path):
        self.versions[path] = self.versions.get(path, 0) + 1
        return self.versions[path]

    def edit(self, visitor, title):
        path, began = path_of(title), time.monotonic()
        version = self.next_version(path)
        visitor.edit(title, f"VERSION {version} of [[{title}]]")
        self.ledger.wait_for_purge(path, began, version)

    def upload(self, visitor):
        began, version = time.monotonic(), self.next_version(picture_path())
        visitor.upload(PICTURE, png(version))
        if version == 1:
            return  # there was nothing to purge
        self.ledger.wait_for_purge(picture_path(), began, version)

    def run_editor(self, number, rng):
        """Pages of its own; bursts within one second, then a pause of readers only."""
        visitor = Visitor(self.editors_port)
        visitor.log_in("Admin")
        pages = PAGES[number::EDITORS]
        while not self.over.is_set():
            title = rng.choice(pages)
            for _ in range(rng.randrange(1, 4)):
                self.edit(visitor, title)
            if number == 0 and rng.random() < 0.3:
                self.upload(visitor)
            self.over.wait(rng.uniform(0, 3))

    def run_reader(self, caches, rng):
        visitors = [Visitor(cache.port) for cache in caches]
        while not self.over.is_set():
            path = picture_path() if rng.random() < 0.1 else path_of(
                PAGES[min(rng.randrange(len(PAGES)), rng.randrange(len(PAGES)))])
            # Another reader each time, in half of the cases one that analytics scripts know.
            cookies = {"_ga": f"GA1.2.{rng.randrange(1 << 32)}"} if rng.random() < 0.5 else {}
            for cache, visitor in zip(caches, visitors):
                visitor.cookies = dict(cookies)
                cache.look(visitor, path, self.ledger.floor(path), None)
                cache.reads += 1

    def run_user(self, name, rng):
        visitors = [Visitor(cache.port) for cache in self.caches]
        while not self.over.is_set():
            for cache, visitor in zip(self.caches, visitors):
                visitor.log_in(name)
                for _ in range(rng.randrange(1, 6)):
                    path = path_of(rng.choice(PAGES))
                    cache.look(visitor, path, self.ledger.floor(path), name)
                    cache.user_reads += 1
                visitor.log_out()
                path = path_of(rng.choice(PAGES))
                cache.look(visitor, path, self.ledger.floor(path), None)
            self.over.wait(rng.uniform(0, 2))

    def guard(self, call, *arguments):
        def run():
            try:
                call(*arguments)
            except Exception as trouble:  # pylint: disable=broad-except
                self.troubles.append(f"{call.__name__}: {trouble!r}")
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def hit_ratio(self, cache, lines):
        """Share of the readers' requests that did not reach the wiki."""
        fetched = sum(1 for port, method, _, _, whose in lines
                      if (port, method, whose) == (str(cache.origin), "GET", "-"))
        return 1 - fetched / max(1, cache.reads)

    def test_nobody_sees_anothers_page_or_one_that_was_purged(self):
        seed = random.SystemRandom().randrange(1 << 32)
        rng = random.Random(seed)
        admin = Visitor(self.editors_port)
        admin.log_in("Admin")
        for title in PAGES:
            self.edit(admin, title)
        self.upload(admin)
        for number in range(USERS):
            admin.create_account(f"User{number}", SECRET)
        # Second-hit stores what is requested again; from here on each page is.
        for cache in self.caches:
            for path in [picture_path(), *map(path_of, PAGES)] * 3:
                Visitor(cache.port).ask(path)
        before = len(self.wiki.requests())
        threads = [self.guard(self.run_reader, self.caches[:2], random.Random(rng.random()))
                   for _ in range(READERS)]
        threads += [self.guard(self.run_reader, [cache], random.Random(rng.random()))
                    for cache in self.caches[2:]]
        threads += [self.guard(self.run_user, f"User{number}", random.Random(rng.random()))
                    for number in range(USERS)]
        threads += [self.guard(self.run_editor, number, random.Random(rng.random()))
                    for number in range(EDITORS)]
        self.over.wait(SECONDS)
        self.over.set()
        for thread in threads:
            thread.join(240)
        lines = self.wiki.requests()[before:]
        ratios = {cache.name: self.hit_ratio(cache, lines) for cache in self.caches}
        print(f"\nseed {seed}: {sum(self.versions.values())} edits and uploads")
        for cache in self.caches:
            print(f"{cache.name}: {cache.reads} requests of readers, {ratios[cache.name]:.2%} hits; "
                  f"{cache.user_reads} of users; {len(cache.stale)} stale, "
                  f"{len(cache.wrong_person)} of the wrong person, {len(cache.failed)} failed")
        ours = self.caches[0]
        self.assertEqual([], self.troubles[:3])
        self.assertEqual([], ours.wrong_person[:3])
        self.assertEqual([], ours.stale[:3])
        self.assertEqual([], ours.failed[:3])
        self.assertEqual([], self.ledger.refused[:3])
        self.assertGreater(ours.reads, 100)
        self.assertGreater(ratios["encore"], ratios["varnish"] - 0.01)


if __name__ == "__main__":
    unittest.main()
