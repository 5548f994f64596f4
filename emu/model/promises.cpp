// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/promises.hpp"

#include "emu/base/timed_path.hpp"
#include "emu/model/link_state.hpp"

#include <algorithm>
#include <limits>

namespace orrery::model {

namespace {

// Parts of 256 that are promised.
std::int64_t load_256(const Span& s) {
  // Times of one cell lie within hours: 2^53 ps are 2.5 hours.
  return static_cast<std::int64_t>(256.0 * static_cast<double>(s.busy) /
                                   static_cast<double>(std::max<std::int64_t>(s.end - s.start, 1)));
}

bool full(const Span& s) { return s.busy >= s.end - s.start; }

// Promised time of a span that is not full is spread evenly over it.
std::int64_t room_after(const Span& s, std::int64_t from) {
  const std::int64_t free = s.end - s.start - s.busy;
  if (from <= s.start) return free;
  return std::min(free,
                  static_cast<std::int64_t>(static_cast<double>(free) * static_cast<double>(s.end - from) /
                                            static_cast<double>(s.end - s.start)));
}

}  // namespace

ORRERY_TIMED_PATH Found find_in(const Span* at, std::uint32_t count, std::int64_t want, std::int64_t length) {
  std::int64_t start = want;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Span& s = at[i];
    if (s.end <= start) continue;
    if (start + length <= s.start) return {start, i, false};
    const std::int64_t from = std::max(start, s.start);
    if (!full(s) && room_after(s, from) >= length) {
      const std::int64_t wait =
          length * queue_wait_256(static_cast<std::uint32_t>(std::clamp<std::int64_t>(load_256(s), 0, 255))) /
          256;
      return {std::min(from + wait, s.end - length), i, true};
    }
    start = s.end;
  }
  return {start, count, false};
}

ORRERY_TIMED_PATH std::int64_t reserve_in(std::int64_t* latest, std::uint32_t* count, Span* at,
                                          std::uint32_t capacity, std::int64_t want, std::int64_t length,
                                          std::int64_t horizon, std::atomic<std::uint64_t>* merges) {
  // A caller that died may have left anything here.
  const std::uint32_t had = std::min(*count, capacity);
  std::uint32_t first = 0;
  while (first < had && at[first].end <= horizon) ++first;
  if (first != 0) std::copy(at + first, at + had, at);
  std::uint32_t kept = had - first;
  const Found found = find_in(at, kept, want, length);
  const std::int64_t start = found.start, end = start + length;
  *latest = std::max(*latest, end);
  *count = kept;
  if (found.joins) {
    at[found.index].busy += length;
    return start;
  }
  // Back to back with what is before or after it: one full span.
  const std::uint32_t i = found.index;
  const bool after = i > 0 && at[i - 1].end == start && full(at[i - 1]);
  const bool before = i < kept && at[i].start == end && full(at[i]);
  if (after && before) {
    at[i - 1] = {at[i - 1].start, at[i].end, at[i].end - at[i - 1].start};
    std::copy(at + i + 1, at + kept, at + i);
    *count = kept - 1;
    return start;
  }
  if (after || before) {
    Span& s = at[after ? i - 1 : i];
    s = {std::min(s.start, start), std::max(s.end, end), s.busy + length};
    return start;
  }
  const Span mine{start, end, length};
  if (kept < capacity) {
    std::copy_backward(at + i, at + kept, at + kept + 1);
    at[i] = mine;
    *count = kept + 1;
    return start;
  }
  // Of all neighbours, the new one among them, those that lie closest together become one.
  const auto nth = [&](std::uint32_t n) { return n < i ? at[n] : n == i ? mine : at[n - 1]; };
  std::uint32_t best = 0;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::uint32_t n = 0; n < kept; ++n) {
    const std::int64_t gap = nth(n + 1).start - nth(n).end;
    if (gap >= least) continue;
    least = gap;
    best = n;
  }
  const Span a = nth(best), b = nth(best + 1), both{a.start, b.end, a.busy + b.busy};
  if (best + 1 < i) {
    // The united ones lie before the new one: those between move down.
    std::copy(at + best + 2, at + i, at + best + 1);
    at[i - 1] = mine;
  } else if (best > i) {
    std::copy_backward(at + i, at + best - 1, at + best);
    at[i] = mine;
  }
  at[best] = both;
  merges->fetch_add(1, std::memory_order_relaxed);
  return start;
}

}  // namespace orrery::model
