"""Certificates whose files change or come late: taken without a reload, as soon as the pair is good."""

import contextlib
import os
import shutil
import signal
import ssl

from harness import eventually
from tls import TlsCase, ask_on


class RenewalCase(TlsCase):
    """The proxy's pairs are `live` and `second`, into whose files others are moved."""

    def setUp(self):
        super().setUp()
        self.live, self.second = ({"certificate": str(self.directory / f"{name}.pem"),
                                   "key": str(self.directory / f"{name}.key")}
                                  for name in ("live", "second"))
        self.put(self.authority.pair("second.example"), to=self.second)

    def put(self, pair, *kinds, to=None):
        """Replaces these files, each as an ACME client does it."""
        for kind in kinds or ("certificate", "key"):
            new = self.directory / "new"
            shutil.copyfile(pair[kind], new)
            new.chmod(0o600)
            os.replace(new, (to or self.live)[kind])

    def serve_live(self, missing=None, **options):
        live = {**self.live, "missing": missing} if missing else self.live
        options["listen"] = {"tls_check_interval": "100ms", **options.get("listen", {})}
        # With one worker all connections get a new certificate from the same moment on.
        options.setdefault("workers", {"count": 1})
        return self.serve([live, self.second], **options)

    def reload(self):
        done = self.counter("reloads_total") + self.counter("reload_failures_total")
        self.proxy.signal(signal.SIGHUP)
        eventually(lambda: self.counter("reloads_total") + self.counter("reload_failures_total")
                   > done, "the reload has been tried")

    def shown(self, name="www.example", context=None):
        with self.client(name, context) as client:
            return client.shown()

    def flag(self, name):
        """The value of encore_tls_certificate_NAME of the live certificate."""
        found = [value for key, value in self.proxy.metrics().items()
                 if key.startswith(f"encore_tls_certificate_{name}{{")
                 and f'file="{self.live["certificate"]}"' in key]
        self.assertEqual(1, len(found))
        return found[0]

    def said(self, text):
        return self.proxy.output_path.read_text().count(text)

    def check_files(self, times=3):
        """Waits until the proxy has checked the files so many times from now on: it takes another
        second pair each time."""
        for _ in range(times):
            before = self.said("second.example is renewed")
            self.put(self.authority.pair("second.example"), to=self.second)
            eventually(lambda: self.said("second.example is renewed") > before
                       and self.shown("second.example"), "the files are checked")


class Renewal(RenewalCase):
    def test_a_renewed_pair_is_taken_without_a_reload(self):
        self.put(self.pair)
        self.serve_live()
        with self.client() as before:
            self.assertEqual(["www.example"], before.shown())
            self.assertEqual(b"page", ask_on(before, "/page").body)
            self.put(self.authority.pair("www.example", "new.example", days=60))
            eventually(lambda: "new.example" in self.shown(), "the new pair is in use")
            self.assertEqual(b"page", ask_on(before, "/page").body)
        self.assertGreater(self.flag("expiry_seconds"), 59 * 86400)
        self.assertEqual(0, self.flag("refused"))
        self.assertEqual(1, self.said("for www.example new.example is renewed"))
        self.assertEqual(0, self.counter("reloads_total"))

    def test_a_ticket_outlives_a_renewal_of_the_same_names(self):
        self.put(self.pair)
        self.serve_live(listen={"tls_client_verify": "request",
                                "tls_client_ca": str(self.authority.certificate)})
        context = self.authority.trusting()
        with self.client(context=context) as client:
            ask_on(client, "/page")
            session = client.sock.session
        self.put(self.authority.pair("www.example", days=60))
        eventually(lambda: self.flag("expiry_seconds") > 59 * 86400, "the new pair is in use")
        with self.client(context=context, session=session) as client:
            ask_on(client, "/page")
            self.assertTrue(client.sock.session_reused)

    def test_client_certificates_are_checked_as_before(self):
        self.put(self.pair)
        ours = self.authority.pair("client")
        self.serve_live(listen={"tls_client_verify": "require",
                                "tls_client_ca": str(self.authority.certificate)})
        with_ours = self.authority.trusting()
        with_ours.load_cert_chain(ours["certificate"], ours["key"])
        self.put(self.authority.pair("www.example", "new.example"))
        eventually(lambda: "new.example" in self.shown(context=with_ours), "it is in use")
        self.assertEqual(b"page", self.ask("/page", context=with_ours).body)
        with self.assertRaises((ssl.SSLError, OSError)), self.client() as client:
            ask_on(client, "/page")

    def test_half_a_pair_waits_and_its_fault_is_told_once(self):
        self.put(self.pair)
        self.serve_live()
        new = self.authority.pair("www.example", "new.example")
        self.put(new, "certificate")
        eventually(lambda: self.flag("refused") == 1, "half a pair is refused")
        self.check_files()
        self.assertEqual(["www.example"], self.shown())
        # The second pair may have been seen half replaced, too.
        self.assertEqual(1, self.said(
            f'does not match the certificate "{self.live["certificate"]}"'))
        self.put(new, "key")
        eventually(lambda: "new.example" in self.shown(), "the whole pair is in use")
        self.assertEqual(0, self.flag("refused"))

    def test_a_broken_file_changes_nothing_until_a_good_one_is_back(self):
        self.put(self.pair)
        self.serve_live()
        broken = self.directory / "broken"
        broken.write_text("no certificate")
        self.put({"certificate": broken}, "certificate")
        eventually(lambda: self.flag("refused") == 1, "it is refused")
        self.check_files()
        self.assertEqual(["www.example"], self.shown())
        self.assertEqual(1, self.said(f'{self.live["certificate"]}": contains no certificate'))
        os.unlink(self.live["certificate"])
        eventually(lambda: self.said(f'{self.live["certificate"]}": cannot be read') == 1,
                   "another fault is told")
        self.assertEqual(["www.example"], self.shown())
        self.put(self.pair, "certificate")
        eventually(lambda: self.flag("refused") == 0, "it is good again")
        self.assertEqual(["www.example"], self.shown())

    def test_a_key_that_others_can_read_is_refused(self):
        self.put(self.pair)
        self.serve_live()
        os.chmod(self.live["key"], 0o644)
        eventually(lambda: self.flag("refused") == 1, "it is refused")
        self.assertEqual(1, self.said("others can read"))
        self.assertEqual(["www.example"], self.shown())

    def test_an_expired_pair_is_not_taken(self):
        self.put(self.pair)
        self.serve_live()
        self.put(self.authority.pair("www.example", "old.example", days=-1))
        eventually(lambda: self.flag("refused") == 1, "it is refused")
        self.assertEqual(["www.example"], self.shown())
        self.assertEqual(1, self.said("has expired at"))

    def test_links_that_point_elsewhere_are_a_renewal(self):
        new = self.authority.pair("www.example", "new.example")
        for kind in ("certificate", "key"):
            os.symlink(self.pair[kind], self.live[kind])
        self.serve_live()
        for kind in ("certificate", "key"):
            os.symlink(new[kind], self.directory / "link")
            os.replace(self.directory / "link", self.live[kind])
        eventually(lambda: "new.example" in self.shown(), "the new pair is in use")

    def test_with_an_interval_of_0_only_a_reload_takes_them(self):
        self.put(self.pair)
        self.serve_live(listen={"tls_check_interval": "0s"})
        others = self.authority.pair("www.example", "new.example")
        self.put(others)
        # The log and the metrics tell nothing; a reload takes it.
        self.assertEqual(["www.example"], self.shown())
        self.reload()
        eventually(lambda: "new.example" in self.shown(), "the new pair is in use")
        self.assertEqual(0, self.said("is renewed"))

    def test_a_reload_keeps_what_was_renewed(self):
        self.put(self.pair)
        self.serve_live()
        self.put(self.authority.pair("www.example", "new.example"))
        eventually(lambda: "new.example" in self.shown(), "the new pair is in use")
        self.reload()
        self.assertIn("new.example", self.shown())
        self.put(self.authority.pair("www.example", "newer.example"))
        eventually(lambda: "newer.example" in self.shown(), "the files are checked after it")


class FirstStart(RenewalCase):
    def anybody(self):
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        return context

    def is_trusted(self):
        try:
            return bool(self.shown())
        except ssl.SSLCertVerificationError:
            return False

    def test_without_files_a_start_fails_as_ever(self):
        self.serve_live(missing="self-signed")
        self.proxy.sections["listen"][0]["tls"] = [self.live]
        self.assertIn("No such file", self.check_config())

    def test_a_self_signed_certificate_serves_until_the_files_come(self):
        self.serve_live(missing="self-signed", origin=[
            {"host": host, "servers": ["http://127.0.0.1:9"]}
            for host in ("www.example", "*.sub.example", "127.0.0.1", "second.example")])
        before = {each.name for each in self.directory.iterdir()}
        told = "clients get a self-signed one for www.example *.sub.example second.example"
        self.assertEqual(1, self.said(told))
        self.assertIn(told, self.check_config(refused=False))
        self.assertEqual((1, 0), (self.flag("self_signed"), self.flag("refused")))
        with self.assertRaises(ssl.SSLCertVerificationError):
            self.shown()
        said = self.s_client("-showcerts")
        self.assertIn("self-signed certificate", said)
        self.assertIn("CN = Encore self-signed", said)
        der = ssl.PEM_cert_to_DER_cert(said[said.index("-----BEGIN CERT"):]
                                       .partition("-----END CERTIFICATE-----")[0]
                                       + "-----END CERTIFICATE-----")
        # Any other name gets a certificate that is real.
        self.assertEqual(["second.example"], self.shown("second.example"))
        # A reload shows the same one, so that who has accepted it need not do it again.
        self.reload()
        self.assertIn(ssl.DER_cert_to_PEM_cert(der), self.s_client("-showcerts"))
        self.put(self.pair, "key")
        self.check_files()
        self.assertEqual((1, 0), (self.flag("self_signed"), self.flag("refused")))
        self.assertEqual(before | {"live.key"}, {each.name for each in self.directory.iterdir()})
        self.put(self.pair, "certificate")
        eventually(self.is_trusted, "the files are in use")
        self.assertEqual(["www.example"], self.shown())
        eventually(lambda: self.flag("self_signed") == 0, "the metric tells it")
        # From now on a reload without them is refused: no client is led back to a self-signed one.
        os.unlink(self.live["key"])
        self.reload()
        self.assertEqual(1, self.counter("reload_failures_total"))
        self.assertEqual(["www.example"], self.shown())

    def test_files_that_are_there_and_broken_are_an_error(self):
        self.put(self.pair)
        self.serve_live(missing="self-signed")
        with open(self.live["certificate"], "w", encoding="ascii") as file:
            file.write("no certificate")
        self.assertIn("contains no certificate", self.check_config())

    def test_without_names_of_origins_it_is_for_localhost(self):
        self.serve_live(missing="self-signed")
        self.assertIn("for localhost until", self.proxy.output())
        with contextlib.closing(self.client("anything.example", self.anybody())) as client:
            self.assertEqual(b"page", ask_on(client, "/page").body)
