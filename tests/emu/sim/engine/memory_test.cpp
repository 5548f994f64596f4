// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What a run of Blue Gene/L occupies, by its own account (RunOutcome::engine_bytes, SimResult::state_bytes),
// which is the same on every run of a number of threads: that of bench_sim and of `orrery sim`.
#include "emu/sim/scene/simulate.hpp"

#include <gtest/gtest.h>

namespace orrery::sim {
namespace {

TEST(BglMemory, AnAllToAllTakesLessThanAKilobyteANode) {
  for (const unsigned threads : {1u, 2u, 4u}) {
    SCOPED_TRACE(threads);
    RunSpec spec;
    spec.nodes = "16x16x16";
    spec.until_us = 20;  // most events wait when all nodes start together, most packets soon after it
    spec.threads = threads;
    SimResult result;
    const Refusal no = simulate(spec, &result);
    ASSERT_FALSE(no.refused()) << no.why;
    // The network is full, and the account has the routers and the packets in it.
    EXPECT_GT(result.outcome.in_flight, 14u * result.nodes);
    EXPECT_GT(result.state_bytes, 250u * result.nodes);
    EXPECT_GT(result.outcome.engine_bytes, result.outcome.in_flight * sizeof(Packet));
    EXPECT_LT(result.state_bytes + result.outcome.engine_bytes, 1000u * result.nodes);
  }
}

}  // namespace
}  // namespace orrery::sim
