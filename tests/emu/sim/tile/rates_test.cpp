// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// How many operations a second one NIC begins: the packet simulator's interface against the model's, both
// from the same lines of the machine file.
#include "emu/model/measure.hpp"
#include "emu/sim/scene/machine_timing.hpp"
#include "emu/sim/tile/tile_run.hpp"

#include <gtest/gtest.h>

#include <string>

namespace orrery::sim {
namespace {

// Node 0 has always another operation of `bytes`, each to the next of its router's neighbours.
class Endless final : public Workload {
 public:
  Endless(Node nodes, std::uint16_t bytes, bool get) : nodes_(nodes), bytes_(bytes), get_(get) {}
  Next next(Node node, std::uint32_t, Tick now, Random&, Send& out) override {
    if (node != 0) return Next::idle;
    at_ = at_ + 1 < nodes_ ? at_ + 1 : 4;
    out = {
        .dst = at_, .payload = bytes_, .flags = static_cast<std::uint8_t>(get_ ? kGet : 0), .created = now};
    return Next::send;
  }

 private:
  Node nodes_, at_ = 3;
  std::uint16_t bytes_;
  bool get_;
};

// Millions a second.
double simulated(const model::Machine& machine, std::uint16_t bytes, bool get) {
  RunLimits limits;
  limits.until = 500'000;
  limits.warmup = 100'000;
  SimResult result;
  if (machine.pricing.network == model::Network::dragonfly) {
    AriesTiming timing;
    EXPECT_EQ(timing_of(machine, &timing).why, "");
    Endless load(64, bytes, get);
    result = run_aries(machine.pricing.dragonfly, timing, load, limits, 1);
  } else {
    TorusTiming timing;
    EXPECT_EQ(timing_of(machine, &timing).why, "");
    Endless load(64, bytes, get);
    result = run_torus(machine.pricing.torus, timing, load, limits, 1);
  }
  EXPECT_TRUE(result.outcome.conserved);
  const double us = static_cast<double>(limits.until) * 0.1 / 1000;
  return static_cast<double>(result.outcome.total.injected) / us;
}

TEST(Rates, OfShortOperationsAreTheModels) {
  for (const char* name : {"aries", "gemini"}) {
    const model::BuiltMachine built = model::build_machine(name);
    for (const bool get : {false, true}) {
      const double quoted =
          *model::measure(*built.machine, std::string("rate(") + (get ? "fma_get" : "fma_put") + ", 8, 28)");
      const double found = simulated(*built.machine, 8, get);
      EXPECT_NEAR(found, quoted, 0.1 * quoted) << name << (get ? " gets" : " puts");
    }
  }
}

// Those of long messages are not each an operation of their own.
TEST(Rates, FullPacketsFillTheInterface) {
  const model::BuiltMachine built = model::build_machine("aries");
  EXPECT_NEAR(simulated(*built.machine, 64, false) * 64 / 1000, 10, 0.5);
}

}  // namespace
}  // namespace orrery::sim
