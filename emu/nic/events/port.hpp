// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/events/error_log.hpp"
#include "emu/nic/state/nic_state.hpp"

#include <array>
#include <atomic>
#include <cstdint>

namespace orrery::nic {

// One sign-on of a process to its NIC: a domain and an instance number (uGNI's CDM attached to a device).
// Owned by the NIC, from Nic::open_port to close_port; must outlive its endpoints.
struct Port {
  std::uint16_t domain = 0;
  std::uint32_t nic_address = 0;
  std::uint32_t instance = 0;
  std::uint32_t hazard_slot = 0;       // which word of a board's line its FMA windows use
  std::uint32_t max_retransmits = 10;  // how often a message that met a fault is retransmitted
  std::uint32_t message_order = 8;     // kInOrder, or 0: messages may overtake each other on their way
  std::atomic<std::uint32_t> retransmitted{0};  // messages of this port that were retransmitted
  // Which threads are on the general path of an operation (PostGate): those that have a hazard word, by its
  // place, each writing its own; and how many of the others.
  std::array<std::atomic<std::uint8_t>, kHazardSlots + kMoreHazardSlots> posting{};
  std::atomic<std::uint32_t> others_posting{0};
  ErrorLog* errors = nullptr;  // of the NIC
  // Hears of each operation that failed, on whatever thread found out. Set by the API before the first post.
  // Called with locks of the NIC held: it may end the process or note the event, but neither wait nor call
  // the NIC.
  void (*on_error)(void* self, const ErrorEvent& event) = nullptr;
  void* on_error_self = nullptr;

  // An operation that was posted through this port has failed. Any thread.
  void report(const ErrorEvent& event) const {
    if (errors != nullptr) errors->report(event);
    if (on_error != nullptr) on_error(on_error_self, event);
  }
};

}  // namespace orrery::nic
