"""Headless Chromium through the proxy, with a fresh profile each load."""

import shutil
import struct
import unittest
import zlib

from harness import Case, clean_environment, find_program
from origin import Origin, fresh

PICTURES = 6


def png(red, green, blue, side=64):
    def chunk(kind, data):
        checksum = struct.pack(">I", zlib.crc32(kind + data))
        return struct.pack(">I", len(data)) + kind + data + checksum
    row = b"\0" + bytes((red, green, blue)) * side
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header)
            + chunk(b"IDAT", zlib.compress(row * side)) + chunk(b"IEND", b""))


def scanline_bytes(picture):
    """The decompressed, still filtered pixels of a PNG."""
    data, position = b"", 8
    while position < len(picture):
        size, kind = struct.unpack(">I4s", picture[position:position + 8])
        if kind == b"IDAT":
            data += picture[position + 8:position + 8 + size]
        position += size + 12
    return zlib.decompress(data)


class Chromium(Case):
    def site(self):
        pictures = "".join(f'<img src="/picture{n}.png">' for n in range(PICTURES))
        page = ('<html><head><title>x</title><script src="/first.js"></script></head>'
                f'<body>{pictures}<script src="/second.js"></script></body></html>')
        routes = {
            "/page": fresh(page, Content_Type="text/html"),
            "/favicon.ico": fresh(b"", Content_Type="image/x-icon"),
            "/first.js": fresh("window.ready = 1;", Content_Type="text/javascript"),
            "/second.js": fresh("if (window.ready) document.title = 'scripts ran';",
                                Content_Type="text/javascript"),
        }
        for number in range(PICTURES):
            routes[f"/picture{number}.png"] = fresh(png(40 * number, 255 - 30 * number, 90),
                                                    Content_Type="image/png")
        return routes

    def load(self, program, encore, url, attempt, *what):
        profile = self.directory / f"profile{attempt}{what[0][:4]}"
        ended = self.run_client(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
             "--no-first-run", "--disable-background-networking", "--disable-component-update",
             "--disable-sync", "--disable-default-apps", "--disable-extensions",
             "--disable-dev-shm-usage", "--hide-scrollbars", "--window-size=600,400",
             f"--user-data-dir={profile}", f"--proxy-server={encore.url}",
             "--proxy-bypass-list=<-loopback>", *what, url],
            env=clean_environment(HOME=self.directory), cwd=self.directory)
        shutil.rmtree(profile, ignore_errors=True)
        return ended.stdout.decode(errors="replace")

    def test_the_third_load_comes_from_the_cache_and_shows_the_page(self):
        program = find_program("chromium") or find_program("chromium-browser") or find_program(
            "google-chrome")
        if not program:
            self.skipTest("chromium is not installed")
        origin = Origin(self, self.site())
        encore = self.encore()
        counts = []
        for attempt in range(3):
            screenshot = self.directory / f"shot{attempt}.png"
            self.load(program, encore, origin.url("/page"), attempt, f"--screenshot={screenshot}")
            counts.append(origin.count())
            self.assertGreater(len(set(scanline_bytes(screenshot.read_bytes()))), 8,
                               "the screenshot is of one colour")
        self.assertGreaterEqual(counts[0], PICTURES + 3)
        self.assertEqual(counts[1], counts[2], [r.target for r in origin.requests])
        document = self.load(program, encore, origin.url("/page"), 3, "--dump-dom")
        self.assertIn("<title>scripts ran</title>", document)
        self.assertEqual(counts[1], origin.count())


    def test_pages_that_are_compressed_here_are_shown(self):
        program = find_program("chromium") or find_program("chromium-browser") or find_program(
            "google-chrome")
        if not program:
            self.skipTest("chromium is not installed")
        page = ("<html><head><title>x</title><script src='/long.js'></script></head><body>"
                + "<p>text</p>" * 20_000 + "<div id='end'>the end</div></body></html>")
        script = "// " + "words " * 3000 + "\nwindow.onload = () => document.title = 'it ran';\n"
        for coding in ("zstd", "br", "gzip"):
            origin = Origin(self, {"/page": fresh(page, Content_Type="text/html"),
                                   "/long.js": fresh(script, Content_Type="text/javascript")})
            encore = self.encore(compression={"codings": [coding]}, admission={"policy": "always"})
            # Chromium offers brotli and zstd to those alone whom it trusts: over plain HTTP, gzip.
            for attempt in range(2):
                shown = self.load(program, encore, origin.url("/page"), attempt, "--dump-dom")
                self.assertIn("the end", shown)
                self.assertIn("<title>it ran</title>", shown)
            if coding == "gzip":
                self.assertGreaterEqual(
                    encore.metrics()["encore_compressed_gzip_responses_total"], 2)

if __name__ == "__main__":
    unittest.main()
