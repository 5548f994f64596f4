// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/descriptors.hpp"

#include "emu/base/log.hpp"
#include "emu/base/own_descriptor.hpp"
#include "emu/base/wait.hpp"
#include "emu/job/abstract_socket.hpp"
#include "emu/job/process_stat.hpp"
#include "emu/job/socket_folder.hpp"
#include "emu/job/wireup_record.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <span>
#include <vector>

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace orrery::job {

namespace {

constexpr std::size_t kMaxPending = 64;

bool is_ours(int fd) {
  const auto peer = peer_of(fd);
  return peer.has_value() && peer->uid == geteuid();
}

}  // namespace

Result<std::unique_ptr<DescriptorServer>> DescriptorServer::listen(EventLoop& loop, std::string_view name) {
  std::unique_ptr<DescriptorServer> server(new DescriptorServer(loop));
  server->name_ = name;
  auto socket = listen_at(name);
  if (!socket.ok()) return socket.code();
  server->socket_ = std::move(socket).value();
  server->owner_ = getpid();
  server->keep_spare();
  return server;
}

Status DescriptorServer::serve(const HostDirectory& directory, ProcessRef self) {
  {
    const std::lock_guard lock(mu_);
    directory_ = &directory;
    self_ = self;
  }
  return loop_.add(socket_.get(), EPOLLIN, [this](std::uint32_t) { on_connect(); });
}

DescriptorServer::~DescriptorServer() {
  loop_.remove(socket_.get());
  // A forked child leaves its parent's alone.
  if (is_in_folder(name_) && owner_ == getpid()) remove_from_folder(name_);
  // The loop thread owns pending_ while it runs; in a forked child there is none, and close() is all we need.
  const bool ran = loop_.run_and_wait([this] {
    for (const UniqueFd& fd : pending_) loop_.remove(fd.get());
    pending_.clear();
  });
  if (!ran) pending_.clear();
}

void DescriptorServer::offer(DescriptorKind kind, int fd) {
  const std::lock_guard lock(mu_);
  offered_[static_cast<std::size_t>(kind)] = fd;
}

void DescriptorServer::share_directory() {
  const std::lock_guard lock(mu_);
  share_ = true;
}

void DescriptorServer::keep_spare() {
  if (!spare_.valid()) spare_.reset(own_descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)));
}

void DescriptorServer::set_starved(bool starved) {
  if (starved_ == starved) return;
  starved_ = starved;
  (void)loop_.change(socket_.get(), starved ? EPOLLIN | EPOLLET : EPOLLIN);
}

void DescriptorServer::on_connect() {
  keep_spare();
  const auto next = [this] {
    return UniqueFd(own_descriptor(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)));
  };
  UniqueFd client = next();
  if (!client.valid()) {
    if (errno != EMFILE && errno != ENFILE) return;  // it has gone again
    if (spare_.valid()) {
      log::warn("descriptors are used up: raise the limit (ulimit -n)");
      spare_.reset();
      client = next();
    }
    // It stays in the queue until a place is free. Watched as before it would wake us all the time.
    if (!client.valid()) return set_starved(true);
  }
  set_starved(false);
  if (!is_ours(client.get())) {
    log::debug("a stranger asked for descriptors and got none");
    return;
  }
  const int fd = client.get();
  if (pending_.size() >= kMaxPending) {
    loop_.remove(pending_.front().get());
    pending_.pop_front();
  }
  pending_.push_back(std::move(client));
  const Status added = loop_.add(fd, EPOLLIN, [this, fd](std::uint32_t) { on_request(fd); });
  if (!added.ok()) pending_.pop_back();
}

void DescriptorServer::on_request(int fd) {
  answer(fd);
  loop_.remove(fd);
  pending_.erase(std::remove_if(pending_.begin(), pending_.end(),
                                [fd](const UniqueFd& pending) { return pending.get() == fd; }),
                 pending_.end());
  keep_spare();
  if (spare_.valid()) set_starved(false);
}

void DescriptorServer::answer(int fd) {
  std::array<std::byte, kRequestBytes + 1> bytes;  // one more, so that a longer record is seen as such
  const auto length = recv(fd, bytes.data(), bytes.size(), MSG_DONTWAIT);
  if (length < 0) return;
  const auto request = decode_request(std::span(bytes).first(static_cast<std::size_t>(length)));
  if (!request.ok()) return;

  WireupReply reply;
  std::vector<int> fds;
  const std::lock_guard lock(mu_);
  reply.job_id = directory_->job_id();
  if (request.value().wanted == Wanted::directory) {
    const auto peer = peer_of(fd);
    if (!share_ || !peer || !shares_namespaces(*peer)) return;
    reply.kinds = kDirectoryKind;
    fds.push_back(directory_->fd());
  } else {
    const auto me = directory_->info_of(self_);
    if (!me.ok() || request.value().process != self_ || request.value().job_id != directory_->job_id() ||
        request.value().secret != directory_->secret() ||
        request.value().request_nonce != me.value().request_nonce) {
      log::debug("a process of this user that is not of this job asked for descriptors and got none");
      return;
    }
    reply.reply_nonce = me.value().reply_nonce;
    for (std::size_t kind = 0; kind < offered_.size(); ++kind) {
      if (offered_[kind] < 0) continue;
      reply.kinds = static_cast<std::uint16_t>(reply.kinds | 1u << kind);
      fds.push_back(offered_[kind]);
    }
  }
  const auto record = encode(reply);
  send_with_fds(fd, record, fds);  // a client that has gone needs no answer
}

namespace {

struct Answer {
  WireupReply reply;
  std::vector<UniqueFd> fds;
};

Result<Answer> ask(std::string_view name, const WireupRequest& request, std::int64_t deadline_ns) {
  auto connected = connect_to(name, deadline_ns);
  if (!connected.ok()) return connected.code();
  const UniqueFd fd = std::move(connected).value();
  const auto peer = peer_of(fd.get());
  if (!peer || peer->uid != geteuid()) {
    log::info("socket {} belongs to uid {}, not to us: descriptors refused", name, peer ? peer->uid : 0);
    return Errc::permission;
  }
  const auto record = encode(request);
  if (send(fd.get(), record.data(), record.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(record.size())) {
    return errno == EPIPE || errno == ECONNRESET ? Errc::unreachable : Errc::system;
  }
  std::array<std::byte, kReplyBytes + 1> bytes;
  Answer answer;
  auto received = receive_with_fds(fd.get(), bytes, kDescriptorKinds, deadline_ns, &answer.fds);
  if (!received.ok()) return received.code();
  if (received.value() == 0) return Errc::not_done;  // disconnected without an answer
  auto reply = decode_reply(std::span(bytes).first(received.value()));
  if (!reply.ok()) return reply.code();
  answer.reply = reply.value();
  return answer;
}

// How long a process that hung up is given to be gone: one that is killed closes its sockets before that.
constexpr std::int64_t kEndNs = 50'000'000;

// Whether a process that hung up without an answer did so because it ends. One of another pid namespace
// cannot be asked about.
bool ended_meanwhile(const ProcessInfo& info) {
  if (info.pid_namespace != pid_namespace()) return false;
  for (const std::int64_t until = monotonic_ns() + kEndNs;;) {
    if (!process_stat(info.pid).is_from(info.start_time)) return true;
    if (monotonic_ns() >= until) return false;
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace

namespace {

// Whether a process that lives is another user's: its sockets are in a folder that this one may not enter.
bool is_another_users(pid_t pid) {
  std::FILE* const file = std::fopen(fmt::format("/proc/{}/status", pid).c_str(), "re");
  if (file == nullptr) return false;
  std::array<char, 256> line;
  unsigned real = 0;
  unsigned effective = geteuid();
  while (std::fgets(line.data(), line.size(), file) != nullptr) {
    if (std::sscanf(line.data(), "Uid: %u %u", &real, &effective) == 2) break;
  }
  std::fclose(file);
  return effective != geteuid();
}

}  // namespace

Result<Descriptors> fetch_descriptors(const HostDirectory& directory, ProcessRef process,
                                      std::int64_t deadline_ns) {
  const auto info = directory.info_of(process);
  if (!info.ok()) return info.code();
  if (info.value().socket_name.empty()) return Errc::unreachable;
  const WireupRequest request{.wanted = Wanted::descriptors,
                              .job_id = directory.job_id(),
                              .process = process,
                              .request_nonce = info.value().request_nonce,
                              .secret = directory.secret()};
  auto asked = ask(info.value().socket_name, request, deadline_ns);
  if (asked.code() == Errc::unreachable && is_in_folder(info.value().socket_name) &&
      is_another_users(info.value().pid))
    return Errc::permission;
  if (!asked.ok()) {
    if (asked.code() == Errc::timeout) {
      log::error("PE {} (pid {}) did not hand out its descriptors in time", info.value().rank,
                 info.value().pid);
    }
    if (asked.code() != Errc::not_done) return asked.code();
    return ended_meanwhile(info.value()) ? Errc::unreachable : Errc::permission;
  }
  Answer answer = std::move(asked).value();
  std::size_t expected = 0;
  for (int kind = 0; kind < kDescriptorKinds; ++kind) expected += answer.reply.kinds >> kind & 1u;
  if (answer.reply.job_id != directory.job_id() || answer.reply.reply_nonce != info.value().reply_nonce ||
      (answer.reply.kinds & kDirectoryKind) != 0 || answer.fds.size() != expected) {
    log::error("pid {} answered for descriptors without knowing the job: refused", info.value().pid);
    return Errc::corrupt;
  }
  Descriptors descriptors;
  std::size_t next = 0;
  UniqueFd* const places[kDescriptorKinds] = {&descriptors.nic_segment, &descriptors.memory_file,
                                              &descriptors.doorbell, &descriptors.clock};
  for (int kind = 0; kind < kDescriptorKinds; ++kind) {
    if ((answer.reply.kinds >> kind & 1u) != 0) *places[kind] = std::move(answer.fds[next++]);
  }
  return descriptors;
}

Result<UniqueFd> fetch_directory(std::string_view name, std::int64_t deadline_ns) {
  auto asked = ask(name, {.wanted = Wanted::directory, .process = {0, 0}}, deadline_ns);
  if (!asked.ok()) return asked.code();
  Answer answer = std::move(asked).value();
  if (answer.reply.kinds != kDirectoryKind || answer.fds.size() != 1) return Errc::corrupt;
  return std::move(answer.fds[0]);
}

Result<UniqueFd> fetch_pmi(std::string_view name, std::uint32_t rank, std::int64_t deadline_ns) {
  auto asked = ask(name, {.wanted = Wanted::pmi, .process = {rank, 0}}, deadline_ns);
  if (!asked.ok()) return asked.code();
  Answer answer = std::move(asked).value();
  if (answer.reply.kinds != kPmiKind || answer.fds.size() != 1) return Errc::corrupt;
  return std::move(answer.fds[0]);
}

}  // namespace orrery::job
