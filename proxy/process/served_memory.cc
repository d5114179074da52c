#include "proxy/process/served_memory.h"

#include <utility>

#include "proxy/observe/log.h"

namespace encore::server {
namespace {

// Long enough for nodes that start together, short enough that little is missing.
constexpr Nanoseconds kSharedFor = std::chrono::seconds(60);

void log_adoption(const Adopted& adopted) {
  if (!adopted) {
    log::warn("no filter was adopted: {}", adopted.error().message);
    return;
  }
  log::info("adopted {} generations of {} shards, {} insertions, false-positive rate {:.2g}",
            adopted->generations, adopted->shards, adopted->insertions, adopted->fpr);
}

}  // namespace

Result<void> ServedMemory::read_token(const config::Config& config) {
  if (config.admin.token_file.empty()) {
    token_.reset();
    return {};
  }
  auto token = Token::read(config.admin.token_file);
  if (!token) return std::unexpected(token.error());
  token_ = *token;
  return {};
}

bool ServedMemory::save(std::move_only_function<void(Saved)> done) {
  if (saving_) {
    waiting_.push_back(std::move(done));
    return true;
  }
  const MonotonicTime now = monotonic_now();
  Saved latest = latest_.lock();
  if (latest != nullptr && (now - latest_made_ < kSharedFor || !former_.expired())) {
    done(std::move(latest));
    return true;
  }
  auto saved = std::make_shared<std::string>();
  auto work = [this, saved] { *saved = proxy_->shared().kernel->save_admission(monotonic_now()); };
  saving_ = submit_(std::move(work), [this, saved] {
    saving_ = false;
    for (auto& waiting : std::exchange(waiting_, {})) waiting(saved);
  });
  if (!saving_) return false;
  waiting_.push_back(std::move(done));
  former_ = std::exchange(latest_, saved);
  latest_made_ = now;
  return true;
}

bool ServedMemory::adopt(std::string bytes, std::move_only_function<void(Adopted)> done) {
  if (adopting_) return false;
  auto adopted = std::make_shared<Adopted>();
  auto work = [this, adopted, bytes = std::move(bytes), config = proxy_->config()] {
    *adopted = adopt_memory(*proxy_->shared().kernel, config, bytes, monotonic_now());
  };
  adopting_ = submit_(std::move(work), [this, adopted, done = std::move(done)]() mutable {
    adopting_ = false;
    log_adoption(*adopted);
    done(std::move(*adopted));
  });
  return adopting_;
}

Adopted ServedMemory::adopt_now(std::string_view bytes) {
  auto adopted = adopt_memory(*proxy_->shared().kernel, proxy_->config(), bytes, monotonic_now());
  log_adoption(adopted);
  return adopted;
}

}  // namespace encore::server
