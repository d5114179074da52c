// Coded forms of stored objects, of any bytes.
#pragma once

#include <span>
#include <string_view>
#include <utility>

#include "proxy/transfer/coded_form.h"
#include "tests/catch.h"

namespace encore::server {

// One that add_form() takes.
inline store::ObjectRef made_form(store::Store& store, const store::Object& object,
                                  coding::Coding coding, std::string_view body) {
  auto writer = store.reserve({.key = object.key(), .length = body.size(), .body = {}});
  REQUIRE(writer);
  REQUIRE((*writer)->body()->append(std::as_bytes(std::span(body))) == body.size());
  (*writer)->body()->complete();
  const CodedForm form = coded_form(head_parts(object), coding, body.size());
  auto made = (*writer)->commit({.key = object.key(),
                                 .meta = std::as_bytes(std::span(&form.meta, 1)),
                                 .head = form.head,
                                 .is_form = true});
  REQUIRE(made);
  return std::move(*made);
}

}  // namespace encore::server
