// Further forms of objects.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "tests/store/store_fixture.h"

namespace encore::store {
namespace {

constexpr std::string_view kFormKey = "http://a.example/";

ObjectRef make(Store& store, std::uint64_t seed, std::size_t size, bool is_form) {
  auto writer = store.reserve({.key = kFormKey, .length = size, .body = {}});
  REQUIRE(writer);
  const std::string text = pattern(seed, size);
  REQUIRE((*writer)->body()->append(bytes_of(text)) == size);
  (*writer)->body()->complete();
  auto object =
      (*writer)->commit({.key = kFormKey, .meta = {}, .head = "head", .is_form = is_form});
  REQUIRE(object);
  return std::move(*object);
}

std::string content(const Object& object) {
  if (object.is_inline()) return std::string(object.inline_body());
  auto cursor = object.body()->open(0);
  REQUIRE(cursor);
  return drain(*cursor);
}

TEST_CASE("a form is found by its number, and goes with its object", "[store]") {
  const auto size = GENERATE(std::size_t{100}, std::size_t{15'000}, std::size_t{300'000});
  auto store = memory_store(16 * kMiB);
  {
    const ObjectRef object = make(*store, 1, 50'000, false);
    CHECK(object->form(0) == nullptr);
    CHECK(object->add_form(2, make(*store, 2, size, true)));
    CHECK(object->form(0) == nullptr);
    REQUIRE(object->form(2) != nullptr);
    // The first stays; the other one is gone immediately.
    const std::uint64_t objects = store->stats().objects;
    CHECK_FALSE(object->add_form(2, make(*store, 3, size, true)));
    CHECK(store->stats().objects == objects);
    CHECK(content(*object->form(2)) == pattern(2, size));
    CHECK(object->charge_with_forms() == object->charge() + object->form(2)->charge());
    CHECK(content(*object) == pattern(1, 50'000));
  }
  CHECK(store->stats().objects == 0);
  CHECK(store->stats().live_bytes == 0);
}

TEST_CASE("who reads a form keeps it, and from its object's end on for himself alone", "[store]") {
  auto store = memory_store(16 * kMiB);
  ObjectRef object = make(*store, 1, 1000, false);
  REQUIRE(object->add_form(0, make(*store, 2, 300'000, true)));
  const ObjectRef form = ObjectRef::share(*object->form(0));
  CHECK(form->body()->held_for(0) == 0);
  object = ObjectRef();
  CHECK(form->body()->held_for(0) == form->body()->held_bytes());
  CHECK(content(*form) == pattern(2, 300'000));
}

TEST_CASE("an object that is moved takes its forms and its note along", "[store]") {
  auto store = memory_store(8 * kMiB);
  ToyKernel kernel(*store);
  store->set_relocator(&kernel);
  std::vector<std::string> keys;
  for (int i = 0; i < 2'000; ++i) {
    const std::string key = "key" + std::to_string(i);
    const std::string body = pattern(static_cast<std::uint64_t>(i), 900);
    const iovec part = part_of(body);
    auto object = store->make_small({key, {}, "head"}, {&part, 1});
    REQUIRE(object);
    if (i % 4 == 0) {
      (*object)->set_note(7);
      REQUIRE(
          (*object)->add_form(1, make(*store, static_cast<std::uint64_t>(i) + 5000, 400, true)));
      keys.push_back(key);
    }
    kernel.put(key, std::move(*object));
  }
  for (int i = 0; i < 2'000; ++i) {
    if (i % 4 != 0) kernel.drop("key" + std::to_string(i));
  }
  static_cast<MemoryStore&>(*store).compact(5'000);
  CHECK(store->stats().moved_objects > 100);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const ObjectRef object = kernel.get(keys[i]);
    REQUIRE(object->form(1) != nullptr);
    CHECK(object->note() == 7);
    if (content(*object->form(1)) != pattern(4 * i + 5000, 400)) FAIL("another form");
  }
  CHECK(store->stats().objects == 2 * keys.size());
  for (const std::string& key : keys) kernel.drop(key);
  CHECK(store->stats().objects == 0);
  store->set_relocator(nullptr);
}

TEST_CASE("of threads that add the same form one does, while others read", "[store]") {
  auto store = memory_store(16 * kMiB);
  for (int round = 0; round < 50; ++round) {
    const ObjectRef object = make(*store, 1, 100, false);
    std::vector<ObjectRef> forms;
    for (int i = 0; i < 4; ++i) forms.push_back(make(*store, 9, 200, true));
    const std::string expected = pattern(9, 200);
    std::atomic<int> added = 0;
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < forms.size(); ++i) {
      threads.emplace_back([&, i] {
        const ObjectRef held = object;
        added += held->add_form(i % 2, std::move(forms[i])) ? 1 : 0;
        for (std::size_t number = 0; number < Object::kFormsMax; ++number) {
          const Object* const form = held->form(number);
          if (form != nullptr && form->inline_body() != expected) added += 100;
        }
      });
    }
    threads.clear();
    CHECK(added == 2);
  }
  CHECK(store->stats().objects == 0);
}

}  // namespace
}  // namespace encore::store
