// ViewMaker: resolves target, route and cache key of a parsed request. One a worker, confined to
// it: the key lies in its buffer.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "config/config.h"
#include "filter/hash.h"
#include "proxy/http/message.h"
#include "proxy/net/address.h"
#include "proxy/observe/outcome.h"
#include "proxy/request/request_view.h"
#include "proxy/settings/runtime.h"

namespace encore::server {

// What a connection knows of the listener that accepted it.
struct ListenerContext {
  config::Mode mode = config::Mode::kForward;
  std::size_t index = 0;  // its place in the config
};

// Why a request is refused; status 0: it is not.
struct ViewFault {
  int status = 0;
  Outcome outcome = Outcome::kBadRequest;
  std::string_view detail;
};

class ViewMaker {
 public:
  // All are borrowed; `runtime` is the worker's present one. `doing` learns, for a panic report,
  // whose request was made last; it outlives this.
  ViewMaker(const std::shared_ptr<const Runtime>& runtime, const filter::Seed& identity_seed,
            Doing& doing)
      : runtime_(runtime), identity_seed_(identity_seed), doing_(doing) {}
  ~ViewMaker() { doing_.key = {}; }
  ViewMaker(const ViewMaker&) = delete;
  ViewMaker& operator=(const ViewMaker&) = delete;

  // `view` points into `head` and, with its key, into this until the next call.
  ViewFault make(const http::RequestHead& head, const ListenerContext& listener,
                 const net::Address& client, RequestView& view);

 private:
  const std::shared_ptr<const Runtime>& runtime_;
  const filter::Seed& identity_seed_;
  Doing& doing_;
  std::vector<char> key_buffer_;
};

}  // namespace encore::server
