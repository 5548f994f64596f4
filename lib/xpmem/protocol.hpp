// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// What a process that attaches asks of the owner, over the owner's socket: one record each way. Both
// sides are of this host and this library.
namespace orrery::xpmem {

// xpmem_segid_t: 62..31 generation of the owner | 30..16 its slot | 15..8 which one | 7..0 place. Never 0 and
// never negative.
struct SegmentName {
  std::uint32_t generation = 0;
  std::uint32_t slot = 0;    // 15 bits
  std::uint32_t serial = 0;  // 8 bits, not 0
  std::uint32_t place = 0;   // 8 bits
};
constexpr std::uint32_t kMaxSegments = 256;
constexpr std::int64_t encode(const SegmentName& n) {
  return static_cast<std::int64_t>(std::uint64_t{n.generation} << 31 | std::uint64_t{n.slot & 0x7fff} << 16 |
                                   std::uint64_t{n.serial & 0xff} << 8 | (n.place & 0xff));
}
constexpr SegmentName decode(std::int64_t name) {
  const auto n = static_cast<std::uint64_t>(name);
  return {static_cast<std::uint32_t>(n >> 31), static_cast<std::uint32_t>(n >> 16) & 0x7fff,
          static_cast<std::uint32_t>(n >> 8) & 0xff, static_cast<std::uint32_t>(n) & 0xff};
}

enum class Ask : std::uint32_t { get = 1, attach = 2 };

struct Request {
  static constexpr std::uint32_t kMagic = 0x4d505831;  // "1XPM"
  std::uint32_t magic = kMagic;
  Ask ask = Ask::get;
  std::uint64_t secret = 0;  // of the host directory
  std::int64_t segment = 0;
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::uint32_t writes = 0;  // 0 or 1
  std::uint32_t unused = 0;
};
static_assert(sizeof(Request) == 48);

struct Answer {
  std::uint32_t error = 0;     // errno, 0 when all is well
  std::uint32_t has_file = 0;  // 1: what was asked for is a shared mapping of the file that comes along
  std::uint64_t address = 0;   // of the segment's first byte in its owner
  std::uint64_t offset =
      0;  // has_file: of the first page asked for in that file; else it is the owner's address
};
static_assert(sizeof(Answer) == 24);

// Where the owner listens, from the name of its descriptor server.
inline std::string socket_name(std::string_view descriptors) { return std::string(descriptors) + ".x"; }

}  // namespace orrery::xpmem
