// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/sim/scene/result.hpp"
#include "emu/sim/workload/workload.hpp"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

namespace orrery::sim {

struct RunSpec;

// A workload on a machine with failed nodes: they send nothing and nothing is sent to them. Threads: as
// Workload.
class WithoutNodes : public Workload {
 public:
  // `failed`: by node, from tick `at` on. `redraw`: what would go to a failed node goes to any other instead;
  // else it is left out.
  WithoutNodes(std::unique_ptr<Workload> inner, std::vector<bool> failed, bool redraw, Tick at = 0);
  // Outcomes: refused for a workload that would wait for a failed node, or whose packets have no other
  // destination.
  static Refusal accepts(const RunSpec& spec);
  static bool redraws(const RunSpec& spec);

  Next next(Node node, std::uint32_t fifo, Tick now, Random& random, Send& out) override;
  bool delivered(Node node, const Packet& packet, Tick now, bool copy) override {
    return inner_->delivered(node, packet, now, copy);
  }
  // When they have failed.
  double offered_per_node_tick() const override;
  std::size_t bytes() const override { return inner_->bytes() + failed_.capacity() / 8; }

 private:
  std::unique_ptr<Workload> inner_;
  std::vector<bool> failed_;
  std::uint32_t sound_ = 0;  // nodes
  bool redraw_;
  Tick at_;
};

}  // namespace orrery::sim
