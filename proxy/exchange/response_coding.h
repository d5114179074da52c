// ResponseCoding: the coding of one response: whether it might have one, which its client wants,
// and the bytes in it, whether they are stored, are made in one step, or are made as they are sent.
// It changes what a response is made from (ResponseSource), and nothing else of how it is answered.
// Confined to its worker.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "proxy/coding/coding.h"
#include "proxy/exchange/coded_body.h"
#include "proxy/exchange/coders.h"
#include "proxy/exchange/response_plan.h"
#include "proxy/http/stored_meta.h"
#include "proxy/net/timer.h"
#include "proxy/request/request_context.h"
#include "proxy/request/request_view.h"
#include "proxy/store/object.h"

namespace encore::server {

// The coding that a request wants, where it may have one; nothing: the content as it is. Parts are
// parts of the content as it is; a client of HTTP/1.0 has no way to be shown where open content
// ends.
std::optional<coding::Coding> wanted_coding(const http::RequestHead& request,
                                            const Compression& compression);

// Form of the object in a plain hit.
enum class HitForm : std::uint8_t {
  kIdentity,  // it has no other
  kVaries,    // as it is, and others might get it in a coding
  kCoded,     // `found.object` is the form now
  kUnknown,   // that is not known yet, or there is no such form yet: not a plain hit
};
// REQUIRES: runtime.compression; found.object.
HitForm choose_hit_form(const RequestView& view, const Compression& compression, Coders& coders,
                        CacheView& found);

class ResponseCoding {
 public:
  // `coders`: null: nothing is coded. All are borrowed and outlive it.
  ResponseCoding(Coders* coders, const RequestContext& request)
      : coders_(coders), request_(request) {}

  // Chooses for a response, makes `source` one in that coding, or says in it that it varies, and
  // plans. If content has to be coded on its way and there is no memory for it, it goes uncoded.
  // `object`: the source is of this stored object; null: it is not, or not as it lies. `more` is
  // scheduled when more can be made.
  ResponsePlan plan(ResponseSource& source, const store::ObjectRef* object,
                    const ResponseMoment& moment, net::Deferred& more);

  // Returns the body that is made as it is sent; null: there is none.
  CodedBody* body() { return body_.get(); }
  const CodedBody* body() const { return body_.get(); }
  // Lets the client's reader read what is made. REQUIRES: body().
  void open(BodyReader& content);
  // Returns the trailers behind it: complete when it is. REQUIRES: body().
  const std::string* trailers() const { return &trailers_; }
  // The reader has read up to here; more may be made. Nothing without body().
  void produce(std::uint64_t position);
  // The content, of a source that could not say yet where it is: one on disk. False where it is not
  // kept any more.
  bool set_content(const store::BodyRef& body);
  // A response with content goes out, in the coding that was chosen, if one was.
  void count();

 private:
  void apply(ResponseSource& source, const store::ObjectRef* object);
  bool begin(ResponseSource& source, net::Deferred& more);
  bool is_covered(const ResponseSource& source, const store::ObjectRef* object) const;
  void say_varies(ResponseSource& source);
  void weaken_not_modified(ResponseSource& source);
  void take_form(const store::Object& form, ResponseSource& source);
  bool code_at_once(ResponseSource& source, const store::ObjectRef* object);
  void set_head(const ResponseSource& source, std::optional<std::uint64_t> length);

  Coders* const coders_;
  const RequestContext& request_;
  std::optional<coding::Coding> coding_;
  ResponseSource identity_;  // as it was
  store::ObjectRef object_;  // that the form is kept with; empty: it is not kept
  std::string head_;
  http::StoredMeta meta_;
  std::string more_fields_;
  std::string trailers_;
  const std::string* live_trailers_ = nullptr;  // for content that comes; null: there are none
  std::string coded_;                           // all of it, made in one step
  bool flushes_ = false;
  std::unique_ptr<CodedBody> body_;
  bool is_done_ = false;
  std::uint64_t counted_read_ = 0;
  std::uint64_t counted_made_ = 0;
};

}  // namespace encore::server
