#include "proxy/process/explanation.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/readable.h"
#include "base/units.h"
#include "filter/rotating_bloom_filter.h"

namespace encore::server {
namespace {

using Json = nlohmann::ordered_json;

std::string seconds_text(std::int64_t seconds) {
  return about_duration(std::chrono::seconds(seconds));
}

std::int64_t seconds_since(WallTime then, WallTime now) {
  return std::chrono::floor<std::chrono::seconds>(now - then).count();
}

std::string text_of(const ExplainedVariant& variant) {
  std::string text = variant.on_disk ? fmt::format("on disk, {} with its head, variant {:08x}",
                                                   format_bytes(variant.body_bytes),
                                                   static_cast<std::uint32_t>(variant.variant))
                                     : fmt::format("in memory, {}, {} of body, {} charged",
                                                   variant.status, format_bytes(variant.body_bytes),
                                                   format_bytes(variant.charge_bytes));
  if (!variant.on_disk) text += ", age " + seconds_text(variant.age_seconds);
  text += variant.fresh_seconds >= 0 ? ", fresh for " + seconds_text(variant.fresh_seconds)
                                     : ", stale for " + seconds_text(-variant.fresh_seconds);
  text +=
      variant.kept_seconds >= 0 ? ", kept for " + seconds_text(variant.kept_seconds) : ", expired";
  if (!variant.storable.empty()) text += "; storable by " + variant.storable;
  if (!variant.varies_by.empty()) text += "; varies by " + variant.varies_by;
  if (!variant.barred.empty()) text += "; not usable for this request: " + variant.barred;
  return text;
}

std::string text_of(const ExplainedState& state) {
  if (!state.is_looked_up) return "no lookup";
  const cache::RequestHistory& known = state.recalled;
  switch (known.by) {
    case cache::RequestHistory::By::kNothing:
      return state.policy + ", which remembers no keys";
    case cache::RequestHistory::By::kFrequency:
      return fmt::format("{}: about {} recent requests", state.policy, known.requests);
    case cache::RequestHistory::By::kSet:
      return state.policy + (known.requests == 0 ? ": not known" : ": known");
    case cache::RequestHistory::By::kFilter:
      break;
  }
  if (known.requests == 0) {
    return fmt::format("{}: not known; stored at request {}", state.policy, known.stored_at);
  }
  return fmt::format("{}: {} of {} requests known, the latest in the {} generation", state.policy,
                     known.requests, known.stored_at, to_string(known.seen));
}

std::string text_of(const RecentOutcomes::Outcomes& outcomes, WallTime now) {
  std::string text = fmt::format(
      "{}, {}, {}", to_string(outcomes.seen.outcome),
      outcomes.seen.status == 0 ? std::string("no answer")
                                : "status " + std::to_string(outcomes.seen.status),
      outcomes.times == 1 ? std::string("once") : fmt::format("{} times", outcomes.times));
  text += ", " + seconds_text(seconds_since(outcomes.last, now)) + " ago";
  if (outcomes.seen.reason != http::StoreReason::kOk) {
    text += fmt::format("; not stored: {} ({})", to_string(outcomes.seen.reason),
                        clause_of(outcomes.seen.reason));
  }
  if (outcomes.seen.was_overtaken) {
    text += "; not stored: overtaken by a newer response or a purge";
  }
  if (outcomes.seen.unfollowed != RedirectRefusal::kNone) {
    text += fmt::format("; the redirection was not followed: {} ({})",
                        to_string(outcomes.seen.unfollowed), in_words(outcomes.seen.unfollowed));
  }
  return text;
}

void append_line(std::string& out, std::string_view label, std::string_view text) {
  constexpr std::size_t kWidth = 16;
  std::string padded(label);
  padded.resize(std::max(padded.size() + 1, kWidth), ' ');
  out += padded;
  for (const char c : text) out += c < ' ' || c > '~' ? '?' : c;
  out += '\n';
}

void append_state(std::string& out, const ExplainedState& state) {
  if (state.stored.empty()) {
    append_line(out, "stored", state.is_looked_up ? "nothing" : "no lookup");
  }
  std::string_view label = "stored";
  for (const ExplainedVariant& variant : state.stored) {
    append_line(out, label, (variant.selected ? "* " : "- ") + text_of(variant));
    label = "";
  }
  append_line(out, "remembered", text_of(state));
  append_line(out, "now", state.now_text);
  if (state.outcomes.empty()) append_line(out, "lately", "plain hits only, if any");
  label = "lately";
  for (const RecentOutcomes::Outcomes& outcomes : state.outcomes) {
    append_line(out, label, text_of(outcomes, state.wall));
    label = "";
  }
}

Json json_of(const ExplainedVariant& variant) {
  Json json = {{"where", variant.on_disk ? "disk" : "memory"},
               {"selected", variant.selected},
               {"variant", fmt::format("{:016x}", variant.variant)}};
  if (!variant.varies_by.empty()) json["varies_by"] = variant.varies_by;
  if (variant.on_disk) {
    json["record_bytes"] = variant.body_bytes;
  } else {
    json["status"] = variant.status;
    json["body_bytes"] = variant.body_bytes;
    json["charge_bytes"] = variant.charge_bytes;
    json["age_seconds"] = variant.age_seconds;
    json["storable"] = variant.storable;
  }
  json["fresh_seconds"] = variant.fresh_seconds;
  json["kept_seconds"] = variant.kept_seconds;
  if (!variant.barred.empty()) json["barred"] = variant.barred;
  return json;
}

std::string_view name_of(cache::RequestHistory::By by) {
  switch (by) {
    case cache::RequestHistory::By::kNothing:
      return "nothing";
    case cache::RequestHistory::By::kFilter:
      return "filter";
    case cache::RequestHistory::By::kSet:
      return "set";
    case cache::RequestHistory::By::kFrequency:
      return "frequency";
  }
  return "?";
}

Json json_of(const ExplainedState& state) {
  Json stored = Json::array();
  for (const ExplainedVariant& variant : state.stored) stored.push_back(json_of(variant));
  Json outcomes = Json::array();
  for (const RecentOutcomes::Outcomes& each : state.outcomes) {
    outcomes.push_back({{"outcome", to_string(each.seen.outcome)},
                        {"status", each.seen.status},
                        {"reason", http::to_string(each.seen.reason)},
                        {"clause", clause_of(each.seen.reason)},
                        {"overtaken", each.seen.was_overtaken},
                        {"redirection", to_string(each.seen.unfollowed)},
                        {"times", each.times},
                        {"first_seconds_ago", seconds_since(each.first, state.wall)},
                        {"last_seconds_ago", seconds_since(each.last, state.wall)}});
  }
  Json recalled = {{"policy", state.policy},
                   {"by", name_of(state.recalled.by)},
                   {"requests", state.recalled.requests}};
  if (state.recalled.by == cache::RequestHistory::By::kFilter) {
    recalled["stored_at"] = state.recalled.stored_at;
    recalled["generation"] = to_string(state.recalled.seen);
  }
  return {{"stored", std::move(stored)},
          {"remembered", std::move(recalled)},
          {"now", {{"kind", state.now_kind}, {"text", state.now_text}}},
          {"lately", std::move(outcomes)}};
}

}  // namespace

std::string_view clause_of(http::StoreReason reason) noexcept {
  switch (reason) {
    case http::StoreReason::kOk:
      return "";
    case http::StoreReason::kMethod:
      return "RFC 9111 3: neither GET nor POST";
    case http::StoreReason::kUpgrade:
      return "RFC 9110 7.8";
    case http::StoreReason::kRequestNoStore:
      return "RFC 9111 5.2.1.5";
    case http::StoreReason::kNoStore:
      return "RFC 9111 5.2.2.5";
    case http::StoreReason::kPrivate:
      return "RFC 9111 5.2.2.7";
    case http::StoreReason::kAuthorization:
      return "RFC 9111 3.5";
    case http::StoreReason::kStatus:
      return "RFC 9111 3, RFC 6585: the status, or a part whose place is not known (3.3)";
    case http::StoreReason::kNotUnderstood:
      return "RFC 9111 5.2.2.3";
    case http::StoreReason::kNoFreshness:
      return "RFC 9111 3: no lifetime and no validator";
    case http::StoreReason::kVaryStar:
      return "RFC 9111 4.1";
    case http::StoreReason::kVaryTooLarge:
      return "RFC 9111 4.1: the request's fields are too long to compare";
    case http::StoreReason::kSetCookie:
      return "cache.set_cookie, as RFC 9111 7.3 leaves open";
    case http::StoreReason::kRule:
      return "a [[rule]]";
    case http::StoreReason::kPost:
      return "RFC 9110 9.3.3";
  }
  return "";
}

std::string text_of(const Explanation& explanation) {
  std::string out;
  for (const auto& [label, text] : explanation.lines) append_line(out, label, text);
  if (explanation.state) append_state(out, *explanation.state);
  return out;
}

std::string json_of(const Explanation& explanation) {
  Json lines = Json::array();
  for (const auto& [label, text] : explanation.lines) {
    lines.push_back({{"label", label}, {"text", text}});
  }
  Json json = {{"configuration", std::move(lines)}};
  if (explanation.state) json.update(json_of(*explanation.state));
  return json.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace encore::server
