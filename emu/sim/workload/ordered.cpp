// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/sim/workload/ordered.hpp"

#include "emu/sim/workload/fill.hpp"
#include "emu/sim/workload/software_collective.hpp"

#include <fmt/format.h>

namespace orrery::sim {

std::string ordered_names() {
  return fmt::format("{}, {} (bluegene-l)", software_collective_names(), deposit_names());
}

bool is_ordered(const RunSpec& spec) {
  return spec.trace.empty() && (is_software_collective(spec.workload) || is_deposit(spec.workload));
}

std::uint64_t default_bytes(const RunSpec& spec, std::uint64_t largest) {
  return is_software_collective(spec.workload) ? software_collective_bytes(spec.workload, largest) : largest;
}

Refusal make_ordered(const RunSpec& spec, const Box& box, std::uint32_t payload_max, const BglConfig* bgl,
                     std::unique_ptr<Workload>* out) {
  if (spec.load != 0 || spec.steady || spec.get || !spec.subset.empty())
    return {fmt::format("{}: expected no load, no gets, no subset, and its own end", spec.workload)};
  if (is_software_collective(spec.workload))
    return make_software_collective(spec.workload, box.nodes(),
                                    {.bytes = spec.bytes, .payload_max = payload_max, .repeat = spec.repeat},
                                    out);
  if (bgl == nullptr)
    return {fmt::format("{} on {}: expected bluegene-l, whose packets leave copies on their way",
                        spec.workload, spec.machine)};
  if (spec.repeat != 1 || bgl->deterministic || bgl->injection_fifos < 6)
    return {fmt::format("{}: expected dynamic routing, six FIFOs, and more --bytes instead of --repeat",
                        spec.workload)};
  return make_deposit(spec.workload, box, bgl->closed, spec.bytes, payload_max, out);
}

}  // namespace orrery::sim
