// Publications: purges of this node that wait for the engine, in their order, and the latest that
// it has, which are sent again after it has lost its memory. Bounded: docs/decisions/0603.
// Thread-compatible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "proxy/fleet/purge_entry.h"
#include "proxy/fleet/stream_id.h"

namespace encore::fleet {

struct Publication {
  std::uint64_t number = 0;  // 0: of an earlier process
  Fields fields = {};
  bool is_kept = false;  // in the file of those that wait
  bool is_soft = false;
  std::size_t bytes() const;
};

class Publications {
 public:
  struct Limits {
    std::size_t count = 10'000;
    std::size_t bytes = std::size_t{64} << 20U;
    std::size_t recent = 1'000;  // published ones that are remembered
  };
  Publications() : Publications(Limits()) {}
  explicit Publications(Limits limits) : limits_(limits) {}

  // False: it does not fit any more, and nothing has changed.
  bool add(Publication publication);
  void add_beyond_limits(Publication publication);
  // True if all that wait are soft purges.
  bool are_soft() const;
  // True if one that waits is in no file yet.
  bool has_unkept() const;
  // All that wait are replaced by one that covers them.
  void replace_all(Publication publication);
  bool empty() const { return waiting_.empty(); }
  std::size_t size() const { return waiting_.size(); }
  // The first of them, at most so many and about so many bytes, at least one.
  std::vector<Publication> front(std::size_t count, std::size_t bytes) const;
  // The first has this place in the stream, and waits no more.
  void published(const StreamId& id);
  std::deque<Publication>& waiting() { return waiting_; }

  // The last that was published; nothing has its place 0-0.
  StreamId last_id() const { return recent_.empty() ? StreamId() : recent_.back().id; }
  // The latest published wait again, before all others. False: there were more than are remembered.
  bool republish_recent();

 private:
  struct Published {
    StreamId id;
    Publication publication;
  };
  const Limits limits_;
  std::deque<Publication> waiting_;
  std::size_t bytes_ = 0;
  std::deque<Published> recent_;
  std::size_t recent_bytes_ = 0;
  bool has_forgotten_ = false;
};

// Publications as a file keeps them: each is appended as a frame. Those of a frame that is not
// whole, and of all behind it, were never confirmed to be kept.
std::string frame(const Publication& publication);
// Those of a file.
std::vector<Publication> read_frames(std::string_view bytes);

}  // namespace encore::fleet
