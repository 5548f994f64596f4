// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/state/address_map.hpp"
#include "emu/nic/state/nic_state.hpp"
#include "emu/wire/packet.hpp"

#include <cstdint>
#include <span>

// The target side of every operation, in one place: a packet applied to a NIC's state and memory. Any caller:
// the initiator, when it can reach the target's memory, or a thread of the target that took the packet off a
// wire.
namespace orrery::nic {

// A NIC as a packet meets it.
struct Target {
  NicView nic;
  AddressMap* memory = nullptr;
  // Puts and gets go by the kernel, past the protection that its owner has given the memory since.
  bool is_protected = false;
};

// Applies one packet. `out` receives a get's bytes, or what a fetching AMO found, and must be
// header.part_bytes long for these, empty otherwise. Order: data, then the sync flag, then the target's
// event: each visible before the next. Returns ok, or invalid_handle, protection, permission, bounds,
// alignment, illegal_op, and then nothing was changed; a full queue at the target is the target's loss (its
// overrun word), not an error here. Not blocking; any thread. REQUIRES: the caller keeps the registration
// alive (hazard, or it owns the NIC).
Errc execute(const Target& target, const wire::PacketHeader& header, std::span<const std::byte> payload,
             std::span<std::byte> out);

// The parts of execute() that the initiator's fast path uses alone.

// Stores `bytes` so that naturally aligned words of 1, 2, 4 or 8 bytes appear whole, and everything before
// them is visible first.
void store_bytes(std::byte* to, const std::byte* from, std::size_t bytes);
// Loads likewise.
void load_bytes(std::byte* to, const std::byte* from, std::size_t bytes);

// Raises the event of a registration's queue, if it has one. `word` is the entry's control word.
void raise_remote_event(const NicView& nic, std::uint64_t word, EventKind kind, std::uint64_t data);

}  // namespace orrery::nic
