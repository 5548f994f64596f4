// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/state/nic_state.hpp"
#include "emu/nic/state/request.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

// What of a process's address space lies in its memory file, for registrations of the whole of it (kSpace).
// Such a registration says which peers may touch memory; a word here says where some of it is, for one extent
// of 2 MiB at most. A peer goes direct where a word covers its bytes, and asks the owner otherwise.
//
//   0        wanted[64]       pages that peers ask for, plus one; any process writes, the owner takes
//   4 KiB    words[1024][8]   one set per hash of an extent's number; the owner writes
//
// A word: 63..38 extent | 37..28 first page in it | 27..18 end page | 17..0 change; 0: none.
// The change differs each time that a word is written, so that a word that a peer knows from before says that
// nothing was withdrawn since: neither the extent, nor any registration of the whole address space.
namespace orrery::nic {

inline constexpr std::uint32_t kExtentShift = 21;
inline constexpr std::uint64_t kExtentBytes = std::uint64_t{1} << kExtentShift;
inline constexpr std::uint32_t kExtentSets = 1024;
inline constexpr std::uint32_t kExtentWays = 8;
inline constexpr std::uint32_t kWantedPages = 64;

struct ExtentState {
  alignas(kCacheLine) std::atomic<std::uint64_t> wanted[kWantedPages];
  std::byte unused[4096 - kWantedPages * 8];
  std::atomic<std::uint64_t> words[kExtentSets][kExtentWays];
};
static_assert(offsetof(ExtentState, words) == 4096 && sizeof(ExtentState) <= kExtentArea.bytes);

inline ExtentState& extent_state(const NicView& nic) { return nic.unit<ExtentState, kExtentArea>(); }

namespace extent_word {
inline constexpr std::uint32_t kChangeBits = 18;
inline constexpr std::uint32_t kPageBits = 10;
constexpr std::uint64_t extent_of(std::uint64_t address) { return address >> kExtentShift; }
// REQUIRES: begin and end are multiples of a page, in one extent, begin < end; change is not 0.
constexpr std::uint64_t make(std::uint64_t begin, std::uint64_t end, std::uint32_t change) {
  const std::uint64_t extent = extent_of(begin);
  const std::uint64_t first = (begin - (extent << kExtentShift)) / kPageBytes;
  const std::uint64_t last = (end - (extent << kExtentShift)) / kPageBytes;
  return extent << (kChangeBits + 2 * kPageBits) | first << (kChangeBits + kPageBits) | last << kChangeBits |
         change;
}
constexpr std::uint64_t extent(std::uint64_t word) { return word >> (kChangeBits + 2 * kPageBits); }
constexpr std::uint64_t begin(std::uint64_t word) {
  return (extent(word) << kExtentShift) + (word >> (kChangeBits + kPageBits) & 0x3ff) * kPageBytes;
}
constexpr std::uint64_t end(std::uint64_t word) {
  return (extent(word) << kExtentShift) + (word >> kChangeBits & 0x3ff) * kPageBytes;
}
// Neighbouring extents go to neighbouring sets; far ones are spread by the golden section.
constexpr std::uint32_t set_of(std::uint64_t extent) {
  return static_cast<std::uint32_t>(extent + (extent >> 10) * 0x9e37'79b9u) % kExtentSets;
}
}  // namespace extent_word

// A word that covers an address. `word` is null: none does.
struct FoundExtent {
  const std::atomic<std::uint64_t>* word = nullptr;
  std::uint64_t value = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// Pure reads; any process. REQUIRES for what is done with the answer: the caller has announced an access to a
// registration of the whole space (hazard.hpp), and has not withdrawn it since.
inline FoundExtent find_extent(const NicView& nic, std::uint64_t address) {
  const std::uint64_t extent = extent_word::extent_of(address);
  for (const auto& word : extent_state(nic).words[extent_word::set_of(extent)]) {
    // Acquire: pairs with the owner's publication.
    const std::uint64_t value = word.load(std::memory_order_acquire);
    if (value == 0 || extent_word::extent(value) != extent) continue;
    const FoundExtent found{&word, value, extent_word::begin(value), extent_word::end(value)};
    if (address >= found.begin && address < found.end) return found;
  }
  return {};
}

// Whether all of [address, address + length) lies in the memory file. REQUIRES: as find_extent().
inline bool extents_cover(const NicView& nic, std::uint64_t address, std::uint64_t length) {
  std::uint64_t at = address;
  do {
    const FoundExtent found = find_extent(nic, at);
    if (found.word == nullptr) return false;
    at = found.end;
  } while (at < address + length);
  return true;
}

// Asks the owner to move the page of `address` into its memory file. Another process's wish may be lost by
// it: a page that is wanted is asked for again.
inline void want_extent(const NicView& nic, std::uint64_t address) {
  const std::uint64_t page = address / kPageBytes;
  auto& wanted = extent_state(nic).wanted[extent_word::extent_of(address) % kWantedPages];
  wanted.store(page + 1, std::memory_order_seq_cst);
}

}  // namespace orrery::nic
