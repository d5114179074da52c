// Stored objects, as the server would have made them, from their parts.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/check.h"
#include "proxy/store/store.h"
#include "proxy/transfer/response.h"

namespace encore::server {

struct ObjectText {
  std::string_view key;  // the primary one
  std::string_view names = {};
  std::string_view variant_key = {};
  std::string_view tags = {};  // each with LF
  std::string_view fields = {};
  http::StoredMeta http = {};
  std::string_view body = {};
};

// A small one.
inline store::ObjectRef make_object(store::Store& store, const ObjectText& text) {
  std::string head =
      "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(text.body.size()) + "\r\n";
  head += text.fields;
  ObjectMeta meta;
  meta.http = text.http;
  meta.http.head_bytes = static_cast<std::uint32_t>(head.size());
  meta.primary_bytes = static_cast<std::uint32_t>(text.key.size());
  meta.names_bytes = static_cast<std::uint32_t>(text.names.size());
  meta.tag_bytes = static_cast<std::uint32_t>(text.tags.size());
  head += text.tags;
  std::string key(text.key);
  key += text.names;
  key += text.variant_key;
  const iovec body{const_cast<char*>(text.body.data()), text.body.size()};  // not written to
  auto object = store.make_small(
      {.key = key, .meta = std::as_bytes(std::span(&meta, 1)), .head = head}, {&body, 1});
  ENCORE_CHECK(object.has_value(), "room for an object");
  return std::move(*object);
}

}  // namespace encore::server
