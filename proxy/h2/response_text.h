// ResponseText: a response of HTTP/2, written as the head of HTTP/1.1 that says the same, so that
// the parser of proxy/http checks it. Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/h2/field_decoder.h"
#include "proxy/h2/malformed.h"

namespace encore::h2 {

class ResponseText final : public FieldSink {
 public:
  explicit ResponseText(ListSize limit);
  ResponseText(ResponseText&&) = default;
  ~ResponseText();

  bool on_field(std::string_view name, std::string_view value) override;
  // The block has ended. `has_content`: content follows, whose length a head that names none
  // announces as chunked. Returns why the response is refused.
  Malformed finish(bool has_content);

  // The head with its empty line. REQUIRES: finish() has returned kNone.
  std::string& text() { return text_; }
  // 0 before finish().
  unsigned status() const { return status_; }
  std::optional<std::uint64_t> length() const { return length_; }
  bool is_out_of_fields() const override { return size_.is_out_of_fields(); }

 private:
  Malformed on_status(std::string_view name, std::string_view value);

  std::string text_;
  std::optional<std::uint64_t> length_;
  ListSize size_;
  unsigned status_ = 0;
  Malformed malformed_ = Malformed::kNone;
  bool has_fields_ = false;
};

}  // namespace encore::h2
