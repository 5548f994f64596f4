// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/page_watch.hpp"

#include "tests/emu/clock/watched.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// Threads read memory beside the one that is watched, while pages are closed and opened: whatever they find
// closed, and whenever they come to the handler, they are let in; and what is a fault stays one.
namespace orrery::clock {
namespace {

constexpr std::uint64_t kPage = 4096;

// Pages with one between each and the next that stays as it is, so that each is a mapping of its own when it
// is closed.
class Pages {
 public:
  explicit Pages(std::size_t count)
      : count_(count),
        at_(static_cast<std::byte*>(mmap(nullptr, 2 * count * kPage, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0))) {}
  ~Pages() { munmap(at_, 2 * count_ * kPage); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  std::uint64_t begin(std::size_t i) const { return reinterpret_cast<std::uint64_t>(at_ + 2 * i * kPage); }
  volatile std::uint64_t* word(std::size_t i) const {
    return reinterpret_cast<volatile std::uint64_t*>(begin(i));
  }
  void watch() const {
    for (std::size_t i = 0; i < count_; ++i) page_watch::watch(begin(i), begin(i) + kPage);
  }
  void unwatch() const {
    for (std::size_t i = 0; i < count_; ++i) page_watch::unwatch(begin(i), begin(i) + kPage);
  }

 private:
  const std::size_t count_;
  std::byte* const at_;
};

// What the kernel does for an access to a page that is closed, but that the page is as it is by now.
void fault_late_at(std::uint64_t address) {
  siginfo_t info{};
  info.si_signo = SIGSEGV;
  info.si_code = SEGV_ACCERR;
  info.si_addr = reinterpret_cast<void*>(address);
  ASSERT_EQ(syscall(SYS_rt_tgsigqueueinfo, getpid(), syscall(SYS_gettid), SIGSEGV, &info), 0);
}

TEST(PageWatch, AThreadReadsOnWhileManyPagesAreClosed) {
  // Closing them takes milliseconds, in which the first one is closed already and its reader comes again and
  // again.
  const Pages pages(2000);
  Watched watched;
  pages.watch();
  std::atomic<bool> over{false};
  std::atomic<std::uint64_t> reads{0};
  std::thread reader([&] {
    while (!over) reads.fetch_add(1 + *pages.word(0));
  });
  for (int i = 0; i < 10; ++i) {
    compute_for(12'000'000);
    page_watch::open_all();
  }
  over = true;
  reader.join();
  EXPECT_GT(reads, 0u);
  pages.unwatch();
}

TEST(PageWatch, ManyAccessesOfAThreadToOneWordMayComeLate) {
  // Each comes to the handler while the program waits at the page, which is open then; between each two of
  // them the program goes on, and the page is closed.
  const Pages pages(1);
  Watched watched;
  pages.watch();
  constexpr std::uint64_t kTimes = 1500;
  struct Rounds {
    sem_t asked, done;
    std::uint64_t over = 0;
  } rounds;
  ASSERT_EQ(sem_init(&rounds.asked, 0, 0) | sem_init(&rounds.done, 0, 0), 0);
  std::thread reader([&] {
    for (std::uint64_t i = 1; i <= kTimes; ++i) {
      while (sem_wait(&rounds.asked) != 0) {
      }
      fault_late_at(pages.begin(0) + 8);
      sem_post(&rounds.done);
    }
  });
  watched.clock().set_look(
      [](void* argument) {
        auto& r = *static_cast<Rounds*>(argument);
        if (r.over++ == kTimes) return;
        sem_post(&r.asked);
        while (sem_wait(&r.done) != 0) {
        }
      },
      &rounds);
  const std::uint64_t before = page_watch::waits();
  for (std::uint64_t i = 1; rounds.over < kTimes; ++i) {
    watched.store_soon(pages.word(0), i);
    while (*pages.word(0) != i) {
    }
  }
  reader.join();
  EXPECT_GE(page_watch::waits() - before, kTimes);
  pages.unwatch();
}

// A page that was opened for another thread while the program did not look at it is closed again.
TEST(PageWatch, ALoopIsFoundWhereAnotherThreadHasReadBefore) {
  const Pages pages(1);
  Watched watched;
  pages.watch();
  std::atomic<bool> over{false};
  std::thread reader([&] {
    while (!over) (void)*pages.word(0);
  });
  compute_for(12'000'000);
  over = true;
  reader.join();
  watched.store_soon(pages.word(0), 1);
  // So that the test ends if the loop is not found.
  constexpr std::uint64_t kGivenUp = 2;
  std::atomic<bool> is_found{false};
  std::thread patience([&] {
    const timespec nap{0, 100'000'000};
    for (int i = 0; i < 600 && !is_found; ++i) syscall(SYS_nanosleep, &nap, nullptr);
    if (!is_found) *pages.word(0) = kGivenUp;
  });
  while (*pages.word(0) == 0) {
  }
  is_found = true;
  EXPECT_EQ(*pages.word(0), 1u);
  patience.join();
  pages.unwatch();
}

// A loop that fills memory reads one word of it each time.
TEST(PageWatch, AProgramThatFillsMemoryDoesNotWait) {
  const Pages pages(2);
  Watched watched;
  pages.watch();
  const std::uint64_t before = page_watch::waits();
  for (int times = 0; times < 40; ++times) {
    compute_for(2'000'000);
    for (std::uint64_t i = 1; i < 200; ++i) pages.word(1)[i] = *pages.word(0) + i;
  }
  EXPECT_EQ(page_watch::waits(), before);
  pages.unwatch();
}

// What a loop computes out of one word is not seen. Where nothing else can happen it goes on.
TEST(PageWatch, AProgramThatReadsOneWordAndComputesGoesOn) {
  setenv("ORRERY_DEADLOCK", "1", 1);
  const Pages pages(1);
  Watched watched;
  unsetenv("ORRERY_DEADLOCK");
  pages.watch();
  *pages.word(0) = 3;
  std::uint64_t sum = 0;
  constexpr std::uint64_t kTimes = 20'000'000;
  volatile std::uint64_t* const word = pages.word(0);
  for (std::uint64_t i = 0; i < kTimes; ++i) {
    sum += *word ^ i;
    asm volatile("" : "+r"(sum), "+r"(i));  // in registers, as an optimizing compiler has them
  }
  EXPECT_NE(sum, 0u);
  pages.unwatch();
}

TEST(PageWatch, AnAccessThatComesWhenItsRangeIsGoneIsLetIn) {
  const Pages pages(1);
  Watched watched;
  for (std::uint64_t i = 1; i <= 3; ++i) {
    pages.watch();
    watched.store_soon(pages.word(0), i);
    // It has been closed when this is over.
    while (*pages.word(0) != i) {
    }
    page_watch::open_all();
    pages.unwatch();
    fault_late_at(pages.begin(0));
  }
  SUCCEED() << "the process would have died";
}

TEST(PageWatchDeath, AFaultThatIsNobodysOfOursIsOne) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const bool is_watched : {true, false}) {
    EXPECT_DEATH(
        {
          const Pages pages(1);
          Watched watched;
          if (is_watched) pages.watch();
          mprotect(reinterpret_cast<void*>(pages.begin(0)), kPage, PROT_NONE);
          (void)*pages.word(0);
          std::_Exit(0);
        },
        "");
  }
}

}  // namespace
}  // namespace orrery::clock
