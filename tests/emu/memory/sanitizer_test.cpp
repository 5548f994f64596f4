// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
// What sanitizers report must not change when memory moves into the file. Each fault is seeded in a child
// process.
#include "tests/emu/memory/memory_fixture.hpp"

#include <cstdlib>
#include <thread>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

namespace orrery::memory {
namespace {

[[maybe_unused]] constexpr std::size_t kWatchedBytes = 3 * kPageBytes;

// Exit codes: ours for "nothing was reported"; the sanitizers' own are 1 (address), 23 (leaks), 66 (thread).
[[maybe_unused]] constexpr int kNothingReported = 5;

// The reports go to stderr; a test that provokes them on purpose keeps them out of the log.
[[maybe_unused]] void quiet() {
  if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(9);
}

TEST(AddressSanitizer, ReportsAnOverflowOfAnAdoptedBlock) {
  // It is about the sanitizer's own report: the asan-ubsan suite runs it.
#if !defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "built without AddressSanitizer";
#else
  const int code = in_child([] {
    Rig rig;
    char* const block = static_cast<char*>(std::malloc(kWatchedBytes));
    if (!rig.adopt(block, kWatchedBytes).ok()) return 3;
    block[kWatchedBytes - 1] = 1;
    quiet();
    volatile std::size_t beyond = kWatchedBytes;
    block[beyond] = 1;
    return kNothingReported;
  });
  EXPECT_NE(code, 3);
  EXPECT_NE(code, kNothingReported);
#endif
}

#if defined(__SANITIZE_ADDRESS__)
// The only pointers to a block lie in adopted memory (not leaked), or nowhere (leaked). Not inlined: no copy
// stays on the stack.
__attribute__((noinline)) void hide_in(char** home) {
  *home = static_cast<char*>(std::malloc(1000));
  std::memset(*home, 1, 1000);
}
__attribute__((noinline)) void wipe_stack() {
  char filler[4096];
  std::memset(filler, 0, sizeof filler);
  __asm__ volatile("" : : "r"(filler) : "memory");
}
#endif

TEST(LeakSanitizer, FollowsPointersThroughAdoptedMemoryAndFindsRealLeaks) {
  // As above: without LeakSanitizer there is no report to look for.
#if !defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "built without LeakSanitizer";
#else
  const int code = in_child([] {
    quiet();
    Rig rig;
    static char** home = static_cast<char**>(std::malloc(kWatchedBytes));
    std::memset(home, 0, kWatchedBytes);
    if (!rig.adopt(home, kWatchedBytes).ok()) return 3;
    hide_in(&home[5]);
    wipe_stack();
    if (__lsan_do_recoverable_leak_check() != 0) return 4;
    home[5] = nullptr;
    wipe_stack();
    return __lsan_do_recoverable_leak_check() != 0 ? 0 : kNothingReported;
  });
  EXPECT_EQ(code, 0);
#endif
}

TEST(ThreadSanitizer, ReportsARaceThroughASameProcessWindow) {
#if !defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "built without ThreadSanitizer";
#else
  const int code = in_child([] {
    quiet();
    Rig rig;
    auto self = PeerMemory::same_process();
    Pages pages(kWatchedBytes);
    if (!rig.adopt(pages.data(), kWatchedBytes).ok() || !self.ok()) return 3;
    auto* const here = reinterpret_cast<long*>(pages.data());
    auto* const there =
        reinterpret_cast<long*>(self.value()->window(address_of(here)).value().at(address_of(here)));
    std::thread other([&] { *there = 1; });
    *here = 2;
    other.join();
    std::exit(kNothingReported);  // ThreadSanitizer turns it into its own code when it has reported
    return 0;
  });
  EXPECT_EQ(code, 66);
#endif
}

}  // namespace
}  // namespace orrery::memory
