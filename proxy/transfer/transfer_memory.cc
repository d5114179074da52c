#include "proxy/transfer/transfer_memory.h"

#include <algorithm>

#include "base/check.h"

namespace encore::server {

void TransferMemory::Holding::set(TransferMemory& memory, const net::Address& client,
                                  std::uint64_t bytes) {
  if (bytes == bytes_) return;
  if (account_ == nullptr) {
    memory_ = &memory;
    account_ = memory.enter(client);
  }
  // Unsigned: the difference may be below zero, and wraps back where it is added.
  const std::uint64_t more = bytes - bytes_;
  account_->bytes.fetch_add(more, std::memory_order_relaxed);
  memory_->bytes_.fetch_add(more, std::memory_order_relaxed);
  bytes_ = bytes;
}

void TransferMemory::Holding::close() {
  if (account_ == nullptr) return;
  account_->bytes.fetch_sub(bytes_, std::memory_order_relaxed);
  memory_->bytes_.fetch_sub(bytes_, std::memory_order_relaxed);
  memory_->leave(account_);
}

TransferMemory::Key TransferMemory::key_of(const net::Address& client) {
  Key key = client.mapped_bytes();
  constexpr std::size_t kMappedPrefix = 10;  // zero bytes, then two of 0xFF
  const bool mapped =
      std::all_of(key.begin(), key.begin() + kMappedPrefix, [](auto byte) { return byte == 0; }) &&
      key[kMappedPrefix] == 0xFF && key[kMappedPrefix + 1] == 0xFF;
  if (!mapped) std::fill(key.begin() + key.size() / 2, key.end(), 0);
  return key;
}

TransferMemory::Shard& TransferMemory::shard_of(const Key& key) {
  std::size_t mixed = 0;
  for (const std::uint8_t byte : key) mixed = mixed * 31 + byte;
  return shards_[mixed % kShards];
}

TransferMemory::Account* TransferMemory::enter(const net::Address& client) {
  const Key key = key_of(client);
  Shard& shard = shard_of(key);
  const MutexLock lock(shard.mutex);
  std::unique_ptr<Account>& account = shard.accounts[key];
  if (account == nullptr) {
    account = std::make_unique<Account>();
    account->key = key;
  }
  ++account->holdings;
  return account.get();
}

void TransferMemory::leave(Account* account) {
  Shard& shard = shard_of(account->key);
  const MutexLock lock(shard.mutex);
  if (--account->holdings != 0) return;
  ENCORE_CHECK(account->bytes.load(std::memory_order_relaxed) == 0,
               "a client that holds nothing any more has no bytes left");
  // A copy of the key, for its own lies in the account that goes.
  shard.accounts.erase(Key(account->key));
}

std::size_t TransferMemory::clients() const {
  std::size_t count = 0;
  for (const Shard& shard : shards_) {
    const MutexLock lock(shard.mutex);
    count += shard.accounts.size();
  }
  return count;
}

}  // namespace encore::server
