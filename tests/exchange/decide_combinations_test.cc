// The decisions about a request, by all combinations of what they depend on, compared with a second
// wording of each rule.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/exchange/decide.h"
#include "proxy/exchange/response_coding.h"
#include "proxy/exchange/sharing.h"
#include "proxy/store/memory_store.h"
#include "tests/catch.h"
#include "tests/exchange/some_request.h"
#include "tests/transfer/made_object.h"

namespace encore::server {
namespace {

using std::chrono::seconds;

constexpr MonotonicTime kToday{std::chrono::hours(1)};
const std::string kRestOfLine = " http://a.example/ HTTP/1.1\nHost: a.example\n";
const std::string kGetLine = "GET" + kRestOfLine;

TEST_CASE("a request's path, for all methods, conditions, contents and wishes",
          "[exchange][decide]") {
  config::Rule uncached;
  uncached.cache = false;
  for (const bool has_cache : {true, false}) {
    config::Config config;
    if (!has_cache) config.rule = {uncached};
    const auto runtime = some_runtime(config);
    for (const std::string_view method : {"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"}) {
      for (const std::string_view condition :
           {"", "If-Match: \"a\"\n", "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\n",
            "If-None-Match: \"a\"\n", "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\n",
            "Range: bytes=0-1\n"}) {
        for (const std::string_view more :
             {"", "Content-Length: 0\n", "Content-Length: 1\n", "Transfer-Encoding: chunked\n",
              "Connection: upgrade\nUpgrade: raw/1\n"}) {
          for (const bool only_if_cached : {false, true}) {
            std::string text(method);
            text.append(kRestOfLine).append(condition).append(more);
            if (only_if_cached) text += "Cache-Control: only-if-cached\n";
            CAPTURE(text, has_cache);
            const bool reads = method == "GET" || method == "HEAD";
            const bool judged_there =
                condition.starts_with("If-Match") || condition.starts_with("If-Unm");
            PathDecision expected;
            if (!reads) {
              expected = {RequestPath::kOrigin, http::Forwarded::kMethod};
            } else if (has_cache && !judged_there && (more.empty() || more.ends_with(" 0\n"))) {
              expected = {RequestPath::kCache, http::Forwarded::kNo};
            } else if (only_if_cached) {
              expected = {RequestPath::kOnlyIfCached, http::Forwarded::kNo};
            } else {
              expected = {RequestPath::kOrigin,
                          judged_there ? http::Forwarded::kRequest : http::Forwarded::kBypass};
            }
            const PathDecision taken = choose_path(*some_request(text, runtime));
            CHECK(taken.path == expected.path);
            CHECK(taken.forwarded == expected.forwarded);
          }
        }
      }
    }
  }
}

TEST_CASE("the form of a request to an origin, for all sets of conditional fields",
          "[exchange][decide]") {
  const std::vector<std::string> lines = {
      "Range: bytes=0-1\n",        "If-Range: \"a\"\n",
      "If-None-Match: \"a\"\n",    "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\n",
      "If-Match: \"a\"\n",         "If-Unmodified-Since: Sun, 06 Nov 1994 08:49:37 GMT\n",
      "Cache-Control: no-store\n",
  };
  config::Config hides;
  hides.cache.cache_status_admission = false;
  const auto showing = some_runtime();
  const auto hiding = some_runtime(hides);
  const std::size_t only_no_store = std::size_t{1} << (lines.size() - 1);
  for (std::size_t set = 0; set < std::size_t{1} << lines.size(); ++set) {
    std::string fields;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if ((set >> i & 1U) != 0) fields += lines[i];
    }
    const bool is_conditional = (set & ~only_no_store) != 0;
    for (const bool is_get : {true, false}) {
      for (const bool shows : {true, false}) {
        const auto request = some_request((is_get ? "GET" : "HEAD") + kRestOfLine + fields,
                                          shows ? showing : hiding);
        for (const bool uncacheable : {true, false}) {
          CAPTURE(fields, is_get, shows, uncacheable);
          bool depends = is_get && is_conditional && shows && (set & only_no_store) == 0;
          if (uncacheable && (set & 1U) != 0) depends = false;
          CHECK(depends_on_admission(*request, uncacheable) == depends);
          for (const bool admitted : {true, false}) {
            const bool whole = is_get && (!is_conditional || (depends && admitted));
            CHECK((origin_request_form(*request,
                                       {.uncacheable = uncacheable, .admitted = admitted}) ==
                   OriginRequestForm::kWhole) == whole);
          }
        }
      }
    }
  }
}

TEST_CASE("a part answers one range within it, and no other condition of the request",
          "[exchange][decide]") {
  http::StoredMeta meta;
  meta.status = 206;
  meta.lifetime_seconds = 60;
  meta.age_zero = kToday;
  meta.fresh_until = kToday + seconds(60);
  const http::ContentRange content{http::ByteRange{100, 200}, 1000};
  const auto runtime = some_runtime();
  struct Asked {
    std::string_view value;
    std::optional<http::ByteRange> within;
  };
  for (const Asked& asked : std::vector<Asked>{{"", {}},
                                               {"bytes=100-199", http::ByteRange{100, 200}},
                                               {"bytes=100-100", http::ByteRange{100, 101}},
                                               {"bytes=199-199", http::ByteRange{199, 200}},
                                               {"bytes=99-199", {}},
                                               {"bytes=100-200", {}},
                                               {"bytes=0-", {}},
                                               {"bytes=150-", {}},
                                               {"bytes=-850", {}},
                                               {"bytes=110-119,130-139", {}},
                                               {"bytes=1000-", {}},
                                               {"lines=100-199", {}}}) {
    for (const std::string_view condition :
         {"", "If-None-Match: \"x\"\n", "If-None-Match: \"a\"\n",
          "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\n"}) {
      for (const std::string_view if_range :
           {"", "If-Range: \"a\"\n", "If-Range: \"x\"\n", "If-Range: W/\"a\"\n"}) {
        for (const std::string_view wish :
             {"", "Cache-Control: no-cache\n", "Cache-Control: max-stale\n"}) {
          std::string text = kGetLine;
          if (!asked.value.empty()) text.append("Range: ").append(asked.value).append("\n");
          text.append(condition).append(if_range).append(wish);
          const auto request = some_request(text, runtime);
          for (const bool is_known : {true, false}) {
            for (const bool is_late : {true, false}) {
              CAPTURE(text, is_known, is_late);
              const StoredPart part{.meta = meta,
                                    .validators = {.etag = "\"a\""},
                                    .content = is_known ? std::optional(content) : std::nullopt};
              const bool is_answer = is_known && asked.within && condition.empty() &&
                                     (if_range.empty() || if_range == "If-Range: \"a\"\n");
              PartUse use = PartUse::kAsk;
              if (is_answer && !is_late && !wish.contains("no-cache")) use = PartUse::kFresh;
              if (is_answer && is_late && wish.contains("max-stale")) use = PartUse::kStale;
              const PartDecision decision = decide_stored_part(
                  part, *request, kToday + seconds(is_late ? 61 : 1), WallTime{});
              REQUIRE(decision.use == use);
              if (use != PartUse::kAsk) {
                CHECK(decision.range.begin == asked.within->begin);
                CHECK(decision.range.end == asked.within->end);
              } else if (!is_answer) {
                CHECK(decision.forwarded == http::Forwarded::kPartial);
              } else if (is_late != wish.contains("no-cache")) {
                CHECK(decision.forwarded ==
                      (is_late ? http::Forwarded::kStale : http::Forwarded::kRequest));
              }
            }
          }
        }
      }
    }
  }
}

TEST_CASE("who may lead others, for all that is known of a key", "[exchange][sharing]") {
  using enum Inflight::Unshared;
  for (const auto unshared : {kNo, kValidated, kAnswer, kUncacheable}) {
    for (const bool has_stored : {true, false}) {
      CAPTURE(static_cast<int>(unshared), has_stored);
      bool leads = false;
      if (unshared == kNo) leads = true;
      if (unshared == kValidated) leads = !has_stored;
      CHECK(may_lead(unshared, has_stored) == leads);
    }
  }
}

// Reasons why the answer to another is none to this client.
enum class Unfit : std::uint8_t { kNot, kAskerReloads, kStale, kWantsPermission, kBarred };
constexpr auto kUnfits = {Unfit::kNot, Unfit::kAskerReloads, Unfit::kStale, Unfit::kWantsPermission,
                          Unfit::kBarred};

http::StoredMeta meta_for(Unfit unfit) {
  http::StoredMeta meta;
  meta.lifetime_seconds = 60;
  meta.age_zero = kToday;
  meta.fresh_until = kToday + seconds(60);
  if (unfit == Unfit::kWantsPermission) meta.flags |= http::StoredMeta::kWantsPermission;
  if (unfit == Unfit::kBarred) meta.flags |= http::StoredMeta::kPrivateOrigin;
  return meta;
}

std::shared_ptr<const Runtime> public_runtime() {
  config::Config config;
  config.forward.private_destinations = config::PrivateDestinations::kNever;
  return some_runtime(config);
}

// A client that waited for another's answer.
struct Waited {
  Waited(const std::shared_ptr<const Runtime>& runtime, Unfit why, bool has_variant, bool alike)
      : unfit(why), is_alike(alike) {
    std::string text = kGetLine + "Accept-Language: " + (has_variant ? "de" : "fr") + "\n";
    if (unfit == Unfit::kAskerReloads) text += "Cache-Control: no-cache\n";
    request = some_request(text, runtime);
    variants.emplace(request->head.fields, request->vary());
    const auto german = some_request(kGetLine + "Accept-Language: de\n", runtime);
    http::VariantKeys keys(german->head.fields, german->vary());
    variant_key = keys.make(names);
  }
  WaitingRequest asker() {
    return {*request, *variants, kToday + seconds(unfit == Unfit::kStale ? 60 : 59), is_alike};
  }
  // If nothing in particular can be said.
  ShareDecision alone(bool shareable) const {
    return shareable || is_alike ? ShareDecision::kAskAlone : ShareDecision::kAskApart;
  }

  static constexpr std::string_view names = "accept-language";
  Unfit unfit;
  bool is_alike;
  std::shared_ptr<const RequestContext> request;
  std::optional<http::VariantKeys> variants;
  std::string variant_key;
};

TEST_CASE("whom the response to another answers, for all responses and clients",
          "[exchange][sharing]") {
  const auto runtime = public_runtime();
  for (const Unfit unfit : kUnfits) {
    for (const int bits : {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}) {
      const bool has_variant = (bits & 1) != 0;
      const bool is_alike = (bits & 2) != 0;
      Waited waited(runtime, unfit, has_variant, is_alike);
      SharedResponse response;
      response.shareable = (bits & 4) != 0;
      response.is_for_validation = (bits & 8) != 0;
      response.names = Waited::names;
      response.variant_key = waited.variant_key;
      response.meta = meta_for(unfit);
      CAPTURE(static_cast<int>(unfit), has_variant, is_alike, response.shareable,
              response.is_for_validation);
      const bool answers = response.shareable && unfit == Unfit::kNot;
      ShareDecision expected = answers ? ShareDecision::kYes : ShareDecision::kOnceStored;
      if (!has_variant) expected = ShareDecision::kAskAgain;
      if (!answers && !response.is_for_validation) expected = waited.alone(response.shareable);
      CHECK(may_take(response, waited.asker()) == expected);
    }
  }
}

TEST_CASE("whom the validation of another answers, for all of their ends", "[exchange][sharing]") {
  const auto runtime = public_runtime();
  const auto store = std::move(*store::make_memory_store({.limit_bytes = 64U << 20U}));
  for (const Unfit unfit : kUnfits) {
    for (int bits = 0; bits < 64; ++bits) {
      const bool has_variant = (bits & 1) != 0;
      Waited waited(runtime, unfit, has_variant, (bits & 2) != 0);
      http::StoredMeta meta = meta_for(unfit);
      const bool never_stale = (bits & 32) != 0;
      if (never_stale) meta.flags |= http::StoredMeta::kNeverStale;
      Validated validated;
      validated.object = make_object(*store, {.key = waited.request->key,
                                              .names = Waited::names,
                                              .variant_key = waited.variant_key,
                                              .http = meta});
      validated.shareable = (bits & 4) != 0;
      validated.stale = (bits & 8) != 0;
      const bool answered = (bits & 16) != 0;  // by an error
      validated.status = answered ? 503 : 0;
      CAPTURE(static_cast<int>(unfit), bits);
      ShareDecision expected = validated.shareable && unfit == Unfit::kNot
                                   ? ShareDecision::kYes
                                   : waited.alone(validated.shareable);
      if (validated.stale && unfit != Unfit::kWantsPermission && unfit != Unfit::kBarred) {
        bool allowed = unfit != Unfit::kAskerReloads;
        if (unfit == Unfit::kStale && (never_stale || answered)) allowed = false;
        expected = allowed ? ShareDecision::kYes : ShareDecision::kAskAgain;
      }
      if (!has_variant) expected = ShareDecision::kAskAgain;
      CHECK(may_take(validated, {}, waited.asker()) == expected);
    }
  }
}

TEST_CASE("what is found is as fresh as the kernel says, and what is validated as it says itself",
          "[exchange][sharing]") {
  const auto store = std::move(*store::make_memory_store({.limit_bytes = 64U << 20U}));
  Waited waited(public_runtime(), Unfit::kNot, true, true);
  const auto object = make_object(*store, {.key = waited.request->key,
                                           .names = Waited::names,
                                           .variant_key = waited.variant_key,
                                           .http = meta_for(Unfit::kNot)});
  const Validated validated{.object = object, .shareable = true};
  const MonotonicTime past = kToday - seconds(1);
  CHECK(may_take(validated, {.object = object, .disk = {}, .fresh_until = past}, waited.asker()) ==
        ShareDecision::kAskAlone);
  CHECK(may_take(validated, {.object = {}, .disk = {}, .fresh_until = past}, waited.asker()) ==
        ShareDecision::kYes);
}

TEST_CASE("the form of a plain hit, for all that is known of its object", "[exchange][coding]") {
  enum class Note : std::uint8_t { kNone, kUncovered, kCovered };
  config::Config config;
  config.compression.codings = {"gzip"};
  const auto store = std::move(*store::make_memory_store({.limit_bytes = 64U << 20U}));
  const auto loop = std::move(*net::Loop::create());
  const std::unique_ptr<cache::Kernel> kernel;
  for (const Note note : {Note::kNone, Note::kUncovered, Note::kCovered}) {
    for (const bool accepts : {true, false}) {
      for (const bool compresses : {true, false}) {
        for (const int form : {0, 1, 2}) {  // none, one with extras, a plain one
          config::Rule rule;
          rule.compress = compresses;
          config.rule = {rule};
          const auto runtime = some_runtime(config);
          const Compression& compression = *runtime->compression;
          const auto request =
              some_request(kGetLine + (accepts ? "Accept-Encoding: gzip\n" : ""), runtime);
          const auto object = make_object(*store, {.key = request->key});
          if (note != Note::kNone) object->set_note(compression.note_of(note == Note::kCovered));
          const store::Object* made = nullptr;
          if (form != 0) {
            ObjectMeta meta;
            meta.plain = form == 2 ? ObjectMeta::kPlain : 0;
            auto made_form = store->make_small({.key = request->key,
                                                .meta = std::as_bytes(std::span(&meta, 1)),
                                                .head = "HTTP/1.1 200 OK\r\n",
                                                .is_form = true},
                                               {});
            REQUIRE(made_form.has_value());
            made = made_form->get();
            REQUIRE(
                object->add_form(coding::number_of(coding::Coding::kGzip), std::move(*made_form)));
          }
          CAPTURE(static_cast<int>(note), accepts, compresses, form);
          WorkerStats stats;
          CodingMemory memory;
          Coders coders(
              {.loop = *loop, .store = store, .kernel = kernel, .stats = stats, .memory = memory});
          RequestView view;
          view.head = &request->head;
          view.request_policy = request->request_policy;
          CacheView found{.object = object, .disk = {}};
          HitForm expected = HitForm::kUnknown;
          if (!compresses || note == Note::kUncovered) {
            expected = HitForm::kIdentity;
          } else if (note == Note::kCovered && !accepts) {
            expected = HitForm::kVaries;
          } else if (note == Note::kCovered && form == 2) {
            expected = HitForm::kCoded;
          }
          CHECK(choose_hit_form(view, compression, coders, found) == expected);
          CHECK(found.object.get() == (expected == HitForm::kCoded ? made : object.get()));
          CHECK(stats.compressed_gzip.get() == (expected == HitForm::kCoded ? 1 : 0));
        }
      }
    }
  }
}

}  // namespace
}  // namespace encore::server
