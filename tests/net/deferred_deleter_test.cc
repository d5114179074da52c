#include "proxy/net/deferred_deleter.h"

#include <memory>
#include <string>

#include "tests/catch.h"

namespace encore::net {
namespace {

// Writes its name when it dies, and may retire another then.
class Mortal final : public DeferredDeletable {
 public:
  Mortal(std::string name, std::string& deaths) : name_(std::move(name)), deaths_(deaths) {}
  ~Mortal() override {
    deaths_ += name_;
    if (retired != nullptr) retired->add(std::move(heir));
  }
  DeferredDeleter* retired = nullptr;
  std::unique_ptr<Mortal> heir;

 private:
  std::string name_;
  std::string& deaths_;
};

struct DeleterFixture {
  DeleterFixture() {
    auto made = Loop::create();
    REQUIRE(made.has_value());
    loop = std::move(*made);
    retired = std::make_unique<DeferredDeleter>(*loop, [this] { deaths += '.'; });
  }
  // One turn of the loop.
  void turn(Loop::Function function) {
    loop->post(std::move(function));
    loop->stop();
    loop->run();
  }
  std::unique_ptr<Loop> loop;
  std::string deaths;
  std::unique_ptr<DeferredDeleter> retired;
};

TEST_CASE("what is retired lives until the end of the turn, and dies in the order of retiring",
          "[net][retired]") {
  DeleterFixture fixture;
  fixture.turn([&] {
    fixture.retired->add(std::make_unique<Mortal>("a", fixture.deaths));
    fixture.retired->add(std::make_unique<Mortal>("b", fixture.deaths));
    CHECK(fixture.deaths.empty());
  });
  CHECK(fixture.deaths == "ab.");
}

TEST_CASE("what dies may retire others, which die with it", "[net][retired]") {
  DeleterFixture fixture;
  fixture.turn([&] {
    auto parent = std::make_unique<Mortal>("a", fixture.deaths);
    parent->retired = fixture.retired.get();
    parent->heir = std::make_unique<Mortal>("b", fixture.deaths);
    fixture.retired->add(std::move(parent));
  });
  CHECK(fixture.deaths == "ab.");
}

TEST_CASE("who ends retires at once what would wait for a turn", "[net][retired]") {
  DeleterFixture fixture;
  fixture.retired->add(std::make_unique<Mortal>("a", fixture.deaths));
  fixture.retired->drop();
  CHECK(fixture.deaths == "a.");
  fixture.turn([] {});
  CHECK(fixture.deaths == "a.");  // nothing is left to be done
}

}  // namespace
}  // namespace encore::net
