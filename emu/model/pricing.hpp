// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// A compiled machine: plain numbers, laid out for quote(). Immutable after compile(); any thread may
// read it. No pointers, so a copy may live in shared memory.
#pragma once

#include "emu/base/units.hpp"
#include "emu/model/dragonfly.hpp"
#include "emu/model/fat_tree.hpp"
#include "emu/model/operation.hpp"
#include "emu/model/routing.hpp"
#include "emu/model/torus.hpp"

#include <array>
#include <cstdint>

namespace orrery::model {

struct OpPrice {
  Flow flow = Flow::put;
  bool curved = false;
  Picos cpu, out, in, turn, back, remote_event, local_event, serve, serial, gap, gap_add, beyond, beyond_gap;
  std::uint64_t inline_limit = ~std::uint64_t{0};  // bytes
  std::uint64_t knee = 0;                          // bytes
  PerByte below, above;                            // of the curve
  PerByte store;                                   // the processor, for each byte that it stores itself
  PerByte host_lone, host_shared;                  // host interface and NIC, one way / both ways busy
};

// Wire size of one packet: (fixed + ceil((payload + extra) / word) * phits_per_word) phits.
struct PacketPrice {
  std::uint32_t payload = 64, word = 8, phits_per_word = 0, extra = 0;
  std::uint32_t put_request = 0, put_response = 0, get_request = 0, get_response = 0;
  std::uint32_t phit_bits = 8;

  constexpr std::uint32_t data_phits(std::uint32_t bytes) const {
    return (bytes + extra + word - 1) / word * phits_per_word;
  }
  constexpr std::uint32_t put_request_phits(std::uint32_t bytes) const {
    return put_request + data_phits(bytes);
  }
  constexpr std::uint32_t get_response_phits(std::uint32_t bytes) const {
    return get_response + data_phits(bytes);
  }
};

// How a pair's traffic shares the network: what of it a message can use at once. Index 0 is "no network
// between them". Torus: bit set of the dimensions travelled. Dragonfly: 1 one group, 2 two groups. Fat
// tree: 1 + level of the nearest common ancestor.
inline constexpr int kPathClasses = 9;

struct Pricing {
  Network network = Network::crossbar;
  std::uint32_t nodes = 1;
  Torus torus;
  Dragonfly dragonfly;
  FatTree tree;

  Picos hop;
  Picos global_cable;  // dragonfly: what a link between groups takes beyond a hop
  Picos lead;          // no operation is on the network sooner than this after its call
  std::array<Picos, kPathClasses> tree_latency{};  // by class, fat tree only
  // Payload of one message through the network, by [adaptive?][class][reverse direction busy?].
  std::array<std::array<std::array<PerByte, 2>, kPathClasses>, 2> path{};
  // Payload as it occupies what several messages share, by [reverse direction busy?], whose puts' responses
  // come over the same links: a torus line's bundle (by dimension), a group bundle (0), one green or black
  // link (1), all of a router's (2), a fat tree's link (0).
  std::array<std::array<PerByte, kPathClasses>, 2> shared_link{};
  // Bytes of one half-life up to which those are too little used for a message to wait (decayed states).
  std::array<std::uint64_t, kPathClasses> shared_idle{};
  // Scaled 1 / (outstanding bytes): a message cannot exceed the window per round trip. 0: no window.
  std::uint64_t window_reciprocal = 0;

  PacketPrice packet;
  std::array<OpPrice, kOps> ops{};
};

}  // namespace orrery::model
