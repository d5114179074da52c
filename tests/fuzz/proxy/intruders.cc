#include "tests/fuzz/proxy/intruders.h"

#include <sys/epoll.h>

#include <array>
#include <string>
#include <utility>

namespace encore::proxyfuzz {
namespace {

constexpr std::size_t kIntruders = 4;

enum class Kind : std::uint8_t {
  kGarbage,       // no TLS at all
  kPlainHttp,     // nor here
  kAlmostHello,   // the beginning of a record, then garbage
  kStops,         // says no more from some byte on
  kDamages,       // a bit of some byte is another
  kOffersOthers,  // protocols that the proxy does not speak
  kChangesKeys,   // again and again
  kMalformed,     // a request that is none
};

std::string garbage(Random& random, std::size_t most) {
  std::string out(random.between(1, most), '\0');
  for (char& each : out) each = static_cast<char>(random.below(256));
  return out;
}

}  // namespace

class Intruders::Intruder final : public Handler {
 public:
  Intruder(Ring& ring, std::size_t number)
      : ring_(ring), random_(ring.world.seed(), 'i', number), channel_(ring.loop) {
    pause();
  }
  ~Intruder() override { ring_.loop.cancel(timer_); }

  void on_ready(std::uint32_t events) override {
    if ((events & EPOLLOUT) != 0) say();
    if (!channel_.is_open() || (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0) return;
    std::array<char, 4096> bytes;
    const ssize_t size = channel_.recv(bytes);
    if (size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR))) return;
    go();
  }

 private:
  void pause() {
    timer_ = ring_.loop.after(0.001 * static_cast<double>(random_.between(1, 100)), [this] {
      timer_ = {};
      if (ring_.requests_left != 0) come();
    });
  }

  void come() {
    const int descriptor = ring_.front == nullptr ? connect_to_loopback(ring_.proxy_port, 0)
                                                  : ring_.front->connect(random_, asker_, 0);
    const bool has_tls = ring_.has_tls[static_cast<std::size_t>(asker_.listener)];
    kind_ = static_cast<Kind>(random_.below(8));
    const bool is_tls = has_tls && kind_ > Kind::kAlmostHello;
    text_ = text();
    if (is_tls) {
      Layer layer = Layer::draw(random_);
      // A handshake takes less than a thousand bytes.
      if (kind_ == Kind::kStops) layer.stops_at = random_.between(1, 1200);
      if (kind_ == Kind::kDamages) layer.damages_at = random_.below(1200);
      Ssl ssl = ring_.tls->make_client(
          random_, kind_ == Kind::kOffersOthers ? TlsEnds::Offer::kOther : TlsEnds::Offer::kHttp1);
      channel_.open_secured(descriptor, *this, EPOLLIN | EPOLLOUT, std::move(ssl), layer, random_);
    } else {
      channel_.open(descriptor, *this, EPOLLIN | EPOLLOUT);
    }
    ring_.world.count("tls: intruders");
    timer_ = ring_.loop.after(
        0.001 * static_cast<double>(random_.pick<std::uint64_t>({1, 3, 10, 30, 200})), [this] {
          timer_ = {};
          go();
        });
  }

  std::string text() {
    if (kind_ == Kind::kGarbage) return garbage(random_, 600);
    if (kind_ == Kind::kPlainHttp) return "GET /intruder HTTP/1.1\r\nHost: plain\r\n\r\n";
    if (kind_ == Kind::kAlmostHello) return "\x16\x03\x01\x02" + garbage(random_, 600);
    if (kind_ == Kind::kMalformed) return "NONE\r\n\r\n";
    return "GET http://127.0.0.1/intruder HTTP/1.1\r\nHost: 127.0.0.1\r\nX-End: never";
  }

  void say() {
    while (!text_.empty()) {
      if (kind_ == Kind::kChangesKeys && channel_.is_secured()) channel_.change_keys(30);
      const ssize_t size = channel_.send(text_);
      if (size < 0 && (errno == EAGAIN || errno == ENOTCONN)) {
        return channel_.want(EPOLLIN | EPOLLOUT);
      }
      text_.erase(0, size < 0 ? text_.size() : static_cast<std::size_t>(size));
    }
    channel_.want(EPOLLIN);
  }

  void go() {
    ring_.loop.cancel(timer_);
    channel_.close(random_.percent(50) ? Channel::Close::kLeave : Channel::Close::kReset);
    pause();
  }

  Ring& ring_;
  Random random_;
  Asker asker_;
  Channel channel_;
  Kind kind_ = Kind::kGarbage;
  std::string text_;
  Loop::Timer timer_{};
};

Intruders::Intruders(Ring& ring) {
  for (std::size_t i = 0; i < kIntruders; ++i) all_.push_back(std::make_unique<Intruder>(ring, i));
}

Intruders::~Intruders() = default;

}  // namespace encore::proxyfuzz
