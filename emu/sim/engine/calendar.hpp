// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/sim/engine/block_array.hpp"
#include "emu/sim/engine/types.hpp"

#include <algorithm>
#include <bit>
#include <utility>
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

  // Calls visit(event) for all events of tick `t`, then forgets them; visit must not push to `t`. Before it
  // ahead(event), a chunk of events early, and then soon(event), a few early, to prefetch. REQUIRES: t ==
  // next().
  template <typename Visit, typename Ahead, typename Soon>
  void take(Tick t, Visit&& visit, Ahead&& ahead, Soon&& soon) {
    now_ = t;
    while (!far_.empty() && far_.front().at - now_ <= mask_) move_near();
    Bucket bucket = std::exchange(buckets_[t & mask_], kNone);
    bits_[(t & mask_) >> 6] &= ~(std::uint64_t{1} << (t & 63));
    for (std::uint32_t i = 0; bucket != kNone && i < bucket % kChunkSlots; ++i)
      ahead(chunks_[bucket / kChunkSlots].events[i]);
    while (bucket != kNone) {
      // Visiting may push, but never into a chunk that is not yet free; chunks do not move.
      const std::uint32_t chunk = bucket / kChunkSlots, count = bucket % kChunkSlots;
      Chunk& here = chunks_[chunk];
      if (here.next != kNone) {
        const Chunk& older = chunks_[here.next / kChunkSlots];
        if (older.next != kNone) chunks_[older.next / kChunkSlots].prefetch();
        for (const Event& event : older.events) ahead(event);
      }
      for (std::uint32_t i = 0; i < count; ++i) soon(here.events[i]);
      for (std::uint32_t i = 0; i < count; ++i) visit(here.events[i]);
      bucket = std::exchange(here.next, free_);
      free_ = chunk * kChunkSlots;
    }
  }

  bool empty() const { return next() == kNever; }
  std::size_t bytes() const {
    return buckets_.capacity() * sizeof(Bucket) + bits_.capacity() * 8 + chunks_.bytes() +
           far_.capacity() * sizeof(Far);
  }

 private:
  static constexpr std::uint32_t kPerChunk = 15, kChunkSlots = 16;
  // The newest chunk of a tick, times kChunkSlots, and how many events it has: a push finds its place without
  // a look at the chunk. No chunk counts as a full one.
  using Bucket = std::uint32_t;
  static constexpr Bucket kNone = ~Bucket{0};
  static_assert(kNone % kChunkSlots == kPerChunk);
  struct alignas(64) Chunk {
    Event events[kPerChunk];
    Bucket next = kNone;  // an older one, full; of a free chunk another free one
    void prefetch() const {
      __builtin_prefetch(events);
      __builtin_prefetch(events + kChunkSlots / 2);
    }
  };
  static_assert(sizeof(Chunk) == 128);
  struct Far {
    Tick at;
    Event event;
  };
  static bool later(const Far& a, const Far& b) { return a.at > b.at; }

  void put(Tick at, const Event& event) {
    Bucket& bucket = buckets_[at & mask_];
    if (bucket % kChunkSlots == kPerChunk) [[unlikely]]
      extend(at);
    chunks_[bucket / kChunkSlots].events[bucket % kChunkSlots] = event;
    ++bucket;
  }
  // Puts an empty chunk before those of the bucket.
  [[gnu::noinline]] void extend(Tick at) {
    Bucket& bucket = buckets_[at & mask_];
    bits_[(at & mask_) >> 6] |= std::uint64_t{1} << (at & 63);
    std::uint32_t fresh;
    if (free_ != kNone) {
      fresh = free_ / kChunkSlots;
      free_ = chunks_[fresh].next;
    } else {
      fresh = chunks_.grow();
    }
    chunks_[fresh].next = std::exchange(bucket, fresh * kChunkSlots);
  }
  void move_near() {
    std::pop_heap(far_.begin(), far_.end(), later);
    put(far_.back().at, far_.back().event);
    far_.pop_back();
  }
  Tick next_in_buckets() const {
    const std::size_t words = bits_.size(), last = words - 1;  // a power of two
    const std::size_t first = (now_ & mask_) >> 6;
    // The word of `now_` is looked at twice: from now_ on at first, below it (one horizon ahead) last.
    std::uint64_t word = bits_[first] & (~std::uint64_t{0} << (now_ & 63));
    for (std::size_t i = 0; i <= words; ++i) {
      if (word != 0) {
        const Tick slot = (((first + i) & last) << 6) + static_cast<Tick>(std::countr_zero(word));
        return now_ + ((slot - now_) & mask_);
      }
      word = bits_[(first + i + 1) & last];
    }
    return kNever;
  }

  Tick now_ = 0;
  Tick mask_;
  std::vector<Bucket> buckets_;
  std::vector<std::uint64_t> bits_;
  BlockArray<Chunk, 5> chunks_;
  Bucket free_ = kNone;
  std::vector<Far> far_;
};

}  // namespace orrery::sim
