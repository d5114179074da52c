// Certificates for tests: an authority of our own and what it signs, in files of a directory that
// goes with the object.
#pragma once

#include <memory>
#include <string>

namespace encore::net {

class TestCertificates {
 public:
  TestCertificates();
  TestCertificates(const TestCertificates&) = delete;
  TestCertificates& operator=(const TestCertificates&) = delete;
  ~TestCertificates();

  std::string ca_file() const { return directory_ + "/ca.pem"; }
  std::string key_file() const { return directory_ + "/key.pem"; }
  // For origin.test, *.wild.test, 127.0.0.1 and ::1.
  std::string certificate_file() const { return directory_ + "/leaf.pem"; }
  std::string expired_file() const { return directory_ + "/expired.pem"; }
  const std::string& directory() const { return directory_; }

  // Another one of the authority, with a key of its own.
  struct Wanted {
    std::string names;  // "DNS:a.test,DNS:b.test"
    std::string subject = "leaf";
    bool rsa = false;  // else ECDSA with P-256
    long from_days = -10;
    long until_days = 1;
  };
  struct Pair {
    std::string certificate;
    std::string key;
  };
  Pair make(const Wanted& wanted) const;

 private:
  struct Authority;
  std::unique_ptr<Authority> authority_;
  mutable int made_ = 0;
  std::string directory_;
};

// Those of the whole program.
const TestCertificates& certificates();

}  // namespace encore::net
