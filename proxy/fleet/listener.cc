#include "proxy/fleet/listener.h"

#include <algorithm>

namespace encore::fleet {
namespace {

constexpr Nanoseconds kListenPatience = std::chrono::seconds(1);
constexpr Nanoseconds kSilence = std::chrono::seconds(3);
constexpr Nanoseconds kListenPauseMin = std::chrono::milliseconds(100);
constexpr Nanoseconds kListenPauseMax = std::chrono::seconds(2);

}  // namespace

void ConfirmationListener::run() {
  Nanoseconds pause = kListenPauseMin;
  while (!stop_.is_stopped()) {
    const MonotonicTime begin = monotonic_now();
    // The follower, which meets the same fault, reports it.
    if (link_.connect(kListenPatience)) (void)listen();
    link_.close();
    if (monotonic_now() - begin > 2 * kSilence) pause = kListenPauseMin;
    stop_.wait(pause);
    pause = std::min(2 * pause, kListenPauseMax);
  }
}

Result<void> ConfirmationListener::listen() {
  const auto begun =
      link_.call({"SUBSCRIBE", options_.engine.stream + ":confirmed"}, kListenPatience);
  if (!begun) return std::unexpected(begun.error());
  if (begun->is_error()) return fail(readable(begun->text));
  handlers_.on_connected();
  bool is_asked = false;
  for (;;) {
    const auto message = link_.receive(kSilence);
    if (!message) return std::unexpected(message.error());
    if (*message) {
      is_asked = false;
      take(**message);
      continue;
    }
    if (is_asked) return fail("the engine does not reply");
    is_asked = true;
    if (auto sent = link_.post({"PING"}, kListenPatience); !sent) return sent;
  }
}

void ConfirmationListener::take(const Reply& message) {
  if (message.items.size() != 3 || message.items[0].text != "message") return;
  const std::string& text = message.items[2].text;
  const std::size_t space = text.find(' ');
  if (space == std::string::npos || !config::is_node_name(text.substr(0, space))) return;
  const auto position = parse_stream_id(std::string_view(text).substr(space + 1));
  if (position) handlers_.on_confirmed(text.substr(0, space), *position);
}

}  // namespace encore::fleet
