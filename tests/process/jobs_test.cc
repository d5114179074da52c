#include "proxy/process/jobs.h"

#include <future>
#include <string>
#include <thread>

#include "tests/catch.h"

namespace encore::server {
namespace {

std::unique_ptr<net::Loop> make_loop() {
  auto loop = net::Loop::create();
  REQUIRE(loop.has_value());
  return std::move(*loop);
}

TEST_CASE("jobs are done one after the other on their thread, and told of on the loop",
          "[server][jobs]") {
  const auto loop = make_loop();
  const auto here = std::this_thread::get_id();
  std::string order;
  bool elsewhere = true;
  bool told_here = true;
  {
    Jobs jobs(*loop, [&] {
      order += '.';
      loop->stop();
    });
    for (const char name : {'a', 'b', 'c'}) {
      jobs.submit([&, name] { (order += name, elsewhere &= std::this_thread::get_id() != here); },
                  [&] { told_here &= std::this_thread::get_id() == here; });
    }
    CHECK(jobs.count() == 3);
    loop->run();
    CHECK(jobs.count() == 0);
  }
  CHECK(order == "abc.");
  CHECK(elsewhere);
  CHECK(told_here);
}

TEST_CASE("who is told of a job may submit the next before the jobs are idle", "[server][jobs]") {
  const auto loop = make_loop();
  int done = 0;
  int idle = 0;
  Jobs jobs(*loop, [&] {
    ++idle;
    loop->stop();
  });
  jobs.submit([] {}, [&] { jobs.submit([] {}, [&] { ++done; }); });
  loop->run();
  CHECK(done == 1);
  CHECK(idle == 1);
}

TEST_CASE("at the end the work under way is finished, and nobody is told", "[server][jobs]") {
  auto loop = make_loop();
  std::promise<void> begun;
  std::promise<void> go_on;
  bool finished = false;
  bool told = false;
  const auto held = std::make_shared<int>(1);
  {
    Jobs jobs(*loop, [&] { told = true; });
    jobs.submit(
        [&, held] {
          begun.set_value();
          go_on.get_future().wait();
          finished = true;
        },
        [&, held] { told = true; });
    jobs.submit([held] {}, [&, held] { told = true; });
    begun.get_future().wait();
    go_on.set_value();
  }
  CHECK(finished);
  CHECK_FALSE(told);
  loop.reset();
  CHECK(held.use_count() == 1);
}

}  // namespace
}  // namespace encore::server
