// What the kernel says of a key to who only wants to know.
#include "cache/kernel.h"
#include "cache/shard.h"

namespace encore::cache {

void Kernel::peek(const Key& key, Visitor& visitor) const {
  const Shard& shard = shard_for(key.hash);
  OptionalLock lock(shard.mutex);
  for (EntryRef ref = shard.table.find(key.hash); ref != kNoEntry; ref = shard.table.next(ref)) {
    visitor.visit(shard.table.view(ref));
  }
  if (shard.disk != nullptr) {
    shard.disk->peek(key, visitor);
  }
}

Recalled Kernel::recall(const Key& key, const AdmissionRule& rule) const {
  const Shard& shard = shard_for(key.hash);
  OptionalLock lock(shard.mutex);
  return shard.admission.recall(key, rule);
}

}  // namespace encore::cache
