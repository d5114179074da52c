// The coded forms of a stored response (store::Object::form): their facts in addition to the bytes,
// and how they stay with it when it is freshened. Thread-compatible. Why forms are not variants of
// the key: docs/decisions/0250.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "proxy/coding/coding.h"
#include "proxy/store/store.h"
#include "proxy/transfer/response.h"

namespace encore::server {

// The head of an object's form in a coding and its record, from those of the object. `length` is
// that of the form's body. Without trailers that are digests of other bytes.
struct CodedForm {
  ObjectMeta meta;
  std::string head;
};
CodedForm coded_form(const HeadParts& identity, coding::Coding coding, std::uint64_t length);

// The lines of a trailer section without those that are a digest of the body as it came.
std::string without_body_digests(std::string_view trailers);

// Gives the forms of `old` to `made`, which is the same response with another head: each under a
// head derived from that. Forms without memory are left out, to be made again.
void carry_forms(store::Store& store, const store::Object& old, const store::Object& made);

}  // namespace encore::server
