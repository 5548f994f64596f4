// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/unique_fd.hpp"
#include "emu/clock/descriptor_feed.hpp"
#include "lib/gni/objects.hpp"

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

namespace orrery::gni {

// A completion channel: what a gni_comp_chan_handle_t stands for. Its descriptor is an eventfd that counts
// the channel events that wait to be taken. Producers of queue events know nothing of it: a thread of the
// channel sleeps on the queues that are armed, as any waiter does, and turns the first event of each into a
// channel event. It starts with the first queue that is armed. In virtual time that thread may come too late:
// each look at the descriptor, and each GNI_CompChanGetEvent, does its work first.
//
// Threads: arm, attach, take: any. Invariants: (1) the descriptor is readable as long as fired_ is not empty;
// (2) a queue is in armed_ at most once, and leaves it when it fires.
struct CompChan final : clock::DescriptorFeed {
  CompChan() = default;
  ~CompChan() { stop(); }
  CompChan(const CompChan&) = delete;
  CompChan& operator=(const CompChan&) = delete;

  bool open();
  // False: there is no room for its thread.
  bool arm(Cq& cq);
  void forget(Cq& cq);
  void stop();
  // Ends the calls that wait for a channel event; as Stays::end. One that came back finds no event.
  bool end_stays();
  // Makes channel events of what has come to the armed queues.
  void feed() override;
  // The queue of the oldest channel event, in virtual time of the one that was armed first; 0 when there is
  // none.
  std::uint64_t take();
  bool is_virtual() const { return !in_slices(*nic); }

  nic::Nic* nic = nullptr;
  Attachment* attachment = nullptr;
  std::uint64_t handle = 0;
  UniqueFd fd;
  std::uint32_t attached = 0;  // queues; the client's thread
  Stays stays;

 private:
  struct Armed {
    Cq* cq = nullptr;
    std::uint64_t serial = 0;
  };
  struct Fired {
    std::uint64_t queue = 0;  // its handle
    std::uint64_t serial = 0;
  };
  void run();
  void fire();

  std::mutex mu_;
  std::vector<Armed> armed_;  // guarded by mu_
  std::deque<Fired> fired_;   // guarded by mu_
  std::uint64_t arms_ = 0;    // so far, guarded by mu_
  bool feeds_ = false;        // the program's looks at descriptors call feed(); the thread that opened it
  bool running_ = false;      // guarded by mu_
  bool asleep_ = false;       // the thread uses a copy of armed_, guarded by mu_
  std::atomic<std::uint32_t> changes_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace orrery::gni
