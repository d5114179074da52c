"""The servers that `tls` measures, each with a certificate of P-256 or RSA-2048 made for the run."""

import os
import shutil
import subprocess

from peers import OPEN_FILES, Fleet, Server, free_port, missing_server

NGINX = """
worker_processes 1; daemon off; pid {dir}/nginx.pid; error_log {dir}/nginx.error crit;
worker_rlimit_nofile {files};
events {{ worker_connections 16384; }}
http {{
  access_log off; tcp_nodelay on;
  keepalive_timeout 300s; keepalive_requests 1000000000;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/temp; fastcgi_temp_path {dir}/fcgi;
  uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  proxy_cache_path {dir}/cache keys_zone=c:16m max_size=1g inactive=1d use_temp_path=off;
  ssl_protocols TLSv1.2 TLSv1.3; ssl_ecdh_curve X25519:prime256v1; ssl_session_cache off;
  ssl_prefer_server_ciphers on;
  server {{
    listen 127.0.0.1:{port} ssl backlog=16384;
    ssl_certificate {certificate}; ssl_certificate_key {key};
    location / {{
      proxy_pass http://127.0.0.1:{origin}; proxy_cache c; proxy_cache_key $request_uri;
    }}
  }}
}}
"""

HAPROXY = """
global
  nbthread 1
  maxconn 8000
  tune.ssl.cachesize 0
defaults
  mode http
  timeout connect 5s
  timeout client 300s
  timeout server 300s
cache c
  total-max-size 256
  max-object-size 8388608
  max-age 86400
frontend f
  bind 127.0.0.1:{port} backlog 16384 ssl crt {both} ssl-min-ver TLSv1.2 curves X25519:P-256
  http-request cache-use c
  http-response cache-store c
  default_backend b
backend b
  server s 127.0.0.1:{origin}
"""

H2O = """
num-threads: 1
max-connections: 8000
{user}
error-log: {dir}/h2o.error
http1-request-timeout: 300
listen:
  host: 127.0.0.1
  port: {port}
  ssl:
    certificate-file: {certificate}
    key-file: {key}
    minimum-version: TLSv1.2
hosts:
  default:
    paths:
      /:
        file.dir: {dir}/files
"""

ENCORE = """
[[listen]]
address = "127.0.0.1:{port}"
mode = "reverse"
tls = [{{certificate = "{certificate}", key = "{key}"}}]
[[origin]]
servers = ["http://127.0.0.1:{origin}"]
[workers]
count = 1
[limits]
connections_per_client = 20000
[admin]
address = "127.0.0.1:{admin}"
[log]
level = "warn"
"""

KEYS = {"ec": ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"], "rsa": ["rsa:2048"]}


class TlsFleet(Fleet):
    """`get` takes NAME:KEY:BYTES; BYTES are those of the body that is asked for."""

    def __init__(self, programs, directory):
        super().__init__(programs, directory)
        self.certificates = {}

    def get(self, name):
        server = super().get(name)
        if name != "origin":
            server.scheme = "https"
        return server

    def _certificate(self, name):
        """Returns the files for the server's kind of key: (certificate, key, both in one file)."""
        kind = name.split(":")[1]
        if kind not in self.certificates:
            paths = [self.directory / f"{kind}.{part}" for part in ("crt", "key", "pem")]
            subprocess.run(["openssl", "req", "-x509", "-newkey", *KEYS[kind], "-nodes", "-days",
                            "30", "-subj", "/CN=localhost", "-addext",
                            "subjectAltName=DNS:localhost,IP:127.0.0.1", "-out", paths[0],
                            "-keyout", paths[1]], check=True, stderr=subprocess.DEVNULL)
            paths[2].write_bytes(paths[0].read_bytes() + paths[1].read_bytes())
            self.directory.chmod(0o755)
            self.certificates[kind] = paths
        return self.certificates[kind]

    def _start_configured(self, name, program, template, arguments):
        path = shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin")
        if not path:
            return missing_server(name, "missing")
        folder, port = self._folder(name), free_port()
        folder.chmod(0o755)
        certificate, key, both = self._certificate(name)
        config = folder / "config"
        config.write_text(template.format(dir=folder, port=port, origin=self.origin.port,
                                          files=OPEN_FILES, admin=free_port(),
                                          user="user: root" if os.getuid() == 0 else "",
                                          certificate=certificate, key=key, both=both))
        return Server(name, [path, *arguments(folder, config)], port, log=folder / "output")

    def _start_floor(self, name):
        certificate, key, _ = self._certificate(name)
        return self._load_program(name, "tls_floor",
                                  [f"--bytes={name.rpartition(':')[2]}", certificate, key])

    def _start_nginx(self, name):
        user = ["-g", "user root;"] if os.getuid() == 0 else []
        return self._start_configured(name, "nginx", NGINX,
                                      lambda folder, config: ["-p", folder, "-c", config, *user])

    def _start_haproxy(self, name):
        return self._start_configured(name, "haproxy", HAPROXY, lambda _, config: ["-f", config])

    def _start_encore(self, name):
        return self._start_configured(name, str(self.programs / "encore"), ENCORE,
                                      lambda _, config: ["--config", config])

    def _start_h2o(self, name):
        server = self._start_configured(name, "h2o", H2O, lambda _, config: ["-c", config])
        size = int(name.rpartition(":")[2])
        file = self.directory / name.replace(":", "-") / "files/s" / str(size) / "hit"
        if not server.missing:
            file.parent.mkdir(parents=True)
            file.write_bytes(b"a" * size)
        return server
