// ShapeOptions: the options that say what a filter is to be like. Values; confined to one thread.
#pragma once

#include <cstdint>
#include <string>

#include "base/cli/arguments.h"
#include "base/error.h"
#include "filter/parameters.h"

namespace encore::filter {

class ShapeOptions {
 public:
  void declare(Arguments& arguments);
  bool has_size() const { return bits_ != 0 || capacity_ != 0; }
  bool has_bits() const { return bits_ != 0; }
  std::uint64_t capacity() const { return capacity_; }

  // Returns the given parameters, 0 for the others except those that follow from the rest. Another
  // k than 8 without a layout means classic, and so does a hash that lists its indices, or
  // `classic`. sha1-fields20 without a size means the size of bloomnames. squid-md5 has 4 hashes
  // and as many bits as Squid takes for the capacity unless there is an `fpr` or a number of bits.
  // Errors: unknown names, an invalid seed.
  Result<FilterParameters> parameters(const Arguments& arguments, bool classic = false) const;
  // One of these options that the command line has; null where it has none.
  static const char* given(const Arguments& arguments);

 private:
  std::string hash_ = "xxh3";
  std::string layout_;
  std::string seed_;
  std::uint64_t bits_ = 0;
  std::uint64_t hashes_ = 0;
  std::uint64_t capacity_ = 0;
};

}  // namespace encore::filter
