#include "proxy/intake/password_checks.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace encore::server {

net::Digest PasswordChecks::id_of(const Login& login, const std::string& hash) const {
  std::string text = std::to_string(login.name.size()) + ":" + login.name;
  text += hash + ":" + login.secret;
  return net::keyed_digest(key_, text);
}

bool PasswordChecks::is_remembered(const net::Digest& id, MonotonicTime now) {
  const MutexLock lock(remembered_mutex_);
  const auto found = remembered_.find(id);
  return found != remembered_.end() && now < found->second;
}

// If there is no more space, those leave first whose time is up, then the next one.
void PasswordChecks::remember(const net::Digest& id, MonotonicTime now) {
  const MutexLock lock(remembered_mutex_);
  if (remembered_.size() >= kRememberedMax) {
    std::erase_if(remembered_, [now](const auto& each) { return each.second <= now; });
  }
  if (remembered_.size() >= kRememberedMax) remembered_.erase(remembered_.begin());
  remembered_[id] = now + kRemembered;
}

bool PasswordChecks::check(Job job) {
  const MutexLock lock(mutex_);
  if (stopped_) return false;
  const auto found = waiting_.find(job.client);
  const std::size_t own = found == waiting_.end() ? 0 : found->second.size();
  if (own >= kWaitingMax - waiting_count_) return false;
  if (idle_threads_ == 0 && threads_.size() < kHashedMax + kAskedMax) {
    threads_.emplace_back([this] { run(); });
  }
  if (own == 0) turns_.push_back(job.client);
  joined_[{job.client, id_of(job.login, job.hash)}];
  ++waiting_count_;
  waiting_[job.client].push_back(std::move(job));
  wake_.notify_one();
  return true;
}

bool PasswordChecks::join(const std::string& client, const net::Digest& id, Done done) {
  const MutexLock lock(mutex_);
  const auto found = joined_.find({client, id});
  if (found == joined_.end()) return false;
  found->second.push_back(std::move(done));
  return true;
}

std::deque<std::string>::iterator PasswordChecks::next_turn() {
  return std::ranges::find_if(turns_, [this](const std::string& client) ENCORE_REQUIRES(mutex_) {
    const auto found = waiting_.find(client);
    ENCORE_CHECK(found != waiting_.end(), "who has a turn waits");
    return running(found->second.front()).has_room();
  });
}

// Takes a job of the client whose turn it is, who stands behind the others then.
PasswordChecks::Job PasswordChecks::take(const std::deque<std::string>::iterator& turn) {
  std::string client = std::move(*turn);
  turns_.erase(turn);
  const auto found = waiting_.find(client);
  Job job = std::move(found->second.front());
  found->second.pop_front();
  --waiting_count_;
  if (found->second.empty()) {
    waiting_.erase(found);
  } else {
    turns_.push_back(std::move(client));
  }
  ++running(job).count;
  if (job.helper != nullptr) helpers_.push_back(job.helper.get());
  return job;
}

void PasswordChecks::stop() {
  std::vector<std::thread> threads;
  Waiting waiting;
  Joined joined;
  {
    const MutexLock lock(mutex_);
    stopped_ = true;
    threads.swap(threads_);
    waiting.swap(waiting_);
    joined.swap(joined_);
    turns_.clear();
    waiting_count_ = 0;
    for (LoginHelper* helper : helpers_) helper->stop();
    wake_.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
}

LoginVerdict PasswordChecks::verdict_of(const Job& job, const net::Digest& id) {
  // A client that opens many connections has brought it several times.
  if (job.known && is_remembered(id, monotonic_now())) return LoginVerdict::kRight;
  LoginVerdict verdict = LoginVerdict::kWrong;
  if (job.helper != nullptr) {
    verdict = job.helper->ask(job.login.name, job.login.secret);
  } else if (net::has_hash(job.login.secret, job.hash) && job.known) {
    verdict = LoginVerdict::kRight;
  }
  if (verdict == LoginVerdict::kRight) remember(id, monotonic_now());
  return verdict;
}

void PasswordChecks::finish(Job job, const net::Digest& id, LoginVerdict verdict) {
  std::vector<Done> joined;
  {
    const MutexLock lock(mutex_);
    if (auto node = joined_.extract({job.client, id})) joined = std::move(node.mapped());
  }
  job.done(verdict);
  for (Done& done : joined) done(verdict);
  const MutexLock lock(mutex_);
  --running(job).count;
  if (job.helper != nullptr) helpers_.erase(std::ranges::find(helpers_, job.helper.get()));
  wake_.notify_all();  // those that had no room
}

// It waits with the mutex itself, which the analysis does not follow.
void PasswordChecks::run() ENCORE_NO_THREAD_SAFETY_ANALYSIS {
  while (true) {
    Job job;
    {
      const MutexLock lock(mutex_);
      auto turn = next_turn();
      while (!stopped_ && turn == turns_.end()) {
        ++idle_threads_;
        wake_.wait(mutex_);
        --idle_threads_;
        turn = next_turn();
      }
      if (stopped_) return;
      job = take(turn);
    }
    const net::Digest id = id_of(job.login, job.hash);
    const LoginVerdict verdict = verdict_of(job, id);
    finish(std::move(job), id, verdict);
  }
}

}  // namespace encore::server
