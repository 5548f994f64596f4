// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Threads that take turns at a NIC by a spin lock of their own (Open MPI's btl ugni does), on one core, in a
// job whose PEs share cores: there a look that finds nothing gives the core away now and then, to a thread
// that spins for the lock under which the look is made.
#include "tests/lib/gni/client.hpp"

#include <atomic>
#include <mutex>
#include <thread>

#include <sched.h>

namespace {

// Before the job is joined: a PE spins so often before it takes the cores for shared.
[[maybe_unused]] const int g_crowded = setenv("ORRERY_SPINS", "0", 1);

class SpinLock {
 public:
  void lock() {
    while (taken_.test_and_set(std::memory_order_acquire)) {
    }
  }
  void unlock() { taken_.clear(std::memory_order_release); }

 private:
  std::atomic_flag taken_ = ATOMIC_FLAG_INIT;
};

void stay_on_one_core() {
  cpu_set_t allowed;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  int core = 0;
  while (!CPU_ISSET(core, &allowed)) ++core;
  CPU_ZERO(&allowed);
  CPU_SET(core, &allowed);
  ASSERT_EQ(sched_setaffinity(0, sizeof allowed, &allowed), 0);
}

// Ends only if the other thread gets the lock again and again.
TEST(ClientLock, GoesToTheThreadThatSpinsForItWhileAnotherLooks) {
  client::Domain domain;
  const gni_cq_handle_t queue = domain.queue(16);
  stay_on_one_core();
  SpinLock turns;
  std::atomic<int> looks{0};
  std::atomic<bool> done{false};
  const auto look = [&] {
    const std::lock_guard turn(turns);
    gni_cq_entry_t event = 0;
    EXPECT_EQ(GNI_CqGetEvent(queue, &event), GNI_RC_NOT_DONE);
  };
  std::thread looker([&] {
    while (!done.load()) {
      look();
      ++looks;
    }
  });
  for (int i = 0; i < 10; ++i) {
    // The other one is at it: often enough to have given the core away.
    for (const int seen = looks.load(); looks.load() < seen + 1000;) sched_yield();
    look();
  }
  done.store(true);
  looker.join();
  EXPECT_EQ(GNI_CqDestroy(queue), GNI_RC_SUCCESS);
}

}  // namespace
