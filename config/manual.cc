// encore.toml(5) out of the schema, in mdoc(7).
#include <algorithm>
#include <string>
#include <string_view>

#include "config/dump.h"
#include "config/schema.h"

namespace encore::config {
namespace {

// mandoc(1) reports longer lines of text.
constexpr std::size_t kLineLength = 78;

constexpr std::string_view kHead = R"(.Dt ENCORE.TOML 5
.Os
.Sh NAME
.Nm encore.toml
.Nd configuration of the caching HTTP proxy encore
.Sh DESCRIPTION
.Ic encore --config Ar FILE
reads a TOML file.
Every key has a default, except those marked
.Em required ,
so the file itself is optional.
.Ic --set Ar section.key=value
sets a key after the file was read, and may be repeated:
.Bd -literal -offset indent
encore \-\-set cache.memory=1GiB \-\-set listen.0.address=127.0.0.1:8080
.Ed
.Bl -bullet
.It
Elements of repeated sections are counted from 0; the next number adds one.
.It
Lists may be written with commas, or as TOML.
.It
Bytes are written as
.Ql \(dq4096\(dq ,
.Ql \(dq64KiB\(dq ,
.Ql \(dq1.5GiB\(dq
or
.Ql \(dq10MB\(dq .
.It
Durations are written as
.Ql \(dq250ms\(dq ,
.Ql \(dq90s\(dq ,
.Ql \(dq2h\(dq
or
.Ql \(dq7d\(dq .
.El
.Pp
.Ic encore --check-config
reports every mistake with file, line, column and key, and prints the derived
values.
.Ic encore --dump-config
prints every key with its value.
.Pp
SIGHUP makes a running
.Xr encore 1
read the file again, all or nothing.
A reload that would change a key marked
.Em upgrade
or
.Em restart
is refused with a message that names the key and the reason.
.Ic encore upgrade
changes the former without a failed request.
.Sh SECTIONS
)";

constexpr std::string_view kFoot = R"(.Sh FILES
.Bl -tag -width Ds
.It Pa /etc/encore/encore.toml
The configuration of the service that Debian's package installs.
.El
.Sh EXAMPLES
A forward proxy for a network, which remembers its admission filter over
restarts:
.Bd -literal -offset indent
[[listen]]
address = "*:3128"

[forward]
allow_clients = ["10.0.0.0/8", "127.0.0.0/8", "::1"]

[cache]
memory = "1GiB"

[state]
directory = "/var/lib/encore"
.Ed
.Sh SEE ALSO
.Xr encore 1 ,
.Xr encore-sim 1
)";

// True if a sentence ends with this word: mdoc wants the next one on a line of its own.
bool ends_sentence(std::string_view word) {
  while (word.ends_with(')') || word.ends_with('"')) word.remove_suffix(1);
  return word.ends_with('.') || word.ends_with('!') || word.ends_with('?');
}

// The words of `text` in lines, none of which begins with a control character of roff.
std::string filled(std::string_view text) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    if (column != 0) {
      const bool full = column + 1 + word.size() > kLineLength;
      out += full ? '\n' : ' ';
      column = full ? 0 : column + 1;
    }
    if (column == 0 && (word.starts_with('.') || word.starts_with('\''))) out += "\\&";
    out += word;
    column += word.size();
    if (ends_sentence(word)) {
      out += '\n';
      column = 0;
    }
  }
  if (column != 0) out += '\n';
  return out;
}

// One character of text that is shown as it is.
std::string literal(char c) {
  switch (c) {
    case '\\':
      return "\\e";
    case '"':
      return "\\(dq";
    case '-':
      return "\\-";
    case '`':
      return "\\(ga";
    case '^':
      return "\\(ha";
    case '~':
      return "\\(ti";
    default:
      return {c};
  }
}

std::string literal(std::string_view text) {
  std::string out;
  for (const char c : text) out += literal(c);
  return out;
}

// The name of a Markdown link, with its page where that says more.
std::string link_text(std::string_view name, std::string_view page) {
  if (name == page || page.starts_with("https:")) return std::string(name);
  return std::string(name) + ": " + std::string(page);
}

// Resolves [name](page); other text stays.
std::string without_links(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t open = text.find('[');
    const std::size_t middle = text.find("](", open);
    if (open == std::string_view::npos || middle == std::string_view::npos) return out.append(text);
    const std::size_t inner = text.rfind('[', middle);
    const std::size_t end = text.find(')', middle);
    out += text.substr(0, inner);
    out += link_text(text.substr(inner + 1, middle - inner - 1),
                     text.substr(middle + 2, end - middle - 2));
    text.remove_prefix(end + 1);
  }
}

// Sentences of Markdown as lines of mdoc: what stands between backquotes becomes bold.
std::string sentences(std::string_view markdown) {
  std::string out;
  bool code = false;
  for (const char c : without_links(markdown)) {
    if (c == '`') {
      out += code ? "\\fR" : "\\fB";
      code = !code;
    } else {
      out += code || c != '-' ? literal(c) : "-";
    }
  }
  return filled(out);
}

std::string default_text(const Key& key, const void* defaults) {
  if (key.required) return ".Em Required .\n";
  const Value value = key.get(defaults);
  return is_unset(value) ? "" : filled("Default: " + literal(toml_text(key, value)) + ".");
}

std::string key_text(const Key& key, const void* defaults) {
  std::string text = ".It Cm " + literal(key.name) + "\n" + sentences(key.doc);
  text += filled("Accepted: " + literal(accepted_text(key)) + ".");
  text += default_text(key, defaults);
  if (key.apply == Apply::kUpgrade) text += ".Em Upgrade .\n";
  if (key.apply == Apply::kRestart) text += ".Em Restart .\n";
  return text;
}

std::string section_text(const Section& section, Config& defaults) {
  const std::string name = literal(section.name);
  if (section.repeated) section.resize(defaults, 1);
  std::string text = ".Ss " + (section.repeated ? "[[" + name + "]]" : "[" + name + "]") + "\\&\n" +
                     sentences(section.doc) + ".Bl -tag -width Ds\n";
  for (const auto& key : section.keys) text += key_text(key, section.at(defaults, 0));
  return text + ".El\n";
}

}  // namespace

std::string config_manual(std::string_view date) {
  std::string text = ".Dd " + std::string(date) + "\n" + std::string(kHead);
  Config defaults;
  for (const auto& section : schema()) text += section_text(section, defaults);
  return text + std::string(kFoot);
}

}  // namespace encore::config
