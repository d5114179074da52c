// OriginQueues: how many connections there are to each origin server, how many of them each client
// uses, and the fetches that wait in line because there is none for them
// (upstream.connections_per_server, connections_per_client). Clients take turns: each has a line of
// its own, first come first served. One a worker, confined to it. Why a share is kept free:
// docs/decisions/0315.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "proxy/net/address.h"

namespace encore::server {

class OriginQueues {
  struct Server;
  struct Client;

 public:
  // A client: an IPv4 address or an IPv6 network of 64 bits. One that speaks for many others, as a
  // trusted proxy that names none of them does, may have all connections of a server.
  struct Party {
    Party(const net::Address& client, bool speaks_for_many)
        : network(client.network_bytes()), is_many(speaks_for_many) {}
    friend auto operator<=>(const Party&, const Party&) = default;

    std::array<std::uint8_t, 16> network;
    bool is_many;
  };

  // A connection's place in its server's number, from before it is made until it is closed; empty:
  // none. Ends before its OriginQueues.
  class Slot {
   public:
    Slot() = default;
    Slot(Slot&& other) noexcept : server_(std::exchange(other.server_, nullptr)) {}
    Slot& operator=(Slot&& other) noexcept {
      if (this != &other) {
        reset();
        server_ = std::exchange(other.server_, nullptr);
      }
      return *this;
    }
    ~Slot() { reset(); }
    explicit operator bool() const { return server_ != nullptr; }
    void reset() {
      if (server_ != nullptr) give_back();
    }
    // Its connection is idle now: a waiting fetch may have it.
    void note_idle() const;

   private:
    friend class OriginQueues;
    explicit Slot(Server& server) : server_(&server) {}
    void give_back();
    Server* server_ = nullptr;
  };

  // One fetch's use of its client's share of a server, from before it has a connection until it is
  // done with it; empty: none. Ends before its OriginQueues.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept : client_(std::exchange(other.client_, nullptr)) {}
    Share& operator=(Share&& other) noexcept {
      if (this != &other) {
        reset();
        client_ = std::exchange(other.client_, nullptr);
      }
      return *this;
    }
    ~Share() { reset(); }
    explicit operator bool() const { return client_ != nullptr; }
    void reset() {
      if (client_ != nullptr) give_back();
    }

   private:
    friend class OriginQueues;
    explicit Share(Client& client) : client_(&client) {}
    void give_back();
    Client* client_ = nullptr;
  };

  // One who waits. It leaves the line when it is destroyed.
  class Waiter {
   public:
    // Both are called by wake(), out of the line.
    class Owner {
     public:
      // Takes a share and a connection, idle or new. False: there is none to be had, and it did
      // nothing; it stays the first.
      virtual bool on_turn() = 0;
      // Its place went to a client that has fewer in line.
      virtual void on_ousted() = 0;

     protected:
      ~Owner() = default;
    };
    // `owner` is borrowed and outlives it.
    explicit Waiter(Owner& owner) : owner_(owner) {}
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    ~Waiter() { leave(); }
    bool is_waiting() const { return client_ != nullptr; }
    void leave();

   private:
    friend class OriginQueues;
    Owner& owner_;
    Client* client_ = nullptr;        // null: it is not in line
    OriginQueues* ousted_ = nullptr;  // it has lost its place, and is to learn it from them
    std::list<Waiter*>::iterator position_;
  };

  struct Limits {
    std::size_t connections = SIZE_MAX;  // per key
    std::size_t per_client = SIZE_MAX;   // among these, in use for one client
    std::size_t waiting = 0;             // for a key
  };

  // `on_room` is called where somebody's turn may have come: wake() is to be called then, but not
  // from inside of it.
  explicit OriginQueues(std::function<void()> on_room) : on_room_(std::move(on_room)) {}
  OriginQueues(const OriginQueues&) = delete;
  OriginQueues& operator=(const OriginQueues&) = delete;

  // Sets the limits for all that is claimed from now on; those who wait try again.
  void use(const Limits& limits);

  // A share for one fetch more; empty where the client has all that it may have of that key.
  Share enter(std::string_view key, const Party& client);
  // True if enter() would give it one.
  bool has_share_left(std::string_view key, const Party& client) const;
  // A slot for one more connection; empty where there are as many of that key as there may be.
  Slot claim(std::string_view key);
  // True if this client has to wait in line: somebody waits for that key whose turn comes first.
  bool must_wait(std::string_view key, const Party& client) const;
  // Puts it last in its client's line. If as many wait for that key as may, the last of the longest
  // line gives way to a client that has at least two fewer in its own; false: there is no place.
  // REQUIRES: it waits for none.
  bool wait(std::string_view key, const Party& client, Waiter& waiter);
  // Gives those their turn, client after client, for whom there is something.
  void wake();

  // Something that a request for that key may use is there, which is no slot.
  void look_again(std::string_view key);

  std::size_t waiting() const { return waiting_; }
  // Keys with a connection, a share or somebody who waits.
  std::size_t size() const { return servers_.size(); }
  // Records of clients of a key.
  std::size_t clients_known(std::string_view key) const;

 private:
  // State of a client that may wait for its turn.
  enum class Turn : std::uint8_t {
    kNone,    // it has nobody in line, or its share is used up
    kQueued,  // it stands among the turns of its server
    kNow,     // wake() gives it its turn
  };
  struct Client {
    Client(Server& of, const Party& who) : server(&of), party(who) {}
    Server* server;
    const Party party;
    std::size_t shares = 0;
    std::list<Waiter*> line;
    Turn turn = Turn::kNone;
    std::list<Client*>::iterator place;  // its place in the queue
  };
  struct Server {
    OriginQueues* lines = nullptr;
    const std::string* key = nullptr;
    std::size_t connections = 0;
    std::size_t shares = 0;   // sum over its clients
    std::size_t waiting = 0;  // likewise
    bool is_ready = false;    // wake() is to check it
    std::map<Party, Client> clients;
    std::size_t clients_kept = kClientsKept;  // those of no use are dropped beyond it
    std::list<Client*> turns;                 // clients in line that have some of their share left
    std::set<std::pair<std::size_t, Party>> lengths;  // lines that are not empty
  };
  struct TransparentHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  // A server keeps records of so many clients that come and go.
  static constexpr std::size_t kClientsKept = 32;

  Server& server_of(std::string_view key);
  Client& client_of(Server& server, const Party& party);
  static void drop_unused_clients(Server& server);
  bool has_share_left(const Client& client) const;
  void queue_or_not(Client& client);
  void add_to_line(Client& client, Waiter& waiter, std::list<Waiter*>::iterator where);
  void take_from_line(Waiter& waiter);
  bool oust_for(Client& client);
  void tell_ousted();
  void give_turns(Server& server);
  void note_room(Server& server);
  void forget_if_unused(const Server& server);

  std::function<void()> on_room_;
  Limits limits_;
  std::unordered_map<std::string, Server, TransparentHash, std::equal_to<>> servers_;
  Server* last_ = nullptr;  // the one that was used last: most workers have one that matters
  std::vector<Server*> ready_;
  std::list<Waiter*> ousted_;
  std::size_t waiting_ = 0;  // sum over all keys
};

}  // namespace encore::server
