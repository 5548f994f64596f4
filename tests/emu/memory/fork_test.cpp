// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
// Children of a process whose heap, static data and mapped blocks lie in the memory file.
#include "tests/emu/memory/memory_fixture.hpp"

#include <atomic>
#include <cstdlib>
#include <thread>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>

extern char** environ;

namespace orrery::memory {
namespace {

alignas(4096) char g_static[kPageBytes] = "static";

struct Adopted {
  char* string = strdup("heap");
  std::vector<char*> small;
  Pages mapped{kBytes};

  explicit Adopted(Rig& rig) {
    for (int i = 0; i < 100; ++i) {
      small.push_back(static_cast<char*>(std::malloc(100)));
      std::memset(small.back(), i, 100);
    }
    std::memset(mapped.data(), 'm', kBytes);
    std::strcpy(g_static, "static");
    good = rig.adopt(string, 5).ok() &&
           (!method_works(Method::protect) || rig.adopt(g_static, sizeof g_static).ok()) &&
           rig.adopt(mapped.data(), kBytes).ok();
    for (char* block : small) good = good && rig.adopt(block, 100).ok();
  }
  ~Adopted() {
    std::free(string);
    for (char* block : small) std::free(block);
  }
  bool intact() const {
    bool same = std::strcmp(string, "heap") == 0 && std::strcmp(g_static, "static") == 0;
    for (std::size_t i = 0; i < small.size(); ++i)
      same = same && small[i][0] == static_cast<char>(i) && small[i][99] == static_cast<char>(i);
    for (std::size_t i = 0; i < kBytes; i += 512) same = same && mapped.data()[i] == 'm';
    return same;
  }
  void overwrite() const {
    std::strcpy(string, "kid");
    std::strcpy(g_static, "kid");
    for (char* block : small) std::memset(block, 0xee, 100);
    std::memset(mapped.data(), 'k', kBytes);
  }
  bool good = false;
};

// malloc as a program's child might use it.
bool use_malloc(unsigned seed) {
  char* blocks[40];
  for (int round = 0; round < 3; ++round) {
    for (auto& block : blocks) {
      const std::size_t bytes = (seed = seed * 1103515245 + 12345) % 2000 + 1;
      block = static_cast<char*>(std::malloc(bytes));
      if (block == nullptr) return false;
      std::memset(block, 0x5a, bytes);
    }
    for (char* block : blocks) std::free(block);
  }
  return true;
}

class Fork : public ::testing::TestWithParam<Method> {
 protected:
  void SetUp() override {
    ORRERY_SKIP_WITHOUT(GetParam());
    ASSERT_NE(rig_.peer, nullptr);
  }
  Rig rig_{GetParam()};
};

TEST_P(Fork, ChildHasASnapshotOfItsOwn) {
  Adopted data(rig_);
  ASSERT_TRUE(data.good);
  EXPECT_EQ(in_child([&] {
              ORRERY_CHILD_REQUIRE(data.intact());
              data.overwrite();
              ORRERY_CHILD_REQUIRE(use_malloc(1));
              return 0;
            }),
            0);
  EXPECT_TRUE(data.intact());
  EXPECT_EQ(rig_.cover(data.mapped.data(), kBytes), Cover::direct);
}

TEST_P(Fork, ChildDoesNotSeeWhatComesAfter) {
  Adopted data(rig_);
  int go[2];
  ASSERT_EQ(pipe(go), 0);
  const pid_t child = fork();
  if (child == 0) {
    char byte = 0;
    // Straight into a page that the child has not touched: the kernel must find it.
    const bool read_ok = read(go[0], data.mapped.data() + 2 * kPageBytes, 1) == 1;
    data.mapped.data()[2 * kPageBytes] = 'm';
    (void)byte;
    _exit(read_ok && data.intact() ? 0 : 1);
  }
  data.overwrite();
  rig_.peer_sets(data.mapped.data(), 'p', kBytes);
  ASSERT_EQ(write(go[1], "x", 1), 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(data.mapped.data()[0], 'p');
  close(go[0]);
  close(go[1]);
}

TEST_P(Fork, ChildrenOfChildrenAreOrdinary) {
  Adopted data(rig_);
  EXPECT_EQ(in_child([&] {
              data.string[0] = 'H';
              const int grandchild = in_child([&] {
                ORRERY_CHILD_REQUIRE(data.string[0] == 'H');
                data.overwrite();
                return 0;
              });
              ORRERY_CHILD_REQUIRE(grandchild == 0);
              ORRERY_CHILD_REQUIRE(std::strcmp(data.string, "Heap") == 0);
              return 0;
            }),
            0);
  EXPECT_TRUE(data.intact());
}

TEST_P(Fork, ChildCannotAdoptButMayHaveAnAddressSpaceOfItsOwn) {
  Adopted data(rig_);
  EXPECT_EQ(in_child([&] {
              ORRERY_CHILD_REQUIRE(rig_.adopt(data.mapped.data(), 1) == Status(Errc::invalid_state));
              Rig own;
              ORRERY_CHILD_REQUIRE(own.peer != nullptr);
              ORRERY_CHILD_REQUIRE(own.adopt(data.mapped.data(), kBytes).ok());
              own.peer_sets(data.mapped.data(), 'c', 1);
              ORRERY_CHILD_REQUIRE(data.mapped.data()[0] == 'c');
              return 0;
            }),
            0);
  EXPECT_TRUE(data.intact());
}

TEST_P(Fork, ModesDecideWhatChildrenSee) {
  // The test says which addresses a child has; under ThreadSanitizer one of them is the tool's own. The other
  // suites run it.
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer maps a stack in the child before all others: into the large block's place";
#endif
  Pages small(kBytes);
  Pages large(kBytes + (std::size_t{40} << 20));
  std::memset(small.data(), 1, small.size());
  large.data()[0] = 1;
  large.data()[large.size() / 2] = 1;
  large.data()[large.size() - 1] = 1;
  ASSERT_TRUE(rig_.adopt(small.data(), small.size()).ok());
  ASSERT_TRUE(rig_.adopt(large.data(), large.size()).ok());
  for (const ForkMode mode : {ForkMode::part_copy, ForkMode::full_copy}) {
    rig_.space->set_fork_mode(mode);
    EXPECT_EQ(in_child([&] {
                ORRERY_CHILD_REQUIRE(small.data()[9] == 1);
                ORRERY_CHILD_REQUIRE(large.data()[0] == 1 && large.data()[large.size() - 1] == 1);
                ORRERY_CHILD_REQUIRE(large.data()[large.size() / 2] == 1);
                large.data()[large.size() / 2] = 2;
                return 0;
              }),
              0);
    EXPECT_EQ(large.data()[large.size() / 2], 1);
  }
  rig_.space->set_fork_mode(ForkMode::no_copy);
  const int code = in_child([&]() -> int {
    if (!kInterposed && std::freopen("/dev/null", "w", stderr) == nullptr) return 1;
    return small.data()[9] == 1 ? 2 : 3;
  });
  // A sanitizer reports the fault and exits with a code of its own.
  if (kInterposed) {
    EXPECT_EQ(code, 1000 + SIGSEGV);
  } else {
    EXPECT_TRUE(code != 2 && code != 3);
  }
}

TEST_P(Fork, WorksWhereTheForkingThreadBlocksFaults) {
  Adopted data(rig_);
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  const int code = in_child([&] {
    ORRERY_CHILD_REQUIRE(data.intact());
    sigset_t now;
    pthread_sigmask(SIG_BLOCK, nullptr, &now);
    ORRERY_CHILD_REQUIRE(sigismember(&now, SIGSEGV) == 1);
    return 0;
  });
  sigset_t after;
  pthread_sigmask(SIG_SETMASK, &before, &after);
  EXPECT_EQ(sigismember(&after, SIGSEGV), 1);
  EXPECT_EQ(code, 0);
}

TEST_P(Fork, OfAThreadWhoseArenaIsAdoptedWorks) {
  // The arena's own header shares the first page: libc writes to it in the child before any handler of ours
  // is called.
  std::thread([&] {
    char* const block = static_cast<char*>(std::malloc(64));
    std::strcpy(block, "arena");
    ASSERT_TRUE(rig_.adopt(block, 64).ok());
    for (int i = 0; i < 20; ++i) {
      EXPECT_EQ(in_child([&] {
                  ORRERY_CHILD_REQUIRE(use_malloc(3));
                  ORRERY_CHILD_REQUIRE(std::strcmp(block, "arena") == 0);
                  std::strcpy(block, "child");
                  return 0;
                }),
                0);
      EXPECT_TRUE(use_malloc(4));
      EXPECT_STREQ(block, "arena");
    }
    std::free(block);
  }).join();
}

TEST_P(Fork, SpawnedProgramsAndSystemWork) {
  Adopted data(rig_);
  char program[] = "/bin/true";
  char* arguments[] = {program, nullptr};
  pid_t child = 0;
  ASSERT_EQ(posix_spawn(&child, program, nullptr, nullptr, arguments, environ), 0);
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(std::system("exit 3") >> 8, 3);
  FILE* const pipe = popen("echo hello", "r");
  char line[16] = {};
  ASSERT_NE(std::fgets(line, sizeof line, pipe), nullptr);
  EXPECT_EQ(pclose(pipe), 0);
  EXPECT_STREQ(line, "hello\n");
  EXPECT_TRUE(data.intact());
}

TEST_P(Fork, TenThousandTimesUnderLoadHarmsNeitherSide) {
  Adopted data(rig_);
  ASSERT_TRUE(data.good);
  auto* const counter = reinterpret_cast<std::atomic<std::uint64_t>*>(std::malloc(64));
  counter->store(0);
  ASSERT_TRUE(rig_.adopt(counter, 64).ok());
  std::atomic<bool> stop{false};
  std::uint64_t counted = 0;
  std::thread churn([&] {
    for (unsigned seed = 0; !stop; ++seed) ASSERT_TRUE(use_malloc(seed));
  });
  std::thread count([&] {
    for (; !stop; ++counted) {
      counter->store(counter->load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      if (counted % 1024 == 0) std::this_thread::yield();
    }
  });
  int bad = 0;
  // Half of the 10,000 for each method; a sanitizer's fork takes 50 times as long.
  const unsigned forks = kInterposed ? 5'000 : 100;
  for (unsigned i = 0; i < forks && bad == 0; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      // gcc 12's sanitizers leave their allocator's locks as they are: a child may find one held by a thread
      // that it lacks.
      const bool fine = data.intact() && (!kInterposed || use_malloc(i));
      data.overwrite();
      counter->store(~std::uint64_t{0} / 2);
      if (kInterposed)
        for (char* block : data.small) std::free(block);
      _exit(fine && (!kInterposed || use_malloc(i + 1)) ? 0 : 1);
    }
    // The parent goes on with its own heap while the child runs.
    if (!use_malloc(i)) ++bad;
    int status = 0;
    if (waitpid(child, &status, 0) != child || status != 0) ++bad;
    if (!data.intact()) ++bad;
  }
  stop = true;
  churn.join();
  count.join();
  EXPECT_EQ(bad, 0);
  EXPECT_EQ(counter->load(), counted);
  std::free(counter);
}

INSTANTIATE_TEST_SUITE_P(Methods, Fork, ::testing::Values(Method::userfault, Method::protect),
                         [](const auto& info) { return method_name(info.param); });

}  // namespace
}  // namespace orrery::memory
