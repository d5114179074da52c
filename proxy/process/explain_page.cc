#include "proxy/process/explain_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "base/html.h"
#include "proxy/process/form.h"
#include "proxy/process/styled_page.h"

namespace encore::server {
namespace {

struct Query {
  Explained asked;
  bool as_text = false;
};

Result<Query> read_query(std::string_view text) {
  auto pairs = read_form(text);
  if (!pairs) return std::unexpected(pairs.error());
  Query query;
  for (auto& [name, value] : *pairs) {
    if (name == "url") {
      query.asked.url = std::move(value);
    } else if (name == "method" && !value.empty()) {
      query.asked.method = std::move(value);
    } else if (name == "client" && !value.empty()) {
      query.asked.client = std::move(value);
    } else if (name == "listener") {
      query.asked.listener = std::move(value);
    } else if (name == "header") {
      if (!value.empty()) query.asked.fields.push_back(std::move(value));
    } else if (name == "format" && (value == "text" || value == "json")) {
      query.as_text = value == "text";
    } else if (name != "method" && name != "client") {
      return fail("\"" + name + "=" + value +
                  "\"; accepted: url, method, header, client, listener, format=json or text");
    }
  }
  return query;
}

// Returns a peer's text in ASCII.
std::string shown(std::string_view text) {
  std::string out(text);
  std::ranges::replace_if(out, [](char c) { return c != '\n' && (c < ' ' || c > '~'); }, '?');
  return html_escaped(out);
}

std::string body_of(const Explained& asked, std::string_view said) {
  const auto field = [](std::string_view name, std::string_view value, std::string_view hint) {
    return fmt::format(
        "<label for=\"{0}\">{0}</label><input type=\"text\" id=\"{0}\" name=\"{0}\" value=\"{1}\" "
        "placeholder=\"{2}\">\n",
        name, shown(value), hint);
  };
  std::string body = "<h2>Explain a request</h2>\n<form class=\"card\" action=\"/explain\">\n";
  body += field("url", asked.url, "http://www.example.com/");
  body += field("method", asked.method, "GET");
  body +=
      field("header", asked.fields.empty() ? "" : asked.fields.front(), "Accept-Encoding: gzip");
  body += field("client", asked.client, "127.0.0.1");
  body += field("listener", asked.listener, "the first");
  body += "<div class=\"row\"><button>Explain</button></div>\n</form>\n";
  if (!said.empty()) body += "<h2>Answer</h2>\n<pre class=\"said\">" + shown(said) + "</pre>\n";
  return body;
}

AdminResponse reply(int status, std::string_view type, std::string body) {
  AdminResponse response;
  response.status = status;
  response.content_type = type;
  response.body = std::move(body);
  response.fields.emplace_back("Cache-Control", "no-store");
  response.fields.emplace_back("X-Content-Type-Options", "nosniff");
  return response;
}

constexpr std::string_view kTextType = "text/plain; charset=utf-8";

AdminResponse html(int status, const Explained& asked, std::string_view said) {
  return make_page({.status = status, .title = "explain", .body = body_of(asked, said)});
}

}  // namespace

AdminResponse answer_explain(const AdminRequest& request,
                             const std::function<Result<Explanation>(const Explained&)>& explain) {
  const bool is_page = request.path == kExplainPage;
  const auto query = read_query(request.query);
  if (is_page && query && query->asked.url.empty()) return html(200, query->asked, "");
  const auto explained =
      query ? explain(query->asked) : Result<Explanation>(std::unexpected(query.error()));
  if (!explained) {
    const std::string& said = explained.error().message;
    return is_page ? html(400, query ? query->asked : Explained{}, said)
                   : reply(400, kTextType, "400 Bad Request\n" + said + "\n");
  }
  if (is_page) return html(200, query->asked, text_of(*explained));
  return query->as_text ? reply(200, kTextType, text_of(*explained))
                        : reply(200, "application/json", json_of(*explained));
}

std::string explain_query(const Explained& asked) {
  std::string query;
  append_form("url", asked.url, query);
  append_form("method", asked.method, query);
  append_form("client", asked.client, query);
  if (!asked.listener.empty()) append_form("listener", asked.listener, query);
  for (const std::string& field : asked.fields) append_form("header", field, query);
  return query;
}

}  // namespace encore::server
