// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/wire/uninvited.hpp"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace orrery::wire {

namespace {

// Between two sweeps while nothing urges; half of it is what a connection may outlive its patience by.
constexpr std::int64_t kPauseNs = 1'000'000'000;
constexpr std::int64_t kShortPauseNs = 20'000'000;

// Family, address and port of a socket's name, without what may differ (flow, scope); empty: no TCP over IP.
std::vector<std::byte> key_of(const sockaddr_storage& name) {
  std::vector<std::byte> key;
  const auto add = [&key](const void* from, std::size_t bytes) {
    const auto* const first = static_cast<const std::byte*>(from);
    key.insert(key.end(), first, first + bytes);
  };
  if (name.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(name);
    add(&in.sin_port, sizeof in.sin_port);
    add(&in.sin_addr, sizeof in.sin_addr);
  } else if (name.ss_family == AF_INET6) {
    const auto& in = reinterpret_cast<const sockaddr_in6&>(name);
    add(&in.sin6_port, sizeof in.sin6_port);
    add(&in.sin6_addr, sizeof in.sin6_addr);
  }
  return key;
}

std::vector<std::byte> key_of(std::span<const std::byte> bytes) {
  sockaddr_storage name{};
  std::memcpy(&name, bytes.data(), std::min(bytes.size(), sizeof name));
  return key_of(name);
}

template <typename Ask>
std::vector<std::byte> asked(Ask ask, int fd) {
  sockaddr_storage name{};
  socklen_t size = sizeof name;
  if (ask(fd, reinterpret_cast<sockaddr*>(&name), &size) != 0) return {};
  return key_of(name);
}

int lowest_free_descriptor() {
  const int fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
  if (fd >= 0) close(fd);
  return fd;
}

}  // namespace

Uninvited::Uninvited(std::span<const std::byte> listening) : listening_(key_of(listening)) {}

bool Uninvited::is_due(std::int64_t now_ns) const {
  if (listening_.empty() || now_ns - swept_ns_ < kShortPauseNs) return false;
  if (now_ns - swept_ns_ >= kPauseNs) return true;
  // The kernel gives out the lowest one: this says how many there are without counting.
  const int lowest = lowest_free_descriptor();
  return lowest < 0 || lowest > lowest_free_ + static_cast<int>(kFew);
}

int Uninvited::sweep(std::span<const std::vector<std::byte>> welcome, std::int64_t now_ns) {
  swept_ns_ = now_ns;
  if (listening_.empty()) return 0;
  std::vector<std::vector<std::byte>> known;
  known.reserve(welcome.size());
  for (const auto& name : welcome) known.push_back(key_of(name));
  std::sort(known.begin(), known.end());

  // Without a descriptor there is no reading of the list: then the first thousands are asked one by one.
  std::vector<int> open;
  if (DIR* const list = opendir("/proc/self/fd")) {
    while (const dirent* const entry = readdir(list)) {
      const std::string_view name(entry->d_name);
      int fd = -1;
      if (std::from_chars(name.data(), name.data() + name.size(), fd).ec == std::errc{}) open.push_back(fd);
    }
    closedir(list);
  } else {
    for (int fd = 0; fd < 4096; ++fd) open.push_back(fd);
  }

  std::vector<Seen> now_seen;
  for (const int fd : open) {
    if (asked(getsockname, fd) != listening_) continue;
    std::vector<std::byte> from = asked(getpeername, fd);
    // The listening socket itself has no other end.
    if (from.empty() || std::binary_search(known.begin(), known.end(), from)) continue;
    const auto before = std::find_if(seen_.begin(), seen_.end(),
                                     [&](const Seen& one) { return one.fd == fd && one.from == from; });
    now_seen.push_back({fd, std::move(from), before != seen_.end() ? before->first_ns : now_ns});
  }
  const std::int64_t patience = now_seen.size() > 4 * kFew ? 0
                                : now_seen.size() > kFew   ? kShortPatienceNs
                                                           : kPatienceNs;
  int ended = 0;
  std::erase_if(now_seen, [&](const Seen& one) {
    if (now_ns - one.first_ns < patience) return false;
    ended += ::shutdown(one.fd, SHUT_RDWR) == 0 ? 1 : 0;
    return true;
  });
  seen_ = std::move(now_seen);
  lowest_free_ = lowest_free_descriptor();
  return ended;
}

}  // namespace orrery::wire
