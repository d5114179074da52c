// DiskLoads: the records of the disk tier that requests of a worker wait for. A record is read once
// for all that request it while that lasts; a reader that leaves meanwhile is not called. A record
// that has been requested on disk before goes into memory as well; any other is kept for its
// readers, who are charged for it as for an object that was evicted while they read it. A record
// that is invalidated while it is read is not used: a purge may have been answered meanwhile.
//
// Confined to its worker; what is read is handed over by its loop. Why a record is read whole, and
// once a worker: docs/decisions/0130.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "cache/kernel.h"
#include "filter/hash.h"
#include "proxy/disk/disks.h"
#include "proxy/exchange/disk_body.h"
#include "proxy/net/loop.h"
#include "proxy/publish/resident_keys.h"
#include "proxy/request/request_context.h"
#include "proxy/request/request_view.h"
#include "proxy/store/store.h"
#include "proxy/transfer/inflight.h"

namespace encore::server {

// A request that waits for a record.
class LoadReader {
 public:
  // From the loop; it waits no more. Empty: it could not be had. It may be destroyed.
  virtual void on_loaded(store::ObjectRef object) = 0;

 protected:
  ~LoadReader() = default;
};

class DiskLoads {
 public:
  // All are borrowed, and outlive it.
  struct Parts {
    net::Loop& loop;
    const std::unique_ptr<disk::Disks>& disks;  // null: there are none, and nobody waits
    const std::unique_ptr<store::Store>& store;
    const std::unique_ptr<cache::Kernel>& kernel;
    const Inflight& inflight;
    publish::ResidentKeys* resident;  // null: nobody wants to know the stored objects
  };
  explicit DiskLoads(const Parts& parts);
  // REQUIRES: nobody waits.
  ~DiskLoads();
  DiskLoads(const DiskLoads&) = delete;
  DiskLoads& operator=(const DiskLoads&) = delete;

  // Waits for what a lookup has found on disk. REQUIRES: `reader` does not wait; found.disk.
  void wait(LoadReader& reader, const RequestContext& request, const CacheView& found);
  // With what it waits for. Nothing where it does not.
  void leave(LoadReader& reader, const RequestContext& request, const CacheView& found);

  // True if the parts of such a body are all there.
  bool has_parts(const filter::Hash128& key, const LargeBody& body) const;
  // The body of an object that is on disk alone; null where there is no memory.
  std::unique_ptr<DiskBody> open(const DiskBody::Wanted& wanted, std::function<void()> on_more);

 private:
  class Load;
  struct Mailbox;
  // A key's hash and a place: another key's record there is another record.
  using Name =
      std::tuple<std::uint64_t, std::uint64_t, std::uint16_t, std::uint32_t, std::uint32_t>;
  struct Waiting {
    std::uint64_t number = 0;  // the load's
    std::string key;
    filter::Hash128 hash{};
    DiskLookup where;
    MonotonicTime fresh_until{};
    std::uint64_t invalidations_seen = 0;  // as it began
    std::vector<LoadReader*> readers;
  };

  static Name name_of(const RequestContext& request, const CacheView& found);
  void finish(const Name& name, std::uint64_t number, store::ObjectRef object);
  bool promote(const Waiting& waiting, const store::ObjectRef& object);
  // Why one of them is not; nothing: all are.
  std::optional<cache::PartMissing> missing(const filter::Hash128& key,
                                            const LargeBody& body) const;
  // True if all of a loaded object is there. If a part has gone, the object has.
  bool is_whole(const Waiting& waiting, const LargeBody& body);

  const Parts parts_;
  const std::shared_ptr<Mailbox> mailbox_;
  std::map<Name, Waiting> waiting_;
  std::uint64_t loads_ = 0;
  std::vector<LoadReader*> called_;  // that are still to be called, of the load that has ended
};

}  // namespace encore::server
