// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/collective/collective_engine.hpp"
#include "emu/nic/events/completion_queue.hpp"
#include "emu/nic/events/poll_count.hpp"
#include "emu/nic/events/record_queue.hpp"
#include "emu/nic/gate/delays.hpp"
#include "emu/nic/gate/suspend.hpp"
#include "emu/nic/gate/triggered_put.hpp"
#include "emu/nic/memory/regions.hpp"
#include "emu/nic/message/channel.hpp"
#include "emu/nic/state/mover.hpp"
#include "emu/nic/transport/peers.hpp"
#include "emu/nic/transport/transport.hpp"

#include <cstdint>

namespace orrery::nic {

// Looks after all units of a NIC: a thread of the program that polls does it in passing, the service thread
// when no other thread looks. It also tells the units of the death of peers.
// Threads: progress calls: any. serve calls, peer_died(): the service thread.
// Usage: attendant.progress(source);  // a thread that polls
//        attendant.serve();           // the host's event loop
class Attendant final : public Mover {
 public:
  // What it looks after; all of it outlives the attendant's calls.
  struct Units {
    PeerTable& peers;
    Regions& regions;
    Transport& transport;
    Triggered& triggered;
    Delays& delays;
    Suspension& suspension;
    ChannelUnit& channels;
    RecordQueues& record_queues;
    CollectiveEngine& collective;
  };
  Attendant(HostServices& services, Pending& pending, const Units& units)
      : services_(services),
        pending_(pending),
        view_(pending.view),
        clock_(services.clock()),
        board_(services.hazard_board()),
        units_(units) {}
  Attendant(const Attendant&) = delete;
  Attendant& operator=(const Attendant&) = delete;

  // ---- a thread of the program ----
  bool move_along() override;
  bool progress(const void* source) override;
  void move_in_turn() override {
    (void)move_along();
    units_.collective.progress_in_turn();
  }
  void hand_frames_back() override;
  // A poll that found nothing, and nothing to move along, and was one of many.
  void after_idle_polls();
  // A look at `queue`, which was empty, after all has been moved along.
  Errc progress_and_take(CompletionQueue& queue, Event* event);

  // ---- the service thread ----
  // Its share; returns whether it has to be called again soon, without being rung.
  bool serve();
  static constexpr std::int64_t kServicePeriodNs = 200'000;
  bool serve_wire();  // when the wire's descriptor or timer says so; returns whether more is to be done soon
  // Whether the program has polled since the last serve(), and so moves the wire itself.
  bool program_polls() const { return pending_.polls.value() != polls_seen_; }
  void peer_died(ProcessName process);  // its outstanding operations end in `unreachable`

 private:
  HostServices& services_;
  Pending& pending_;
  const NicView view_;
  clock::Clock* const clock_;
  HazardBoard* const board_;
  const Units units_;
  PollStreak streak_;
  std::uint64_t polls_seen_ = 0;  // service thread
  int idle_ticks_ = 0;            // service thread
};

}  // namespace orrery::nic
