#include "proxy/http/hop_by_hop.h"

#include "tests/catch.h"
#include "tests/http/heads.h"

namespace encore::http {

TEST_CASE("hop-by-hop fields and those Connection lists end here", "[http][rfc9110][7.6.1]") {
  const FieldText text(
      "Connection: close, X-One,\"\"\nConnection: user-agent, Cache-Control, HOST, content-length\n"
      "X-One: 1\nx-two: 2\nUser-Agent: a\nCache-Control: private\nHost: h\nContent-Length: 1\n"
      "Keep-Alive: 1\nTE: trailers\nTransfer-Encoding: chunked\nTrailer: X\nUpgrade: a\n"
      "Proxy-Connection: a\nProxy-Authorization: a\nProxy-Authenticate: a\n"
      "Proxy-Authentication-Info: a");
  const HopByHop hops(text.fields());
  std::string kept;
  for (const Field& field : text.fields()) {
    if (!hops.drops(field)) kept += std::string(field.name) + " ";
  }
  CHECK(kept == "x-two Cache-Control Host Content-Length Trailer ");
}

TEST_CASE("a connection persists as version and Connection say", "[http][rfc9112][9.3]") {
  struct Row {
    std::string_view version;
    std::string_view field;
    bool persists;
  };
  const Row table[] = {
      {"1.1", "A: b", true},
      {"1.1", "Connection: close", false},
      {"1.1", "Connection: x, CLOSE", false},
      {"1.1", "Connection: keep-alive, close", false},
      {"1.0", "A: b", false},
      {"1.0", "Connection: Keep-Alive", true},
      {"1.0", "Proxy-Connection: keep-alive", true},
      {"1.0", "Connection: x\r\nProxy-Connection: keep-alive", false},
      {"1.1", "Proxy-Connection: close", false},
      {"1.1", "Connection: closed", true},
  };
  for (const Row& row : table) {
    CAPTURE(row.version, row.field);
    const std::string text =
        "GET / HTTP/" + std::string(row.version) + "\r\n" + std::string(row.field) + "\r\n\r\n";
    CHECK(keep_alive(request_head(text)) == row.persists);
  }
}

TEST_CASE("an upgrade is asked for in two fields", "[http][rfc9110][7.8]") {
  const auto asked = [](const std::string& fields, Version version = Version::kHttp11) {
    const FieldText text(fields);
    RequestHead head;
    head.version = version;
    head.fields = text.fields();
    return asked_upgrade(head);
  };
  CHECK(asked("Connection: upgrade\nUpgrade: websocket") == "websocket");
  CHECK(asked("Connection: close, Upgrade\nUpgrade: WebSocket") == "WebSocket");
  CHECK(asked("Connection: upgrade\nUpgrade: a/1, b\nUpgrade: c/2.0") == "a/1, b, c/2.0");
  CHECK(asked("Connection: upgrade\nUpgrade: websocket", Version::kHttp10).empty());
  CHECK(asked("Upgrade: websocket").empty());
  CHECK(asked("Connection: upgrade").empty());
  CHECK(asked("Connection: upgrade\nUpgrade:").empty());
  CHECK(asked("Upgrade-Insecure-Requests: 1\nConnection: keep-alive").empty());
  CHECK(asked("Connection: upgrade\nUpgrade: web socket, a/b/c, \"x\", /1, b/").empty());
}

TEST_CASE("other versions of HTTP are not offered, nor more protocols than anybody has",
          "[http][rfc9110][7.8]") {
  const auto asked = [](const std::string& fields) {
    const FieldText text(fields);
    RequestHead head;
    head.fields = text.fields();
    return asked_upgrade(head);
  };
  CHECK(asked("Connection: Upgrade, HTTP2-Settings\nUpgrade: h2c\nHTTP2-Settings: AAMAAABkAAQ")
            .empty());
  CHECK(asked("Connection: upgrade\nUpgrade: TLS/1.2, HTTP/2.0, H2C, h2").empty());
  CHECK(asked("Connection: upgrade\nUpgrade: h2c, foo/1") == "foo/1");
  CHECK(asked("Connection: upgrade\nUpgrade: h2c\nUpgrade: websocket") == "websocket");
  std::string many = "p";
  for (std::size_t i = 1; i < kUpgradeProtocolsMax; ++i) many += ", p";
  CHECK(asked("Connection: upgrade\nUpgrade: " + many) == many);
  CHECK(asked("Connection: upgrade\nUpgrade: " + many + ", p") == many);
}

TEST_CASE("a 101 goes over to what was asked for, and to nothing else", "[http][rfc9110][7.8]") {
  const auto switched = [](std::string_view offered, const std::string& fields) {
    const FieldText text(fields);
    ResponseHead head;
    head.fields = text.fields();
    return switched_protocol(offered, head);
  };
  CHECK(switched("websocket", "Upgrade: websocket") == "websocket");
  CHECK(switched("websocket", "Upgrade: WebSocket") == "WebSocket");
  CHECK(switched("a/1, b", "Upgrade: b") == "b");
  CHECK(switched("a/1, b", "Upgrade: a/1, b") == "a/1, b");
  CHECK(switched("a/1, b", "Upgrade: a/2").empty());
  CHECK(switched("websocket", "Upgrade: websocket, h2c").empty());
  CHECK(switched("websocket", "Upgrade:").empty());
  CHECK(switched("websocket", "X: y").empty());
  CHECK(switched("", "Upgrade: websocket").empty());
}

TEST_CASE("framing, routing and control fields may not come as trailers",
          "[http][rfc9110][6.5.1]") {
  const FieldText text(
      "X-Checksum: 1\nServer: a\nContent-Length: 5\nTransfer-Encoding: chunked\nHost: a\n"
      "Set-Cookie: a\nAuthorization: a\nCache-Control: a\nTrailer: a");
  std::string allowed;
  for (const Field& field : text.fields()) {
    if (allowed_in_trailer(field)) allowed += std::string(field.name) + " ";
  }
  CHECK(allowed == "X-Checksum Server ");
}

TEST_CASE("a Connection that lists too many names costs all unknown fields",
          "[http][rfc9110][7.6.1][limits]") {
  std::string list = "Connection: ";
  for (std::size_t i = 0; i < HopByHop::kListedNamesMax; ++i) list += "f" + std::to_string(i) + ",";
  const FieldText few(list + "\nX-A: b\nServer: s\nf7: x");
  const HopByHop kept(few.fields());
  CHECK_FALSE(kept.drops(*few.fields().find("x-a")));
  CHECK(kept.drops(*few.fields().find("f7")));
  const FieldText many(list + "more\nX-A: b\nServer: s");
  const HopByHop lost(many.fields());
  CHECK(lost.drops(*many.fields().find("x-a")));
  CHECK_FALSE(lost.drops(*many.fields().find("server")));
}

}  // namespace encore::http
