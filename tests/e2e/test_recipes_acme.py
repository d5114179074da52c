"""recipes/acme.toml with lego and dehydrated, against pebble, the test server of Let's Encrypt: encore
answers the challenges, and serves the certificate, and the next one, without a reload."""

import json
import os
import ssl
import unittest
import urllib.request

from harness import Case, CertificateAuthority, clean_environment, eventually, free_port, need_program
from name_server import NameServer
from origin import Origin, fresh
from recipes import RECIPES, Recipe, shipped
from tls import SecureClient, ask_on

HOST = "www.example.com"


class Pebble:
    """An ACME authority that validates at `port` of 127.0.0.1, whatever the name is."""

    def __init__(self, case, port):
        program = need_program("pebble")
        home = case.directory / "pebble"
        home.mkdir()
        names = NameServer(case)
        names.answers[HOST] = [["127.0.0.1"]]
        self.own = CertificateAuthority(case)
        certificate, key = self.own.issue("localhost")
        self.port, self.management_port = free_port(), free_port()
        config = home / "pebble.json"
        config.write_text(json.dumps({"pebble": {
            "listenAddress": f"127.0.0.1:{self.port}",
            "managementListenAddress": f"127.0.0.1:{self.management_port}",
            "certificate": str(certificate), "privateKey": str(key),
            "httpPort": port, "tlsPort": free_port(), "ocspResponderURL": ""}}))
        case.start([program, "-config", config, "-dnsserver", names.address], self.management_port,
                   env=clean_environment(PEBBLE_VA_NOSLEEP=1, PEBBLE_WFE_NONCEREJECT=0,
                                         PEBBLE_AUTHZREUSE=0))
        self.directory_url = f"https://localhost:{self.port}/dir"

    def root(self):
        """The certificate that signs, made at its start."""
        context = ssl.create_default_context(cafile=str(self.own.certificate))
        url = f"https://localhost:{self.management_port}/roots/0"
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}),
                                             urllib.request.HTTPSHandler(context=context))
        with opener.open(url, timeout=60) as answer:
            return answer.read().decode()


class Acme(Case):
    def setUp(self):
        super().setUp()
        self.home = self.directory / "home"
        self.home.mkdir()

    def serve(self):
        """encore as the recipe has it, before any ACME client has run."""
        self.origin = Origin(self, default=fresh(b"page"))
        self.plain_port, self.port = free_port(), free_port()
        self.pebble = Pebble(self, self.plain_port)
        self.encore = Recipe(self, "acme", [self.origin.url("")], port=self.plain_port, **{
            "listen.1.address": f"127.0.0.1:{self.port}",
            "listen.1.tls": f'[{{certificate = "{self.home}/www.crt", key = "{self.home}/www.key", '
                            'missing = "self-signed"}]',
            "listen.1.tls_check_interval": "100ms",
            "acme.challenge_directory": self.home / "acme/.well-known/acme-challenge"})
        self.context = ssl.create_default_context(cadata=self.pebble.root())

    def client_script(self, name, *replaced):
        """The shipped script, for this home and this authority."""
        text = shipped(name, ("/var/lib/encore", str(self.home)), *replaced)
        script = self.directory / name
        script.write_text(text)
        script.chmod(0o755)
        return script

    def serial(self):
        """That of the certificate by which the page comes; None: the authority has not signed it."""
        try:
            client = SecureClient(self.port, self.context, HOST)
        except ssl.SSLCertVerificationError:
            return None
        with client:
            self.assertEqual(b"page", ask_on(client, "/page", HOST).body)
            return client.sock.getpeercert()["serialNumber"]

    def gets_and_renews(self, script, environment):
        self.assertIn("self-signed one for www.example.com", self.encore.output())
        self.assertIsNone(self.serial())

        def run():
            self.run_client([script], env=clean_environment(HOME=self.home, **environment))
            self.assertTrue((self.home / "www.crt").exists())

        run()
        first = eventually(self.serial, "it is taken")
        run()
        eventually(lambda: self.serial() not in (first, None), "the renewed one is taken")
        self.assertEqual(0, self.encore.metrics()["encore_reloads_total"])
        self.assertGreaterEqual(self.encore.outcomes()["challenge"], 2)
        # Nobody but encore's user reads the key.
        self.assertEqual(0o600, os.stat(self.home / "www.key").st_mode & 0o777)

    def test_lego(self):
        need_program("lego")
        self.serve()
        script = self.client_script(
            "acme-lego.sh", ("--accept-tos", f"--accept-tos --server {self.pebble.directory_url}"),
            # A certificate of pebble is good for five years; each run is to renew it.
            ("--days 30", "--days 36500 --no-random-sleep"))
        self.gets_and_renews(script, {"LEGO_CA_CERTIFICATES": self.pebble.own.certificate})

    def test_dehydrated(self):
        need_program("dehydrated", "curl", "openssl")
        self.serve()
        script = self.client_script(
            "acme-dehydrated.sh",
            ("RENEW_DAYS=30", f"RENEW_DAYS=36500\nCA={self.pebble.directory_url}\n"
                              f'CURL_OPTS="--cacert {self.pebble.own.certificate}"'))
        self.gets_and_renews(script, {})


class Written(Case):
    def test_the_scripts_are_sound(self):
        shellcheck = need_program("shellcheck")
        self.run_client([shellcheck, *sorted(RECIPES.glob("*.sh"))])


if __name__ == "__main__":
    unittest.main()
