#include "proxy/publish/resources.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <span>

#include "filter/hash.h"
#include "filter/published/squid_digest.h"
#include "proxy/http/conditional.h"
#include "proxy/http/range.h"
#include "proxy/publish/coding.h"

namespace encore::publish {
namespace {

constexpr std::string_view kChanged = "/changed/";
constexpr std::string_view kResident = "/resident";
constexpr std::string_view kLinks = "/links";
constexpr std::array kLinkForms{
    FormRow{Form::kBinary, ".txt", "text/plain"},
    FormRow{Form::kJson, ".json", "application/linkset+json"}};  // RFC 9264
constexpr std::size_t kKeptMax = 64;

Answer refusal(int status, std::string text) {
  Answer answer;
  answer.status = status;
  answer.content_type = "text/plain; charset=utf-8";
  answer.fields.emplace_back("Cache-Control", "no-store");
  answer.body = std::to_string(status) + " " +
                std::string(http::reason_phrase(static_cast<unsigned>(status))) + "\n" +
                std::move(text) + "\n";
  return answer;
}

// Strong, and another one for each coding: the bytes are others.
std::string entity_tag(std::string_view tag, Coding coding) {
  std::string text = "\"" + std::string(tag);
  if (coding != Coding::kIdentity) text += "-" + std::string(to_string(coding));
  return text + "\"";
}

bool match_holds(const http::Fields& fields, std::string_view etag) {
  if (!fields.has(http::FieldId::kIfMatch)) return true;
  bool holds = false;
  fields.for_each_member(http::FieldId::kIfMatch, [&](std::string_view member) {
    holds = holds || member == "*" || http::strong_match(member, etag);
  });
  return holds;
}

std::string lifetime(std::chrono::seconds age, bool immutable) {
  return "max-age=" + std::to_string(age.count()) + (immutable ? ", immutable" : "");
}

// The facts in a structured field (RFC 8941): a rate has more digits than its decimals.
std::string said_of(const Facts& facts) {
  std::string text;
  for (const auto& [name, value] : facts) {
    const bool key = name == "events" || name == "stored" || name == "complete" ||
                     name == "current" || name == "overfull" || name == "fpr_now" ||
                     name == "keys_estimated";
    if (!key) continue;
    text += text.empty() ? "" : ", ";
    text += name + "=";
    if (value == "true" || value == "false") {
      text += value == "true" ? "?1" : "?0";
    } else {
      text += name == "events" || name == "stored" ? value : '"' + value + '"';
    }
  }
  return text;
}

// One that was saved without a digest cannot have it any more.
std::span<const FormRow> forms_of(const HourRecord& record) {
  return record.filter && !record.digest ? kFormsWithoutDigest : std::span<const FormRow>(kForms);
}

}  // namespace

struct Resources::Named {
  std::string_view root;
  std::string_view path;    // behind the root, without the suffix
  std::string_view suffix;  // empty: as Accept says
};

// A resource in its forms. `make` gives one of them.
struct Resources::Page {
  std::span<const FormRow> forms;
  std::string name;           // among those that are kept
  std::uint64_t version = 0;  // number of the content; differs if anything has changed
  std::string cache_control;
  std::vector<std::pair<std::string, std::string>> fields;
  std::function<Made(Form)> make;  // none: there is no such resource
};

std::shared_ptr<const Resources::Made> Resources::remembered(const std::string& name,
                                                             std::uint64_t version) {
  const MutexLock lock(mutex_);
  const auto at = kept_.find(name);
  return at != kept_.end() && at->second.version == version ? at->second.made : nullptr;
}

void Resources::remember(const std::string& name, std::uint64_t version,
                         std::shared_ptr<const Made> made) {
  const MutexLock lock(mutex_);
  if (kept_.size() >= kKeptMax && !kept_.contains(name)) kept_.clear();
  kept_[name] = {.version = version, .made = std::move(made)};
}

Resources::Page Resources::changed_page(const Named& named, WallTime now) {
  const auto hour = parse_hour(named.path.substr(kChanged.size()));
  Page page;
  if (!hour || changed_ == nullptr) return page;
  const auto path_of = [&](Hour other) {
    return std::string(named.root) + std::string(kChanged) + to_path(other);
  };
  changed_->with([&](HourlyFilters& hours) {
    const HourRecord* const record = hours.find(*hour, now);
    if (record == nullptr) return;
    const Hour current = hours.current(now);
    page.forms = forms_of(*record);
    page.name = path_of(*hour);
    page.version = record->changes;
    // It never changes again: a cache may keep it for as long as this one does.
    const auto left =
        std::chrono::floor<std::chrono::seconds>(start_of(after(*hour, hours.keep() + 1)) - now);
    page.cache_control = *hour == current ? lifetime(kCurrentLifetime, false)
                                          : lifetime(std::max(left, std::chrono::seconds(0)), true);
    std::string links;
    const auto link = [&](Hour other, const char* relation) {
      if (!hours.hours().contains(other)) return;
      links += (links.empty() ? "<" : ", <") + path_of(other) + ">; rel=\"" + relation + "\"";
    };
    link(after(*hour, -1), "prev");
    link(after(*hour), "next");
    link(current, "current");
    page.fields.emplace_back("Link", links);
    page.make = [changed = changed_, hour = *hour, now](Form form) {
      return changed->with([&](HourlyFilters& all) { return make_changed(all, hour, form, now); });
    };
  });
  return page;
}

// Without content where there is no memory for it, and where the hour has gone since it was found:
// to others it may be later already.
Resources::Made Resources::make_changed(HourlyFilters& hours, Hour hour, Form form, WallTime now) {
  const HourRecord* found = hours.find(hour, now);
  if (found == nullptr) return {};
  const HourRecord& record = *found;
  const bool digest = form == Form::kDigest;
  const std::optional<filter::AnyFilter>& kept = digest ? record.digest : record.filter;
  std::optional<filter::AnyFilter> empty;
  if (!kept) {
    if (auto made = filter::AnyFilter::create(
            {.parameters = digest ? hours.digest_parameters() : hours.parameters()})) {
      empty = std::move(*made);
    }
  }
  Made made;
  if (!kept && !empty) return made;
  const filter::AnyFilter& filter = kept ? *kept : *empty;
  Facts facts = {{"resource", json_text("changed")},
                 {"hour", json_text(to_path(hour))},
                 {"current", json_bool(hour == hours.current(now))},
                 {"complete", json_bool(record.complete)},
                 {"events", std::to_string(record.events)}};
  for (auto& fact : facts_of(filter.info())) facts.push_back(std::move(fact));
  made.content = write(filter, form, facts);
  made.said = said_of(facts);
  return made;
}

namespace {

std::string resident_text(const ResidentKeys& resident, Form form, Facts& facts) {
  if (form == Form::kDigest) {
    const auto digest = resident.digest();
    return digest ? filter::write_squid_digest(*digest) : std::string();
  }
  const auto filter = resident.filter();
  if (!filter) return {};
  for (auto& fact : facts_of(filter->info())) facts.push_back(std::move(fact));
  return write(*filter, form, facts);
}

}  // namespace

Resources::Page Resources::resident_page(const Named& named, WallTime now) {
  Page page;
  if (resident_ == nullptr) return page;
  page.forms = kForms;
  page.name = std::string(named.root) + std::string(kResident);
  // It is made at most once a second, however many clients request it.
  page.version = static_cast<std::uint64_t>(http::to_unix(now));
  page.cache_control = lifetime(kCurrentLifetime, false);
  page.make = [resident = resident_](Form form) {
    const ResidentKeys::Counts counts = resident->counts();
    Facts facts = {{"resource", json_text("resident")},
                   {"stored", std::to_string(counts.stored)},
                   {"overflows", std::to_string(counts.overflows)}};
    Made made;
    made.content = resident_text(*resident, form, facts);
    made.said = said_of(facts);
    return made;
  };
  return page;
}

Resources::Page Resources::links_page(const Named& named, WallTime now) {
  Page page;
  page.forms = kLinkForms;
  page.cache_control = lifetime(kCurrentLifetime, false);
  struct Link {
    std::string path;
    std::string what;
    std::span<const FormRow> forms;
  };
  std::vector<Link> links;
  if (changed_ != nullptr) {
    changed_->with([&](HourlyFilters& hours) {
      const Hour current = hours.current(now);
      for (const auto& [hour, record] : hours.hours()) {
        links.push_back({.path = std::string(named.root) + std::string(kChanged) + to_path(hour),
                         .what = std::to_string(record.events) + " events" +
                                 (hour == current ? ", current" : "") +
                                 (record.complete ? "" : ", not complete"),
                         .forms = forms_of(record)});
      }
    });
  }
  if (resident_ != nullptr) {
    links.push_back({.path = std::string(named.root) + std::string(kResident),
                     .what = std::to_string(resident_->counts().stored) + " responses",
                     .forms = kForms});
  }
  page.make = [links = std::move(links), root = std::string(named.root)](Form form) {
    Made made;
    if (form == Form::kBinary) {
      for (const Link& link : links) made.content += link.path + "  " + link.what + "\n";
      return made;
    }
    made.content = R"({"linkset": [{"anchor": ")" + root + std::string(kLinks) + R"(", "item": [)";
    const char* comma = "";
    for (const Link& link : links) {
      for (const FormRow& row : link.forms) {
        made.content += comma + std::string(R"({"href": ")") + link.path + std::string(row.suffix) +
                        R"(", "type": ")" + std::string(row.type) + R"(", "title": ")" + link.what +
                        R"("})";
        comma = ", ";
      }
    }
    made.content += "]}]}\n";
    return made;
  };
  return page;
}

Resources::Page Resources::find(const Named& named, WallTime now) {
  if (named.path == kLinks) return links_page(named, now);
  if (named.path == kResident) return resident_page(named, now);
  if (named.path.starts_with(kChanged)) return changed_page(named, now);
  return {};
}

Resources::Named Resources::name(std::string_view root, std::string_view path) {
  Named named{.root = root, .path = {}, .suffix = {}};
  if (path.starts_with(root)) named.path = path.substr(root.size());
  const std::size_t dot = named.path.rfind('.');
  if (dot == std::string_view::npos) return named;
  named.suffix = named.path.substr(dot);
  named.path = named.path.substr(0, dot);
  return named;
}

// Null where none will do.
const FormRow* Resources::choose_form(const Named& named, const Page& page,
                                      const http::Fields& fields) {
  if (!named.suffix.empty()) {
    const auto at = std::ranges::find(page.forms, named.suffix, &FormRow::suffix);
    return at == page.forms.end() ? nullptr : &*at;
  }
  std::vector<std::string_view> types;
  for (const FormRow& form : page.forms) types.push_back(form.type);
  const auto chosen = choose_type(fields, types);
  return chosen ? &page.forms[*chosen] : nullptr;
}

std::shared_ptr<const Resources::Made> Resources::make(const Page& page, const FormRow& form,
                                                       Coding coding) {
  const std::string name =
      page.name + std::string(form.suffix) + " " + std::string(to_string(coding));
  const bool kept = !page.name.empty();
  if (auto known = kept ? remembered(name, page.version) : nullptr) return known;
  auto made = std::make_shared<Made>();
  if (coding == Coding::kIdentity) {
    *made = page.make(form.form);
    const auto hash = filter::hash_key(filter::HashFamily::kXxh3, filter::Seed{}, made->content);
    made->tag = filter::to_hex({hash.lo, hash.hi});
  } else {
    const auto plain = make(page, form, Coding::kIdentity);
    *made = *plain;
    if (auto coded = encode(plain->content, coding); coded && !plain->content.empty()) {
      made->content = std::move(*coded);
      made->coding = coding;
    }
  }
  if (kept && !made->content.empty()) remember(name, page.version, made);
  return made;
}

Answer Resources::answer(const http::RequestHead& request, std::string_view root,
                         std::string_view path, WallTime now) {
  const Named named = name(root, path);
  const Page page = find(named, now);
  if (!page.make) {
    return refusal(404, "There is no such filter, or it is not known any more. There are: " +
                            std::string(root) + std::string(kLinks));
  }
  if (request.method != http::Method::kGet && request.method != http::Method::kHead) {
    Answer answer = refusal(405, "It can only be read.");
    answer.fields.emplace_back("Allow", "GET, HEAD");
    return answer;
  }
  const FormRow* const form = choose_form(named, page, request.fields);
  if (form == nullptr) {
    std::string accepted = "There is no such form of it; there are:";
    for (const FormRow& each : page.forms) {
      accepted += "\n" + std::string(each.suffix) + "  " + std::string(each.type);
    }
    return refusal(named.suffix.empty() ? 406 : 404, accepted);
  }
  const auto made = make(page, *form, choose_coding(request.fields));
  if (made->content.empty() && !page.name.empty()) {
    return refusal(503, "It has gone just now, or there is no memory to make it.");
  }
  Answer answer;
  answer.fields = {{"ETag", entity_tag(made->tag, made->coding)},
                   {"Cache-Control", page.cache_control},
                   {"Vary", named.suffix.empty() ? "Accept, Accept-Encoding" : "Accept-Encoding"}};
  for (const auto& field : page.fields) answer.fields.push_back(field);
  if (named.suffix.empty()) {
    answer.fields.emplace_back("Content-Location", std::string(path) + std::string(form->suffix));
  }
  if (!made->said.empty()) answer.fields.emplace_back("Encore-Filter", made->said);
  answer.content_type = form->type;
  if (made->coding != Coding::kIdentity) {
    answer.fields.emplace_back("Content-Encoding", std::string(to_string(made->coding)));
  }
  answer.fields.emplace_back("Accept-Ranges", "bytes");
  select(request, *made, now, answer);
  return answer;
}

// The whole of it, a part, or none: as the request's conditions and its range say.
void Resources::select(const http::RequestHead& request, const Made& made, WallTime now,
                       Answer& answer) {
  const std::string etag = entity_tag(made.tag, made.coding);
  const http::Validators validators{.etag = etag};
  const http::UnixSeconds seconds = http::to_unix(now);
  if (!match_holds(request.fields, etag)) {
    answer = refusal(412, "It is another one by now.");
    return;
  }
  if (http::evaluate_conditions(request, validators, 200, seconds) ==
      http::Condition::kNotModified) {
    answer.status = 304;
    answer.content_type.clear();
    std::erase_if(answer.fields, [](const auto& field) {
      return field.first == "Content-Encoding" || field.first == "Accept-Ranges";
    });
    return;
  }
  std::vector<http::ByteRange> ranges;
  const std::string_view asked = http::range_value(request);
  const auto outcome = asked.empty() || !http::if_range_holds(request, validators, seconds)
                           ? http::RangeOutcome::kWhole
                           : http::resolve_range(asked, made.content.size(), {}, ranges);
  if (outcome == http::RangeOutcome::kUnsatisfiable) {
    answer = refusal(416, "It is not that long.");
    answer.fields.emplace_back("Content-Range",
                               http::unsatisfied_content_range(made.content.size()));
    return;
  }
  // A request for several ranges may also get the whole (RFC 9110 14.2).
  if (outcome == http::RangeOutcome::kWhole || ranges.size() != 1) {
    answer.body = made.content;
    return;
  }
  answer.status = 206;
  answer.fields.emplace_back("Content-Range", http::content_range(ranges[0], made.content.size()));
  answer.body = made.content.substr(ranges[0].begin, ranges[0].size());
}

}  // namespace encore::publish
