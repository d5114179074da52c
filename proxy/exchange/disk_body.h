// DiskBody: a body that lies in parts on disk, on its way to one reader: read piece by piece by the
// disks' threads into a store::Body, no further ahead of its reader than that keeps up with. Each
// byte is verified before it is there. A part that cannot be read ends the body early.
//
// Confined to its worker; its loop reports what is read. It may be destroyed in any call that it
// makes, and while something is read. Why each reader reads for itself: docs/decisions/0150.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "cache/kernel.h"
#include "filter/hash.h"
#include "proxy/disk/disks.h"
#include "proxy/net/loop.h"
#include "proxy/net/timer.h"
#include "proxy/store/store.h"
#include "proxy/transfer/response.h"

namespace encore::server {

class DiskBody {
 public:
  // Borrowed, and outlive it.
  struct Parts {
    net::Loop& loop;
    disk::Disks& disks;
    cache::Kernel& kernel;
    store::Store& store;
  };
  // Bytes [begin, end) of it, where begin < end <= its length.
  struct Wanted {
    filter::Hash128 key;  // its object's
    LargeBody body;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    // True if a part that is not there may come yet, of a body that is still being written; called
    // from its loop. Empty: all are there.
    std::function<bool()> may_come = {};
  };
  // Begins to read. `on_more`: more is there, or it has ended.
  DiskBody(const Parts& parts, const Wanted& wanted, store::BodyRef body,
           std::function<void()> on_more);
  ~DiskBody();
  DiskBody(const DiskBody&) = delete;
  DiskBody& operator=(const DiskBody&) = delete;

  // For the constructor: it begins with the block that has the first byte. Errors: no memory.
  static Result<store::BodyRef> make_body(store::Store& store, const Wanted& wanted);

  const store::BodyRef& body() const { return body_; }
  // The reader has read up to here, and what is there beyond may be so much.
  struct Reader {
    std::uint64_t position = 0;
    bool may_read_ahead = true;
  };
  void on_reader(const Reader& reader);

  static constexpr std::uint64_t kPieceBytes = 1ULL << 20U;
  // The first: a client waits for it.
  static constexpr std::uint64_t kFirstPieceBytes = 256ULL << 10U;

 private:
  class Load;
  struct Mailbox;

  void read_on();
  void finish(disk::LoadEnd how);
  bool has_moved() const;
  cache::Key key_at(std::uint64_t position) const;
  void end_early();

  const Parts parts_;
  const Wanted wanted_;
  const store::BodyRef body_;
  const std::function<void()> on_more_;
  const std::shared_ptr<Mailbox> mailbox_;
  net::Timer again_;
  const disk::WantedParts::Number wanted_parts_;
  Reader reader_;
  cache::DiskPlace asked_at_;
  std::uint64_t began_at_;  // begin of the present read, or the last one
  bool reading_ = false;
  std::uint32_t vain_ = 0;  // attempts in a row that brought nothing
};

}  // namespace encore::server
