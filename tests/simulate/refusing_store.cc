#include "tests/simulate/refusing_store.h"

#include "proxy/store/store.h"
#include "tests/simulate/system.h"

namespace encore::simulate {

bool StoreConduct::refuses = false;
std::function<void(const std::string&)> StoreConduct::on_leak;

namespace {

using namespace store;

class RefusingStore final : public Store {
 public:
  explicit RefusingStore(std::unique_ptr<Store> real) : real_(std::move(real)) {}
  ~RefusingStore() override {
    const StoreStats left = real_->stats();
    if (left.objects + left.live_bytes + left.in_flight_bytes + left.pinned_bytes == 0) return;
    if (!StoreConduct::on_leak) return;
    StoreConduct::on_leak(std::to_string(left.objects) + " objects, " +
                          std::to_string(left.live_bytes) + " bytes, " +
                          std::to_string(left.in_flight_bytes) + " of them in flight, " +
                          std::to_string(left.pinned_bytes) + " pinned, are left in the store");
  }

  Result<BodyRef> make_body(const BodyOptions& options) override {
    if (is_refused()) return fail("the seed refuses it");
    return real_->make_body(options);
  }
  Result<std::unique_ptr<Writer>> reserve(const ObjectSpec& spec) override {
    if (is_refused()) return fail("the seed refuses it");
    return real_->reserve(spec);
  }
  Result<ObjectRef> make_small(const ObjectParts& parts, std::span<const iovec> body) override {
    if (is_refused()) return fail("the seed refuses it");
    return real_->make_small(parts, body);
  }
  Result<ObjectRef> with_head(const ObjectRef& old, const ObjectParts& parts) override {
    if (is_refused()) return fail("the seed refuses it");
    return real_->with_head(old, parts);
  }
  void release(std::span<const Payload> payloads) override { real_->release(payloads); }
  StoreStats stats() const override { return real_->stats(); }
  void set_relocator(Relocator* relocator) override { real_->set_relocator(relocator); }
  void set_limit(std::uint64_t limit_bytes) override { real_->set_limit(limit_bytes); }
  std::uint64_t limit_bytes_max() const override { return real_->limit_bytes_max(); }
  std::size_t maintain(std::size_t moves_max) override { return real_->maintain(moves_max); }

 private:
  static bool is_refused() {
    System* system = System::current();
    if (!StoreConduct::refuses || system == nullptr || system->random() % 2 == 0) return false;
    if (system->on_trouble) system->on_trouble(System::NetworkFault::kShort);
    return true;
  }

  std::unique_ptr<Store> real_;
};

}  // namespace

#define ENCORE_MAKE_STORE "_ZN6encore5store17make_memory_storeERKNS0_18MemoryStoreOptionsE"
Result<std::unique_ptr<store::Store>> real_make_store(const store::MemoryStoreOptions& options) asm(
    "__real_" ENCORE_MAKE_STORE);
Result<std::unique_ptr<store::Store>> wrapped_make_store(
    const store::MemoryStoreOptions& options) asm("__wrap_" ENCORE_MAKE_STORE);

Result<std::unique_ptr<store::Store>> wrapped_make_store(const store::MemoryStoreOptions& options) {
  auto made = real_make_store(options);
  if (!made || System::current() == nullptr) return made;
  return std::unique_ptr<store::Store>(std::make_unique<RefusingStore>(std::move(*made)));
}

}  // namespace encore::simulate
