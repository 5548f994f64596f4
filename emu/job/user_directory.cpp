// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/user_directory.hpp"

#include "emu/base/log.hpp"
#include "emu/base/wait.hpp"
#include "emu/job/abstract_socket.hpp"
#include "emu/job/process_stat.hpp"
#include "emu/job/random.hpp"
#include "emu/job/socket_folder.hpp"

#include <algorithm>

#include <time.h>
#include <unistd.h>

namespace orrery::job {

namespace {

constexpr std::int64_t kLeaderNs = 2'000'000'000;  // a leader's service thread answers in microseconds

Result<std::unique_ptr<HostDirectory>> fetch_and_open(std::string_view name, std::int64_t deadline_ns) {
  auto fd = fetch_directory(name, deadline_ns);
  if (!fd.ok()) return fd.code();
  return HostDirectory::open(std::move(fd).value());
}

Result<std::unique_ptr<HostDirectory>> ask_members(const std::string& prefix, std::int64_t deadline_ns) {
  for (const std::string& name : socket_names(prefix + ".m")) {
    auto directory = fetch_and_open(name, std::min(deadline_ns, monotonic_ns() + kLeaderNs));
    if (directory.ok()) return directory;
  }
  return Errc::no_match;
}

}  // namespace

std::string socket_prefix(std::string_view job_name) {
  std::uint32_t hash = 2166136261u;  // FNV-1a
  for (const char c : job_name) hash = (hash ^ static_cast<std::uint8_t>(c)) * 16777619u;
  // A folder may be shared by what counts as hosts of their own, told apart by their network namespace.
  if (!socket_folder().empty())
    return fmt::format("/{:08x}.{:x}.{:x}", hash, pid_namespace(), network_namespace());
  return fmt::format("orrery.{}.{:08x}.{:x}", geteuid(), hash, pid_namespace());
}

std::string member_socket_name(std::string_view prefix) {
  return fmt::format("{}.m{:016x}", prefix, random_nonzero());
}

Result<UserDirectory> open_user_directory(EventLoop& loop, std::string_view job_name,
                                          std::int64_t deadline_ns) {
  const std::string prefix = socket_prefix(job_name);
  std::string leader_name = prefix + ".leader";
  // Another user may have taken a name: all processes of the job go on to the next one.
  constexpr std::string_view kNext = "123456789abcdef";
  std::size_t taken = 0;
  while (true) {
    UserDirectory found;
    auto fetched = fetch_and_open(leader_name, std::min(deadline_ns, monotonic_ns() + kLeaderNs));
    // A stopped leader does not keep newcomers out as long as another member answers.
    if (fetched.code() == Errc::timeout) fetched = ask_members(prefix, deadline_ns);
    if (fetched.ok()) {
      found.directory = std::move(fetched).value();
      return found;
    }
    if (fetched.code() == Errc::corrupt || fetched.code() == Errc::system) {
      log::error("the host directory of job '{}' cannot be had: {}", job_name, errc_name(fetched.code()));
      return fetched.code();
    }

    auto leader = DescriptorServer::listen(loop, leader_name);
    if (leader.ok()) {
      auto kept = ask_members(prefix, deadline_ns);
      if (!kept.ok()) kept = HostDirectory::create({});
      if (!kept.ok()) return kept.code();
      found.directory = std::move(kept).value();
      found.leader = std::move(leader).value();
      found.leader->share_directory();  // before the first question, which gets no answer otherwise
      const Status serving = found.leader->serve(*found.directory, ProcessRef{});
      if (!serving.ok()) return serving.code();
      return found;
    }
    if (leader.code() != Errc::no_resource) return leader.code();
    if (fetched.code() == Errc::permission) {
      if (taken == kNext.size()) return Errc::permission;
      leader_name = fmt::format("{}.leader{}", prefix, kNext[taken++]);
      continue;
    }
    if (monotonic_ns() >= deadline_ns) {
      log::error(
          "no process of job '{}' hands out the host directory: the one that leads is stopped; another "
          "ORRERY_JOB keeps apart from it",
          job_name);
      return Errc::timeout;
    }
    const timespec pause{0, 1'000'000};  // a process binds, or has just died
    nanosleep(&pause, nullptr);
  }
}

}  // namespace orrery::job
