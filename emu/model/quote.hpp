// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What an operation costs on a machine, and when it counts as done: the one question that the clock asks.
//
// Model: a message at a time. The processor is busy for `cpu`; the NIC starts one operation per interval;
// the head travels hop by hop; the message streams at the slowest of host interface, NIC, network path
// and window; what several messages share is found in the link state. Sources: the machine files.
//
// LIMITATIONS: messages, not packets (no virtual channels, no credits); a dragonfly bundle and a subtree are
// one server (see link_state.hpp); responses are counted in the bandwidth of busy pairs, not as messages of
// their own; retransmissions are not modelled.
#pragma once

#include "emu/base/units.hpp"
#include "emu/model/link_state.hpp"
#include "emu/model/pricing.hpp"

namespace orrery::model {

struct QuoteRequest {
  Op op = Op::fma_put;
  Routing routing = Routing::adaptive_0;
  NodeId src = 0, dst = 0;  // below pricing.nodes
  std::uint64_t bytes = 0;  // payload, up to 2^40
  Picos now;                // when the call is made, 0 or later
  std::uint64_t seed = 0;   // of the random choices (roots, detours, ties); the same seed repeats the quote
};

struct Quote {
  Picos cpu_busy;          // how long the call holds its processor, from `now`
  Picos data_at;           // all data visible at its destination (gets: at the source)
  Picos remote_event_at;   // an event in a queue of the target
  Picos local_event_at;    // an event in a queue of the source: its buffer may be reused, the put is complete
  Picos waited;            // of this, time spent waiting for links, NICs or a busy receiver
  std::uint16_t hops = 0;  // router-to-router links (fat tree: switches) one way
  bool detoured = false;   // a non-minimal route was chosen
};

// Pure but for `state`; nullptr stands for a quiet network. No allocation, no system call, no lock. Thread
// safe, but for an exact state: that wants its callers one at a time, in order of `now`.
// REQUIRES: src and dst below pricing.nodes.
Quote quote(const Pricing& pricing, const QuoteRequest& request, LinkState* state);

// Router-to-router hops of a minimal path (fat tree: switches crossed).
std::uint32_t path_hops(const Pricing& pricing, NodeId src, NodeId dst);

}  // namespace orrery::model
