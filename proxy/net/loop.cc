#include "proxy/net/loop.h"

#include <event2/event.h>
#include <event2/thread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>

#include "base/check.h"
#include "base/http_date.h"
#include "proxy/net/event.h"

namespace encore::net {
namespace {

// TLS 1.2 and 1.3 carry at most this much in one record.
constexpr std::size_t kRecordBytes = 16 * 1024;

// Messages of libevent below warnings are dropped: our own outcomes show them.
void log_libevent(int severity, const char* message) {
  if (severity >= EVENT_LOG_WARN) std::fprintf(stderr, "libevent: %s\n", message);
}

void prepare_process() {
  // Signals are shared by all loops, so libevent needs locks, even if no base does.
  [[maybe_unused]] static const bool prepared = [] {
    evthread_use_pthreads();
    event_set_log_callback(&log_libevent);
    std::signal(SIGPIPE, SIG_IGN);
    return true;
  }();
}

event_base* make_base() {
  event_config* config = event_config_new();
  if (config == nullptr) return nullptr;
  // A base is confined to its thread; what crosses threads is the eventfd alone.
  event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
  event_base* base = event_base_new_with_config(config);
  event_config_free(config);
  return base;
}

}  // namespace

Loop::Loop() : scratch_(kScratchBytes) {}

Result<std::unique_ptr<Loop>> Loop::create() {
  prepare_process();
  std::unique_ptr<Loop> loop(new Loop);
  loop->base_ = make_base();
  if (loop->base_ == nullptr) return fail(std::string("event loop: ") + std::strerror(errno));
  loop->wake_descriptor_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (loop->wake_descriptor_ < 0) return fail(std::string("eventfd: ") + std::strerror(errno));
  loop->wake_event_ = std::make_unique<Event>();
  loop->wake_event_->assign(loop->base_, loop->wake_descriptor_, EV_READ | EV_PERSIST,
                            &Loop::on_wake, loop.get());
  if (!loop->wake_event_->add()) return fail(std::string("epoll: ") + std::strerror(errno));
  return loop;
}

Loop::~Loop() {
  lingering_.reset();
  wake_event_.reset();
  functions_.clear();
  mailbox_.clear();
  if (base_ != nullptr) event_base_free(base_);
  if (wake_descriptor_ >= 0) ::close(wake_descriptor_);
}

void Loop::run() {
  while (turn()) {
  }
}

bool Loop::turn() {
  now_known_ = wall_now_known_ = false;
  shares_.begin_turn();
  handshakes_ = 0;
  // One pass of libevent's loop is one turn: sleep, then the callbacks of all that is ready.
  const int result = event_base_loop(base_, EVLOOP_ONCE | (has_deferred() ? EVLOOP_NONBLOCK : 0));
  ENCORE_CHECK(result == 0, "the kernel waits for events");
  run_deferred();
  shares_.serve();
  now_known_ = wall_now_known_ = false;
  if (!stopped_.load(std::memory_order_acquire)) return true;
  stopped_.store(false, std::memory_order_relaxed);
  return false;
}

void Loop::stop() {
  stopped_.store(true, std::memory_order_release);
  wake();
}

WallTime Loop::wall_now() {
  if (!wall_now_known_) {
    wall_now_ = encore::wall_now();
    wall_now_known_ = true;
  }
  return wall_now_;
}

std::string_view Loop::http_date() {
  const auto second = std::chrono::floor<std::chrono::seconds>(wall_now().time_since_epoch());
  if (second.count() != date_second_) {
    date_second_ = second.count();
    write_http_date(date_second_, date_);
  }
  return {date_.data(), date_.size()};
}

std::span<std::byte> Loop::record_scratch() {
  if (record_scratch_.empty()) record_scratch_.resize(kRecordBytes);
  return record_scratch_;
}

void Loop::post(Function function) {
  bool first;
  {
    const MutexLock lock(mutex_);
    first = mailbox_.empty();
    mailbox_.push_back(std::move(function));
  }
  if (first) wake();
}

void Loop::wake() {
  const std::uint64_t one = 1;
  // It fails only where the counter is full, and then the loop is awake already.
  [[maybe_unused]] const ssize_t written = ::write(wake_descriptor_, &one, sizeof one);
}

void Loop::on_wake(int descriptor, short, void* context) {
  std::uint64_t count;
  [[maybe_unused]] const ssize_t got = ::read(descriptor, &count, sizeof count);
  static_cast<Loop*>(context)->run_mailbox();
}

void Loop::run_mailbox() {
  {
    const MutexLock lock(mutex_);
    mail_running_.swap(mailbox_);
  }
  for (Function& function : mail_running_) {
    function();
    function = nullptr;  // releases its captures now, not with the last of the batch
  }
  mail_running_.clear();
}

void Loop::defer(Function function) { functions_.push_back(std::move(function)); }

void Loop::schedule(DeferredNode& node, void (*call)(DeferredNode& node)) {
  if (node.run == nullptr) deferred_.push_back(node, call);
}

void Loop::wait_for_share(DeferredNode& node, void (*call)(DeferredNode& node)) {
  if (node.waits_for_share) return;
  unschedule(node);
  shares_.wait(node, call);
}

void Loop::unschedule(DeferredNode& node) {
  if (node.waits_for_share) {
    shares_.leave(node);
  } else if (node.run != nullptr) {
    DeferredList::remove(node);
  }
}

bool Loop::has_deferred() const {
  return !deferred_.empty() || !functions_.empty() || shares_.waiting() != 0;
}

void Loop::run_deferred() {
  if (deferred_.empty() && functions_.empty()) return;
  // Functions deferred from here on belong to the next turn: they go behind the mark.
  DeferredNode mark;
  schedule(mark, [](DeferredNode&) {});
  while (&deferred_.front() != &mark) {
    DeferredNode& node = deferred_.front();
    const auto call = node.run;
    unschedule(node);
    call(node);
  }
  unschedule(mark);
  functions_running_.swap(functions_);
  for (Function& function : functions_running_) {
    function();
    function = nullptr;
  }
  functions_running_.clear();
}

}  // namespace encore::net
