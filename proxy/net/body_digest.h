// BodyDigest: whether a body is what its SHA-256 says, found out while it comes. Confined to its
// fetch.
#pragma once

#include <memory>
#include <string>
#include <string_view>

extern "C" {
struct evp_md_ctx_st;
}

namespace encore::net {

class BodyDigest {
 public:
  // `expected_hex`: 64 digits in lower case.
  explicit BodyDigest(std::string expected_hex);
  ~BodyDigest();
  BodyDigest(BodyDigest&&) noexcept;
  BodyDigest& operator=(BodyDigest&&) noexcept;

  void add(std::string_view bytes);
  // True if the body is right if it ends with these bytes.
  bool is_right_with(std::string_view last) const;

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  using Context = std::unique_ptr<evp_md_ctx_st, Free>;

  std::string expected_;
  Context context_;
};

}  // namespace encore::net
