// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/clock/clock.hpp"
#include "emu/nic/events/completion_queue.hpp"
#include "emu/nic/events/poll_count.hpp"
#include "emu/nic/state/host_services.hpp"
#include "emu/nic/state/mover.hpp"
#include "emu/nic/transport/peers.hpp"
#include "emu/nic/transport/pending.hpp"
#include "emu/nic/transport/transport.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace orrery::nic {

// Looks after all units of a NIC: a thread of the program that polls does it in passing, the service thread
// when no other thread looks. It also tells the units of the death of peers. It moves frames itself; every
// other unit is a row that it is made to look after, and is called after the frames, in the order of the
// rows.
// Threads: progress calls: any. serve calls, peer_died(): the service thread. look_after(): before them.
// Usage: attendant.look_after({.poll = poll});
//        attendant.progress(source);  // a thread that polls
//        attendant.serve();           // the host's event loop
class Attendant final : public Mover {
 public:
  // What the service thread found at a unit.
  enum class Share : std::uint8_t {
    idle,
    busy,  // something was there: there may be more soon
    owed,  // the unit waits for a time: the service thread comes on its period, although the program polls
  };
  // What is called of a unit; each may be empty.
  struct Row {
    std::function<bool()> poll;     // by a thread that polls; returns whether anything may have come of it
    std::function<void()> in_turn;  // by the thread that has the turn of a virtual clock
    std::function<Share()> serve;   // the service thread's share
    std::function<bool()>
        last_look;  // what must not wait while the service thread sleeps; whether it was there
    std::function<void(ProcessName)> peer_died;  // what the process has sent has been taken in
  };

  Attendant(HostServices& services, Pending& pending, PeerTable& peers, Transport& transport)
      : services_(services),
        pending_(pending),
        view_(pending.view),
        clock_(services.clock()),
        board_(services.hazard_board()),
        peers_(peers),
        transport_(transport) {}
  Attendant(const Attendant&) = delete;
  Attendant& operator=(const Attendant&) = delete;

  void look_after(Row unit);

  // ---- a thread of the program ----
  // Next event of `queue`, after letting the NIC progress if there is none. Errors: not_done, overrun. One
  // thread for each queue.
  [[gnu::always_inline]] Errc poll(CompletionQueue& queue, Event* event) {
    const Errc found = queue.take(event);
    if (found != Errc::not_done) [[likely]]
      return found;
    // A caller that waits for a message's event reads the message next: its line comes with the event's.
    __builtin_prefetch(pending_.awaited_message.load(std::memory_order_relaxed));
    if (pending_.is_quiet()) [[likely]] {
      count_idle_poll();
      return Errc::not_done;
    }
    return progress_and_take(queue, event);
  }
  // Where the caller will probably look for the next message. The thread that polls.
  void await_message(const std::byte* at) { pending_.awaited_message.store(at, std::memory_order_relaxed); }
  // A look at `source` found nothing: whatever is under way is moved along, and under a clock time passes.
  void looked_in_vain(const void* source) {
    if (pending_.is_quiet()) [[likely]]
      count_idle_poll();
    else
      (void)progress(source);
  }
  bool move_along() override;
  bool progress(const void* source) override;
  void move_in_turn() override;
  void hand_frames_back() override;
  // A look at `queue`, which was empty, after all has been moved along.
  Errc progress_and_take(CompletionQueue& queue, Event* event);

  // ---- the service thread ----
  // Its share; returns whether it has to be called again soon, without being rung.
  bool serve();
  static constexpr std::int64_t kServicePeriodNs = 200'000;
  bool serve_wire();  // when the wire's descriptor or timer says so; returns whether more is to be done soon
  std::uint64_t polls() const { return pending_.polls.value(); }  // by all the program's threads, so far
  // Whether the program has polled since the last serve(), and so moves the wire itself.
  bool program_polls() const { return polls() != polls_seen_; }
  void peer_died(ProcessName process);  // its outstanding operations end in `unreachable`

 private:
  void count_idle_poll() {
    if (pending_.polls.add()) [[unlikely]]
      after_idle_polls();
  }
  void after_idle_polls();
  void take_turn();
  bool look_once_more();

  HostServices& services_;
  Pending& pending_;
  const NicView view_;
  clock::Clock* const clock_;
  HazardBoard* const board_;
  PeerTable& peers_;
  Transport& transport_;
  // Of the rows, by what is called.
  std::vector<std::function<bool()>> polls_;
  std::vector<std::function<void()>> turns_;
  std::vector<std::function<Share()>> serves_;
  std::vector<std::function<bool()>> last_looks_;
  std::vector<std::function<void(ProcessName)>> deaths_;
  PollStreak streak_;
  std::uint64_t polls_seen_ = 0;  // service thread
  int idle_ticks_ = 0;            // service thread
};

}  // namespace orrery::nic
