// ResponseContent: the content of a response on its way to its client: what of a body is read, by
// which reader, and from disk where it lies there. Confined to its worker.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "filter/hash.h"
#include "proxy/exchange/body_reader.h"
#include "proxy/exchange/disk_body.h"
#include "proxy/exchange/disk_loads.h"
#include "proxy/exchange/response_coding.h"
#include "proxy/exchange/response_plan.h"
#include "proxy/http/range.h"
#include "proxy/transfer/transfer.h"
#include "proxy/transfer/transfer_reader.h"

namespace encore::server {

class ResponseContent {
 public:
  // All are borrowed and outlive it. `coding` is that of the response, `reader` the exchange.
  ResponseContent(DiskLoads& loads, ResponseCoding& coding, TransferReader& reader)
      : loads_(loads), coding_(coding), transfer_reader_(reader) {}
  ResponseContent(const ResponseContent&) = delete;
  ResponseContent& operator=(const ResponseContent&) = delete;

  // The reader of the client's stream.
  BodyReader& reader() { return reader_; }
  const BodyReader& reader() const { return reader_; }
  // The reader of the body as it came: in front of a coding, if there is one.
  BodyReader& source() {
    CodedBody* const coded = coding_.body();
    return coded != nullptr ? coded->source() : reader_;
  }
  const BodyReader& source() const {
    const CodedBody* const coded = coding_.body();
    return coded != nullptr ? coded->source() : reader_;
  }
  // That is read; null: another.
  DiskBody* disk() const { return disk_.get(); }

  // Begins to read what is wanted of a body that is on disk alone. False where there is no memory.
  // `on_more`: more is there, or it has ended. REQUIRES: source.on_disk.
  bool open_disk(const filter::Hash128& key, const ResponseSource& source, const ResponsePlan& plan,
                 std::function<void()> on_more);
  // Goes on, from where its reader is, in a body on disk. False where there is no memory.
  bool go_on_from_disk(const DiskBody::Wanted& wanted, std::function<void()> on_more);
  // Reads no disk any more.
  void close_disk() { disk_.reset(); }
  // Gives what is planned to the reader. `transfer`: whose body it is; null: none's. REQUIRES: the
  // plan has content that is read.
  void give(const ResponseSource& source, ResponsePlan& plan, Transfer* transfer);
  // Content that the store has no body of.
  void add_own(std::string content);
  // Begins anew.
  void clear() { reader_ = BodyReader(); }

  // Bytes of content that were sent; our own count as soon as they are given.
  std::uint64_t bytes() const { return own_bytes_ + reader_.body_bytes(); }

 private:
  void give_range(const ResponseSource& source, const http::ByteRange& range, Transfer* transfer);
  void open(const ResponseSource& source, std::uint64_t start, Transfer* transfer);

  DiskLoads& loads_;
  ResponseCoding& coding_;
  TransferReader& transfer_reader_;
  BodyReader reader_;
  std::unique_ptr<DiskBody> disk_;
  std::uint64_t own_bytes_ = 0;
};

}  // namespace encore::server
