// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/events/completion.hpp"
#include "emu/nic/state/request.hpp"
#include "emu/wire/host_wire.hpp"
#include "emu/wire/packet.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace orrery::nic {

struct Peer;

// One operation that travels as packets: what is still to be sent, what is still to be answered, and what its
// initiator is told in the end. The first error is kept.
struct Outstanding {
  Peer* peer = nullptr;
  Completion completion;
  std::uint32_t flags = 0;          // RequestFlags
  std::uint32_t response_flag = 0;  // with kResponseFlag
  Errc status = Errc::ok;
  wire::PacketHeader header;   // of every packet, but for offset, payload and flags
  std::byte* local = nullptr;  // source of a put, destination of a get
  // A copy of what was not sent when the post returned, except for block transfers: the program may change
  // its source then. Of a datagram: its payload, followed by space for the answer.
  std::vector<std::byte> kept;
  MemKey segments;         // valid: `local` is an offset in this registration's segments
  std::uint64_t sent = 0;  // bytes handed to the wire
  bool all_sent = false;
  std::uint32_t answers_due = 0;  // packets in flight
  std::uint32_t generation = 0;
  bool open = false;

  std::uint64_t offset_in_segments() const { return reinterpret_cast<std::uint64_t>(local); }

  // As made, but for its generation, and the header, which its opener writes.
  void start_anew() {
    peer = nullptr;
    completion = {};
    flags = response_flag = 0;
    status = Errc::ok;
    local = nullptr;
    if (!kept.empty()) kept = {};
    segments = {};
    sent = 0;
    all_sent = false;
    answers_due = 0;
  }
};

inline constexpr int kFramesPerPoll = 16;  // one lane's share before the next lane's turn

// Where a NIC puts payloads together. Not on the stack: what is called beneath so long an array finds a stack
// that nothing else keeps in the caches.
struct PayloadRoom {
  std::vector<std::byte> gathered;                            // from segments; guarded by frames_mu_
  std::array<std::byte, wire::kLongestWirePart> wire_answer;  // guarded by frames_mu_
  std::array<std::byte, wire::kLongestWirePart> lane_answer;  // guarded by requests_mu_
};

// Counts up or down what any thread reads and what is written under one lock: no locked instruction of its
// own. Release: a thread that sees it sees what was done before.
inline void count(std::atomic<std::uint32_t>& number, std::int32_t by) {
  number.store(number.load(std::memory_order_relaxed) + static_cast<std::uint32_t>(by),
               std::memory_order_release);
}

// The transactions that a NIC can have outstanding on the wire: 1,024, as the Aries NIC has packets.
// Names carry a generation (22 bits over 10 of the place), so that a late answer finds nothing; a process
// starts at a generation of its own, so that neither does one to a predecessor in its slot. Guarded by its
// owner.
class OutstandingTable {
 public:
  static constexpr std::uint32_t kCapacity = 1024;

  explicit OutstandingTable(std::uint32_t first_generation);
  // nullopt when all are in use.
  std::optional<std::uint32_t> open();
  // The outstanding request of that name, or nullptr.
  Outstanding* find(std::uint32_t name);
  void close(std::uint32_t name);
  std::uint32_t open_count() const { return open_count_; }
  // Names of all outstanding requests.
  std::vector<std::uint32_t> names() const;
  // Names of those to `peer`.
  std::vector<std::uint32_t> names_for(const Peer& peer) const;

 private:
  std::vector<Outstanding> outstanding_;
  std::vector<std::uint16_t> free_;
  std::uint32_t open_count_ = 0;
};

}  // namespace orrery::nic
