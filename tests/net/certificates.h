// Certificates for tests: an authority of our own and what it signs, in files of a directory that
// goes with the object.
#pragma once

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

 private:
  std::string directory_;
};

}  // namespace encore::net
