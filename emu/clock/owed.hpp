// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <new>
#include <utility>
#include <vector>

namespace orrery::clock {

inline constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

// Effects that are owed: what the operations of a PE do to the memory and the queues of a node. That PE does
// them, at the latest before another PE could see them: before a PE of that node goes on at that time or
// later, or another effect on that node that comes after it. So most are done when the PE has the turn
// anyhow; turns are the cost. The table says when each PE's first effect on each node is due, which tells the
// PE that has the turn which PEs have to go first. A row is a node's: memory may be shared there. Only the
// holder of the turn changes it.
class Owed {
 public:
  struct Effect {
    std::int64_t at = kNever;
    std::uint32_t pe = 0;  // which owes it
    bool before(std::int64_t time, std::uint32_t number) const {
      return at < time || (at == time && pe < number);
    }
  };
  // The first effect of a row: asked for many times a turn, and looking for it takes as many lines of memory
  // as there are PEs / 8.
  struct Least {
    std::atomic<std::int64_t> at;
    std::atomic<std::uint32_t> pe;
  };

  Owed() = default;
  // `memory`: bytes(row.size()) of them, aligned as Least is; of all PEs. `row`: of each PE the first PE of
  // its node.
  Owed(std::byte* memory, std::vector<std::uint32_t> row)
      : row_(std::move(row)),
        least_(reinterpret_cast<Least*>(memory)),
        first_(reinterpret_cast<std::atomic<std::int64_t>*>(memory + row_.size() * sizeof(Least))) {
    for (std::uint32_t pe = 0; pe < pes(); ++pe) shared_ = shared_ || row_[pe] != pe;
  }
  static constexpr std::size_t bytes(std::size_t pes) {
    return pes * sizeof(Least) + pes * pes * sizeof(std::int64_t);
  }
  // No PE owes anything. Once, before other processes have the memory.
  void clear() {
    for (std::size_t i = 0; i < row_.size(); ++i) new (least_ + i) Least{kNever, 0};
    for (std::size_t i = 0; i < row_.size() * row_.size(); ++i)
      new (first_ + i) std::atomic<std::int64_t>(kNever);
  }

  std::uint32_t pes() const { return static_cast<std::uint32_t>(row_.size()); }
  std::uint32_t row(std::uint32_t pe) const { return row_[pe]; }
  // A node has several PEs; that PE's has.
  bool is_shared() const { return shared_; }
  bool is_shared(std::uint32_t pe) const {
    return shared_ && std::count(row_.begin(), row_.end(), row_[pe]) > 1;
  }

  Effect first(std::uint32_t row) const {
    return {least_[row].at.load(std::memory_order_relaxed), least_[row].pe.load(std::memory_order_relaxed)};
  }
  // That PE's first one there is due then.
  void owe(std::uint32_t row, std::uint32_t pe, std::int64_t at) {
    first_[std::size_t{row} * pes() + pe].store(at, std::memory_order_relaxed);
    const Effect least = first(row);
    if (Effect{at, pe}.before(least.at, least.pe))
      store_least(row, {at, pe});
    else if (pe == least.pe && at != least.at)
      store_least(row, look_for_first(row));
  }
  // No PE waits for what that PE owes. It may have ended in owe().
  void forgive(std::uint32_t pe) {
    for (std::uint32_t row = 0; row < pes(); ++row) {
      first_[std::size_t{row} * pes() + pe].store(kNever, std::memory_order_relaxed);
      store_least(row, look_for_first(row));
    }
  }

 private:
  Effect look_for_first(std::uint32_t row) const {
    const auto* const firsts = first_ + std::size_t{row} * pes();
    Effect least;
    for (std::uint32_t pe = 0; pe < pes(); ++pe) {
      const std::int64_t at = firsts[pe].load(std::memory_order_relaxed);
      if (at < least.at) least = {at, pe};
    }
    return least;
  }
  void store_least(std::uint32_t row, Effect least) {
    least_[row].at.store(least.at, std::memory_order_relaxed);
    least_[row].pe.store(least.pe, std::memory_order_relaxed);
  }

  std::vector<std::uint32_t> row_;
  bool shared_ = false;
  Least* least_ = nullptr;                      // of each row
  std::atomic<std::int64_t>* first_ = nullptr;  // [row * pes + PE]
};

}  // namespace orrery::clock
