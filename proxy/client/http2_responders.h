// Http2Responders: what answers the streams of one connection of HTTP/2, and stands in front of
// them. Confined to its worker.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "base/time.h"
#include "proxy/client/client_connection.h"
#include "proxy/client/http2_responder.h"
#include "proxy/net/deferred_deleter.h"

namespace encore::server {

class Http2Responders {
 public:
  // `retired` is borrowed.
  explicit Http2Responders(net::DeferredDeleter& retired) : retired_(retired) {}
  Http2Responders(const Http2Responders&) = delete;
  Http2Responders& operator=(const Http2Responders&) = delete;

  Http2Responder* keep(std::unique_ptr<Http2Responder> work);
  // Destroys it at the end of the turn. REQUIRES: it is kept.
  void retire(Http2Responder& work);
  // Resumes what answers the stream; nothing if there is none any more.
  void resume(h2::StreamId stream);
  // Calls for each; the call may retire any of them.
  template <typename Call>
  void for_each(Call call) {
    for (std::size_t i = works_.size(); i-- > 0;) {
      if (i < works_.size()) call(*works_[i]);
    }
  }
  template <typename Test>
  bool has(Test test) const {
    for (const auto& work : works_) {
      if (test(*work)) return true;
    }
    return false;
  }
  // All slow ones together, as those see the client who look for slow readers.
  std::optional<SlowReader> slow_reader() const;
  bool empty() const { return works_.empty(); }

 private:
  net::DeferredDeleter& retired_;
  std::vector<std::unique_ptr<Http2Responder>> works_;
};

}  // namespace encore::server
