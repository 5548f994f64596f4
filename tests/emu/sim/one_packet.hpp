// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/sim/workload/workload.hpp"

#include <gtest/gtest.h>

#include <cstdint>

namespace orrery::sim {

// One packet from a node to another, and when it is there.
class OnePacket final : public Workload {
 public:
  OnePacket(Node from, Node to, std::uint16_t payload) : from_(from), to_(to), payload_(payload) {}
  Next next(Node node, std::uint32_t fifo, Tick now, Random&, Send& out) override {
    if (node != from_ || fifo != 0 || sent_) return Next::idle;
    sent_ = true;
    out.dst = to_;
    out.payload = payload_;
    out.created = now;
    return Next::send;
  }
  bool delivered(Node node, const Packet& packet, Tick now, bool) override {
    EXPECT_EQ(node, to_);
    at = now;
    hops = packet.hops;
    return false;
  }
  Tick at = 0;
  int hops = -1;

 private:
  Node from_, to_;
  std::uint16_t payload_;
  bool sent_ = false;
};

}  // namespace orrery::sim
