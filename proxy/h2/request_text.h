// RequestText: a request of HTTP/2, written as the head of HTTP/1.1 that says the same, so that the
// parser of proxy/http checks it and all that follows sees one kind of request. A request that
// could be read as anything else than it is, or is malformed by RFC 9113 8.1.1, is refused before.
//
// Written while the block is decoded. Thread-compatible.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "proxy/h2/field_decoder.h"
#include "proxy/h2/malformed.h"
#include "proxy/h2/priority.h"

namespace encore::h2 {

class RequestText final : public FieldSink {
 public:
  enum class Kind : std::uint8_t {
    kRequest,
    kConnect,   // RFC 9113 8.5: a tunnel to the authority
    kExtended,  // RFC 8441: another protocol at the path
  };
  struct Form {
    // The request line names the whole URI, as clients send it to a forward proxy.
    bool is_absolute = false;
    // Takes extended CONNECT.
    bool takes_protocols = true;
  };

  RequestText(const Form& form, ListSize limit);
  RequestText(RequestText&&) = default;
  ~RequestText();

  bool on_field(std::string_view name, std::string_view value) override;
  // The block has ended. `has_content`: the stream goes on. Returns why the request is refused.
  Malformed finish(bool has_content);

  // The head with its empty line. Content of unknown length is announced as chunked, extended
  // CONNECT is GET with Upgrade. REQUIRES: finish() has returned kNone.
  std::string& text() { return text_; }
  Kind kind() const { return kind_; }
  bool is_head() const { return pseudo(Pseudo::kMethod) == "HEAD"; }
  std::string_view authority() const { return pseudo(Pseudo::kAuthority); }
  std::string_view scheme() const { return pseudo(Pseudo::kScheme); }
  // Empty unless kExtended.
  std::string_view protocol() const { return pseudo(Pseudo::kProtocol); }
  // Content-Length; none for tunnels.
  std::optional<std::uint64_t> length() const { return length_; }
  const Priority& priority() const { return priority_; }
  bool is_out_of_fields() const override { return size_.is_out_of_fields(); }

 private:
  enum class Pseudo : std::uint8_t { kMethod, kScheme, kAuthority, kPath, kProtocol };
  struct Place {
    std::uint32_t begin = 0;
    std::uint32_t bytes = 0;
    bool is_there = false;
  };

  std::string_view pseudo(Pseudo which) const {
    const Place& place = places_[static_cast<std::size_t>(which)];
    return std::string_view(values_).substr(place.begin, place.bytes);
  }
  bool has(Pseudo which) const { return places_[static_cast<std::size_t>(which)].is_there; }
  Malformed on_pseudo(std::string_view name, std::string_view value);
  Malformed on_regular(std::string_view name, std::string_view value);
  Malformed on_length(std::string_view value);
  Malformed on_host(std::string_view value);
  void add_cookie(std::string_view value);
  Malformed begin();
  Malformed check_connect();
  Malformed check_request() const;
  void append_target();

  std::string text_;
  std::string values_;   // pseudo fields
  std::string cookies_;  // crumbs, joined (RFC 9113 8.2.3)
  std::array<Place, 5> places_ = {};
  std::optional<std::uint64_t> length_;
  ListSize size_;
  const Form form_;
  Malformed malformed_ = Malformed::kNone;
  Kind kind_ = Kind::kRequest;
  Priority priority_;
  bool has_begun_ = false;
  bool has_priority_ = false;
};

// TrailerText: the fields behind the content, as lines. Thread-compatible.
class TrailerText final : public FieldSink {
 public:
  explicit TrailerText(ListSize limit);
  TrailerText(TrailerText&&) = default;
  ~TrailerText();

  bool on_field(std::string_view name, std::string_view value) override;
  Malformed malformed() const { return malformed_; }
  std::string_view text() const { return text_; }
  bool is_out_of_fields() const override { return size_.is_out_of_fields(); }

 private:
  std::string text_;
  ListSize size_;
  Malformed malformed_ = Malformed::kNone;
};

// DiscardedText: a block that is read because the decoder must see it, and for nothing else.
// Thread-compatible.
class DiscardedText final : public FieldSink {
 public:
  explicit DiscardedText(ListSize limit) : size_(limit) {}

  bool on_field(std::string_view name, std::string_view value) override {
    return size_.add(name, value);
  }
  bool is_out_of_fields() const override { return size_.is_out_of_fields(); }

 private:
  ListSize size_;
};

}  // namespace encore::h2
