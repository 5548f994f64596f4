// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/state/host_services.hpp"
#include "emu/nic/state/nic_state.hpp"
#include "emu/wire/ring_wire.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include <sys/mman.h>

namespace orrery::nic {

// Operations by frame or attach on each registration of a peer: generation << 16 | count. Pages of their own:
// the system's zeroes, and only those that are counted in cost memory.
class HitCounts {
 public:
  HitCounts() : words_(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~HitCounts() {
    if (words_ != MAP_FAILED) munmap(words_, kBytes);
  }
  HitCounts(const HitCounts&) = delete;
  HitCounts& operator=(const HitCounts&) = delete;

  // For use through atomic_ref; null when there was no memory. REQUIRES: index < kMaxRegions.
  std::uint32_t* of(std::uint32_t index) {
    return words_ == MAP_FAILED ? nullptr : static_cast<std::uint32_t*>(words_) + index;
  }

 private:
  static constexpr std::size_t kBytes = kMaxRegions * sizeof(std::uint32_t);
  void* const words_;
};

// One process that our NIC talks to. The owner of its memory looks for our announcements from the
// construction on: it takes no pages away under an access that one of our hazard words announces.
struct Peer {
  explicit Peer(PeerRoute link, wire::ProcessSlot self)
      : link(std::move(link)),
        self(self),
        hazards(this->link.nic.hazards(self)),
        more_hazards(this->link.nic.more_hazards(self)) {
    this->link.nic.service().sources[self / 64].fetch_or(1ull << self % 64, std::memory_order_seq_cst);
  }

  // Our hazard word of that place in its segment (hazard.hpp, thread_word.hpp).
  std::atomic<std::uint64_t>& hazard(std::uint32_t place) {
    if (place < kHazardSlots) [[likely]]
      return hazards.slot[place];
    if (!has_many.load(std::memory_order_acquire)) [[unlikely]] {
      link.nic.service().many_threads[self / 64].fetch_or(1ull << self % 64, std::memory_order_seq_cst);
      has_many.store(true, std::memory_order_release);
    }
    return more_hazards.slot[place - kHazardSlots];
  }

  PeerRoute link;
  const wire::ProcessSlot self;  // ours
  HazardLine& hazards;           // our line in its segment
  MoreHazards& more_hazards;
  std::atomic<bool> has_many{false};  // its owner knows that we use `more_hazards`
  std::atomic<bool> dead{false};
  std::atomic<std::uint32_t> nic_address{UINT32_MAX};  // where it was found; all ones: not yet
  std::atomic<bool> lanes_refused{false};              // one side found bad bytes in them: no more frames
  HitCounts hits;
  // The same by extents of its address space: extent << 16 | count, the last that came of each place.
  std::array<std::atomic<std::uint64_t>, 64> extent_hits{};
  std::atomic<bool> no_attach{false};  // cross-memory attach was refused: do not ask again

  // Frames, guarded by the lock of frames (Transport).
  bool lanes_open = false;  // or the wire has connected it
  wire::RingProducer requests;
  wire::RingConsumer responses;
  std::uint32_t response_bytes_due = 0;
  // Requests of a predecessor in our slot whose answers were not taken: until they are served, up to
  // here in the request lane, and the answers are out, ours have to wait.
  bool inherits = false;
  std::uint64_t inherited_end = 0;
  std::deque<std::uint32_t> waiting;  // outstanding requests with packets still to be sent, oldest first
  // Operations in flight by frame. All frames without an answer count as one. Written under the NIC's
  // lock of frames (count()), read by any thread.
  std::atomic<std::uint32_t> in_flight{0};
  bool unacknowledged = false;           // some may not have been taken out yet,
  std::uint64_t unacknowledged_end = 0;  // which the last of them ends here in the request lane
  std::uint32_t refusals_seen = 0;       // of our frames that it refused without an answer
};

// Whether a target has to be rung for a frame that was just published. The target pays for the barrier
// between our store of the frame and this load (Attendant::serve), where the kernel has one to give.
inline bool sleeps(const Peer& peer) {
  auto& poller = peer.link.nic.service().poller;
  if (peer.link.strong_hazards) [[unlikely]] {
    Poller expected = Poller::none;
    return poller.compare_exchange_strong(expected, Poller::none, std::memory_order_seq_cst);
  }
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return poller.load(std::memory_order_acquire) == Poller::none;
}

}  // namespace orrery::nic
