"""HTTP/2 to programs that others have written: nghttp, h2load, Node, Go."""

import hashlib
import random
import re
import unittest

from harness import clean_environment, need_program
from origin import fresh, response
from test_http2 import Http2Case
from tls import TlsCase

LARGE = random.Random(9).randbytes(12_000_000)

NODE = """
const http2 = require('http2'), crypto = require('crypto');
const session = http2.connect(process.argv[2]);
let left = 0;
function ask(headers, body) {
  ++left;
  const stream = session.request(headers, {endStream: body === undefined});
  const hash = crypto.createHash('sha256');
  let status;
  stream.on('response', answer => status = answer[':status']);
  stream.on('data', part => hash.update(part));
  stream.on('end', () => {
    console.log(headers[':path'], status, hash.digest('hex'));
    if (--left === 0) session.close();
  });
  if (body !== undefined) stream.end(body);
}
for (let i = 0; i < 5; ++i) {
  ask({':path': '/large'});
  ask({':path': '/small'});
  ask({':path': '/echo', ':method': 'POST'}, Buffer.alloc(300000, 'x'));
}
"""

# Opens both windows for every few KiB that it reads of a window of 4 MiB.
GO = """package main

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
)

func main() {
	pem, _ := os.ReadFile(os.Args[1])
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", "127.0.0.1:"+os.Args[2])
		},
		ForceAttemptHTTP2: true,
	}}
	var group sync.WaitGroup
	for i := 0; i < 8; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			answer, err := client.Get("https://www.example/large")
			if err != nil {
				fmt.Println(err)
				return
			}
			hash := sha256.New()
			_, err = io.CopyBuffer(struct{ io.Writer }{hash}, answer.Body, make([]byte, 4096))
			fmt.Println(answer.Proto, answer.StatusCode, fmt.Sprintf("%x", hash.Sum(nil)), err)
		}()
	}
	group.Wait()
}
"""


def digest(body):
    return hashlib.sha256(body).hexdigest()


class Plain(Http2Case):
    def setUp(self):
        super().setUp()
        self.serve({"/large": fresh(LARGE), "/small": fresh(b"small"),
                    "/echo": lambda e: response(e.request.body)}, cache={"memory": "128MiB"})

    def check_no_flood(self):
        for name, value in self.proxy.metrics().items():
            if name.startswith(("encore_http2_floods_total", "encore_http2_limits_total")):
                self.assertEqual(0, value, name)

    def test_nghttp(self):
        nghttp = need_program("nghttp")
        for _ in range(3):
            got = self.run_client([nghttp, "-w", "24", "-W", "24", self.proxy.url + "/large",
                                   self.proxy.url + "/small"]).stdout
            self.assertEqual(len(LARGE) + 5, len(got))
            self.assertIn(b"small", got)
        self.check_no_flood()

    def test_h2load(self):
        h2load = need_program("h2load")
        self.run_client([h2load, "-n", "2", self.proxy.url + "/small"])
        said = self.run_client([h2load, "-n", "5000", "-c", "5", "-m", "50",
                                self.proxy.url + "/small"]).stdout.decode()
        self.assertIn("5000 succeeded, 0 failed", said)
        self.assertTrue(re.search(r"status codes: 5000 2xx", said), said)
        said = self.run_client([h2load, "-n", "50", "-c", "5", "-m", "5", "-w", "24", "-W", "24",
                                self.proxy.url + "/large"]).stdout.decode()
        self.assertIn("50 succeeded, 0 failed", said)
        self.check_no_flood()

    def test_node(self):
        node = need_program("node")
        script = self.directory / "client.js"
        script.write_text(NODE)
        got = self.run_client([node, script, self.proxy.url]).stdout.decode().split("\n")
        wanted = [f"/large 200 {digest(LARGE)}", f"/small 200 {digest(b'small')}",
                  f"/echo 200 {digest(b'x' * 300000)}"] * 5
        self.assertEqual(sorted(wanted), sorted(filter(None, got)))
        self.check_no_flood()


class Secure(TlsCase):
    def test_go(self):
        self.serve(cache={"memory": "128MiB"})
        self.origin.routes["/large"] = fresh(LARGE)
        go = need_program("go")
        source = self.directory / "client.go"
        source.write_text(GO)
        got = self.run_client(
            [go, "run", source, self.authority.certificate, self.port],
            env=clean_environment(GO111MODULE="off", GOFLAGS="", GOCACHE=self.directory / "cache",
                                  HOME=self.directory)).stdout.decode().split("\n")
        self.assertEqual([f"HTTP/2.0 200 {digest(LARGE)} <nil>"] * 8, got[:8])
        self.assertEqual(0, self.proxy.metrics()['encore_http2_floods_total{kind="window"}'])


if __name__ == "__main__":
    unittest.main()
