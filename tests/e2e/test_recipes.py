"""recipes/: all of them can be started with and are short; a web application with sessions, and a
static site. Those for packages are in test_recipes_apt and so on, those with other programs around
them in test_recipes_around and test_fleet_recipes."""

import subprocess
import unittest

from client import field
from harness import Case, clean_environment, need_program
from nginx import Nginx
from origin import Origin, fresh, response
from recipes import RECIPES, Recipe, at_once
from test_reverse import ask

LINES_MAX = 12
WEB_HOST = "app.example"


class Shipped(Case):
    def test_each_has_twelve_lines_at_most_and_comments(self):
        recipes = sorted(RECIPES.glob("*.toml"))
        self.assertGreaterEqual(len(recipes), 10)
        for recipe in recipes:
            with self.subTest(recipe.name):
                lines = recipe.read_text().splitlines()
                said = [line for line in lines if line and not line.startswith("#")]
                self.assertLessEqual(len(said), LINES_MAX)
                self.assertTrue(lines[0].startswith("# "))
                self.assertLessEqual(max(map(len, lines)), 110)

    def test_each_can_be_started_with(self):
        for recipe in sorted(RECIPES.glob("*.toml")):
            with self.subTest(recipe.name):
                encore = Recipe(self, recipe.stem, start=False)
                if recipe.stem.startswith("https-"):
                    home = self.directory / recipe.stem
                    self.run_client([encore.program, "ca", "create", "--out", home,
                                     "--config", recipe])
                    encore.arguments += [f"--set=intercept.ca_certificate={home}/ca.crt",
                                         f"--set=intercept.ca_key={home}/ca.key"]
                said = subprocess.run(
                    [encore.program, "--config", recipe, *encore.arguments, "--check-config"],
                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                    env=clean_environment())
                self.assertEqual(0, said.returncode, said.stdout.decode())


    def test_each_is_good_as_it_is_written(self):
        """With the paths, sizes and addresses of the file, where nothing has been made yet. A network
        and a /var/cache of its own stand for the machine."""
        unshare = need_program("unshare")
        probe = subprocess.run([unshare, "-rmn", "mount", "-t", "tmpfs", "none", "/var/cache"],
                               capture_output=True, timeout=60, check=False)
        if probe.returncode != 0:
            self.skipTest("this user may make no namespace")
        for recipe in sorted(RECIPES.glob("*.toml")):
            with self.subTest(recipe.name):
                encore = Recipe(self, recipe.stem, start=False)
                sets = []
                if recipe.stem.startswith("https-"):
                    home = self.directory / recipe.stem
                    self.run_client([encore.program, "ca", "create", "--out", home,
                                     "--config", recipe])
                    sets = [f"--set=intercept.ca_certificate={home}/ca.crt",
                            f"--set=intercept.ca_key={home}/ca.key"]
                script = ("mount -t tmpfs -o size=25g none /var/cache && ip link set lo up && "
                          "\"$@\" --check-config && ! ls -A /var/cache | grep .")
                said = subprocess.run(
                    [unshare, "-rmn", "sh", "-c", script, "sh", encore.program, "--config", recipe,
                     *sets], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120,
                    env=clean_environment(), check=False)
                self.assertEqual(0, said.returncode, said.stdout.decode())

    def test_one_starts_and_makes_its_disk_as_it_is_written(self):
        encore = Recipe(self, "apt", start=False)
        directory = self.directory / "cache" / "encore"
        encore.arguments = [each for each in encore.arguments if "disk.0.path" not in each]
        encore.arguments.append(f"--set=disk.0.path={directory}/apt")
        encore.start()
        self.assertEqual(0o700, directory.stat().st_mode & 0o777)
        self.assertEqual(0o600, (directory / "apt").stat().st_mode & 0o777)


def cookie_of(request):
    return dict(request.fields).get("cookie")


class WebApplication(Case):
    """An application that gives everyone a session, as many do, and says of its public pages how
    long they are fresh."""

    def setUp(self):
        super().setUp()
        self.sessions = 0
        self.origin = Origin(self, default=self.application)
        self.encore = Recipe(self, "web-application", [self.origin.url("")])

    def application(self, exchange):
        path, cookie = exchange.request.target, cookie_of(exchange.request)
        said = {}
        if not cookie:
            self.sessions += 1
            said["Set_Cookie"] = f"session=s{self.sessions}"
        if path.startswith("/assets/"):
            return fresh(b"asset", 3600, **said)
        if path.startswith("/login"):
            return fresh(f"form for {said.get('Set_Cookie')}", 60, **said)
        who = cookie or "nobody"
        return response(f"{path} for {who}", Cache_Control="public, max-age=60", **said)

    def ask(self, path, cookie=None):
        return ask(self.encore.port, path, WEB_HOST, [("Cookie", cookie)] if cookie else [])

    def test_who_has_no_session_gets_pages_from_the_cache_and_never_a_cookie_of_another(self):
        answers = [self.ask("/news") for _ in range(6)]
        self.assertEqual({b"/news for nobody"}, {answer.body for answer in answers})
        self.assertEqual(2, self.origin.count("/news"))
        for answer in answers[2:]:
            self.assertIn("; hit", field(answer, "Cache-Status"))
            self.assertIsNone(field(answer, "Set-Cookie"))

    def test_who_has_a_session_gets_what_is_theirs_among_others_at_once(self):
        def user(number):
            for turn in range(10):
                if number % 4 == 0:
                    self.assertEqual(b"/news for nobody", self.ask("/news").body)
                    continue
                answer = self.ask("/news", f"session=u{number}")
                self.assertEqual(f"/news for session=u{number}".encode(), answer.body)
                self.assertNotIn("; hit", field(answer, "Cache-Status"))
        at_once(16, user)

    def test_assets_are_one_for_all_and_the_origin_sees_no_cookie_with_them(self):
        for number in range(6):
            answer = self.ask("/assets/app.js", f"session=u{number}")
            self.assertEqual(b"asset", answer.body)
            if number >= 2:
                self.assertIn("; hit", field(answer, "Cache-Status"))
                self.assertIsNone(field(answer, "Set-Cookie"))
        self.assertEqual(2, self.origin.count("/assets/app.js"))
        self.assertEqual({None}, {cookie_of(request) for request in self.origin.requests})

    def test_each_visitor_gets_a_form_and_a_session_of_their_own(self):
        cookies = {field(self.ask("/login"), "Set-Cookie") for _ in range(4)}
        self.assertEqual(4, len(cookies - {None}))


class Cookies(Case):
    """mediawiki.toml and wordpress.toml, with an application that makes pages of the cookies it gets."""

    USERS = {"mediawiki": ["wiki_session", "wikiUserID", "wikiToken"],
             "wordpress": ["wordpress_logged_in_0c3f", "comment_author_0c3f", "wp_woocommerce_session_1"]}

    def start(self, name):
        self.origin = Origin(self, default=lambda exchange: response(
            f"page for {cookie_of(exchange.request)}", Vary="Cookie", Content_Type="text/html",
            **({"Cache_Control": "s-maxage=18000, must-revalidate, max-age=0"}
               if name == "mediawiki" else {})))
        self.encore = Recipe(self, name, [self.origin.url("")])

    def ask(self, cookie=None, method="GET"):
        return ask(self.encore.port, "/page", WEB_HOST, [("Cookie", cookie)] if cookie else [],
                   method=method)

    def test_readers_share_a_page_whatever_analytics_gave_them(self):
        for name in self.USERS:
            with self.subTest(name):
                self.start(name)
                answers = [self.ask(f"_ga=GA1.2.{number}" if number % 2 else None)
                           for number in range(8)]
                self.assertEqual({b"page for None"}, {answer.body for answer in answers})
                self.assertEqual(2, self.origin.count("/page"))

    def test_users_get_their_own_page_from_the_application(self):
        for name, cookies in self.USERS.items():
            with self.subTest(name):
                self.start(name)
                for _ in range(3):
                    self.ask()
                for cookie in cookies:
                    for number in range(2):
                        answer = self.ask(f"_ga=GA1.2.7; {cookie}=u{number}")
                        self.assertEqual(f"page for {cookie}=u{number}".encode(), answer.body)
                self.assertEqual(b"page for None", self.ask().body)

    def test_a_purge_from_this_machine_empties_the_page(self):
        for name in self.USERS:
            with self.subTest(name):
                self.start(name)
                for _ in range(3):
                    self.ask()
                before = self.origin.count("/page")
                self.assertEqual(200, self.ask(method="PURGE").status)
                self.ask()
                self.assertEqual(before + 1, self.origin.count("/page"))


class WordPress(Case):
    """wordpress.toml where WordPress and its plugins state no freshness."""

    TYPES = {"/wp-json/wp/v2/posts": "application/json", "/?rest_route=/wp/v2/posts": "application/json",
             "/feed/": "application/rss+xml; charset=UTF-8", "/wp-content/a.css": "text/css"}

    def setUp(self):
        super().setUp()
        self.origin = Origin(self, default=self.application)
        self.encore = Recipe(self, "wordpress", [self.origin.url("")])

    def application(self, exchange):
        path = exchange.request.target
        said = {"Content_Type": self.TYPES.get(path, "text/html; charset=UTF-8")}
        if path == "/cart/":
            said["Set_Cookie"] = "cart=1"
        if path == "/wp-content/a.css":
            said["Cache_Control"] = "max-age=3600"
        return response(f"{path} for {cookie_of(exchange.request)}", **said)

    def fetches(self, path, cookie=None, times=6):
        """How many of so many requests the application answers."""
        before = len(self.origin.requests)
        for _ in range(times):
            self.assertEqual(200, ask(self.encore.port, path, WEB_HOST,
                                      [("Cookie", cookie)] if cookie else []).status)
        return len(self.origin.requests) - before

    def test_pages_and_feeds_are_fetched_twice_whatever_the_reader_carries(self):
        self.assertEqual(2, self.fetches("/post/", "_ga=1; woocommerce_recently_viewed=7"))
        self.assertEqual(0, self.fetches("/post/?utm_source=mail&utm_medium=m&fbclid=x"))
        self.assertEqual(2, self.fetches("/feed/"))

    def test_the_api_programs_and_pages_that_set_cookies_are_fetched_each_time(self):
        for path in ("/wp-json/wp/v2/posts", "/?rest_route=/wp/v2/posts", "/wp-admin/admin-ajax.php?action=a",
                     "/blog/wp-admin/", "/wp-login.php", "/wp-cron.php", "/wp-links-opml.php", "/xmlrpc.php",
                     "/cart/"):
            with self.subTest(path):
                self.assertEqual(6, self.fetches(path))

    def test_a_login_keeps_its_cookies_and_pages_of_users_are_not_stored(self):
        self.assertIn(b"for wordpress_test_cookie=1", ask(self.encore.port, "/wp-login.php", WEB_HOST, [
            ("Cookie", "wordpress_test_cookie=1")]).body)
        for cookie in ("wordpress_logged_in_a=u", "comment_author_email_a=c", "wp-postpass_a=p",
                       "woocommerce_cart_hash=1", "wp_woocommerce_session_a=1"):
            with self.subTest(cookie):
                self.assertEqual(6, self.fetches("/post/", f"_ga=1; {cookie}"))
        self.assertEqual(2, self.fetches("/post/"))

    def test_files_stay_fresh_for_as_long_as_the_web_server_says(self):
        said = [field(ask(self.encore.port, "/wp-content/a.css", WEB_HOST), "Cache-Status") for _ in range(3)][2]
        self.assertGreater(int(said.partition("; hit; ttl=")[2].partition(";")[0]), 3000)


class StaticSite(Case):
    def setUp(self):
        super().setUp()
        self.site = self.directory / "site"
        (self.site / "assets").mkdir(parents=True)
        (self.site / "page.html").write_text("<p>page</p>" * 1000)
        (self.site / "assets" / "app.1a2b3c.js").write_text("script" * 1000)
        self.servers = [Nginx(self, self.site, expires="off") for _ in range(2)]
        self.encore = Recipe(self, "static-site", [nginx.url("") for nginx in self.servers])

    def ask(self, path, **options):
        return ask(self.encore.port, path, **options)

    def asked(self):
        """How often the origin was asked, for bodies and for confirmations."""
        return self.encore.metrics()["encore_origin_requests_total"]

    def test_links_that_are_counted_and_reloads_are_one_page(self):
        for query in ("", "?utm_source=a", "?fbclid=b", "?utm_medium=c&gclid=d", "", "?utm_x=e"):
            answer = self.ask("/page.html" + query, fields=[("Cache-Control", "no-cache")])
            self.assertEqual(b"<p>page</p>" * 1000, answer.body)
        self.assertEqual(2, self.asked())

    def test_files_with_a_hash_are_fresh_for_a_month_and_pages_for_a_minute(self):
        for path, low, high in (("/assets/app.1a2b3c.js", 2_591_000, 2_592_000),
                                ("/page.html", 30, 60)):
            said = [field(self.ask(path), "Cache-Status") for _ in range(3)][2]
            ttl = int(said.partition("; hit; ttl=")[2].partition(";")[0])
            self.assertTrue(low <= ttl <= high, said)

    def test_twenty_readers_at_once_are_one_fetch(self):
        def read(number):
            self.assertEqual(200, self.ask("/page.html").status)
        self.ask("/page.html")
        before = self.asked()
        at_once(20, read)
        self.assertLessEqual(self.asked(), before + 1)

    def test_one_server_down_is_not_seen_and_both_down_leave_what_is_stored(self):
        for _ in range(2):
            self.ask("/page.html")
        self.servers[0].stop()
        for number in range(10):
            (self.site / f"{number}.html").write_text("new")
            self.assertEqual(b"new", self.ask(f"/{number}.html").body)
        self.servers[1].stop()
        self.assertEqual(200, self.ask("/page.html").status)


if __name__ == "__main__":
    unittest.main()
