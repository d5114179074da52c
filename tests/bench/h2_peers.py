"""The servers that `h2` measures: HTTP/2 over plain connections with prior knowledge ("http") and over TLS by
ALPN ("https"), and HTTP/1.1 over plain connections ("http1")."""

from tls_peers import ENCORE, H2O, HAPROXY, NGINX, TlsFleet


def changed(template, *texts):
    """The template with the first text of each pair of `texts` replaced by the second."""
    for old, new in zip(texts[::2], texts[1::2]):
        if old not in template:
            raise ValueError(f"no {old!r} in a template")
        template = template.replace(old, new)
    return template


NGINX_PLAIN = changed(
    NGINX, " ssl backlog", " backlog",
    "    ssl_certificate {certificate}; ssl_certificate_key {key};\n", "")
HAPROXY_PLAIN = changed(HAPROXY, " ssl crt {both} ssl-min-ver TLSv1.2 curves X25519:P-256", "")
H2O_PLAIN = changed(H2O, """  ssl:
    certificate-file: {certificate}
    key-file: {key}
    minimum-version: TLSv1.2
""", "")
ENCORE_PLAIN = changed(ENCORE, 'tls = [{{certificate = "{certificate}", key = "{key}"}}]\n', "")
TEMPLATES = {
    "nginx": {
        "https": changed(NGINX, " ssl backlog", " ssl http2 backlog"),
        "http": changed(NGINX_PLAIN, " backlog", " http2 backlog"),
        "http1": NGINX_PLAIN},
    "haproxy": {
        "https": changed(HAPROXY, "X25519:P-256", "X25519:P-256 alpn h2,http/1.1"),
        "http": changed(HAPROXY_PLAIN, " backlog 16384", " backlog 16384 proto h2"),
        "http1": HAPROXY_PLAIN},
    "h2o": {"https": H2O, "http": H2O_PLAIN},
    "encore": {"https": ENCORE, "http": ENCORE_PLAIN, "http1": ENCORE_PLAIN},
}


class H2Fleet(TlsFleet):
    """`get` takes NAME:SCHEME:BYTES; BYTES are those of the response body."""

    def get(self, name):
        server = super().get(name)
        if name != "origin":
            server.scheme = name.split(":")[1].removesuffix("1")
        return server

    def _certificate(self, name):
        return super()._certificate("any:ec")

    def _start_configured(self, name, program, template, arguments):
        kind, scheme, _ = name.split(":")
        return super()._start_configured(name, program, TEMPLATES[kind][scheme], arguments)

    def _start_floor(self, name):
        _, scheme, size = name.split(":")
        certificate, key, _ = self._certificate(name)
        return self._load_program(name, "h2_floor",
                                  [f"--bytes={size}", *([certificate, key] if scheme == "https" else [])])
