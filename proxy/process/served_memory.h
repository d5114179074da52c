// ServedMemory: the hand-over of the process's own admission memory. Confined to the main thread;
// what takes long is done elsewhere.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "proxy/net/loop.h"
#include "proxy/process/handover.h"
#include "proxy/process/proxy.h"
#include "proxy/process/token.h"

namespace encore::server {

class ServedMemory final : public MemoryHandover {
 public:
  // Runs `work` on another thread and then `done` on this one; false where it takes no more.
  using Submit = std::function<bool(net::Loop::Function work, net::Loop::Function done)>;
  // `proxy` is null until it is made.
  ServedMemory(const std::unique_ptr<Proxy>& proxy, Submit submit)
      : proxy_(proxy), submit_(std::move(submit)) {}

  // Takes the token of admin.token_file from now on. Errors: as Token::read(); nothing has changed
  // then.
  Result<void> read_token(const config::Config& config);
  void set_token(const std::optional<Token>& token) { token_ = token; }
  const Token* token() const override { return token_ ? &*token_ : nullptr; }

  // No more than two copies are held at a time: who asks within a minute of the last has the same,
  // and so has who asks while both are on their way.
  bool save(std::move_only_function<void(Saved)> done) override;
  bool adopt(std::string bytes, std::move_only_function<void(Adopted)> done) override;
  // Adopts within this call, for a process that does not serve yet. Logs the result.
  Adopted adopt_now(std::string_view bytes);

 private:
  const std::unique_ptr<Proxy>& proxy_;
  Submit submit_;
  std::optional<Token> token_;  // set if one is configured
  // Copies, while they have not gone out.
  std::weak_ptr<const std::string> latest_;
  std::weak_ptr<const std::string> former_;
  MonotonicTime latest_made_{};
  bool saving_ = false;
  std::vector<std::move_only_function<void(Saved)>> waiting_;  // for the one being saved
  bool adopting_ = false;
};

}  // namespace encore::server
