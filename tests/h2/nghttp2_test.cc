// A client of nghttp2's in front of a session: another reading of the same RFCs.
#include <nghttp2/nghttp2.h>

#include <map>
#include <memory>
#include <random>
#include <string>

#include "proxy/h2/server_session.h"
#include "tests/catch.h"
#include "tests/h2/peer.h"

namespace encore::h2 {
namespace {

using test::TextSource;

struct Response {
  std::string status;
  std::map<std::string, std::string> fields;
  std::string content;
  std::uint32_t code = UINT32_MAX;  // in the stream's end
};

class Nghttp2Client {
 public:
  Nghttp2Client() {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, &on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, &on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, &on_close);
    nghttp2_session_client_new(&session_, callbacks, this);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, nullptr, 0);
  }
  ~Nghttp2Client() { nghttp2_session_del(session_); }
  Nghttp2Client(const Nghttp2Client&) = delete;
  Nghttp2Client& operator=(const Nghttp2Client&) = delete;

  std::int32_t request(const test::FieldList& fields, std::string content = {}) {
    std::vector<nghttp2_nv> values;
    for (const auto& [name, value] : fields) {
      values.push_back({bytes_of(name), bytes_of(value), name.size(), value.size(), 0});
    }
    auto& kept = *uploads_.emplace_back(std::make_unique<Upload>(Upload{std::move(content), 0}));
    nghttp2_data_provider provider = {{.ptr = &kept}, &read_upload};
    return nghttp2_submit_request(session_, nullptr, values.data(), values.size(),
                                  kept.text.empty() ? nullptr : &provider, nullptr);
  }
  std::string send() {
    std::string bytes;
    const std::uint8_t* part = nullptr;
    while (true) {
      const ssize_t size = nghttp2_session_mem_send(session_, &part);
      REQUIRE(size >= 0);
      if (size == 0) return bytes;
      bytes.append(reinterpret_cast<const char*>(part), static_cast<std::size_t>(size));
    }
  }
  void receive(std::string_view bytes) {
    const ssize_t used = nghttp2_session_mem_recv(
        session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    REQUIRE(used == static_cast<ssize_t>(bytes.size()));
  }
  std::map<std::int32_t, Response> responses;

 private:
  struct Upload {
    std::string text;
    std::size_t at;
  };
  static std::uint8_t* bytes_of(const std::string& text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  }
  static ssize_t read_upload(nghttp2_session*, std::int32_t, std::uint8_t* to, std::size_t room,
                             std::uint32_t* flags, nghttp2_data_source* source, void*) {
    auto& upload = *static_cast<Upload*>(source->ptr);
    const std::size_t size = upload.text.copy(reinterpret_cast<char*>(to), room, upload.at);
    upload.at += size;
    if (upload.at == upload.text.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return static_cast<ssize_t>(size);
  }
  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                       std::uint8_t, void* self) {
    Response& response = static_cast<Nghttp2Client*>(self)->responses[frame->hd.stream_id];
    const std::string name_text(reinterpret_cast<const char*>(name), name_size);
    const std::string value_text(reinterpret_cast<const char*>(value), value_size);
    if (name_text == ":status") {
      response.status += value_text + " ";
    } else {
      response.fields[name_text] = value_text;
    }
    return 0;
  }
  static int on_data(nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t* bytes,
                     std::size_t size, void* self) {
    static_cast<Nghttp2Client*>(self)->responses[stream].content.append(
        reinterpret_cast<const char*>(bytes), size);
    return 0;
  }
  static int on_close(nghttp2_session*, std::int32_t stream, std::uint32_t code, void* self) {
    static_cast<Nghttp2Client*>(self)->responses[stream].code = code;
    return 0;
  }

  nghttp2_session* session_ = nullptr;
  std::vector<std::unique_ptr<Upload>> uploads_;
};

// Carries bytes both ways, in pieces of random sizes, until nothing moves.
void carry_in_pieces(Nghttp2Client& client, test::Peer& peer, std::mt19937_64& random) {
  std::string up;
  for (bool moves = true; moves;) {
    up += client.send();
    moves = !up.empty();
    while (!up.empty()) {
      const std::string part = up.substr(0, 1 + random() % 5000);
      up.erase(0, peer.session.receive(part, peer.now));
      if (peer.session.is_paused()) break;
    }
    std::array<iovec, 20> room;
    while (peer.session.has_output()) {
      moves = true;
      const Batch batch = peer.session.gather(room, 40000);
      std::string down;
      for (std::size_t i = 0; i < batch.parts; ++i) {
        down.append(static_cast<const char*>(room[i].iov_base), room[i].iov_len);
      }
      down.resize(std::min<std::size_t>(down.size(), 1 + random() % 30000));
      peer.session.sent(down.size(), peer.now);
      client.receive(down);
    }
  }
}

TEST_CASE("a client of nghttp2's is served, on many streams at once", "[h2][nghttp2]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    test::Peer peer;
    Nghttp2Client client;
    std::map<std::int32_t, std::string> uploads;
    for (int i = 0; i < 50; ++i) {
      test::FieldList fields = test::get("/" + std::to_string(i), {{"user-agent", "nghttp2"}});
      std::string content(random() % 3 == 0 ? random() % 100000 : 0, 'u');
      if (!content.empty()) fields[0].second = "POST";
      const std::int32_t id = client.request(fields, content);
      uploads[id] = content;
    }
    carry_in_pieces(client, peer, random);
    REQUIRE(peer.seen.size() == 50);
    std::map<StreamId, TextSource> sources;
    std::map<StreamId, std::string> texts;
    const std::string trailers = "X-Sum: 1\r\n";
    for (const auto& [id, seen] : peer.seen) {
      CHECK(seen.content == uploads[static_cast<std::int32_t>(id)]);
      CHECK(seen.has_ended == seen.has_content);
      texts[id] = std::string(random() % 200000, static_cast<char>('a' + id % 26));
      auto& source = sources.emplace(id, TextSource(texts[id])).first->second;
      source.part_bytes = 1 + random() % 20000;
      peer.session.send_interim(id, "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n");
      peer.session.respond(
          id,
          "HTTP/1.1 200 OK\r\nServer: encore\r\nContent-Length: " +
              std::to_string(texts[id].size()) + "\r\nX-Id: " + std::to_string(id) + "\r\n",
          id % 4 == 1 ? ServerSession::Framing::kLength : ServerSession::Framing::kOpen, &source,
          &trailers);
    }
    carry_in_pieces(client, peer, random);
    CAPTURE(seed, peer.why());
    CHECK_FALSE(peer.end);
    CHECK(peer.session.stream_count() == 0);
    for (const auto& [id, text] : texts) {
      const Response& response = client.responses[static_cast<std::int32_t>(id)];
      CHECK(response.status == "103 200 ");
      CHECK(response.fields.at("x-id") == std::to_string(id));
      CHECK(response.fields.contains("x-sum") == (id % 4 != 1));
      CHECK(response.content == text);
      CHECK(response.code == 0);
    }
  }
}

}  // namespace
}  // namespace encore::h2
