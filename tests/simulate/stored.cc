#include "tests/simulate/stored.h"

#include "cache/kernel.h"
#include "proxy/http/tags.h"
#include "proxy/settings/router.h"
#include "proxy/transfer/response.h"

namespace encore::simulate {
namespace {

class TagLook final : public cache::Visitor {
 public:
  TagLook(const proxyfuzz::World& world,
          const std::function<void(const std::string& what)>& on_fault)
      : world_(world), on_fault_(on_fault) {}

  cache::Verdict visit(const cache::EntryView& entry) override {
    if (entry.payload == 0) return cache::Verdict::kKeep;
    const store::Object& object = store::ObjectRef::peek(entry.payload);
    const proxyfuzz::Url* const url = world_.find_url(path_of_key(server::primary_key_of(object)));
    if (url == nullptr || url->tag.empty()) return cache::Verdict::kKeep;
    if (!http::has_tag(server::tags_of(object), url->tag)) {
      on_fault_("a stored response of " + url->path + " has lost its tag " + url->tag);
    }
    return cache::Verdict::kKeep;
  }

 private:
  const proxyfuzz::World& world_;
  const std::function<void(const std::string& what)>& on_fault_;
};

}  // namespace

std::string_view path_of_key(std::string_view key) {
  const std::size_t host = key.find("://");
  if (host == std::string_view::npos) return {};
  key.remove_prefix(std::min(key.find('/', host + 3), key.size()));
  return key.substr(0, key.find_first_of("?#"));
}

void look_at_tags(server::Proxy& proxy, const proxyfuzz::World& world,
                  const std::function<void(const std::string& what)>& on_fault) {
  TagLook look(world, on_fault);
  cache::Kernel::Cursor cursor;
  const MonotonicTime now = monotonic_now();
  while (proxy.shared().kernel->for_each(cursor, UINT32_MAX, look, now)) {
  }
}

}  // namespace encore::simulate
