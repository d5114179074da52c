// ClientIdentity: who sends the requests of one connection: its peer, or the client that a PROXY
// header or a trusted proxy's field names; its TLS, the CONNECT that it is inside of, and its
// login. One a connection, whatever protocol frames the requests. Confined to its worker.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "proxy/http/message.h"
#include "proxy/intake/login_check.h"
#include "proxy/net/address.h"
#include "proxy/observe/client_tls.h"
#include "proxy/request/request_ids.h"
#include "proxy/request/request_view.h"
#include "proxy/settings/listener_policy.h"
#include "proxy/settings/runtime.h"

namespace encore::server {

class ClientIdentity {
 public:
  // `resume` is called from the loop when a request that had to wait may be brought again.
  ClientIdentity(const net::Address& peer, std::function<void()> resume)
      : from_(peer), client_(peer), resume_(std::move(resume)) {}
  // Another protocol goes on with the connection of `from`, of which no request waits. If many
  // requests may wait at a time, each takes its check with it: take_logins().
  ClientIdentity(ClientIdentity&& from, std::function<void()> resume)
      : ClientIdentity(std::move(from)) {
    resume_ = std::move(resume);
    if (logins_ != nullptr) logins_->set_resume(resume_);
  }

  // The PROXY header in front of all requests.
  void await_header() { awaits_header_ = true; }
  bool awaits_header() const { return awaits_header_; }
  enum class Header : std::uint8_t { kIncomplete, kTaken, kRefused };
  struct HeaderTaken {
    Header header = Header::kRefused;
    std::size_t used = 0;  // bytes of it, where it is taken
  };
  // Reads it where the peer may send one. REQUIRES: it is awaited.
  HeaderTaken take_header(const ListenerPolicy& policy, std::string_view input);

  // Facts of the client's TLS with us; null: nothing is kept of it.
  void set_tls(std::shared_ptr<const ClientTls> tls) { tls_ = std::move(tls); }
  const ClientTls* tls() const { return tls_.get(); }
  // Requests come inside this CONNECT from here on. Its client is the one identified last.
  void enter(InterceptedConnect inside) {
    inside_ = std::make_unique<const InterceptedConnect>(std::move(inside));
    has_more_ = true;
  }
  const InterceptedConnect* inside() const { return inside_.get(); }

  // The peer, or whom a PROXY header has named in its stead.
  const net::Address& from() const { return from_; }
  // The client of the request that was identified last; before the first, from().
  const net::Address& client() const { return client_; }
  // True if the next request may be another client's.
  bool may_change() const { return has_more_ && inside_ == nullptr; }
  // Identifies the client of a request, and says so in `view`, which knows already whether the
  // connection is of TLS. `policy` may be null.
  void identify(const ListenerPolicy* policy, const http::Fields& fields, RequestView& view) {
    if (tls_ != nullptr) view.tls = &tls_;
    if (policy == nullptr && !has_more_) [[likely]] {
      view.secure = view.secure || secure_;
    } else {
      identify_by(policy, fields, view);
    }
  }
  // True if the configuration still decrypts the CONNECT that requests come inside of. REQUIRES:
  // inside().
  bool is_still_decrypted(const Runtime& runtime, MonotonicTime now);

  // The login of the request that was identified last. Nothing of it is a client's word that was
  // not found right.
  LoginCheck& logins() {
    if (logins_ == nullptr) logins_ = std::make_unique<LoginCheck>(resume_);
    return *logins_;
  }
  // Gives away the check that a request waits for; `resume` is called when it is done.
  std::unique_ptr<LoginCheck> take_logins(std::function<void()> resume) {
    if (logins_ != nullptr) logins_->set_resume(std::move(resume));
    return std::move(logins_);
  }
  // The request is brought again with the check that it has waited for.
  void bring_logins(std::unique_ptr<LoginCheck> logins) {
    logins_ = std::move(logins);
    if (logins_ != nullptr) logins_->set_resume(resume_);
  }
  // The user's name, or what the file calls a token; empty: nobody has logged in.
  std::string_view user() const {
    return logins_ == nullptr ? std::string_view() : logins_->user();
  }
  // By which that is known over reloads (Credentials::mark_of()).
  std::string_view login() const {
    return logins_ == nullptr ? std::string_view() : logins_->mark();
  }

  // Returns the id of a request: the one from a trusted proxy if it is a valid name, else a new
  // one; valid until the next call. `policy` may be null. `head` is null if there is none.
  std::string_view request_id(RequestIds& ids, const ListenerPolicy* policy,
                              const http::RequestHead* head) const;

 private:
  ClientIdentity(ClientIdentity&&) = default;

  void identify_by(const ListenerPolicy* policy, const http::Fields& fields, RequestView& view);

  net::Address from_;
  net::Address client_;
  std::shared_ptr<const ClientTls> tls_;
  std::unique_ptr<const InterceptedConnect> inside_;  // null: requests come as they are
  std::unique_ptr<LoginCheck> logins_;                // null: not needed so far
  std::function<void()> resume_;
  std::uint64_t decrypted_by_ = 0;  // the runtime that has said so of its host
  bool awaits_header_ = false;
  bool secure_ = false;    // by the PROXY header
  bool has_more_ = false;  // than its peer to go by: a policy, then or now, or a CONNECT
};

}  // namespace encore::server
