// PayloadOwner: to whom the kernel gives back the references that it held for its entries.
#pragma once

#include <span>

#include "cache/types.h"

namespace encore::cache {

class PayloadOwner {
 public:
  virtual ~PayloadOwner() = default;
  // These entries are gone or were replaced. Called on the thread that caused it, after every lock
  // of the kernel was dropped; never with an empty span.
  virtual void release(std::span<const Payload> payloads) = 0;
  // Just before that: these among them were evicted for room.
  virtual void note_evicted(std::span<const Payload> payloads) { (void)payloads; }
};

}  // namespace encore::cache
