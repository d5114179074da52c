// A TLS server on a stream, by what its peer sends: a plain beginning, pieces of any size, ends at
// any place, what is no TLS.
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "proxy/net/stream.h"
#include "tests/catch.h"
#include "tests/net/certificates.h"
#include "tests/net/net_test_support.h"
#include "tests/net/tls_server_of.h"

namespace encore::net {
namespace {

const TlsServer& server() {
  static const TestCertificates certificates;
  static const auto made = tls_server_of(certificates.certificate_file(), certificates.key_file());
  return *made;
}

// A client in memory: the test carries its bytes.
class MemoryClient {
 public:
  MemoryClient() {
    SSL_set_connect_state(ssl_.get());
    SSL_set_tlsext_host_name(ssl_.get(), "origin.test");
    SSL_set_bio(ssl_.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
  }
  // It wants records of at most 256 << mode bytes.
  void wants_short_records(std::uint8_t mode) {
    REQUIRE(SSL_set_tlsext_max_fragment_length(ssl_.get(), mode) == 1);
  }
  // Returns the bytes that it wants to send now.
  std::string sends() {
    if (SSL_do_handshake(ssl_.get()) == 1 && !question_.empty()) {
      SSL_write(ssl_.get(), question_.data(), static_cast<int>(question_.size()));
      question_.clear();
    }
    std::string bytes(64UL * 1024, '\0');
    const int size =
        BIO_read(SSL_get_wbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
    bytes.resize(static_cast<std::size_t>(std::max(size, 0)));
    return bytes;
  }
  void gets(std::string_view bytes) {
    if (!bytes.empty()) {
      BIO_write(SSL_get_rbio(ssl_.get()), bytes.data(), static_cast<int>(bytes.size()));
    }
  }
  std::string reads() {
    std::array<char, 1024> bytes{};
    const int size = SSL_read(ssl_.get(), bytes.data(), bytes.size());
    return {bytes.data(), static_cast<std::size_t>(std::max(size, 0))};
  }
  // So many changes of keys, and then the question.
  std::string sends_updates(int updates, int kind = SSL_KEY_UPDATE_NOT_REQUESTED) {
    std::string bytes;
    for (int i = 0; i < updates; ++i) {
      REQUIRE(SSL_key_update(ssl_.get(), kind) == 1);
      bytes += sends();
    }
    return bytes;
  }
  // Sent as soon as it can.
  void ask(std::string question) { question_ = std::move(question); }

 private:
  std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context_{SSL_CTX_new(TLS_client_method()),
                                                             &SSL_CTX_free};
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_{SSL_new(context_.get()), &SSL_free};
  std::string question_;
};

// A plain stream that goes over to TLS behind "HEAD\n".
struct Accepting {
  Accepting() : stream(*loop, std::move(pair.near), Address(), &handler) {
    handler.data = [this](Stream& s, std::string_view bytes) -> std::size_t {
      if (s.is_tls()) {
        handler.received.append(bytes);
        CHECK(s.write("answer").status == WriteStatus::kAll);
        return bytes.size();
      }
      if (bytes.size() < kHead.size()) return 0;
      REQUIRE(bytes.starts_with(kHead));
      REQUIRE(s.start_tls(server().session()));
      return kHead.size();
    };
    stream.resume_reading();
  }

  // Carries what the client has to say, `piece` bytes at a time, until it has its answer.
  std::string talk(MemoryClient& client, std::size_t piece) {
    std::string pending(kHead);
    std::string answer;
    loop.run_until([&] {
      pending += client.sends();
      const std::string now = pending.substr(0, piece);
      if (!send_all(pair.far, now)) return true;
      pending.erase(0, now.size());
      client.gets(receive_now(pair.far));
      answer += client.reads();
      return answer.size() >= 6;
    });
    return answer;
  }

  static constexpr std::string_view kHead = "HEAD\n";
  TestLoop loop;
  SocketPair pair;
  Recorder handler;
  Stream stream;
};

}  // namespace

TEST_CASE("a stream goes over to TLS with what was read of it", "[net][tls]") {
  const std::size_t piece = GENERATE(1U, 2U, 3U, 5U, 6U, 7U, 64U, 100U, 511U, 4096U, 100000U);
  CAPTURE(piece);
  Accepting accepting;
  MemoryClient client;
  client.ask("question");
  CHECK(accepting.talk(client, piece) == "answer");
  CAPTURE(accepting.handler.errors, accepting.stream.tls_error());
  CHECK(accepting.handler.received == "question");
  CHECK(accepting.handler.readies == 1);
  CHECK(accepting.stream.tls_facts().version == "TLSv1.3");
}

TEST_CASE("a stream goes over to TLS between two reads with what it keeps", "[net][tls]") {
  TestLoop loop;
  SocketPair pair;
  Recorder handler;
  MemoryClient client;
  client.ask("question");
  Stream stream(*loop, std::move(pair.near), Address(), &handler);
  handler.data = [&](Stream& s, std::string_view bytes) -> std::size_t {
    if (!s.is_tls()) return 0;
    handler.received.append(bytes);
    return bytes.size();
  };
  stream.resume_reading();
  REQUIRE(send_all(pair.far, client.sends()));
  loop.run_until([&] { return stream.kept_bytes() > 0; });
  const bool paused = GENERATE(false, true);
  if (paused) stream.pause_reading();
  REQUIRE(stream.start_tls(server().session()));
  CHECK(stream.kept_bytes() == 0);
  if (paused) stream.resume_reading();
  loop.run_until([&] {
    client.gets(receive_now(pair.far));
    send_all(pair.far, client.sends());
    return handler.received == "question";
  });
}

TEST_CASE("a flood of key updates takes no turn for itself", "[net][tls]") {
  TestLoop loop;
  SocketPair pair;
  Recorder handler;
  MemoryClient client;
  Stream stream(*loop, std::move(pair.near), Address(), &handler, server().session());
  stream.resume_reading();
  loop.run_until([&] {
    send_all(pair.far, client.sends());
    client.gets(receive_now(pair.far));
    return handler.readies == 1;
  });
  // At 27 bytes each, of which two reads take some 33 KB.
  std::string flood = client.sends_updates(3000);
  client.ask("question");
  flood += client.sends();
  REQUIRE(send_all(pair.far, flood));
  for (int turn = 0; turn < 2; ++turn) {
    loop.run_turns(1);
    CHECK(handler.received.empty());
  }
  loop.run_until([&] { return handler.received == "question"; });
}

TEST_CASE("what waits behind a change of our keys is sent as it was given", "[net][tls]") {
  Accepting accepting;
  MemoryClient client;
  client.ask("question");
  REQUIRE(accepting.talk(client, 4096) == "answer");
  REQUIRE(send_all(accepting.pair.far, client.sends_updates(1, SSL_KEY_UPDATE_REQUESTED)));
  accepting.loop.run_turns(3);
  std::string_view left = "theirs";
  const auto send = [&](Stream& stream) { left.remove_prefix(stream.write(left).bytes); };
  accepting.handler.writable = send;
  // The change is due before the next record, and the socket takes nothing.
  const FailCalls failing(FailCalls::Call::kSend, 0, EAGAIN);
  send(accepting.stream);
  REQUIRE(failing.failed());
  std::ranges::fill(accepting.loop->record_scratch(), std::byte{'z'});  // another connection's
  std::string answer;
  accepting.loop.run_until([&] {
    client.gets(receive_now(accepting.pair.far));
    answer += client.reads();
    return answer.size() >= 6;
  });
  CHECK(answer == "theirs");
}

TEST_CASE("what came behind a change of keys is read once ours is sent", "[net][tls]") {
  Accepting accepting;
  MemoryClient client;
  client.ask("question");
  REQUIRE(accepting.talk(client, 4096) == "answer");
  // In one piece, so that OpenSSL has the last record when it sends its own change, which it does
  // at the second one of the client's.
  std::string bytes;
  for (const std::string_view part : {"an", "other"}) {
    bytes += client.sends_updates(1, SSL_KEY_UPDATE_REQUESTED);
    client.ask(std::string(part));
    bytes += client.sends();
  }
  accepting.handler.data = nullptr;
  {
    const FailCalls failing(FailCalls::Call::kSend, 0, EAGAIN);
    REQUIRE(send_all(accepting.pair.far, bytes));
    accepting.loop.run_until([&] { return failing.failed(); });
  }
  accepting.loop.run_until([&] { return accepting.handler.received == "questionanother"; });
  CHECK(accepting.handler.errors == 0);
}

TEST_CASE("who wants short records gets what is his, and nothing else", "[net][tls]") {
  const int mode = GENERATE(range(1, 5));
  CAPTURE(mode);
  Accepting accepting;
  MemoryClient client;
  client.wants_short_records(static_cast<std::uint8_t>(mode));
  client.ask("question");
  REQUIRE(accepting.talk(client, 4096) == "answer");
  std::string theirs(50'000, ' ');
  for (std::size_t i = 0; i < theirs.size(); ++i) theirs[i] = static_cast<char>('a' + i % 23);
  std::string_view left = theirs;
  int blocked = 0;
  const auto send = [&](Stream& stream) {
    // Each second record waits for its socket.
    const FailCalls failing(FailCalls::Call::kSend, 1, EAGAIN);
    left.remove_prefix(stream.write(left).bytes);
    blocked += failing.failed() ? 1 : 0;
    std::ranges::fill(accepting.loop->record_scratch(), std::byte{'Z'});  // another connection's
  };
  accepting.handler.writable = send;
  send(accepting.stream);
  std::string answer;
  accepting.loop.run_until([&] {
    client.gets(receive_now(accepting.pair.far));
    for (std::string more = client.reads(); !more.empty(); more = client.reads()) answer += more;
    return answer.size() >= theirs.size() || answer.contains('Z');
  });
  CHECK(blocked > 5);
  CHECK(answer == theirs);
}

TEST_CASE("a client that ends within its handshake ends the stream", "[net][tls]") {
  MemoryClient model;
  const std::size_t size = model.sends().size();
  REQUIRE(size > 100);
  for (std::size_t cut = 0; cut <= size; cut += cut < 20 ? 1 : 37) {
    CAPTURE(cut);
    TestLoop loop;
    SocketPair pair;
    Recorder handler;
    Stream stream(*loop, std::move(pair.near), Address(), &handler, server().session());
    stream.resume_reading();
    MemoryClient client;
    send_all(pair.far, client.sends().substr(0, cut));
    if (cut % 2 == 0) loop.run_turns(2);
    ::shutdown(pair.far.get(), SHUT_WR);
    loop.run_until([&] { return handler.errors == 1; });
    CHECK(handler.readies == 0);
    CHECK_FALSE(stream.tls_error().empty());
  }
}

TEST_CASE("a hello of which any byte is another one ends the stream or is answered", "[net][tls]") {
  const unsigned flip = GENERATE(0x01U, 0x80U, 0xffU);
  MemoryClient model;
  const std::size_t size = model.sends().size();
  for (std::size_t at = 0; at < size; ++at) {
    CAPTURE(at);
    TestLoop loop;
    SocketPair pair;
    Recorder handler;
    Stream stream(*loop, std::move(pair.near), Address(), &handler, server().session());
    stream.resume_reading();
    MemoryClient client;
    std::string hello = client.sends();
    if (at >= hello.size()) break;
    hello[at] = static_cast<char>(static_cast<unsigned char>(hello[at]) ^ flip);
    REQUIRE(send_all(pair.far, hello));
    ::shutdown(pair.far.get(), SHUT_WR);
    loop.run_until([&] { return handler.errors == 1; });
    CHECK(handler.readies == 0);
  }
}

TEST_CASE("what is no TLS ends the stream", "[net][tls]") {
  const std::string beginning =
      GENERATE(std::string(), std::string("\x16"), std::string("\x16\x03\x01\xff\xff"),
               std::string("\x16\x03\x01\x00\x00", 5), std::string("\x80\x2e\x01\x03\x01", 5));
  std::string garbage(16UL * 1024, GENERATE('\0', '\x01', '\x16', 'x'));
  garbage.replace(0, beginning.size(), beginning);
  TestLoop loop;
  SocketPair pair;
  Recorder handler;
  Stream stream(*loop, std::move(pair.near), Address(), &handler, server().session());
  handler.error = [](Stream& s) { s.close_gracefully(); };
  stream.resume_reading();
  send_all(pair.far, garbage);
  ::shutdown(pair.far.get(), SHUT_WR);
  loop.run_until([&] { return handler.errors == 1; });
  CHECK(handler.reason == CloseReason::kTlsError);
  CHECK_FALSE(stream.is_open());
}

TEST_CASE("a plain request is told apart and can be answered", "[net][tls]") {
  const std::string request =
      GENERATE("GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST / HTTP/1.1\r\n", "HEAD / HTTP/1.1\r\n",
               "PUT /x HTTP/1.1\r\n", "CONNECT a:443 HTTP/1.1\r\n\r\n");
  TestLoop loop;
  SocketPair pair;
  Recorder handler;
  Stream stream(*loop, std::move(pair.near), Address(), &handler, server().session());
  handler.error = [&](Stream& s) {
    CHECK(handler.reason == CloseReason::kTlsPlainHttp);
    s.refuse_plain("in words");
  };
  stream.resume_reading();
  send_all(pair.far, request);
  std::string got;
  loop.run_until([&] {
    got += receive_now(pair.far);
    return got.size() >= 8;
  });
  CHECK(got == "in words");
  CHECK_FALSE(stream.is_open());
}

TEST_CASE("only so many steps of handshakes are taken in one turn, and none is forgotten",
          "[net][tls]") {
  constexpr std::size_t kClients = 12;
  TestLoop loop;
  loop->set_handshakes_per_turn(2);
  std::vector<SocketPair> pairs(kClients);
  std::vector<Recorder> handlers(kClients);
  std::vector<MemoryClient> clients(kClients);
  std::vector<std::unique_ptr<Stream>> streams;
  for (std::size_t i = 0; i < kClients; ++i) {
    const bool fed = i % 2 == 0;  // bytes that are already here make no descriptor readable
    const std::string hello = clients[i].sends();
    auto& stream = streams.emplace_back(
        std::make_unique<Stream>(*loop, std::move(pairs[i].near), Address(), &handlers[i]));
    handlers[i].data = [](Stream&, std::string_view) -> std::size_t { return 0; };
    stream->resume_reading();
    if (fed) {
      REQUIRE(send_all(pairs[i].far, hello));
      loop.run_until([&] { return stream->kept_bytes() == hello.size(); });
    }
    stream->pause_reading();
    if (!fed) REQUIRE(send_all(pairs[i].far, hello));
    REQUIRE(stream->start_tls(server().session()));
  }
  for (auto& stream : streams) stream->resume_reading();
  const auto answered = [&] {
    std::size_t count = 0;
    for (std::size_t i = 0; i < kClients; ++i) {
      char byte = 0;
      if (::recv(pairs[i].far.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1) ++count;
    }
    return count;
  };
  for (std::size_t turn = 1; turn <= kClients / 2; ++turn) {
    CHECK(answered() <= 2 * (turn - 1));
    loop.run_turns(1);
  }
  loop.run_until([&] { return answered() == kClients; });
}

}  // namespace encore::net
