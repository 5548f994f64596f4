// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/base/call_while.hpp"
#include "tests/emu/stepper.hpp"
#include "tests/require.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <new>

#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace orrery {
namespace {

using Outcome = CallWhile::Outcome;

// Adds one to an eventfd's count, so that the kernel counts the calls that were made.
CallWhile add_one(const std::atomic<std::uint64_t>& word, std::uint64_t expected, int counter) {
  static const std::uint64_t one = 1;
  return call_while(word, expected, SYS_write,
                    {static_cast<std::uint64_t>(counter), reinterpret_cast<std::uint64_t>(&one), sizeof one});
}

// How many were made since the last look.
std::uint64_t count_of(int counter) {
  std::uint64_t count = 0;
  return read(counter, &count, sizeof count) == sizeof count ? count : 0;
}

// Skipped where can_call_while() says no (a kernel, or a glibc, that registers no sequences): then no code
// may call call_while(), and nothing is written by attach.
TEST(CallWhile, CallsAsLongAsTheWordIsWhatItWas) {
  if (!can_call_while()) ORRERY_SKIP("rseq") << "no restartable sequences here";
  const int counter = eventfd(0, EFD_NONBLOCK);
  std::atomic<std::uint64_t> word{7};
  const CallWhile made = add_one(word, 7, counter);
  EXPECT_EQ(made.outcome, Outcome::called);
  EXPECT_EQ(made.result, 8);
  EXPECT_EQ(add_one(word, 8, counter).outcome, Outcome::changed);
  const CallWhile refused = add_one(word, 7, -1);
  EXPECT_EQ(refused.outcome, Outcome::called);
  EXPECT_EQ(refused.result, -EBADF);
  EXPECT_EQ(count_of(counter), 1u);
  close(counter);
}

TEST(CallWhile, AThreadThatIsStoppedAnywhereMakesNoCallAfterTheWordHasChanged) {
  // Stopped after each of its instructions. Every so often the word is left alone: then the call is made.
  // Skipped as above, and in containers that refuse ptrace(2), without which there is no single step.
  if (!can_call_while()) ORRERY_SKIP("rseq") << "no restartable sequences here";
  constexpr std::uint64_t kLeftAlone = 16;
  const int counter = eventfd(0, EFD_NONBLOCK);
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto& word = *new (page) std::atomic<std::uint64_t>(0);
  test::Stepper caller;
  for (std::uint64_t limit = 1;; ++limit) {
    word.store(7);
    const auto end = caller.start([&] { (void)add_one(word, 7, counter); }, limit);
    if (end == test::Stepper::End::refused) ORRERY_SKIP("ptrace") << "no process may be traced here";
    ASSERT_NE(end, test::Stepper::End::crashed) << limit;
    if (end == test::Stepper::End::finished) {
      caller.kill();
      break;
    }
    const std::uint64_t before = count_of(counter);
    const bool left_alone = limit % kLeftAlone == 0;
    if (!left_alone) word.store(8);
    ASSERT_EQ(caller.let_finish(), test::Stepper::End::finished) << "stopped after " << limit;
    const std::uint64_t late = count_of(counter);
    EXPECT_LE(late, left_alone ? 1u : 0u) << "after instruction " << limit;
    if (limit == kLeftAlone) {
      EXPECT_EQ(before + late, 1u);
    }
    caller.kill();
  }
  munmap(page, 4096);
  close(counter);
}

}  // namespace
}  // namespace orrery
