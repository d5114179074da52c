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
// A writer of odd entries could fill the disk of the log.
constexpr Nanoseconds kWarningPause = std::chrono::seconds(10);

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
    auto entries = read();
    if (!entries) return std::unexpected(entries.error());
    state_.note_fault(FleetState::Part::kFollower, {});
    const std::size_t count = entries->size();
    if (count != 0) {
      const auto is_there = has_position();
      if (!is_there) return std::unexpected(is_there.error());
      if (auto done = take(std::move(*entries), !*is_there); !done) return done;
    }
    is_current_ = count < count_;
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
  const auto exists = ask({"EXISTS", stream});
  if (!exists) return std::unexpected(exists.error());
  if (exists->kind != Reply::Kind::kInteger) return odd_reply();
  if (exists->integer == 0) return StreamFacts{};
  const auto entry = ask({"XRANGE", stream, id, id, "COUNT", "1"});
  if (!entry) return std::unexpected(entry.error());
  if (!entry->is_array()) return odd_reply();
  // The first and the last entry, which may be too large, are behind all that is of use here.
  const auto info = ask({"XINFO", "STREAM", stream});
  if (!info) return std::unexpected(info.error());
  const Reply* const last = value_of(*info, "last-generated-id");
  const auto length = number_in(*info, "length");
  const auto last_id = last == nullptr ? std::nullopt : parse_stream_id(last->text);
  if (!last_id || !length) return odd_reply();
  return StreamFacts{.exists = true,
                     .last = *last_id,
                     .length = *length,
                     .added = number_in(*info, "entries-added"),
                     .has_position = !entry->items.empty()};
}

// A reply without an error. If it is too large, its front is enough here; the connection is a new
// one then.
Result<Reply> Follower::ask(const Command& command) {
  auto reply = link_.call(command, kReadPatience);
  is_cut_ = !reply && link_.was_too_large();
  if (is_cut_) {
    reply = link_.take_front();
    if (auto again = link_.connect(kFollowPatience); !again) return std::unexpected(again.error());
  }
  if (!reply) return reply;
  auto checked = check_error(*reply);
  return checked ? std::move(reply) : std::unexpected(checked.error());
}

// True if the last applied entry is still there: none behind it is missing then.
Result<bool> Follower::has_position() {
  if (*position_ == StreamId{}) return true;
  const std::string id = to_string(*position_);
  const auto reply = ask({"XRANGE", options_.engine.stream, id, id, "COUNT", "1"});
  if (!reply) return std::unexpected(reply.error());
  if (!reply->is_array()) return odd_reply();
  return !reply->items.empty();
}

// The reply to XREAD. It is asked for one entry in the end, of which the front is enough.
Result<Reply> Follower::read_reply() {
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
  if (count_ == 1) {
    for (const Command& each : commands) {
      if (auto asked = ask(each); !asked) return asked;
    }
    return ask(reading);
  }
  commands.push_back(std::move(reading));
  auto replies = link_.call(commands, kReadPatience);
  if (!replies) return std::unexpected(replies.error());
  for (const Reply& each : *replies) {
    if (auto checked = check_error(each); !checked) return std::unexpected(checked.error());
  }
  return std::move(replies->back());
}

Result<std::vector<Follower::Read>> Follower::read() {
  is_cut_ = false;
  auto reply = read_reply();
  if (!reply) return std::unexpected(reply.error());
  std::vector<Read> entries;
  if (reply->kind == Reply::Kind::kNil) return entries;
  // One stream: its name, and the list of its entries.
  const bool is_one = reply->items.size() == 1 && reply->items[0].items.size() == 2;
  if (!is_one || reply->items[0].items[1].items.size() > count_) return odd_reply();
  StreamId before = *position_;
  for (Reply& each : reply->items[0].items[1].items) {
    if (each.items.size() != 2) return odd_reply();
    const auto id = parse_stream_id(each.items[0].text);
    if (!id || *id <= before) return odd_reply();
    before = *id;
    Read& entry = entries.emplace_back(Read{.id = *id, .fields = {}, .is_too_large = is_cut_});
    for (Reply& field : each.items[1].items) entry.fields.push_back(std::move(field.text));
  }
  return entries;
}

// Logs the first warning of several seconds, and how many were left out before it.
void Follower::warn(std::string_view text) {
  const MonotonicTime now = monotonic_now();
  if (now < next_warning_) {
    ++unsaid_;
    return;
  }
  next_warning_ = now + kWarningPause;
  const std::uint64_t unsaid = std::exchange(unsaid_, 0);
  log::warn("fleet: {}{}", text,
            unsaid == 0 ? std::string() : " (and " + std::to_string(unsaid) + " warnings before)");
}

// Adds the purge of an entry, and frees its fields. False: it may be one that is not understood.
bool Follower::add(Read& entry, std::vector<server::PurgeOrder>& orders) {
  const Fields fields = std::exchange(entry.fields, {});
  auto decoded =
      entry.is_too_large ? Result<PurgeEntry>(fail("it is too large to be read")) : decode(fields);
  const auto checked = decoded && !decoded->is_mark ? host_.check(decoded->order) : Result<void>();
  if (!decoded || !checked) {
    state_.note_refused(1);
    const bool is_harmless = !entry.is_too_large && !is_of_a_node(fields);
    const std::string why = readable(decoded ? checked.error().message : decoded.error().message);
    warn("entry " + to_string(entry.id) + " is refused: " + why +
         (is_harmless ? "" : "; all stored objects are stale"));
    return is_harmless;
  }
  // A purge that was sent twice is done twice: by its number it could hide another one
  // (docs/decisions/0607).
  if (decoded->is_mark || decoded->instance == options_.instance) return true;
  orders.push_back(std::move(decoded->order));
  return true;
}

Result<void> Follower::take(std::vector<Read> entries, bool is_broken) {
  std::vector<server::PurgeOrder> orders;
  bool is_understood = true;
  for (Read& each : entries) is_understood = add(each, orders) && is_understood;
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
