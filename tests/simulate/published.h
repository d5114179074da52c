// PublishedOracle: judges the filters that the proxy publishes (docs/FILTERS.md) against the truth
// of the world. No key is missing of an hour in which its content changed for certain; no bit is
// set that no possible change explains. An hour that is over stays unchanged, objects that were in
// the cache all the time are resident, and a 304 is for what would be sent now. Bits are read by
// own code, with the hash that a script of ten lines can do as well (sha1-fields20). One thread.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tests/fuzz/proxy/client.h"
#include "tests/fuzz/proxy/origin.h"
#include "tests/simulate/hours.h"

namespace encore::simulate {

// In [filters] of a simulated configuration.
inline constexpr std::string_view kFiltersPath = "/filters";

class PublishedOracle final : public proxyfuzz::Published {
 public:
  // All are borrowed. `keep`: of the hours that are over.
  PublishedOracle(proxyfuzz::World& world, proxyfuzz::Ring& ring, proxyfuzz::Origin& origin,
                  std::int64_t keep);

  // Another proxy begins: with what was saved of an earlier one, or with nothing.
  void start(const HoursModel* saved);
  const HoursModel& hours() const { return hours_; }
  // Time has reached another hour, or the clock was set: to be called immediately.
  void look();
  // A URL was purged, or made stale.
  void note_purge(const proxyfuzz::Url& url);

  bool is_due(proxyfuzz::Random& random) override;
  void compose(proxyfuzz::Random& random, proxyfuzz::Request& request) override;
  void judge(const proxyfuzz::Request& request, const proxyfuzz::Answer& answer) override;

 private:
  // A filter that came: m bits, k of them for a key.
  struct Bits {
    std::uint64_t m = 0;
    std::uint32_t k = 0;
    std::vector<bool> set;
    bool is_complete = false;
    bool says_complete = false;  // the form says whether
  };
  struct Snapshot {
    double since = 0;
    double until = 0;  // it was made in between
    Bits bits;
  };
  // The target of a request.
  struct Named {
    std::string path;    // without the suffix
    std::string suffix;  // belongs to the form that came
    std::optional<std::int64_t> hour;
  };
  using Places = std::array<std::uint32_t, 8>;

  void fault(const proxyfuzz::Request& request, const proxyfuzz::Answer& answer,
             const std::string& what) const;
  std::string key_of(const proxyfuzz::Url& url, std::string_view path) const;
  const Places& places_of(const std::string& key);
  bool contains(const Bits& bits, const std::string& key);
  static Named name_of(const proxyfuzz::Request& request, const proxyfuzz::Answer& answer);
  static std::optional<Bits> read_bits(std::string_view suffix, std::string_view body);
  bool is_steady(const proxyfuzz::Request& request) const;
  void judge_status(const proxyfuzz::Request& request, const proxyfuzz::Answer& answer,
                    const Named& named);
  const std::string* content_of(const proxyfuzz::Request& request, const proxyfuzz::Answer& answer,
                                const Named& named);
  void judge_hour(const proxyfuzz::Request& request, const proxyfuzz::Answer& answer,
                  const Named& named, const Bits& bits);
  void judge_final(const proxyfuzz::Request& request, const proxyfuzz::Answer& answer,
                   const Named& named, HoursModel::Hour& hour);
  void judge_hit(const proxyfuzz::Request& request, double first_hit);

  proxyfuzz::World& world_;
  proxyfuzz::Ring& ring_;
  proxyfuzz::Origin& origin_;
  std::int64_t keep_;
  HoursModel hours_;
  double started_;                            // this proxy
  std::map<std::string, std::string> known_;  // by path, suffix and tag
  std::map<std::string, std::string> last_;   // tag, by own_path
  std::deque<Snapshot> snapshots_;            // states of the resident filter
  std::unordered_map<std::string, Places> places_;
};

}  // namespace encore::simulate
