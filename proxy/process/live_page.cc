#include "proxy/process/live_page.h"

#include <fmt/core.h>

#include <cstdint>
#include <span>
#include <string_view>

#include "proxy/net/secrets.h"

// Files of some hundred kilobytes go in by the assembler: compilers are slow at such literals.
#define ENCORE_EMBED(name, file)  \
  __asm__(                        \
      ".pushsection .rodata\n"    \
      "encore_page_" name         \
      "_begin:\n"                 \
      ".incbin \"" file           \
      "\"\n"                      \
      "encore_page_" name         \
      "_end:\n"                   \
      ".byte 0\n"                 \
      ".popsection\n"             \
      ".global encore_page_" name \
      "_begin\n"                  \
      ".global encore_page_" name "_end\n")

ENCORE_EMBED("body", ENCORE_PAGE_DIRECTORY "/page.html");
ENCORE_EMBED("style", ENCORE_PAGE_DIRECTORY "/page.css");
ENCORE_EMBED("model", ENCORE_PAGE_DIRECTORY "/model.js");
ENCORE_EMBED("charts", ENCORE_PAGE_DIRECTORY "/charts.js");
ENCORE_EMBED("script", ENCORE_PAGE_DIRECTORY "/page.js");
#ifdef ENCORE_CHART_JS
ENCORE_EMBED("library", ENCORE_CHART_JS);
#endif

extern "C" {
extern const char encore_page_body_begin[];
extern const char encore_page_body_end[];
extern const char encore_page_style_begin[];
extern const char encore_page_style_end[];
extern const char encore_page_model_begin[];
extern const char encore_page_model_end[];
extern const char encore_page_charts_begin[];
extern const char encore_page_charts_end[];
extern const char encore_page_script_begin[];
extern const char encore_page_script_end[];
#ifdef ENCORE_CHART_JS
extern const char encore_page_library_begin[];
extern const char encore_page_library_end[];
#endif
}

namespace encore::server {
namespace {

std::string base64(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view kDigits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  std::uint32_t bits = 0;
  unsigned held = 0;
  for (const std::uint8_t byte : bytes) {
    bits = (bits << 8U) | byte;
    for (held += 8; held >= 6; held -= 6) out += kDigits[(bits >> (held - 6)) & 63U];
  }
  if (held != 0) out += kDigits[(bits << (6 - held)) & 63U];
  while (out.size() % 4 != 0) out += '=';
  return out;
}

std::string source_of(std::string_view text) {
  return fmt::format("'sha256-{}'", base64(net::sha256(text)));
}

LivePage make() {
  const std::string_view style = page_style();
#ifdef ENCORE_CHART_JS
  const std::string_view library{encore_page_library_begin, encore_page_library_end};
#else
  const std::string_view library = "";
#endif
  std::string script(encore_page_model_begin, encore_page_model_end);
  script.append(encore_page_charts_begin, encore_page_charts_end);
  script.append(encore_page_script_begin, encore_page_script_end);
  LivePage page;
  page.html = std::make_shared<const std::string>(fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>encore</title>\n"
      "<link rel=\"icon\" href=\"data:,\">\n<style>{}</style>\n</head>\n{}\n"
      "<script>{}</script>\n<script>{}</script>\n</body>\n</html>\n",
      style, std::string_view{encore_page_body_begin, encore_page_body_end}, library, script));
  page.security_policy = fmt::format(
      "default-src 'none'; script-src {} {}; style-src {}; connect-src 'self'; img-src data:; "
      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      source_of(library), source_of(script), source_of(style));
  return page;
}

}  // namespace

std::string_view page_style() { return {encore_page_style_begin, encore_page_style_end}; }

const std::string& page_style_source() {
  static const std::string source = source_of(page_style());
  return source;
}

const LivePage& live_page() {
  static const LivePage page = make();
  return page;
}

}  // namespace encore::server
