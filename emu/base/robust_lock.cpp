// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/robust_lock.hpp"

#include "emu/base/wait.hpp"

#include <cerrno>
#include <cstdint>

#include <time.h>

namespace orrery {

namespace {

constexpr std::int64_t kLookAgainNs = 50'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;

// Waits at most so long.
int lock_for_a_moment(pthread_mutex_t& mutex) {
#ifdef __SANITIZE_THREAD__
  // The call below is unknown to ThreadSanitizer.
  timespec until{};
  clock_gettime(CLOCK_REALTIME, &until);
  ++until.tv_sec;
  return pthread_mutex_timedlock(&mutex, &until);
#else
  const std::int64_t at = monotonic_ns() + kLookAgainNs;
  const timespec until{static_cast<time_t>(at / kSecond), static_cast<long>(at % kSecond)};
  return pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &until);
#endif
}

}  // namespace

int lock_robust(pthread_mutex_t& mutex) {
  for (;;) {
    const int got = lock_for_a_moment(mutex);
    if (got != ETIMEDOUT) return got;
  }
}

}  // namespace orrery
