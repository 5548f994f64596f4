// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/timed_path.hpp"
#include "emu/clock/clock.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace orrery::clock {

// Tasks by time; those of one time in the order in which they were added. Tasks that concern only their own
// process are kept apart, so that its turn can wait for the others' alone. One thread.
class Agenda {
 public:
  static constexpr std::int64_t kNone = std::numeric_limits<std::int64_t>::max();

  bool empty() const { return heaps_[0].empty() && heaps_[1].empty(); }
  std::size_t size() const { return heaps_[0].size() + heaps_[1].size(); }
  // When the first task is due; kNone: there is none.
  std::int64_t first() const { return std::min(first_of(heaps_[0]), first_of(heaps_[1])); }
  // The first of those that concern others.
  std::int64_t first_for_others() const { return first_of(heap(Concerns::others)); }
  // Which kind the first task is of.
  Concerns first_concerns() const { return static_cast<Concerns>(second_is_first() ? 1 : 0); }
  ORRERY_TIMED_INLINE void add(std::int64_t at, Task* task, Concerns concerns = Concerns::others) {
    std::vector<Entry>& to = heaps_[static_cast<std::size_t>(concerns)];
    to.push_back({at, next_++, task});
    std::push_heap(to.begin(), to.end(), later);
  }
  // Room for so many tasks that concern others.
  void reserve(std::size_t tasks) { heaps_[static_cast<std::size_t>(Concerns::others)].reserve(tasks); }
  // REQUIRES: not empty.
  Task* take() {
    std::vector<Entry>& from = heaps_[second_is_first() ? 1 : 0];
    std::pop_heap(from.begin(), from.end(), later);
    Task* const task = from.back().task;
    from.pop_back();
    return task;
  }

 private:
  struct Entry {
    std::int64_t at;
    std::uint64_t order;
    Task* task;
  };
  static bool later(const Entry& a, const Entry& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; }
  static std::int64_t first_of(const std::vector<Entry>& heap) {
    return heap.empty() ? kNone : heap.front().at;
  }
  bool second_is_first() const {
    return heaps_[0].empty() || (!heaps_[1].empty() && later(heaps_[0].front(), heaps_[1].front()));
  }
  const std::vector<Entry>& heap(Concerns concerns) const {
    return heaps_[static_cast<std::size_t>(concerns)];
  }

  std::vector<Entry> heaps_[2];
  std::uint64_t next_ = 0;
};

}  // namespace orrery::clock
