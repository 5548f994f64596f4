// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/own_descriptor.hpp"
#include "emu/base/start_thread.hpp"
#include "emu/base/wait.hpp"
#include "emu/job/random.hpp"
#include "lib/cci/debug.hpp"
#include "lib/cci/endpoint.hpp"
#include "lib/cci/mapping.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

// The endpoint's sockets: where it listens, which thread looks at them and when.
namespace orrery::cci {

namespace {

constexpr int kBacklog = 4096;
constexpr std::int64_t kListenAgainNs = 100'000'000;
constexpr int kAttendedMs = 2;  // how long a poll keeps the thread away

// A listening socket at an abstract name. Errors: no_resource (taken), system.
Result<UniqueFd> listen_at(std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  UniqueFd fd(own_descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!fd.valid()) return Errc::system;
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0)
    return errno == EADDRINUSE ? Errc::no_resource : Errc::system;
  if (::listen(fd.get(), kBacklog) != 0) return Errc::system;
  return fd;
}

// Each connection has a descriptor.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

template <typename T>
bool read_number(std::string_view text, T* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc{} && end == text.data() + text.size();
}

}  // namespace

Endpoint::Endpoint(const Device& device) : device_(device), limits_(monotonic_ns()) {}

Result<std::unique_ptr<Endpoint>> Endpoint::create(const Device& device, const char* service,
                                                   bool with_handle) {
  std::unique_ptr<Endpoint> endpoint(new Endpoint(device));
  endpoint->shown.device = &device.shown;
  endpoint->nonce_ = job::random_nonzero();
  if (const Status joined = endpoint->join_clock(); !joined.ok()) return joined.code();
  auto segment = Segment::create(device.shown.max_send_size, endpoint->nonce_);
  if (!segment.ok()) return segment.code();
  endpoint->segment_ = std::move(segment.value());
  SegmentHeader& header = endpoint->segment_->header();
  header.probe_address = reinterpret_cast<std::uintptr_t>(&endpoint->nonce_);
  header.probe_word = endpoint->nonce_;
  raise_descriptor_limit();
  endpoint->doorbell_.reset(own_descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
  endpoint->stop_.reset(own_descriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)));
  endpoint->net_.reset(own_descriptor(::epoll_create1(EPOLL_CLOEXEC)));
  if (!endpoint->doorbell_.valid() || !endpoint->stop_.valid() || !endpoint->net_.valid())
    return Errc::system;
  const Status listening = endpoint->listen(service);
  if (!listening.ok()) return listening.code();
  if (with_handle) {
    endpoint->handle_.reset(own_descriptor(::epoll_create1(EPOLL_CLOEXEC)));
    epoll_event event{};
    event.events = EPOLLIN;
    if (!endpoint->handle_.valid() ||
        ::epoll_ctl(endpoint->handle_.get(), EPOLL_CTL_ADD, endpoint->doorbell_.get(), &event) != 0 ||
        ::epoll_ctl(endpoint->handle_.get(), EPOLL_CTL_ADD, endpoint->net_.get(), &event) != 0)
      return Errc::system;
    const std::lock_guard lock(endpoint->lock_);
    endpoint->settle(true);
  }
  if (endpoint->clock_ != nullptr) {
    endpoint->stirred_ = true;
    endpoint->tell_others();
    return endpoint;
  }
  sigset_t all, before;
  ::sigfillset(&all);
  // Registered memory that is being moved, and threads that do not take these stand in the way of a move.
  ::sigdelset(&all, SIGSEGV);
  ::sigdelset(&all, SIGBUS);
  ::pthread_sigmask(SIG_SETMASK, &all, &before);
  // Before it starts: the thread ends when it does not find this.
  endpoint->has_thread_ = true;
  const bool started = create_runtime_thread(&endpoint->thread_, thread_entry, endpoint.get()) == 0;
  if (!started) endpoint->has_thread_ = false;
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!started) return Errc::system;
  mapping::add(endpoint.get());
  return endpoint;
}

Endpoint::~Endpoint() {
  if (has_thread_) {
    {
      const std::lock_guard lock(lock_);
      has_thread_ = false;
      ::eventfd_write(stop_.get(), 1);
    }
    ::pthread_join(thread_, nullptr);
  }
  if (segment_ == nullptr) return;
  mapping::remove(this);
  while (clock_ != nullptr && flying_ != 0) clock_->idle(this);
  {
    const std::lock_guard lock(alarm_line_->mu);
    alarm_line_->endpoint = nullptr;
  }
  end_registrations();
  flush_acks();
  for (const auto& connection : connections_) {
    while (Op* const op = connection->queue.pop()) delete op;
    while (Op* const op = connection->unacked.pop()) delete op;
  }
}

Status Endpoint::listen(const char* service) {
  if (!device_.by_address()) {
    static std::atomic<std::uint32_t> next_id{0};
    std::uint32_t pid = device_.pid.value_or(static_cast<std::uint32_t>(::getpid()));
    std::uint32_t id = device_.id.value_or(next_id.fetch_add(1));
    if (service != nullptr) {
      const std::string_view text(service);
      const std::size_t slash = text.find('/');
      if (slash == std::string_view::npos || !read_number(text.substr(0, slash), &pid) ||
          !read_number(text.substr(slash + 1), &id))
        return Errc::invalid_param;
    }
    char host[65] = {};
    ::gethostname(host, sizeof host - 1);
    std::string rest(device_.path);
    rest += "/";
    rest += host;
    rest += "/" + std::to_string(pid) + "/" + std::to_string(id);
    uri_ = "sm://" + rest;
    auto listener = listen_at(meeting_name(rest));
    if (!listener.ok()) return listener.code();
    local_listener_ = std::move(listener.value());
  } else {
    std::uint16_t port = device_.port;
    if (service != nullptr && (!read_number(std::string_view(service), &port) || port == 0))
      return Errc::invalid_param;
    address_listener_.reset(own_descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
    const int on = 1;
    ::setsockopt(address_listener_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    ::inet_pton(AF_INET, device_.ip.c_str(), &address.sin_addr);
    socklen_t length = sizeof address;
    if (::bind(address_listener_.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        ::listen(address_listener_.get(), kBacklog) != 0)
      return errno == EADDRINUSE || errno == EADDRNOTAVAIL || errno == EACCES ? Errc::no_resource
                                                                              : Errc::system;
    ::getsockname(address_listener_.get(), reinterpret_cast<sockaddr*>(&address), &length);
    const std::string rest = device_.ip + ":" + std::to_string(ntohs(address.sin_port));
    uri_ = device_.transport + "://" + rest;
    auto listener = listen_at(meeting_name(rest));
    if (!listener.ok()) return listener.code();
    local_listener_ = std::move(listener.value());
    watch_address();
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.ptr = &address_listener_;
    ::epoll_ctl(net_.get(), EPOLL_CTL_ADD, address_listener_.get(), &event);
  }
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = &local_listener_;
  ::epoll_ctl(net_.get(), EPOLL_CTL_ADD, local_listener_.get(), &event);
  return {};
}

// Whether the listeners are looked at; where not, again after a while.
void Endpoint::set_listening(bool on) {
  for (UniqueFd* const listener : {&local_listener_, &address_listener_}) {
    if (!listener->valid()) continue;
    epoll_event event{};
    if (on) event.events = EPOLLIN;
    event.data.ptr = listener;
    ::epoll_ctl(net_.get(), EPOLL_CTL_MOD, listener->get(), &event);
  }
  if (on) return listen_again_.disarm();
  debug::tell(debug::Topic::conn, "no connection can be accepted now: descriptors or memory are used up");
  set_limit(listen_again_, kListenAgainNs);
}

// Moves the sockets. `all`: looks at each that is ready; else first at the one that spoke last.
void Endpoint::progress_network(bool all) {
  flush_acks();
  if (!all && hot_stream_ != nullptr && polls_ % 4 != 0) {
    read_socket(hot_stream_);
    if (events_.head != nullptr) return;
  }
  epoll_event ready[64];
  // Not by libc's function: under a clock that is a look of the program.
  const int count = static_cast<int>(::syscall(SYS_epoll_pwait, net_.get(), ready, 64, 0, nullptr, 0));
  for (int i = 0; i < count; ++i) {
    if (ready[i].data.ptr == &local_listener_ || ready[i].data.ptr == &address_listener_) {
      accept_all(static_cast<UniqueFd*>(ready[i].data.ptr)->get(), ready[i].data.ptr == &local_listener_);
      continue;
    }
    if (ready[i].data.ptr == &addresses_) {
      look_after_address();
      continue;
    }
    auto* const connection = static_cast<Connection*>(ready[i].data.ptr);
    if (!connection->socket.valid()) continue;  // lost by one before it in this list
    if (connection->state == ConnectionState::dialling) {
      dialled(connection);
      continue;
    }
    if ((ready[i].events & EPOLLOUT) != 0 && flush(connection)) {
      if (connection->outgoing.empty() && connection->stalled) retry_stalled();
      pump(connection);
    }
    if ((ready[i].events & EPOLLIN) != 0 && connection->socket.valid()) {
      read_socket(connection);
      if (by_stream(*connection)) hot_stream_ = connection;
    } else if ((ready[i].events & (EPOLLHUP | EPOLLERR)) != 0 && connection->socket.valid()) {
      lose(connection);
    }
  }
  for (Connection* connection : dead_) {
    const std::uint32_t place = connection->place;
    connections_.back()->place = place;
    std::swap(connections_[place], connections_.back());
    connections_.pop_back();
  }
  dead_.clear();
  if (peers_.size() < peers_looked_at_) return;
  std::erase_if(peers_, [](const auto& each) { return each.second.expired(); });
  peers_looked_at_ = std::max<std::size_t>(64, 2 * peers_.size());
}

// There is something to do that its descriptors do not tell of, should the client not poll again.
void Endpoint::wake_thread() {
  if (!thread_sleeps_) return;
  thread_sleeps_ = false;
  ::eventfd_write(stop_.get(), 1);
}

// A time-out of poll(2), -1 for ever, that ends when `ns` have passed, too.
int sooner(int timeout_ms, std::int64_t ns) {
  const std::int64_t ms = std::clamp<std::int64_t>((ns + 999'999) / 1'000'000, 0, 1'000'000);
  return timeout_ms < 0 ? static_cast<int>(ms) : static_cast<int>(std::min<std::int64_t>(ms, timeout_ms));
}

void* Endpoint::thread_entry(void* self) {
  mark_runtime_thread();
  ::pthread_setname_np(::pthread_self(), "orrery-cci");
  static_cast<Endpoint*>(self)->thread_main();
  return nullptr;
}

void Endpoint::thread_main() {
  std::uint64_t polls = 0;
  bool attended = false;
  for (;;) {
    bool waiting = false, quiet = false;
    int timeout = -1;
    std::vector<MapWork> map_work;
    {
      thread_waits_.store(true, std::memory_order_relaxed);
      const std::lock_guard lock(lock_);
      thread_waits_.store(false, std::memory_order_relaxed);
      if (!has_thread_) return;
      map_work.swap(map_work_);
      waiting = !blocked_.empty() || !owing_.empty() || spinning_;
      quiet = streams_ + unsettled_ == 0;
      const bool redials = !redials_.empty();
      thread_sleeps_ = !attended && !waiting && !redials;
      if (waiting && !attended)
        timeout = 1;
      else if (!thread_sleeps_)
        timeout = kAttendedMs;
      const std::int64_t now = monotonic_ns();
      const auto limit = limits_.next_ns();
      if (limit.has_value()) timeout = sooner(timeout, *limit - now);
      thread_until_ns_ = timeout < 0 ? INT64_MAX : now + timeout * std::int64_t{1'000'000};
    }
    if (!map_work.empty()) do_map_work(std::move(map_work));
    // While the client polls, sockets that carry messages are its own.
    pollfd watched[2] = {{stop_.get(), POLLIN, 0}, {net_.get(), POLLIN, 0}};
    const int count = ::poll(watched, attended && !quiet ? 1 : 2, timeout);
    if (count < 0 && errno != EINTR) return;
    if (count == 1 && !attended && watched[1].revents != 0 && handle_.valid()) {
      // A client that sleeps on the handle has woken too, and has the first turn.
      ::poll(watched, 1, 1);
    }
    thread_waits_.store(true, std::memory_order_relaxed);
    const std::lock_guard lock(lock_);
    thread_waits_.store(false, std::memory_order_relaxed);
    thread_sleeps_ = false;
    thread_until_ns_ = 0;
    if (!has_thread_) return;
    if (watched[0].revents != 0) {
      eventfd_t value = 0;
      ::eventfd_read(stop_.get(), &value);
    }
    attended = polls_ != polls;
    polls = polls_;
    keep_time(monotonic_ns());
    if (!redials_.empty()) redial();
    nudge_peers();
    if (attended && streams_ + unsettled_ != 0) {
      // A client that polls seldom owes no peer an answer until its next poll.
      flush_acks();
      continue;
    }
    if (spinning_ && !attended) {
      spinning_ = false;
      misses_ = 0;
      settle(true);
    }
    if (!blocked_.empty()) retry_blocked();
    progress_network(true);
    if (streams_ + unsettled_ != 0) flush_acks();
  }
}

}  // namespace orrery::cci
