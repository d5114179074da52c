// The heads of requests and responses as the parser leaves them: views into the caller's bytes,
// each field classified once. A head object is owned by the caller and reused: parsing into it
// again allocates nothing once its field list has grown to the traffic. Thread-compatible.
//
// Views live as long as the bytes that were parsed; code that copies those bytes moves the views
// with rebase().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "proxy/http/field_id.h"
#include "proxy/http/list.h"

namespace encore::http {

// Methods the proxy tells apart. Names are case-sensitive (RFC 9110 9.1).
enum class Method : std::uint8_t {
  kOther,
  kGet,
  kHead,
  kPost,
  kPut,
  kDelete,
  kConnect,
  kOptions,
  kTrace,
  kPatch,
};

Method classify_method(std::string_view text) noexcept;

// GET, HEAD, OPTIONS, TRACE (RFC 9110 9.2.1). An unknown method counts as unsafe.
constexpr bool is_safe(Method method) noexcept {
  return method == Method::kGet || method == Method::kHead || method == Method::kOptions ||
         method == Method::kTrace;
}

// RFC 9110 9.2.2: may be sent again after a connection broke.
constexpr bool is_idempotent(Method method) noexcept {
  return is_safe(method) || method == Method::kPut || method == Method::kDelete;
}

// The minor version of HTTP/1; a higher one than 1 is read as 1 (RFC 9110 2.5). HTTP/2 is that of
// requests alone whose text was written of its frames: it means what that text of HTTP/1.1 does.
enum class Version : std::uint8_t { kHttp10, kHttp11, kHttp2 };

// Turns views of one piece of memory into views of another that holds the same bytes.
struct Rebase {
  std::string_view from;
  std::string_view to;
  // Views of other memory, such as literals, stay.
  void operator()(std::string_view& view) const noexcept {
    const auto offset = reinterpret_cast<std::uintptr_t>(view.data()) -
                        reinterpret_cast<std::uintptr_t>(from.data());
    if (offset <= from.size()) view = {to.data() + offset, view.size()};
  }
};

struct Field {
  std::string_view name;   // as received
  std::string_view value;  // without white space around it
  FieldId id = FieldId::kOther;
};

// The field lines of one head or trailer section, in order.
class Fields {
 public:
  void clear() noexcept {
    lines_.clear();
    present_.clear();
  }
  void reserve(std::size_t lines) { lines_.reserve(lines); }
  void add(const Field& field) {
    lines_.push_back(field);
    present_.insert(field.id);
  }
  // Classifies the name, then adds.
  void add(std::string_view name, std::string_view value) {
    add(Field{name, value, classify_field(name)});
  }

  // Takes all lines with the id out. REQUIRES: not kOther.
  void remove(FieldId id) {
    std::erase_if(lines_, [id](const Field& field) { return field.id == id; });
    present_.erase(id);
  }

  std::size_t size() const noexcept { return lines_.size(); }
  bool empty() const noexcept { return lines_.empty(); }
  const Field* begin() const noexcept { return lines_.data(); }
  const Field* end() const noexcept { return lines_.data() + lines_.size(); }

  // True if any line has the id. One AND.
  bool has(FieldId id) const noexcept { return present_.has(id); }
  bool has_any(FieldSet ids) const noexcept { return present_.intersects(ids); }
  FieldSet present() const noexcept { return present_; }

  // The first line with the id, or null. REQUIRES for the name form: `name` in lower case.
  const Field* find(FieldId id) const noexcept;
  const Field* find(std::string_view lower_name) const noexcept;
  // Its value; empty if there is none.
  std::string_view value(FieldId id) const noexcept {
    const Field* field = find(id);
    return field == nullptr ? std::string_view{} : field->value;
  }
  std::size_t count(FieldId id) const noexcept;

  // Calls f(const Field&) for every line with the id, in order.
  template <typename F>
  void for_each(FieldId id, F&& f) const {
    if (!has(id)) return;
    for (const Field& field : *this) {
      if (field.id == id) f(field);
    }
  }
  // Calls f(std::string_view member) for every non-empty member of the comma list that all lines
  // with the id make together; commas in quoted strings do not separate (RFC 9110 5.6.1).
  template <typename F>
  void for_each_member(FieldId id, F&& f) const {
    for_each(id, [&](const Field& field) {
      ListReader reader(field.value);
      std::string_view member;
      while (reader.next(member)) f(member);
    });
  }
  // True if the comma list of the id has the token, in any case. REQUIRES: token in lower case.
  bool list_has(FieldId id, std::string_view lower_token) const noexcept;

  void rebase(const Rebase& rebase) noexcept {
    for (Field& field : lines_) {
      rebase(field.name);
      rebase(field.value);
    }
  }

 private:
  std::vector<Field> lines_;
  FieldSet present_;
};

struct RequestHead {
  std::string_view method_text;
  std::string_view target;  // as sent: see uri.h
  Fields fields;
  std::size_t head_size = 0;  // bytes from the start of the input to the body
  Method method = Method::kOther;
  Version version = Version::kHttp11;
  bool has_raw_target = false;  // the target has bytes beyond ASCII (Limits::raw_targets)

  void rebase(const Rebase& rebase) noexcept {
    rebase(method_text);
    rebase(target);
    fields.rebase(rebase);
  }
};

struct ResponseHead {
  std::string_view reason;  // may be empty
  Fields fields;
  std::size_t head_size = 0;
  std::uint16_t status = 0;  // 100 to 999
  Version version = Version::kHttp11;

  void rebase(const Rebase& rebase) noexcept {
    rebase(reason);
    fields.rebase(rebase);
  }
};

// The usual phrase of a status code, "Unknown" for others (RFC 9110 15).
std::string_view reason_phrase(unsigned status) noexcept;

}  // namespace encore::http
