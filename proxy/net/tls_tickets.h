// TlsTickets: the keys of session tickets, by which clients resume a session without state in the
// server. They live outside the servers (TlsServer), so that a reload breaks no ticket.
// Thread-safe. Why tickets stay with names: docs/decisions/0240.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mutex.h"
#include "base/time.h"

namespace encore::net {

class TlsTickets {
 public:
  // As a line of a file has it, in hexadecimal digits: 80 bytes.
  struct Key {
    std::array<unsigned char, 16> name{};
    std::array<unsigned char, 32> cipher{};  // AES-256-CBC
    std::array<unsigned char, 32> mac{};     // HMAC-SHA-256
  };
  static constexpr std::size_t kKeyBytes = 80;
  // Keys of our own: a new one after so long, and older ones that are still understood. Nobody who
  // takes a key from the memory of the process reads what was said more than a day and a half ago.
  static constexpr Nanoseconds kLife = std::chrono::hours(12);
  static constexpr std::size_t kOlder = 2;
  static constexpr std::size_t kFileKeysMax = 16;

  // Keys that nobody else has. Errors: no random bytes to be had.
  static Result<std::shared_ptr<TlsTickets>> create(MonotonicTime now);
  // Keys of a file that several machines share: a line each, of which the first encrypts and all
  // decrypt; nothing but the file changes them. Errors show the file, and nothing of a key.
  static Result<std::shared_ptr<TlsTickets>> read(const std::string& file);
  // Goes on with what save() has written. Errors: something else, or older than a key may be.
  static Result<std::shared_ptr<TlsTickets>> restore(std::string_view bytes, MonotonicTime now);
  TlsTickets(const TlsTickets&) = delete;
  TlsTickets& operator=(const TlsTickets&) = delete;
  ~TlsTickets();

  // The keys and their age, for a process on this machine that takes the place of this one: a
  // secret. Empty for those of a file.
  std::string save(MonotonicTime now);
  // Returns the key that encrypts tickets from now on.
  Key current(MonotonicTime now);
  struct FoundKey {
    Key key;
    bool is_current = false;
  };
  // Nothing: nobody's, or too old.
  std::optional<FoundKey> find(std::span<const unsigned char> name, MonotonicTime now);

 private:
  TlsTickets() = default;
  void rotate(MonotonicTime now) ENCORE_REQUIRES(mutex_);

  Mutex mutex_;
  std::vector<Key> keys_ ENCORE_GUARDED_BY(mutex_);  // the current one first
  MonotonicTime made_ ENCORE_GUARDED_BY(mutex_){};
  bool rotates_ = false;
};

}  // namespace encore::net
