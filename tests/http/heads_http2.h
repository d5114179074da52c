// Heads and fields of tests as HTTP/2 brings them: each becomes a header block by nghttp2's
// encoder, which is decoded as the proxy decodes one, and the text that comes of it is parsed.
// HTTP/1.0 and fields of a connection, which HTTP/2 does not carry, stay unchanged (RFC 9113
// 8.2.2). Test-only.
#pragma once

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "proxy/h2/field_decoder.h"
#include "proxy/h2/request_text.h"
#include "proxy/h2/response_text.h"
#include "tests/catch.h"

namespace encore::http::over_http2 {

using Lines = std::vector<std::pair<std::string, std::string>>;

inline constexpr std::size_t kBytesMax = std::size_t{1} << 20;
inline constexpr std::size_t kFieldsMax = 10'000;

inline std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  });
  return out;
}

inline std::string_view trim(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") + 1 - begin);
}

// Names in lower case, values without space around them. Stops at an empty line.
inline Lines lines_of(std::string_view text) {
  Lines out;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find("\r\n"));
    text.remove_prefix(std::min(text.size(), line.size() + 2));
    if (line.empty()) break;
    const std::size_t colon = std::min(line.find(':'), line.size() - 1);
    out.emplace_back(lower(line.substr(0, colon)), trim(line.substr(colon + 1)));
  }
  return out;
}

inline bool is_carried(const Lines& lines) {
  return std::ranges::none_of(lines, [](const auto& line) {
    const std::string& name = line.first;
    return name == "connection" || name == "keep-alive" || name == "upgrade" ||
           name == "proxy-connection" || (name == "te" && line.second != "trailers");
  });
}

// Takes the field of that name out. Returns its value; empty: there is none.
inline std::string take(Lines& lines, std::string_view name) {
  std::string value;
  std::erase_if(lines, [&](const auto& line) {
    if (line.first != name) return false;
    value = line.second;
    return true;
  });
  return value;
}

// Names as the test has them: they come in lower case, and tests spell what they expect as HTTP/1.
inline std::string respelled(std::string text, std::string_view original) {
  const std::string lines = "\r\n" + lower(original);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find("\r\n", at), text.size());
    const std::size_t colon = text.find(':', at);
    if (colon < end) {
      const std::string name = "\r\n" + text.substr(at, colon + 1 - at);
      const std::size_t found = lines.find(name);
      if (found != std::string::npos) {
        text.replace(at, name.size() - 2, original.substr(found, name.size() - 2));
      }
    }
    at = end + 2;
  }
  return text;
}

// Has `sink` read the block of these fields.
inline void bring(const Lines& lines, h2::FieldSink& sink) {
  nghttp2_hd_deflater* made = nullptr;
  REQUIRE(nghttp2_hd_deflate_new(&made, 4096) == 0);
  const std::unique_ptr<nghttp2_hd_deflater, decltype(&nghttp2_hd_deflate_del)> deflater(
      made, &nghttp2_hd_deflate_del);
  const auto bytes = [](const std::string& text) {
    return const_cast<std::uint8_t*>(reinterpret_cast<const std::uint8_t*>(text.data()));
  };
  std::vector<nghttp2_nv> pairs;
  for (const auto& [name, value] : lines) {
    pairs.push_back({.name = bytes(name),
                     .value = bytes(value),
                     .namelen = name.size(),
                     .valuelen = value.size(),
                     .flags = NGHTTP2_NV_FLAG_NONE});
  }
  std::string block(nghttp2_hd_deflate_bound(made, pairs.data(), pairs.size()), '\0');
  const ssize_t size =
      nghttp2_hd_deflate_hd(made, bytes(block), block.size(), pairs.data(), pairs.size());
  REQUIRE(size >= 0);
  h2::FieldDecoder decoder;
  REQUIRE(decoder.decode({block.data(), static_cast<std::size_t>(size)}, true, sink) ==
          h2::FieldDecoder::Status::kEnd);
}

inline Lines behind(Lines first, const Lines& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

// Returns the text of a request head that came over HTTP/2; empty: HTTP/2 carries no such one.
inline std::string request(std::string_view text) {
  const std::string_view start = text.substr(0, text.find("\r\n"));
  Lines lines = lines_of(text.substr(std::min(text.size(), start.size() + 2)));
  if (!start.ends_with(" HTTP/1.1") || !is_carried(lines)) return {};
  const std::string method(start.substr(0, start.find(' ')));
  std::string target(start.substr(method.size() + 1, start.size() - method.size() - 10));
  Lines pseudo = {{":method", method}};
  const std::size_t slashes = target.find("://");
  const bool is_absolute = slashes != std::string::npos && !target.starts_with('/');
  if (method == "CONNECT") {
    pseudo.emplace_back(":authority", target);
    take(lines, "host");
  } else if (is_absolute) {
    const std::size_t path = std::min(target.find_first_of("/?", slashes + 3), target.size());
    pseudo.emplace_back(":scheme", target.substr(0, slashes));
    pseudo.emplace_back(":authority", target.substr(slashes + 3, path - slashes - 3));
    pseudo.emplace_back(":path", path == target.size() ? "/" : target.substr(path));
    take(lines, "host");
  } else {
    pseudo.emplace_back(":scheme", "http");
    const std::string host = take(lines, "host");
    if (!host.empty()) pseudo.emplace_back(":authority", host);
    pseudo.emplace_back(":path", target);
  }
  const bool is_chunked = !take(lines, "transfer-encoding").empty();
  const auto length = std::ranges::find(lines, "content-length", &Lines::value_type::first);
  const bool has_content = is_chunked || (length != lines.end() && length->second != "0");
  h2::RequestText sink({.is_absolute = is_absolute}, h2::ListSize(kBytesMax, kFieldsMax));
  bring(behind(pseudo, lines), sink);
  INFO(text);
  REQUIRE(sink.finish(has_content) == h2::Malformed::kNone);
  return respelled(sink.text(), text);
}

// The same of a response head. HTTP/2 has no reason phrase: the test's own stays.
inline std::string response(std::string_view text) {
  const std::string_view start = text.substr(0, text.find("\r\n"));
  Lines lines = lines_of(text.substr(std::min(text.size(), start.size() + 2)));
  if (!start.starts_with("HTTP/1.1 ") || start.substr(9, 3) == "101" || !is_carried(lines)) {
    return {};
  }
  const bool is_chunked = !take(lines, "transfer-encoding").empty();
  h2::ResponseText sink(h2::ListSize(kBytesMax, kFieldsMax));
  bring(behind({{":status", std::string(start.substr(9, 3))}}, lines), sink);
  INFO(text);
  REQUIRE(sink.finish(is_chunked) == h2::Malformed::kNone);
  const std::string& came = sink.text();
  return std::string(start) + respelled(came.substr(came.find("\r\n")), text);
}

// The same of field lines alone.
inline std::string fields(std::string_view text) {
  const Lines lines = lines_of(text);
  if (!is_carried(lines)) return {};
  h2::TrailerText sink(h2::ListSize(kBytesMax, kFieldsMax));
  bring(lines, sink);
  INFO(text);
  REQUIRE(sink.malformed() == h2::Malformed::kNone);
  return respelled(std::string(sink.text()), text);
}

// Keeps `text`, which a head borrows, until the tests end. Returns `otherwise` if `text` is empty.
inline std::string_view keep(std::string text, std::string_view otherwise) {
  static std::deque<std::string> kept;
  return text.empty() ? otherwise : std::string_view(kept.emplace_back(std::move(text)));
}

}  // namespace encore::http::over_http2
