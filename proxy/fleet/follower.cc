#include "proxy/fleet/follower.h"

#include <algorithm>
#include <utility>

#include "proxy/observe/log.h"

namespace encore::fleet {
namespace {

constexpr Nanoseconds kFollowPatience = std::chrono::seconds(1);
// How long the engine waits for an entry before it says that there is none.
constexpr std::string_view kBlockMs = "1000";
constexpr Nanoseconds kReadPatience = std::chrono::seconds(3);
constexpr Nanoseconds kFollowPauseMin = std::chrono::milliseconds(100);
constexpr Nanoseconds kFollowPauseMax = std::chrono::seconds(2);
constexpr std::size_t kEntriesOfRead = 256;
constexpr std::size_t kPublishersMax = 4096;

std::unexpected<Error> odd_reply() { return fail("the engine sent another reply than expected"); }

Result<void> check_error(const Reply& reply) {
  return reply.is_error() ? fail(readable(reply.text)) : Result<void>();
}

// The value behind this name in a reply of names and values.
const Reply* value_of(const Reply& reply, std::string_view name) {
  for (std::size_t i = 0; i + 1 < reply.items.size(); i += 2) {
    if (reply.items[i].is_text() && reply.items[i].text == name) return &reply.items[i + 1];
  }
  return nullptr;
}

std::optional<std::uint64_t> number_in(const Reply& reply, std::string_view name) {
  const Reply* const value = value_of(reply, name);
  if (value == nullptr || value->kind != Reply::Kind::kInteger || value->integer < 0) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(value->integer);
}

}  // namespace

Follower::Follower(const FleetOptions& options, const FleetHost& host, FleetState& state,
                   const StopSignal& stop)
    : options_(options),
      host_(host),
      state_(state),
      stop_(stop),
      link_(options.engine, stop),
      count_(kEntriesOfRead) {
  if (options.position) position_ = options.position->id;
}

void Follower::run() {
  Nanoseconds pause = kFollowPauseMin;
  while (!stop_.is_stopped()) {
    const MonotonicTime begin = monotonic_now();
    auto ended = link_.connect(kFollowPatience);
    if (ended) ended = follow();
    if (stop_.is_stopped()) return;
    // A reply that was too large is asked for in smaller parts.
    if (link_.was_too_large()) count_ = std::max<std::size_t>(count_ / 16, 1);
    link_.close();
    if (!ended) state_.note_fault(FleetState::Part::kFollower, ended.error().message);
    if (monotonic_now() - begin > kReadPatience + kFollowPatience) pause = kFollowPauseMin;
    stop_.wait(pause);
    pause = std::min(2 * pause, kFollowPauseMax);
  }
}

Result<void> Follower::follow() {
  if (auto done = resume(); !done) return done;
  is_current_ = false;
  for (;;) {
    const auto entries = read();
    if (!entries) return std::unexpected(entries.error());
    state_.note_fault(FleetState::Part::kFollower, {});
    if (!entries->empty()) {
      const auto is_there = has_position();
      if (!is_there) return std::unexpected(is_there.error());
      if (auto done = take(*entries, !*is_there); !done) return done;
    }
    is_current_ = entries->size() < count_;
    if (is_current_) state_.note_current(FleetState::Part::kFollower);
    count_ = std::min(2 * count_, kEntriesOfRead);
  }
}

Result<void> Follower::resume() {
  const auto known = facts();
  if (!known) return std::unexpected(known.error());
  if (position_ && is_unbroken(*position_, *known)) {
    is_confirmed_ = false;
    return {};
  }
  return skip_gap(*known);
}

// The missed purges are unknown: cached objects are validated before they are used.
Result<void> Follower::skip_gap(const StreamFacts& known) {
  if (position_ || options_.holds_objects) {
    log::warn("fleet: {}; all stored objects are stale",
              position_ ? "the engine's purges do not reach back to " + to_string(*position_)
                        : "the position in the engine's purges is unknown");
    state_.note_gap();
  }
  return apply({server::validate_all()}, known.last);
}

Result<StreamFacts> Follower::facts() {
  const std::string& stream = options_.engine.stream;
  const std::string id = to_string(position_.value_or(StreamId{}));
  const std::vector<Command> commands = {
      {"EXISTS", stream}, {"XRANGE", stream, id, id, "COUNT", "1"}, {"XINFO", "STREAM", stream}};
  const auto replies = link_.call(commands, kFollowPatience);
  if (!replies) return std::unexpected(replies.error());
  const Reply& exists = (*replies)[0];
  const Reply& entry = (*replies)[1];
  const Reply& info = (*replies)[2];
  for (const Reply* each : {&exists, &entry}) {
    if (auto checked = check_error(*each); !checked) return std::unexpected(checked.error());
  }
  if (exists.kind != Reply::Kind::kInteger || !entry.is_array()) return odd_reply();
  if (exists.integer == 0) return StreamFacts{};
  if (auto checked = check_error(info); !checked) return std::unexpected(checked.error());
  const Reply* const last = value_of(info, "last-generated-id");
  const auto length = number_in(info, "length");
  const auto last_id = last == nullptr ? std::nullopt : parse_stream_id(last->text);
  if (!last_id || !length) return odd_reply();
  return StreamFacts{.exists = true,
                     .last = *last_id,
                     .length = *length,
                     .added = number_in(info, "entries-added"),
                     .has_position = !entry.items.empty()};
}

// True if the last applied entry is still there: none behind it is missing then.
Result<bool> Follower::has_position() {
  if (*position_ == StreamId{}) return true;
  const std::string id = to_string(*position_);
  const auto reply =
      link_.call({"XRANGE", options_.engine.stream, id, id, "COUNT", "1"}, kFollowPatience);
  if (!reply) return std::unexpected(reply.error());
  if (auto checked = check_error(*reply); !checked) return std::unexpected(checked.error());
  if (!reply->is_array()) return odd_reply();
  return !reply->items.empty();
}

Result<std::vector<Follower::Read>> Follower::read() {
  const std::string& stream = options_.engine.stream;
  std::vector<Command> commands;
  if (!std::exchange(is_confirmed_, true)) {
    commands.push_back(
        {"PUBLISH", stream + ":confirmed", options_.node + " " + to_string(*position_)});
  }
  Command reading = {"XREAD", "COUNT", std::to_string(count_)};
  // A start waits for the end of the first reads.
  if (is_current_) reading.insert(reading.end(), {"BLOCK", std::string(kBlockMs)});
  reading.insert(reading.end(), {"STREAMS", stream, to_string(*position_)});
  commands.push_back(std::move(reading));
  const auto replies = link_.call(commands, kReadPatience);
  if (!replies) return std::unexpected(replies.error());
  for (const Reply& each : *replies) {
    if (auto checked = check_error(each); !checked) return std::unexpected(checked.error());
  }
  const Reply& reply = replies->back();
  std::vector<Read> entries;
  if (reply.kind == Reply::Kind::kNil) return entries;
  // One stream: its name, and the list of its entries.
  const bool is_one = reply.items.size() == 1 && reply.items[0].items.size() == 2;
  if (!is_one || reply.items[0].items[1].items.size() > count_) return odd_reply();
  StreamId before = *position_;
  for (const Reply& each : reply.items[0].items[1].items) {
    if (each.items.size() != 2) return odd_reply();
    const auto id = parse_stream_id(each.items[0].text);
    if (!id || *id <= before) return odd_reply();
    before = *id;
    Read& entry = entries.emplace_back(Read{.id = *id, .fields = {}});
    for (const Reply& field : each.items[1].items) entry.fields.push_back(field.text);
  }
  return entries;
}

// Adds the purge of an entry. False: it may be one that is not understood.
bool Follower::add(const Read& entry, std::vector<server::PurgeOrder>& orders) {
  auto decoded = decode(entry.fields);
  const auto checked = decoded && !decoded->is_mark ? host_.check(decoded->order) : Result<void>();
  if (!decoded || !checked) {
    state_.note_refused(1);
    log::warn("fleet: entry {} is refused: {}", to_string(entry.id),
              readable(decoded ? checked.error().message : decoded.error().message));
    return !is_of_a_node(entry.fields);
  }
  if (decoded->is_mark || decoded->instance == options_.instance) return true;
  if (!decoded->instance.empty() && decoded->number != 0) {
    // A publisher that did not see the engine's reply has sent it again.
    if (numbers_.size() >= kPublishersMax) numbers_.clear();
    std::uint64_t& last = numbers_[decoded->instance];
    if (decoded->number <= last) return true;
    last = decoded->number;
  }
  orders.push_back(std::move(decoded->order));
  return true;
}

Result<void> Follower::take(const std::vector<Read>& entries, bool is_broken) {
  std::vector<server::PurgeOrder> orders;
  bool is_understood = true;
  for (const Read& each : entries) is_understood = add(each, orders) && is_understood;
  const std::size_t purges = orders.size();
  if (is_broken) {
    log::warn("fleet: the engine has lost purges behind {}; all stored objects are stale",
              to_string(*position_));
    state_.note_gap();
  }
  if (is_broken || !is_understood) orders.push_back(server::validate_all());
  auto done = apply(merged(orders), entries.back().id);
  if (done) state_.note_applied(purges, *position_);
  return done;
}

Result<void> Follower::apply(const std::vector<server::PurgeOrder>& orders,
                             const StreamId& position) {
  const Applied applied = orders.empty() ? Applied::kDone : host_.apply(orders);
  if (applied == Applied::kStopped) return fail("this process is exiting");
  position_ = position;
  state_.note_applied(0, position);
  if (applied == Applied::kNotDurable) return {};
  const auto saved = host_.save_position(
      encode(Position{.id = position, .stream = options_.engine.stream, .disks = options_.disks}));
  std::string fault = saved ? std::string() : saved.error().message;
  if (!fault.empty() && fault != save_fault_) log::error("fleet: {}", fault);
  save_fault_ = std::move(fault);
  is_confirmed_ = false;
  return {};
}

}  // namespace encore::fleet
