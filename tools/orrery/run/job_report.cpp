// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/run/job_report.hpp"

#include "emu/base/printable.hpp"
#include "tools/orrery/subcommand.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <vector>

#include <sys/wait.h>

namespace orrery::tool {

namespace {

using Phase = job::PmiServer::Phase;

constexpr std::size_t kMostReportLines = 32;

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

std::string where_is(const PeFacts& pe, const job::PmiServer& server, std::uint32_t rank) {
  if (pe.exited) {
    return WIFSIGNALED(pe.status) ? fmt::format("killed by signal {}", WTERMSIG(pe.status))
                                  : fmt::format("exited with code {}", WEXITSTATUS(pe.status));
  }
  std::string text = pe.doing + (pe.doing.empty() ? "" : ", ");
  switch (server.phase(rank)) {
    case Phase::silent:
      text += "has not called PMI_Init";
      break;
    case Phase::in_barrier:
      return text + fmt::format("in PMI barrier {}", server.barriers_done(rank) + 1);
    case Phase::initialised:
      text += fmt::format("has not entered PMI barrier {}", server.barriers_done(rank) + 1);
      break;
    case Phase::finalised:
      text += "has called PMI_Finalize";
      break;
    case Phase::broken:
      text += "does not speak PMI-1";
      break;
  }
  return pe.waits_for.empty() ? text : text + ", in " + pe.waits_for;
}

}  // namespace

void say(const std::string& line) { std::fprintf(stderr, "orrery: %s\n", printable(line).c_str()); }

std::string job_report(const std::string& reason, const job::PmiServer& server, std::uint32_t pes,
                       const AskPe& ask) {
  std::vector<std::uint32_t> inside;
  std::vector<std::uint32_t> absent;
  std::uint64_t barrier = 0;
  std::uint32_t running = 0;
  for (std::uint32_t rank = 0; rank < pes; ++rank) {
    const bool exited = ask(rank).exited;
    const bool waits = server.phase(rank) == Phase::in_barrier && !exited;
    (waits ? inside : absent).push_back(rank);
    if (waits) barrier = server.barriers_done(rank) + 1;
    if (!exited) ++running;
  }
  std::string text = fmt::format("orrery: {}; ", reason);
  if (inside.empty()) {
    text += fmt::format("no PE is in a PMI barrier, {} of {} still run\n", running, pes);
  } else {
    text += fmt::format("{} of {} PEs did not arrive at PMI barrier {}: PE {}\n", absent.size(), pes, barrier,
                        list_of(absent));
  }
  // PEs that did not arrive first: they are the cause.
  absent.insert(absent.end(), inside.begin(), inside.end());
  for (std::size_t i = 0; i < std::min(absent.size(), kMostReportLines); ++i) {
    const PeFacts pe = ask(absent[i]);
    text += fmt::format("orrery:   {}, {}): {}\n", pe.name.substr(0, pe.name.size() - 1), pe.place,
                        where_is(pe, server, absent[i]));
  }
  if (absent.size() > kMostReportLines)
    text += fmt::format("orrery:   and {} more\n", absent.size() - kMostReportLines);
  return text;
}

std::optional<PmiTrouble> pmi_trouble(const job::PmiServer& server, std::uint32_t pes,
                                      const std::function<bool(std::uint32_t)>& has_left,
                                      const std::function<std::string(std::uint32_t)>& name_of) {
  if (const auto& aborted = server.aborted()) {
    const int code = aborted->code & 0xff;
    return PmiTrouble{code == 0 && aborted->code != 0 ? kExitFailure : code,
                      fmt::format("{} called PMI_Abort", name_of(aborted->rank))};
  }
  for (std::uint32_t rank = 0; rank < pes; ++rank) {
    if (server.phase(rank) == Phase::broken) {
      return PmiTrouble{kExitFailure, fmt::format("{} does not speak PMI-1: it sent '{}'", name_of(rank),
                                                  server.complaint(rank))};
    }
  }
  if (!server.anybody_in_barrier()) return std::nullopt;
  for (std::uint32_t rank = 0; rank < pes; ++rank) {
    if (!has_left(rank)) continue;
    return PmiTrouble{kExitFailure, fmt::format("{} has left without entering it", name_of(rank)), true};
  }
  return std::nullopt;
}

}  // namespace orrery::tool
