// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// When one server (a link, a bundle of links that any packet may take, a NIC's receive side) is busy: the
// spans of time that it has promised. Part of the link state; included nowhere else.
//
// A message takes the first gap that is long enough, so callers may come out of the order in which their
// messages reach the server. A cell holds a few spans. Where one more does not fit, the two with the
// smallest gap between them become one that is not full: it remembers how long of it is promised, takes
// further messages until it is, and lets each wait as long as a queue of that load would on average
// (M/D/1). So a cell never promises more time than there is, and never refuses time that is free; what it
// loses is when exactly.
//
// Invariants: spans are sorted and do not overlap; `latest` is the end of the last; busy <= end - start.
// A process may die in the middle of a change: readers take any content for a cell and only misjudge time.
#pragma once

#include <atomic>
#include <cstdint>

namespace orrery::model {

// From `start` to `end`, of which `busy` is promised. All in picoseconds.
struct Span {
  std::int64_t start, end, busy;
};

template <std::uint32_t kSpans>
struct Promises {
  std::int64_t latest;
  std::uint32_t count, unused;
  Span at[kSpans];
};

// What one that comes at `want` and needs `length` finds: the start at or after `want`, and the index of the
// span that it joins or goes before.
struct Found {
  std::int64_t start;
  std::uint32_t index;
  bool joins;
};
Found find_in(const Span* at, std::uint32_t count, std::int64_t want, std::int64_t length);

// Promises `length` and returns its start. Spans that end at or before `horizon` are dropped: no later caller
// may want them. `merges` counts what becomes inexact.
std::int64_t reserve_in(std::int64_t* latest, std::uint32_t* count, Span* at, std::uint32_t capacity,
                        std::int64_t want, std::int64_t length, std::int64_t horizon,
                        std::atomic<std::uint64_t>* merges);

template <std::uint32_t kSpans>
std::int64_t reserve(Promises<kSpans>& cell, std::int64_t want, std::int64_t length, std::int64_t horizon,
                     std::atomic<std::uint64_t>* merges) {
  if (length <= 0) return want;
  if (cell.latest <= horizon) [[likely]] {
    cell.at[0] = {want, want + length, length};
    cell.latest = want + length;
    cell.count = 1;
    return want;
  }
  return reserve_in(&cell.latest, &cell.count, cell.at, kSpans, want, length, horizon, merges);
}

// The start that reserve() would find, with nothing promised.
template <std::uint32_t kSpans>
std::int64_t peek(const Promises<kSpans>& cell, std::int64_t want, std::int64_t length) {
  if (cell.latest <= want) return want;
  return find_in(cell.at, cell.count < kSpans ? cell.count : kSpans, want, length).start;
}

}  // namespace orrery::model
