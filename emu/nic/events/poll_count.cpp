// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/events/poll_count.hpp"

#include "emu/base/wait.hpp"

#include <algorithm>

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace orrery::nic {

namespace {

// A thread that was given the core and had it for less did not spin.
constexpr std::int64_t kMomentNs = 100'000;
// How long the core is kept after that: some time slices at first, and longer each time.
constexpr std::int64_t kFirstNs = 16'000'000;
constexpr std::int64_t kLongestNs = 256'000'000;
// A yield that took longer gave whole time slices away: to programs that poll nothing of ours, or to a thread
// that spins. Since a kernel may also charge a yield as a whole slice used (Linux 6.18 does), such programs
// then have the core nearly alone. A thread that has slept comes before them: it sleeps instead of the next
// yields.
constexpr std::int64_t kLongYieldNs = 1'000'000;
constexpr std::int64_t kNapNs = 20'000;
constexpr std::uint32_t kNaps = 64;

// What the threads of this process have used of the processors.
std::int64_t process_ns() {
  timespec used{};
  syscall(SYS_clock_gettime, CLOCK_PROCESS_CPUTIME_ID, &used);
  return static_cast<std::int64_t>(used.tv_sec) * 1'000'000'000 + used.tv_nsec;
}

}  // namespace

void PollCount::yield_core() {
  const std::int64_t begin = monotonic_ns();
  if (begin < keeps_until_.load(std::memory_order_relaxed)) return;
  thread_local std::uint32_t naps_left = 0;
  if (naps_left != 0) {
    --naps_left;
    FutexWord never{0};
    (void)futex_wait_for(never, 0, kNapNs);
    return;
  }
  const std::int64_t used = process_ns();
  yield_cpu();
  const std::int64_t end = monotonic_ns();
  if (end - begin < kMomentNs) return;
  if (end - begin > kLongYieldNs) naps_left = kNaps;
  std::int64_t keep = 0;
  // Most of it went to a thread of ours, which may spin for a lock around this look.
  if (process_ns() - used > (end - begin) / 2)
    keep = std::clamp(2 * kept_for_.load(std::memory_order_relaxed), kFirstNs, kLongestNs);
  kept_for_.store(keep, std::memory_order_relaxed);
  keeps_until_.store(end + keep, std::memory_order_relaxed);
}

}  // namespace orrery::nic
