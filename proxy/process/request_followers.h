// RequestFollowers: operators that follow requests on the admin listener. Each asks for the records
// behind a number, and is answered when there are some, or after a while without any. Requests are
// recorded only while somebody follows them. Confined to the main thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <optional>

#include "base/time.h"
#include "proxy/admin/admin_message.h"
#include "proxy/observe/request_tap.h"

namespace encore::server {

class RequestFollowers {
 public:
  static constexpr std::size_t kMost = 16;
  static constexpr std::size_t kRecordsMax = 1000;  // in one response
  // Time until an empty response.
  static constexpr Nanoseconds kPatience = std::chrono::seconds(10);
  // Time for which records are kept for one who was answered and has not asked again.
  static constexpr Nanoseconds kLease = std::chrono::seconds(10);

  // `tap` is borrowed.
  explicit RequestFollowers(RequestTap& tap) : tap_(tap) {}

  // Answers with the records from number `from` on, now or later; nothing: from the next one on.
  // 503 where too many follow.
  void add(std::optional<std::uint64_t> from, AdminReply to, MonotonicTime now);
  // Answers those for whom there are records, or who have waited long enough. To be called some
  // times a second.
  void look(MonotonicTime now);
  // Answers all, and every later one immediately: the process is to end.
  void end();

 private:
  struct Waiting {
    std::uint64_t from = 0;
    AdminReply to;
    MonotonicTime until;
  };
  // False where there is nothing to be said yet.
  bool answer(Waiting& waiting, bool is_over);

  RequestTap& tap_;
  std::list<Waiting> waiting_;
  std::optional<MonotonicTime> leased_until_;
  bool ended_ = false;
};

}  // namespace encore::server
