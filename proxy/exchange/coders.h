// Coders: the parts of a worker that put responses into codings. A stored object is coded once: the
// form stays with the object, for as long as that lives, and its bytes are the entry's in the
// kernel. Confined to its worker.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cache/kernel.h"
#include "proxy/coding/coding.h"
#include "proxy/exchange/coded_body.h"
#include "proxy/exchange/coding_memory.h"
#include "proxy/net/loop.h"
#include "proxy/observe/stats.h"
#include "proxy/request/request_context.h"
#include "proxy/store/store.h"

namespace encore::server {

class Coders {
 public:
  // Borrowed, and outlive it.
  struct Parts {
    net::Loop& loop;
    const std::unique_ptr<store::Store>& store;
    const std::unique_ptr<cache::Kernel>& kernel;
    WorkerStats& stats;
    CodingMemory& memory;
  };
  explicit Coders(const Parts& parts) : parts_(parts), turn_(parts.loop) {}

  // Content up to this length is coded in one step, if all of it is there.
  static constexpr std::uint64_t kAtOnceBytes = CodingTurn::kShareMax;

  // All of a content that is there; nothing where there is no memory. REQUIRES: at most
  // kAtOnceBytes.
  std::optional<std::string> code(const Compression& compression, coding::Coding coding,
                                  std::string_view content);
  // Content that comes piece by piece; null where there is no memory. `keep`: the form will be kept
  // with an object.
  struct CodingRequest {
    coding::Coding coding = coding::Coding::kGzip;
    CodedBody::Flush flush = CodedBody::Flush::kSoon;
    CodedBody::Keep keep = CodedBody::Keep::kNothing;
  };
  std::unique_ptr<CodedBody> begin(const Compression& compression, const CodingRequest& request,
                                   std::function<void()> on_more);

  // Keeps the form of a stored object with it, where there is room for it. The body is complete,
  // and all of it is there.
  void keep(const RequestContext& request, const store::Object& object, coding::Coding coding,
            const store::BodyRef& body);
  void keep(const RequestContext& request, const store::Object& object, coding::Coding coding,
            std::string_view body);

  // One more response goes out in a coding.
  void count_response(coding::Coding coding);
  // An encoder was given so much, and made so much of it.
  void count_work(coding::Coding coding, std::uint64_t read, std::uint64_t made);

 private:
  struct Encoder;
  std::optional<Encoder> make_encoder(const Compression& compression, coding::Coding coding);

  const Parts parts_;
  CodingTurn turn_;
};

}  // namespace encore::server
