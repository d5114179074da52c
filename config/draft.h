// A config that is being read: values so far, where each came from, every fault found. Internal to
// config/. Thread-compatible.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "config/config.h"
#include "config/schema.h"
#include "config/source_locations.h"

namespace encore::config {

// `where` is "file:line:column", "--set section.key=value" or empty.
std::string fault_line(std::string_view where, std::string_view path, std::string_view what);

class Draft {
 public:
  // `where` is "file:line:column" or "--set section.key=value", throughout.
  void fault(std::string_view where, std::string_view path, std::string_view what);

  // A repeated section has `count` elements from here on; they start with defaults.
  void resize(const Section& section, std::size_t count, std::string_view where);

  // Accepts the value, or notes a fault. REQUIRES: the element exists.
  void put(const Section& section, std::size_t index, const Key& key, const Value& written,
           std::string_view where);

  // An unknown section or key, as a fault with a suggestion.
  void unknown_section(std::string_view where, std::string_view name);
  void unknown_key(std::string_view where, const Section& section, std::string_view path,
                   std::string_view name);

  // Returns the place where "cache.memory" was set; empty: it was not.
  std::string_view where(std::string_view path) const;
  const SourceLocations& places() const { return where_; }
  // Like fault(), at the place where the key was set.
  void fault_at(std::string_view path, std::string_view what);

  // Checks that involve more than one key: the last step. Fills in values derived from the given
  // keys.
  void cross_check();

  // All faults, a line each, or the config.
  Result<Config> finish() &&;

  Config config;

 private:
  void check_required();
  void check_listeners();
  void add_admin_socket();
  void check_listen_tls(std::size_t index);
  void check_forward();
  void check_intercept();
  void check_origins();
  void check_certificate(const std::string& certificate, const std::string& key,
                         const std::string& path);
  void check_rules();
  void check_rule(std::size_t index);
  void check_rule_admission(const Rule& rule, const std::string& path);
  void check_rule_keeps_apart(std::size_t index);
  void check_compression();
  void check_disks();
  void check_admission();
  void check_probation();
  void check_limits();
  // That each of the names is a [[listen]]'s address.
  void check_are_listeners(const std::string& path, const std::vector<std::string>& names);
  void check_filters();
  void check_shadow();

  std::vector<std::string> faults_;
  SourceLocations where_;
};

}  // namespace encore::config
