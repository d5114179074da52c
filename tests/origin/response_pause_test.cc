// A body that is shared, and held back by one of its readers: questions to that one, and the way of
// a later request past those in line.
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proxy/origin/response_body.h"
#include "tests/catch.h"
#include "tests/origin/world.h"

namespace encore::server {
namespace {

// Takes nothing, and notes its questions.
struct Lazy final : public TransferReader {
  explicit Lazy(World& world) : TransferReader(*world.home) {}
  ~Lazy() override {
    if (transfer != nullptr) transfer->leave(*this);
  }
  void on_transfer() override {
    const Question question = take_question();
    if (question != Question::kNone) questions.push_back(question);
  }
  void on_interim(std::string_view) override {}

  std::shared_ptr<Transfer> transfer;
  std::vector<Question> questions;
};

TEST_CASE("a reader for which the others wait is urged to begin, asked, and then told to leave",
          "[origin][response_body]") {
  using Question = TransferReader::Question;
  const bool has_begun = GENERATE(true, false);
  CAPTURE(has_begun);
  constexpr std::size_t kBody = 8'000'000;
  Origin origin;
  World world(
      {origin.url()},
      [](config::Config& config) {
        config.limits.transfer_buffer_bytes = 256 * 1024;
        config.cache.collapse_buffer_bytes = 256 * 1024;
      },
      [](cache::KernelOptions& options) {
        options.admission.policy = cache::AdmissionPolicy::kNever;
      });
  world.wastes_bytes = true;  // the rest of a response that nobody waits for
  const auto request = world.request("GET /a HTTP/1.1\r\nHost: h\r\n\r\n");
  Lazy lazy(world);
  FetchPlan plan;
  plan.whole = plan.in_table = true;
  FetchReader first(world, request, std::move(plan));
  world.run_until_asked(origin);
  http::VariantKeys variants(request->head.fields, request->vary());
  lazy.transfer =
      world.inflight
          .join_or_enter(
              {.hash = request->hash, .key = request->key, .variants = variants, .reader = lazy},
              nullptr)
          .transfer;
  REQUIRE(lazy.transfer != nullptr);
  origin.say("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: " +
             std::to_string(kBody) + "\r\n\r\n");
  world.run_until(origin, [&] { return !first.head.empty(); });
  CHECK_FALSE(lazy.transfer->are_readers_urged());
  if (has_begun) lazy.transfer->mark_opened(lazy);
  const std::string body(kBody, 'x');
  std::size_t said = 0;
  world.run_until(origin, [&] {
    said += origin.offer(std::string_view(body).substr(said));
    return std::ranges::find(lazy.questions, Question::kLeave) != lazy.questions.end();
  });
  CHECK(lazy.questions.front() == Question::kHowFar);
  CHECK(lazy.transfer->are_readers_urged() == !has_begun);
  CHECK(first.body.size() < kBody);
  CHECK(said < kBody);
  // Without it the others go on.
  std::exchange(lazy.transfer, nullptr)->leave(lazy);
  world.run_until(origin, [&] {
    said += origin.offer(std::string_view(body).substr(said));
    return first.is_done();
  });
  CHECK(first.body.size() == kBody);
  CHECK(first.whole);
}

TEST_CASE("a later request does not take the connection of one that waits", "[origin][link]") {
  struct Waiting final : public OriginLinkHandler {
    explicit Waiting(World& world)
        : request(world.request("GET /a HTTP/1.1\r\nHost: h\r\n\r\n")),
          link(*world.services, *request, *this) {}
    void on_link_open() override { ++opened; }
    void on_link_failed(const TransferFailure&) override {}
    int opened = 0;
    std::shared_ptr<const RequestContext> request;
    OriginLink link;
  };
  const bool keeps = GENERATE(true, false);
  Origin origin;
  World world({origin.url()});
  world.lines.use({.connections = 1, .waiting = 2});
  Waiting first(world);
  Waiting second(world);
  Waiting third(world);
  (void)first.link.acquire(OriginLink::Need::kAny);
  world.run_until(origin, [&] { return first.opened == 1; });
  CHECK(second.link.acquire(OriginLink::Need::kAny) == OriginLink::Progress::kPending);
  first.link.release(keeps ? OriginLink::Fate::kKeep : OriginLink::Fate::kDrop);
  CHECK(third.link.acquire(OriginLink::Need::kAny) == OriginLink::Progress::kPending);
  CHECK(world.stats.origin_waits.get() == 2);
  CHECK(world.lines.waiting() == 2);
  world.lines.wake();
  world.run_until(origin, [&] { return second.opened == 1; });
  CHECK(third.opened == 0);
  CHECK(world.lines.waiting() == 1);
  second.link.release(OriginLink::Fate::kKeep);
  world.lines.wake();
  world.run_until(origin, [&] { return third.opened == 1; });
}

}  // namespace
}  // namespace encore::server
