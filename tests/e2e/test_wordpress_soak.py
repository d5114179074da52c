"""A real WordPress behind Encore with recipes/wordpress.toml, and for comparison behind Varnish
with the usual rules: the same readers, users, commenters and editors. Nobody sees a page of
another, no page is older than the last change whose purge was answered, and readers find as much in
the cache as in Varnish.

WORDPRESS_SOAK_SECONDS says for how long (./dev soak --wordpress); without it the test is skipped, for the
application is not among what tests install."""

import email.utils
import gzip
import itertools
import os
import random
import re
import threading
import time
import unittest

from recipes import Recipe
from web_app import CacheCase
from wordpress import EDITOR, NAME, SECRET, Blog, Visitor

SECONDS = float(os.environ.get("WORDPRESS_SOAK_SECONDS", 0))
POSTS = range(10)
READERS, USERS, COMMENTERS, EDITORS = 6, 2, 1, 2
READS_A_BURST = 1000  # reads in a burst of an editor's changes
HOME, FEED, CATEGORY = "/", "/feed/", "/category/uncategorized/"
STYLE = "/wp-includes/css/buttons.min.css"
LOCKED, PASSWORD = "/locked/", "open-sesame"
# Pages that are the same for all readers; of these hits are counted.
SHARED = re.compile(r"/(post-\d+/(feed/)?|feed/|category/uncategorized/)?")

# Rules that an operator might write instead, for comparison.
OTHER_RULES = {"without a rule": None, "cookies = bypass, fresh = 5m": {"cookies": "bypass", "fresh": "5m"}}

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
  if (req.http.Authorization) {{ return (pass); }}
  if (req.url ~ "^/(wp-admin|wp-login|wp-cron|wp-json|wp-comments-post|xmlrpc)"
      || req.url ~ "preview=true") {{ return (pass); }}
  if (req.http.Cookie ~ "wordpress_logged_in_|wp-postpass_|comment_author_|woocommerce_") {{ return (pass); }}
  unset req.http.Cookie;
  set req.url = regsuball(req.url, "(utm_[a-z]+|gclid|fbclid)=[^&]*&?", "");
  set req.url = regsub(req.url, "[?&]$", "");
}}
sub vcl_backend_response {{
  if (bereq.uncacheable) {{ return (deliver); }}
  if (beresp.http.Set-Cookie || beresp.http.Cache-Control ~ "no-cache|no-store|private") {{
    set beresp.uncacheable = true;
    set beresp.ttl = 2m;
    return (deliver);
  }}
  if (beresp.status < 400) {{ set beresp.ttl = 5m; }}
}}
"""

# Traces of those whom a page was made for, and of what is not public.
MARK = re.compile(rb"Person\d+Q|\w+@(?:mail|staff)\.test|PENDING-\d+x|SECRETDRAFT-\d+x|PROTECTEDTEXT"
                  rb"|wpadminbar")


def path_of(number):
    return f"/post-{number}/"


def marks_of(data):
    return {mark.decode() for mark in MARK.findall(data)}


def versions_of(data):
    """{("VERSION" or "COMMENT", number of the post): the oldest that the page shows}"""
    versions = {}
    for kind, version, number in re.findall(rb"(VERSION|COMMENT) (\d+) of Post (\d+)", data):
        item = (kind.decode(), int(number))
        versions[item] = min(int(version), versions.get(item, int(version)))
    return versions


def ask_in_plain(visitor, path, headers):
    status, fields, data = visitor.ask(path, headers=headers)
    if data and fields.getheader("Content-Encoding") == "gzip":
        data = gzip.decompress(data)
    return status, fields, data


def shown_on(kind, number):
    """The pages that show a post, or its comment."""
    if kind == "COMMENT":
        return [path_of(number), path_of(number) + "feed/"]
    return [path_of(number), HOME, FEED, CATEGORY]


class Ledger:
    """The versions that everybody has to see by now: those whose purges were answered."""

    def __init__(self):
        self.changed = threading.Condition()
        self.floors, self.begun, self.purges, self.gone, self.refused = {}, {}, {}, set(), []

    def on_purge(self, path, began, statuses):
        with self.changed:
            if any(status not in (200, 404) for status in statuses):
                self.refused.append((path, statuses))
            self.purges[path] = max(began, self.purges.get(path, 0))
            self.changed.notify_all()

    def wait_for_purge(self, post_id, began):
        """Waits for the purges of the change that began then; nobody else changes the post."""
        path = f"/purged/{post_id}"
        with self.changed:
            if not self.changed.wait_for(lambda: self.purges.get(path, 0) >= began, 120):
                raise AssertionError(f"no purge of post {post_id} came")

    def demand(self, item, version, begun):
        with self.changed:
            self.begun[item, version] = begun
            for path in shown_on(*item):
                self.floors.setdefault(path, {})[item] = version

    def drop(self, item):
        """The post may be gone."""
        with self.changed:
            for path in shown_on(*item):
                self.floors.get(path, {}).pop(item, None)

    def demand_gone(self, item):
        with self.changed:
            self.gone.add(item)

    def demands(self, path):
        """(floors, items that must not be there) of this moment."""
        with self.changed:
            return dict(self.floors.get(path, {})), set(self.gone)

    def is_excused(self, item, floor, last_modified):
        """WordPress knows changes of feeds by the second: a copy of the second of the change confirms."""
        with self.changed:
            return last_modified >= int(self.begun[item, floor])


class Cache:
    """One of the caches, what its readers have asked for and what was wrong; WordPress answers it on a
    port of its own."""

    def __init__(self, name, port, origin, ledger):
        self.name, self.port, self.origin, self.ledger = name, port, origin, ledger
        self.reads, self.kinds = 0, {}
        self.stale, self.wrong_person, self.failed = [], [], []

    def count(self, kind):
        self.kinds[kind] = self.kinds.get(kind, 0) + 1

    def look(self, visitor, path, required=(), allowed=(), expected=200, query="", headers=None):
        """Asks for a page and checks it: `required` must be in it, of marks no other than `allowed`."""
        floors, gone = self.ledger.demands(path)
        status, fields, data = ask_in_plain(visitor, path + query, headers)
        if status != expected:
            self.failed.append((path + query, status))
            return data
        marks = marks_of(data)
        if not set(required) <= marks or marks - {*required, *allowed}:
            self.wrong_person.append((path + query, sorted(required), sorted(marks)))
        if expected == 200:
            self.check(path + query, versions_of(data), floors, gone)
        return data

    def check(self, path, versions, floors, gone):
        for item, floor in floors.items():
            if versions.get(item, 0) < floor:
                self.stale.append((path, item, floor, versions.get(item)))
        for item in gone & versions.keys():
            self.stale.append((path, item, "gone"))

    def look_again(self, visitor, copy, headers):
        """A feed reader's request with the validators of its copy, if any; returns the copy to keep."""
        floors, gone = self.ledger.demands(FEED)
        validators = {"If-None-Match": copy[0], "If-Modified-Since": copy[1]} if copy else {}
        status, fields, data = ask_in_plain(visitor, FEED, {**headers, **validators})
        if status == 304 and copy:
            self.count("304")
            modified = email.utils.parsedate_to_datetime(copy[1]).timestamp()
            floors = {item: floor for item, floor in floors.items()
                      if not self.ledger.is_excused(item, floor, modified)}
            self.check("304 of " + FEED, copy[2], floors, set())
            return copy
        if status != 200:
            self.failed.append(("conditional " + FEED, status))
            return None
        self.check(FEED, versions_of(data), floors, gone)
        if marks_of(data):
            self.wrong_person.append((FEED, [], sorted(marks_of(data))))
        return fields.getheader("ETag"), fields.getheader("Last-Modified"), versions_of(data)


@unittest.skipUnless(SECONDS, "WORDPRESS_SOAK_SECONDS does not say for how long")
class Soak(CacheCase):
    def setUp(self):
        super().setUp()
        self.ledger = Ledger()
        self.blog = Blog(self, self.ledger.on_purge, ports=3 + len(OTHER_RULES), users=USERS)
        own, ours, theirs, *others = self.blog.ports
        self.editors_port = own
        self.encore = Recipe(self, "wordpress", [f"http://127.0.0.1:{ours}"])
        self.caches = [Cache("this recipe", self.encore.port, ours, self.ledger),
                       Cache("varnish", self.start_varnish(VCL.format(port=theirs)), theirs, self.ledger)]
        self.caches += [Cache(name, self.start_encore(port, rule), port, self.ledger)
                        for port, (name, rule) in zip(others, OTHER_RULES.items())]
        self.blog.relay.targets = [cache.port for cache in self.caches]
        self.over, self.troubles = threading.Event(), []
        self.numbers = itertools.count(1)
        self.versions, self.posts, self.comments = {}, {}, {}

    # Editors

    def change(self, item, post_id, make):
        """Makes the next version of a post or of its comment, and waits until its purges were answered."""
        version = self.versions[item] = self.versions.get(item, 0) + 1
        began, begun = time.monotonic(), time.time()
        answer = make(f"{item[0]} {version} of Post {item[1]}")
        self.ledger.wait_for_purge(post_id or answer["id"], began)
        self.ledger.demand(item, version, begun)
        return answer

    def publish(self, visitor, number):
        answer = self.change(("VERSION", number), None, lambda text: visitor.api("POST", "posts", {
            "title": f"Post {number}", "slug": f"post-{number}", "status": "publish", "content": text}))
        self.posts[number] = answer["id"]

    def edit(self, visitor, number):
        post = self.posts[number]
        self.change(("VERSION", number), post,
                    lambda text: visitor.api("POST", f"posts/{post}", {"content": text}))

    def comment(self, visitor, number):
        post, comment = self.posts[number], self.comments.get(number)
        path, form = (f"comments/{comment}", {}) if comment else ("comments", {"post": post})
        answer = self.change(("COMMENT", number), post,
                             lambda text: visitor.api("POST", path, {**form, "content": text}))
        self.comments[number] = answer["id"]

    def draft_publish_and_trash(self, visitor, number):
        """Nobody but the editor sees the draft; all see the post, and nobody when it is gone."""
        secret, item = f"SECRETDRAFT-{number}x", ("VERSION", number)
        form = {"title": f"Post {number}", "slug": f"post-{number}"}
        post = visitor.api("POST", "posts", {**form, "status": "draft", "content": secret})["id"]
        preview = f"/?p={post}&preview=true"
        caches = self.caches[:2]
        readers = [Visitor(cache.port) for cache in caches]
        for cache, reader in zip(caches, readers):
            cache.count("previews")
            editor = Visitor(cache.port, visitor.cookies)
            cache.look(editor, preview, {secret, "wpadminbar"}, {"editor@staff.test"})
            for path in (preview, preview, path_of(number)):
                cache.look(reader, path, expected=404)
            editor.close()
        self.change(item, post, lambda text: visitor.api("POST", f"posts/{post}",
                                                         {"status": "publish", "content": text}))
        for cache, reader in zip(caches, readers):
            for path in (HOME, path_of(number), path_of(number), FEED):
                cache.look(reader, path)
        self.ledger.drop(item)
        began = time.monotonic()
        visitor.api("DELETE", f"posts/{post}")
        self.ledger.wait_for_purge(post, began)
        self.ledger.demand_gone(item)
        for cache, reader in zip(caches, readers):
            cache.look(reader, HOME)
            cache.look(reader, path_of(number), expected=404)
            reader.close()

    def run_editor(self, number, cookies, rng):
        """Posts of its own; bursts within one second, then readers only, a number of requests and not a time:
        hits depend on it. Editors share a session: of two logins of one user at a time WordPress may lose
        one."""
        visitor = Visitor(self.editors_port, cookies)
        for turn in itertools.count():
            if self.over.is_set():
                return
            post = rng.choice(POSTS[number::EDITORS])
            for _ in range(rng.randrange(1, 4)):
                self.edit(visitor, post)
            if rng.random() < 0.4:
                self.comment(visitor, post)
            if number == 0 and rng.random() < 0.4:
                self.draft_publish_and_trash(visitor, 1000 + turn)
            reads = self.caches[0].reads + rng.randrange(2 * READS_A_BURST)
            while self.caches[0].reads < reads and not self.over.wait(0.05):
                pass

    # Those who read

    @staticmethod
    def any_page(rng):
        post = path_of(min(rng.choice(POSTS), rng.choice(POSTS)))
        return rng.choices([post, HOME, FEED, CATEGORY, post + "feed/"], [60, 20, 8, 6, 6])[0]

    def run_reader(self, caches, pause, rng):
        """`pause` in seconds: without a cache WordPress has no time for others."""
        visitors = [Visitor(cache.port) for cache in caches]
        copies = {}
        while not self.over.wait(pause):
            # Another reader each time, in half of the cases one that analytics scripts know.
            cookies = {"_ga": f"GA1.2.{rng.randrange(1 << 32)}"} if rng.random() < 0.5 else {}
            path, kind = self.any_page(rng), rng.random()
            query = f"?utm_source=s{rng.randrange(1 << 32)}&utm_medium=mail" if rng.random() < 0.2 else ""
            headers = {"Accept-Encoding": "gzip"} if rng.random() < 0.5 else {}
            for cache, visitor in zip(caches, visitors):
                visitor.cookies = dict(cookies)
                if kind < 0.05:
                    self.read_otherwise(cache, visitor, path, kind)
                elif kind < 0.08:
                    which = cache, bool(headers)
                    copies[which] = cache.look_again(visitor, copies.get(which), headers)
                    cache.reads += 1
                else:
                    cache.look(visitor, path, query=query, headers=headers)
                    cache.reads += 1
                if visitor.cookies != cookies:
                    cache.wrong_person.append((path, "a cookie", visitor.cookies))

    def read_otherwise(self, cache, visitor, path, kind):
        """Sends the requests that do not count as pages."""
        if kind < 0.02:
            cache.count("HEAD")
            status, _, data = visitor.ask(path, "HEAD")
            if (status, data) != (200, b""):
                cache.failed.append(("HEAD " + path, status))
        elif kind < 0.03:
            cache.look(visitor, LOCKED)
        elif kind < 0.035:
            data = cache.look(visitor, "/wp-admin/admin-ajax.php", query="?action=whoami")
            if data != b"USER ":
                cache.wrong_person.append(("whoami", "", data))
        elif kind < 0.04:
            number = self.number_of(path)
            versions, gone = self.ledger.demands(path_of(number))
            floors = {item: version for item, version in versions.items() if item[0] == "VERSION"}
            api = f"/wp-json/wp/v2/posts/{self.posts[number]}"
            cache.check(api, versions_of(cache.look(visitor, api)), floors, gone)
        elif kind < 0.045:
            cache.look(visitor, STYLE, query="?ver=6.1")
        else:
            cache.look(visitor, "/wp-admin/", expected=302)

    @staticmethod
    def number_of(path):
        found = re.match(r"/post-(\d+)/", path)
        return int(found.group(1)) if found else 0

    def some_cache(self, rng):
        return rng.choices(self.caches, [6, 2, *(1 for _ in OTHER_RULES)])[0]

    def run_user(self, number, rng):
        user, marks = f"user{number}", {f"Person{number}Q", "wpadminbar"}
        while not self.over.wait(rng.uniform(0, 1)):
            cache = self.some_cache(rng)
            visitor = Visitor(cache.port)
            visitor.log_in(user)
            for _ in range(rng.randrange(1, 4)):
                cache.count("pages of users")
                page = cache.look(visitor, path_of(rng.choice(POSTS)), marks)
                cache.look(visitor, rng.choice([HOME, CATEGORY]), marks)
            cache.look(visitor, "/wp-admin/profile.php", {*marks, f"{user}@mail.test"})
            if cache.look(visitor, "/wp-admin/admin-ajax.php", marks - {"wpadminbar"},
                          query="?action=whoami") != f"USER Person{number}Q".encode():
                cache.wrong_person.append(("whoami", user))
            if visitor.api("GET", "users/me")["name"] != f"Person{number}Q":
                cache.wrong_person.append(("users/me", user))
            visitor.log_out(page)
            cache.look(visitor, path_of(rng.choice(POSTS)))
            cache.look(visitor, "/wp-admin/profile.php", expected=302)
            cache.reads += 1
            visitor.close()

    def run_commenter(self, rng):
        """Half of them let their name be kept in a cookie; the others see their comment by its link alone."""
        while not self.over.wait(rng.uniform(0, 1)):
            self.write_comment(self.some_cache(rng), rng.choice(POSTS), rng.random() < 0.5)
            self.unlock(self.some_cache(rng))

    def write_comment(self, cache, post, consents):
        number, visitor = next(self.numbers), Visitor(cache.port)
        cache.count("commenters")
        address, text, path = f"c{number}@mail.test", f"PENDING-{number}x", path_of(post)
        cache.look(visitor, path)
        cache.reads += 1
        form = {"comment_post_ID": self.posts[post], "author": f"Commenter {number}", "email": address,
                "comment": text, "comment_parent": "0", "submit": "Post Comment"}
        if consents:
            form["wp-comment-cookies-consent"] = "yes"
        status, fields, _ = visitor.send_form("/wp-comments-post.php", form)
        link = (fields.getheader("Location") or "").removeprefix(f"http://{NAME}").partition("#")[0]
        if status != 302 or ("moderation-hash=" in link) == consents:
            cache.failed.append(("comment", status, link))
            return
        if consents:
            for _ in range(2):
                cache.look(visitor, path, {text, address})
        else:
            # Nobody purges the link: what it shows may be as old as the recipe lets it be fresh.
            for _ in range(3):
                cache.look(visitor, link, {text})
            cache.look(visitor, path)
            cache.reads += 1
        visitor.close()

    @staticmethod
    def unlock(cache):
        visitor = Visitor(cache.port)
        cache.look(visitor, LOCKED)
        visitor.send_form("/wp-login.php?action=postpass", {"post_password": PASSWORD, "Submit": "Enter"})
        for _ in range(2):
            cache.look(visitor, LOCKED, {"PROTECTEDTEXT"})
        visitor.close()

    def guard(self, call, *arguments):
        def run():
            try:
                call(*arguments)
            except Exception as trouble:  # pylint: disable=broad-except
                self.troubles.append(f"{call.__name__}: {trouble!r}")
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread

    def overtaken(self):
        """Responses that came after the purge of what they show: they answered, and were not stored."""
        return self.encore.access_path.read_text().count('"detail":"overtaken"')

    def hit_ratio(self, cache, lines):
        """Share of the readers' requests of shared pages that did not reach WordPress. Those for a comment by
        its link and for a preview are not of shared pages."""
        fetched = 0
        for port, method, path, _, whose in lines:
            path, _, query = path.partition("?")
            fetched += ((port, method, whose) == (str(cache.origin), "GET", "-")
                        and (not query or query.startswith("utm_"))
                        and SHARED.fullmatch(path) is not None and self.number_of(path) in POSTS)
        return 1 - fetched / max(1, cache.reads)

    def test_nobody_sees_anothers_page_or_one_that_was_purged(self):
        seed = random.SystemRandom().randrange(1 << 32)
        rng = random.Random(seed)
        editor = Visitor(self.editors_port)
        editor.log_in(EDITOR)
        for number in POSTS:
            self.publish(editor, number)
            self.comment(editor, number)
        editor.api("POST", "posts", {"title": "Locked", "slug": "locked", "status": "publish",
                                     "password": PASSWORD, "content": "PROTECTEDTEXT"})
        # Second-hit stores what is requested again; from here on each page is.
        for cache in self.caches:
            for path in [HOME, FEED, CATEGORY, *map(path_of, POSTS),
                         *(path_of(number) + "feed/" for number in POSTS)] * 2:
                Visitor(cache.port).ask(path)
        before, overtaken = len(self.blog.requests()), self.overtaken()
        threads = [self.guard(self.run_reader, self.caches[:2], 0, random.Random(rng.random()))
                   for _ in range(READERS)]
        threads += [self.guard(self.run_reader, [cache], 0.2, random.Random(rng.random()))
                    for cache in self.caches[2:]]
        threads += [self.guard(self.run_user, number, random.Random(rng.random())) for number in range(USERS)]
        threads += [self.guard(self.run_commenter, random.Random(rng.random())) for _ in range(COMMENTERS)]
        threads += [self.guard(self.run_editor, number, editor.cookies, random.Random(rng.random()))
                    for number in range(EDITORS)]
        self.over.wait(SECONDS)
        self.over.set()
        for thread in threads:
            thread.join(240)
        lines = self.blog.requests()[before:]
        ratios = {cache.name: self.hit_ratio(cache, lines) for cache in self.caches}
        overtaken = self.overtaken() - overtaken
        print(f"\nseed {seed}: {sum(self.versions.values())} changes, {overtaken} responses overtaken")
        for cache in self.caches:
            print(f"{cache.name}: {cache.reads} requests of readers, {ratios[cache.name]:.2%} hits; "
                  f"{cache.kinds}; {len(cache.stale)} stale, {len(cache.wrong_person)} of the wrong person, "
                  f"{len(cache.failed)} failed")
            for found in filter(None, (cache.stale, cache.wrong_person, cache.failed)):
                print(f"  {found[:3]}")
        ours = self.caches[0]
        self.assertEqual([], self.troubles[:3])
        self.assertEqual([], ours.wrong_person[:3])
        self.assertEqual([], ours.stale[:3])
        self.assertEqual([], ours.failed[:3])
        self.assertEqual([], self.ledger.refused[:3])
        self.assertGreater(ours.reads, 100)
        # Varnish stores what was overtaken, and counts a hit where it is stale.
        self.assertGreater(ratios["this recipe"] + overtaken / ours.reads, ratios["varnish"] - 0.01)


if __name__ == "__main__":
    unittest.main()
