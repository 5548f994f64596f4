// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <type_traits>

// The order of locks, as a layer's table says it (emu/nic/state/lock_rank.hpp). A thread that holds a lock
// waits only for locks of a higher rank, so no two threads wait for each other. ORRERY_CHECK_LOCKS makes a
// build abort at the first lock that is taken against the order, with the names of both locks.
namespace orrery {

namespace lock_order {

// The calling thread is about to take a lock. `waits`: it would wait for it; a lock that is only tried for
// comes at any time.
void taking(int rank, const char* name, bool waits);
void taken(int rank, const char* name);
void left(int rank);

// A lock that checks. kRank is an enumerator of a table, whose name_of(kRank) is found beside it.
template <typename Mutex, auto kRank>
class Checked {
 public:
  Checked() = default;
  Checked(const Checked&) = delete;
  Checked& operator=(const Checked&) = delete;

  void lock() {
    taking(static_cast<int>(kRank), name_of(kRank), true);
    mutex_.lock();
    taken(static_cast<int>(kRank), name_of(kRank));
  }
  bool try_lock() {
    if (!mutex_.try_lock()) return false;
    taken(static_cast<int>(kRank), name_of(kRank));
    return true;
  }
  void unlock() {
    left(static_cast<int>(kRank));
    mutex_.unlock();
  }

 private:
  Mutex mutex_;
};

}  // namespace lock_order

#if defined(ORRERY_CHECK_LOCKS)
template <typename Mutex, auto kRank>
using OrderedLock = lock_order::Checked<Mutex, kRank>;
#else
template <typename Mutex, auto kRank>
using OrderedLock = Mutex;
#endif

}  // namespace orrery
