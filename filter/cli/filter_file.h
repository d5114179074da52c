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

// What is given where the bytes alone do not say it: their form, and for raw bits the rest.
struct ReadAs {
  std::optional<Form> form;
  FilterParameters of_raw;
};

// The whole of a file, "-" for `in`. Errors show the path.
Result<std::string> read_file(const std::string& path, int in);
// Where the head of a form, or the size of what holds raw bits, says how much there is, a file of
// another size is refused before more of it is read; a saved plain filter of a file is never held
// beside its bytes. Text that is no file may have 1 GiB.
// Errors show the path: what read_file() and read_form() say, no form that is known, no memory.
Result<FilterFile> load_filter(const std::string& path, int in, const ReadAs& as = {});

// Writes the filter in its form, "-" to `out`, as replace_file() does. Errors: those of
// write_form().
Result<void> save_filter(const FilterFile& file, const std::string& path, std::ostream& out);

}  // namespace encore::filter
