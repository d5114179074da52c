// The parts of a request that outlive the read that brought it.
#include "proxy/request/request_context.h"

#include <memory>
#include <string>

#include "base/recycled.h"
#include "tests/catch.h"
#include "tests/request/requests.h"

namespace encore::server {
namespace {

using config::Mode;

TEST_CASE("a request outlives the bytes that it was read from", "[request][context]") {
  config::Config config;
  config.origin.emplace_back();
  Requests requests(config);
  REQUIRE(requests.make(Mode::kReverse, "GET /path?q HTTP/1.1\nHost: h\nCookie: c\n").status == 0);
  const auto request =
      RequestContext::make(requests.runtime, requests.view, requests.text, requests.client);
  const std::string key(requests.view.key);
  requests.text.assign(requests.text.size(), '#');
  REQUIRE(requests.make(Mode::kReverse, "GET /another HTTP/1.1\nHost: i\n").status == 0);
  CHECK(request->key == key);
  CHECK(request->head.target == "/path?q");
  CHECK(request->target.path == "/path");
  CHECK(request->target.query == "q");
  CHECK(request->target.authority.host == "h");
  CHECK(request->head.fields.value(http::FieldId::kCookie) == "c");
}

TEST_CASE("credentials are what the origin is told of who asks", "[request][context]") {
  config::Config config;
  config.origin.emplace_back();
  Requests requests(config);
  const auto credentials = [&](const std::string& fields, const std::string& path = "/") {
    REQUIRE(requests.make(Mode::kReverse, "GET " + path + " HTTP/1.1\nHost: h\n" + fields).status ==
            0);
    return RequestContext::make(requests.runtime, requests.view, requests.text, requests.client)
        ->credentials();
  };
  CHECK(credentials("") == 0);
  CHECK(credentials("Accept: a\n") == 0);
  CHECK(credentials("Cookie: a\n") != 0);
  CHECK(credentials("Cookie: a\n") == credentials("Accept: a\nCookie: a\n"));
  CHECK(credentials("Cookie: a\n") != credentials("Cookie: b\n"));
  CHECK(credentials("Cookie: a\n") != credentials("Authorization: a\n"));
  CHECK(credentials("Cookie: a\nAuthorization: b\n") != credentials("Cookie: a\n"));
  // Nobody can tell from one key what they are for another.
  CHECK(credentials("Cookie: a\n") != credentials("Cookie: a\n", "/other"));
}

// Each field as nobody has touched it yet.
void check_fresh(const RequestContext& context) {
  const RequestContext fresh;
  CHECK(context.runtime == nullptr);
  CHECK(context.bytes.empty());
  CHECK(context.head.fields.empty());
  CHECK(context.head.method_text.empty());
  CHECK(context.head.target.empty());
  CHECK(context.head.method == fresh.head.method);
  CHECK(context.head.version == fresh.head.version);
  CHECK(context.head.head_size == 0);
  CHECK(context.target.path.empty());
  CHECK(context.target.authority.host.empty());
  CHECK_FALSE(context.directives.no_store);
  CHECK_FALSE(context.directives.max_age.has_value());
  CHECK(context.framing.kind == fresh.framing.kind);
  CHECK(context.framing.length == fresh.framing.length);
  CHECK(context.route == nullptr);
  CHECK(context.client.port() == fresh.client.port());
  CHECK(context.upgrade.empty());
  CHECK(context.policy == nullptr);
  CHECK(context.from.port() == fresh.from.port());
  CHECK_FALSE(context.through_proxy);
  CHECK_FALSE(context.secure);
  CHECK(context.tls == nullptr);
  CHECK(context.ingress == RequestContext::Ingress::kAsItIs);
  CHECK(context.rule == nullptr);
  CHECK(context.request_policy == nullptr);
  CHECK(context.listener.empty());
  CHECK(context.key.empty());
  CHECK(context.asked.empty());
  CHECK(context.uri.bytes == fresh.uri.bytes);
  CHECK(context.uri.path == fresh.uri.path);
  CHECK(context.digest.empty());
  CHECK_FALSE(context.is_cross_origin);
  CHECK_FALSE(context.was_redirected);
  CHECK(context.first_asked.empty());
  CHECK(context.first_uri.path == fresh.first_uri.path);
  CHECK(context.hash.hi == 0);
  CHECK(context.hash.lo == 0);
  CHECK(context.listener_index == SIZE_MAX);
  CHECK(context.request_id.empty());
  CHECK(context.user.empty());
  CHECK(context.login.empty());
  CHECK_FALSE(context.purges);
  CHECK(context.counts == nullptr);
}

TEST_CASE("the second use of a context has nothing of the first", "[request][context]") {
  config::Config config;
  config.origin.emplace_back();
  Requests requests(config);
  REQUIRE(requests
              .make(Mode::kReverse,
                    "POST /path?q HTTP/1.0\nHost: h\nCache-Control: no-store, max-age=3\n"
                    "Content-Length: 5\nConnection: upgrade\nUpgrade: raw/1\n")
              .status == 0);
  const RequestContext* address = nullptr;
  {
    auto made = make_reused<RequestContext>();
    address = made.get();
    check_fresh(*made);
    RequestContext& context = *made;
    const std::shared_ptr<const RequestContext> full =
        RequestContext::make(requests.runtime, requests.view, requests.text, requests.client);
    context.runtime = requests.runtime;
    context.bytes = std::string(100, 'b');
    context.head = full->head;
    context.target = full->target;
    context.directives = full->directives;
    context.framing = full->framing;
    context.route = full->route;
    context.client = context.from = requests.client;
    context.upgrade = "raw/1";
    const ListenerPolicy policy;
    context.policy = &policy;
    context.through_proxy = context.secure = true;
    context.tls = std::make_shared<const ClientTls>();
    context.ingress = RequestContext::Ingress::kInside;
    context.request_policy = full->request_policy;
    context.rule = reinterpret_cast<const Rule*>(&policy);  // looked at by nobody
    context.listener = context.digest = context.request_id = context.user = "said";
    context.login = "said";
    context.key = context.asked = context.first_asked = std::string(100, 'k');
    context.uri = context.first_uri = full->uri;
    context.is_cross_origin = context.was_redirected = context.purges = true;
    context.hash = {1, 2};
    context.listener_index = 3;
    context.counts = std::make_shared<ListenerPart::element_type>();
  }
  const auto again = make_reused<RequestContext>();
  REQUIRE(again.get() == address);
  check_fresh(*again);
  // The room is what it is used again for.
  CHECK(again->bytes.capacity() >= 100);
  CHECK(again->key.capacity() >= 100);
}

TEST_CASE("a context that keeps too much room gives it back", "[request][context]") {
  {
    auto made = make_reused<RequestContext>();
    made->bytes = std::string(2 * kReusedTextMax, 'b');
  }
  CHECK(make_reused<RequestContext>()->bytes.capacity() <= kReusedTextMax);
}

}  // namespace
}  // namespace encore::server
