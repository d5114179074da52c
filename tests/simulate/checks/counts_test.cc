#include "tests/simulate/counts.h"

#include <string>
#include <vector>

#include "tests/catch.h"

namespace encore::simulate {
namespace {

// A server was sent two requests on one connection.
Counted two_requests() {
  Counted counted;
  counted.is_reverse = true;
  counted.is_plain = false;
  server::Snapshot& counts = counted.counts;
  server::ServerReport server;
  server.server = "http://127.0.0.1:8000";
  server.sums.sent = counts.origin_requests = 2;
  server.sums.sent_bytes = counts.bytes_to_origins = 200;
  server.sums.received_bytes = counts.bytes_from_origins = 5000;
  server.sums.connects = counts.origin_connects = 1;
  counts.servers.push_back(server);
  return counted;
}

std::vector<std::string> faults_of(const Counted& counted) {
  std::vector<std::string> faults;
  compare_counts(counted, nullptr, [&](const std::string& what) { faults.push_back(what); });
  return faults;
}

}  // namespace

TEST_CASE("What is counted for each server is counted for all of them", "[simulate]") {
  CHECK(faults_of(two_requests()).empty());
  Counted counted = two_requests();
  counted.counts.servers.push_back(counted.counts.servers.front());  // named twice
  CHECK(faults_of(counted).empty());
}

TEST_CASE("A number of a server that differs from that of all is told", "[simulate]") {
  const auto faults_with = [](std::uint64_t server::ServerSums::* member) {
    Counted counted = two_requests();
    ++(counted.counts.servers.front().sums.*member);
    return faults_of(counted).size();
  };
  CHECK(faults_with(&server::ServerSums::sent) == 1);
  CHECK(faults_with(&server::ServerSums::sent_bytes) == 1);
  CHECK(faults_with(&server::ServerSums::received_bytes) == 1);
  CHECK(faults_with(&server::ServerSums::connects) == 1);
  CHECK(faults_with(&server::ServerSums::connections) == 1);
}

}  // namespace encore::simulate
