// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/sim/block_array.hpp"
#include "emu/sim/types.hpp"

#include <algorithm>
#include <bit>
#include <vector>

namespace orrery::sim {

// Calendar queue: the events of one partition by tick. A ring of buckets, one per tick, covers the near
// future; a bitmap finds the next tick with events; what lies beyond the horizon waits in a heap.
// Events of one tick have no order among them, by contract with the routers (see engine.hpp).
//
// Owned by one partition, touched by its thread only.
// 1. A bucket holds events of exactly one tick: every stored tick is in [now, now + horizon).
// 2. Chunks are recycled last in, first out, so that the ones in use stay in cache.
//
//   calendar.push(now + 10, event);  Tick t = calendar.next();  calendar.take(t, [](const Event& e) {});
class Calendar {
 public:
  // `horizon_log2`: 2^n ticks ahead are held in buckets; 8..24.
  explicit Calendar(int horizon_log2 = 11)
      : mask_((Tick{1} << horizon_log2) - 1), buckets_(mask_ + 1, kNone), bits_((mask_ + 1) / 64, 0) {}

  // REQUIRES: at >= the last tick taken.
  void push(Tick at, const Event& event) {
    if (at - now_ > mask_) [[unlikely]] {
      far_.push_back({at, event});
      std::push_heap(far_.begin(), far_.end(), later);
      return;
    }
    put(at, event);
  }

  // The earliest tick with an event, kNever if there is none.
  Tick next() const {
    const Tick near = next_in_buckets();
    const Tick far = far_.empty() ? kNever : far_.front().at;
    return std::min(near, far);
  }

  // Calls visit(event) for all events of tick `t`, then forgets them; visit must not push to `t`.
  // `ahead(event)` is called a few events early, to prefetch. REQUIRES: t == next().
  template <typename Visit, typename Ahead>
  void take(Tick t, Visit&& visit, Ahead&& ahead) {
    now_ = t;
    while (!far_.empty() && far_.front().at - now_ <= mask_) move_near();
    std::uint32_t chunk = buckets_[t & mask_];
    buckets_[t & mask_] = kNone;
    bits_[(t & mask_) >> 6] &= ~(std::uint64_t{1} << (t & 63));
    while (chunk != kNone) {
      // Visiting may push, but never into a chunk that is not yet free; chunks do not move.
      const Chunk& here = chunks_[chunk];
      for (std::uint32_t i = 0; i < here.count; ++i) ahead(here.events[i]);
      for (std::uint32_t i = 0; i < here.count; ++i) visit(here.events[i]);
      held_ -= here.count;
      const std::uint32_t next = here.next;
      free_.push_back(chunk);
      chunk = next;
    }
  }

  bool empty() const { return held_ == 0 && far_.empty(); }
  std::size_t bytes() const {
    return buckets_.capacity() * 4 + bits_.capacity() * 8 + chunks_.bytes() + free_.capacity() * 4 +
           far_.capacity() * sizeof(Far);
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::uint32_t kPerChunk = 15;
  struct Chunk {
    Event events[kPerChunk];
    std::uint32_t count = 0;
    std::uint32_t next = kNone;
  };
  static_assert(sizeof(Chunk) == 128);
  struct Far {
    Tick at;
    Event event;
  };
  static bool later(const Far& a, const Far& b) { return a.at > b.at; }

  void put(Tick at, const Event& event) {
    std::uint32_t& head = buckets_[at & mask_];
    if (head == kNone) bits_[(at & mask_) >> 6] |= std::uint64_t{1} << (at & 63);
    if (head == kNone || chunks_[head].count == kPerChunk) [[unlikely]] {
      std::uint32_t fresh;
      if (!free_.empty()) {
        fresh = free_.back();
        free_.pop_back();
      } else {
        fresh = chunks_.grow();
      }
      chunks_[fresh].count = 0;
      chunks_[fresh].next = head;
      head = fresh;
    }
    Chunk& chunk = chunks_[head];
    chunk.events[chunk.count++] = event;
    ++held_;
  }
  void move_near() {
    std::pop_heap(far_.begin(), far_.end(), later);
    put(far_.back().at, far_.back().event);
    far_.pop_back();
  }
  Tick next_in_buckets() const {
    if (held_ == 0) return kNever;
    const std::size_t words = bits_.size();
    const std::size_t first = (now_ & mask_) >> 6;
    // The word of `now_` is looked at twice: from now_ on at first, below it (one horizon ahead) last.
    std::uint64_t word = bits_[first] & (~std::uint64_t{0} << (now_ & 63));
    for (std::size_t i = 0; i <= words; ++i) {
      if (word != 0) {
        const Tick slot = (((first + i) % words) << 6) + static_cast<Tick>(std::countr_zero(word));
        return now_ + ((slot - now_) & mask_);
      }
      word = bits_[(first + i + 1) % words];
    }
    return kNever;
  }

  Tick now_ = 0;
  Tick mask_;
  std::uint64_t held_ = 0;
  std::vector<std::uint32_t> buckets_;
  std::vector<std::uint64_t> bits_;
  BlockArray<Chunk, 8> chunks_;
  std::vector<std::uint32_t> free_;
  std::vector<Far> far_;
};

}  // namespace orrery::sim
