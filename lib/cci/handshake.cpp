// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/config.hpp"
#include "emu/base/own_descriptor.hpp"
#include "emu/base/wait.hpp"
#include "emu/job/abstract_socket.hpp"
#include "emu/job/random.hpp"
#include "lib/cci/debug.hpp"
#include "lib/cci/endpoint.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

// How a connection is made: connect (client), accept or reject (server), ready (client).
// Where both ends are of one user and meet at the Unix socket, connect and accept carry the descriptors
// of segment and doorbell.
namespace orrery::cci {

namespace {

constexpr std::int64_t kLongestTimeout = 1'000'000'000;  // of each part of a timeval
constexpr std::int64_t kGreetingNs = 10'000'000'000;     // how long a stranger may be silent
constexpr std::int64_t kReadyNs = 60'000'000'000;        // and a client that was accepted

// A stream to the endpoint that listens at an abstract name. Errors: no_match (none does), not_done (as many
// as its queue takes wait to be accepted).
Result<UniqueFd> connect_to(std::string_view name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  UniqueFd fd(own_descriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (!fd.valid()) return Errc::no_match;
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), length) != 0)
    return errno == EAGAIN ? Errc::not_done : Errc::no_match;
  return fd;
}

std::uint32_t attribute_of(const Connection& connection) {
  return static_cast<std::uint32_t>(connection.shown.attribute);
}

// Whether the process at the other end of a Unix socket is one of this user. A container's process may show
// the same number, and abstract names reach as far as the network namespace.
bool is_of_our_user(int socket) {
  const auto peer = job::peer_of(socket);
  return peer && peer->uid == ::geteuid() && job::shares_namespaces(*peer);
}

}  // namespace

bool Endpoint::is_unsettled(const Connection& connection) const {
  return connection.state < ConnectionState::open;
}

void Endpoint::count_streams() {
  std::uint32_t streams = 0, unsettled = 0;
  for (const auto& each : connections_) {
    streams +=
        by_stream(*each) || (each->state == ConnectionState::open && each->shared && !each->peer->attaches);
    unsettled += is_unsettled(*each);
  }
  streams_ = streams;
  unsettled_ = unsettled;
}

// With a slot of its own. Null: there are as many connections as there may be.
Connection* Endpoint::new_connection() {
  std::uint32_t slot;
  if (!free_slots_.empty()) {
    slot = free_slots_.back();
    free_slots_.pop_back();
    // Its ring may hold lines of the connection before.
    std::memset(static_cast<void*>(&segment_->ring(slot)), 0, sizeof(ConnectionRing));
  } else if (fresh_slots_ < kMaxConnections) {
    slot = fresh_slots_++;
    slots_.push_back(nullptr);
    generations_.push_back(0);
  } else {
    return nullptr;
  }
  auto connection = std::make_unique<Connection>();
  connection->owner = this;
  connection->slot = slot;
  connection->generation = ++generations_[slot] & 0xffff;
  connection->place = static_cast<std::uint32_t>(connections_.size());
  connection->send_timeout = send_timeout_;
  connection->keepalive = keepalive_;
  connection->reader.set_generation(0);
  connection->shown.endpoint = &shown;
  slots_[slot] = connection.get();
  connections_.push_back(std::move(connection));
  ++unsettled_;
  return connections_.back().get();
}

void Endpoint::watch(Connection* connection) {
  epoll_event event{};
  event.events = connection->interest;
  event.data.ptr = connection;
  ::epoll_ctl(net_.get(), EPOLL_CTL_ADD, connection->socket.get(), &event);
}

// ---- the client's side ----

int Endpoint::connect(const Uri& uri, const void* data, std::uint32_t bytes, cci_conn_attribute attribute,
                      void* context, const timeval* timeout) {
  take_turn();
  const int status = begin_connect(uri, data, bytes, attribute, context, timeout);
  tell_others();
  return status;
}

// Asks the endpoint of this host that listens at that name. Outcomes: ok, no_match, not_done (again later).
Errc Endpoint::dial_here(Connection* connection, std::string_view meeting) {
  auto socket = connect_to(meeting);
  if (!socket.ok()) return socket.code();
  connection->socket = std::move(socket.value());
  connection->same_user = is_of_our_user(connection->socket.get());
  connection->interest = EPOLLIN;
  watch(connection);
  greet(connection);
  return Errc::ok;
}

int Endpoint::begin_connect(const Uri& uri, const void* data, std::uint32_t bytes,
                            cci_conn_attribute attribute, void* context, const timeval* timeout) {
  const std::lock_guard lock(lock_);
  if (failed_) return CCI_ERR_DEVICE_DEAD;
  Connection* const connection = new_connection();
  if (connection == nullptr) return CCI_ENOBUFS;
  connection->client = true;
  connection->shown.attribute = attribute;
  connection->shown.context = context;
  connection->state = ConnectionState::dialling;
  if (timeout != nullptr) {
    const auto seconds = std::min<std::int64_t>(timeout->tv_sec, kLongestTimeout);
    const auto micros = std::min<std::int64_t>(timeout->tv_usec, kLongestTimeout);
    set_limit(connection->handshake, seconds * 1'000'000'000 + micros * 1000);
  }
  if (bytes != 0) {
    const auto* const first = static_cast<const std::byte*>(data);
    connection->request.assign(first, first + bytes);
  }
  const Errc dialled = dial_here(connection, uri.meeting);
  if (dialled == Errc::ok) return CCI_SUCCESS;
  if (clock_ != nullptr || dialled == Errc::not_done) {
    redials_.push_back({connection, uri.meeting});
    wake_thread();
    return CCI_SUCCESS;
  }
  if (uri.host.empty()) {
    connect_failed(connection, CCI_ETIMEDOUT);
    return CCI_SUCCESS;
  }
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(uri.port);
  connection->socket.reset(own_descriptor(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
  if (::inet_pton(AF_INET, uri.host.c_str(), &address.sin_addr) != 1 || !connection->socket.valid() ||
      (::connect(connection->socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 &&
       errno != EINPROGRESS)) {
    connect_failed(connection, CCI_ETIMEDOUT);
    return CCI_SUCCESS;
  }
  connection->interest = EPOLLIN | EPOLLOUT;
  watch(connection);
  return CCI_SUCCESS;
}

// Peers whose queue was full, and under a clock those that were not there yet: PEs of a job start at one time
// of the clock, in no order of real time.
void Endpoint::redial() {
  std::vector<Redial> again;
  again.swap(redials_);
  for (Redial& each : again) {
    if (each.connection->state != ConnectionState::dialling) continue;
    const Errc dialled = dial_here(each.connection, each.meeting);
    if (dialled == Errc::not_done || (dialled == Errc::no_match && clock_ != nullptr))
      redials_.push_back(std::move(each));
    else if (dialled == Errc::no_match)
      connect_failed(each.connection, CCI_ETIMEDOUT);
  }
}

// The socket's connection has been made, or not.
void Endpoint::dialled(Connection* connection) {
  int error = 0;
  socklen_t length = sizeof error;
  if (::getsockopt(connection->socket.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0 || error != 0) {
    connect_failed(connection, CCI_ETIMEDOUT);
    return;
  }
  const int on = 1;
  ::setsockopt(connection->socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  set_interest(connection, EPOLLIN);
  greet(connection);
}

Hello Endpoint::hello_of(const Connection& connection, bool shares, std::uint32_t data_bytes) const {
  return {.endpoint = nonce_,
          .nonce = job::random_nonzero(),
          .max_send_size = device_.shown.max_send_size,
          .attribute = attribute_of(connection),
          .slot = connection.slot,
          .generation = connection.generation,
          .shares = shares ? 1u : 0u,
          .data_bytes = data_bytes,
          .place = clock_ != nullptr ? place_ + 1 : 0,
          .place_generation = place_generation_};
}

void Endpoint::greet(Connection* connection) {
  connection->state = ConnectionState::waiting;
  connection->mine =
      hello_of(*connection, connection->same_user, static_cast<std::uint32_t>(connection->request.size()));
  const int descriptors[2] = {segment_->fd(), doorbell_.get()};
  const iovec pieces[2] = {{&connection->mine, sizeof connection->mine},
                           {connection->request.data(), connection->request.size()}};
  send_frame(connection, FrameKind::connect, 0, 0, 0, 0, pieces, 2,
             connection->same_user ? descriptors : nullptr);
}

void Endpoint::connect_failed(Connection* connection, cci_status status) {
  const bool tell = connection->client || connection->state == ConnectionState::accepting;
  if (tell) {
    Event* const event = new_event();
    if (connection->client)
      event->show(cci_event_connect{CCI_EVENT_CONNECT, status, connection->shown.context, nullptr});
    else
      event->show(cci_event_accept{CCI_EVENT_ACCEPT, status, connection->shown.context, nullptr});
    raise(event);
  }
  connection->state = ConnectionState::ended;
  connection->handshake.disarm();
  release(connection);
}

Errc Endpoint::handle_accept(Connection* connection, std::span<const std::byte> payload) {
  std::span<const std::byte> data;
  if (read_hello(payload, &connection->theirs, &data) != Errc::ok) return Errc::corrupt;
  const Hello& theirs = connection->theirs;
  const bool shared = theirs.shares == 1 && connection->mine.shares == 1 && open_peer(connection);
  connection->descriptors.clear();
  const SessionKeys keys = session_keys(connection->mine, theirs);
  connection->write_key = keys.from_client;
  connection->keyed = true;
  connection->reader.set_key(keys.from_server);
  connection->reader.set_generation(connection->generation);
  connection->peer_slot = theirs.slot;
  connection->peer_generation = theirs.generation;
  if (!send_frame(connection, FrameKind::ready, 0, shared ? 1 : 0, 0, 0, nullptr, 0)) return Errc::ok;
  establish(connection, shared);
  return Errc::ok;
}

// ---- the server's side ----

void Endpoint::accept_all(int listener, bool local) {
  for (;;) {
    UniqueFd socket(own_descriptor(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
    if (!socket.valid()) {
      // No descriptor or no memory is left: the listeners would be ready again and again.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) set_listening(false);
      return;
    }
    bool same_user = false;
    bool same_host = local;
    if (local) {
      same_user = is_of_our_user(socket.get());
    } else {
      sockaddr_in here{}, there{};
      socklen_t length = sizeof here;
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&here), &length);
      length = sizeof there;
      ::getpeername(socket.get(), reinterpret_cast<sockaddr*>(&there), &length);
      same_host = here.sin_addr.s_addr == there.sin_addr.s_addr || is_of_this_host(there.sin_addr);
      const int on = 1;
      ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
    // Clients of this host that are not of our user.
    if (same_host && !same_user && !device_.any_user) {
      ++refused_;
      debug::tell(debug::Topic::conn, "a process of another user is refused (allow = user): " +
                                          std::to_string(refused_) + " so far");
      continue;
    }
    Connection* const connection = new_connection();
    if (connection == nullptr) continue;
    connection->same_user = same_user;
    connection->socket = std::move(socket);
    set_limit(connection->handshake, kGreetingNs);
    connection->interest = EPOLLIN;
    watch(connection);
  }
}

Errc Endpoint::handle_connect(Connection* connection, std::span<const std::byte> payload) {
  std::span<const std::byte> data;
  if (read_hello(payload, &connection->theirs, &data) != Errc::ok) return Errc::corrupt;
  connection->shown.attribute = static_cast<cci_conn_attribute>(connection->theirs.attribute);
  connection->state = ConnectionState::requested;
  connection->handshake.disarm();
  Event* const event = new_event();
  event->request = connection;
  event->data.assign(data.begin(), data.end());
  event->show(cci_event_connect_request{CCI_EVENT_CONNECT_REQUEST, static_cast<std::uint32_t>(data.size()),
                                        data.empty() ? nullptr : event->data.data(),
                                        connection->shown.attribute});
  raise(event);
  return Errc::ok;
}

int Endpoint::decide(Event* event, bool accept, void* context) {
  take_turn();
  const int status = decide_now(event, accept, context);
  tell_others();
  return status;
}

int Endpoint::decide_now(Event* event, bool accept, void* context) {
  const std::lock_guard lock(lock_);
  if (event->type() != CCI_EVENT_CONNECT_REQUEST || event->request == nullptr) return CCI_EINVAL;
  Connection* const connection = event->request;
  event->request = nullptr;
  if (!accept) {
    if (connection->state == ConnectionState::requested)
      send_frame(connection, FrameKind::reject, 0, 0, 0, 0, nullptr, 0);
    connection->state = ConnectionState::ended;
    release(connection);
    return CCI_SUCCESS;
  }
  connection->shown.context = context;
  if (connection->state != ConnectionState::requested) {
    // The client is gone already.
    connection->state = ConnectionState::accepting;
    connect_failed(connection, CCI_ERR_DISCONNECTED);
    return CCI_SUCCESS;
  }
  connection->state = ConnectionState::accepting;
  set_limit(connection->handshake, kReadyNs);
  const bool shares = connection->theirs.shares == 1 && connection->same_user && open_peer(connection);
  connection->descriptors.clear();
  connection->mine = hello_of(*connection, shares, 0);
  connection->peer_slot = connection->theirs.slot;
  const int descriptors[2] = {segment_->fd(), doorbell_.get()};
  const iovec piece{&connection->mine, sizeof connection->mine};
  if (!send_frame(connection, FrameKind::accept, 0, 0, 0, 0, &piece, 1, shares ? descriptors : nullptr))
    return CCI_SUCCESS;
  const SessionKeys keys = session_keys(connection->theirs, connection->mine);
  connection->peer_generation = connection->theirs.generation;
  connection->write_key = keys.from_server;
  connection->keyed = true;
  connection->reader.set_key(keys.from_client);
  connection->reader.set_generation(connection->generation);
  return CCI_SUCCESS;
}

Errc Endpoint::handle_ready(Connection* connection, bool shared) {
  if (shared && connection->peer == nullptr) return Errc::corrupt;
  establish(connection, shared);
  return Errc::ok;
}

// ---- both sides ----

// Maps the peer's segment, whose descriptor came with its hello. False: frames then.
bool Endpoint::open_peer(Connection* connection) {
  const Hello& theirs = connection->theirs;
  if (connection->descriptors.size() != 2 || theirs.slot >= kMaxConnections) return false;
  if (config::text("ORRERY_WIRE") == "ofi") return false;  // by frames to every peer, for tests
  if (auto known = peers_[theirs.endpoint].lock(); known != nullptr) {
    connection->peer = std::move(known);
    return true;
  }
  auto segment = Segment::open(connection->descriptors[0].get());
  if (!segment.ok() || segment.value()->header().nonce != theirs.endpoint) return false;
  auto peer = std::make_shared<PeerSegment>();
  peer->segment = std::move(segment.value());
  peer->doorbell = std::move(connection->descriptors[1]);
  const SegmentHeader& header = peer->segment->header();
  auto attach =
      memory::CrossAttach::probe(static_cast<pid_t>(header.pid), header.probe_address, header.probe_word);
  peer->attaches = attach.ok() && config::text("ORRERY_ATTACH") == "on";
  if (attach.ok()) peer->attach = attach.value();
  peers_[theirs.endpoint] = peer;
  connection->peer = std::move(peer);
  return true;
}

void Endpoint::establish(Connection* connection, bool shared) {
  connection->handshake.disarm();
  connection->state = ConnectionState::open;
  connection->known = true;
  connection->shared = shared;
  connection->heard_ns = monotonic_ns();
  connection->shown.max_send_size =
      std::min(connection->mine.max_send_size, connection->theirs.max_send_size);
  if (shared) {
    connection->clock_place = place_of_peer(connection->theirs);
    connection->in = &segment_->ring(connection->slot);
    connection->out = &connection->peer->segment->ring(connection->peer_slot);
  } else {
    connection->peer.reset();
    if (device_.bufsize != 0) {
      const int bytes = static_cast<int>(device_.bufsize);
      ::setsockopt(connection->socket.get(), SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
      ::setsockopt(connection->socket.get(), SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    }
  }
  if (connection->keepalive != 0) set_limit(connection->alive, 0);
  std::vector<std::byte>().swap(connection->request);
  count_streams();
  debug::tell(debug::Topic::conn, std::string(connection->client ? "connected " : "accepted ") +
                                      (shared ? "by shared memory" : "by frames"));
  Event* const event = new_event();
  event->names(connection);
  if (connection->client)
    event->show(
        cci_event_connect{CCI_EVENT_CONNECT, CCI_SUCCESS, connection->shown.context, &connection->shown});
  else
    event->show(
        cci_event_accept{CCI_EVENT_ACCEPT, CCI_SUCCESS, connection->shown.context, &connection->shown});
  raise(event);
  // Messages may have come before the word that they would.
  if (shared && segment_->announce(connection->slot)) ring_self();
}

}  // namespace orrery::cci
