"""A real MediaWiki (Debian's packages) with its database in a test's directory: php-fpm runs it, nginx
stands before it, and it sends purges to a relay of ours, which tells when each was answered."""

import json
import os
import pathlib
import re
import subprocess
import unittest
import urllib.parse

from harness import clean_environment, free_port, need_program
from web_app import Browser, PurgeRelay, fpm_name, modules, start_fpm

SOURCE = pathlib.Path("/usr/share/mediawiki")
EXTENSIONS = ("dom", "xml", "mbstring", "intl", "iconv", "ctype", "fileinfo", "pdo", "pdo_sqlite", "gd",
              "calendar", "xmlreader", "tokenizer")
SECRET = "a-long-secret-1"
NAME = "wiki.test"

NGINX = """
worker_processes 1; daemon off; pid {dir}/nginx.pid; error_log {dir}/nginx-error.log warn; {user}
events {{ worker_connections 512; }}
http {{
  types {{ text/css css; text/javascript js; image/png png; image/svg+xml svg; }}
  log_format requests '$server_port $request_method $request_uri $status $logged_in';
  access_log {dir}/nginx-access.log requests;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/temp; fastcgi_temp_path {dir}/fcgi;
  uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi; client_max_body_size 4m;
  server {{
    {listen}
    location /images/ {{ alias {dir}/images/; expires 1h; }}
    location ~ ^/(resources|skins|extensions)/ {{ root {source}; expires 1h; }}
    location / {{
      fastcgi_pass unix:{dir}/fpm.sock;
      fastcgi_read_timeout 120s;
      fastcgi_param SCRIPT_FILENAME {source}/$script;
      fastcgi_param SCRIPT_NAME /$script;
      fastcgi_param MW_CONFIG_FILE {dir}/conf/LocalSettings.php;
      fastcgi_param QUERY_STRING $query_string;
      fastcgi_param REQUEST_METHOD $request_method;
      fastcgi_param CONTENT_TYPE $content_type;
      fastcgi_param CONTENT_LENGTH $content_length;
      fastcgi_param REQUEST_URI $request_uri;
      fastcgi_param SERVER_PROTOCOL $server_protocol;
      fastcgi_param REMOTE_ADDR $remote_addr;
      fastcgi_param SERVER_NAME {name};
      fastcgi_param HTTP_HOST {name};
    }}
  }}
  map $http_cookie $logged_in {{ default -; ~wiki_session= user; ~wikiUserID= user; }}
  map $uri $script {{ default index.php; /api.php api.php; /load.php load.php; }}
}}
"""

SETTINGS = """
$wgArticlePath = "/wiki/$1";
$wgUseCdn = true;
$wgCdnServers = [ "127.0.0.1:{relay}" ];
$wgCdnServersNoPurge = [ "127.0.0.1" ];
$wgInternalServer = "http://{name}";
$wgEnableUploads = true;
$wgUploadDirectory = "{dir}/images";
$wgUploadPath = "/images";
$wgTmpDirectory = "{dir}/tmp";
$wgCookiePrefix = "wiki";
$wgMainCacheType = CACHE_DB;
$wgRateLimits = [];
$wgPasswordAttemptThrottle = false;
$wgGroupPermissions["*"]["edit"] = true;
$wgJobRunRate = 0;
"""


class Wiki:
    """The application; `on_purge` as PurgeRelay's `answered`. It answers on each of `ports`, so that
    its log tells caches apart. `relay.targets` are the ports of the caches that are purged."""

    def __init__(self, case, on_purge, ports=1):
        if not (SOURCE / "maintenance/install.php").exists():
            raise unittest.SkipTest("mediawiki is not installed")
        php, fpm, nginx = need_program("php", fpm_name(), "nginx")
        self.case, self.ports = case, [free_port() for _ in range(ports)]
        self.directory = case.directory / f"wiki-{self.ports[0]}"
        for folder in ("db", "conf", "images", "tmp"):
            (self.directory / folder).mkdir(parents=True)
        self.relay = PurgeRelay(case, NAME, on_purge)
        self.install(php)
        user = "user root;" if os.getuid() == 0 else ""
        listen = " ".join(f"listen 127.0.0.1:{port} backlog=512;" for port in self.ports)
        (self.directory / "nginx.conf").write_text(NGINX.format(
            dir=self.directory, source=SOURCE, listen=listen, name=NAME, user=user))
        start_fpm(case, fpm, self.directory, modules(*EXTENSIONS))
        case.start([nginx, "-p", self.directory, "-c", self.directory / "nginx.conf"],
                   self.ports[0])

    def install(self, php):
        made = subprocess.run(
            [php, SOURCE / "maintenance/install.php", "--dbtype", "sqlite",
             "--dbpath", self.directory / "db", "--dbname", "wiki",
             "--confpath", self.directory / "conf", "--scriptpath", "",
             "--server", f"http://{NAME}", "--pass", SECRET, "Wiki", "Admin"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, env=clean_environment(),
            timeout=300)
        if made.returncode:
            self.case.fail(f"the wiki was not installed: {made.stdout}{made.stderr}")
        with open(self.directory / "conf/LocalSettings.php", "a", encoding="utf-8") as settings:
            settings.write(SETTINGS.format(dir=self.directory, relay=self.relay.port, name=NAME))

    def requests(self):
        """Requests that have reached nginx so far: (port, method, path, status, whose), all texts; whose is
        `user` where a cookie says so, else `-`."""
        log = self.directory / "nginx-access.log"
        return [tuple(line.split(" ")) for line in log.read_text().splitlines()]


class Visitor(Browser):
    """A browser of the wiki's pages and of its API."""

    def __init__(self, port, cookies=None):
        super().__init__(port, NAME, cookies)

    def api(self, parameters, files=None):
        parameters = {**parameters, "format": "json", "formatversion": "2"}
        if files:
            body, kind = multipart(parameters, files)
        else:
            body = urllib.parse.urlencode(parameters).encode()
            kind = "application/x-www-form-urlencoded"
        status, _, data = self.ask("/api.php", "POST", body, {"Content-Type": kind})
        if status != 200:
            raise AssertionError(f"api.php: {status} {data[:300]!r}")
        return json.loads(data)

    def token(self, kind="csrf"):
        return self.api({"action": "query", "meta": "tokens", "type": kind})["query"]["tokens"][
            f"{kind}token"]

    def log_in(self, user, secret=SECRET):
        answer = self.api({"action": "clientlogin", "username": user, "password": secret,
                           "loginreturnurl": f"http://{NAME}/", "logintoken": self.token("login")})
        if answer.get("clientlogin", {}).get("status") != "PASS":
            raise AssertionError(f"no login: {answer}")

    def log_out(self):
        self.api({"action": "logout", "token": self.token()})

    def edit(self, title, text):
        answer = self.api({"action": "edit", "title": title, "text": text, "token": self.token()})
        if answer.get("edit", {}).get("result") != "Success":
            raise AssertionError(f"no edit of {title}: {answer}")

    def upload(self, name, data):
        answer = self.api({"action": "upload", "filename": name, "ignorewarnings": "1",
                           "token": self.token()}, {"file": (name, data)})
        if answer.get("upload", {}).get("result") != "Success":
            raise AssertionError(f"no upload of {name}: {answer}")

    def create_account(self, user, secret=SECRET):
        answer = self.api({"action": "createaccount", "username": user, "password": secret,
                           "retype": secret, "createreturnurl": f"http://{NAME}/",
                           "createtoken": self.token("createaccount")})
        if answer.get("createaccount", {}).get("status") != "PASS":
            raise AssertionError(f"no account: {answer}")


def multipart(parameters, files):
    boundary = "encore-wiki-boundary"
    parts = []
    for name, value in parameters.items():
        parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
                     f"{value}\r\n".encode())
    for name, (filename, data) in files.items():
        parts.append(f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; '
                     f'filename="{filename}"\r\nContent-Type: application/octet-stream\r\n\r\n'
                     .encode() + data + b"\r\n")
    parts.append(f"--{boundary}--\r\n".encode())
    return b"".join(parts), f"multipart/form-data; boundary={boundary}"


def user_of(page):
    """The user that the page was made for, as its own scripts say; None: nobody is logged in."""
    found = re.search(rb'"wgUserName":\s*(null|"([^"]*)")', page)
    if found is None:
        raise AssertionError(f"a page without a user: {page[:300]!r}")
    return found.group(2).decode() if found.group(2) else None
