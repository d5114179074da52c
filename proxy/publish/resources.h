// Resources: what is published, as HTTP has it: which resource a path names, in which form and
// coding it goes to whom, conditions and ranges. The same for every listener. Pure but for the
// mutexes: the clock is an argument. Thread-safe.
//
//   /changed/YYYY/MM/DD/HH   the URLs whose content changed in that hour (UTC)
//   /resident                the URLs whose responses are stored
//   /links                   what there is
//
// each with a suffix for a form (".enc", ".json", ".digest"; of the links ".txt", ".json"), or
// without one for what Accept asks for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"
#include "proxy/http/message.h"
#include "proxy/publish/changed_keys.h"
#include "proxy/publish/form.h"
#include "proxy/publish/negotiation.h"
#include "proxy/publish/resident_keys.h"

namespace encore::publish {

// Lifetimes in clients of the current hour, the resident keys and the links.
inline constexpr std::chrono::seconds kCurrentLifetime(10);

struct Answer {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> fields;  // without Date and what frames it
  std::string content_type;                                 // empty: none
  std::string body;  // for HEAD that of the GET; empty with 304
};

class Resources {
 public:
  // The published sources; null: not published. Borrowed.
  struct Sources {
    ChangedKeys* changed = nullptr;
    ResidentKeys* resident = nullptr;
  };
  explicit Resources(const Sources& sources)
      : changed_(sources.changed), resident_(sources.resident) {}

  // `path` is the request's, without its query; `root` the part of it in front of the resources, as
  // "/filters". REQUIRES: `path` begins with `root` and "/".
  Answer answer(const http::RequestHead& request, std::string_view root, std::string_view path,
                WallTime now);

 private:
  // The resource that a path names, before its form is chosen.
  struct Named;
  // A representation, and what is said with it.
  struct Made {
    std::string content;
    std::string tag;   // hash of the content without a coding, in hex
    std::string said;  // Encore-Filter
    Coding coding = Coding::kIdentity;
  };
  struct Page;

  static Named name(std::string_view root, std::string_view path);
  static const FormRow* choose_form(const Named& named, const Page& page,
                                    const http::Fields& fields);
  Page find(const Named& named, WallTime now);
  Page changed_page(const Named& named, WallTime now);
  Page resident_page(const Named& named, WallTime now);
  Page links_page(const Named& named, WallTime now);
  static Made make_changed(HourlyFilters& hours, Hour hour, Form form, WallTime now);
  std::shared_ptr<const Made> make(const Page& page, const FormRow& form, Coding coding);
  static void select(const http::RequestHead& request, const Made& made, WallTime now,
                     Answer& answer);
  std::shared_ptr<const Made> remembered(const std::string& name, std::uint64_t version);
  void remember(const std::string& name, std::uint64_t version, std::shared_ptr<const Made> made);

  ChangedKeys* changed_;
  ResidentKeys* resident_;
  // A response made for one client, for the next one.
  struct Kept {
    std::uint64_t version = 0;
    std::shared_ptr<const Made> made;
  };
  Mutex mutex_;
  std::map<std::string, Kept> kept_ ENCORE_GUARDED_BY(mutex_);
};

}  // namespace encore::publish
