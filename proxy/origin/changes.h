// Changes: what of a response's coming says that the content at a URL is another than before, told
// to those who are to know (publish::ChangedKeys). Does nothing where that is nobody. Confined to
// the worker whose services are given.
#pragma once

#include <string_view>

#include "proxy/origin/received_response.h"
#include "proxy/origin/services.h"
#include "proxy/store/object.h"

namespace encore::server {

// The origin has answered with a response for which it was shown `stored`: a change, unless both
// have the same validator. If neither has any, nobody can tell, and it counts as one; an error of
// the server says nothing of the content.
void note_answer(OriginServices& services, const RequestContext& request,
                 const ReceivedResponse& received, const store::Object& stored);

// A whole response has taken the place of one that nobody knew of when it was asked for: of the
// two nobody can tell which was first.
void note_overtaken(OriginServices& services, const RequestContext& request);

// The content at a normalised URI, without a realm, is another.
void note_change(OriginServices& services, std::string_view uri);

// A response of the request's key is about to be stored: it counts as resident from now on, and no
// more where it was not stored after all. The one that drops it takes it out (StoreLink).
class ResidentMark {
 public:
  ResidentMark(OriginServices& services, const RequestContext& request);
  ~ResidentMark();
  ResidentMark(const ResidentMark&) = delete;
  ResidentMark& operator=(const ResidentMark&) = delete;
  // It is stored.
  void keep() { resident_ = nullptr; }

 private:
  publish::ResidentKeys* resident_;
  const RequestContext& request_;
};

}  // namespace encore::server
