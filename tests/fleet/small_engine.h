// SmallEngine: as much of a Redis engine as passes filters on, in this process: SELECT, SET,
// GETRANGE, EXISTS and DEL. It counts what it holds at a time.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace encore::fleet {

class SmallEngine {
 public:
  SmallEngine() : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(listener_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(listener_, 8);
    ::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    accepting_ = std::thread([this] { accept(); });
  }
  ~SmallEngine() {
    is_over_ = true;
    ::shutdown(listener_, SHUT_RDWR);
    accepting_.join();
    for (const int each : sockets_) ::shutdown(each, SHUT_RDWR);
    for (std::thread& each : serving_) each.join();
    for (const int each : sockets_) ::close(each);
    ::close(listener_);
  }
  SmallEngine(const SmallEngine&) = delete;
  SmallEngine& operator=(const SmallEngine&) = delete;

  std::uint16_t port() const { return port_; }
  void set(const std::string& name, const std::string& value) {
    const std::scoped_lock lock(mutex_);
    values_[name] = value;
  }
  std::map<std::string, std::string> values() const {
    const std::scoped_lock lock(mutex_);
    return values_;
  }
  // The most values that it held at a time.
  std::size_t most() const {
    const std::scoped_lock lock(mutex_);
    return most_;
  }
  // From now on SET is an error, as of an engine that is full.
  void fill() { is_full_ = true; }

 private:
  void accept() {
    for (;;) {
      const int one = ::accept(listener_, nullptr, nullptr);
      if (one < 0 || is_over_) {
        if (one >= 0) ::close(one);
        return;
      }
      sockets_.push_back(one);
      serving_.emplace_back([this, one] { serve(one); });
    }
  }

  void serve(int socket) {
    std::string received;
    std::array<char, 65536> buffer{};
    for (;;) {
      std::vector<std::string> words;
      while (take(received, words)) {
        const std::string reply = run(words);
        if (::send(socket, reply.data(), reply.size(), MSG_NOSIGNAL) < 0) return;
        words.clear();
      }
      const ssize_t got = ::recv(socket, buffer.data(), buffer.size(), 0);
      if (got <= 0) return;
      received.append(buffer.data(), static_cast<std::size_t>(got));
    }
  }

  // A line's number, behind one character; moves `at` behind the line. Negative: it is not whole.
  static long number(const std::string& text, std::size_t& at) {
    const std::size_t end = text.find("\r\n", at);
    if (end == std::string::npos) return -1;
    long value = -1;
    std::from_chars(text.data() + at + 1, text.data() + end, value);
    at = end + 2;
    return value;
  }

  static bool take(std::string& received, std::vector<std::string>& words) {
    std::size_t at = 0;
    const long count = number(received, at);
    if (count < 0) return false;
    for (long i = 0; i < count; ++i) {
      const long size = number(received, at);
      if (size < 0 || received.size() < at + static_cast<std::size_t>(size) + 2) return false;
      words.push_back(received.substr(at, static_cast<std::size_t>(size)));
      at += static_cast<std::size_t>(size) + 2;
    }
    received.erase(0, at);
    return true;
  }

  std::string run(const std::vector<std::string>& words) {
    const std::scoped_lock lock(mutex_);
    const std::string& name = words[1];
    if (words[0] == "SET") {
      if (is_full_) return "-OOM command not allowed when used memory > 'maxmemory'.\r\n";
      values_[name] = words[2];
      most_ = std::max(most_, values_.size());
    } else if (words[0] == "GETRANGE") {
      const std::string some = values_[name].substr(0, std::stoul(words[3]) + 1);
      if (some.empty()) values_.erase(name);
      return "$" + std::to_string(some.size()) + "\r\n" + some + "\r\n";
    } else if (words[0] == "EXISTS") {
      return values_.contains(name) ? ":1\r\n" : ":0\r\n";
    } else if (words[0] == "DEL") {
      for (std::size_t i = 1; i < words.size(); ++i) values_.erase(words[i]);
      return ":1\r\n";
    }
    return "+OK\r\n";
  }

  const int listener_;
  std::uint16_t port_ = 0;
  std::atomic<bool> is_over_ = false;
  std::atomic<bool> is_full_ = false;
  mutable std::mutex mutex_;
  std::map<std::string, std::string> values_;
  std::size_t most_ = 0;
  std::vector<int> sockets_;  // used by the accepting thread, then by the end
  std::vector<std::thread> serving_;
  std::thread accepting_;
};

}  // namespace encore::fleet
