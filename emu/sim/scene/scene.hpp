// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What was asked of `orrery sim`, in the terms of one machine: its workload, and how long the run is.
#pragma once

#include "emu/model/dragonfly.hpp"
#include "emu/sim/bgl/bgl_config.hpp"
#include "emu/sim/engine/engine.hpp"
#include "emu/sim/scene/simulate.hpp"
#include "emu/sim/workload/traffic.hpp"

#include <cstdint>
#include <memory>

namespace orrery::sim {

// A machine as workloads see it.
struct Scene {
  Box box;
  std::uint32_t fifos = 6;
  bool priorities = false;         // packets may have priority,
  std::uint32_t urgent_fifos = 0;  // ... and go through so many injection FIFOs of their own
  bool fifo_a_direction = false;   // infinite ones of a torus
  std::uint32_t open = 0;          // bit of a dimension that does not wrap round
  std::uint32_t payload_max = 240;
  double uniform_peak = 0;  // packets of the payload per node and tick
  double tick_ns = 1;
  std::uint32_t group_nodes = 0;   // of a machine with groups
  const BglConfig* bgl = nullptr;  // of a machine with row broadcast
};

// Values that no machine accepts.
Refusal check_common(const RunSpec& spec);
// The workload that `spec` names. REQUIRES: spec.bytes >= 1, spec.job_nodes == 0.
Refusal make_workload(const RunSpec& spec, const Scene& scene, std::unique_ptr<Workload>* out);
// All-to-all of a job on some of a dragonfly's nodes, the others busy as the background says.
Refusal make_job(const RunSpec& spec, const Scene& scene, const model::Dragonfly& dragonfly,
                 std::unique_ptr<Workload>* out);
// `default_sample`: the machine's interval between samples, if `spec` gives none.
RunLimits make_limits(const RunSpec& spec, const Scene& scene, const Workload& workload, Tick default_sample);

}  // namespace orrery::sim
