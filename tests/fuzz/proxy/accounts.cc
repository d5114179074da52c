#include "tests/fuzz/proxy/accounts.h"

#include <algorithm>
#include <charconv>
#include <vector>

namespace encore::proxyfuzz {
namespace {

constexpr std::uint64_t kFrameHeaderBytes = 9;  // over HTTP/2

std::string_view next_word(std::string_view& rest) {
  const std::string_view word = rest.substr(0, rest.find(' '));
  rest.remove_prefix(std::min(rest.size(), word.size() + 1));
  return word;
}

template <typename T>
T next_number(std::string_view& rest) {
  const std::string_view word = next_word(rest);
  T value = 0;
  (void)std::from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

// Tunnels, and what the proxy publishes itself, are asked for without a tag.
bool has_tag(const Request& request) { return request.own_path.empty(); }

}  // namespace

void Accounts::report(std::uint64_t tag, const Entry& entry, const std::string& what) {
  std::string text = "its client: " + std::to_string(entry.got.status) + ", " +
                     std::to_string(entry.got.bytes) + " bytes, " +
                     std::to_string(entry.got.content) + " of content; sent " +
                     std::to_string(entry.sent.bytes);
  if (entry.client != Client::kWhole) text += entry.client == Client::kOpen ? " (open)" : " (part)";
  if (entry.has_line) {
    text += "\nthe log: " + std::to_string(entry.line.status) + ", " +
            std::to_string(entry.line.bytes) + " bytes, " + std::to_string(entry.line.content) +
            " of content; taken " + std::to_string(entry.line.taken) + ", " + entry.line.outcome +
            " " + entry.line.connection;
  }
  const std::shared_ptr<Request> request = world_.request(tag);
  world_.report("accounts", what + " (tag " + std::to_string(tag) + ")", request.get(),
                text + "\n");
}

void Accounts::note_begun(const Request& request, const Sent& sent) {
  if (has_tag(request)) open_[request.tag].sent = sent;
}

void Accounts::note_whole(const Request& request, const ReceivedBytes& got) {
  if (!has_tag(request)) return;
  Entry& entry = open_[request.tag];
  entry.client = Client::kWhole;
  entry.got = got;
  entry.was_broken = world_.last_break >= request.started - world_.slack;
  match(request.tag, entry);
}

void Accounts::note_unfinished(const Request& request, std::uint64_t bytes) {
  if (!has_tag(request)) return;
  Entry& entry = open_[request.tag];
  entry.client = Client::kUnfinished;
  entry.got.bytes = bytes;
  match(request.tag, entry);
}

void Accounts::take(std::string_view lines) {
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(lines.size(), line.size() + 1));
    take_line(line);
  }
}

void Accounts::take_line(std::string_view text) {
  const auto tag = next_number<std::uint64_t>(text);
  Line line;
  line.status = next_number<int>(text);
  line.bytes = next_number<std::uint64_t>(text);
  line.content = next_number<std::uint64_t>(text);
  line.taken = next_number<std::uint64_t>(text);
  line.outcome = next_word(text);
  if (!text.empty()) line.connection = text.front();
  ++sums_.requests;
  sums_.bytes += line.bytes;
  sums_.content += line.content;
  ++sums_.outcomes[line.outcome];
  if (tag == 0) {  // its head was not read, or nobody of ours sent it
    sums_.untaken += line.bytes;
    return;
  }
  const std::shared_ptr<Request> request = world_.request(tag);
  if (request != nullptr) sums_.tables.insert(request->rules_before);
  if (request != nullptr && request->rule != nullptr) ++sums_.rules[request->rule->name];
  Entry& entry = open_[tag];
  if (entry.has_line) report(tag, entry, "a request is logged twice");
  entry.has_line = true;
  entry.line = std::move(line);
  match(tag, entry);
}

void Accounts::match(std::uint64_t tag, Entry& entry) {
  if (!entry.has_line || entry.client == Client::kOpen) return;
  compare(tag, entry);
  open_.erase(tag);
}

void Accounts::compare(std::uint64_t tag, const Entry& entry) {
  const Line& line = entry.line;
  const ReceivedBytes& got = entry.got;
  if (line.content > line.bytes) report(tag, entry, "more content is logged than bytes at all");
  if (entry.client == Client::kUnfinished) {
    // Streams share what the kernel has not sent: it counts against each that is cut with it.
    const std::shared_ptr<Request> request = world_.request(tag);
    const bool shares = request != nullptr && request->stream != 0 && line.connection == 'X';
    if (line.bytes < got.bytes && !shares) {
      report(tag, entry, "fewer bytes are logged than its client has");
    }
    sums_.untaken += line.bytes - std::min(line.bytes, got.bytes);
    return;
  }
  if (line.status != got.status) report(tag, entry, "another status is logged");
  // Replies of the proxy's own are logged when they are written, as one frame of content.
  const std::uint64_t as_one = got.bytes - got.cuts * kFrameHeaderBytes;
  const bool is_same = line.bytes == got.bytes || line.bytes == as_one;
  // A connection that the network has taken may have brought more than its sender knows.
  if (entry.was_broken ? line.bytes > got.bytes : !is_same) {
    report(tag, entry, "other bytes are logged than its client has");
  }
  if (entry.was_broken ? line.content > got.content : line.content != got.content) {
    report(tag, entry, "other bytes of content are logged than its client has");
  }
  // A part of the request may not have been read if the connection is not used again.
  const bool is_whole = line.connection == '+' && !entry.sent.may_be_left;
  if (line.taken > entry.sent.bytes || (is_whole && line.taken != entry.sent.bytes)) {
    report(tag, entry, "other bytes of the request are logged than its client has sent");
  }
}

Accounts::Sums Accounts::settle() {
  std::vector<std::uint64_t> done;
  for (const auto& [tag, entry] : open_) done.push_back(tag);
  std::ranges::sort(done);  // the first finding is the same in each run
  for (const std::uint64_t tag : done) {
    const Entry& entry = open_[tag];
    if (entry.client == Client::kWhole)
      report(tag, entry, "a request was answered, and not logged");
    if (entry.client == Client::kOpen && entry.sent.bytes == 0) {
      report(tag, entry, "a line of a request that nobody has sent, or that has another");
    }
    if (entry.has_line) sums_.untaken += entry.line.bytes;
    // The client of an open one may still have to learn how it ended.
    if (entry.client != Client::kOpen || entry.sent.bytes == 0) open_.erase(tag);
  }
  return std::exchange(sums_, {});
}

}  // namespace encore::proxyfuzz
