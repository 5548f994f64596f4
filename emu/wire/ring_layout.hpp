// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/wire/packet.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

// A lane: a ring of frames from one process to one other. One producer process, one consumer process, so a
// producer that dies leaves at worst an unpublished frame that no consumer will ever see. Lanes come in
// pairs, both in the target's segment, so that an initiator needs nothing but that segment, and a target
// nothing of the initiator's: the first carries requests to the target, the second the target's responses.
//
//   0      LaneControl, one page
//   4 KiB  data: a ring of 64-byte lines; frames start on a line and never straddle the end
//
// Flow control cannot deadlock: an initiator never has more responses due than the response lane holds, so a
// target can always answer what it takes off the request lane. The next process in a dead initiator's slot
// asks for answers only when that one's requests have been served and their answers are out.
//
// Frame: line 0 begins with its mark, then the header, then the payload:
//   u64 mark = frame bytes (a multiple of 64) | kFrameTag << 32, stored last with release; 0 = not there yet
// Before a producer stores a mark it zeroes the first word of the line that follows its frame, so what the
// consumer finds there is 0 or the next mark, never an old one. The consumer writes nothing into the ring: a
// line that it had to get back for that would stand in its answer's way.
namespace orrery::wire {

inline constexpr std::uint32_t kLaneControlBytes = 4096;
inline constexpr std::uint32_t kDefaultLaneBytes = kLaneControlBytes + 32768;  // eight 4 KiB frames
// Smallest data part of a lane: an eighth of it still holds a header and a payload.
inline constexpr std::uint32_t kMinLaneDataBytes = 2048;
inline constexpr std::uint32_t kLineBytes = 64;
inline constexpr std::uint32_t kFrameTag = 0x4652414d;  // "FRAM"
inline constexpr std::uint32_t kShortTag = 0x53485254;  // "SHRT": a ShortFrame, one line
inline constexpr std::uint32_t kSkipTag = 0x534b4950;   // "SKIP": the rest of the ring, nothing in it

struct LaneControl {
  alignas(64) std::atomic<std::uint64_t> head;      // consumer: bytes consumed since the start, never wraps
  alignas(64) std::atomic<std::uint64_t> produced;  // producer: bytes published; only a successor reads it
  alignas(64) std::atomic<std::uint64_t> broken;    // consumer: frames refused because they made no sense
};
static_assert(offsetof(LaneControl, produced) == 64 && offsetof(LaneControl, broken) == 128 &&
              sizeof(LaneControl) <= kLaneControlBytes);

// A packet that fits one line: a put, event write or response with up to 16 bytes, whole, that uses no field
// of the header but these. One line instead of two is one transfer between cores less. DO NOT CHANGE THE
// LAYOUT.
inline constexpr std::uint32_t kShortPayload = 16;
struct ShortFrame {
  std::uint64_t mark;
  Verb verb;
  std::uint8_t status;
  std::uint8_t payload_bytes;
  std::uint8_t reserved;
  std::uint16_t flags;
  std::uint16_t domain;
  std::uint32_t transaction;
  std::uint16_t key_index;
  std::uint16_t key_generation;
  ProcessSlot source;
  std::uint8_t reserved2[6];
  std::uint64_t address;
  std::uint64_t event_data;
  std::byte payload[kShortPayload];
};
static_assert(sizeof(ShortFrame) == kLineBytes && offsetof(ShortFrame, flags) == 12 &&
              offsetof(ShortFrame, transaction) == 16 && offsetof(ShortFrame, address) == 32 &&
              offsetof(ShortFrame, payload) == 48);

inline constexpr std::uint32_t kFrameOverhead = 8 + sizeof(PacketHeader);

// Frame bytes for a payload, rounded up to whole lines.
constexpr std::uint32_t frame_bytes(std::uint32_t payload_bytes) {
  return (kFrameOverhead + payload_bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

}  // namespace orrery::wire
