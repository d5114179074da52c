#include "proxy/origin/changes.h"

#include "proxy/http/conditional.h"
#include "proxy/http/reuse.h"
#include "proxy/publish/changed_keys.h"
#include "proxy/publish/resident_keys.h"
#include "proxy/settings/router.h"
#include "proxy/transfer/response.h"

namespace encore::server {

namespace {

std::string_view url_of(const RequestContext& request) {
  return std::string_view(request.key).substr(kRealmBytes);
}

}  // namespace

ResidentMark::ResidentMark(OriginServices& services, const RequestContext& request)
    : resident_(services.resident), request_(request) {
  if (resident_ != nullptr) resident_->add(url_of(request_));
}

ResidentMark::~ResidentMark() {
  if (resident_ != nullptr) resident_->remove(url_of(request_));
}

void note_change(OriginServices& services, std::string_view uri) {
  if (services.changed != nullptr) services.changed->note(uri, services.loop.wall_now());
}

void note_overtaken(OriginServices& services, const RequestContext& request) {
  if (request.key.size() > kRealmBytes) {
    note_change(services, url_of(request));
  }
}

void note_answer(OriginServices& services, const RequestContext& request,
                 const ReceivedResponse& received, const store::Object& stored) {
  const unsigned status = received.head.status;
  // An error of the server, or one that the request is to blame for, says nothing of the resource.
  if (services.changed == nullptr || status >= 500 || http::blames_the_request(status)) return;
  const auto before = http::stored_validators(meta_of(stored).http, stored_head_of(stored));
  const auto after = http::received_validators(received.head, received.arrival());
  if (!http::same_validator(before, after)) note_overtaken(services, request);
}

}  // namespace encore::server
