"""The structure check finds what is planted, and nothing in what is right."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "tools"))
import structure


def faults(path, text):
    return [fault for _, fault in structure.check_file(path, text)]


class Layering(unittest.TestCase):
    def test_includes_go_downwards_only(self):
        allowed = [
            ("filter/a.h", "base/error.h"),
            ("cache/a.cc", "filter/hash.h"),
            ("config/a.cc", "cache/index.h"),
            ("proxy/store/a.cc", "proxy/http/uri.h"),
            ("proxy/server/a.cc", "proxy/net/loop.h"),
            ("sim/replay/a.cc", "sim/workload/zipf.h"),
            ("tests/sim/a.cc", "sim/workload/zipf.h"),
        ]
        forbidden = [
            ("base/a.h", "filter/hash.h"),
            ("filter/a.h", "cache/index.h"),
            ("cache/a.cc", "config/config.h"),
            ("config/a.cc", "proxy/http/uri.h"),
            ("proxy/http/a.cc", "proxy/net/loop.h"),
            ("proxy/http/a.cc", "filter/hash.h"),
            ("proxy/net/a.cc", "config/config.h"),
            ("proxy/store/a.cc", "proxy/net/loop.h"),
            ("sim/replay/a.cc", "proxy/http/uri.h"),
            ("filter/a.cc", "tests/catch.h"),
            ("filter/a.cc", "hash.h"),
        ]
        for path, target in allowed:
            self.assertEqual([], faults(path, f'#include "{target}"\n'), (path, target))
        for path, target in forbidden:
            self.assertEqual(1, len(faults(path, f'#include "{target}"\n')), (path, target))

    def test_libraries_stay_where_they_belong(self):
        allowed = [
            ("proxy/net/loop.cc", "event2/event.h"),
            ("proxy/net/tls.cc", "openssl/ssl.h"),
            ("filter/hash.cc", "openssl/evp.h"),
            ("config/toml_reader.cc", "toml++/toml.h"),
            ("base/error.h", "expected"),
        ]
        forbidden = [
            ("proxy/server/worker.cc", "event2/event.h"),
            ("filter/hash.cc", "openssl/ssl.h"),
            ("proxy/server/worker.cc", "openssl/x509v3.h"),
            ("proxy/net/loop.cc", "event.h"),
            ("sim/replay/a.cc", "curl/curl.h"),
            ("config/toml_reader.h", "toml++/toml.h"),
            ("proxy/server/log.h", "spdlog/spdlog.h"),
        ]
        for path, target in allowed:
            self.assertEqual([], faults(path, f"#include <{target}>\n"), (path, target))
        for path, target in forbidden:
            self.assertEqual(1, len(faults(path, f"  #  include <{target}>\n")), (path, target))

    def test_every_folder_has_a_place(self):
        self.assertEqual(1, len(faults("elsewhere/a.cc", "int a;\n")))


class Purity(unittest.TestCase):
    def test_pure_folders_read_no_clock_and_no_random_device(self):
        for code in ("auto t = monotonic_now();", "std::chrono::steady_clock::now();",
                     "time(nullptr);", "std::random_device d;", "RAND_bytes(b, 8);", "rand();"):
            self.assertEqual(1, len(faults("cache/a.cc", code + "\n")), code)
            self.assertEqual([], faults("proxy/server/a.cc", code + "\n"), code)

    def test_comments_strings_and_longer_names_do_not_count(self):
        for code in ("// never calls wall_now()", '"rand()"', "int operand();", "/* time(0)\n*/"):
            self.assertEqual([], faults("filter/a.cc", code + "\n"), code)


class Text(unittest.TestCase):
    def test_files_stay_small(self):
        self.assertEqual([], faults("base/a.cc", "\n" * 600))
        self.assertEqual(1, len(faults("base/a.cc", "\n" * 601)))

    def test_nothing_is_left_open(self):
        for mark in ("TO" + "DO", "FIX" + "ME", "not " + "implemented"):
            self.assertEqual(1, len(faults("base/a.cc", f"// {mark}: later\n")), mark)

    def test_lines_end_clean(self):
        self.assertEqual(1, len(faults("base/a.cc", "int a; \n")))
        self.assertEqual(1, len(faults("base/a.cc", "int a;\r\n")))
        self.assertEqual(1, len(faults("base/a.cc", "int a;")))
        self.assertEqual([], faults("base/a.cc", ""))


if __name__ == "__main__":
    unittest.main()
