#include "sim/drive/client.h"

#include <curl/curl.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/time.h"
#include "sim/drive/cache_outcome.h"

namespace encore::sim {
namespace {

constexpr std::size_t kFaultsShown = 10;
constexpr long kTimeoutSeconds = 60;
// How long a wait may be, in milliseconds: an interrupt is looked for between two waits.
constexpr int kWaitMax = 100;

struct FreeEasy {
  void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
struct FreeMulti {
  void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};
struct FreeList {
  void operator()(curl_slist* list) const { curl_slist_free_all(list); }
};

// One request at a time, and what has come of its answer.
struct Exchange {
  std::unique_ptr<CURL, FreeEasy> easy;
  std::size_t number = 0;  // in the plan
  const DrivenObject* object = nullptr;
  MonotonicTime due{};
  std::uint64_t received = 0;
  bool same = true;
  std::string cache_status;
};

std::size_t on_body(char* data, std::size_t size, std::size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const std::span<const char> bytes(data, size * count);
  exchange.same = exchange.same &&
                  exchange.received + bytes.size() <= exchange.object->size_bytes &&
                  is_body(*exchange.object, exchange.received, bytes);
  exchange.received += bytes.size();
  return bytes.size();
}

std::size_t on_field(char* data, std::size_t size, std::size_t count, void* user) {
  auto& exchange = *static_cast<Exchange*>(user);
  const std::string_view line(data, size * count);
  constexpr std::string_view kName = "cache-status:";
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  if (line.size() >= kName.size() &&
      std::ranges::equal(line.substr(0, kName.size()), kName, {}, lower)) {
    std::string_view value = line.substr(kName.size());
    value = value.substr(0, value.find_first_of("\r\n"));
    exchange.cache_status += exchange.cache_status.empty() ? "" : ",";
    exchange.cache_status += value;
  }
  return line.size();
}

class Client {
 public:
  Client(const DrivePlan& plan, const ClientOptions& options, Monitor& monitor)
      : plan_(plan), options_(options), monitor_(monitor), multi_(curl_multi_init()) {
    driven_.outcomes.assign(plan.requests.size(), OutcomeNames::kNotAsked);
    curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS, static_cast<long>(options.connections));
    // Curl adds it for old proxies; nothing needs it.
    fields_.reset(curl_slist_append(nullptr, "Proxy-Connection:"));
    for (std::uint32_t i = 0; i < options.connections; ++i) {
      exchanges_.push_back(std::make_unique<Exchange>());
      prepare(*exchanges_.back());
      idle_.push_back(exchanges_.back().get());
    }
  }
  // A handle has to leave the multi handle before either ends.
  ~Client() {
    for (const auto& exchange : exchanges_) {
      curl_multi_remove_handle(multi_.get(), exchange->easy.get());
    }
  }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  Result<Driven> run() {
    start_ = monotonic_now();
    while (driven_.answered < plan_.requests.size() && !monitor_.stopped()) {
      int running = 0;
      curl_multi_perform(multi_.get(), &running);
      if (auto fine = take_answers(); !fine) {
        return std::unexpected(fine.error());
      }
      // Asked after the answers: a connection that one has freed must not wait for the next.
      const int wait = start_due();
      if (wait > 0 && driven_.answered < plan_.requests.size()) {
        curl_multi_poll(multi_.get(), nullptr, 0, wait, nullptr);
      }
    }
    return std::move(driven_);
  }

 private:
  void prepare(Exchange& exchange) {
    exchange.easy.reset(curl_easy_init());
    CURL* easy = exchange.easy.get();
    ENCORE_CHECK(easy != nullptr, "libcurl makes a handle");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, &exchange);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, &exchange);
    curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_field);
    curl_easy_setopt(easy, CURLOPT_HEADERDATA, &exchange);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(easy, CURLOPT_TIMEOUT, kTimeoutSeconds);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, fields_.get());
    // Set either way, so that the environment's proxy settings do not count.
    curl_easy_setopt(easy, CURLOPT_PROXY, options_.reverse ? "" : options_.proxy.c_str());
    curl_easy_setopt(easy, CURLOPT_NOPROXY, "");
  }

  // Starts what is due, as far as connections are free. Returns how many milliseconds may pass
  // without an answer until it is to be called again: none where something was started.
  int start_due() {
    int wait_max = kWaitMax;
    while (next_ < plan_.requests.size() && !idle_.empty()) {
      const MonotonicTime now = monotonic_now();
      MonotonicTime due = now;
      if (options_.rate > 0) {
        due = start_ + Nanoseconds(static_cast<std::int64_t>(static_cast<double>(next_) * 1e9 /
                                                             options_.rate));
        if (due > now) {
          const auto wait = std::chrono::ceil<std::chrono::milliseconds>(due - now).count();
          return static_cast<int>(std::min<std::int64_t>(wait, wait_max));
        }
      }
      Exchange& exchange = *idle_.back();
      idle_.pop_back();
      exchange.number = next_++;
      exchange.object = &plan_.objects[plan_.requests[exchange.number]];
      exchange.due = due;
      exchange.received = 0;
      exchange.same = true;
      exchange.cache_status.clear();
      const std::string url = (options_.reverse ? options_.proxy : "http://" + options_.authority) +
                              path_of(*exchange.object);
      curl_easy_setopt(exchange.easy.get(), CURLOPT_URL, url.c_str());
      curl_multi_add_handle(multi_.get(), exchange.easy.get());
      wait_max = 0;
    }
    return wait_max;
  }

  // Errors: the proxy was never reached.
  Result<void> take_answers() {
    int left = 0;
    while (const CURLMsg* message = curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) {
        continue;
      }
      const CURLcode code = message->data.result;
      char* user = nullptr;
      curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &user);
      auto& exchange = *reinterpret_cast<Exchange*>(user);
      curl_multi_remove_handle(multi_.get(), exchange.easy.get());
      const bool unreachable = code == CURLE_COULDNT_CONNECT ||
                               code == CURLE_COULDNT_RESOLVE_HOST ||
                               code == CURLE_COULDNT_RESOLVE_PROXY;
      if (unreachable && driven_.answered == driven_.errors) {
        return fail("no proxy answers at " + options_.proxy + ": " + curl_easy_strerror(code));
      }
      finish(exchange, code);
      idle_.push_back(&exchange);
    }
    return {};
  }

  void finish(const Exchange& exchange, CURLcode code) {
    long status = 0;
    curl_easy_getinfo(exchange.easy.get(), CURLINFO_RESPONSE_CODE, &status);
    ++driven_.answered;
    driven_.body_bytes += exchange.received;
    monitor_.advance(1);
    if (code != CURLE_OK || status != 200) {
      ++driven_.errors;
      driven_.outcomes[exchange.number] = OutcomeNames::kError;
      show(exchange, code != CURLE_OK ? std::string(curl_easy_strerror(code))
                                      : "status " + std::to_string(status) +
                                            ", Cache-Status:" + exchange.cache_status);
      return;
    }
    const std::string outcome = cache_outcome(exchange.cache_status);
    driven_.outcomes[exchange.number] = driven_.names.number(outcome);
    driven_.hit_bytes += outcome == "hit" ? exchange.received : 0;
    const auto spent =
        std::chrono::duration_cast<std::chrono::microseconds>(monotonic_now() - exchange.due);
    driven_.latency_us.push_back(
        static_cast<std::uint32_t>(std::clamp<std::int64_t>(spent.count(), 0, UINT32_MAX)));
    if (!exchange.same || exchange.received != exchange.object->size_bytes) {
      ++driven_.mismatches;
      show(exchange, std::to_string(exchange.received) + " bytes came of " +
                         std::to_string(exchange.object->size_bytes) +
                         (exchange.same ? "" : ", and not those of the object"));
    }
  }

  void show(const Exchange& exchange, const std::string& what) {
    if (driven_.faults.size() < kFaultsShown) {
      driven_.faults.push_back("Request " + std::to_string(exchange.number + 1) + ", " +
                               path_of(*exchange.object) + ": " + what);
    }
  }

  const DrivePlan& plan_;
  const ClientOptions& options_;
  Monitor& monitor_;
  std::unique_ptr<curl_slist, FreeList> fields_;
  std::vector<std::unique_ptr<Exchange>> exchanges_;
  std::unique_ptr<CURLM, FreeMulti> multi_;
  std::vector<Exchange*> idle_;
  std::size_t next_ = 0;
  MonotonicTime start_{};
  Driven driven_;
};

}  // namespace

std::uint8_t OutcomeNames::number(std::string_view name) {
  const auto found = std::ranges::find(names_, name);
  if (found != names_.end()) {
    return static_cast<std::uint8_t>(found - names_.begin());
  }
  if (names_.size() > UINT8_MAX) {
    return kError;
  }
  names_.emplace_back(name);
  return static_cast<std::uint8_t>(names_.size() - 1);
}

Result<Driven> drive_plan(const DrivePlan& plan, const ClientOptions& options, Monitor& monitor) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  if (started != CURLE_OK) {
    return fail(std::string("libcurl: ") + curl_easy_strerror(started));
  }
  return Client(plan, options, monitor).run();
}

}  // namespace encore::sim
