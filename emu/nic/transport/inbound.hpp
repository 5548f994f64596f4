// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/wire/ring_wire.hpp"

#include <cstdint>

// What a NIC holds of a process that sends frames to it.
namespace orrery::nic {

// The operation that the last packet from a process belonged to.
struct Parts {
  std::uint32_t transaction = 0;
  Errc failed = Errc::ok;  // how its last packet ended
};

// One process that sends frames to us.
struct Inbound {
  wire::RingConsumer requests;
  wire::RingProducer responses;
  bool opened = false;
  bool open = false;  // false after opened: its producer broke the protocol
  Parts parts;
};

}  // namespace orrery::nic
