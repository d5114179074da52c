// OriginLines: how many connections there are to each origin server, and the fetches that wait in
// line because there are as many as there may be (upstream.connections_per_server). One a worker,
// confined to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace encore::server {

class OriginLines {
  struct Server;

 public:
  // What one connection takes of its server's number, from before it is made until it is closed;
  // empty: none. Ends before its OriginLines.
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
    // Its connection is idle now: whoever waits may have it.
    void note_idle() const;

   private:
    friend class OriginLines;
    explicit Slot(Server& server) : server_(&server) {}
    void give_back();
    Server* server_ = nullptr;
  };

  // One who waits. It leaves the line when it is destroyed.
  class Waiter {
   public:
    // `on_turn` is called by wake(), out of the line: takes a connection, idle or new; false:
    // there is none to be had, and it did nothing. Then it stays the first.
    explicit Waiter(std::function<bool()> on_turn) : on_turn_(std::move(on_turn)) {}
    Waiter(const Waiter&) = delete;
    Waiter& operator=(const Waiter&) = delete;
    ~Waiter() { leave(); }
    bool is_waiting() const { return server_ != nullptr; }
    void leave() {
      if (server_ != nullptr) leave_line();
    }

   private:
    friend class OriginLines;
    void leave_line();
    std::function<bool()> on_turn_;
    Server* server_ = nullptr;
    std::list<Waiter*>::iterator position_;
  };

  struct Limits {
    std::size_t connections = SIZE_MAX;  // of a key
    std::size_t waiting = 0;             // for a key
  };

  // `on_room` is called where somebody's turn may have come: wake() is to be called then, but not
  // from inside of it.
  explicit OriginLines(std::function<void()> on_room) : on_room_(std::move(on_room)) {}
  OriginLines(const OriginLines&) = delete;
  OriginLines& operator=(const OriginLines&) = delete;

  // A slot for one more connection; empty where there are `limit` of that key already.
  Slot claim(std::string_view key, std::size_t limit);
  // Whether somebody waits for that key: who comes later does not go first.
  bool is_awaited(std::string_view key) const;
  // Puts it last in line; false where `limit` wait for that key already. REQUIRES: it waits for
  // none.
  bool wait(std::string_view key, Waiter& waiter, std::size_t limit);
  // Gives those their turn, first come first served, for whom there is something.
  void wake();
  // The limits have changed: whoever waits is to look again.
  void look_again();

  std::size_t waiting() const { return waiting_; }
  // Keys with a connection or somebody who waits.
  std::size_t size() const { return servers_.size(); }

 private:
  struct Server {
    OriginLines* lines = nullptr;
    const std::string* key = nullptr;
    std::size_t connections = 0;
    bool is_ready = false;  // wake() is to look at it
    std::list<Waiter*> line;
  };
  struct TransparentHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  Server& server_of(std::string_view key);
  void note_room(Server& server);
  void forget_if_unused(const Server& server);

  std::function<void()> on_room_;
  std::unordered_map<std::string, Server, TransparentHash, std::equal_to<>> servers_;
  std::vector<Server*> ready_;
  std::size_t waiting_ = 0;  // of all keys
};

}  // namespace encore::server
