// StoreWriter: the way of a response into the cache: room is reserved as the body grows, and the
// whole is committed at its end, or all of it given back.
//
//   kNo -> allow() -> kPossible -> begin() -> kUnderWay -> commit() | stop() -> kNo
//
// Confined to its worker.
#pragma once

#include <cstdint>

#include "proxy/origin/received.h"
#include "proxy/origin/services.h"
#include "proxy/store/body.h"
#include "proxy/store/object.h"
#include "proxy/transfer/response.h"

namespace encore::server {

class StoreWriter {
 public:
  // Borrowed.
  StoreWriter(OriginServices& services, const RequestContext& request);
  // REQUIRES: not under way.
  ~StoreWriter();
  StoreWriter(const StoreWriter&) = delete;
  StoreWriter& operator=(const StoreWriter&) = delete;

  // The response may be stored, now or when somebody asks for it later. Both are borrowed until the
  // end. REQUIRES: nothing was allowed before.
  void allow(const Received& received, const SharedResponse& response);
  bool may_store() const { return state_ != State::kNo; }
  bool is_under_way() const { return state_ == State::kUnderWay; }

  // Takes room for a body of this size, 0 where none is known. False where it is too large for the
  // cache: it is not stored then. REQUIRES: may_store(), not under way.
  [[nodiscard]] bool begin(store::Body& body, std::uint64_t body_bytes);
  // Takes room for a body of this size. REQUIRES: under way.
  [[nodiscard]] bool grow(std::uint64_t body_bytes);
  // Gives back what was taken: nothing is stored. Whether it was under way.
  bool stop(store::Body* body);

  enum class Result : std::uint8_t {
    kStored,
    kRefused,  // the cache had another one, or no room any more
    kUnfit,    // no memory for the object, or a part that does not fit
  };
  // Stores it. `completes` is the stored part that it was made of, if it was. REQUIRES: under way,
  // the body is complete.
  Result commit(const store::BodyRef& body, const store::ObjectRef& completes);

 private:
  enum class State : std::uint8_t { kNo, kPossible, kUnderWay };

  bool make_entry(const store::ObjectRef& completes, ObjectMeta& meta, std::string& head,
                  store::BodyRef& body);
  store::ObjectRef make_object(const ObjectMeta& meta, std::string_view head,
                               const store::BodyRef& body);
  void give_back();

  OriginServices& services_;
  const RequestContext& request_;
  const Received* received_ = nullptr;
  const SharedResponse* response_ = nullptr;
  State state_ = State::kNo;
  std::uint64_t reserved_bytes_ = 0;
};

}  // namespace encore::server
