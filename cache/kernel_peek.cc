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
  if (shard.disk == nullptr) {
    return;
  }
  for (EntryRef ref = shard.disk->find(EntryKeys::mixed_key(key.hash)); ref != kNoEntry;
       ref = shard.disk->next(ref)) {
    if (shard.disk->written(ref)) {
      visitor.visit_disk(shard.disk->view(ref));
    }
  }
}

Recalled Kernel::recall(const Key& key, const AdmissionRule& rule) const {
  const Shard& shard = shard_for(key.hash);
  OptionalLock lock(shard.mutex);
  return shard.admission.recall(key, rule);
}

}  // namespace encore::cache
