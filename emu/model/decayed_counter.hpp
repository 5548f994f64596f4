// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// Bytes through something shared, of which half is forgotten every kHalfLife: what callers that are not
// ordered in time can still keep of a link's load. Part of the link state; included nowhere else.
//
// Changed by single atomic loads and stores: of two processes that count at the same moment one may be lost.
// Its fields may hold anything after a process died or when callers are out of order; the level is only
// wrong.
#pragma once

#include "emu/base/units.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>

namespace orrery::model {

inline constexpr int kHalfLifeShift = 22;
// 4.2 us: some round trips, few enough to adapt.
inline constexpr Picos kHalfLife{std::int64_t{1} << kHalfLifeShift};

// Small on purpose, four to a cache line with their padding: on the larger machines it is the number of lines
// that a quote's time goes by. The sums stop at 4 GiB, ten thousand times what a link carries in a half-life.
struct DecayedCounter {
  std::atomic<std::uint32_t> epoch;   // in half-lives; the low bits, five hours
  std::atomic<std::uint32_t> before;  // decayed sum of earlier epochs
  std::atomic<std::uint32_t> now;     // of this epoch
};
static_assert(sizeof(DecayedCounter) == 12 && std::atomic<std::uint32_t>::is_always_lock_free);

// 2^16 * 512 / (512 + part): what makes a level a rate, by how much of the epoch has passed.
inline constexpr auto kSteady = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t part = 0; part < 256; ++part) table[part] = (512u << 16) / (512 + part);
  return table;
}();

// A moment as counters need it: worked out once for all of a quote's. Any point in time is one.
struct DecayMoment {
  // `now`: picoseconds, 0 or later.
  DecayMoment(std::int64_t now)
      : epoch(static_cast<std::uint32_t>(now >> kHalfLifeShift)),
        part(static_cast<std::uint32_t>(now >> (kHalfLifeShift - 8)) & 255) {}
  std::uint32_t epoch, part;
};

// A counter's two sums as they are at `now`.
struct DecayedSums {
  std::uint64_t before, current;
  bool aged;  // the counter still has those of an earlier epoch
};

inline DecayedSums sums_of(const DecayedCounter& c, const DecayMoment& now) {
  const std::uint64_t before = c.before.load(std::memory_order_relaxed);
  const std::uint64_t current = c.now.load(std::memory_order_relaxed);
  const std::uint32_t passed = now.epoch - c.epoch.load(std::memory_order_relaxed);
  // Callers are not ordered: one may find an epoch a little past its own. One that lies far past it, 4.4 s,
  // is of hours ago, when the low bits had been round once less.
  constexpr std::uint32_t kOutOfOrder = std::uint32_t{1} << 20;
  if (passed + kOutOfOrder <= kOutOfOrder) return {before, current, false};
  // The sums have 33 bits: after so many half-lives, or from so long ago, nothing is left.
  return {(before + current) >> std::min(passed, 63u), 0, true};
}

// Bytes of one half-life at the rate that the two sums speak of: never more than both together. A steady rate
// of r bytes a half-life makes `before` r and `before` + `current` r (1 + f) where f of the epoch has passed;
// half of `before` has decayed by its end.
inline std::uint64_t steady_rate(const DecayedSums& sums, const DecayMoment& now) {
  return ((sums.before * (512 - now.part) >> 9) + sums.current) * kSteady[now.part] >> 16;
}

// Adds `bytes` to a counter whose sums at this moment are known.
inline void add_to_sums(DecayedCounter& c, const DecayMoment& now, const DecayedSums& sums,
                        std::uint64_t bytes) {
  constexpr std::uint64_t kMost = UINT32_MAX;
  const auto store = [](std::atomic<std::uint32_t>& word, std::uint64_t value) {
    word.store(static_cast<std::uint32_t>(value), std::memory_order_relaxed);
  };
  if (sums.aged) {
    store(c.epoch, now.epoch);
    store(c.before, sums.before);  // of two sums half or less: it fits
    store(c.now, std::min(bytes, kMost));
  } else {
    store(c.now, std::min(sums.current + bytes, kMost));
  }
}

// Adds `bytes`, and returns the sums before they came.
inline DecayedSums add_bytes(DecayedCounter& c, const DecayMoment& now, std::uint64_t bytes) {
  const DecayedSums sums = sums_of(c, now);
  add_to_sums(c, now, sums, bytes);
  return sums;
}

// Undoes add_bytes() of the same moment and number. What others added meanwhile stays.
inline void take_bytes_back(DecayedCounter& c, const DecayMoment& now, std::uint64_t bytes) {
  const DecayedSums sums = sums_of(c, now);
  if (!sums.aged)
    c.now.store(static_cast<std::uint32_t>(sums.current - std::min(sums.current, bytes)),
                std::memory_order_relaxed);
}

// The same as add_bytes(), and returns the rate before they came, in bytes of one half-life.
inline std::uint64_t count_bytes(DecayedCounter& c, const DecayMoment& now, std::uint64_t bytes) {
  return steady_rate(add_bytes(c, now, bytes), now);
}

// The rate alone; writes nothing.
inline std::uint64_t level_of(const DecayedCounter& c, const DecayMoment& now) {
  return steady_rate(sums_of(c, now), now);
}

}  // namespace orrery::model
