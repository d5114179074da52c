"""docs/LOGS.md lists every field of a record, every outcome and every detail that the code has, and no
other; docs/OPERATIONS.md lists the keys that a reload cannot change."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).parent.parent.parent
DOCUMENT = (ROOT / "docs" / "LOGS.md").read_text()
# Functions whose words are details, with what stands before these there.
NAMED = [("proxy/net/resolve_outcome.cc", "dns-"), ("proxy/net/connector.cc", "connect-"),
         ("proxy/net/stream.cc", "origin-"), ("proxy/net/stream.cc", ""),
         ("proxy/settings/destination.cc", ""), ("proxy/settings/access.cc", "")]
# Results of those functions that no record has: successes, impossible ones, and those of listeners
# that speak only TLS.
NEVER = {"allowed", "ok", "none", "dns-unknown", "connect-unknown", "origin-unknown", "unknown",
         "origin-tls-plain-http", "tls-plain-http"}
# Patterns of literals that are details: an outcome with its reason, refusals, variables named detail.
LITERAL = [r'Outcome::k\w+,\s*(?:\.detail = )?"([a-z0-9 -]+)"', r'\bdetail = "([a-z0-9-]+)"', r'too_many\(\s*"([a-z0-9-]+)"',
           r'\brefuse_content\(\d+, "([a-z0-9-]+)"', r'\.refusal = "([a-z0-9-]+)"',
           r'plan\.refusal = "([a-z0-9-]+)"', r'\brefuse\(\d+, Outcome::\w+, "([a-z0-9-]+)"',
           r'on_content_broken\("([a-z0-9-]+)"', r'std::string_view\("(client-write)"\) : "([a-z]+)"',
           r'\b(?:denied|bad_request)\([^"]*?"([a-z0-9-]+)"',
           r'(?:wrong|kWrong) \? "([a-z-]+)" : "([a-z-]+)"', r'\bdetail = \{\};\s*// "([a-z-]+)"',
           r'"(request-timeout)" : "(request-too-slow)"', r'\? .*? : "(client-not-allowed)"']
# By whole files: fail("...") says why a purge is none.
FAILS = ["proxy/exchange/purge_request.cc", "proxy/settings/ban.cc", "proxy/process/purge.cc",
         "proxy/process/disk_purge.cc"]
# Words that are built.
BUILT = {"purged ": "purged N", "status-": "status-500", "origin-": None,
         "connect-": None, "dns-": None}


def section(title, level="###"):
    found = re.search(rf"^{level} {title}\n(.*?)(?=^##)", DOCUMENT, re.M | re.S)
    return found.group(1)


def macro(path, name):
    text = (ROOT / path).read_text()
    begin = text.index(f"#define {name}(X)")
    lines = text[begin:].split("\n")
    end = next(i for i, line in enumerate(lines) if not line.rstrip().endswith("\\"))
    return "\n".join(lines[:end + 1])


def details_of_code():
    found = set()
    for path, name in (("proxy/http/storing.h", "ENCORE_HTTP_STORE_REASONS"),
                       ("proxy/http/parser.h", "ENCORE_HTTP_PARSE_REASONS")):
        found.update(re.findall(r'X\(k\w+, "([a-z-]+)"\)', macro(path, name)))
    for path, prefix in NAMED:
        text = (ROOT / path).read_text()
        words = re.findall(r'return (?:is_denied\(.*?\) \? )?"([a-z-]+)"[;\s]', text)
        found.update(prefix + word for word in words)
    names = re.search(r"string_view to_string\(TargetStatus.*?kNames = \{(.*?)\}",
                      (ROOT / "proxy/http/uri.cc").read_text(), re.S).group(1)
    found.update(re.findall(r'"([a-z-]+)"', names))
    for path in sorted((ROOT / "proxy").rglob("*.cc")):
        text = path.read_text()
        for pattern in LITERAL:
            for match in re.finditer(pattern, text, re.S):
                found.update(word for word in match.groups() if word)
    for path in "proxy/transfer/not_stored.h", "proxy/request/request_view_builder.h":
        found.update(re.findall(r'constexpr std::string_view k\w+ = "([a-z-]+)"',
                                (ROOT / path).read_text()))
    found.update(re.findall(r'kAmbiguousPath = "([a-z-]+)"',
                            (ROOT / "proxy/settings/path_readings.h").read_text()))
    found.update(re.findall(r'X\(k\w+, "([a-z-]+)"',
                            macro("proxy/observe/redirect_refusal.h", "ENCORE_REDIRECT_REFUSAL")))
    for path in FAILS:
        found.update(re.findall(r'fail\("([a-z-]+)(?:"\)|: )', (ROOT / path).read_text()))
    # The one outcome of connecting that stands for itself.
    if "failure.detail = to_string(error.outcome);" in (
            ROOT / "proxy/origin/origin_link.cc").read_text():
        found.add("tls-verify")
    return {BUILT.get(word, word) for word in found} - NEVER - {None}


class OperationsDocs(unittest.TestCase):
    def test_every_field_is_listed_with_its_meaning_in_the_code(self):
        for name, place in (("ENCORE_LOG_FIELDS", r"^- `{}`: {}$"),
                            ("ENCORE_LOG_FORMS", r"^- `%\{{{}\}}x`(?: \(.*\))?: {}$")):
            rows = re.findall(r'X\(\w+, "(\w+)",\s*"([^"]*)"\)',
                              re.sub(r'\\\n\s*', " ", macro("config/log_format.h", name)))
            self.assertGreater(len(rows), 3)
            for word, text in rows:
                self.assertRegex(section("Formats"),
                                 re.compile(place.format(re.escape(word), re.escape(text)), re.M))
        listed = re.findall(r"^- `(\w+)`: ", section("Formats"), re.M)
        self.assertEqual(re.findall(r'X\(\w+, "(\w+)"', macro("config/log_format.h", "ENCORE_LOG_FIELDS")),
                         listed)

    def test_every_directive_is_listed(self):
        text = (ROOT / "config/log_format.cc").read_text()
        letters = set(re.findall(r"\{'(\w)', LogField::", text))
        listed = set(re.findall(r"`%>?(\w)`", section("Formats")))
        self.assertEqual(letters, listed)

    def test_every_outcome_is_listed_with_its_class(self):
        rows = re.findall(r'X\(k\w+, "([a-z-]+)", k(\w+)\)',
                          macro("proxy/observe/outcome.h", "ENCORE_OUTCOMES"))
        listed = re.findall(r"^- `([a-z-]+)` \((\w+)\): \S", section("Outcomes"), re.M)
        self.assertEqual([(name, group.lower()) for name, group in rows], listed)

    def test_every_detail_is_listed_and_none_besides(self):
        admission = {"first-request", "second-request", "admitted", "not-admitted", "too-large",
                     "probation", "fill", "too-large-to-wait", "parent-hint"}
        listed = set(re.findall(r"`([a-z0-9-]+(?: N)?)`", section("Details"))) - {"detail", "rule-N"}
        listed -= admission
        code = details_of_code() - admission
        # The outcome has these, or a response outside the log.
        code -= {"revalidated", "stale"}
        self.assertEqual([], sorted(code - listed), "in the code alone")
        self.assertEqual([], sorted(listed - code), "in the document alone")

    def test_the_keys_that_a_reload_cannot_change_are_listed(self):
        marked, name = {"Upgrade": set(), "Restart": set()}, None
        for line in (ROOT / "docs" / "CONFIG.md").read_text().splitlines():
            if title := re.match(r"## \[+(\w+)\]+$", line):
                name = title.group(1)
            elif found := re.match(r"- [*][*]`(.*?)`.* [*](Upgrade|Restart)[.][*]$", line):
                marked[found.group(2)].add(f"{name}.{found.group(1)}")
        self.assertGreater(len(marked["Upgrade"]), 12)
        text = (ROOT / "docs" / "OPERATIONS.md").read_text()
        reload = re.search(r"^## Reload\n(.*?)(?=^## )", text, re.M | re.S).group(1)
        listed = set()
        upgrade, restart = reload[reload.index("marked *Upgrade*"):].split("marked *Restart*")
        for item in re.findall(r"^- (.*)$", upgrade, re.M):
            of = re.search(r" of `\[(\w+)\]`$", item)
            for word in re.findall(r"`([a-z_.]+)`", item.removesuffix(of.group() if of else "")):
                listed.add(word if "." in word else f"{of.group(1)}.{word}")
        self.assertIn("cache.memory", listed)  # up to a bound it needs none
        self.assertEqual(marked["Upgrade"], listed - {"cache.memory"})
        self.assertEqual(marked["Restart"],
                         set(re.findall(r"`([a-z]+[.][a-z]+)`", restart.split("\n\n")[0])))


if __name__ == "__main__":
    unittest.main()
