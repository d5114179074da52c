// Conditional requests (RFC 9110 13), answered from the cache, and validation of stored responses
// (RFC 9111 4.3). Pure, thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/http/date.h"
#include "proxy/http/message.h"
#include "proxy/http/stored_meta.h"
#include "proxy/http/validators.h"

namespace encore::http {

// Those of a stored response, with the Date that its body is known to have come with: the Date of a
// 304 that confirmed it by less than a strong entity tag makes no date stronger. The view points
// into `stored_head`.
Validators stored_validators(const StoredMeta& meta, std::string_view stored_head) noexcept;

enum class Condition : std::uint8_t {
  kSend,         // the stored response, or the range of it
  kNotModified,  // 304
  kForward,      // If-Match or If-Unmodified-Since: the origin's to evaluate (RFC 9111 4.3.2)
};

// Evaluates the conditions of a GET or HEAD against a stored response that may be used for it.
// If-None-Match comes before If-Modified-Since (RFC 9110 13.2.2); without Last-Modified, Date
// stands for it (RFC 9111 4.3.2). A weak Last-Modified that equals the client's date shows nothing:
// of two versions of one second the client may have the other. Only a stored 2xx is ever answered
// with 304.
Condition evaluate_conditions(const RequestHead& request, const Validators& stored,
                              unsigned stored_status, UnixSeconds now) noexcept;

// True if Range is to be honoured, given If-Range (RFC 9110 13.1.5): true without If-Range, else
// only if its validator matches strongly.
bool if_range_holds(const RequestHead& request, const Validators& stored, UnixSeconds now) noexcept;

// Appends If-None-Match and If-Modified-Since lines with CRLF for our own validation.
void append_validation_fields(const Validators& stored, std::string& out);

// True if a 304 confirms this stored response (RFC 9111 4.3.4): its validators, if it has any,
// agree with the stored ones. If it has two strong ones, one is enough; a weak date does not count
// as strong.
bool not_modified_matches(const Validators& stored, const Validators& received) noexcept;

// The evidence of a HEAD's response about the stored response (RFC 9111 4.3.5): one of its
// validators (kSame), or at least its length (kSameLength), says that it is the same, and none that
// it is not. A validator counts as far as `proof` allows; the length only if it is alone, and there
// is no doubt.
enum class HeadEvidence : std::uint8_t { kNothing, kSameLength, kSame, kChange };
HeadEvidence compare_head(const Validators& stored, const ResponseHead& response,
                          std::uint64_t stored_length, UnixSeconds now,
                          ValidatorStrength proof) noexcept;

}  // namespace encore::http
