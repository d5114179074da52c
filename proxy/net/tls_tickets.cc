#include "proxy/net/tls_tickets.h"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/secret_file.h"

namespace encore::net {
namespace {

constexpr std::size_t kTicketFileBytesMax = 64UL * 1024;

std::optional<TlsTickets::Key> random_key() {
  TlsTickets::Key key;
  for (const std::span<unsigned char> part :
       {std::span<unsigned char>(key.name), std::span<unsigned char>(key.cipher),
        std::span<unsigned char>(key.mac)}) {
    if (RAND_bytes(part.data(), static_cast<int>(part.size())) != 1) return std::nullopt;
  }
  return key;
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<TlsTickets::Key> parse_key(std::string_view line) {
  if (line.size() != 2 * TlsTickets::kKeyBytes) return std::nullopt;
  std::array<unsigned char, TlsTickets::kKeyBytes> bytes{};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const int high = digit_of(line[2 * i]);
    const int low = digit_of(line[2 * i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes[i] = static_cast<unsigned char>(high * 16 + low);
  }
  TlsTickets::Key key;
  const auto* from = bytes.begin();
  for (const std::span<unsigned char> part :
       {std::span<unsigned char>(key.name), std::span<unsigned char>(key.cipher),
        std::span<unsigned char>(key.mac)}) {
    std::copy_n(from, part.size(), part.begin());
    from += part.size();
  }
  OPENSSL_cleanse(bytes.data(), bytes.size());
  return key;
}

// In front of saved keys. A cut at the end of a key is no shorter list.
struct SavedHead {
  std::int64_t age;  // nanoseconds
  std::int64_t count;
};

}  // namespace

TlsTickets::~TlsTickets() {
  const MutexLock lock(mutex_);
  OPENSSL_cleanse(keys_.data(), keys_.size() * sizeof(Key));
}

Result<std::shared_ptr<TlsTickets>> TlsTickets::create(MonotonicTime now) {
  const auto key = random_key();
  if (!key) return fail("no random bytes for the keys of session tickets");
  std::shared_ptr<TlsTickets> tickets(new TlsTickets());
  tickets->rotates_ = true;
  const MutexLock lock(tickets->mutex_);
  tickets->keys_.reserve(kOlder + 2);
  tickets->keys_.push_back(*key);
  tickets->made_ = now;
  return tickets;
}

Result<std::shared_ptr<TlsTickets>> TlsTickets::read(const std::string& file) {
  auto text = read_secret_file(file, kTicketFileBytesMax);
  if (!text) return fail(file + ": " + text.error().message);
  std::shared_ptr<TlsTickets> tickets(new TlsTickets());
  const MutexLock lock(tickets->mutex_);
  tickets->keys_.reserve(kFileKeysMax);
  std::string_view rest = *text;
  for (std::size_t number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || line.starts_with('#')) continue;
    const auto key = parse_key(line);
    const std::string where = file + ":" + std::to_string(number) + ": ";
    if (!key) {
      return fail(where + "no key, accepted: 160 hexadecimal digits, as of openssl rand -hex 80");
    }
    if (tickets->keys_.size() == kFileKeysMax) {
      return fail(where + "too many keys, accepted: up to " + std::to_string(kFileKeysMax));
    }
    tickets->keys_.push_back(*key);
  }
  OPENSSL_cleanse(text->data(), text->size());
  if (tickets->keys_.empty()) return fail(file + ": no key in it, accepted: a line each");
  return tickets;
}

std::string TlsTickets::save(MonotonicTime now) {
  const MutexLock lock(mutex_);
  if (!rotates_) return {};
  const SavedHead head = {(now - made_).count(), static_cast<std::int64_t>(keys_.size())};
  std::string bytes(reinterpret_cast<const char*>(&head), sizeof head);
  for (const Key& key : keys_) {
    for (const std::span<const unsigned char> part :
         {std::span<const unsigned char>(key.name), std::span<const unsigned char>(key.cipher),
          std::span<const unsigned char>(key.mac)}) {
      bytes.append(reinterpret_cast<const char*>(part.data()), part.size());
    }
  }
  return bytes;
}

Result<std::shared_ptr<TlsTickets>> TlsTickets::restore(std::string_view bytes, MonotonicTime now) {
  SavedHead head{};
  if (bytes.size() >= sizeof head) std::memcpy(&head, bytes.data(), sizeof head);
  const auto [age, count] = head;
  if (count < 1 || std::cmp_greater(count, kOlder + 1) ||
      bytes.size() != sizeof head + static_cast<std::size_t>(count) * kKeyBytes) {
    return fail("the received session ticket keys are damaged");
  }
  bytes.remove_prefix(sizeof head);
  constexpr std::int64_t kAgeMax = static_cast<std::int64_t>(kOlder + 1) * kLife.count();
  if (age < 0 || age > kAgeMax) {
    return fail("the received session ticket keys have an invalid age");
  }
  std::shared_ptr<TlsTickets> tickets(new TlsTickets());
  tickets->rotates_ = true;
  const MutexLock lock(tickets->mutex_);
  tickets->keys_.reserve(kOlder + 2);
  tickets->made_ = now - Nanoseconds(age);
  for (std::int64_t i = 0; i < count; ++i) {
    Key& key = tickets->keys_.emplace_back();
    for (const std::span<unsigned char> part :
         {std::span<unsigned char>(key.name), std::span<unsigned char>(key.cipher),
          std::span<unsigned char>(key.mac)}) {
      std::memcpy(part.data(), bytes.data(), part.size());
      bytes.remove_prefix(part.size());
    }
  }
  return tickets;
}

// The first call after its time changes the key. After a long time without calls, none of the older
// ones is young enough to stay.
void TlsTickets::rotate(MonotonicTime now) {
  if (!rotates_ || now - made_ < kLife) return;
  const auto key = random_key();
  if (!key) return;  // the present one will do until there is one
  if (now - made_ >= static_cast<std::int64_t>(kOlder + 1) * kLife) {
    OPENSSL_cleanse(keys_.data(), keys_.size() * sizeof(Key));
    keys_.clear();
  }
  keys_.insert(keys_.begin(), *key);
  if (keys_.size() > kOlder + 1) {
    OPENSSL_cleanse(&keys_.back(), sizeof(Key));
    keys_.pop_back();
  }
  made_ = now;
}

TlsTickets::Key TlsTickets::current(MonotonicTime now) {
  const MutexLock lock(mutex_);
  rotate(now);
  return keys_.front();
}

std::optional<TlsTickets::FoundKey> TlsTickets::find(std::span<const unsigned char> name,
                                                     MonotonicTime now) {
  const MutexLock lock(mutex_);
  rotate(now);
  for (const Key& key : keys_) {
    if (std::ranges::equal(key.name, name)) return FoundKey{key, &key == &keys_.front()};
  }
  return std::nullopt;
}

}  // namespace encore::net
