// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/wire/verb.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

// A packet: what one NIC says to another, whatever carries it. On the direct path it never leaves a register;
// on the shared ring and between hosts its header is copied as it stands (little-endian, fixed layout).
namespace orrery::wire {

// A process of the job as this process numbers it: its slot in the host directory.
using ProcessSlot = std::uint16_t;

// Packet flags. DO NOT CHANGE THE VALUES.
enum PacketFlags : std::uint16_t {
  kWantsRemoteEvent = 1,  // the target's queue gets an event when all of the operation is in place
  kWantsResponse = 2,     // the initiator waits for status or data
  kLast = 4,              // last packet of its operation
  kHasSyncFlag = 8,       // after the data, store operand[0] at aux
  kFetching = 16,         // the AMO's response carries the old values, as its payload
  kByNumber = 64,         // key_index is a number alone: whatever is registered there (emu/nic/state/mdh.hpp)
  kVirtualNumber = 128,   // and the number is one of the domain's reserved entries
  kAnsweredByAck = 32,    // set by a wire that says "ok" by acknowledging the packet; other answers are sent
};

// One packet's header. `address`, `length` name the whole operation, `offset` and `payload_bytes` the part of
// it that this packet carries, so that every packet can be checked alone.
struct PacketHeader {
  Verb verb = Verb::none;
  std::uint8_t command = 0;         // AMO command of the AMO unit
  std::uint16_t flags = 0;          // PacketFlags
  ProcessSlot source = 0;           // initiator
  std::uint16_t domain = 0;         // communication domain that the initiator belongs to
  std::uint32_t transaction = 0;    // the initiator's name for the operation, returned as it is
  std::uint32_t payload_bytes = 0;  // bytes that follow this header
  std::uint16_t key_index = 0;      // the target's registration-table entry
  std::uint16_t key_generation = 0;
  std::uint8_t status = 0;  // Errc, in a response
  std::uint8_t reserved[3] = {};
  std::uint64_t address = 0;      // target virtual address, or offset in a segmented registration
  std::uint64_t length = 0;       // bytes of the whole operation
  std::uint64_t offset = 0;       // where this packet's payload belongs
  std::uint64_t event_data = 0;   // what the target's event says
  std::uint64_t operand[2] = {};  // AMO operands; sync flag value
  std::uint64_t aux = 0;          // sync flag address
  std::uint64_t match_bits = 0;   // list-matching verbs
  std::uint64_t part_bytes = 0;   // a get or AMO: how much of it this packet is for
};
static_assert(sizeof(PacketHeader) == 96);
static_assert(std::is_trivially_copyable_v<PacketHeader>);
static_assert(offsetof(PacketHeader, transaction) == 8 && offsetof(PacketHeader, key_index) == 16 &&
              offsetof(PacketHeader, status) == 20 && offsetof(PacketHeader, address) == 24 &&
              offsetof(PacketHeader, length) == 32 && offsetof(PacketHeader, offset) == 40 &&
              offsetof(PacketHeader, event_data) == 48 && offsetof(PacketHeader, operand) == 56 &&
              offsetof(PacketHeader, aux) == 72 && offsetof(PacketHeader, match_bits) == 80 &&
              offsetof(PacketHeader, part_bytes) == 88);

// Whether a request that went well is answered with bytes.
inline bool answer_has_data(const PacketHeader& header) {
  const Answer answer = traits(header.verb).answer;
  return answer == Answer::data || (answer == Answer::fetched && (header.flags & kFetching) != 0);
}

struct Packet {
  PacketHeader header;
  std::span<const std::byte> payload;  // lives for the call
};

struct ShortFrame;

// Takes packets off a wire. Implemented by the NIC; handed to a wire at construction.
class Sink {
 public:
  // Applies one packet. Called by the thread that polls the wire. Must not block.
  virtual void deliver(const Packet& packet) = 0;
  // Applies a packet of one line as a lane holds it. False: nothing was done, and deliver() gets it.
  virtual bool deliver_line(const ShortFrame&) { return false; }

 protected:
  ~Sink() = default;
};

}  // namespace orrery::wire
