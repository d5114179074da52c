// Filters in files, of any form.
#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "base/error.h"
#include "filter/any_filter.h"
#include "filter/published/form.h"

namespace encore::filter {

struct FilterFile {
  AnyFilter filter;
  Form form = Form::kEncore;
};

// Properties that the bytes alone do not state: their form, and for raw bits the rest.
struct InputFormat {
  std::optional<Form> form;
  FilterParameters of_raw;
};

// The whole of a file, "-" for `in`. Errors show the path.
Result<std::string> read_file(const std::string& path, int in);
// Loads a filter. If the head of a form, or the size for raw bits, states the length, a file of
// another size is refused before more of it is read. A saved plain filter in a file is never in
// memory together with its bytes. Input that is not a file may have 1 GiB. Errors show the path:
// those of read_file() and read_form(), an unknown form, no memory.
Result<FilterFile> load_filter(const std::string& path, int in, const InputFormat& as = {});

// Writes the filter in its form, "-" to `out`, as replace_file() does. Errors: those of
// write_form().
Result<void> save_filter(const FilterFile& file, const std::string& path, std::ostream& out);

}  // namespace encore::filter
