// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/events/completion.hpp"
#include "emu/nic/state/request.hpp"
#include "emu/wire/packet.hpp"

#include <cstdint>

namespace orrery::nic {

struct Peer;

// One operation as an API asks for it, and, once the NIC has taken it, complete in itself: whatever carries
// it needs to know nothing of the endpoint that it was posted to. A value. Addresses are virtual addresses of
// the owning process, or offsets when the key says kSegmented.
struct Request {
  Op op = Op::put;
  std::uint8_t command = 0;         // AMO command (amo_unit.hpp)
  std::uint16_t delivery_mode = 0;  // how packets are routed, in uGNI's bits; matters to a clock alone
  std::uint32_t flags = 0;          // RequestFlags
  std::uint64_t local_address = 0;  // source of a put, destination of a get or fetching AMO
  std::uint64_t remote_address = 0;
  std::uint64_t length = 0;  // bytes; of an AMO: of the target's words
  MemKey local;              // optional for puts
  MemKey remote;
  std::uint64_t operand[2] = {};  // AMO operands
  std::uint64_t sync_address = 0;
  std::uint64_t sync_value = 0;
  std::uint64_t cq_data = 0;  // what a cq_write writes (48 bits); the id of a message
  void* context = nullptr;    // handed back by CompletionQueue::completed()
  // Its sinks. An API may name a queue (else it is the endpoint's) and sinks that no endpoint has; the rest
  // is the NIC's.
  Completion completion;

  // ---- where it goes; set by the NIC when it takes the request (Initiator::address) ----
  Peer* peer = nullptr;
  std::uint32_t remote_event_data = 0;  // data of the target's event
  std::uint16_t domain = 0;             // of the port that it was posted through
};

// The header of its packets, but for what each packet has of its own. `self`: the process that posts it.
wire::PacketHeader header_of(const Request& request, wire::ProcessSlot self);

// What became of a request that was begun.
struct Begun {
  enum class Kind : std::uint8_t {
    ended,     // with `status`, which no sink has been told yet
    accepted,  // its end comes later, and its carrier tells it
    no_room,   // nothing happened: try again
  };
  Kind kind = Kind::ended;
  Errc status = Errc::ok;

  // What a call says that hands it on: not_done (accepted), no_resource (no room), or how it ended.
  static constexpr Begun handed_on(Errc said) {
    return {said == Errc::not_done      ? Kind::accepted
            : said == Errc::no_resource ? Kind::no_room
                                        : Kind::ended,
            said};
  }
  static constexpr Begun ended(Errc status) { return {Kind::ended, status}; }
};

}  // namespace orrery::nic
