// encore-filter fetch: a filter from the web, only where it has changed.
#include <ostream>

#include "base/cli/numbers.h"
#include "base/cli/output_file.h"
#include "filter/cli/command.h"
#include "filter/cli/download.h"
#include "filter/cli/filter_file.h"

namespace encore::filter {
namespace {

// Contents of FILE.etag: the ETag, the URL that it is from, and the hash of the file that came with
// it, a line each. It counts for this URL and this file only.
struct Kept {
  std::string etag;
  std::string url;
  std::string content;
};

std::string hash_of(std::string_view bytes) {
  const Hash128 hash = hash_key(HashFamily::kXxh3, Seed{}, bytes);
  return to_hex(Seed{.lo = hash.lo, .hi = hash.hi});
}

std::string text_of(const Kept& kept) {
  return kept.etag + "\n" + kept.url + "\n" + kept.content + "\n";
}

// The ETag to ask with; empty where there is none that fits.
std::string etag_for(const std::string& path, const std::string& url, int in) {
  const auto beside = read_file(path + ".etag", in);
  if (!beside) {
    return "";  // and the file may be a device that has no end
  }
  const auto file = read_file(path, in);
  if (!file) {
    return "";
  }
  const std::string etag = beside->substr(0, beside->find('\n'));
  return *beside == text_of({.etag = etag, .url = url, .content = hash_of(*file)}) ? etag : "";
}

class FetchCommand final : public Command {
 public:
  std::string name() const override { return "fetch"; }
  std::string summary() const override { return "Download a filter by HTTP, if it has changed"; }
  std::string examples() const override {
    return "encore-filter fetch http://127.0.0.1:3129/filters/resident -o resident.enc";
  }
  void declare(Arguments& a) override {
    a.word("URL", url_, "http or https URL; redirects are followed");
    a.output("-o", output_, "output file; its ETag is saved in FILE.etag");
    a.text("--limit", limit_, "largest download, as 64MiB");
  }
  Result<SearchOutcome> run(const Context& context) override {
    if (output_.empty() || output_ == "-") {
      return fail("accepted: -o FILE; the ETag is saved next to it");
    }
    const auto limit = parse_size("--limit", limit_, {.min = 1});
    if (!limit) {
      return std::unexpected(limit.error());
    }
    const auto got =
        download({.url = url_, .etag = etag_for(output_, url_, context.in), .bytes_max = *limit},
                 context.monitor);
    if (!got) {
      return std::unexpected(got.error());
    }
    if (got->not_modified) {
      context.out << "not modified\n";
      return SearchOutcome::kSomething;
    }
    const auto form = detect_form(got->body);
    const auto filter = form ? read_form(got->body, *form, {}) : std::unexpected(form.error());
    if (!filter) {
      return fail(url_ + ": " + filter.error().message);
    }
    auto written = replace_file(output_, got->body);
    if (written) {
      written =
          replace_file(output_ + ".etag",
                       text_of({.etag = got->etag, .url = url_, .content = hash_of(got->body)}));
    }
    if (!written) {
      return std::unexpected(written.error());
    }
    context.out << got->body.size() << " bytes, " << to_string(*form) << "\n";
    return SearchOutcome::kSomething;
  }

 private:
  std::string url_;
  std::string output_;
  std::string limit_ = "1GiB";
};

}  // namespace

std::unique_ptr<Command> make_fetch_command() { return std::make_unique<FetchCommand>(); }

}  // namespace encore::filter
