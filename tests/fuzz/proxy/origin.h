// The random origin: a server whose every response follows from the URL's character and stream of
// random numbers. It honours what an origin must honour (RFC 9110), so that whatever is wrong
// behind the proxy is the proxy's doing, and writes down what it made.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/fuzz/proxy/channel.h"
#include "tests/fuzz/proxy/http2_server.h"
#include "tests/fuzz/proxy/loop.h"
#include "tests/fuzz/proxy/world.h"

namespace encore::proxyfuzz {

// The origin's output for one request, made in one step when its head is due.
struct Reply {
  Event* event = nullptr;
  std::string interim;
  std::string head;
  std::string body;  // as framed, with the trailers
  enum class End : std::uint8_t { kKeep, kClose, kReset } end = End::kKeep;
  std::size_t pieces = 1;   // in how many the body is sent
  double pause = 0;         // seconds between them
  std::size_t surplus = 0;  // bytes behind its end, the last of the body's
};

// Decides what to answer, by `url.random` alone. `taken`: the redirection that the request follows.
class Author {
 public:
  explicit Author(World& world) : world_(world) {}
  Reply write(Url& url, const std::string& method, const Fields& request,
              const std::shared_ptr<Request>& cause, double received, const Request::Offer* taken);

 private:
  void change(Url& url);
  bool has_large_surplus(const Url& url) const;
  Content& choose(Url& url, const Request& cause, const Fields& request, int status, bool unsafe);
  bool is_not_modified(const Url& url, const Content& content, const Fields& request) const;
  // 200, 206 or 416, and which bytes.
  int choose_range(const Url& url, const Content& content, const Fields& request,
                   std::uint32_t& begin, std::uint32_t& end) const;
  Content* validated_by_proxy(const Url& url, const Fields& request, const Request& cause) const;
  void add_caching_fields(Url& url, Event& event);
  void add_personal_fields(Url& url, Event& event, int user);
  // Writes the body, of bytes [begin, end), and what says where it ends.
  void frame(Url& url, Reply& reply, const Content& of, std::uint32_t begin, std::uint32_t end);
  void spoil(Url& url, Reply& reply);
  void add_tag(Url& url, Event& event, bool is_own_part);
  static bool is_refused(const Url& url, const Fields& request);
  void redirect(Url& url, Event& event, Request& cause, const Request::Offer* taken);
  static void note_limits(const Event& event, Content& content);

  World& world_;
};

class OriginConnection;

// How a server is just now. Dying: it ends connections at the first bytes of a request, before an
// answer or in the middle of its first line. Silent: it takes requests and says nothing.
enum class Mood : std::uint8_t { kWell, kResetting, kSilent, kDying };

class Origin final : public Handler, private Http2ServerOwner {
 public:
  // By https where there is `tls`, which outlives it. With `http2` a connection that begins with
  // the preface speaks that.
  Origin(Loop& loop, World& world, TlsEnds* tls = nullptr,
         const Http2Server::Plan* http2 = nullptr);
  ~Origin() override;
  std::uint16_t port() const noexcept { return port_; }
  int listener() const noexcept { return listener_; }
  // Ends the connections that it has, whatever they are at.
  void set_mood(Mood mood);
  // Counts connections that hold a request back just now, or are at an answer.
  std::size_t busy() const noexcept { return busy_; }
  void on_ready(std::uint32_t events) override;
  // Notes of each last answer of a connection whether the proxy has read all of it by now.
  void note_heard();

 private:
  friend class OriginConnection;
  void accept(int descriptor);
  // Http2ServerOwner
  void on_line(std::unique_ptr<Http2Line> line) override;
  void on_other(std::unique_ptr<Channel> channel, const std::string& bytes) override;
  void on_refused(const Fields& fields) override;
  void on_trouble() override;
  void on_fault(const std::string& what) override;
  void count(std::string_view what) override;
  void on_gone(Http2Server& server) override;

  Loop& loop_;
  World& world_;
  TlsEnds* tls_;
  Author author_;
  std::uint16_t port_ = 0;
  int listener_;
  Mood mood_ = Mood::kWell;
  std::size_t busy_ = 0;
  std::uint64_t connections_made_ = 0;
  // In their order; streams of HTTP/2 are among them.
  std::map<std::uint64_t, std::unique_ptr<OriginConnection>> connections_;
  std::optional<Http2Server::Plan> http2_;
  std::vector<std::unique_ptr<Http2Server>> servers_;
};

}  // namespace encore::proxyfuzz
