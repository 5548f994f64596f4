// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string_view>
#include <utility>

namespace orrery::memory {

// The size that a text gives: digits, a fraction perhaps, and one of the suffixes K, M, G, T in either case
// (powers of 1024) or none: "400M", "1.5g", "65536". Errors: invalid_param.
Result<std::uint64_t> parse_size(std::string_view text);

// Hands out blocks of a range of addresses that lies at the same place in several processes. The same calls
// in the same order give the same addresses in each of them: best fit, of several the lowest.
// It keeps its books elsewhere and touches no byte of the range: peers write to it, and a stray write may
// spoil the program's data, but not the allocator. (An allocator that keeps headers in the heap would fall
// over them; so it is not one of the usual libraries.)
//
// Threads: any. Invariants: (1) blocks and free ranges cover the range without overlap; (2) no two free
// ranges touch. Usage: SymmetricHeap heap(base, bytes);  auto block = heap.allocate(100);
class SymmetricHeap {
 public:
  static constexpr std::uint64_t kAlignment = 64;  // of every block

  // REQUIRES: base and bytes are multiples of kAlignment.
  SymmetricHeap(std::uint64_t base, std::uint64_t bytes);
  SymmetricHeap(const SymmetricHeap&) = delete;
  SymmetricHeap& operator=(const SymmetricHeap&) = delete;

  // Errors: invalid_param (0 bytes), no_memory.
  Result<std::uint64_t> allocate(std::uint64_t bytes);
  // Errors: no_match (no block begins there).
  Status free(std::uint64_t block);
  // The block becomes as long as that where it is: its end is cut off, or the free range behind it is taken.
  // Errors, with nothing changed: invalid_param (0 bytes), no_match, no_memory (no room behind it).
  Status resize(std::uint64_t block, std::uint64_t bytes);
  // Bytes that the block was asked for with. Errors: no_match.
  Result<std::uint64_t> size_of(std::uint64_t block) const;
  struct Extent {
    std::uint64_t begin = 0;
    std::uint64_t bytes = 0;  // that the block was asked for with
  };
  // The block that `address` lies in. Errors: no_match (none).
  Result<Extent> block_at(std::uint64_t address) const;

  struct Stats {
    std::uint64_t in_use = 0;      // bytes of blocks, rounded up to kAlignment
    std::uint64_t high_water = 0;  // the most of it that ever was
    std::uint64_t blocks = 0;
    std::uint64_t largest_free = 0;
  };
  Stats stats() const;

 private:
  struct Block {
    std::uint64_t asked = 0;
    std::uint64_t bytes = 0;
  };
  // Makes the range free, as one with what is free behind it.
  void add_free_joined(std::uint64_t begin, std::uint64_t bytes);
  void add_free(std::uint64_t begin, std::uint64_t bytes);
  void drop_free(std::uint64_t begin, std::uint64_t bytes);

  mutable std::mutex mu_;
  std::map<std::uint64_t, Block> blocks_;                      // by address; guarded by mu_
  std::map<std::uint64_t, std::uint64_t> free_;                // address to length; guarded by mu_
  std::set<std::pair<std::uint64_t, std::uint64_t>> by_size_;  // length, address; guarded by mu_
  std::uint64_t in_use_ = 0;                                   // guarded by mu_
  std::uint64_t high_water_ = 0;                               // guarded by mu_
};

}  // namespace orrery::memory
