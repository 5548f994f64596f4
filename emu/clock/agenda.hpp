// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/clock/clock.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace orrery::clock {

// Tasks by time; those of one time in the order in which they were added. One thread.
class Agenda {
 public:
  bool empty() const { return heap_.empty(); }
  std::size_t size() const { return heap_.size(); }
  // REQUIRES: not empty.
  std::int64_t first() const { return heap_.front().at; }
  void add(std::int64_t at, Task* task) {
    heap_.push_back({at, next_++, task});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }
  Task* take() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    Task* const task = heap_.back().task;
    heap_.pop_back();
    return task;
  }

 private:
  struct Entry {
    std::int64_t at;
    std::uint64_t order;
    Task* task;
  };
  static bool later(const Entry& a, const Entry& b) { return a.at != b.at ? a.at > b.at : a.order > b.order; }
  std::vector<Entry> heap_;
  std::uint64_t next_ = 0;
};

}  // namespace orrery::clock
