#include "proxy/process/styled_page.h"

#include <fmt/core.h>

#include <string>

#include "base/html.h"
#include "proxy/process/live_page.h"

namespace encore::server {

AdminResponse make_page(const StyledPage& page) {
  const std::string refresh =
      page.refresh_seconds == 0
          ? std::string()
          : fmt::format("<meta http-equiv=\"refresh\" content=\"{}\">\n", page.refresh_seconds);
  AdminResponse response;
  response.status = page.status;
  response.content_type = "text/html; charset=utf-8";
  response.body = fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n{0}<title>encore: {1}</title>\n"
      "<link rel=\"icon\" href=\"data:,\">\n<style>{2}</style>\n</head>\n<body>\n"
      "<header class=\"top\"><div class=\"brand\"><h1>encore <span class=\"host\">{1}</span></h1>"
      "</div><p class=\"facts\"><a href=\"/\">live page</a> <a href=\"/explain\">explain</a> "
      "<a href=\"/shadow\">shadow "
      "policies</a></p></header>\n<main>\n{3}</main>\n</body>\n</html>\n",
      refresh, html_escaped(page.title), page_style(), page.body);
  response.fields.emplace_back("Cache-Control", "no-store");
  response.fields.emplace_back("X-Content-Type-Options", "nosniff");
  response.fields.emplace_back(
      "Content-Security-Policy",
      fmt::format("default-src 'none'; style-src {}; img-src data:; base-uri 'none'; form-action "
                  "'self'; frame-ancestors 'none'",
                  page_style_source()));
  response.fields.emplace_back("Referrer-Policy", "no-referrer");
  return response;
}

}  // namespace encore::server
