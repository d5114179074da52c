"""A real nginx that serves a directory of the test, and what it has logged."""

import os
import pathlib

from harness import free_port, need_program

CONFIG = """
worker_processes 1; daemon off; {main} pid {dir}/nginx.pid; error_log {dir}/error.log warn; {user}
events {{ worker_connections 256; }}
http {{
  types {{ text/html html; text/plain txt; application/octet-stream deb pack; }}
  log_format requests '$request_method $uri $status';
  access_log {dir}/access.log requests;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/temp; fastcgi_temp_path {dir}/fcgi;
  uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  server {{ listen 127.0.0.1:{port}; root {root}; expires {expires}; {extra} }}
}}
"""


class Nginx:
    """Serves `root` on a free port; every answer is fresh for `expires`. `extra` goes into its
    server's section, `main` before all sections."""

    def __init__(self, case, root, expires="1h", extra="", main=""):
        self.program = need_program("nginx")
        self.case, self.port = case, free_port()
        self.directory = case.directory / f"nginx-{self.port}"
        self.directory.mkdir()
        root = pathlib.Path(root)
        user = "user root;" if os.getuid() == 0 else ""
        (self.directory / "nginx.conf").write_text(CONFIG.format(
            dir=self.directory, port=self.port, root=root, expires=expires, extra=extra, main=main,
            user=user))
        self.start()

    def start(self):
        self.process = self.case.start(
            [self.program, "-p", self.directory, "-c", self.directory / "nginx.conf"], self.port)

    def stop(self):
        self.process.terminate()
        self.process.wait(20)

    def url(self, path="/"):
        return f"http://127.0.0.1:{self.port}{path}"

    def requests(self):
        """Lines "METHOD PATH STATUS" so far."""
        log = self.directory / "access.log"
        return log.read_text().splitlines() if log.exists() else []

    def count(self, method, path):
        """Requests that this server answered with a whole body."""
        return self.requests().count(f"{method} {path} 200")
