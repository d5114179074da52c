// A name server on a loop of the test's thread, over UDP and TCP on one port: it answers A and AAAA
// from tables, and counts what it is asked.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "proxy/net/address.h"
#include "proxy/net/event.h"
#include "proxy/net/loop.h"
#include "proxy/net/socket.h"

namespace encore::net {

class DnsServer {
 public:
  // On a free port, unless `at` has one. Check is_there() for ports that need a privilege.
  explicit DnsServer(Loop& loop, const Address& at = Address::loopback_v4(0));
  bool is_there() const { return static_cast<bool>(tcp_); }

  Address address;
  // Names are in lower case.
  std::map<std::string, std::vector<std::string>> names;  // addresses of both families
  std::map<std::string, std::string> aliases;             // CNAME
  std::map<std::string, std::uint8_t> failures;           // response code
  std::set<int> silent_types;                             // 1 A, 28 AAAA
  std::set<std::string> silent;                           // names and zones
  std::set<std::string> truncated;                        // over UDP
  std::uint32_t ttl = 300;
  std::uint32_t alias_ttl = 300;
  bool answers_tcp = true;
  bool forges = false;  // false answers come before each true one

  int questions = 0;
  int tcp_questions = 0;
  std::map<std::string, int> asked;
  std::set<std::uint16_t> ports;  // that UDP questions came from

 private:
  struct Connection {
    Socket socket;
    std::string received;
    Event event;
    DnsServer* server;
  };

  static void on_datagram(int, short, void* context);
  static void on_connection(int, short, void* context);
  static void on_bytes(int, short, void* context);
  // The answer to a question; empty: none is given.
  std::string answer(const std::string& question, bool tcp);
  void send_forged(const std::string& reply, const Address& to);

  Loop& loop_;
  Socket udp_;
  Socket tcp_;
  Event udp_event_;
  Event tcp_event_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

}  // namespace encore::net
