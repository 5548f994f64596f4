// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/abstract_socket.hpp"

#include "emu/base/log.hpp"
#include "emu/base/own_descriptor.hpp"
#include "emu/base/wait.hpp"
#include "emu/job/socket_folder.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

namespace orrery::job {

namespace {

constexpr int kBacklog = 1024;  // all processes of a job may connect at once
constexpr int kMaxFds = 8;

struct Address {
  sockaddr_un value{};
  socklen_t length = 0;
};

std::optional<Address> address_of(std::string_view name) {
  Address address;
  if (name.size() + 1 > sizeof address.value.sun_path) return std::nullopt;
  address.value.sun_family = AF_UNIX;
  std::memcpy(address.value.sun_path + 1, name.data(), name.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

int milliseconds_left(std::int64_t deadline_ns) {
  const std::int64_t left = deadline_ns - monotonic_ns();
  return static_cast<int>(std::clamp<std::int64_t>((left + 999'999) / 1'000'000, 0, INT_MAX));
}

// What the kernel shows for a user that has no number here (/proc/sys/kernel/overflowuid).
constexpr uid_t kOverflowUid = 65534;

// Whether every user has a number here, so that none is shown as another.
bool knows_all_users() {
  std::FILE* const file = std::fopen("/proc/self/uid_map", "re");
  if (file == nullptr) return true;  // no user namespaces
  unsigned first = 1;
  unsigned outside = 0;
  unsigned count = 0;
  const bool whole =
      std::fscanf(file, "%u %u %u", &first, &outside, &count) == 3 && first == 0 && count == UINT_MAX;
  std::fclose(file);
  return whole;
}

}  // namespace

Result<UniqueFd> listen_at(std::string_view name) {
  return name.starts_with('/') ? listen_in_folder(name) : listen_abstract(name);
}

Result<UniqueFd> connect_to(std::string_view name, std::int64_t deadline_ns) {
  return name.starts_with('/') ? connect_in_folder(name, deadline_ns) : connect_abstract(name, deadline_ns);
}

Result<UniqueFd> listen_abstract(std::string_view name) {
  const auto address = address_of(name);
  if (!address) return Errc::size;
  UniqueFd fd(own_descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
  if (!fd.valid()) {
    log::error("no Unix socket: {}", std::strerror(errno));
    return Errc::system;
  }
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address->value), address->length) != 0) {
    if (errno == EADDRINUSE) return Errc::no_resource;
    log::error("socket @{} cannot be bound: {}", name, std::strerror(errno));
    return Errc::system;
  }
  if (::listen(fd.get(), kBacklog) != 0) {
    log::error("socket @{} cannot listen: {}", name, std::strerror(errno));
    return Errc::system;
  }
  return fd;
}

Result<UniqueFd> connect_abstract(std::string_view name, std::int64_t deadline_ns) {
  const auto address = address_of(name);
  if (!address) return Errc::size;
  while (true) {
    UniqueFd fd(own_descriptor(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)));
    if (!fd.valid()) {
      log::error("no Unix socket: {}", std::strerror(errno));
      return Errc::system;
    }
    if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address->value), address->length) == 0)
      return fd;
    if (errno == ECONNREFUSED) return Errc::unreachable;
    if (errno != EAGAIN && errno != EINTR) {
      log::error("socket @{} cannot be connected to: {}", name, std::strerror(errno));
      return Errc::system;
    }
    // The backlog is full: there is nothing to poll for.
    if (monotonic_ns() >= deadline_ns) return Errc::timeout;
    const timespec pause{0, 1'000'000};
    nanosleep(&pause, nullptr);
  }
}

std::optional<SocketPeer> peer_of(int fd) {
  ucred peer{};
  socklen_t length = sizeof peer;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0) return std::nullopt;
  if (is_overflow_user(peer.uid)) return std::nullopt;
  return SocketPeer{peer.uid, peer.pid};
}

bool is_overflow_user(uid_t uid) { return uid == kOverflowUid && !knows_all_users(); }

bool shares_namespaces(const SocketPeer& peer) {
  // 0: of a pid namespace that is not below ours.
  if (peer.pid <= 0) return false;
  for (const char* const kind : {"user", "pid"}) {
    struct stat ours {};
    struct stat theirs {};
    // Without /proc nothing can be told of any process, and no container has been made here.
    if (stat(fmt::format("/proc/self/ns/{}", kind).c_str(), &ours) != 0) return true;
    if (stat(fmt::format("/proc/{}/ns/{}", peer.pid, kind).c_str(), &theirs) != 0) return false;
    if (ours.st_dev != theirs.st_dev || ours.st_ino != theirs.st_ino) return false;
  }
  return true;
}

bool send_with_fds(int fd, std::span<const std::byte> record, std::span<const int> fds) {
  iovec data{const_cast<std::byte*>(record.data()), record.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFds * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (fds.size() > kMaxFds) return false;
  if (!fds.empty()) {
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size_bytes());
  }
  return sendmsg(fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == static_cast<ssize_t>(record.size());
}

Result<std::size_t> receive_with_fds(int fd, std::span<std::byte> bytes, int max_fds,
                                     std::int64_t deadline_ns, std::vector<UniqueFd>* fds) {
  pollfd waiting{fd, POLLIN, 0};
  while (true) {
    const int ready = poll(&waiting, 1, milliseconds_left(deadline_ns));
    if (ready > 0) break;
    if (ready < 0 && errno != EINTR) return Errc::system;
    if (monotonic_ns() >= deadline_ns) return Errc::timeout;
  }
  iovec data{bytes.data(), bytes.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMaxFds * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const auto length = recvmsg(fd, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (length < 0) return errno == ECONNRESET ? Errc::unreachable : Errc::system;
  std::vector<UniqueFd> received;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int one = -1;
      std::memcpy(&one, CMSG_DATA(header) + i * sizeof(int), sizeof one);
      received.emplace_back(own_descriptor(one));
    }
  }
  if ((message.msg_flags & MSG_CTRUNC) != 0 && received.size() < kMaxFds) {
    // `control` had room for more of them, this process has not.
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    log::error("no room for a peer's descriptors: the limit is {}; raise it (ulimit -n)", limit.rlim_cur);
    return Errc::system;
  }
  if ((message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0 ||
      received.size() > static_cast<std::size_t>(max_fds)) {
    return Errc::corrupt;
  }
  *fds = std::move(received);
  return static_cast<std::size_t>(length);
}

std::optional<std::string_view> listening_name(std::string_view line) {
  // "0000000000000000: 00000002 00000000 00010000 0005 01 12345 @name": flag 00010000 = listening.
  if (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  const auto at = line.find(" @");
  if (at == std::string_view::npos || line.substr(0, at).find(" 00010000 ") == std::string_view::npos)
    return std::nullopt;
  return line.substr(at + 2);
}

std::vector<std::string> socket_names(std::string_view prefix) {
  if (prefix.starts_with('/')) return names_in_folders(prefix);
  std::vector<std::string> names;
  std::FILE* file = std::fopen("/proc/net/unix", "re");
  if (file == nullptr) return names;
  char line[512];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    const auto name = listening_name(line);
    if (name && name->starts_with(prefix)) names.emplace_back(*name);
  }
  std::fclose(file);
  return names;
}

}  // namespace orrery::job
