// Reads bytes as a filter in every form that there is, our own also with the checksum made right,
// so that everything behind it is reached. A filter that is read must answer, take a key, and be
// read again from its written form.
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "filter/any_filter.h"
#include "filter/published/form.h"
#include "filter/saved_filter.h"

namespace {

using namespace encore::filter;

constexpr Form kForms[] = {Form::kEncore,         Form::kBloomnames,  Form::kBloomnamesDecimal,
                           Form::kBloomnamesJson, Form::kSquidDigest, Form::kRaw};

void read_as(std::string_view bytes, Form form) {
  const FilterParameters of_raw{.layout = Layout::kClassic,
                                .hash = HashFamily::kXxh3,
                                .bits = bytes.size() * 8,
                                .hashes = 3,
                                .capacity = 100,
                                .seed = {}};
  auto filter = read_form(bytes, form, of_raw);
  if (!filter) {
    ENCORE_CHECK(!filter.error().message.empty(), "an error says what is wrong");
    return;
  }
  const AnyFilterInfo info = filter->info();
  ENCORE_CHECK(info.fpr_now >= 0 && info.fpr_now <= 1, "an FPR from bits");
  const auto written = write_form(*filter, form);
  ENCORE_CHECK(written.has_value(), "what was read can be written");
  const auto again = read_form(*written, form, of_raw);
  ENCORE_CHECK(again.has_value() && *write_form(*again, form) == *written,
               "what was written is read again, unchanged");
  filter->add("a key");
  ENCORE_CHECK(filter->test("a key"), "what was added is there");
  ENCORE_CHECK(AnyFilter::load(filter->save()).has_value(), "what was saved loads");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  static_cast<void>(detect_form(bytes));
  for (const Form form : kForms) {
    read_as(bytes, form);
  }
  if (size >= 8) {
    std::string sealed(bytes);
    const std::uint64_t checksum = saved_checksum(sealed);
    std::memcpy(sealed.data() + size - 8, &checksum, 8);
    read_as(sealed, Form::kEncore);
  }
  return 0;
}
