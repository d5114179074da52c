// StoreWriter: the path of a response into the cache: space is reserved as the body grows, and the
// whole is committed at its end, or all of it given back. If there are disks, a long body is
// written there in parts as it comes; a body that is too large for the memory lies there alone.
//
//   kNo -> allow() -> kPossible -> begin() -> kUnderWay -> commit() | stop() -> kNo
//
// Confined to its worker.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cache/charge.h"
#include "proxy/origin/part_writer.h"
#include "proxy/origin/received_response.h"
#include "proxy/origin/services.h"
#include "proxy/store/body.h"
#include "proxy/store/object.h"
#include "proxy/transfer/response.h"

namespace encore::server {

class StoreWriter {
 public:
  // Borrowed.
  StoreWriter(OriginServices& services, const RequestContext& request);
  // REQUIRES: not in progress.
  ~StoreWriter();
  StoreWriter(const StoreWriter&) = delete;
  StoreWriter& operator=(const StoreWriter&) = delete;

  // The response may be stored, now or when somebody asks for it later. Both are borrowed until the
  // end. REQUIRES: nothing was allowed before.
  void allow(const ReceivedResponse& received, const SharedResponse& response);
  bool may_store() const { return state_ != State::kNo; }
  bool is_under_way() const { return state_ == State::kUnderWay; }

  // Takes room for a body of this size, 0 where none is known. False where it is too large for the
  // cache: it is not stored then. REQUIRES: may_store(), not in progress; the body keeps its first
  // byte.
  [[nodiscard]] bool begin(store::Body& body, std::uint64_t body_bytes);
  // Takes room for a body of this size. REQUIRES: in progress.
  [[nodiscard]] bool grow(store::Body& body, std::uint64_t body_bytes);
  // The body has grown. False if it cannot be stored any more. REQUIRES: in progress.
  [[nodiscard]] bool write(store::Body& body);
  // True if the body has to keep all of its bytes for it.
  bool keeps_whole() const { return is_under_way() && !on_disk_alone_; }
  // The number of the parts on disk that alone are to have the body (LargeBody); 0: it is not so.
  std::uint64_t parts_alone() const {
    return is_under_way() && on_disk_alone_ && parts_ ? parts_->number() : 0;
  }
  // Gives back what was taken: nothing is stored. True if it was in progress.
  bool stop(store::Body* body);

  enum class Result : std::uint8_t {
    kStored,
    kReplaced,   // likewise, in the place of another
    kRefused,    // the cache had no room any more
    kOvertaken,  // a newer response or a purge came before it
    kUnfit,      // no memory for the object, or a part that does not fit
  };
  // Stores it. `completes` is the stored part that it was made of, if it was. REQUIRES: in
  // progress, the body is complete.
  Result commit(const store::BodyRef& body, const store::ObjectRef& completes);

 private:
  enum class State : std::uint8_t { kNo, kPossible, kUnderWay };

  struct Made {
    ObjectMeta meta;
    std::string head;
    store::BodyRef body;  // another than the response's, where it was joined with a stored part
  };
  bool is_piece() const;
  bool may_be_on_disk() const;
  void let_key_wait(std::uint64_t body_bytes);
  void make_parts();
  bool reserve(std::uint64_t body_bytes);
  cache::ObjectSizes sizes(std::uint64_t body_bytes) const;
  bool fits_disks(std::uint64_t body_bytes) const;
  std::uint64_t record_bytes_with(std::uint64_t body_bytes) const;
  bool fits_one_record(std::uint64_t body_bytes) const;
  bool leave_memory(store::Body& body, std::uint64_t body_bytes);
  bool is_head_forwarded(std::uint64_t body_bytes) const;
  bool make_head(Made& made, std::string& tags);
  bool make_entry(const store::ObjectRef& completes, Made& made);
  bool finish_parts(Made& made);
  store::ObjectRef make_object(const Made& made);
  void give_back();

  OriginServices& services_;
  const RequestContext& request_;
  const ReceivedResponse* received_ = nullptr;
  const SharedResponse* response_ = nullptr;
  State state_ = State::kNo;
  std::string tags_;  // those of the response in progress
  bool on_disk_alone_ = false;
  std::uint64_t reserved_bytes_ = 0;
  std::uint64_t reserved_body_ = 0;  // a body of so many bytes fits into it
  std::optional<PartWriter> parts_;  // as long as there is a use for them
  bool parts_failed_ = false;
};

}  // namespace encore::server
