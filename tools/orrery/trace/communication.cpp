// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/trace/communication.hpp"

#include "emu/model/operation.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace orrery::tool {

namespace {

// What a PE writes into its record is not trusted: each operation becomes a record for each 1 GiB of it, and
// `orrery sim --replay` reads no larger file.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;
constexpr std::size_t kMostRecords = std::size_t{1} << 25;

bool brings_data(model::Op op) {
  switch (op) {
    case model::Op::fma_get:
    case model::Op::bte_get:
    case model::Op::matched_get:
    case model::Op::fetch_amo:
    case model::Op::fetch_amo_miss:
      return true;
    default:
      return false;
  }
}

// Something that a process does or meets. Of one time, what arrives comes first, and what the job began
// earlier.
struct Step {
  std::uint32_t process = 0;
  std::int64_t at = 0;  // ps
  bool begins = false;  // an operation; else data arrives
  std::uint64_t number = 0;
  std::uint32_t peer = 0;
  std::uint64_t bytes = 0;
  sim::TraceKind kind = sim::TraceKind::wait;

  auto order() const { return std::tuple(process, at, begins, number); }
};

}  // namespace

sim::Trace communication(const std::vector<clock::Recorded>& records, std::string* problem) {
  std::vector<Step> steps;
  sim::Trace trace;
  for (const clock::Recorded& r : records) {
    const model::QuoteRequest& asked = r.request;
    if (asked.src == asked.dst) continue;
    const bool gets = brings_data(asked.op);
    // A message without payload is a packet all the same.
    const std::uint64_t bytes = std::max<std::uint64_t>(asked.bytes, 1);
    if (bytes > kMostBytes) {
      *problem =
          fmt::format("PE {} recorded an operation of {} bytes: expected up to {}", r.pe, bytes, kMostBytes);
      return {};
    }
    steps.push_back({asked.src, asked.now.count(), true, r.number, asked.dst, bytes,
                     gets ? sim::TraceKind::ask : sim::TraceKind::put});
    steps.push_back({gets ? asked.src : asked.dst, r.quote.data_at.count(), false, r.number,
                     gets ? asked.dst : asked.src, bytes, sim::TraceKind::wait});
    trace.processes = std::max({trace.processes, asked.src + 1, asked.dst + 1});
  }
  trace.processes = std::max(trace.processes, 1u);
  std::sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.order() < b.order(); });
  using namespace sim::trace_format;
  for (const Step& step : steps) {
    const auto ns = static_cast<std::uint64_t>(step.at) / 1000;
    if (ns > kMaxNs) {
      *problem = fmt::format("an operation at {} ns: expected a run of up to {} ns", ns, kMaxNs);
      return {};
    }
    for (std::uint64_t left = step.bytes; left > 0;) {
      const auto bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(left, kMaxBytes));
      if (trace.records.size() == kMostRecords) {
        *problem = fmt::format("more than {} records, which is the limit of a trace", kMostRecords);
        return {};
      }
      trace.records.push_back({ns, step.process, step.peer, bytes, step.kind});
      left -= bytes;
    }
  }
  return trace;
}

}  // namespace orrery::tool
