// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What circuits wait for on a fat tree (Quadrics QsNet): the counters that its links have in the link state,
// of either kind, and the mean waits that follow from them. Part of quote(); included nowhere else.
//
// A packet's circuit holds all its links until the acknowledgment is back. Up, a header takes the least
// loaded of four links, of which one is its source's own where all are as loaded: circuits going up do not
// meet. Down there is one way, which lower digits of the source and higher ones of the destination name. A
// link has two virtual channels, so a second circuit may stand on it and carries data in turn with the first;
// a third waits for a channel. Circuits of one source or to one destination never stand at the same time:
// whose the last one of a link was is kept, and counts as no load for them. The destination itself takes one
// circuit at a time, which is its receive side's part of the link state.
//
// Both waits are means, by the share of time that other circuits' data takes of each link on the way down:
// - data: half a packet's time if it meets another circuit's on any of them. Links are bespoken by circuits
//   whose data itself waits for another link, and so as much busier.
// - a channel: of two servers, taken for as long as a circuit stands on average (M/M/2: they stand for very
//   different times, as they wait themselves).
// LIMITATIONS: circuits that wait for a channel keep those before it; what they keep others from is not known
// here, so that a tree of five levels saturates later than the packet simulator's (docs/simulator.md).
#pragma once

#include "emu/base/prefetch.hpp"
#include "emu/model/decayed_counter.hpp"
#include "emu/model/pricing.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace orrery::model {

// A link that leads down, above the nodes' own.
struct alignas(16) CircuitCell {
  DecayedCounter data;              // bytes
  std::atomic<std::uint32_t> last;  // source << 16 | destination of the circuit counted last
};
static_assert(sizeof(CircuitCell) == 16 && FatTree::kMaxLevels <= 8, "16 bits name a node");

// How many a machine's link state has: none where it is no fat tree.
constexpr std::size_t circuit_cells(const Pricing& p) {
  return p.network == Network::fat_tree ? std::size_t{p.tree.levels() - 1} * p.nodes : 0;
}

// The way of a message's circuits, one for each of its packets. Times in picoseconds.
class CircuitWay {
 public:
  // `exact`: all links of the way are looked at; else one of them, drawn by `seed`, stands for all, as lines
  // that several processes write at any time would cost more than the rest of a quote. Asks for their memory.
  CircuitWay(const Pricing& p, NodeId src, NodeId dst, CircuitCell* cells, bool exact, std::uint64_t seed);

  // How long a circuit waits, on average, for channels and then for other circuits' data; writes nothing.
  // `data`: how long a packet takes of a link, `stands`: how long a circuit does once its header is there, of
  // a full packet and more than 0.
  struct Waits {
    std::int64_t channels, data;
  };
  Waits waits(std::int64_t now, std::int64_t data, std::int64_t stands);
  // Counts `bytes` in, for others. REQUIRES: waits() of the same moment.
  void count(std::int64_t now, std::uint64_t bytes);

  // The counters that are looked at.
  std::span<CircuitCell* const> cells() const { return {at_, links_}; }

 private:
  static constexpr std::uint32_t kMost = FatTree::kMaxLevels - 1;
  Waits waits_of(std::int64_t now, std::int64_t data, std::int64_t stands) const;

  std::uint32_t packet_;          // largest payload
  std::uint32_t ends_;            // as CircuitCell::last
  std::uint32_t links_ = 0;       // that are looked at, ...
  std::uint32_t stands_for_ = 1;  // ... each for so many
  CircuitCell* at_[kMost];
  DecayedSums sums_[kMost];  // theirs, before it
};

// In the header so that a quote has them without a call.
inline CircuitWay::CircuitWay(const Pricing& p, NodeId src, NodeId dst, CircuitCell* cells, bool exact,
                              std::uint64_t seed)
    : packet_(p.packet.payload), ends_(src << 16 | dst) {
  const std::uint32_t top = src == dst ? 0 : FatTree::nca_level(src, dst);
  if (top == 0) return;
  const auto add = [&](std::uint32_t level) {
    // The switch that the header comes down from: those of the source's digits by which it climbed, then the
    // destination's.
    const std::uint32_t low = src & ((1u << (2 * level)) - 1);
    const std::uint32_t index = low | dst >> (2 * level + 2) << (2 * level);
    const std::uint32_t port = dst >> (2 * level) & 3;
    at_[links_] = cells + std::size_t{level - 1} * p.nodes + FatTree::kArity * index + port;
    prefetch_to_write(at_[links_++]);
  };
  if (exact) {
    for (std::uint32_t level = 1; level <= top; ++level) add(level);
  } else {
    stands_for_ = top;
    add(1 + static_cast<std::uint32_t>((seed & UINT32_MAX) * top >> 32));
  }
}

inline CircuitWay::Waits CircuitWay::waits(std::int64_t now, std::int64_t data, std::int64_t stands) {
  const DecayMoment moment = now;
  std::uint64_t any = 0;
  for (std::uint32_t i = 0; i < links_; ++i) {
    sums_[i] = sums_of(at_[i]->data, moment);
    any |= sums_[i].before + sums_[i].current;
  }
  return any == 0 ? Waits{0, 0} : waits_of(now, data, stands);
}

inline void CircuitWay::count(std::int64_t now, std::uint64_t bytes) {
  const DecayMoment moment = now;
  for (std::uint32_t i = 0; i < links_; ++i) {
    add_to_sums(at_[i]->data, moment, sums_[i], bytes * stands_for_);
    at_[i]->last.store(ends_, std::memory_order_relaxed);
  }
}

// A source whose circuits queue is on the network for as long as time passes, however many are asked for at
// once: it may run ahead by no more than this.
inline constexpr std::int64_t kCircuitsAhead = 4 * kHalfLife.count();

}  // namespace orrery::model
