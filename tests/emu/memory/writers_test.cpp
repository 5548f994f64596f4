// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
// Other threads, and the kernel on their behalf, write to pages while these move into the file and out again.
// Each writer's stores can be counted afterwards: a lost one shows as a number that is too small.
#include "emu/memory/cross_attach.hpp"
#include "tests/emu/memory/memory_fixture.hpp"
#include "tests/require.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <functional>
#include <iterator>
#include <thread>

#include <fcntl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

namespace orrery::memory {
namespace {

constexpr int kRounds = 60;

alignas(4096) char g_static_target[kBytes] = {1};

// Moves the range in and out `kRounds` times, while `other` runs in a thread until told to stop.
template <typename Other>
void switch_beside(Rig& rig, char* at, std::size_t bytes, Other other) {
  std::atomic<bool> stop{false};
  std::atomic<bool> started{false};
  std::thread thread([&] { other(stop, started); });
  while (!started) std::this_thread::yield();
  for (int round = 0; round < kRounds; ++round) {
    EXPECT_TRUE(rig.adopt(at, bytes).ok());
    EXPECT_TRUE(rig.release(at, bytes).ok());
  }
  EXPECT_TRUE(rig.adopt(at, bytes).ok());
  stop = true;
  thread.join();
}

class Writers : public ::testing::TestWithParam<Method> {
 protected:
  void SetUp() override {
    ORRERY_SKIP_WITHOUT(GetParam());
    ASSERT_NE(rig_.peer, nullptr);
  }

  // One counter per page, all counted up by a thread that keeps its own count.
  void expect_no_write_lost(char* at, std::size_t bytes) {
    std::uint64_t writes = 0;
    const auto counter = [&](std::size_t page) {
      return std::atomic_ref<std::uint64_t>(*reinterpret_cast<std::uint64_t*>(at + page * kPageBytes + 64));
    };
    const std::size_t pages = bytes / kPageBytes;
    for (std::size_t page = 0; page < pages; ++page) counter(page).store(0);
    switch_beside(rig_, at, bytes, [&](std::atomic<bool>& stop, std::atomic<bool>& started) {
      while (!stop || writes == 0) {
        for (std::size_t page = 0; page < pages; ++page) {
          // Read, then written: an older page put back would show as well.
          counter(page).store(counter(page).load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
        }
        ++writes;
        started = true;
      }
    });
    for (std::size_t page = 0; page < pages; ++page)
      EXPECT_EQ(counter(page).load(), writes) << "page " << page;
  }

  Rig rig_{GetParam()};
};

TEST_P(Writers, OfMappedMemoryLoseNothing) {
  Pages pages(kBytes);
  expect_no_write_lost(pages.data(), pages.size());
}

TEST_P(Writers, OfAMallocBlockLoseNothing) {
  void* block = nullptr;
  ASSERT_EQ(posix_memalign(&block, kPageBytes, kBytes), 0);
  expect_no_write_lost(static_cast<char*>(block), kBytes);
  std::free(block);
}

TEST_P(Writers, OfStaticMemoryLoseNothing) {
  ORRERY_SKIP_WITHOUT(Method::protect);
  expect_no_write_lost(g_static_target, kBytes);
}

TEST_P(Writers, OfAnotherThreadsHeapLoseNothing) {
  std::thread([&] {
    void* block = nullptr;
    ASSERT_EQ(posix_memalign(&block, kPageBytes, kBytes), 0);
    expect_no_write_lost(static_cast<char*>(block), kBytes);
    std::free(block);
  }).join();
}

TEST_P(Writers, ThatReadFromAPipeGetEveryByteAndNoError) {
  if (!kInterposed && rig_.space->stats().blocker != Blocker::userfault)
    GTEST_SKIP() << "the sanitizer's read() comes before the one that tries again";
  Pages pages(kBytes);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  int errors = 0;
  std::uint64_t received = 0, wrong = 0;
  std::atomic<bool> sent_all{false};
  std::thread sender([&] {
    std::uint64_t words[16];
    for (std::uint64_t i = 0; !sent_all; i += 16) {
      for (std::uint64_t k = 0; k < 16; ++k) words[k] = i + k;
      if (write(ends[1], words, sizeof words) != sizeof words) return;
    }
    close(ends[1]);
  });
  switch_beside(rig_, pages.data(), kBytes, [&](std::atomic<bool>& stop, std::atomic<bool>& started) {
    std::size_t at = 0;
    std::uint64_t expected = 0;
    for (;;) {
      auto* const words = reinterpret_cast<std::uint64_t*>(pages.data() + at);
      const ssize_t got = read(ends[0], words, 128);
      if (got == 0) break;
      if (got < 0) {
        ++errors;
        continue;
      }
      for (ssize_t i = 0; i < got / 8; ++i) wrong += words[i] != expected++;
      received += static_cast<std::uint64_t>(got);
      started = true;
      if (stop) sent_all = true;
      at = (at + kPageBytes) % kBytes;
    }
  });
  sender.join();
  close(ends[0]);
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(received, 0u);
}

// The calls that read data, each with a word to take.
using Take = ssize_t (*)(int file, std::uint64_t* to, std::uint64_t index);
constexpr Take kTakesFromSockets[] = {
    [](int file, std::uint64_t* to, std::uint64_t) { return recv(file, to, sizeof *to, 0); },
    [](int file, std::uint64_t* to, std::uint64_t) {
      return recvfrom(file, to, sizeof *to, 0, nullptr, nullptr);
    },
    [](int file, std::uint64_t* to, std::uint64_t) {
      iovec piece{to, sizeof *to};
      msghdr message{};
      message.msg_iov = &piece;
      message.msg_iovlen = 1;
      return recvmsg(file, &message, 0);
    },
    [](int file, std::uint64_t* to, std::uint64_t) {
      const iovec piece{to, sizeof *to};
      return readv(file, &piece, 1);
    },
};

TEST_P(Writers, ThatReceiveFromASocketGetEveryByteAndNoError) {
  if (!kInterposed && rig_.space->stats().blocker != Blocker::userfault)
    GTEST_SKIP() << "the sanitizer's read() comes before the one that tries again";
  Pages pages(kBytes);
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  int errors = 0;
  std::uint64_t wrong = 0, expected = 0;
  switch_beside(rig_, pages.data(), kBytes, [&](std::atomic<bool>& stop, std::atomic<bool>& started) {
    std::size_t at = 0;
    while (!stop || expected == 0) {
      const std::uint64_t word = expected;
      ASSERT_EQ(send(ends[1], &word, sizeof word, 0), 8);
      auto* const to = reinterpret_cast<std::uint64_t*>(pages.data() + at);
      if (kTakesFromSockets[expected % std::size(kTakesFromSockets)](ends[0], to, expected) != 8)
        ++errors;
      else
        wrong += *to != expected;
      ++expected;
      started = true;
      at = (at + kPageBytes) % kBytes;
    }
  });
  close(ends[0]);
  close(ends[1]);
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(wrong, 0u);
}

// What attach brings from another process; here from this one.
TEST_P(Writers, ThatCopyFromAProcessGetEveryByteAndNoError) {
  Pages pages(kBytes);
  std::uint64_t word = 7;
  const auto process = CrossAttach::probe(getpid(), address_of(&word), word);
  if (!process.ok()) ORRERY_SKIP("attach") << "attach is not allowed here";
  int errors = 0;
  std::uint64_t wrong = 0, copies = 0;
  switch_beside(rig_, pages.data(), kBytes, [&](std::atomic<bool>& stop, std::atomic<bool>& started) {
    for (std::size_t at = 0; !stop || copies == 0; at = (at + kPageBytes) % kBytes) {
      word = ++copies;
      auto* const to = reinterpret_cast<std::uint64_t*>(pages.data() + at);
      if (!process.value().read(to, address_of(&word), sizeof word).ok())
        ++errors;
      else
        wrong += *to != copies;
      started = true;
    }
  });
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(wrong, 0u);
}

TEST_P(Writers, ThatReadFromAPlaceInAFileGetEveryByteAndNoError) {
  if (!kInterposed && rig_.space->stats().blocker != Blocker::userfault)
    GTEST_SKIP() << "the sanitizer's pread() comes before the one that tries again";
  Pages pages(kBytes);
  constexpr std::uint64_t kWords = 4096;
  const int file = memfd_create("words", 0);
  ASSERT_GE(file, 0);
  for (std::uint64_t i = 0; i < kWords; ++i) ASSERT_EQ(write(file, &i, sizeof i), 8);
  constexpr Take kTakes[] = {
      [](int from, std::uint64_t* to, std::uint64_t index) {
        return pread(from, to, sizeof *to, static_cast<off_t>(index * 8));
      },
      [](int from, std::uint64_t* to, std::uint64_t index) {
        return pread64(from, to, sizeof *to, static_cast<off64_t>(index * 8));
      },
  };
  int errors = 0;
  std::uint64_t wrong = 0, taken = 0;
  switch_beside(rig_, pages.data(), kBytes, [&](std::atomic<bool>& stop, std::atomic<bool>& started) {
    for (std::size_t at = 0; !stop || taken == 0; at = (at + kPageBytes) % kBytes, ++taken) {
      auto* const to = reinterpret_cast<std::uint64_t*>(pages.data() + at);
      if (kTakes[taken % 2](file, to, taken % kWords) != 8)
        ++errors;
      else
        wrong += *to != taken % kWords;
      started = true;
    }
  });
  close(file);
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(wrong, 0u);
}

TEST_P(Writers, AsleepOnAConditionOnThePageAreWoken) {
  struct Meeting {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    std::uint64_t turns;
    bool stop;
  };
  Pages pages(kBytes);
  auto* const meeting = new (pages.data() + kPageBytes) Meeting{};
  pthread_mutex_init(&meeting->lock, nullptr);
  pthread_cond_init(&meeting->changed, nullptr);
  // Two threads take turns: a lost wake-up stops them for ever, and the test with them.
  const auto player = [&](std::uint64_t parity) {
    pthread_mutex_lock(&meeting->lock);
    while (!meeting->stop) {
      if (meeting->turns % 2 == parity) {
        ++meeting->turns;
        pthread_cond_signal(&meeting->changed);
      } else {
        pthread_cond_wait(&meeting->changed, &meeting->lock);
      }
    }
    pthread_cond_broadcast(&meeting->changed);
    pthread_mutex_unlock(&meeting->lock);
  };
  std::thread other([&] { player(1); });
  switch_beside(rig_, pages.data(), kBytes, [&](std::atomic<bool>& stop, std::atomic<bool>& started) {
    std::thread first([&] { player(0); });
    started = true;
    std::uint64_t turns = 0;
    while (!stop || turns < 100) {
      std::this_thread::yield();
      pthread_mutex_lock(&meeting->lock);
      turns = meeting->turns;
      pthread_mutex_unlock(&meeting->lock);
    }
    pthread_mutex_lock(&meeting->lock);
    meeting->stop = true;
    pthread_cond_broadcast(&meeting->changed);
    pthread_mutex_unlock(&meeting->lock);
    first.join();
  });
  other.join();
  EXPECT_GE(meeting->turns, 100u);
}

TEST_P(Writers, ThatAllocateAllTheTimeDoNotDeadlockWithAdoption) {
  // Small blocks of the main arena: its lock and metadata lie on the pages that move.
  std::vector<char*> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(static_cast<char*>(std::malloc(2000)));
  std::atomic<bool> stop{false};
  std::thread churn([&] {
    unsigned seed = 1;
    while (!stop) {
      std::vector<std::string> strings;
      for (int i = 0; i < 50; ++i) strings.emplace_back((seed = seed * 1103515245 + 12345) % 3000, 'x');
      for (const std::string& s : strings)
        ASSERT_EQ(std::count(s.begin(), s.end(), 'x'), static_cast<long>(s.size()));
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    for (char* block : blocks) ASSERT_TRUE(rig_.adopt(block, 2000).ok());
    for (char* block : blocks) ASSERT_TRUE(rig_.release(block, 2000).ok());
  }
  stop = true;
  churn.join();
  for (char* block : blocks) std::free(block);
}

TEST_P(Writers, ThatGivePagesBackLoseNothingThatTheyWriteAfterwards) {
  // As malloc does by itself, where no interposed madvise() hears of it: a page that is not there any more
  // has no mark either that a writer would wait at.
  Pages pages(16 * kPageBytes);
  std::atomic<bool> stop{false};
  std::uint64_t lost = 0;
  std::thread writer([&] {
    for (std::uint64_t value = 1; !stop; ++value) {
      for (std::size_t page = 0; page < 16; ++page) {
        char* const at = pages.data() + page * kPageBytes;
        auto* const word = reinterpret_cast<std::uint64_t*>(at + 64);
        syscall(SYS_madvise, at, kPageBytes, MADV_DONTNEED);
        const std::atomic_ref<std::uint64_t> there(*word);
        there.store(value);
        for (int look = 0; look < 3000; ++look) {
          if (there.load() != value) ++lost;
        }
      }
    }
  });
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(1500);
  while (std::chrono::steady_clock::now() < end) {
    // Given up where pages come and go all the time, which is no loss.
    (void)rig_.adopt(pages.data(), pages.size());
    (void)rig_.release(pages.data(), pages.size());
  }
  stop = true;
  writer.join();
  EXPECT_EQ(lost, 0u);
}

TEST_P(Writers, UnderRawSystemCallsSeeFaultsOnlyWhereTheKernelCannotWait) {
  // Not through read(): what the kernel itself does. Documents the limit that read() hides.
  Pages pages(kBytes);
  std::uint64_t faults = 0, calls = 0;
  const int zero = open("/dev/zero", O_RDONLY);
  switch_beside(rig_, pages.data(), kBytes, [&](std::atomic<bool>& stop, std::atomic<bool>& started) {
    while (!stop || calls == 0) {
      for (std::size_t at = 0; at < kBytes; at += kPageBytes) {
        const long got = syscall(SYS_read, zero, pages.data() + at, 8);
        ++calls;
        if (got < 0) {
          ASSERT_EQ(errno, EFAULT);
          ++faults;
        }
      }
      started = true;
    }
  });
  close(zero);
  RecordProperty("calls", std::to_string(calls));
  RecordProperty("faults", std::to_string(faults));
  if (rig_.space->stats().blocker == Blocker::userfault) {
    EXPECT_EQ(faults, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(Methods, Writers, ::testing::Values(Method::userfault, Method::protect),
                         [](const auto& info) { return method_name(info.param); });

}  // namespace
}  // namespace orrery::memory
