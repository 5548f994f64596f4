// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/transport/pending.hpp"

#include "tests/emu/nic/parts.hpp"

#include <gtest/gtest.h>

namespace orrery::nic {
namespace {

TEST(PendingWork, OfANewNicIsNone) {
  parts::Host host(0);
  const Pending pending(host.view, false, false);
  EXPECT_TRUE(pending.is_quiet());
  EXPECT_FALSE(pending.has_outstanding());
  EXPECT_FALSE(pending.has_lanes());
}

TEST(PendingWork, WithAClockOrFaultsPollsAlwaysMove) {
  parts::Host host(0);
  EXPECT_FALSE(Pending(host.view, true, false).is_quiet());
}

TEST(PendingWork, AUnitThatAsksForPollsIsMovedAndHoldsNothingBack) {
  parts::Host host(0);
  Pending pending(host.view, false, false);
  pending.ask_for_polls(Pending::kMoves);
  EXPECT_FALSE(pending.is_quiet());
  EXPECT_FALSE(pending.holds_operations());
  pending.ask_for_polls(Pending::kHoldsBack);
  EXPECT_TRUE(pending.holds_operations());
}

TEST(PendingWork, ARequestUnderWayIsSome) {
  parts::Host host(0);
  Pending pending(host.view, false, false);
  pending.outstanding = 1;
  EXPECT_FALSE(pending.is_quiet());
}

TEST(PendingWork, ALaneThatWasNotLookedAtMayHoldAFrame) {
  parts::Host host(0);
  Pending pending(host.view, false, false);
  host.view.service().lane_changes = 1;
  EXPECT_FALSE(pending.is_quiet());
  // Looked at, and there is no lane.
  pending.next_frames_for = 1;
  EXPECT_TRUE(pending.is_quiet());
}

}  // namespace
}  // namespace orrery::nic
