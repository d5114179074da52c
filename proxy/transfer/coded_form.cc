#include "proxy/transfer/coded_form.h"

#include <array>
#include <span>

#include "proxy/http/coded_head.h"
#include "proxy/http/head_text.h"
#include "proxy/http/stored_head.h"

namespace encore::server {

std::string without_body_digests(std::string_view trailers) {
  std::string kept;
  while (!trailers.empty()) {
    const std::size_t end = trailers.find("\r\n");
    const std::string_view line = trailers.substr(0, end == std::string_view::npos ? end : end + 2);
    trailers.remove_prefix(line.size());
    const http::Field field{.name = line.substr(0, line.find(':')), .value = {}};
    // A digest of the identity's bytes is wrong for those of a form.
    if (!http::is_body_digest(field)) kept += line;
  }
  return kept;
}

CodedForm coded_form(const HeadParts& identity, coding::Coding coding, std::uint64_t length) {
  CodedForm form{.meta = identity.meta, .head = {}};
  http::ResponseHead head;
  http::read_stored_head(identity.stored_head(), head);
  http::build_coded_head(head, coding::to_string(coding), length, form.head, form.meta.http);
  place_content_type(form.head, form.meta);
  const std::string trailers = without_body_digests(identity.trailers());
  form.head += trailers;
  form.meta.tag_bytes = 0;
  form.meta.large_bytes = 0;
  form.meta.plain = trailers.empty() ? 1 : 0;
  return form;
}

void carry_forms(store::Store& store, const store::Object& old, const store::Object& made) {
  constexpr std::array kAll = {coding::Coding::kZstd, coding::Coding::kBrotli,
                               coding::Coding::kGzip};
  for (const coding::Coding coding : kAll) {
    const std::size_t number = coding::number_of(coding);
    const store::Object* const form = old.form(number);
    if (form == nullptr) continue;
    const CodedForm now = coded_form(head_parts(made), coding, form->body_size());
    auto carried = store.with_head(store::ObjectRef::share(*form),
                                   {.key = made.key(),
                                    .meta = std::as_bytes(std::span(&now.meta, 1)),
                                    .head = now.head,
                                    .is_form = true});
    if (carried) (void)made.add_form(number, std::move(*carried));
  }
}

}  // namespace encore::server
