// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What the launcher says about a job that hangs.
#include "emu/job/process_stat.hpp"
#include "tools/orrery/launcher.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>

#include <sys/wait.h>

namespace orrery::tool {

namespace {

constexpr std::size_t kMostLines = 32;

// "0-3, 7".
std::string list_of(const std::vector<std::uint32_t>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += text.empty() ? "" : ", ";
    text += last == i ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace

std::string Launcher::who(std::uint32_t rank) const {
  return fmt::format("PE {} (pid {})", rank, pes_[rank].pid);
}

std::string Launcher::where_is(std::uint32_t rank) const {
  const Pe& pe = pes_[rank];
  if (pe.exited) {
    return WIFSIGNALED(pe.status) ? fmt::format("killed by signal {}", WTERMSIG(pe.status))
                                  : fmt::format("exited with code {}", WEXITSTATUS(pe.status));
  }
  std::string text(job::process_state_name(job::process_stat(pe.pid).state));
  switch (server_->phase(rank)) {
    case job::PmiServer::Phase::silent:
      text += ", has not called PMI_Init";
      break;
    case job::PmiServer::Phase::in_barrier:
      return text + fmt::format(", in PMI barrier {}", server_->barriers_done(rank) + 1);
    case job::PmiServer::Phase::initialised:
      text += fmt::format(", has not entered PMI barrier {}", server_->barriers_done(rank) + 1);
      break;
    case job::PmiServer::Phase::finalised:
      text += ", has called PMI_Finalize";
      break;
    case job::PmiServer::Phase::broken:
      text += ", does not speak PMI-1";
      break;
  }
  const auto process = directory_->process_of_rank(static_cast<std::int32_t>(rank));
  const auto info = process.ok() ? directory_->info_of(process.value()) : job::ProcessInfo{};
  if (info.ok() && info.value().waiting_in != job::WaitPlace::nowhere) {
    text += fmt::format(", in {}", job::wait_place_name(info.value().waiting_in));
  }
  return text;
}

void Launcher::report(const std::string& reason) const {
  std::vector<std::uint32_t> inside;
  std::vector<std::uint32_t> absent;
  std::uint64_t barrier = 0;
  for (std::uint32_t rank = 0; rank < pes_.size(); ++rank) {
    const bool waits = server_->phase(rank) == job::PmiServer::Phase::in_barrier && !pes_[rank].exited;
    (waits ? inside : absent).push_back(rank);
    if (waits) barrier = server_->barriers_done(rank) + 1;
  }
  std::string text = fmt::format("orrery: {}; ", reason);
  if (inside.empty()) {
    text += fmt::format("no PE is in a PMI barrier, {} of {} still run\n", running(), pes_.size());
  } else {
    text += fmt::format("{} of {} PEs did not arrive at PMI barrier {}: PE {}\n", absent.size(), pes_.size(),
                        barrier, list_of(absent));
  }
  // Those who did not arrive first: they are the cause.
  absent.insert(absent.end(), inside.begin(), inside.end());
  for (std::size_t i = 0; i < std::min(absent.size(), kMostLines); ++i) {
    const std::uint32_t rank = absent[i];
    text += fmt::format("orrery:   PE {} (pid {}, node {}): {}\n", rank, pes_[rank].pid,
                        options_.placement.nid(rank), where_is(rank));
  }
  if (absent.size() > kMostLines) text += fmt::format("orrery:   and {} more\n", absent.size() - kMostLines);
  std::fputs(text.c_str(), stderr);
}

}  // namespace orrery::tool
