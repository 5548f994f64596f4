// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
// Less than everything: no privilege, no userfaultfd, limits on files and address space. Each in a process of
// its own.
#include "tests/emu/memory/memory_fixture.hpp"
#include "tests/require.hpp"

#include <atomic>
#include <cerrno>
#include <thread>

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

namespace orrery::memory {
namespace {

constexpr uid_t kNobody = 65534;

bool become_nobody() {
  return getuid() == 0 && syscall(SYS_setresgid, kNobody, kNobody, kNobody) == 0 &&
         syscall(SYS_setresuid, kNobody, kNobody, kNobody) == 0 &&
         // Dropping rights makes /proc/self root's; a program started by that user has its own.
         prctl(PR_SET_DUMPABLE, 1) == 0;
}

// A filter as containers install it: the system call is not permitted.
bool forbid(int number) {
  sock_filter program[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<unsigned>(number), 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{.len = 4, .filter = program};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// Moves a page set in and out while one thread counts up words of it and another reads into it by read(2).
int switch_under_load(Rig& rig) {
  Pages pages(kBytes);
  auto* const word = reinterpret_cast<std::atomic<std::uint64_t>*>(pages.data());
  std::atomic<bool> stop{false};
  std::uint64_t writes = 0, failed_reads = 0, reads = 0;
  const int zero = open("/dev/zero", O_RDONLY);
  std::atomic<int> begun{0};
  std::thread writer([&] {
    ++begun;
    for (; !stop || writes == 0; ++writes) word->fetch_add(1, std::memory_order_relaxed);
  });
  std::thread reader([&] {
    ++begun;
    // A short count is no failure: the page may go while the kernel is at it; every caller must expect that.
    for (; !stop || reads == 0; ++reads) failed_reads += read(zero, pages.data() + 8 * kPageBytes, 64) <= 0;
  });
  // A thread that is being started takes no faults, however long it is kept from its core.
  while (begun != 2) sched_yield();
  for (int round = 0; round < 100; ++round) {
    ORRERY_CHILD_REQUIRE(rig.adopt(pages.data(), kBytes).ok());
    ORRERY_CHILD_REQUIRE(rig.cover(pages.data(), kBytes) == Cover::direct);
    ORRERY_CHILD_REQUIRE(rig.release(pages.data(), kBytes).ok());
  }
  stop = true;
  writer.join();
  reader.join();
  ORRERY_CHILD_REQUIRE(word->load() == writes);
  ORRERY_CHILD_REQUIRE(!kInterposed || failed_reads == 0);
  return 0;
}

TEST(Rights, AnUnprivilegedUserLosesNoWriteAndNoRead) {
  if (getuid() != 0) ORRERY_SKIP("root") << "only root can become another user";
  EXPECT_EQ(in_child([] {
              ORRERY_CHILD_REQUIRE(become_nobody());
              Rig rig;
              ORRERY_CHILD_REQUIRE(rig.peer != nullptr);
              // vm.unprivileged_userfaultfd is 0 by default: user mode only.
              ORRERY_CHILD_REQUIRE(rig.space->stats().blocker != Blocker::protect);
              return switch_under_load(rig);
            }),
            0);
}

TEST(Rights, AContainerWithoutUserfaultUsesProtection) {
  ORRERY_SKIP_WITHOUT(Method::protect);
  EXPECT_EQ(in_child([] {
              if (!forbid(SYS_userfaultfd)) return kSkip;
              Rig rig;
              ORRERY_CHILD_REQUIRE(rig.peer != nullptr);
              ORRERY_CHILD_REQUIRE(rig.space->stats().blocker == Blocker::protect);
              return switch_under_load(rig);
            }),
            0);
}

TEST(Rights, AKernelWithoutMemoryFilesLeavesFrames) {
  EXPECT_EQ(in_child([] {
              if (!forbid(SYS_memfd_create)) return kSkip;
              Rig rig;
              ORRERY_CHILD_REQUIRE(rig.space != nullptr);
              ORRERY_CHILD_REQUIRE(rig.space->file() == -1);
              Pages pages(kBytes);
              const RangeInfo info = rig.space->inspect(address_of(pages.data()), kBytes).value();
              ORRERY_CHILD_REQUIRE(info.mapped && info.writable && info.cover == Cover::none);
              ORRERY_CHILD_REQUIRE(info.obstacle == Obstacle::no_file);
              return 0;
            }),
            0);
}

TEST(Rights, AFileSizeLimitIsSeenBeforeItStrikes) {
  EXPECT_EQ(in_child([] {
              const rlimit limit{std::uint64_t{1} << 30, std::uint64_t{1} << 30};
              ORRERY_CHILD_REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
              Rig rig;
              ORRERY_CHILD_REQUIRE(rig.space != nullptr && rig.space->file() == -1 && rig.space->span() == 0);
              ORRERY_CHILD_REQUIRE(rig.space->allocate(4096).code() == Errc::unsupported);
              Pages pages(kBytes);
              Obstacle why = Obstacle::none;
              ORRERY_CHILD_REQUIRE(rig.adopt(pages.data(), kBytes, &why) == Status(Errc::unsupported));
              ORRERY_CHILD_REQUIRE(why == Obstacle::no_file);
              return 0;
            }),
            0);
}

TEST(Rights, AFileSizeLimitSetLaterStopsAdoptionOnly) {
  EXPECT_EQ(in_child([] {
              Rig rig;
              Pages pages(kBytes);
              ORRERY_CHILD_REQUIRE(rig.adopt(pages.data(), kPageBytes).ok());
              const rlimit limit{std::uint64_t{1} << 20, std::uint64_t{1} << 20};
              ORRERY_CHILD_REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0);
              ORRERY_CHILD_REQUIRE(rig.adopt(pages.data(), kBytes) == Status(Errc::unsupported));
              std::memset(pages.data(), 1, kBytes);
              ORRERY_CHILD_REQUIRE(rig.release(pages.data(), kPageBytes).ok());
              ORRERY_CHILD_REQUIRE(pages.data()[5] == 1);
              return 0;
            }),
            0);
}

TEST(Rights, AnAddressSpaceLimitMakesWindowsFailCleanly) {
  // RLIMIT_AS counts the sanitizer's terabytes of shadow; the release suite runs it.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer's shadow alone is beyond any limit";
#endif
  EXPECT_EQ(in_child([] {
              Rig rig;
              Pages pages(kBytes);
              const rlimit limit{std::uint64_t{1} << 29, std::uint64_t{1} << 29};
              ORRERY_CHILD_REQUIRE(setrlimit(RLIMIT_AS, &limit) == 0);
              ORRERY_CHILD_REQUIRE(rig.adopt(pages.data(), kBytes).ok());
              ORRERY_CHILD_REQUIRE(rig.peer->window(address_of(pages.data())).code() == Errc::no_memory);
              return 0;
            }),
            0);
}

TEST(Rights, LockedMemoryDoesNotFillWindows) {
  const int code = in_child([] {
    // MCL_FUTURE locks every later mapping, windows of a GiB too.
    if (syscall(SYS_mlockall, MCL_FUTURE) != 0) return kSkip;
    Rig rig;
    Pages pages(kBytes);
    ORRERY_CHILD_REQUIRE(rig.adopt(pages.data(), kBytes).ok());
    rig.peer_sets(pages.data(), 1, 1);
    ORRERY_CHILD_REQUIRE(rig.space->stats().file_blocks_bytes <= kBytes);
    return 0;
  });
  if (code == kSkip) ORRERY_SKIP("mlock") << "mlockall is not allowed here";
  EXPECT_EQ(code, 0);
}

}  // namespace
}  // namespace orrery::memory
