// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

namespace orrery::nic {

// What a thread that waits for something calls meanwhile, so that its NIC goes on.
// Threads: any.
class Mover {
 public:
  // Applies what arrived and continues what is under way. Returns whether anything may have come of it.
  virtual bool move_along() = 0;
  // The same after a look at `source` that found nothing (Clock::idle): under a clock time passes too.
  virtual bool progress(const void* source) = 0;
  // move_along() by the thread that has the turn of a virtual clock.
  virtual void move_in_turn() = 0;
  // A thread that polled is about to sleep: the service thread takes frames in from now on.
  virtual void hand_frames_back() = 0;

 protected:
  ~Mover() = default;
};

}  // namespace orrery::nic
