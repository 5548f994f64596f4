// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/sim/engine/types.hpp"

#include <array>
#include <cstdint>

namespace orrery::sim {

enum class EscapeKind : std::uint8_t {
  bubble,         // every packet on the bubble VC counts as full-sized
  naive_bubble,   // packets count with their true size: deadlocks with mixed sizes
  dateline_pair,  // two VCs a direction, the second one behind the dateline
};
enum class EscapeOrder : std::uint8_t { dimension, direction };

// What is configurable about a Blue Gene/L torus router. Defaults: the machine as built. Source unless
// stated: Adiga et al., "Blue Gene/L torus interconnection network" (IBM J. R&D 49, 2005).
struct BglConfig {
  std::array<std::uint32_t, 3> sides{8, 8, 8};
  std::array<bool, 3> closed{true, true, true};
  double tick_ns = 1000.0 / 175.0;  // one byte time: 175 MB/s at 700 MHz
  // Header of a packet at one router to header at the next, when nothing is in the way. The paper's own
  // simulator goes on in windows of 10 cycles, and no packet reaches the next router within its window.
  std::uint32_t hop_ticks = 10;
  std::uint32_t token_ticks = 10;      // space freed to token usable upstream
  std::uint32_t dynamic_vcs = 2;       // 1..4
  std::uint32_t dynamic_bytes = 1024;  // buffer of one dynamic VC; multiple of 32, 256..4096
  std::uint32_t escape_bytes = 1024;
  std::uint32_t priority_bytes = 1024;
  std::uint32_t paths = 2;  // transfer buses from a receiver to the senders; 1..4
  EscapeKind escape = EscapeKind::bubble;
  EscapeOrder order = EscapeOrder::dimension;
  bool jsq = true;             // phase 1 by downstream tokens, else at random
  double slq_fraction = 0.75;  // share of arbitration cycles that serve the longest queue ("75 %", Figure 5)
  double in_network_fraction = 1.0;   // share of sender cycles that put injection last ("typically 100 %")
  std::uint32_t injection_fifos = 6;  // normal ones; of 8, two are for priority packets
  bool deterministic = false;         // all packets on the escape VC, xyz
  // Link occupation beyond the packet itself: 4 B trailer, 8 B returned token-ack, 2 B gap.
  std::uint32_t link_overhead = 14;
  std::uint32_t software_bytes = 16;  // of a packet, not payload
  std::uint32_t max_chunks = 8;       // 32 B each
  // What a processor takes to write a packet into an injection FIFO or to read one out of a reception FIFO:
  // of one chunk, and of max_chunks; in between a straight line. 0: processors cost nothing.
  std::uint32_t processor_ticks = 0;
  std::uint32_t processor_full_ticks = 0;
  // 2: one for what comes in plus directions and the first half of the injection FIFOs, one for the rest.
  std::uint32_t processors = 1;
  // Of one direction; a packet enters if a full one fits. Counts only where processors cost time.
  std::uint32_t reception_bytes = 1024;
  double bit_error_rate = 0;        // per bit of a link
  std::uint32_t retry_ticks = 400;  // time-out of the link-level retransmission
  // Count returned tokens that free a blocked packet (Figure 9); costs a look at every head.
  bool count_unblocking = false;
  std::uint64_t seed = 1;
};

}  // namespace orrery::sim
