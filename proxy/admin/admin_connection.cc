#include "proxy/admin/admin_connection.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "proxy/http/framing.h"
#include "proxy/http/head_text.h"
#include "proxy/http/hop_by_hop.h"
#include "proxy/http/interim.h"
#include "proxy/net/quiescence_detector.h"

namespace encore::server {
namespace {

constexpr unsigned kBadRequest = 400;
constexpr unsigned kContentTooLarge = 413;
constexpr unsigned kExpectationFailed = 417;
constexpr unsigned kNotImplemented = 501;
constexpr int kNotModified = 304;

// The path and query of a target, also of one in absolute form (RFC 9112 3.2.2).
std::string_view origin_form_of(std::string_view target) {
  const std::size_t scheme_end = target.find("://");
  if (target.starts_with('/') || scheme_end == std::string_view::npos) return target;
  const std::size_t path = target.find_first_of("/?", scheme_end + 3);
  return path == std::string_view::npos ? "/" : target.substr(path);
}

AdminRequest read_request(const http::RequestHead& head, const net::Address& peer) {
  AdminRequest request;
  request.method = head.method_text;
  const std::string_view target = origin_form_of(head.target);
  const std::size_t path_end = std::min(target.find('?'), target.size());
  request.path = target.substr(0, path_end);
  request.query = target.substr(std::min(path_end + 1, target.size()));
  for (const http::Field& field : head.fields) request.fields.emplace_back(field.name, field.value);
  request.peer = peer;
  return request;
}

}  // namespace

AdminConnection::AdminConnection(Owner& owner, net::Loop& loop, net::Socket socket,
                                 const net::Address& peer)
    : owner_(owner),
      moved_at_(loop.now()),
      self_(std::make_shared<AdminConnection*>(this)),
      stream_(loop, std::move(socket), peer, this) {
  stream_.keep_at_least(owner.options().head_bytes_max);
  stream_.resume_reading();
}

AdminConnection::~AdminConnection() { *self_ = nullptr; }

// One request a call: the others have their turn before the next of a pipeline.
std::size_t AdminConnection::on_data(net::Stream&, std::span<const std::byte> bytes) {
  const std::string_view input(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  in_on_data_ = true;
  std::size_t used = 0;
  if (phase_ == Phase::kHead) used = take_head(input);
  if (phase_ == Phase::kBody) used += take_body(input.substr(used));
  in_on_data_ = false;
  const bool has_no_more = used == input.size() || used == 0;
  if (eof_ && phase_ == Phase::kHead && has_no_more) close(How::kGracefully);
  return used;
}

std::size_t AdminConnection::take_head(std::string_view input) {
  const std::size_t most = owner_.options().head_bytes_max;
  http::RequestHead head;
  http::ParseError error;
  const auto status = http::parse_request(input, {.head_bytes_max = most, .target_bytes_max = most},
                                          progress_, head, error);
  if (status == http::ParseStatus::kIncomplete) {
    if (!deadline_) limit_time(0);
    return 0;
  }
  progress_ = {};
  if (status == http::ParseStatus::kBad) {
    refuse(error.status);
    return input.size();
  }
  begin(head);
  return head.head_size;
}

void AdminConnection::begin(const http::RequestHead& head) {
  keeps_alive_ = http::keep_alive(head);
  is_head_ = head.method == http::Method::kHead;
  version_ = head.version;
  const http::Framing framing = http::request_framing(head);
  if (framing.kind == http::BodyKind::kError) return refuse(framing.status);
  if (head.method == http::Method::kOther) return refuse(kNotImplemented);
  request_ = read_request(head, stream_.peer());
  request_.listener = owner_.options().address;
  request_.over_socket = !owner_.options().socket_file.empty();
  const bool is_chunked = framing.kind == http::BodyKind::kChunked;
  if (!is_chunked && framing.length == 0) return dispatch();

  const AdminOptions& options = owner_.options();
  body_bytes_max_ =
      options.body_bytes_max_for ? options.body_bytes_max_for(request_) : options.body_bytes_max;
  // The size of chunks is known when they have come.
  if (is_chunked ? body_bytes_max_ == 0 : framing.length > body_bytes_max_) {
    request_.body_left_out = is_chunked ? UINT64_MAX : framing.length;
    keeps_alive_ = false;
    return dispatch();
  }
  const http::Expectation expected = http::expectation(head);
  if (expected == http::Expectation::kUnknown) return refuse(kExpectationFailed);
  phase_ = Phase::kBody;
  body_left_ = framing.length;
  if (is_chunked) chunks_.emplace();
  limit_time(is_chunked ? body_bytes_max_ : body_left_);
  if (expected == http::Expectation::kContinue) {
    text_ += "HTTP/1.1 100 Continue\r\n\r\n";
    flush();
  }
}

std::size_t AdminConnection::take_body(std::string_view input) {
  if (chunks_) return take_chunks(input);
  const auto taken = static_cast<std::size_t>(std::min<std::uint64_t>(input.size(), body_left_));
  // Its whole size once there is some of it, so that a large one is not moved about.
  if (taken != 0 && request_.body.empty()) request_.body.reserve(body_left_);
  request_.body += input.substr(0, taken);
  body_left_ -= taken;
  if (body_left_ == 0) dispatch();
  return taken;
}

std::size_t AdminConnection::take_chunks(std::string_view input) {
  using Status = http::ChunkedDecoder::Status;
  std::size_t used = 0;
  while (true) {
    const auto step = chunks_->next(input.substr(used));
    used += step.consumed;
    if (step.status == Status::kNeedMore) return used;
    if (step.status == Status::kDone) {
      dispatch();
      return used;
    }
    if (step.status == Status::kBad || step.data.size() > body_bytes_max_ - request_.body.size()) {
      refuse(step.status == Status::kBad ? kBadRequest : kContentTooLarge);
      return input.size();
    }
    request_.body += step.data;
  }
}

void AdminConnection::dispatch() {
  phase_ = Phase::kAnswer;
  chunks_.reset();
  deadline_.reset();
  owner_.handle(std::exchange(request_, {}), AdminReply([self = self_](AdminResponse&& response) {
                  if (*self != nullptr) (*self)->answer(std::move(response));
                }));
}

// No request can be read behind it.
void AdminConnection::refuse(unsigned status) {
  keeps_alive_ = false;
  phase_ = Phase::kAnswer;
  const std::string_view reason = http::reason_phrase(status);
  answer({.status = static_cast<int>(status),
          .fields = {{"Cache-Control", "no-store"}},
          .body = std::to_string(status).append(" ").append(reason).append("\n")});
}

void AdminConnection::answer(AdminResponse&& response) {
  ENCORE_CHECK(phase_ == Phase::kAnswer, "the request that is answered waits for it");
  phase_ = Phase::kSending;
  response_ = std::move(response);
  const std::size_t minor = text_.size() + std::string_view("HTTP/1.").size();
  http::append_status_line(response_.status,
                           http::reason_phrase(static_cast<unsigned>(response_.status)), text_);
  if (version_ == http::Version::kHttp10) text_[minor] = '0';  // as those clients have had it
  if (!response_.content_type.empty()) {
    http::append_field("Content-Type", response_.content_type, text_);
  }
  // The length of what a 304 leaves out is not that of nothing (RFC 9110 8.6).
  const std::size_t size = response_.content().size();
  if (response_.status != kNotModified) {
    http::append_field("Content-Length", std::to_string(size), text_);
  }
  for (const auto& [name, value] : response_.fields) http::append_field(name, value, text_);
  http::append_field("Date", stream_.loop().http_date(), text_);
  keeps_alive_ = keeps_alive_ && owner_.options().keeps_alive;
  if (!keeps_alive_) {
    http::append_field("Connection", "close", text_);
  } else if (version_ == http::Version::kHttp10) {
    http::append_field("Connection", "keep-alive", text_);
  }
  text_ += "\r\n";
  limit_time(size);
  flush();
}

// Sends what the socket takes. The rest waits for on_writable.
void AdminConnection::flush() {
  std::string_view content;
  if (phase_ == Phase::kSending && !is_head_) content = response_.content();
  const std::string_view text = std::string_view(text_).substr(std::min(sent_, text_.size()));
  content.remove_prefix(sent_ - (text_.size() - text.size()));
  const std::array<iovec, 2> parts = {iovec{const_cast<char*>(text.data()), text.size()},
                                      iovec{const_cast<char*>(content.data()), content.size()}};
  const net::WriteResult result = stream_.write(parts);
  sent_ += result.bytes;
  if (result.status == net::WriteStatus::kError) return close(How::kAtOnce);
  if (result.status == net::WriteStatus::kBlocked) return;
  text_.clear();
  sent_ = 0;
  if (phase_ == Phase::kSending) finish();
}

void AdminConnection::finish() {
  response_ = {};
  deadline_.reset();
  const bool is_last = eof_ && !in_on_data_ && stream_.kept_bytes() == 0;
  if (!keeps_alive_ || is_last) return close(How::kGracefully);
  phase_ = Phase::kHead;
  stream_.resume_reading();  // presents what has come meanwhile
  owner_.on_request_end();
}

void AdminConnection::on_eof(net::Stream&) {
  eof_ = true;
  if (phase_ == Phase::kBody) return close(How::kGracefully);
  if (phase_ != Phase::kHead) return;  // it may have its answer
  if (stream_.kept_bytes() == 0) return close(How::kGracefully);
  stream_.resume_reading();
}

void AdminConnection::on_error(net::Stream&, net::CloseReason, int) { close(How::kAtOnce); }

void AdminConnection::limit_time(std::uint64_t bytes) {
  const AdminOptions& options = owner_.options();
  const auto seconds = std::chrono::seconds(bytes / options.bytes_per_second_min);
  deadline_ = stream_.loop().now() + options.transfer_grace + seconds;
}

void AdminConnection::check_timeouts(MonotonicTime now) {
  if (phase_ == Phase::kClosed || phase_ == Phase::kAnswer) return;
  const AdminOptions& options = owner_.options();
  // The kernel may hold megabytes that the client still takes.
  if (const std::uint64_t moved = net::moved_bytes(stream_); moved != moved_) {
    moved_ = moved;
    moved_at_ = now;
  }
  const bool is_silent = now - moved_at_ >= options.idle_timeout;
  const bool is_late = deadline_ && now >= *deadline_;
  if (!is_silent && !is_late) return;
  if (phase_ == Phase::kHead) return close(How::kGracefully);
  if (options.on_cut) options.on_cut();
  close(How::kWithReset);
}

void AdminConnection::give_up() {
  ENCORE_CHECK(phase_ == Phase::kHead, "only a connection without a request gives way");
  close(How::kAtOnce);
}

void AdminConnection::close(How how) {
  if (phase_ == Phase::kClosed) return;
  const bool was_under_way = is_under_way();
  phase_ = Phase::kClosed;
  *self_ = nullptr;
  if (how == How::kGracefully) {
    stream_.close_gracefully();
  } else if (how == How::kWithReset) {
    stream_.abort();
  } else {
    stream_.close();
  }
  if (was_under_way) owner_.on_request_end();
  owner_.retire(*this);
}

}  // namespace encore::server
