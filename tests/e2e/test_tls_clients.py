"""TLS to the proxy by programs that others have written: curl, wget, Node, Go, GnuTLS, Chromium."""

import subprocess

from harness import clean_environment, find_program, need_program
from origin import fresh
from tls import TlsCase

GO = """package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

func main() {
	pem, _ := os.ReadFile(os.Args[1])
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		cache := tls.NewLRUClientSessionCache(4)
		for i := 0; i < 3; i++ {
			transport := &http.Transport{
				TLSClientConfig: &tls.Config{RootCAs: roots, ClientSessionCache: cache,
					MaxVersion: version},
				DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					return (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+os.Args[2])
				},
				ForceAttemptHTTP2: true,
			}
			answer, err := (&http.Client{Transport: transport}).Get("https://www.example/page")
			if err != nil {
				fmt.Println(err)
				os.Exit(1)
			}
			body, _ := io.ReadAll(answer.Body)
			fmt.Println(string(body), answer.Proto, answer.TLS.DidResume)
			transport.CloseIdleConnections()
		}
	}
}
"""

NODE = """
const fs = require('fs'), https = require('https');
const [ca, port] = [fs.readFileSync(process.argv[2]), process.argv[3]];
const agent = new https.Agent({keepAlive: false, maxCachedSessions: 10});
let left = 3;
function ask() {
  const request = https.get({host: '127.0.0.1', port, path: '/page', servername: 'www.example',
                             headers: {host: 'www.example'}, ca, agent}, response => {
    let body = '';
    response.on('data', part => body += part);
    response.on('end', () => {
      console.log(body, response.statusCode, request.socket.isSessionReused());
      if (--left > 0) setImmediate(ask);
    });
  });
}
ask();
"""


class Clients(TlsCase):
    def setUp(self):
        super().setUp()
        self.ca = self.authority.certificate

    def test_curl(self):
        self.serve()
        curl = need_program("curl")
        resolve = ["--resolve", f"www.example:{self.port}:127.0.0.1", "--cacert", self.ca]
        url = f"https://www.example:{self.port}/page"
        for version in (["--tlsv1.2", "--tls-max", "1.2"], ["--tlsv1.3"], ["--http1.0"]):
            self.assertEqual(b"page", self.run_client(
                [curl, "-sS", *version, *resolve, url]).stdout)
        body = b"z" * 3000000
        self.origin.routes["/large"] = fresh(body)
        for _ in range(3):
            got = self.run_client([curl, "-sS", *resolve, url, url.replace("page", "large")])
            self.assertEqual(b"page" + body, got.stdout)
        # A name that the certificate does not have is for the client to refuse.
        other = self.run_client([curl, "-sS", "--resolve", f"o.example:{self.port}:127.0.0.1",
                                 "--cacert", self.ca, url.replace("www", "o")], check=False)
        self.assertEqual(60, other.returncode, other.stdout)

    def test_curl_by_a_proxy_that_speaks_tls(self):
        self.serve(listen={"mode": "forward"})
        curl = need_program("curl")
        proxy = ["--proxy", f"https://www.example:{self.port}", "--proxy-cacert", self.ca,
                 "--resolve", f"www.example:{self.port}:127.0.0.1"]
        for _ in range(3):
            self.assertEqual(b"page", self.run_client(
                [curl, "-sS", *proxy, self.origin.url("/page")]).stdout)
        self.assertEqual(2, self.origin.count("/page"))
        self.proxy.sections["forward"] = {"connect_ports": [self.origin.port]}
        self.proxy.stop()
        self.proxy.start()
        self.assertEqual(b"page", self.run_client(
            [curl, "-sS", "-p", *proxy, self.origin.url("/page")]).stdout)
        self.assertEqual("tunnel", self.proxy.access_records(4)[3]["outcome"])

    def test_wget_and_gnutls(self):
        self.serve()
        gnutls = need_program("gnutls-cli")
        for priority, version in (("NORMAL:-VERS-ALL:+VERS-TLS1.2", "TLS1.2"),
                                  ("NORMAL:-VERS-ALL:+VERS-TLS1.3", "TLS1.3")):
            ended = subprocess.run(
                [gnutls, "--x509cafile", self.ca, "--sni-hostname", "www.example",
                 "--verify-hostname", "www.example", "--priority", priority, "--alpn", "http/1.1",
                 "-p", str(self.port), "127.0.0.1"],
                input=b"GET /page HTTP/1.0\r\nHost: www.example\r\n\r\n", check=False,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
            said = ended.stdout.decode(errors="replace")
            self.assertIn(f"({version}", said)
            self.assertIn("The certificate is trusted", said)
            self.assertIn("HTTP/1.1 200 OK", said)
        wget = need_program("wget")
        got = self.run_client([wget, "-q", "-O", "-", f"--ca-certificate={self.ca}",
                               "--no-check-certificate", f"https://127.0.0.1:{self.port}/page"])
        self.assertEqual(b"page", got.stdout)

    def test_node(self):
        self.serve()
        node = need_program("node")
        script = self.directory / "client.js"
        script.write_text(NODE)
        got = self.run_client([node, script, self.ca, self.port]).stdout.decode().split("\n")
        self.assertEqual(["page 200 false", "page 200 true", "page 200 true"], got[:3])

    def test_go(self):
        self.serve()
        go = need_program("go")
        source = self.directory / "client.go"
        source.write_text(GO)
        got = self.run_client([go, "run", source, self.ca, self.port], env=clean_environment(
            GO111MODULE="off", GOFLAGS="", GOCACHE=self.directory / "cache",
            HOME=self.directory)).stdout.decode().split("\n")
        self.assertEqual(["page HTTP/2.0 false", "page HTTP/2.0 true", "page HTTP/2.0 true"] * 2,
                         got[:6])

    def test_chromium(self):
        chromium = find_program("chromium") or find_program("google-chrome")
        if not chromium:
            self.skipTest("chromium is not installed")
        certutil = need_program("certutil")
        self.serve()
        self.origin.routes["/page"] = fresh(
            "<html><body><script src='/script.js'></script></body></html>",
            Content_Type="text/html")
        self.origin.routes["/script.js"] = fresh(
            "document.body.append('ran by ' + location.protocol)", Content_Type="text/javascript")
        store = self.directory / ".pki" / "nssdb"
        store.mkdir(parents=True)
        self.run_client([certutil, "-N", "-d", f"sql:{store}", "--empty-password"])
        self.run_client([certutil, "-A", "-d", f"sql:{store}", "-n", "ca", "-t", "C,,", "-i",
                         self.ca])
        for attempt in range(3):
            said = self.run_client(
                [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
                 "--no-first-run", "--disable-background-networking", "--disable-dev-shm-usage",
                 "--no-proxy-server", f"--user-data-dir={self.directory / f'profile{attempt}'}",
                 "--host-resolver-rules=MAP www.example 127.0.0.1", "--dump-dom",
                 f"https://www.example:{self.port}/page"],
                env=clean_environment(HOME=self.directory), cwd=self.directory).stdout.decode()
            self.assertIn("ran by https:", said)
        self.assertEqual(2, self.origin.count("/script.js"))
