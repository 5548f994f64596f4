// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// The workloads of messages that wait for each other, by their names in a RunSpec: software collectives on
// every machine, row broadcasts and what is made of them on Blue Gene/L. They have an end and no load.
#pragma once

#include "emu/sim/bgl/bgl_config.hpp"
#include "emu/sim/scene/simulate.hpp"
#include "emu/sim/workload/traffic.hpp"

#include <memory>
#include <string>

namespace orrery::sim {

std::string ordered_names();
// Whether `spec` names one of them and no trace.
bool is_ordered(const RunSpec& spec);
// Bytes of a workload that says no more: `largest`, or less where an ordered workload's messages are small.
std::uint64_t default_bytes(const RunSpec& spec, std::uint64_t largest);
// `bgl`: the machine's routers, if they are Blue Gene/L's. Outcomes: the workload; a refusal that names what
// is accepted. REQUIRES: is_ordered(spec), spec.bytes >= 1.
Refusal make_ordered(const RunSpec& spec, const Box& box, std::uint32_t payload_max, const BglConfig* bgl,
                     std::unique_ptr<Workload>* out);

}  // namespace orrery::sim
