// PasswordChecks: checks passwords on threads of its own, by hashes or by asking a program. That
// takes longer than a worker may be away from its loop. Remembers for a while which were right, by
// a digest with a key of this process. The threads begin with the first check. Thread-safe. Why
// passwords are not checked on the loop: docs/decisions/0213; which programs: docs/decisions/0572.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "base/time.h"
#include "proxy/net/secrets.h"
#include "proxy/settings/credentials.h"
#include "proxy/settings/login_helper.h"

namespace encore::server {

class PasswordChecks {
 public:
  // Checks that wait beyond those in progress; more are not taken. At some 100 ms each the last of
  // them waits for some seconds. A client has no more waiting than there are places left for others
  // then: it has half of all at most, and with each that comes there is less for the next, and
  // something.
  static constexpr std::size_t kWaitingMax = 64;
  // Hashes take all of a core. Programs wait for something else.
  static constexpr std::size_t kHashedMax = 2;  // at a time
  static constexpr std::size_t kAskedMax = 8;
  static constexpr std::size_t kRememberedMax = 4096;
  static constexpr Nanoseconds kRemembered = std::chrono::minutes(5);

  PasswordChecks() : key_(net::random_digest()) {}
  ~PasswordChecks() { stop(); }
  PasswordChecks(const PasswordChecks&) = delete;
  PasswordChecks& operator=(const PasswordChecks&) = delete;

  // Under which a login is remembered: with the hash that it was checked against, so that another
  // password, or none, is another login.
  net::Digest id_of(const Login& login, const std::string& hash) const;
  // True if this login was found right lately.
  bool is_remembered(const net::Digest& id, MonotonicTime now);

  // One login with the hash of its name. Clients have their turns, one check each. `done` is called
  // with the outcome on a thread of this. False: too many wait, of all or of this client, and it
  // never is.
  using Done = std::move_only_function<void(LoginVerdict verdict)>;
  struct Job {
    std::string client;  // the client whose turn it takes
    Login login;
    std::string hash;
    bool known = false;                        // else it is wrong, whatever the hash says
    std::shared_ptr<LoginHelper> helper = {};  // asked in place of the hash; null: none
    Done done;
  };
  bool check(Job job);
  // Waits with a check of the same login that this client has in progress already: the login of a
  // client with many connections is checked once. False: there is none, and `done` never is called.
  bool join(const std::string& client, const net::Digest& id, Done done);
  // Ends the threads; what waits is forgotten, and its `done` destroyed uncalled.
  void stop();

 private:
  void run();
  // Jobs of a kind that are in progress, and how many may be.
  struct Running {
    std::size_t count = 0;
    std::size_t most = 0;
    bool has_room() const { return count < most; }
  };
  Running& running(const Job& job) ENCORE_REQUIRES(mutex_) {
    return job.helper == nullptr ? hashed_ : asked_;
  }
  // The first client in turn whose job may run; the end: none may.
  std::deque<std::string>::iterator next_turn() ENCORE_REQUIRES(mutex_);
  Job take(const std::deque<std::string>::iterator& turn) ENCORE_REQUIRES(mutex_);
  LoginVerdict verdict_of(const Job& job, const net::Digest& id);
  void finish(Job job, const net::Digest& id, LoginVerdict verdict);
  void remember(const net::Digest& id, MonotonicTime now);

  const net::Digest key_;
  Mutex mutex_;
  std::condition_variable_any wake_;
  bool stopped_ ENCORE_GUARDED_BY(mutex_) = false;
  using Waiting = std::map<std::string, std::deque<Job>, std::less<>>;
  Waiting waiting_ ENCORE_GUARDED_BY(mutex_);  // by client; none of them is empty
  std::size_t waiting_count_ ENCORE_GUARDED_BY(mutex_) = 0;
  std::deque<std::string> turns_ ENCORE_GUARDED_BY(mutex_);  // the clients, whose turn is first
  // Callers that wait for each check, queued or in progress.
  using Joined = std::map<std::pair<std::string, net::Digest>, std::vector<Done>>;
  Joined joined_ ENCORE_GUARDED_BY(mutex_);
  Running hashed_ ENCORE_GUARDED_BY(mutex_){.most = kHashedMax};
  Running asked_ ENCORE_GUARDED_BY(mutex_){.most = kAskedMax};
  std::size_t idle_threads_ ENCORE_GUARDED_BY(mutex_) = 0;
  std::vector<LoginHelper*> helpers_ ENCORE_GUARDED_BY(mutex_);  // that are being asked
  std::vector<std::thread> threads_ ENCORE_GUARDED_BY(mutex_);
  Mutex remembered_mutex_;
  std::map<net::Digest, MonotonicTime> remembered_ ENCORE_GUARDED_BY(remembered_mutex_);
};

}  // namespace encore::server
