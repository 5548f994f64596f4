// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/robust_lock.hpp"
#include "emu/nic/target/match_state.hpp"

#include <cerrno>
#include <mutex>

namespace orrery::common {

// The turn of one operation that reads a process's memory and writes it again: one at a time, whichever
// process carries it out. A holder that died has done its bytes or not; nothing has to be taken back.
// Threads: any, of any process; not recursive. Nothing else is locked under it.
class MatchTurn {
 public:
  explicit MatchTurn(const nic::match::View& view) : mutex_(view.header().atomics) {
    if (lock_robust(mutex_) == EOWNERDEAD) pthread_mutex_consistent(&mutex_);
  }
  // Does not wait: is_held() says whether it is this thread's.
  MatchTurn(const nic::match::View& view, std::try_to_lock_t) : mutex_(view.header().atomics) {
    const int got = pthread_mutex_trylock(&mutex_);
    if (got == EOWNERDEAD) pthread_mutex_consistent(&mutex_);
    held_ = got == 0 || got == EOWNERDEAD;
  }
  ~MatchTurn() {
    if (held_) pthread_mutex_unlock(&mutex_);
  }
  bool is_held() const { return held_; }
  MatchTurn(const MatchTurn&) = delete;
  MatchTurn& operator=(const MatchTurn&) = delete;

 private:
  pthread_mutex_t& mutex_;
  bool held_ = true;
};

}  // namespace orrery::common
