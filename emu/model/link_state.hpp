// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// What the network is busy with: the only thing about quote() that is not pure. A block of memory that
// the caller owns, private or shared between processes (offsets, fixed widths, no pointers).
//
// Two kinds:
// - exact, for callers ordered by time (virtual clock): every NIC's receive side and every aggregate of
//   links keeps the intervals it has promised, each with the set of its links that it uses, so messages
//   over different links of one aggregate do not conflict. On a torus the aggregate is one line of
//   routers in one direction, in time skewed by the hop latency, in which a message occupies all links of
//   its stretch at once. On a dragonfly: the bundle between two groups, and a router's green and black
//   links. On a fat tree: the up and down links of a subtree. On a crossbar: nothing but the NICs.
// - decayed, for callers that are not ordered (wall clock): each aggregate keeps a byte counter that
//   loses half of its value every kHalfLife; utilisation becomes a mean queueing delay (M/D/1). A
//   dragonfly's green and black links have one counter each, besides the one of their router.
//
// Invariants:
// 1. The exact kind is changed only under its one lock (Hold): ordered callers come one at a time, so one
//    locked instruction a quote is all that it costs. Callers that are not ordered wait for each other.
//    Decayed counters change by single atomic loads and stores: of two processes that count in the same
//    one at the same moment one may be lost. They are a mean, a locked instruction in each is not worth
//    its price.
// 2. A process may die at any instruction: the lock is taken over after a bounded spin, and a half-made
//    change is at worst one interval lost or one too many.
// 3. Intervals that ended before a caller's horizon are dropped. In ordered use no later caller can
//    want them.
// 4. When a cell is full, a new interval is united with the one with which it promises least that nobody
//    asked for (links x time): exact no more, counted in merged(). Zero: exact.
//
//   std::vector<std::byte> memory(LinkState::bytes_needed(pricing, LinkState::Kind::exact));
//   auto state = LinkState::create(memory, pricing, LinkState::Kind::exact);
#pragma once

#include "emu/base/status.hpp"
#include "emu/model/pricing.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace orrery::model {

inline constexpr Picos kHalfLife{std::int64_t{1} << 22};  // 4.2 us: some round trips, few enough to adapt

// A promise: these links are taken from `start` to `end`.
struct Interval {
  std::int64_t start, end;  // ps, skewed by position on a torus line
  std::uint64_t links;      // which links of the aggregate; all ones where they are not told apart
};

// Promised intervals of one aggregate. A cell in which all promises are over, which is what a quote in a
// quiet network finds, is known by `latest` alone, and is written in its first cache line alone.
struct alignas(64) IntervalCell {
  static constexpr std::uint32_t kIntervals = 10;
  std::int64_t latest;  // the greatest end of all intervals
  std::uint32_t count, unused;
  Interval at[kIntervals];
};
static_assert(sizeof(IntervalCell) == 256 && offsetof(IntervalCell, at) == 16);

// Bytes through one aggregate, decaying.
struct DecayedCounter {
  std::atomic<std::int64_t> epoch;    // in half-lives
  std::atomic<std::uint64_t> before;  // decayed sum of earlier epochs
  std::atomic<std::uint64_t> now;     // of this epoch
};
static_assert(sizeof(DecayedCounter) == 24 && std::atomic<std::uint64_t>::is_always_lock_free);

struct alignas(32) CounterCell {
  DecayedCounter counter;
};
static_assert(sizeof(CounterCell) == 32);

// What both kinds keep of a NIC, written by every process of the node and by those that send to it.
struct NicCell {
  std::atomic<std::int64_t> transmit_free;  // when the next operation may start
  std::atomic<std::int64_t> receive_until;  // when the last promised arrival ends
};

struct alignas(64) ExactNicCell {
  static constexpr std::uint32_t kIntervals = 9;
  NicCell nic;
  std::int64_t latest;  // as in IntervalCell
  std::uint32_t count, unused;
  Interval received[kIntervals];
};
static_assert(sizeof(ExactNicCell) == 256 && offsetof(ExactNicCell, received) == 32);

struct alignas(64) DecayedNicCell {
  NicCell nic;
  DecayedCounter receive;
};
static_assert(sizeof(DecayedNicCell) == 64 && offsetof(DecayedNicCell, receive) == 16);

// First bytes of the block.
struct alignas(64) LinkStateHeader {
  std::uint64_t magic;
  std::uint32_t version, kind;
  std::uint32_t nodes, aggregates;
  std::uint64_t size;
  std::atomic<std::uint64_t> merged;  // intervals made inexact
  std::atomic<std::uint64_t> stolen;  // locks taken over from a holder that did not return
  std::atomic<std::uint32_t> lock;    // exact kind
};
static_assert(sizeof(LinkStateHeader) == 64 && offsetof(LinkStateHeader, lock) == 48);

class LinkState {
 public:
  enum class Kind : std::uint32_t { exact = 1, decayed = 2 };
  static constexpr std::uint64_t kMagic = 0x4f525245'4c494e4bu;
  static constexpr std::uint32_t kVersion = 3;

  LinkState() = default;

  static std::size_t bytes_needed(const Pricing& pricing, Kind kind);
  static std::uint32_t aggregates(const Pricing& pricing, Kind kind);
  // Lays a quiet network out in `memory`, which must outlive the object and be aligned to 64 bytes.
  // Outcomes: Errc::alignment; Errc::size where it is shorter than bytes_needed().
  static Result<LinkState> create(std::span<std::byte> memory, const Pricing& pricing, Kind kind);
  // Uses a block that another process laid out. Outcomes: Errc::corrupt where it is not one of this
  // machine and version; Errc::alignment, Errc::size as above.
  static Result<LinkState> attach(std::span<std::byte> memory, const Pricing& pricing);

  Kind kind() const { return kind_; }
  bool exact() const { return kind_ == Kind::exact; }
  std::uint64_t merged() const { return header_->merged.load(std::memory_order_relaxed); }
  std::uint64_t stolen() const { return header_->stolen.load(std::memory_order_relaxed); }

  // The lock of an exact state for as long as the object lives; nothing for the other kind or none.
  class Hold {
   public:
    explicit Hold(const LinkState* state)
        : lock_(state != nullptr && state->exact() ? &state->header_->lock : nullptr) {
      if (lock_ == nullptr) return;
      std::uint32_t free = 0;
      if (!lock_->compare_exchange_strong(free, 1, std::memory_order_acquire, std::memory_order_relaxed))
        state->acquire_slowly();
    }
    ~Hold() {
      if (lock_ != nullptr) lock_->store(0, std::memory_order_release);
    }
    Hold(const Hold&) = delete;
    Hold& operator=(const Hold&) = delete;

   private:
    std::atomic<std::uint32_t>* lock_;
  };

  NicCell& nic(NodeId node) const { return exact() ? exact_nics_[node].nic : decayed_nics_[node].nic; }

  // Hints that these cells will be written. No effect on results.
  void prefetch_nic(NodeId node) const { prefetch_to_write(&nic(node)); }
  void prefetch_lock() const { prefetch_to_write(header_); }
  void prefetch_cell(std::uint32_t aggregate) const { prefetch_to_write(&cells_[aggregate]); }
  void prefetch_counter(std::uint32_t aggregate) const { prefetch_to_write(&counters_[aggregate]); }

  // Exact kind; REQUIRES for all four: a Hold. The earliest start at or after `want` at which none of the
  // links `heeds` is taken for `length`; the links `takes` are promised to it. `horizon`: intervals that
  // end before it are over.
  std::int64_t reserve(std::uint32_t aggregate, std::int64_t want, std::int64_t length, std::uint64_t heeds,
                       std::uint64_t takes, std::int64_t horizon) const {
    IntervalCell& cell = cells_[aggregate];
    return reserve_in(cell, cell.at, want, length, heeds, takes, horizon);
  }
  std::int64_t reserve_receive(NodeId node, std::int64_t want, std::int64_t length,
                               std::int64_t horizon) const {
    ExactNicCell& cell = exact_nics_[node];
    return reserve_in(cell, cell.received, want, length, ~std::uint64_t{0}, ~std::uint64_t{0}, horizon);
  }
  // Nothing in the cell reaches past `now`: a reservation would start when it wants to.
  bool idle(std::uint32_t aggregate, std::int64_t now) const { return cells_[aggregate].latest <= now; }
  // The start that reserve() would find, with nothing promised.
  std::int64_t peek(std::uint32_t aggregate, std::int64_t want, std::int64_t length,
                    std::uint64_t heeds) const {
    return cells_[aggregate].latest <= want ? want : peek_among(aggregate, want, length, heeds);
  }

  // Decayed kind. Adds `bytes` and returns the bytes of one half-life at the present rate.
  std::uint64_t count(std::uint32_t aggregate, std::int64_t now, std::uint64_t bytes) const {
    return count_in(counters_[aggregate].counter, now, bytes);
  }
  // The same without adding anything: writes nothing.
  std::uint64_t level(std::uint32_t aggregate, std::int64_t now) const {
    return level_in(counters_[aggregate].counter, now);
  }
  std::uint64_t count_receive(NodeId node, std::int64_t now, std::uint64_t bytes) const {
    return count_in(decayed_nics_[node].receive, now, bytes);
  }
  std::uint64_t level_receive(NodeId node, std::int64_t now) const {
    return level_in(decayed_nics_[node].receive, now);
  }

 private:
  // For the portable instruction set the compiler's own hint fetches a line to read, which another process
  // then keeps until the write asks again. Processors without this one ignore it.
  static void prefetch_to_write(const void* at) {
#if defined(__x86_64__)
    __asm__("prefetchw %0" : : "m"(*static_cast<const char*>(at)));
#else
    __builtin_prefetch(at, 1);
#endif
  }
  template <typename Cell, std::uint32_t kCapacity>
  std::int64_t reserve_in(Cell& cell, Interval (&at)[kCapacity], std::int64_t want, std::int64_t length,
                          std::uint64_t heeds, std::uint64_t takes, std::int64_t horizon) const {
    if (length <= 0) return want;
    if (cell.latest <= horizon) [[likely]] {
      at[0] = {want, want + length, takes};
      cell.latest = want + length;
      cell.count = 1;
      return want;
    }
    return reserve_among(&cell.latest, &cell.count, at, kCapacity, want, length, heeds, takes, horizon);
  }
  std::int64_t reserve_among(std::int64_t* latest, std::uint32_t* count, Interval* at, std::uint32_t capacity,
                             std::int64_t want, std::int64_t length, std::uint64_t heeds, std::uint64_t takes,
                             std::int64_t horizon) const;
  std::int64_t peek_among(std::uint32_t aggregate, std::int64_t want, std::int64_t length,
                          std::uint64_t heeds) const;
  std::uint64_t count_in(DecayedCounter& counter, std::int64_t now, std::uint64_t bytes) const;
  std::uint64_t level_in(const DecayedCounter& counter, std::int64_t now) const;
  void acquire_slowly() const;
  void merge_into(Interval* at, std::uint32_t count, const Interval& interval) const;
  void point_at(std::span<std::byte> memory, const Pricing& pricing, Kind kind);

  Kind kind_ = Kind::exact;
  LinkStateHeader* header_ = nullptr;
  ExactNicCell* exact_nics_ = nullptr;      // exact
  IntervalCell* cells_ = nullptr;           // exact
  DecayedNicCell* decayed_nics_ = nullptr;  // decayed
  CounterCell* counters_ = nullptr;         // decayed
};

// Utilisation, in units of 1/256 and capped at 255, of something busy for `busy` ps of each half-life.
inline std::uint32_t utilisation_256(std::int64_t busy) {
  return static_cast<std::uint32_t>(std::min<std::int64_t>(busy / (kHalfLife.count() / 256), 255));
}

// Mean wait of an M/D/1 queue, in service times, at a utilisation of `per_256` / 256, capped at 255.
// In units of 1/256 service time.
std::uint32_t queue_wait_256(std::uint32_t per_256);

}  // namespace orrery::model
