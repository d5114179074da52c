"""A real WordPress (Debian's packages) with a MariaDB of its own in a test's directory: php-fpm runs it,
nginx stands before it, and a plugin of a few lines sends purges to a relay, as cache plugins do."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest
import urllib.parse

from harness import clean_environment, eventually, free_port, need_program
from web_app import Browser, PurgeRelay, fpm_name, modules, start_fpm

SOURCE = pathlib.Path("/usr/share/wordpress")
EXTENSIONS = ("dom", "simplexml", "xml", "xmlreader", "mbstring", "iconv", "ctype", "exif", "fileinfo",
              "mysqlnd", "mysqli", "gd", "tokenizer", "posix")
PHP_OPTIONS = [*modules(*EXTENSIONS), "-d", "display_errors=0"]
SECRET = "a-long-secret-1"
NAME = "blog.test"
EDITOR = "editor"

NGINX = """
worker_processes 1; daemon off; pid {dir}/nginx.pid; error_log {dir}/nginx-error.log warn; {user}
events {{ worker_connections 512; }}
http {{
  types {{ text/css css; text/javascript js; image/png png; image/svg+xml svg; }}
  log_format requests '$server_port $request_method $request_uri $status $whose';
  access_log {dir}/nginx-access.log requests;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/temp; fastcgi_temp_path {dir}/fcgi;
  uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi; client_max_body_size 4m;
  gzip on;
  server {{
    {listen}
    root {dir}/site;
    index index.php;
    location / {{ try_files $uri $uri/ /index.php?$args; }}
    location ~ \\.php$ {{
      try_files $uri =404;
      fastcgi_pass unix:{dir}/fpm.sock;
      fastcgi_read_timeout 120s;
      fastcgi_buffers 16 64k;
      fastcgi_buffer_size 64k;
      fastcgi_param SCRIPT_FILENAME {dir}/site$fastcgi_script_name;
      fastcgi_param SCRIPT_NAME $fastcgi_script_name;
      fastcgi_param DOCUMENT_ROOT {dir}/site;
      fastcgi_param QUERY_STRING $query_string;
      fastcgi_param REQUEST_METHOD $request_method;
      fastcgi_param CONTENT_TYPE $content_type;
      fastcgi_param CONTENT_LENGTH $content_length;
      fastcgi_param REQUEST_URI $request_uri;
      fastcgi_param SERVER_PROTOCOL $server_protocol;
      fastcgi_param REMOTE_ADDR $remote_addr;
      fastcgi_param SERVER_NAME {name};
      fastcgi_param SERVER_PORT 80;
      fastcgi_param HTTP_HOST {name};
    }}
  }}
  map $http_cookie $whose {{
    default -; ~wordpress_logged_in_ user; ~comment_author_ commenter; ~wp-postpass_ reader;
  }}
}}
"""

CONFIG = """<?php
define( 'DB_NAME', 'blog' );
define( 'DB_USER', 'root' );
define( 'DB_PASSWORD', '' );
define( 'DB_HOST', 'localhost:{dir}/db.sock' );
define( 'DB_CHARSET', 'utf8mb4' );
define( 'AUTH_KEY', 'test 1' ); define( 'SECURE_AUTH_KEY', 'test 2' ); define( 'LOGGED_IN_KEY', 'test 3' );
define( 'NONCE_KEY', 'test 4' ); define( 'AUTH_SALT', 'test 5' ); define( 'SECURE_AUTH_SALT', 'test 6' );
define( 'LOGGED_IN_SALT', 'test 7' ); define( 'NONCE_SALT', 'test 8' );
define( 'DISABLE_WP_CRON', true );
define( 'WP_HTTP_BLOCK_EXTERNAL', true );
define( 'WP_ACCESSIBLE_HOSTS', '127.0.0.1' );
define( 'AUTOMATIC_UPDATER_DISABLED', true );
define( 'CACHE_ADDRESS', '127.0.0.1:{relay}' );
$table_prefix = 'wp_';
if ( ! defined( 'ABSPATH' ) ) define( 'ABSPATH', __DIR__ . '/' );
require_once ABSPATH . 'wp-settings.php';
"""

# The purges of cache plugins: what shows a post that was changed, when the request that changed it ends. The
# purge of /purged/ID comes last: it tells that those of that post were answered.
PLUGIN = r"""<?php
class Purges {
  private static $urls = array(), $posts = array();
  public static function collect( $id ) {
    $post = get_post( $id );
    if ( ! $post || 'post' !== $post->post_type || 'publish' !== $post->post_status ) return;
    foreach ( array( get_permalink( $id ), home_url( '/' ), get_feed_link(),
        get_post_comments_feed_link( $id ),
        get_category_link( get_option( 'default_category' ) ) ) as $url ) {
      self::$urls[ $url ] = true;
    }
    self::$posts[ home_url( "/purged/$id" ) ] = true;
  }
  public static function send() {
    foreach ( array_keys( self::$urls + self::$posts ) as $url ) {
      wp_remote_request( 'http://' . CACHE_ADDRESS . wp_parse_url( $url, PHP_URL_PATH ), array(
          'method' => 'PURGE', 'timeout' => 60,
          'headers' => array(
              'Host' => wp_parse_url( $url, PHP_URL_HOST ), 'X-Purge-Method' => 'default' ) ) );
    }
  }
}
foreach ( array( 'save_post', 'edit_post', 'wp_trash_post', 'before_delete_post' ) as $event ) {
  add_action( $event, array( 'Purges', 'collect' ) );
}
add_action( 'shutdown', array( 'Purges', 'send' ) );
add_filter( 'wp_is_comment_flood', '__return_false', 99 );
function whoami() {
  header( 'Content-Type: text/plain' );
  die( 'USER ' . wp_get_current_user()->display_name );
}
add_action( 'wp_ajax_whoami', 'whoami' );
add_action( 'wp_ajax_nopriv_whoami', 'whoami' );
"""

INSTALL = r"""<?php
define( 'WP_INSTALLING', true );
$_SERVER['HTTP_HOST'] = $argv[1]; $_SERVER['REQUEST_URI'] = '/'; $_SERVER['SERVER_PROTOCOL'] = 'HTTP/1.1';
$_SERVER['REQUEST_METHOD'] = 'GET'; $_SERVER['REMOTE_ADDR'] = '127.0.0.1';
require __DIR__ . '/site/wp-load.php';
require ABSPATH . 'wp-admin/includes/upgrade.php';
function wp_new_blog_notification() {}
wp_install( 'Blog', $argv[3], 'editor@staff.test', true, '', $argv[2] );
foreach ( get_posts( array( 'post_type' => 'any', 'post_status' => 'any' ) ) as $post ) {
  wp_delete_post( $post->ID, true );
}
foreach ( array( 'siteurl' => 'http://' . $argv[1], 'home' => 'http://' . $argv[1], 'posts_per_page' => 40,
    'posts_per_rss' => 40, 'comment_moderation' => 1, 'comments_notify' => 0, 'moderation_notify' => 0,
    'thread_comments' => 0 ) as $option => $value ) update_option( $option, $value );
switch_theme( 'twentytwentythree' );
global $wp_rewrite;
$wp_rewrite->set_permalink_structure( '/%postname%/' );
$wp_rewrite->flush_rules( false );
for ( $i = 0; $i < (int) $argv[4]; $i++ ) {
  wp_insert_user( array( 'user_login' => "user$i", 'user_pass' => $argv[2],
      'user_email' => "user$i@mail.test", 'display_name' => "Person{$i}Q", 'role' => 'subscriber' ) );
}
echo 'installed';
"""


class Blog:
    """The application with `users` subscribers; `on_purge` as PurgeRelay's `answered`. It answers on each
    of `ports`, so that its log tells caches apart. `relay.targets` are the ports of the caches that are
    purged."""

    def __init__(self, case, on_purge, ports=1, users=0):
        themes = SOURCE / "wp-content/themes"
        if not (SOURCE / "wp-load.php").exists() or not (themes / "twentytwentythree").exists():
            raise unittest.SkipTest("wordpress is not installed")
        php, fpm, nginx = need_program("php", fpm_name(), "nginx")
        self.case, self.ports = case, [free_port() for _ in range(ports)]
        self.directory = case.directory / f"blog-{self.ports[0]}"
        # Debian's wp-config.php asks for files in /etc; a copy has one of its own.
        shutil.copytree(SOURCE, self.directory / "site", ignore=shutil.ignore_patterns(".htaccess"))
        self.relay = PurgeRelay(case, NAME, on_purge)
        (self.directory / "site/wp-config.php").write_text(
            CONFIG.format(dir=self.directory, relay=self.relay.port))
        plugins = self.directory / "site/wp-content/mu-plugins"
        plugins.mkdir()
        self.start_database()
        self.install(php, users)
        (plugins / "purges.php").write_text(PLUGIN)
        listen = " ".join(f"listen 127.0.0.1:{port} backlog=512;" for port in self.ports)
        (self.directory / "nginx.conf").write_text(NGINX.format(
            dir=self.directory, listen=listen, name=NAME,
            user="user root;" if os.getuid() == 0 else ""))
        start_fpm(case, fpm, self.directory, PHP_OPTIONS)
        case.start([nginx, "-p", self.directory, "-c", self.directory / "nginx.conf"],
                   self.ports[0])

    def start_database(self):
        make, server, client = need_program("mariadb-install-db", "mariadbd", "mariadb")
        data, sock = self.directory / "db", self.directory / "db.sock"
        as_user = ["--user=root"] if os.getuid() == 0 else []
        self.case.run_client([make, "--no-defaults", f"--datadir={data}", "--skip-test-db",
                              "--auth-root-authentication-method=normal", *as_user])
        self.case.start([server, "--no-defaults", f"--datadir={data}", f"--socket={sock}",
                         "--skip-networking", f"--pid-file={self.directory}/db.pid",
                         "--innodb-flush-log-at-trx-commit=2", "--innodb-buffer-pool-size=64M", *as_user])
        connect = [client, "--no-defaults", f"--socket={sock}", "--user=root"]
        eventually(lambda: subprocess.run([*connect, "-e", "CREATE DATABASE IF NOT EXISTS blog"],
                                          stderr=subprocess.DEVNULL).returncode == 0, "MariaDB answers")

    def install(self, php, users):
        script = self.directory / "install.php"
        script.write_text(INSTALL)
        made = subprocess.run([php, "-n", *PHP_OPTIONS, script, NAME, SECRET, EDITOR, str(users)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              env=clean_environment(), timeout=300)
        if made.returncode or not made.stdout.endswith("installed"):
            self.case.fail(f"the blog was not installed: {made.stdout}{made.stderr}")

    def requests(self):
        """Requests that have reached nginx so far: (port, method, path, status, whose), all texts; whose is
        what a cookie says, `-` of a reader without one of WordPress'."""
        log = self.directory / "nginx-access.log"
        return [tuple(line.split(" ")) for line in log.read_text().splitlines()]


class Visitor(Browser):
    """A browser of the blog. Not thread-safe."""

    def __init__(self, port, cookies=None):
        super().__init__(port, NAME, cookies)
        self.nonce = None

    def send_form(self, path, form):
        return self.ask(path, "POST", urllib.parse.urlencode(form).encode(),
                        {"Content-Type": "application/x-www-form-urlencoded"})

    def log_in(self, user, secret=SECRET):
        self.ask("/wp-login.php")
        status, _, data = self.send_form("/wp-login.php", {
            "log": user, "pwd": secret, "testcookie": "1", "redirect_to": f"http://{NAME}/wp-admin/"})
        if status != 302 or not any(name.startswith("wordpress_logged_in_") for name in self.cookies):
            raise AssertionError(f"no login of {user}: {status} {data[:2000]!r}")

    def log_out(self, page):
        """By the link that a page of the user has."""
        found = re.search(rb'href="http://[^/"]*(/wp-login\.php\?action=logout[^"]*)"', page)
        if found is None:
            raise AssertionError(f"no link to log out by: {page[:300]!r}")
        path = found.group(1).decode().replace("&#038;", "&").replace("&amp;", "&")
        status, _, _ = self.ask(path)
        if status != 302 or any(name.startswith("wordpress_logged_in_") for name in self.cookies):
            raise AssertionError(f"no logout: {status} {self.cookies}")

    def api(self, method, path, form=None):
        """Returns the response of wp-json to the user, and keeps its new nonce."""
        if self.nonce is None:
            self.nonce = self.ask("/wp-admin/admin-ajax.php?action=rest-nonce")[2].decode()
        headers = {"X-WP-Nonce": self.nonce, "Content-Type": "application/x-www-form-urlencoded"}
        body = urllib.parse.urlencode(form).encode() if form else None
        status, _, data = self.ask(f"/wp-json/wp/v2/{path}", method, body, headers)
        if status not in (200, 201) or not data.startswith((b"{", b"[")):
            raise AssertionError(f"{method} {path}: {status} {data[:300]!r}")
        return json.loads(data)
