// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The parts of clock_worker that get: what a get brings is there at its time, whatever the others do.
#include "tests/lib/gni/clock_world.hpp"

#include <cinttypes>
#include <cstdio>

#include <unistd.h>

namespace clock_worker {

namespace {

// Nothing looks at the target's node while it sleeps, and what PE 2 put there comes before what is read.
void polled_get(World& w, bool target_sleeps, bool putter_sleeps) {
  PMI_Barrier();
  const std::int64_t start = now_ns();
  if (w.rank() == 1 && target_sleeps) usleep(100);
  if (w.rank() == 2) {
    auto pd = w.put(1, 8192, 8, GNI_CQMODE_GLOBAL_EVENT);
    w.post(1, pd);
    if (putter_sleeps) usleep(100);
    w.reap();
  }
  if (w.rank() == 0) {
    usleep(1);
    auto* landing = reinterpret_cast<volatile std::uint64_t*>(w.local + 4096);
    *landing = UINT64_MAX;
    auto pd = w.put(1, 64, 8, GNI_CQMODE_GLOBAL_EVENT, GNI_POST_FMA_GET);
    pd.local_addr = reinterpret_cast<std::uint64_t>(landing);
    w.post(1, pd);
    while (*landing == UINT64_MAX) {
    }
    const std::int64_t data = now_ns() - start;
    w.reap();
    std::printf("data after %" PRId64 " ns, event after %" PRId64 " ns\n", data, now_ns() - start);
  }
}

}  // namespace

void polled_gets(World& w) {
  for (const bool target_sleeps : {false, true}) {
    for (const bool putter_sleeps : {false, true}) polled_get(w, target_sleeps, putter_sleeps);
  }
}

void told_gets(World& w) {
  auto* const words = reinterpret_cast<volatile std::uint64_t*>(w.window);
  PMI_Barrier();
  const std::int64_t start = now_ns();
  if (w.rank() == 0) {
    auto pd = w.put(1, 64, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT, GNI_POST_FMA_GET);
    w.post(1, pd);
    usleep(100);
    w.reap();
  }
  if (w.rank() == 1) {
    (void)w.await_remote();
    std::printf("PE 1: told after %" PRId64 " ns\n", now_ns() - start);
    *reinterpret_cast<std::uint64_t*>(w.local) = 7;
    auto pd = w.put(2, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    w.post(2, pd);
    w.reap();
  }
  if (w.rank() == 2) {
    usleep(50);
    std::printf("PE 2: reads %" PRIu64 "\n", words[0]);
  }
}

}  // namespace clock_worker
