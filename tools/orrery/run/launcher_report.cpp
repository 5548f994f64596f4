// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What the launcher knows of its PEs, for what it says about a job.
#include "emu/base/wait.hpp"
#include "emu/job/process_stat.hpp"
#include "emu/job/waiting_call.hpp"
#include "tools/orrery/run/launcher.hpp"

#include <fmt/core.h>

namespace orrery::tool {

std::string Launcher::who(std::uint32_t rank) const {
  return fmt::format("PE {} (pid {})", rank, pes_[rank].pid);
}

PeFacts Launcher::facts_of(std::uint32_t rank) const {
  const Pe& pe = pes_[rank];
  PeFacts facts;
  facts.exited = pe.exited;
  facts.status = pe.status;
  facts.name = who(rank);
  facts.place = fmt::format("node {}", options_.placement.nid(rank));
  if (pe.exited) return facts;
  facts.doing = job::process_state_name(job::process_stat(pe.pid).state);
  const auto process = directory_->process_of_rank(static_cast<std::int32_t>(rank));
  if (!process.ok()) return facts;
  const auto info = directory_->info_of(process.value());
  if (info.ok() && info.value().waiting_in != job::WaitPlace::nowhere)
    facts.waits_for = job::wait_place_name(info.value().waiting_in);
  const std::int64_t now = monotonic_ns();
  for (const job::SleepingThread& one : job::sleeping_threads(*directory_, process.value())) {
    const std::string thread = one.thread == pe.pid ? "" : fmt::format("thread {} in ", one.thread);
    facts.waits_for += fmt::format("{}{}{} for {:.1f} s", facts.waits_for.empty() ? "" : ", ", thread,
                                   one.call, static_cast<double>(now - one.since_ns) * 1e-9);
  }
  return facts;
}

}  // namespace orrery::tool
