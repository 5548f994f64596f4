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
  // Why polls look further than at frames, besides a request under way.
  enum Attention : std::uint32_t {
    kHoldsBack = 1,  // what was posted may not have begun: there is a clock, a wire, a trigger or a fault
    kMoves = 2,      // a unit has been used whose row of the attendant has something to move
  };

  // `always`: there is a clock, or faults. `crowded`: PEs share cores.
  Pending(const NicView& nic, bool always, bool crowded)
      : view(nic), attention(always ? kHoldsBack : std::uint32_t{0}), polls(crowded) {}

  // From now on polls call the rows of the attendant. Any thread; for good.
  void ask_for_polls(Attention why) {
    if ((attention.load(std::memory_order_relaxed) & why) == 0)
      attention.fetch_or(why, std::memory_order_relaxed);
  }
  // Whether something that was posted may be under way or held back. Acquire: each event is in its ring
  // before its outstanding request is counted out.
  bool holds_operations() const {
    return outstanding.load(std::memory_order_acquire) != 0 ||
           (attention.load(std::memory_order_relaxed) & kHoldsBack) != 0;
  }

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
  // Whether a poll has nothing to move along.
  bool is_quiet() const {
    return attention.load(std::memory_order_relaxed) == 0 && !has_outstanding() &&
           (!has_lanes() || nothing_arrived());
  }

  const NicView view;
  std::atomic<std::uint32_t> attention;       // of Attention
  std::atomic<std::uint32_t> outstanding{0};  // requests that travel as packets; counted by the transport
  PollCount polls;
  std::atomic<const std::byte*> awaited_message{nullptr};
  // Where the next frame of each of the first lanes will begin. Written by the transport.
  std::atomic<std::uint32_t> next_frames_for{0};  // lane_changes that next_frames covers; 0: not all
  std::array<std::atomic<const std::byte*>, 8> next_frames{};
};

}  // namespace orrery::nic
