// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/state/lock_rank.hpp"

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

// A NIC's node translation table: which node a logical number stands for. Jobs get ranges of it. The table
// keeps what a launcher loads; endpoints are bound by the machine's own addresses, which need no translation,
// and an FMA window that wants one brings its own (fma_window.hpp).
//
// Threads: any. Invariant: ranges do not overlap.
namespace orrery::nic {

class TranslationTable {
 public:
  static constexpr std::uint32_t kEntries = 8192;

  // Loads `nodes` at `base`, or where there is room; returns where. What stood there is replaced if it is
  // one whole range of the same length. Errors: invalid_param (nothing to load, or beyond the table),
  // no_resource (no room, or another range is in the way).
  Result<std::uint32_t> load(std::optional<std::uint32_t> base, std::span<const std::uint32_t> nodes) {
    const std::lock_guard lock(mu_);
    const auto length = static_cast<std::uint32_t>(std::min<std::size_t>(nodes.size(), kEntries + 1));
    if (length == 0 || length > kEntries || (base && *base > kEntries - length)) return Errc::invalid_param;
    const std::uint32_t first = base ? *base : find_room(length);
    if (first > kEntries - length) return Errc::no_resource;
    const auto hit = [&](const Range& range) {
      return range.first < first + length && first < range.first + range.nodes.size();
    };
    const auto at = std::find_if(ranges_.begin(), ranges_.end(), hit);
    if (at == ranges_.end()) {
      ranges_.push_back({first, {nodes.begin(), nodes.end()}});
      return first;
    }
    if (at->first != first || at->nodes.size() != length) return Errc::no_resource;
    at->nodes.assign(nodes.begin(), nodes.end());
    return first;
  }
  // Empties the range that begins at `base`. Errors: no_match.
  Errc unload(std::uint32_t base) {
    const std::lock_guard lock(mu_);
    const bool any = std::erase_if(ranges_, [&](const Range& range) { return range.first == base; }) != 0;
    return any ? Errc::ok : Errc::no_match;
  }
  // What a logical number stands for. Errors: no_match.
  Result<std::uint32_t> node_of(std::uint32_t logical) const {
    const std::lock_guard lock(mu_);
    for (const Range& range : ranges_) {
      if (logical >= range.first && logical - range.first < range.nodes.size())
        return range.nodes[logical - range.first];
    }
    return Errc::no_match;
  }

 private:
  struct Range {
    std::uint32_t first = 0;
    std::vector<std::uint32_t> nodes;
  };

  // The first place behind a range, or at the start, that nothing overlaps; beyond the table: none.
  std::uint32_t find_room(std::uint32_t length) {
    std::sort(ranges_.begin(), ranges_.end(),
              [](const Range& a, const Range& b) { return a.first < b.first; });
    std::uint32_t first = 0;
    for (const Range& range : ranges_) {
      if (range.first - first >= length) return first;
      first = range.first + static_cast<std::uint32_t>(range.nodes.size());
    }
    return first;
  }

  mutable Lock<LockRank::translation> mu_;
  std::vector<Range> ranges_;  // guarded by mu_
};

}  // namespace orrery::nic
