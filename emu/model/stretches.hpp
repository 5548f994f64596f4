// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
//
// How the stretches of a path are written down. Part of quote(); included nowhere else.
#pragma once

#include "emu/model/path.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace orrery::model {

// Where a path's stretches go, and the state that they are of. A copy of all that it takes: what is read by
// reference is read again after each stretch that was written.
template <Kept kKept>
struct Stretches {
  Stretches(const LinkState* state, Path* path) : stretches(reinterpret_cast<std::byte*>(path->at)) {
    if constexpr (kKept == Kept::nothing) return;
    lines = kKept == Kept::intervals ? state->lines() : state->counters();
    bundles = kKept == Kept::intervals ? state->bundles() : state->counters();
  }

  std::byte* line(std::size_t line) const { return lines + kLineBytes * line; }
  std::byte* bundle(std::size_t bundle) const { return bundles + kBundleBytes * bundle; }
  // Writes the stretch that begins at byte `at`, in as few stores as it is read with: narrower ones are a
  // third of what a path costs.
  [[gnu::always_inline]] inline void put(std::size_t at, std::byte* cell, std::uint32_t before,
                                         std::uint32_t price, Stretch::Kind kind) const {
    static_assert(std::endian::native == std::endian::little && offsetof(Stretch, cell) == 8 &&
                  offsetof(Stretch, before) == 16 && offsetof(Stretch, price) == 18 &&
                  offsetof(Stretch, kind) == 19);
    store(at + 8, cell);
    store(at + 16, before | price << 16 | std::uint32_t{kind} << 24);
  }
  [[gnu::always_inline]] inline void put_first(std::size_t at, std::uint32_t first) const {
    static_assert(offsetof(Stretch, first) == 4);
    store(at + 4, first);
  }
  [[gnu::always_inline]] inline void put_links(std::size_t at, std::uint32_t first,
                                               std::uint32_t links) const {
    static_assert(offsetof(Stretch, links) == 0 && offsetof(Stretch, first) == 4);
    store(at, links | std::uint64_t{first} << 32);
  }
  [[gnu::always_inline]] inline void put_line(std::size_t at, std::uint32_t first,
                                              std::uint32_t links) const {
    static_assert(offsetof(Stretch, line_first) == 20 && offsetof(Stretch, line_links) == 24);
    store(at + 20, first | std::uint64_t{links} << 32);
  }

 private:
  static constexpr std::size_t kLineBytes = kKept == Kept::intervals ? sizeof(LineCell) : sizeof(CounterCell);
  static constexpr std::size_t kBundleBytes =
      kKept == Kept::intervals ? sizeof(BundleCell) : sizeof(CounterCell);
  // Each word by itself: out of an array, or in a loop, they would go through memory and be read back wider
  // than they were written, which stalls.
  template <typename Word>
  [[gnu::always_inline]] inline void store(std::size_t offset, Word word) const {
    std::memcpy(stretches + offset, &word, sizeof word);
  }
  std::byte* stretches;
  std::byte *lines = nullptr, *bundles = nullptr;
};

}  // namespace orrery::model
