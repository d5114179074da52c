#include "tests/net/dns_server.h"

#include <event2/event.h>
#include <sys/socket.h>

#include "proxy/net/host_names.h"
#include "tests/catch.h"

namespace encore::net {
namespace {

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = bytes - 1; i >= 0; --i) out += static_cast<char>(value >> (8 * i));
}

std::string wire_name(std::string name) {
  std::string wire;
  for (name += '.'; !name.empty();) {
    const std::size_t dot = name.find('.');
    put(wire, dot, 1);
    wire += name.substr(0, dot);
    name.erase(0, dot + 1);
  }
  put(wire, 0, 1);
  return wire;
}

void put_record(std::string& out, const std::string& name, int type, std::uint32_t ttl,
                const std::string& data) {
  out += wire_name(name);
  put(out, static_cast<std::uint64_t>(type), 2);
  put(out, 1, 2);
  put(out, ttl, 4);
  put(out, data.size(), 2);
  out += data;
}

Address bound_address(const Socket& socket) {
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size);
  return Address(bound);
}

Socket bind_to(int type, const Address& address) {
  Socket socket(::socket(AF_INET, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (::bind(socket.get(), address.data(), address.size()) != 0) socket.reset();
  return socket;
}

}  // namespace

DnsServer::DnsServer(Loop& loop, const Address& at) : loop_(loop) {
  // A port that is free for both.
  for (int tries = 0; tries < 100 && !tcp_; ++tries) {
    udp_ = bind_to(SOCK_DGRAM, at);
    if (!udp_) return;
    address = bound_address(udp_);
    tcp_ = bind_to(SOCK_STREAM, address);
  }
  REQUIRE(is_there());
  REQUIRE(::listen(tcp_.get(), 16) == 0);
  udp_event_.assign(loop.base(), udp_.get(), EV_READ | EV_PERSIST, &DnsServer::on_datagram, this);
  udp_event_.add();
  tcp_event_.assign(loop.base(), tcp_.get(), EV_READ | EV_PERSIST, &DnsServer::on_connection, this);
  tcp_event_.add();
}

void DnsServer::on_datagram(int descriptor, short, void* context) {
  auto& server = *static_cast<DnsServer*>(context);
  char packet[512];
  sockaddr_storage from{};
  socklen_t from_size = sizeof from;
  auto* peer = reinterpret_cast<sockaddr*>(&from);
  const ssize_t got = ::recvfrom(descriptor, packet, sizeof packet, 0, peer, &from_size);
  if (got < 17) return;
  const std::string question(packet, static_cast<std::size_t>(got));
  const Address to = *Address::from_sockaddr(peer, from_size);
  server.ports.insert(to.port());
  const std::string reply = server.answer(question, false);
  if (reply.empty()) return;
  if (server.forges) server.send_forged(reply, to);
  ::sendto(descriptor, reply.data(), reply.size(), 0, peer, from_size);
}

// With another identifier, with another question, and from another port. The addresses are false.
void DnsServer::send_forged(const std::string& reply, const Address& to) {
  std::string lie = reply;
  lie.back() = static_cast<char>(lie.back() ^ 0x7f);
  std::string other_identifier = lie;
  other_identifier[1] = static_cast<char>(other_identifier[1] ^ 1);
  std::string other_question = lie;
  other_question[13] = static_cast<char>(other_question[13] ^ 1);
  for (const std::string& each : {other_identifier, other_question, std::string("short")}) {
    ::sendto(udp_.get(), each.data(), each.size(), 0, to.data(), to.size());
  }
  const Socket elsewhere = bind_to(SOCK_DGRAM, Address::loopback_v4(0));
  ::sendto(elsewhere.get(), lie.data(), lie.size(), 0, to.data(), to.size());
}

void DnsServer::on_connection(int descriptor, short, void* context) {
  auto& server = *static_cast<DnsServer*>(context);
  Socket socket(::accept4(descriptor, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket || !server.answers_tcp) return;
  auto connection = std::make_unique<Connection>();
  connection->socket = std::move(socket);
  connection->server = &server;
  connection->event.assign(server.loop_.base(), connection->socket.get(), EV_READ | EV_PERSIST,
                           &DnsServer::on_bytes, connection.get());
  connection->event.add();
  server.connections_.push_back(std::move(connection));
}

void DnsServer::on_bytes(int descriptor, short, void* context) {
  auto& connection = *static_cast<Connection*>(context);
  char bytes[4096];
  const ssize_t got = ::recv(descriptor, bytes, sizeof bytes, 0);
  if (got <= 0) {
    connection.event.remove();
    connection.socket.reset();
    return;
  }
  connection.received.append(bytes, static_cast<std::size_t>(got));
  while (connection.received.size() >= 2) {
    const auto* size_bytes = reinterpret_cast<const unsigned char*>(connection.received.data());
    const std::size_t size = size_bytes[0] * 256U + size_bytes[1];
    if (connection.received.size() < 2 + size) return;
    const std::string reply = connection.server->answer(connection.received.substr(2, size), true);
    connection.received.erase(0, 2 + size);
    std::string framed;
    put(framed, reply.size(), 2);
    framed += reply;
    if (!reply.empty()) ::send(descriptor, framed.data(), framed.size(), MSG_NOSIGNAL);
  }
}

std::string DnsServer::answer(const std::string& question, bool tcp) {
  ++questions;
  if (tcp) ++tcp_questions;
  const auto* bytes = reinterpret_cast<const unsigned char*>(question.data());
  std::string name;
  std::size_t at = 12;
  for (; bytes[at] != 0; at += bytes[at] + 1U) {
    if (!name.empty()) name += '.';
    name += question.substr(at + 1, bytes[at]);
  }
  name = normal_host_name(name);
  ++asked[name];
  const int type = bytes[at + 1] * 256 + bytes[at + 2];
  if (silent_types.contains(type)) return {};
  for (const std::string& zone : silent) {
    if (name == zone || name.ends_with("." + zone)) return {};
  }
  std::string reply = question.substr(0, at + 5);  // header and question as they came
  std::uint8_t code = failures.contains(name) ? failures[name] : std::uint8_t{0};
  const bool cut = !tcp && truncated.contains(name);
  std::uint64_t count = 0;
  for (; !cut && aliases.contains(name); ++count) {
    put_record(reply, name, 5, alias_ttl, wire_name(aliases[name]));
    name = aliases[name];
  }
  if (code == 0 && !names.contains(name)) code = 3;
  const auto found = names.find(name);
  for (const std::string& ip :
       cut || found == names.end() ? std::vector<std::string>() : found->second) {
    const Address address_of = *Address::parse_ip(ip, 0);
    if (address_of.is_v4() != (type == 1)) continue;
    ++count;
    const auto all = address_of.mapped_bytes();
    const std::string data(all.begin(), all.end());
    put_record(reply, name, type, ttl, type == 1 ? data.substr(12) : data);
  }
  reply[2] = static_cast<char>(cut ? 0x86 : 0x84);
  reply[3] = static_cast<char>(0x80 | code);
  reply[6] = static_cast<char>(count >> 8);
  reply[7] = static_cast<char>(count);
  reply[9] = reply[11] = 0;
  return reply;
}

}  // namespace encore::net
