// Authority: a certificate authority of one's own: the certificate that clients trust, its key, and
// for which hosts it may sign. Immutable once made; thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"

struct evp_pkey_st;
struct x509_st;

namespace encore::ca {

class Authority {
 public:
  // Reads PEM texts; `certificate` may have others behind it, which are not read here. Errors: not
  // of this form, no authority, a key that is another's or of another kind than EC and RSA.
  static Result<Authority> parse(const std::string& certificate, const std::string& key);
  // The same without a key, for who looks only: it signs nothing.
  static Result<Authority> parse_certificate(const std::string& certificate);
  // Reads files. Errors name the file. A key that others than its owner can read or write is an
  // error; its group may read it.
  static Result<Authority> load(const std::string& certificate_file, const std::string& key_file);
  // The same in two steps. A key for service may be a file of this user or of root alone.
  static Result<Authority> load_certificate(const std::string& file);
  Result<void> load_key(const std::string& file);
  Authority(Authority&&) noexcept;
  Authority& operator=(Authority&&) noexcept;
  ~Authority();

  // True if clients take a certificate of ours for a host, or for all below it ("*.a.example"), by
  // the certificate's own constraints. `host` is in lower case.
  bool permits(std::string_view host) const;
  // The names whose hosts, and all hosts below, it may sign for; none: any.
  const std::vector<std::string>& permitted() const { return permitted_; }
  bool excludes_addresses() const { return excludes_addresses_; }

  const std::string& name() const { return name_; }  // its subject's, for people
  WallTime not_before() const { return not_before_; }
  WallTime not_after() const { return not_after_; }
  bool is_valid(WallTime now) const { return now >= not_before_ && now < not_after_; }
  // SHA-256 of the certificate: "AB:CD:...".
  const std::string& fingerprint() const { return fingerprint_; }
  // The certificate alone, to be given away.
  const std::string& pem() const { return pem_; }
  bool has_key() const { return key_ != nullptr; }

  // Borrowed from it.
  x509_st* certificate() const { return certificate_.get(); }
  evp_pkey_st* key() const { return key_.get(); }

 private:
  Authority() = default;
  Result<void> read_certificate();
  Result<void> read_constraints();
  Result<void> read_key(const std::string& text);

  std::shared_ptr<x509_st> certificate_;
  std::shared_ptr<evp_pkey_st> key_;
  std::vector<std::string> permitted_;
  bool excludes_addresses_ = false;
  std::string name_;
  WallTime not_before_;
  WallTime not_after_;
  std::string fingerprint_;
  std::string pem_;
};

// A file of at most 64 KiB. Errors show it.
Result<std::string> read_certificate_file(const std::string& file);

}  // namespace encore::ca
