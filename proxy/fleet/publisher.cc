#include "proxy/fleet/publisher.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "proxy/observe/fleet_metrics.h"
#include "proxy/observe/log.h"

namespace encore::fleet {
namespace {

constexpr Nanoseconds kPublishPatience = std::chrono::seconds(1);
constexpr Nanoseconds kPublishPauseMin = std::chrono::milliseconds(100);
constexpr Nanoseconds kPublishPauseMax = std::chrono::seconds(2);
constexpr std::size_t kBatchCount = 128;
constexpr std::size_t kBatchBytes = std::size_t{4} << 20U;
constexpr std::uint64_t kMsOfSecond = 1000;
// Fields of the hash of nodes that are read: those of a day. kNodesMax of them are used.
constexpr std::int64_t kFieldsOfNodesMax = 4096;

std::uint64_t ms_of(Nanoseconds time) {
  return static_cast<std::uint64_t>(std::chrono::floor<std::chrono::milliseconds>(time).count());
}

// Milliseconds of a reply to TIME; nothing: it is another one.
std::optional<std::uint64_t> time_of(const Reply& reply) {
  if (reply.items.size() != 2) return std::nullopt;
  const std::string& text = reply.items[0].text;
  std::uint64_t seconds = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  if (seconds > UINT64_MAX / kMsOfSecond - 1) return std::nullopt;
  std::uint64_t micros = 0;
  const std::string& rest = reply.items[1].text;
  (void)std::from_chars(rest.data(), rest.data() + rest.size(), micros);
  return seconds * kMsOfSecond + std::min<std::uint64_t>(micros / 1000, kMsOfSecond - 1);
}

}  // namespace

Publisher::Publisher(const FleetOptions& options, const FleetHost& host, const FleetTimes& times,
                     FleetState& state, const StopSignal& stop, Handlers handlers)
    : options_(options),
      host_(host),
      times_(times),
      state_(state),
      stop_(stop),
      handlers_(std::move(handlers)),
      link_(options.engine, stop),
      has_kept_(!options.waiting.empty()) {}

void Publisher::run() {
  Nanoseconds pause = kPublishPauseMin;
  MonotonicTime next_try{};
  while (!stop_.is_stopped()) {
    const bool is_due = monotonic_now() >= next_try;
    if (is_due) {
      const auto done = work();
      if (stop_.is_stopped()) break;
      if (done) {
        state_.note_fault(FleetState::Part::kPublisher, presence_fault_);
        state_.note_current(FleetState::Part::kPublisher);
        pause = kPublishPauseMin;
      } else {
        state_.note_fault(FleetState::Part::kPublisher, done.error().message);
        next_try = monotonic_now() + pause;
        pause = std::min(2 * pause, kPublishPauseMax);
      }
    }
    replace_dropped();
    const bool has_engine = monotonic_now() >= next_try;
    if (!has_engine) keep_waiting();
    const MonotonicTime next = has_engine ? next_presence_ : next_try;
    const Nanoseconds left = next - monotonic_now();
    if (left > Nanoseconds(0)) state_.wait_for_work(left, has_engine);
  }
  keep_waiting();
}

// Errors: of the connection, or of the engine, which may be full: all goes on later.
Result<void> Publisher::work() {
  if (!link_.is_connected()) {
    if (auto done = link_.connect(kPublishPatience); !done) return done;
    next_presence_ = {};
    const auto time = call({{"TIME"}});
    if (!time) return std::unexpected(time.error());
    if (const auto now = time_of(time->front())) state_.note_time(*now);
    if (auto done = check_last(); !done) return done;
  }
  replace_dropped();
  while (state_.pending() != 0) {
    if (auto done = publish(); !done) return done;
  }
  if (has_kept_ && host_.forget()) has_kept_ = false;
  const bool is_presence_due = state_.take_presence_due();
  if (monotonic_now() < next_presence_ && !is_presence_due) return {};
  next_presence_ = monotonic_now() + kPresenceInterval;
  auto done = renew_position();
  if (done && is_present_.load()) done = tell_presence();
  presence_fault_ = done ? std::string() : done.error().message;
  // An engine that refuses only this takes purges.
  return link_.is_connected() ? Result<void>() : done;
}

// Errors include those that the engine replies.
Result<std::vector<Reply>> Publisher::call(const std::vector<Command>& commands) {
  auto replies = link_.call(commands, kPublishPatience);
  if (!replies) return replies;
  for (const Reply& each : *replies) {
    if (each.is_error()) return fail("the engine refuses: " + readable(each.text));
  }
  return replies;
}

Command Publisher::addition(const Fields& fields) const {
  Command command = {"XADD", options_.engine.stream};
  const std::uint64_t now = state_.engine_ms();
  const std::uint64_t keep = ms_of(times_.keep.load());
  if (now > keep) command.insert(command.end(), {"MINID", "~", std::to_string(now - keep)});
  command.emplace_back("*");
  command.insert(command.end(), fields.begin(), fields.end());
  return command;
}

// All or nothing, so that their order stays: an engine that is full refuses the whole transaction.
Result<void> Publisher::publish() {
  const std::vector<Publication> some = state_.front(kBatchCount, kBatchBytes);
  std::vector<Command> commands = {{"MULTI"}};
  for (const Publication& each : some) commands.push_back(addition(each.fields));
  commands.push_back({"EXEC"});
  const auto replies = link_.call(commands, kPublishPatience);
  if (!replies) return std::unexpected(replies.error());
  for (const Reply& each : *replies) {
    if (each.is_error()) return fail("the engine refuses: " + readable(each.text));
  }
  const Reply& done = replies->back();
  if (done.items.size() != some.size()) return fail("the engine did not publish");
  for (std::size_t i = 0; i < some.size(); ++i) {
    if (done.items[i].is_error())
      return fail("the engine refuses: " + readable(done.items[i].text));
    const auto id = parse_stream_id(done.items[i].text);
    if (!id) return fail("the engine sent no place of an entry");
    state_.published(*id);
    if (some[i].number != 0) handlers_.on_published(some[i].number, *id);
  }
  return {};
}

// A position that is an old entry would be trimmed, and look like a gap: an entry without a purge
// renews it.
Result<void> Publisher::renew_position() {
  const StreamId position = state_.position();
  if (position == StreamId{}) return {};
  const std::uint64_t now = state_.engine_ms();
  if (now < position.ms || now - position.ms < ms_of(times_.keep.load()) / 4) return {};
  const auto fields = encode(PurgeEntry{
      .node = options_.node, .instance = options_.instance, .number = 0, .is_mark = true});
  if (!fields) return {};
  const auto done = call({addition(*fields)});
  return done ? Result<void>() : std::unexpected(done.error());
}

// An engine that was restored from an older state may have lost what was published last.
Result<void> Publisher::check_last() {
  const StreamId last = state_.last_published();
  if (last == StreamId{} || last.ms + ms_of(times_.keep.load()) < state_.engine_ms()) return {};
  const std::string id = to_string(last);
  const auto found = call({{"XRANGE", options_.engine.stream, id, id, "COUNT", "1"}});
  if (!found) return std::unexpected(found.error());
  if (!found->front().items.empty()) return {};
  log::warn("fleet: the engine has lost purges; they are published again");
  if (state_.republish_recent()) return {};
  const std::uint64_t number = state_.next_number();
  state_.add_last(
      {.number = number, .fields = everything(server::validate_all(), number), .is_soft = true});
  return {};
}

Fields Publisher::everything(const server::PurgeOrder& order, std::uint64_t number) const {
  const auto fields = encode(PurgeEntry{
      .node = options_.node, .instance = options_.instance, .number = number, .order = order});
  return fields ? *fields : Fields();
}

// Others can write to the hash: if it is too large, a part of it is read.
Result<NodeTable> Publisher::read_nodes(const std::string& key, bool is_whole, std::uint64_t now) {
  Command command = {is_whole ? "HGETALL" : "HSCAN", key};
  if (!is_whole) command.insert(command.end(), {"0", "COUNT", std::to_string(kNodesMax)});
  auto reply = link_.call(command, kPublishPatience);
  if (!reply) {
    if (!link_.was_too_large()) return std::unexpected(reply.error());
    reply = link_.take_front();
    if (auto again = link_.connect(kPublishPatience); !again) return std::unexpected(again.error());
    is_whole = false;
  } else if (reply->is_error()) {
    return fail("the engine refuses: " + readable(reply->text));
  }
  // HSCAN: where to go on, and the fields.
  if (command[0] == "HSCAN" && reply->items.size() == 2) {
    Reply fields = std::move(reply->items[1]);
    reply = std::move(fields);
  }
  if (!reply->is_array()) return fail("the engine sent no list of nodes");
  std::vector<std::string> fields;
  for (Reply& each : reply->items) fields.push_back(std::move(each.text));
  NodeTable nodes;
  nodes.read(fields, now, is_whole ? NodeTable::Part::kAll : NodeTable::Part::kSome);
  if (!nodes.is_whole() && !std::exchange(has_said_part_, true)) {
    log::warn("fleet: {} has too many nodes, or values too large; some nodes are not known", key);
  }
  return nodes;
}

Result<void> Publisher::tell_presence() {
  const std::string key = options_.engine.stream + ":nodes";
  const auto replies = call({{"TIME"}, {"HLEN", key}});
  if (!replies) return std::unexpected(replies.error());
  const auto now = time_of((*replies)[0]);
  const Reply& count = (*replies)[1];
  if (!now || count.kind != Reply::Kind::kInteger) return fail("the engine sent no time or count");
  state_.note_time(*now);
  auto read = read_nodes(key, count.integer <= kFieldsOfNodesMax, *now);
  if (!read) return std::unexpected(read.error());
  NodeTable nodes = std::move(*read);
  check_name(nodes);
  Presence own{.instance = options_.instance,
               .facts = host_.facts(),
               .lag_seconds = state_.lag_seconds(),
               .seen_ms = *now,
               .wish = state_.wish()};
  std::vector<Command> commands = {{"HSET", key, options_.node, encode(own)}};
  if (!nodes.stale().empty()) {
    Command removal = {"HDEL", key};
    removal.insert(removal.end(), nodes.stale().begin(), nodes.stale().end());
    commands.push_back(std::move(removal));
  }
  nodes.add(options_.node, std::move(own));
  state_.set_nodes(std::move(nodes));
  const auto told = call(commands);
  return told ? Result<void>() : std::unexpected(told.error());
}

void Publisher::check_name(const NodeTable& nodes) {
  constexpr unsigned kSure = 3;
  const Presence* const own = nodes.find(options_.node);
  strangers_ = own != nullptr && own->instance != options_.instance ? strangers_ + 1 : 0;
  state_.note_namesake(strangers_ >= kSure);
  if (strangers_ == kSure) {
    log::warn("fleet: {}", server::namesake_text(options_.node));
  }
}

void Publisher::replace_dropped() {
  const auto is_soft = state_.take_overflow();
  if (!is_soft) return;
  log::error("fleet: too many purges wait for the engine; all nodes will purge everything");
  const std::uint64_t number = state_.next_number();
  Publication all{.number = number,
                  .fields = everything({.all = true, .soft = *is_soft}, number),
                  .is_soft = *is_soft};
  // The file has the purges for which it stands, or itself, at each moment.
  if (has_kept_) all.is_kept = host_.keep_only(frame(all)).has_value();
  state_.replace_all(std::move(all));
  handlers_.on_dropped();
}

// Purges that are not published yet survive the end of the process.
void Publisher::keep_waiting() {
  const std::vector<Publication> some = state_.take_unkept();
  if (some.empty()) return;
  std::string frames;
  for (const Publication& each : some) frames += frame(each);
  const auto kept = host_.keep(frames);
  std::string fault = kept ? std::string() : kept.error().message;
  if (!fault.empty() && fault != keep_fault_) log::error("fleet: {}", fault);
  keep_fault_ = std::move(fault);
  has_kept_ = true;
  for (const Publication& each : some) {
    if (each.number != 0) handlers_.on_delayed(each.number);
  }
}

}  // namespace encore::fleet
