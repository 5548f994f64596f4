// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/program_calls.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <thread>

#include <poll.h>

namespace {

int poll_of_libc() {
  ORRERY_REAL(poll);
  return real_call(nullptr, 0, 0);
}

// ThreadSanitizer tells if one thread writes what the other reads.
TEST(ProgramCalls, TwoThreadsLookACallUpAtOnce) {
  std::barrier<> start(2);
  int answers[2] = {-1, -1};
  const auto call = [&](int thread) {
    start.arrive_and_wait();
    answers[thread] = poll_of_libc();
  };
  std::thread other(call, 1);
  call(0);
  other.join();
  EXPECT_EQ(answers[0], 0);
  EXPECT_EQ(answers[1], 0);
}

TEST(ProgramCalls, ACallThatLibcDoesNotHaveIsNull) {
  std::atomic<void*> kept{nullptr};
  EXPECT_EQ(orrery::clock::real(kept, "orrery_no_such_call"), nullptr);
}

}  // namespace
