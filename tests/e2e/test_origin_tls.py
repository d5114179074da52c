"""The data that an origin receives about its name and about us: Host, the name in TLS, our
certificate; real nginx."""

import socket
import ssl
import threading

from harness import CertificateAuthority, free_port
from nginx import Nginx
from origin import Origin, fresh
from test_connections import ConnectionCase, ask
from tls import Authority

TLS = """
  listen 127.0.0.1:{tls} ssl; ssl_certificate {certificate}; ssl_certificate_key {key};
  ssl_client_certificate {ca}; ssl_verify_client {verify};
  location / {{ return 200 "$ssl_client_verify $ssl_server_name $http_host"; }}
"""


class Told(ConnectionCase):
    def setUp(self):
        super().setUp()
        self.authority = CertificateAuthority(self)
        self.certificate, self.key = self.authority.issue("origin.test")
        self.ours, self.our_key = self.authority.issue("encore.test")

    def nginx(self, verify):
        self.tls = free_port()
        Nginx(self, self.directory, extra=TLS.format(
            tls=self.tls, certificate=self.certificate, key=self.key,
            ca=self.authority.certificate, verify=verify))
        return f"https://127.0.0.1:{self.tls}"

    def reached(self, upstream=None, **origin):
        encore = self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
            upstream=upstream or {},
            origin=[{"servers": [self.nginx("on")], "tls_server_name": "origin.test",
                     "tls_ca_file": str(self.authority.certificate), **origin}])
        return ask(encore.port)

    def ours_as(self):
        return {"tls_certificate": str(self.ours), "tls_key": str(self.our_key)}

    def test_an_origin_that_wants_a_certificate_gets_ours(self):
        answer = self.reached(**self.ours_as())
        self.assertEqual((200, b"SUCCESS origin.test site.example"), (answer.status, answer.body))
        answer = self.reached(upstream=self.ours_as())
        self.assertEqual((200, b"SUCCESS origin.test site.example"), (answer.status, answer.body))
        self.assertEqual(400, self.reached().status)

    def test_another_host_is_said_where_that_is_configured(self):
        answer = self.reached(host_header_value="inner.example:81", **self.ours_as())
        self.assertEqual(b"SUCCESS origin.test inner.example:81", answer.body)

    def test_of_a_server_without_tls_the_warning_says_so(self):
        plain = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(plain.close)

        def answer():
            with plain.accept()[0] as connection:
                connection.recv(65536)
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        threading.Thread(target=answer, daemon=True).start()
        encore = self.encore(
            listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
            origin=[{"servers": [f"https://127.0.0.1:{plain.getsockname()[1]}"]}])
        self.assertEqual(502, ask(encore.port).status)
        self.assertIn("the server sends no TLS; is its URL http?", encore.output())

    def test_a_common_name_is_no_name_of_a_server(self):
        # RFC 9110 4.3.4: only the names of subjectAltName count.
        authority = Authority(self)
        for names, status in (((), 502), (("www.example",), 200)):
            pair = authority.pair(*names, subject="www.example")
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(pair["certificate"], pair["key"])
            origin = Origin(self, default=fresh(b"named", 60), tls=context)
            encore = self.encore(
                listen=[{"address": f"127.0.0.1:{free_port()}", "mode": "reverse"}],
                origin=[{"servers": [origin.url("").replace("http:", "https:")],
                         "tls_server_name": "www.example",
                         "tls_ca_file": str(authority.certificate)}])
            self.assertEqual(status, ask(encore.port).status, names)
            encore.stop()

    def test_a_certificate_without_its_key_is_a_fault_of_the_config(self):
        encore = self.encore(start=False, origin=[{"servers": ["https://127.0.0.1:1"],
                                                   "tls_certificate": str(self.ours)}])
        encore.write_config()
        ended = self.run_client([encore.program, "--config", encore.config_path, "--check-config"],
                                check=False)
        self.assertNotEqual(0, ended.returncode)
        self.assertIn(b"origin.0.tls_certificate: without origin.0.tls_key", ended.stdout)
        encore.sections["origin"][0]["tls_key"] = str(self.key)  # another one's
        encore.write_config()
        ended = self.run_client([encore.program, "--config", encore.config_path, "--check-config"],
                                check=False)
        self.assertNotEqual(0, ended.returncode)
        self.assertIn(b"key", ended.stdout)
