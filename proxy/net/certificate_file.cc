#include "proxy/net/certificate_file.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <fstream>

#include "base/secret_file.h"

namespace encore::net {
namespace {

constexpr std::size_t kChainMax = 16;

std::string text_of(WallTime time) {
  const std::time_t seconds =
      std::chrono::floor<std::chrono::seconds>(time.time_since_epoch()).count();
  std::tm parts{};
  ::gmtime_r(&seconds, &parts);
  std::array<char, 64> text;
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts)};
}

Result<void> check_times(const X509* certificate, std::size_t place, WallTime now) {
  const WallTime from = time_of(X509_get0_notBefore(certificate));
  const WallTime until = time_of(X509_get0_notAfter(certificate));
  const std::string which = "certificate " + ordinal(place);
  if (now < from) return fail(which + " is not valid before " + text_of(from));
  if (now >= until) return fail(which + " has expired at " + text_of(until));
  return {};
}

}  // namespace

std::string ordinal(std::size_t place) { return std::to_string(place) + " of the file"; }

Result<std::string> read_small_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes(kFileBytesMax + 1, '\0');
  in.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!in.is_open()) return fail(std::string("cannot be read: ") + std::strerror(errno));
  if (in.bad() || !(in || in.eof())) return fail("cannot be read");
  bytes.resize(static_cast<std::size_t>(in.gcount()));
  if (bytes.size() > kFileBytesMax) {
    return fail("larger than " + std::to_string(kFileBytesMax) + " bytes");
  }
  return bytes;
}

OpenSsl<BIO> reading(const std::string& bytes) {
  return OpenSsl<BIO>(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())));
}

int no_password(char*, int, int, void*) { return -1; }

Result<std::vector<OpenSsl<X509>>> read_certificates(const std::string& file) {
  const auto text = read_small_file(file);
  if (!text) return fail(text.error().message);
  ERR_clear_error();
  const OpenSsl<BIO> bio = reading(*text);
  std::vector<OpenSsl<X509>> certificates;
  while (X509* one = PEM_read_bio_X509_AUX(bio.get(), nullptr, &no_password, nullptr)) {
    certificates.emplace_back(one);
    if (certificates.size() > kChainMax) {
      return fail("more than " + std::to_string(kChainMax) + " certificates");
    }
  }
  const bool at_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
  ERR_clear_error();
  if (!at_end) return fail("certificate " + ordinal(certificates.size() + 1) + " is damaged");
  if (certificates.empty()) return fail("contains no certificate, accepted: PEM, leaf first");
  return certificates;
}

Result<OpenSsl<EVP_PKEY>> read_private_key(const std::string& file) {
  auto text = read_secret_file(file, kFileBytesMax);
  if (!text) return fail(text.error().message);
  ERR_clear_error();
  const OpenSsl<BIO> bio = reading(*text);
  OpenSsl<EVP_PKEY> key(PEM_read_bio_PrivateKey(bio.get(), nullptr, &no_password, nullptr));
  const bool is_locked = text->contains("ENCRYPTED");
  OPENSSL_cleanse(text->data(), text->size());
  ERR_clear_error();
  if (key == nullptr) {
    return fail(is_locked ? "the key has a password, accepted: a key without one"
                          : "contains no private key, accepted: PEM");
  }
  return key;
}

Result<void> check_chain(const std::vector<OpenSsl<X509>>& chain, WallTime now) {
  for (std::size_t i = 0; i + 1 < chain.size(); ++i) {
    const X509* const issuer = chain[i + 1].get();
    if (X509_NAME_cmp(X509_get_issuer_name(chain[i].get()), X509_get_subject_name(issuer)) == 0) {
      continue;
    }
    return fail("the chain is out of order: certificate " + ordinal(i + 1) + " was issued by \"" +
                name_text(X509_get_issuer_name(chain[i].get())) + "\", but the next is \"" +
                name_text(X509_get_subject_name(issuer)) + "\"");
  }
  for (std::size_t i = 0; i < chain.size(); ++i) {
    if (auto valid = check_times(chain[i].get(), i + 1, now); !valid) return valid;
  }
  return {};
}

std::unexpected<Error> in_file(std::string_view what, const std::string& file,
                               const std::string& why) {
  return fail(std::string(what) + " \"" + file + "\": " + why);
}

}  // namespace encore::net
