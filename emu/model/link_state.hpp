// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What the network is busy with: the only thing about quote() that is not pure. A block of memory that
// the caller owns, private or shared between processes (offsets, fixed widths, no pointers).
//
// Two kinds:
// - exact, for callers ordered by time (virtual clock): every NIC's receive side and every aggregate of
//   links keeps the intervals it has promised. On a torus the aggregate is one line of routers in one
//   direction; an interval carries the set of its links that it uses and is kept in time skewed by the
//   hop latency, in which a message occupies all of them at once, so disjoint stretches do not conflict.
//   On a dragonfly: the bundle between two groups and a router's global links (the local ones outrun its
//   NICs more than three times over and are not kept). On a fat tree: the up
//   and down links of a subtree. On a crossbar: nothing but the NICs.
// - decayed, for callers that are not ordered (wall clock): each aggregate keeps a byte counter that
//   loses half of its value every kHalfLife; utilisation becomes a mean queueing delay (M/D/1).
//
// Invariants:
// 1. A cell is changed only by its lock's holder (exact) or by single atomic loads and stores (decayed):
//    of two processes that count in the same cell at the same moment one may be lost. The counters are a
//    mean, a locked instruction in each of up to six cells is not worth their price.
// 2. A process may die at any instruction: an exact cell's lock is taken over after a bounded spin, and
//    a half-made change is at worst one interval lost or one too many.
// 3. Intervals that ended before a caller's horizon are dropped. In ordered use no later caller can
//    want them.
// 4. When a cell is full, two intervals become one: exact no more, counted in merged(). Zero: exact.
//
//   std::vector<std::byte> memory(LinkState::bytes_needed(pricing, LinkState::Kind::exact));
//   auto state = LinkState::create(memory, pricing, LinkState::Kind::exact);
#pragma once

#include "emu/base/status.hpp"
#include "emu/model/pricing.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace orrery::model {

inline constexpr Picos kHalfLife{std::int64_t{1} << 22};  // 4.2 us: some round trips, few enough to adapt

// Promised intervals of one aggregate.
struct alignas(64) IntervalCell {
  static constexpr std::uint32_t kIntervals = 5;
  struct Interval {
    std::int64_t start, end;  // ps, skewed by position on a torus line
    std::uint64_t links;      // which links of the aggregate; all ones where it has no stretches
  };
  std::atomic<std::uint32_t> lock;
  std::uint32_t count;
  Interval at[kIntervals];
};
static_assert(sizeof(IntervalCell) == 128 && offsetof(IntervalCell, at) == 8);

// Bytes through one aggregate, decaying.
struct DecayedCounter {
  std::atomic<std::int64_t> epoch;    // in half-lives
  std::atomic<std::uint64_t> before;  // decayed sum of earlier epochs
  std::atomic<std::uint64_t> now;     // of this epoch
};
static_assert(sizeof(DecayedCounter) == 24 && std::atomic<std::uint64_t>::is_always_lock_free);

struct alignas(64) CounterCell {
  DecayedCounter counter;
};
static_assert(sizeof(CounterCell) == 64);

// One NIC's transmit side. One cache line; every process of the node writes it.
struct alignas(64) NicCell {
  std::atomic<std::int64_t> transmit_free;  // when the next operation may start
  std::atomic<std::int64_t> receive_until;  // when the last promised arrival ends
  DecayedCounter receive;                   // decayed kind only
};
static_assert(sizeof(NicCell) == 64 && offsetof(NicCell, receive) == 16);

// First bytes of the block.
struct alignas(64) LinkStateHeader {
  std::uint64_t magic;
  std::uint32_t version, kind;
  std::uint32_t nodes, aggregates;
  std::uint64_t size;
  std::atomic<std::uint64_t> merged;  // intervals made inexact
  std::atomic<std::uint64_t> stolen;  // locks taken over from a holder that did not return
};
static_assert(sizeof(LinkStateHeader) == 64 && offsetof(LinkStateHeader, merged) == 32);

class LinkState {
 public:
  enum class Kind : std::uint32_t { exact = 1, decayed = 2 };
  static constexpr std::uint64_t kMagic = 0x4f525245'4c494e4bu;
  static constexpr std::uint32_t kVersion = 1;

  LinkState() = default;

  static std::size_t bytes_needed(const Pricing& pricing, Kind kind);
  static std::uint32_t aggregates(const Pricing& pricing);
  // Lays a quiet network out in `memory`, which must outlive the object and be aligned to 64 bytes.
  // Outcomes: Errc::alignment; Errc::size where it is shorter than bytes_needed().
  static Result<LinkState> create(std::span<std::byte> memory, const Pricing& pricing, Kind kind);
  // Uses a block that another process laid out. Outcomes: Errc::corrupt where it is not one of this
  // machine and version; Errc::alignment, Errc::size as above.
  static Result<LinkState> attach(std::span<std::byte> memory, const Pricing& pricing);

  Kind kind() const { return static_cast<Kind>(header_->kind); }
  std::uint64_t merged() const { return header_->merged.load(std::memory_order_relaxed); }
  std::uint64_t stolen() const { return header_->stolen.load(std::memory_order_relaxed); }

  NicCell& nic(NodeId node) const { return nics_[node]; }

  // Hints that these cells will be wanted. No effect on results.
  void prefetch_nic(NodeId node) const { __builtin_prefetch(&nics_[node], 1); }
  void prefetch_receive(NodeId node) const {
    __builtin_prefetch(&nics_[node], 1);
    if (receivers_ != nullptr) prefetch_cell(receivers_[node]);
  }
  void prefetch(std::uint32_t aggregate) const {
    if (cells_ != nullptr) {
      prefetch_cell(cells_[aggregate]);
    } else {
      __builtin_prefetch(&counters_[aggregate], 1);
    }
  }

  // Exact kind. The earliest start at or after `want` at which `links` of the aggregate are free for
  // `length`, reserved. `horizon`: intervals that end before it are over.
  std::int64_t reserve(std::uint32_t aggregate, std::int64_t want, std::int64_t length, std::uint64_t links,
                       std::int64_t horizon) const {
    return reserve_in(cells_[aggregate], want, length, links, horizon);
  }
  std::int64_t reserve_receive(NodeId node, std::int64_t want, std::int64_t length,
                               std::int64_t horizon) const {
    return reserve_in(receivers_[node], want, length, ~std::uint64_t{0}, horizon);
  }
  // When the aggregate would serve a request of `want`, without reserving (adaptive choice).
  std::int64_t peek(std::uint32_t aggregate, std::int64_t want) const;

  // Decayed kind. Adds `bytes` and returns the bytes of one half-life at the present rate.
  std::uint64_t count(std::uint32_t aggregate, std::int64_t now, std::uint64_t bytes) const {
    return count_in(counters_[aggregate].counter, now, bytes);
  }
  std::uint64_t count_receive(NodeId node, std::int64_t now, std::uint64_t bytes) const {
    return count_in(nics_[node].receive, now, bytes);
  }

 private:
  std::int64_t reserve_in(IntervalCell& cell, std::int64_t want, std::int64_t length, std::uint64_t links,
                          std::int64_t horizon) const;
  std::uint64_t count_in(DecayedCounter& counter, std::int64_t now, std::uint64_t bytes) const;
  static void prefetch_cell(IntervalCell& cell) {
    __builtin_prefetch(&cell, 1);
    __builtin_prefetch(reinterpret_cast<std::byte*>(&cell) + 64, 1);
  }
  void acquire(IntervalCell& cell) const {
    std::uint32_t free = 0;
    if (!cell.lock.compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed)) {
      acquire_slowly(cell);
    }
  }
  void acquire_slowly(IntervalCell& cell) const;
  void merge_into(IntervalCell& cell, const IntervalCell::Interval& interval) const;
  void point_at(std::span<std::byte> memory, const Pricing& pricing, Kind kind);

  LinkStateHeader* header_ = nullptr;
  NicCell* nics_ = nullptr;
  IntervalCell* receivers_ = nullptr;  // exact
  IntervalCell* cells_ = nullptr;      // exact
  CounterCell* counters_ = nullptr;    // decayed
};

// Mean wait of an M/D/1 queue, in service times, at a utilisation of `per_256` / 256, capped at 255.
// In units of 1/256 service time.
std::uint32_t queue_wait_256(std::uint32_t per_256);

}  // namespace orrery::model
