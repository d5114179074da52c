#include "proxy/ca/authority.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/secret_file.h"
#include "base/text.h"
#include "proxy/ca/handles.h"
#include "proxy/ca/leaf.h"

namespace encore::ca {
namespace {

constexpr std::size_t kFileBytesMax = 64 * 1024;

Owned<BIO> reader_of(const std::string& text) {
  return Owned<BIO>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
}

// A password is not asked for: nobody sits there.
int no_password(char*, int, int, void*) { return 0; }

WallTime time_of(const ASN1_TIME* time) {
  std::tm broken{};
  if (ASN1_TIME_to_tm(time, &broken) != 1) return {};
  return WallTime(std::chrono::seconds(::timegm(&broken)));
}

std::string hex_of(const unsigned char* bytes, std::size_t size) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string text;
  for (std::size_t i = 0; i < size; ++i) {
    if (i > 0) text += ':';
    text += kDigits[bytes[i] >> 4U];
    text += kDigits[bytes[i] & 0xfU];
  }
  return text;
}

// The last common name, without what a terminal would obey.
std::string common_name(const X509_NAME* name) {
  const int at = X509_NAME_get_index_by_NID(name, NID_commonName, -1);
  if (at < 0) return {};
  const ASN1_STRING* text = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at));
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, text);
  if (size < 0) return {};
  std::string shown(reinterpret_cast<const char*>(utf8), static_cast<std::size_t>(size));
  OPENSSL_free(utf8);
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return shown;
}

bool is_kind_we_sign_with(const EVP_PKEY* key) {
  return EVP_PKEY_is_a(key, "EC") == 1 || EVP_PKEY_is_a(key, "RSA") == 1;
}

Result<std::string> read_file(const std::string& file) {
  const auto failed = [&] { return fail(file + ": " + std::strerror(errno)); };
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return failed();
  const std::unique_ptr<const int, void (*)(const int*)> closed(
      &descriptor, [](const int* it) { ::close(*it); });
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return failed();
  if (!S_ISREG(status.st_mode)) return fail(file + ": is not a regular file");
  std::string text(kFileBytesMax + 1, '\0');
  std::size_t used = 0;
  while (used < text.size()) {
    const ssize_t got = ::read(descriptor, text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return failed();
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  if (used > kFileBytesMax) return fail(file + ": is larger than 64 KiB");
  text.resize(used);
  return text;
}

Result<std::string> read_key_file(const std::string& file, SecretOwner owner) {
  auto text = read_secret_file(file, kFileBytesMax, owner);
  if (!text) return fail(file + ": " + text.error().message);
  return text;
}

}  // namespace

std::string openssl_reason() {
  const unsigned long code = ERR_get_error();
  ERR_clear_error();
  const char* const reason = code == 0 ? nullptr : ERR_reason_error_string(code);
  return reason == nullptr ? "unknown error" : reason;
}

Result<std::string> read_certificate_file(const std::string& file) { return read_file(file); }

Authority::Authority(Authority&&) noexcept = default;
Authority& Authority::operator=(Authority&&) noexcept = default;
Authority::~Authority() = default;

Result<Authority> Authority::parse_certificate(const std::string& certificate) {
  ERR_clear_error();
  Authority authority;
  const Owned<BIO> text = reader_of(certificate);
  authority.certificate_ =
      Owned<X509>(PEM_read_bio_X509(text.get(), nullptr, &no_password, nullptr));
  if (authority.certificate_ == nullptr) {
    ERR_clear_error();
    return fail("contains no PEM certificate");
  }
  if (auto read = authority.read_certificate(); !read) return std::unexpected(read.error());
  if (auto read = authority.read_constraints(); !read) return std::unexpected(read.error());
  return authority;
}

Result<Authority> Authority::parse(const std::string& certificate, const std::string& key) {
  auto authority = parse_certificate(certificate);
  if (!authority) return authority;
  if (auto read = authority->read_key(key); !read) return std::unexpected(read.error());
  return authority;
}

Result<void> Authority::read_key(const std::string& key) {
  const Owned<BIO> text = reader_of(key);
  key_ = Owned<EVP_PKEY>(PEM_read_bio_PrivateKey(text.get(), nullptr, &no_password, nullptr));
  ERR_clear_error();
  if (!has_key())
    return fail("contains no PEM key, or one with a password; write it without a password");
  if (!is_kind_we_sign_with(key_.get())) {
    return fail("has an unsupported type; accepted: EC, RSA");
  }
  const bool fits = X509_check_private_key(certificate_.get(), key_.get()) == 1;
  ERR_clear_error();
  if (!fits) return fail("does not match the certificate");
  return {};
}

Result<Authority> Authority::load(const std::string& certificate_file,
                                  const std::string& key_file) {
  auto authority = load_certificate(certificate_file);
  if (!authority) return authority;
  const auto key = read_key_file(key_file, SecretOwner::kAnybody);
  if (!key) return std::unexpected(key.error());
  if (auto read = authority->read_key(*key); !read) {
    return fail(key_file + ": " + read.error().message);
  }
  return authority;
}

Result<Authority> Authority::load_certificate(const std::string& file) {
  const auto text = read_certificate_file(file);
  if (!text) return std::unexpected(text.error());
  auto authority = parse_certificate(*text);
  if (!authority) return fail(file + ": " + authority.error().message);
  return authority;
}

Result<void> Authority::load_key(const std::string& file) {
  const auto text = read_key_file(file, SecretOwner::kThisUserOrRoot);
  if (!text) return std::unexpected(text.error());
  if (auto read = read_key(*text); !read) return fail(file + ": " + read.error().message);
  return {};
}

Result<void> Authority::read_certificate() {
  X509* const certificate = certificate_.get();
  // Also reads what it says of itself, once for all threads.
  if (X509_check_ca(certificate) != 1) return fail("is not a CA certificate");
  if ((X509_get_key_usage(certificate) & KU_KEY_CERT_SIGN) == 0) {
    return fail("may not sign certificates (keyUsage)");
  }
  name_ = common_name(X509_get_subject_name(certificate));
  not_before_ = time_of(X509_get0_notBefore(certificate));
  not_after_ = time_of(X509_get0_notAfter(certificate));
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  const Owned<BIO> text(BIO_new(BIO_s_mem()));
  if (X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1 || text == nullptr ||
      PEM_write_bio_X509(text.get(), certificate) != 1) {
    return fail(openssl_reason());
  }
  fingerprint_ = hex_of(digest.data(), size);
  char* bytes = nullptr;
  const long length = BIO_get_mem_data(text.get(), &bytes);
  pem_.assign(bytes, static_cast<std::size_t>(length));
  return {};
}

Result<void> Authority::read_constraints() {
  int critical = 0;
  const Owned<NAME_CONSTRAINTS> constraints(static_cast<NAME_CONSTRAINTS*>(
      X509_get_ext_d2i(certificate_.get(), NID_name_constraints, &critical, nullptr)));
  if (constraints == nullptr) {
    // -1: there are none; else they are there, and not to be read.
    if (critical == -1) return {};
    return fail("has unreadable name constraints");
  }
  for (int i = 0; i < sk_GENERAL_SUBTREE_num(constraints->permittedSubtrees); ++i) {
    const GENERAL_NAME* base = sk_GENERAL_SUBTREE_value(constraints->permittedSubtrees, i)->base;
    if (base->type != GEN_DNS) continue;
    const ASN1_IA5STRING* text = base->d.dNSName;
    std::string name = lower_ascii({reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                                    static_cast<std::size_t>(ASN1_STRING_length(text))});
    // They are shown, and written into lines for shells.
    if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-_.") != std::string::npos) {
      return fail("has name constraints that are not host names");
    }
    permitted_.push_back(std::move(name));
  }
  for (int i = 0; i < sk_GENERAL_SUBTREE_num(constraints->excludedSubtrees); ++i) {
    const GENERAL_NAME* base = sk_GENERAL_SUBTREE_value(constraints->excludedSubtrees, i)->base;
    excludes_addresses_ |= base->type == GEN_IPADD;
  }
  return {};
}

bool Authority::permits(std::string_view host) const {
  // An authority that may sign for all hosts below a name may sign for any host there.
  const bool below = host.starts_with("*.");
  const std::string name = below ? "any-host." + std::string(host.substr(2)) : std::string(host);
  const Owned<NAME_CONSTRAINTS> constraints(static_cast<NAME_CONSTRAINTS*>(
      X509_get_ext_d2i(certificate_.get(), NID_name_constraints, nullptr, nullptr)));
  if (constraints == nullptr) return true;
  const Owned<X509> leaf(X509_new());
  if (leaf == nullptr || !add_host(*leaf, name)) return false;
  // The check uses the certificate's parsed extensions, so these have to be parsed first.
  (void)X509_get_extension_flags(leaf.get());
  const bool good = NAME_CONSTRAINTS_check(leaf.get(), constraints.get()) == X509_V_OK;
  ERR_clear_error();
  return good;
}

}  // namespace encore::ca
