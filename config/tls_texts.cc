#include "config/tls_texts.h"

#include "config/texts.h"

namespace encore::config {
namespace {

// Calls f(name, value) for each of the lines.
template <typename F>
void for_each_line(std::string_view lines, F f) {
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    const std::size_t equals = line.find('=');
    f(line.substr(0, equals),
      equals == std::string_view::npos ? std::string_view() : line.substr(equals + 1));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
  }
}

}  // namespace

Result<TlsPair> parse_tls_pair(std::string_view lines) {
  TlsPair pair;
  std::string wrong;
  for_each_line(lines, [&](std::string_view name, std::string_view value) {
    if (name == "missing") {
      if (value != "error" && value != "self-signed") {
        wrong = "has a missing that is neither \"error\" nor \"self-signed\"";
      }
      pair.missing = value == "self-signed" ? MissingPair::kSelfSigned : MissingPair::kError;
      return;
    }
    std::string* const at = name == "certificate" ? &pair.certificate
                            : name == "key"       ? &pair.key
                            : name == "ocsp"      ? &pair.ocsp
                                                  : nullptr;
    if (at == nullptr) {
      wrong = "has an unknown \"" + std::string(name) + "\"";
    } else if (!check_file_name(value)) {
      wrong = "has a " + std::string(name) + " that is not a file name";
    } else {
      *at = value;
    }
  });
  if (!wrong.empty()) return fail(wrong);
  if (pair.certificate.empty()) return fail("has no certificate");
  if (pair.key.empty()) return fail("has no key");
  return pair;
}

std::string inline_table(std::string_view lines) {
  std::string text = "{";
  for_each_line(lines, [&](std::string_view name, std::string_view value) {
    if (text.size() > 1) text += ", ";
    text.append(name).append(" = ").append(in_quotes(value));
  });
  return text + "}";
}

Result<std::string> check_alpn(std::string_view text) {
  if (text != "http/1.1" && text != "http/1.0") return fail("is not supported");
  return std::string(text);
}

}  // namespace encore::config
