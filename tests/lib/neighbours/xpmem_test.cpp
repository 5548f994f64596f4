// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Four PEs look into each other's memory.
#include <gtest/gtest.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include <pmi.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xpmem.h>

namespace {

constexpr std::size_t kPage = 4096;

struct Job {
  int rank = 0, size = 0;
  Job() {
    int spawned = 0;
    EXPECT_EQ(PMI_Init(&spawned), PMI_SUCCESS);
    PMI_Get_rank(&rank);
    PMI_Get_size(&size);
  }
};
const Job& job() {
  static const Job one;
  return one;
}
int right() { return (job().rank + 1) % job().size; }

// What every PE says, by rank.
template <typename T>
std::vector<T> gather(const T& mine) {
  struct Said {
    int rank;
    T what;
  };
  const Said said{job().rank, mine};
  std::vector<Said> all(static_cast<std::size_t>(job().size));
  Said copy = said;
  EXPECT_EQ(PMI_Allgather(&copy, all.data(), sizeof(Said)), PMI_SUCCESS);
  std::vector<T> sorted(all.size());
  for (const Said& one : all) sorted[static_cast<std::size_t>(one.rank)] = one.what;
  return sorted;
}

std::byte* map_pages(std::size_t pages) {
  return static_cast<std::byte*>(
      mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
}
xpmem_segid_t make(void* at, std::size_t bytes, std::uintptr_t mode = 0600) {
  return xpmem_make(at, bytes, XPMEM_PERMIT_MODE, reinterpret_cast<void*>(mode));
}
xpmem_apid_t get(xpmem_segid_t segment, int flags = XPMEM_RDWR) {
  return xpmem_get(segment, flags, XPMEM_PERMIT_MODE, reinterpret_cast<void*>(0666));
}
void* const kFailed = reinterpret_cast<void*>(-1);

// Memory that is shared already, by its maker and how it was made: PGAS runtimes make their heaps so.
struct SharedKind {
  const char* name;
  std::byte* (*map)(std::size_t bytes);
};
std::byte* map_file(int file, std::size_t bytes) {
  if (file < 0 || ftruncate(file, static_cast<off_t>(bytes + kPage)) != 0) return nullptr;
  // Not from the file's beginning.
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, kPage);
  return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
}
const SharedKind kSharedKinds[] = {
    {"anonymous",
     [](std::size_t bytes) {
       void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
       return at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at);
     }},
    {"memfd that stays open",
     [](std::size_t bytes) { return map_file(memfd_create("heap", MFD_CLOEXEC), bytes); }},
    {"file with a name",
     [](std::size_t bytes) {
       static char name[] = "/tmp/orrery_xpmem_XXXXXX";
       const int file = mkstemp(name);
       std::byte* const at = map_file(file, bytes);
       close(file);
       std::atexit([] { unlink(name); });
       return at;
     }},
};

TEST(Xpmem, SharedMappingsAreAttachedAsTheyAre) {
  constexpr std::size_t kBytes = 40 * kPage;
  for (const SharedKind& kind : kSharedKinds) {
    SCOPED_TRACE(kind.name);
    const bool may = geteuid() == 0 || std::strcmp(kind.name, "anonymous") != 0;
    std::byte* const mine = kind.map(kBytes);
    ASSERT_NE(mine, nullptr);
    // In two pieces for the kernel.
    ASSERT_EQ(mprotect(mine + 10 * kPage, kPage, PROT_READ), 0);
    ASSERT_EQ(mprotect(mine + 10 * kPage, kPage, PROT_READ | PROT_WRITE), 0);
    for (std::size_t i = 0; i < kBytes; ++i) mine[i] = static_cast<std::byte>(i * 5 + i / 512 + job().rank);
    const auto all = gather(make(mine, kBytes));
    const xpmem_apid_t access = get(all[static_cast<std::size_t>(right())]);
    auto* const theirs =
        static_cast<std::byte*>(xpmem_attach({access, 3 * kPage + 8}, kBytes - 3 * kPage - 8, nullptr));
    if (may) {
      ASSERT_NE(theirs, kFailed) << std::strerror(errno);
      std::size_t wrong = 0;
      for (std::size_t i = 3 * kPage + 8; i < kBytes; ++i)
        wrong += theirs[i - 3 * kPage - 8] != static_cast<std::byte>(i * 5 + i / 512 + right());
      EXPECT_EQ(wrong, 0U);
      PMI_Barrier();
      theirs[0] = std::byte{0xee};
      PMI_Barrier();
      EXPECT_EQ(mine[3 * kPage + 8], std::byte{0xee})
          << "the left one wrote it, into memory that is still the file's";
      EXPECT_EQ(xpmem_detach(theirs), 0);
      // Its own children see what it sees, as before.
      const pid_t child = fork();
      if (child == 0) {
        mine[1] = std::byte{0x77};
        _exit(0);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_EQ(mine[1], std::byte{0x77});
    }
    PMI_Barrier();
    EXPECT_EQ(xpmem_release(access), 0);
    EXPECT_EQ(xpmem_remove(all[static_cast<std::size_t>(job().rank)]), 0);
  }
}

TEST(Xpmem, BothSidesUseTheSamePages) {
  constexpr std::size_t kPages = 300;
  std::byte* const mine = map_pages(kPages);
  for (std::size_t i = 0; i < kPages * kPage; ++i)
    mine[i] = static_cast<std::byte>(i * 7 + i / 256 + job().rank);
  const auto segments = gather(make(mine, kPages * kPage));
  const xpmem_apid_t access = get(segments[right()]);
  ASSERT_GT(access, 0) << strerror(errno);
  // Not on a page boundary, and over several chunks of an adoption.
  constexpr std::size_t kFrom = 5 * kPage + 123;
  constexpr std::size_t kBytes = 280 * kPage + 1;
  auto* const theirs = static_cast<std::byte*>(xpmem_attach({access, kFrom}, kBytes, nullptr));
  ASSERT_NE(theirs, kFailed) << strerror(errno);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(theirs) % kPage, 123U);
  for (std::size_t i = 0; i < kBytes; ++i)
    ASSERT_EQ(theirs[i], static_cast<std::byte>((kFrom + i) * 7 + (kFrom + i) / 256 + right())) << i;
  PMI_Barrier();
  // What is stored on either side is seen on the other, while both are awake.
  std::atomic_ref<std::uint64_t> flag(*reinterpret_cast<std::uint64_t*>(mine + 64 * kPage));
  std::atomic_ref<std::uint64_t> their_flag(*reinterpret_cast<std::uint64_t*>(theirs + 64 * kPage - kFrom));
  flag.store(0);
  PMI_Barrier();
  for (std::uint64_t round = 1; round <= 100; ++round) {
    their_flag.store(round);
    while (flag.load() < round) sched_yield();
  }
  EXPECT_EQ(their_flag.load(), 100U);
  PMI_Barrier();
  EXPECT_EQ(xpmem_detach(theirs + 7 * kPage), 0) << "any address inside";
  EXPECT_EQ(xpmem_detach(theirs), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(xpmem_release(access), 0);
  EXPECT_EQ(mine[0], static_cast<std::byte>(job().rank)) << "the owner's memory is where it was";
  PMI_Barrier();
  EXPECT_EQ(xpmem_remove(segments[static_cast<std::size_t>(job().rank)]), 0);
  munmap(mine, kPages * kPage);
}

TEST(Xpmem, AllOfTheAddressSpaceIsASegment) {
  static std::uint64_t word;  // static data
  word = 1000 + static_cast<std::uint64_t>(job().rank);
  auto heap = std::make_unique<std::uint64_t[]>(100'000);
  heap[99'999] = 77 + static_cast<std::uint64_t>(job().rank);
  struct Place {
    xpmem_segid_t segment;
    std::uint64_t* word;
    std::uint64_t* heap;
  };
  const auto places = gather(Place{make(nullptr, XPMEM_MAXADDR_SIZE), &word, heap.get()});
  const Place& theirs = places[right()];
  const xpmem_apid_t access = get(theirs.segment);
  ASSERT_GT(access, 0) << strerror(errno);
  const auto attach = [&](std::uint64_t* at, std::size_t bytes) {
    return static_cast<std::uint64_t*>(
        xpmem_attach({access, static_cast<off_t>(reinterpret_cast<std::uintptr_t>(at))}, bytes, nullptr));
  };
  std::uint64_t* const far_heap = attach(theirs.heap, 800'000);
  ASSERT_NE(far_heap, kFailed) << strerror(errno);
  EXPECT_EQ(far_heap[99'999], 77 + static_cast<std::uint64_t>(right()));
  std::uint64_t* const far_word = attach(theirs.word, sizeof word);
  // Where writers to static data cannot be held off (a thread of a sanitizer blocks SIGSEGV), it is refused.
  if (far_word != kFailed) {
    EXPECT_EQ(*far_word, 1000 + static_cast<std::uint64_t>(right()));
  } else {
    EXPECT_EQ(errno, EFAULT);
  }
  PMI_Barrier();
  EXPECT_EQ(xpmem_release(access), 0) << "takes both attachments along";
  EXPECT_EQ(xpmem_detach(far_heap), -1);
  PMI_Barrier();
  EXPECT_EQ(xpmem_remove(places[static_cast<std::size_t>(job().rank)].segment), 0);
}

TEST(Xpmem, APermitToReadDoesNotLetPeersWrite) {
  std::byte* const mine = map_pages(2);
  mine[17] = std::byte{42};
  const auto segments = gather(make(mine, 2 * kPage, 0400));
  EXPECT_EQ(get(segments[right()], XPMEM_RDWR), -1);
  EXPECT_EQ(errno, EACCES);
  const xpmem_apid_t access = get(segments[right()], XPMEM_RDONLY);
  ASSERT_GT(access, 0);
  // In a place of our choice.
  std::byte* const room = map_pages(2);
  auto* const theirs = static_cast<std::byte*>(xpmem_attach({access, 0}, 2 * kPage, room));
  ASSERT_EQ(theirs, room);
  EXPECT_EQ(theirs[17], std::byte{42});
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGSEGV, SIG_DFL);
    theirs[17] = std::byte{1};
    _exit(0);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_FALSE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the store went through";
  EXPECT_EQ(xpmem_release(access), 0);
  PMI_Barrier();
  EXPECT_EQ(xpmem_remove(segments[static_cast<std::size_t>(job().rank)]), 0);
}

TEST(Xpmem, WhatIsGoneOrCannotBeSharedIsRefused) {
  std::byte* const mine = map_pages(4);
  mprotect(mine + 3 * kPage, kPage, PROT_READ);
  int on_stack = 5;
  struct Place {
    xpmem_segid_t removed, segment, whole;
    int* stack;
  };
  Place place{make(mine, kPage), make(mine, 4 * kPage), make(nullptr, XPMEM_MAXADDR_SIZE), &on_stack};
  EXPECT_EQ(xpmem_remove(place.removed), 0);
  EXPECT_EQ(xpmem_remove(place.removed), -1);
  const auto places = gather(place);
  const Place& theirs = places[right()];
  EXPECT_EQ(get(theirs.removed), -1);
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(get(theirs.segment + (std::int64_t{1} << 40)), -1) << "of a process that never was";
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(xpmem_remove(theirs.segment), job().size == 1 ? 0 : -1) << "not ours";
  const xpmem_apid_t access = get(theirs.segment);
  ASSERT_GT(access, 0);
  const auto refused = [&](xpmem_addr at, std::size_t bytes, int error) {
    errno = 0;
    EXPECT_EQ(xpmem_attach(at, bytes, nullptr), kFailed);
    EXPECT_EQ(errno, error) << strerror(errno);
  };
  refused({access, 4 * kPage}, 1, EINVAL);
  refused({access, 0}, 4 * kPage + 1, EINVAL);
  refused({access, 3 * kPage}, 8, EFAULT);  // read-only in its owner
  refused({access, -1}, 8, EINVAL);
  refused({access, 0}, 0, EINVAL);
  refused({access + 1000, 0}, 8, EINVAL);
  EXPECT_EQ(xpmem_attach({access, 0}, 8, reinterpret_cast<void*>(123)), kFailed);
  const xpmem_apid_t whole = get(theirs.whole);
  ASSERT_GT(whole, 0);
  refused({whole, static_cast<off_t>(reinterpret_cast<std::uintptr_t>(theirs.stack))}, 4, EFAULT);
  refused({whole, 4096}, 8, EFAULT);  // nothing is mapped there
  PMI_Barrier();
  EXPECT_EQ(xpmem_remove(place.segment), 0);
  EXPECT_EQ(xpmem_remove(place.whole), 0);
  PMI_Barrier();
  refused({access, 0}, 8, ENOENT);
  EXPECT_EQ(xpmem_release(access), 0);
  EXPECT_EQ(xpmem_release(access), -1);
  EXPECT_EQ(xpmem_release(whole), 0);
}

TEST(Xpmem, BadArgumentsAreRefused) {
  std::byte* const mine = map_pages(1);
  EXPECT_EQ(xpmem_version(), XPMEM_CURRENT_VERSION);
  EXPECT_EQ(make(mine + 1, 64), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(make(mine, 0), -1);
  EXPECT_EQ(make(mine, XPMEM_MAXADDR_SIZE), -1) << "wraps";
  EXPECT_EQ(make(mine, kPage, 01000), -1);
  EXPECT_EQ(make(mine, kPage, 0200), -1) << "no process may read it";
  EXPECT_EQ(xpmem_make(mine, kPage, 9, reinterpret_cast<void*>(0600)), -1);
  EXPECT_EQ(get(0), -1);
  EXPECT_EQ(get(-5), -1);
  EXPECT_EQ(get(1, 3), -1);
  EXPECT_EQ(xpmem_get(1, XPMEM_RDWR, 2, nullptr), -1);
  EXPECT_EQ(xpmem_remove(0), -1);
  EXPECT_EQ(xpmem_release(0), -1);
  EXPECT_EQ(xpmem_detach(mine), -1);
  // As many as there is room for, and again when one has gone.
  std::vector<xpmem_segid_t> all;
  for (xpmem_segid_t one = make(mine, kPage); one > 0; one = make(mine, kPage)) all.push_back(one);
  EXPECT_EQ(errno, ENOSPC);
  ASSERT_EQ(all.size(), 256U);
  EXPECT_EQ(xpmem_remove(all[3]), 0);
  const xpmem_segid_t again = make(mine, kPage);
  EXPECT_GT(again, 0);
  EXPECT_NE(again, all[3]) << "a number is not used again";
  all[3] = again;
  for (const xpmem_segid_t one : all) EXPECT_EQ(xpmem_remove(one), 0);
  PMI_Barrier();
}

}  // namespace
