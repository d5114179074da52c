#include "proxy/net/dns_client.h"

#include <ares.h>
#include <arpa/nameser.h>
#include <event2/event.h>
#include <netinet/tcp.h>
#include <sys/random.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <optional>
#include <span>

#include "base/check.h"
#include "proxy/net/event.h"
#include "proxy/net/loop.h"
#include "proxy/net/syscalls.h"

namespace encore::net {
namespace {

// A socket's port is guessed sooner the longer it is open, so after this many questions a channel
// takes no more until it is empty, when c-ares closes its sockets. A channel for each question
// would be best, but takes 75 KB of tables; this makes it 2.3 KB a question at most.
constexpr int kQuestionsAPort = 32;
// Kept for the next questions: making one costs about 20 us.
constexpr std::size_t kIdleChannels = 4;

void prepare_library() {
  [[maybe_unused]] static const bool prepared = [] {
    ENCORE_CHECK(ares_library_init(ARES_LIB_INIT_ALL) == ARES_SUCCESS, "c-ares starts");
    return true;
  }();
}

std::unexpected<Error> failure(int status) {
  return fail(std::string("name servers: ") + ares_strerror(status));
}

std::uint16_t random_identifier() {
  std::uint16_t identifier = 0;
  const ssize_t got = ::getrandom(&identifier, sizeof identifier, 0);
  ENCORE_CHECK(got == sizeof identifier, "the kernel has random numbers");
  return identifier;
}

ares_addr_port_node make_node(const Address& server) {
  ares_addr_port_node node{};
  node.family = server.family();
  node.udp_port = node.tcp_port = server.port();
  const auto bytes = server.mapped_bytes();
  if (server.is_v4()) {
    std::memcpy(&node.addr, bytes.data() + 12, 4);
  } else {
    std::memcpy(&node.addr, bytes.data(), 16);
  }
  return node;
}

Address make_address(int family, const void* ip, int port) {
  if (family == AF_INET) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(static_cast<std::uint16_t>(port));
    std::memcpy(&v4.sin_addr, ip, sizeof v4.sin_addr);
    return Address(v4);
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(static_cast<std::uint16_t>(port));
  std::memcpy(&v6.sin6_addr, ip, sizeof v6.sin6_addr);
  return Address(v6);
}

void add_found(DnsAnswer& answer, int family, const void* ip, int seconds) {
  const Nanoseconds time_to_live = std::chrono::seconds(std::max(seconds, 0));
  answer.time_to_live =
      answer.addresses.empty() ? time_to_live : std::min(answer.time_to_live, time_to_live);
  answer.addresses.push_back(make_address(family, ip, 0));
}

DnsStatus parse(int family, const unsigned char* message, int size, DnsAnswer& answer) {
  int count = DnsClient::kAddressesMax;
  int status = ARES_SUCCESS;
  if (family == AF_INET) {
    ares_addrttl found[DnsClient::kAddressesMax];
    status = ares_parse_a_reply(message, size, nullptr, found, &count);
    for (const auto& each : std::span(found).first(static_cast<std::size_t>(count))) {
      add_found(answer, family, &each.ipaddr, each.ttl);
    }
  } else {
    ares_addr6ttl found[DnsClient::kAddressesMax];
    status = ares_parse_aaaa_reply(message, size, nullptr, found, &count);
    for (const auto& each : std::span(found).first(static_cast<std::size_t>(count))) {
      add_found(answer, family, &each.ip6addr, each.ttl);
    }
  }
  if (!answer.addresses.empty()) return DnsStatus::kFound;
  return status == ARES_SUCCESS || status == ARES_ENODATA ? DnsStatus::kNotFound
                                                          : DnsStatus::kFailed;
}

// REQUIRES: `message` has a header, as c-ares sees to.
DnsAnswer read_answer(int family, const unsigned char* message, int size) {
  DnsAnswer answer;
  const int code = message[3] & 0x0f;  // RFC 1035 4.1.1
  if (code == ns_r_nxdomain) {
    answer.status = DnsStatus::kNotFound;
  } else if (code == ns_r_noerror) {
    answer.status = parse(family, message, size, answer);
  }
  return answer;
}

}  // namespace

struct DnsClient::Question {
  Channel* channel;
  int family;
  OnAnswer on_answer;
};

// One c-ares channel with its sockets on the loop.
class DnsClient::Channel {
 public:
  struct Deleter {
    void operator()(ares_channeldata* channel) const { ares_destroy(channel); }
  };
  using Handle = std::unique_ptr<ares_channeldata, Deleter>;

  explicit Channel(DnsClient& client)
      : client_(client), timer_(client.loop_, [this] { process(ARES_SOCKET_BAD, 0); }) {}

  Result<void> open(const Options& options) {
    ares_options settings{};
    settings.timeout =
        static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(options.timeout).count());
    settings.tries = options.attempts;
    settings.ndots = 1;
    char lookups[] = "b";  // DNS alone: the hosts file is the resolver's
    settings.lookups = lookups;
    settings.sock_state_cb = &Channel::on_socket_state;
    settings.sock_state_cb_data = this;
    // All that c-ares would otherwise read from files for each channel.
    const int set = ARES_OPT_FLAGS | ARES_OPT_TIMEOUTMS | ARES_OPT_TRIES | ARES_OPT_NDOTS |
                    ARES_OPT_LOOKUPS | ARES_OPT_SOCK_STATE_CB | ARES_OPT_SERVERS |
                    ARES_OPT_DOMAINS | ARES_OPT_SORTLIST | ARES_OPT_NOROTATE;
    ares_channel made = nullptr;
    if (const int status = ares_init_options(&made, &settings, set); status != ARES_SUCCESS) {
      return failure(status);
    }
    handle_.reset(made);
    std::vector<ares_addr_port_node> nodes;
    for (const Address& server : options.nameservers) nodes.push_back(make_node(server));
    for (std::size_t i = 0; i + 1 < nodes.size(); ++i) nodes[i].next = &nodes[i + 1];
    if (const int status = ares_set_servers_ports(made, nodes.data()); status != ARES_SUCCESS) {
      return failure(status);
    }
    ares_set_socket_functions(made, &kSocketFunctions, this);
    return {};
  }

  bool takes_questions() const { return asked_ < kQuestionsAPort; }
  bool is_idle() const { return under_way_ == 0; }

  void ask(const std::string& name, int family, OnAnswer on_answer) {
    unsigned char* message = nullptr;
    int size = 0;
    const int status =
        ares_create_query(name.c_str(), ns_c_in, family == AF_INET ? ns_t_a : ns_t_aaaa,
                          random_identifier(), 1, &message, &size, 0);
    if (status != ARES_SUCCESS) {
      // ".onion" is not for DNS (RFC 7686).
      DnsAnswer answer;
      if (status == ARES_ENOTFOUND) answer.status = DnsStatus::kNotFound;
      client_.answered(std::move(on_answer), std::move(answer));
      return;
    }
    ++asked_;
    ++under_way_;
    no_descriptors_ = false;
    auto question = std::make_unique<Question>(this, family, std::move(on_answer));
    ares_send(handle_.get(), message, size, &Channel::on_answer, question.release());
    ares_free_string(message);
    start_timer();
  }

 private:
  static const ares_socket_functions kSocketFunctions;

  static void on_answer(void* context, int status, int, unsigned char* message, int size) {
    const std::unique_ptr<Question> question(static_cast<Question*>(context));
    Channel& channel = *question->channel;
    if (status == ARES_EDESTRUCTION) return;
    if (--channel.under_way_ == 0) channel.asked_ = 0;
    DnsAnswer answer;
    if (status == ARES_SUCCESS) {
      answer = read_answer(question->family, message, size);
    } else if (status == ARES_ETIMEOUT) {
      answer.status = DnsStatus::kTimeout;
    } else if (channel.no_descriptors_) {
      answer.status = DnsStatus::kNoDescriptors;
    }
    channel.client_.answered(std::move(question->on_answer), std::move(answer));
  }

  static void on_socket_state(void* context, int descriptor, int readable, int writable) {
    auto& channel = *static_cast<Channel*>(context);
    if (readable == 0 && writable == 0) {
      channel.events_.erase(descriptor);
      return;
    }
    auto& event = channel.events_[descriptor];
    if (event == nullptr) event = std::make_unique<Event>();
    const int what = EV_PERSIST | (readable != 0 ? EV_READ : 0) | (writable != 0 ? EV_WRITE : 0);
    event->assign(channel.client_.loop_.base(), descriptor, static_cast<short>(what),
                  &Channel::on_event, &channel);
    // If the kernel has no memory for it, the question times out.
    (void)event->add();
  }

  static void on_event(int descriptor, short what, void* context) {
    static_cast<Channel*>(context)->process(descriptor, what);
  }

  void process(int descriptor, short what) {
    no_descriptors_ = false;
    ares_process_fd(handle_.get(), (what & EV_READ) != 0 ? descriptor : ARES_SOCKET_BAD,
                    (what & EV_WRITE) != 0 ? descriptor : ARES_SOCKET_BAD);
    start_timer();
  }

  void start_timer() {
    timeval next{};
    if (ares_timeout(handle_.get(), nullptr, &next) == nullptr) {
      timer_.cancel();
    } else {
      timer_.start(std::chrono::seconds(next.tv_sec) + std::chrono::microseconds(next.tv_usec));
    }
  }

  static ares_socket_t make_socket(int family, int type, int protocol, void* context) {
    const int made = syscalls.socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, protocol);
    if (made < 0 && (errno == EMFILE || errno == ENFILE)) {
      static_cast<Channel*>(context)->no_descriptors_ = true;
    }
    if (made >= 0 && type == SOCK_STREAM) {
      const int on = 1;
      ::setsockopt(made, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    return made;
  }
  static int close_socket(ares_socket_t descriptor, void*) { return ::close(descriptor); }
  static int connect_socket(ares_socket_t descriptor, const sockaddr* address, ares_socklen_t size,
                            void*) {
    return syscalls.connect(descriptor, address, size);
  }
  static ares_ssize_t receive(ares_socket_t descriptor, void* bytes, std::size_t size, int flags,
                              sockaddr* from, ares_socklen_t* from_size, void*) {
    return ::recvfrom(descriptor, bytes, size, flags, from, from_size);
  }
  static ares_ssize_t send(ares_socket_t descriptor, const iovec* parts, int count, void*) {
    msghdr message{};
    message.msg_iov = const_cast<iovec*>(parts);
    message.msg_iovlen = static_cast<std::size_t>(count);
    return syscalls.sendmsg(descriptor, &message, MSG_NOSIGNAL);
  }

  DnsClient& client_;
  // The sockets' events outlive the handle, which closes them.
  std::map<int, std::unique_ptr<Event>> events_;
  Timer timer_;
  Handle handle_;
  int asked_ = 0;  // since it was last empty
  int under_way_ = 0;
  bool no_descriptors_ = false;  // within the present call of c-ares
};

const ares_socket_functions DnsClient::Channel::kSocketFunctions = {
    .asocket = &Channel::make_socket,
    .aclose = &Channel::close_socket,
    .aconnect = &Channel::connect_socket,
    .arecvfrom = &Channel::receive,
    .asendv = &Channel::send,
};

DnsClient::DnsClient(Loop& loop, Options options)
    : loop_(loop), options_(std::move(options)), deliver_(loop, [this] { deliver(); }) {}

DnsClient::~DnsClient() = default;

Result<std::unique_ptr<DnsClient>> DnsClient::create(Loop& loop, const Options& options) {
  prepare_library();
  std::unique_ptr<DnsClient> client(new DnsClient(loop, options));
  if (options.nameservers.empty()) {
    if (auto read = client->read_system(); !read) return std::unexpected(read.error());
  }
  // A first channel shows that what is configured can be used.
  auto channel = std::make_unique<Channel>(*client);
  if (auto opened = channel->open(client->options_); !opened) {
    return std::unexpected(opened.error());
  }
  client->channels_.push_back(std::move(channel));
  return client;
}

// Takes servers and search list from where c-ares finds them: the file and the environment.
Result<void> DnsClient::read_system() {
  ares_options file{};
  file.resolvconf_path = options_.resolv_conf.data();
  ares_channel made = nullptr;
  if (const int status = ares_init_options(&made, &file, ARES_OPT_RESOLVCONF);
      status != ARES_SUCCESS) {
    return failure(status);
  }
  const Channel::Handle handle(made);
  ares_addr_port_node* servers = nullptr;
  if (const int status = ares_get_servers_ports(made, &servers); status != ARES_SUCCESS) {
    return failure(status);
  }
  for (const ares_addr_port_node* node = servers; node != nullptr; node = node->next) {
    const int port = node->udp_port != 0 ? node->udp_port : NAMESERVER_PORT;
    options_.nameservers.push_back(make_address(node->family, &node->addr, port));
  }
  ares_free_data(servers);
  ares_options settings{};
  int mask = 0;
  const int status = ares_save_options(made, &settings, &mask);
  if (status == ARES_SUCCESS) {
    dots_ = settings.ndots;
    search_.assign(settings.domains, settings.domains + settings.ndomains);
  }
  ares_destroy_options(&settings);
  return status == ARES_SUCCESS ? Result<void>() : failure(status);
}

std::vector<std::string> DnsClient::candidates(const std::string& name) const {
  if (name.ends_with('.')) return {name.substr(0, name.size() - 1)};
  std::vector<std::string> all;
  for (const std::string& domain : search_) {
    // 253 characters are what a name may have (RFC 1035 2.3.4).
    if (name.size() + 1 + domain.size() <= 253) all.push_back(name + "." + domain);
  }
  const bool first = std::ranges::count(name, '.') >= dots_;
  all.insert(first ? all.begin() : all.end(), name);
  return all;
}

DnsClient::Channel* DnsClient::open_channel() {
  for (const auto& channel : channels_) {
    if (channel->takes_questions()) return channel.get();
  }
  auto channel = std::make_unique<Channel>(*this);
  if (!channel->open(options_)) return nullptr;
  channels_.push_back(std::move(channel));
  return channels_.back().get();
}

void DnsClient::ask(const std::string& name, Family family, OnAnswer on_answer) {
  Channel* channel = open_channel();
  if (channel == nullptr) {  // no memory
    answered(std::move(on_answer), DnsAnswer{});
    return;
  }
  channel->ask(name, family == Family::kV4 ? AF_INET : AF_INET6, std::move(on_answer));
}

// c-ares may be in the middle of things, and so may who asks.
void DnsClient::answered(OnAnswer on_answer, DnsAnswer answer) {
  answers_.emplace_back(std::move(on_answer), std::move(answer));
  deliver_.schedule();
}

void DnsClient::deliver() {
  auto answers = std::exchange(answers_, {});
  for (auto& [on_answer, answer] : answers) on_answer(std::move(answer));
  std::size_t idle = 0;
  std::erase_if(channels_, [&idle](const auto& channel) {
    return channel->is_idle() && ++idle > kIdleChannels;
  });
}

}  // namespace encore::net
