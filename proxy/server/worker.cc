#include "proxy/server/worker.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/check.h"
#include "proxy/http/variant_keys.h"
#include "proxy/server/client_connection.h"
#include "proxy/server/exchange.h"
#include "proxy/server/fetch.h"
#include "proxy/server/names.h"
#include "proxy/server/relief.h"
#include "proxy/server/response.h"

namespace encore::server {
namespace {

thread_local Worker* current_worker = nullptr;

// Takes the variant whose primary key is the same to the byte (a hash may collide) and whose
// selecting fields agree with the request's.
class VariantSelector final : public cache::Selector {
 public:
  VariantSelector(std::string_view key, http::VariantKeys& own) : key_(key), own_(own) {}

  bool matches(cache::Payload payload) override {
    const store::Object& object = store::ObjectRef::peek(payload);
    if (primary_key_of(object) != key_) return false;
    const std::string_view names = names_of(object);
    if (!names.empty()) {
      const std::string* own = own_.find(names);
      if (own == nullptr) {
        missing_ = names;
        return false;
      }
      if (variant_key_of(object) != *own) return false;
    }
    found_ = store::ObjectRef::share(payload);
    return true;
  }
  bool is_undecided() const override { return !missing_.empty(); }

  // The selecting names for which it is undecided.
  std::string_view missing() const { return missing_; }
  // Outside the shard's lock: what the client sent may take long to read.
  void prepare() {
    (void)own_.make(missing_);
    missing_.clear();
  }
  store::ObjectRef take() { return std::move(found_); }

 private:
  std::string_view key_;
  http::VariantKeys& own_;
  std::string missing_;
  store::ObjectRef found_;
};

}  // namespace

Worker* Worker::current() { return current_worker; }

Worker::Worker(Shared& shared, WorkerStats& stats, std::shared_ptr<const Runtime> runtime)
    : shared_(shared),
      stats_(stats),
      runtime_(std::move(runtime)),
      origin_lines_([this] { wake_origin_lines_->schedule(); }),
      pool_(stats),
      access_log_(shared.access_log.get()) {
  request_head_.fields.reserve(64);
}

Result<std::unique_ptr<Worker>> Worker::create(Shared& shared, WorkerStats& stats,
                                               std::shared_ptr<const Runtime> runtime) {
  std::unique_ptr<Worker> worker(new Worker(shared, stats, std::move(runtime)));
  auto loop = net::Loop::create();
  if (!loop) return std::unexpected(loop.error());
  worker->loop_ = std::move(*loop);
  auto resolver =
      net::Resolver::create(*worker->loop_, resolver_options(worker->runtime_->config.upstream),
                            [&stats](net::ResolveEvent event) { count(event, stats); });
  if (!resolver) return std::unexpected(resolver.error());
  worker->resolver_ = std::move(*resolver);
  Worker* raw = worker.get();
  worker->tick_timer_ = std::make_unique<net::Timer>(*worker->loop_, [raw] { raw->tick(); });
  worker->wake_origin_lines_ =
      std::make_unique<net::Deferred>(*worker->loop_, [raw] { raw->origin_lines_.wake(); });
  worker->relief_ = std::make_unique<Relief>(*worker);
  worker->trim_heads_ =
      std::make_unique<net::Deferred>(*worker->loop_, [raw] { raw->trim_heads(); });
  worker->drop_retired_ =
      std::make_unique<net::Deferred>(*worker->loop_, [raw] { raw->drop_retired(); });
  return worker;
}

Worker::~Worker() { end_all(); }

void Worker::end_all() {
  join();
  current_worker = this;
  while (connections_ != nullptr) connections_->cut();
  drop_retired();
  while (!fetches_.empty()) fetches_.back()->abandon();
  drop_retired();
  pool_.close_all();
  current_worker = nullptr;
}

Result<net::Address> Worker::listen(const net::Address& address, config::Mode mode) {
  contexts_.push_back(std::make_unique<ListenerContext>(ListenerContext{mode}));
  const ListenerContext& context = *contexts_.back();
  auto listener = net::Listener::create(
      *loop_, {.address = address},
      [this, &context](net::Socket socket, const net::Address& peer) {
        accept(std::move(socket), peer, context);
      },
      [this](int os_error) {
        stats_.connections_refused.add();
        if (os_error != EMFILE && os_error != ENFILE) return;
        // Idle connections give way to clients: to origins first, then those of others.
        pool_.close_all();
        (void)give_up_idle();
      });
  if (!listener) return std::unexpected(listener.error());
  listeners_.push_back(std::move(*listener));
  return listeners_.back()->address();
}

void Worker::start(net::Loop::Function on_end) {
  thread_ = std::thread([this, on_end = std::move(on_end)]() mutable { run(std::move(on_end)); });
}

void Worker::join() {
  if (thread_.joinable()) thread_.join();
}

void Worker::run(net::Loop::Function on_end) {
  current_worker = this;
  tick_timer_->start_periodic(runtime_->sweep_interval);
  loop_->run();
  (void)access_log_.hand_over();
  current_worker = nullptr;
  on_end();
}

void Worker::retire_connection(ClientConnection& connection) {
  if (connection.previous != nullptr) {
    connection.previous->next = connection.next;
  } else {
    connections_ = connection.next;
  }
  if (connection.next != nullptr) connection.next->previous = connection.previous;
  connection.previous = connection.next = nullptr;
  retired_connections_.push_back(&connection);
  drop_retired_->schedule();
}

void Worker::retire_exchange(std::unique_ptr<Exchange> exchange) {
  retired_exchanges_.push_back(std::move(exchange));
  drop_retired_->schedule();
}

void Worker::add_fetch(std::unique_ptr<Fetch> fetch) {
  stats_.transfers_open.add();
  fetch->position = fetches_.size();
  fetches_.push_back(std::move(fetch));
}

void Worker::retire_fetch(Fetch& fetch) {
  const std::size_t position = fetch.position;
  ENCORE_CHECK(position < fetches_.size() && fetches_[position].get() == &fetch,
               "a fetch is retired once, by its worker");
  retired_fetches_.push_back(std::move(fetches_[position]));
  if (position + 1 != fetches_.size()) {
    fetches_[position] = std::move(fetches_.back());
    fetches_[position]->position = position;
  }
  fetches_.pop_back();
  stats_.transfers_open.subtract();
  drop_retired_->schedule();
}

void Worker::drop_retired() {
  retired_exchanges_.clear();
  while (!retired_connections_.empty() || !retired_fetches_.empty()) {
    const auto connections = std::exchange(retired_connections_, {});
    for (ClientConnection* connection : connections) {
      if (connection->is_counted()) shared_.clients.leave(connection->stream().peer());
      delete connection;
      stats_.connections_open.subtract();
      shared_.connections.fetch_sub(1, std::memory_order_relaxed);
    }
    retired_fetches_.clear();
  }
  if (draining_) end_if_drained();
}

void Worker::tick() {
  const MonotonicTime now = loop_->now();
  for (ClientConnection* connection = connections_; connection != nullptr;) {
    ClientConnection* following = connection->next;  // the check may retire this one
    connection->check_timeouts(now);
    connection = following;
  }
  for (std::size_t i = fetches_.size(); i-- > 0;) {
    if (i < fetches_.size()) fetches_[i]->check_timeouts(now);
  }
  relief_->look(now);
  const Nanoseconds pool_idle = runtime_->config.timeouts.pool_idle;
  if (pool_idle.count() != 0) pool_.close_idle_since(now - pool_idle);
  pool_.close_beyond(shared_.idle_connections_max());
  if (!access_log_.hand_over()) stats_.log_dropped.add();
}

void Worker::set_runtime(std::shared_ptr<const Runtime> runtime) {
  if (!thread_.joinable()) {
    runtime_ = std::move(runtime);
    return;
  }
  loop_->post([this, next = std::move(runtime)]() mutable {
    runtime_ = std::move(next);
    tick_timer_->start_periodic(runtime_->sweep_interval);
    // They were made, and their origins verified, under the settings of before.
    pool_.close_all();
    origin_lines_.look_again();
    if (const auto set = resolver_->set_options(resolver_options(runtime_->config.upstream));
        !set) {
      spdlog::error("names are asked for as before: {}", set.error().message);
    }
  });
}

OriginLines::Limits Worker::origin_limits() const {
  const config::Upstream& upstream = runtime_->config.upstream;
  const std::size_t workers = std::max<std::size_t>(shared_.stats.size(), 1);
  const auto share = [&](std::size_t all) { return (all + workers - 1) / workers; };
  const std::size_t connections = upstream.connections_per_server;
  return {.connections = connections == 0 ? SIZE_MAX : share(connections),
          .waiting = share(upstream.waiting_per_server)};
}

void Worker::drain(Nanoseconds limit) {
  loop_->post([this, limit] { begin_drain(limit); });
}

void Worker::begin_drain(Nanoseconds limit) {
  if (draining_) return;
  draining_ = true;
  for (auto& listener : listeners_) listener->stop();
  pool_.close_all();
  for (ClientConnection* connection = connections_; connection != nullptr;) {
    ClientConnection* following = connection->next;
    connection->drain();
    connection = following;
  }
  drain_timer_ = std::make_unique<net::Timer>(*loop_, [this] { loop_->stop(); });
  if (limit.count() != 0) drain_timer_->start(limit);
  end_if_drained();
}

void Worker::end_if_drained() {
  if (connections_ == nullptr && fetches_.empty()) loop_->stop();
}

CacheView Worker::lookup(std::string_view key, const filter::Hash128& hash,
                         const http::Fields& fields, const http::VaryOptions& vary,
                         const net::Address& client) {
  http::VariantKeys own(fields, vary);
  const std::string_view expected = variant_hints_.find(hash);
  if (!expected.empty()) (void)own.make(expected);
  VariantSelector selector(key, own);
  auto result = shared_.kernel->lookup(cache::Key{hash, key}, loop_->now(), selector);
  // Each turn knows one more of the sets of names that the key's variants have; there are more of
  // them than variants only while others come and go.
  for (std::uint32_t turn = 0; result.is_undecided && turn < cache::kVariantsMax; ++turn) {
    variant_hints_.remember(hash, selector.missing());
    selector.prepare();
    result = shared_.kernel->lookup(cache::Key{hash, key}, loop_->now(), selector);
  }
  catch_up();
  CacheView view{selector.take(), result.any_resident, result.fresh_until};
  if (view.object && meta_of(*view.object).http.is(http::StoredMeta::kPrivateOrigin) &&
      !runtime_->destinations.may_reach_private(client)) {
    return {};
  }
  return view;
}

CacheView Worker::lookup(const RequestContext& request) {
  return lookup(request.key, request.hash, request.head.fields, request.vary(), request.client);
}

void Worker::record(const RequestRecord& record, const http::RequestHead* head,
                    const net::Address& client) {
  stats_.requests[static_cast<std::size_t>(record.outcome)].add();
  stats_.bytes_to_clients.add(record.sent_bytes);
  stats_.body_bytes_all.add(record.body_bytes);
  const OutcomeClass group = class_of(record.outcome);
  if (group == OutcomeClass::kHit) stats_.body_bytes_hit.add(record.body_bytes);
  const bool timed = group != OutcomeClass::kError;
  if (!timed && !access_log_.enabled()) return;
  const Nanoseconds duration = monotonic_now() - record.started;
  if (timed) stats_.latency[static_cast<std::size_t>(group)].record(duration);
  if (!access_log_.enabled()) return;
  AccessRecord entry;
  entry.received = loop_->wall_now() - (loop_->now() - record.started);
  entry.duration = duration;
  const std::string client_text = client.ip_string();
  entry.client = client_text;
  entry.status = record.status;
  entry.sent_bytes = record.sent_bytes;
  entry.body_bytes = record.body_bytes;
  entry.outcome = record.outcome;
  entry.origin = record.origin;
  entry.content_type = record.content_type;
  entry.version = "HTTP/1.1";
  if (head != nullptr) {
    entry.method = head->method_text;
    entry.url = head->target;
    if (head->version == http::Version::kHttp10) entry.version = "HTTP/1.0";
    entry.referer = head->fields.value(http::FieldId::kReferer);
    entry.user_agent = head->fields.value(http::FieldId::kUserAgent);
    entry.host = head->fields.value(http::FieldId::kHost);
  }
  append_access_record(access_log_.text(), runtime_->access_format, entry);
  if (!access_log_.finish_record()) stats_.log_dropped.add();
}

Worker::ViewFault Worker::make_view(const http::RequestHead& head, const ListenerContext& listener,
                                    const net::Address& client, RequestView& view) {
  view.head = &head;
  view.framing = http::request_framing(head);
  if (view.framing.kind == http::BodyKind::kError) {
    return {view.framing.status, Outcome::kBadRequest, "framing"};
  }
  const auto resolved = http::resolve_target(head, http::Scheme::kHttp, view.target);
  if (resolved != http::TargetStatus::kOk) {
    return {400, Outcome::kBadRequest, http::to_string(resolved)};
  }
  const bool forward = listener.mode == config::Mode::kForward;
  if (forward && !runtime_->destinations.is_client_allowed(client)) {
    return {403, Outcome::kDenied, "client-not-allowed"};
  }
  if (head.method == http::Method::kConnect) {
    if (!forward) return {405, Outcome::kDenied, "connect-on-reverse-listener"};
    return {};
  }
  if (forward && view.target.form != http::TargetForm::kAbsolute) {
    return {400, Outcome::kBadRequest, "forward-proxy-needs-absolute-form"};
  }
  if (view.target.form == http::TargetForm::kAsterisk) {
    view.route = runtime_->router.match("", "/");
    if (view.route == nullptr) return {404, Outcome::kNoRoute, "no-route"};
    return {};
  }
  // What is asked for is what the listener answers for, so that a purge and a write find it.
  if (!forward) http::set_scheme(view.target, kReverseScheme);
  const std::size_t needed = kRealmBytes + http::key_bytes_max(view.target);
  if (key_buffer_.size() < needed) key_buffer_.resize(needed * 2);
  const http::KeyOptions& options = forward ? runtime_->forward_keys : runtime_->reverse_keys;
  const std::size_t key_bytes =
      http::write_key(view.target, options, std::span(key_buffer_).subspan(kRealmBytes));
  view.key = std::string_view(key_buffer_.data(), kRealmBytes + key_bytes);
  std::string_view realm = kForwardRealm;
  if (!forward) {
    // The route is chosen by what is cached.
    view.route = runtime_->router.match_uri(view.key.substr(kRealmBytes));
    if (view.route == nullptr) return {404, Outcome::kNoRoute, "no-route"};
    realm = view.route->realm();
  }
  std::ranges::copy(realm, key_buffer_.begin());
  view.hash = filter::hash_key(filter::HashFamily::kXxh3, shared_.identity_seed, view.key);
  return {};
}

}  // namespace encore::server
