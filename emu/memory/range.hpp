// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>
#include <string_view>

namespace orrery::memory {

inline constexpr std::uint64_t kPageBytes = 4096;

// Half-open range of virtual addresses of one process. Value type.
struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size() const { return end - begin; }
  bool empty() const { return end <= begin; }
  bool contains(std::uint64_t address) const { return address >= begin && address < end; }
  bool overlaps(Range other) const { return begin < other.end && other.begin < end; }
  friend bool operator==(Range a, Range b) = default;
};

// Smallest page-aligned range around `range`. REQUIRES: range.end <= UINT64_MAX - kPageBytes.
inline Range page_hull(Range range) {
  return {range.begin & ~(kPageBytes - 1), (range.end + kPageBytes - 1) & ~(kPageBytes - 1)};
}

// How much of a range lies in the owner's memory file at this moment.
enum class Cover : std::uint8_t { none, partial, direct };

// Why memory is not, or can never be, moved into the memory file. It is then reached by frame or by
// cross-memory attach.
enum class Obstacle : std::uint8_t {
  none,            // can be adopted
  unmapped,        // part of the range has no mapping
  read_only,       // mapped without write permission
  stack,           // stack, thread control block or thread-local storage of a thread: the kernel writes there
  shared_mapping,  // already a shared mapping of something else (file, System V segment, a moved piece of
                   // ours)
  huge_pages,      // hugetlb mapping
  device,          // mapping of a device or kernel object ([vvar], /dev/...)
  own_state,       // state of this library that its fault handler reads
  pinned,          // the program asked MADV_DONTFORK for it: likely pinned by a real device
  beyond_span,     // at an address that the memory file does not reach
  no_file,         // there is no memory file (see AddressSpace::create)
};
inline constexpr int kObstacleCount = 11;

// The enumerator's name in words, for messages ("shared mapping").
std::string_view obstacle_name(Obstacle obstacle);

// What the kernel says about a range (AddressSpace::inspect).
struct RangeInfo {
  Cover cover = Cover::none;
  bool mapped = false;                 // every byte has a mapping that is at least readable
  bool denied = false;                 // every byte has a mapping, but not all may be read
  bool writable = false;               // every byte is writable
  Obstacle obstacle = Obstacle::none;  // first one found; `none` with cover != direct: adoption may be tried
};

}  // namespace orrery::memory
