// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/events/poll_count.hpp"
#include "emu/nic/state/nic_state.hpp"
#include "emu/wire/ring_wire.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace orrery::nic {

// What a poll that finds nothing looks at, in two lines: whether anything is under way or has arrived.
// Threads: each word has its writer; any thread reads.
struct alignas(kCacheLine) Pending {
  // `always`: there is a clock, or faults. `crowded`: PEs share cores.
  Pending(const NicView& nic, bool always, bool crowded) : view(nic), always_moves(always), polls(crowded) {}

  // Without the lock of frames: a later frame is found by the next look. Acquire: pairs with
  // Transport::find_lanes.
  bool nothing_arrived() const {
    if (next_frames_for.load(std::memory_order_acquire) !=
        view.service().lane_changes.load(std::memory_order_relaxed))
      return false;
    for (const auto& next : next_frames) {
      const std::byte* const line = next.load(std::memory_order_relaxed);
      if (line == nullptr) return true;
      if (wire::RingConsumer::holds_frame(line)) return false;
    }
    return true;
  }
  bool has_outstanding() const { return outstanding.load(std::memory_order_relaxed) != 0; }
  bool has_lanes() const { return view.service().lane_changes.load(std::memory_order_relaxed) != 0; }
  // Whether a poll has nothing to move along, as far as frames, clocks and faults go.
  bool is_quiet() const {
    return !always_moves.load(std::memory_order_relaxed) && !has_outstanding() &&
           (!has_lanes() || nothing_arrived());
  }

  const NicView view;
  std::atomic<bool> always_moves;  // there is a clock, a wire, a trigger or a fault: polls look further
  std::atomic<std::uint32_t> outstanding{0};  // requests that travel as packets; counted by the transport
  PollCount polls;
  std::atomic<const std::byte*> awaited_message{nullptr};
  // Where the next frame of each of the first lanes will begin. Written by the transport.
  std::atomic<std::uint32_t> next_frames_for{0};  // lane_changes that next_frames covers; 0: not all
  std::array<std::atomic<const std::byte*>, 8> next_frames{};
};

}  // namespace orrery::nic
