// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/unique_fd.hpp"
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
// channel event. It starts with the first queue that is armed.
//
// Threads: arm, attach, take: any. Invariants: (1) the descriptor is readable as long as fired_ is not empty;
// (2) a queue is in armed_ at most once, and leaves it when it fires.
struct CompChan {
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
  // The queue of the oldest channel event; 0 when there is none.
  std::uint64_t take();

  nic::Nic* nic = nullptr;
  Attachment* attachment = nullptr;
  std::uint64_t handle = 0;
  UniqueFd fd;
  std::uint32_t attached = 0;  // queues; the client's thread
  Stays stays;

 private:
  void run();

  std::mutex mu_;
  std::vector<Cq*> armed_;           // guarded by mu_
  std::deque<std::uint64_t> fired_;  // handles of queues, guarded by mu_
  bool running_ = false;             // guarded by mu_
  bool asleep_ = false;              // the thread uses a copy of armed_, guarded by mu_
  std::atomic<std::uint32_t> changes_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace orrery::gni
