// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/memory/address_space.hpp"
#include "tests/lib/cci/world.hpp"

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <thread>

#include <sys/mman.h>

// Registered memory that peers use often lies in the process's memory file: no kernel is needed to reach it.
namespace cci_test {
namespace {

constexpr std::size_t kBytes = 1 << 20;
constexpr int kBoth = CCI_FLAG_READ | CCI_FLAG_WRITE;

// Anonymous pages, which no allocator uses.
struct Pages {
  std::size_t bytes;
  std::uint8_t* at;
  explicit Pages(std::size_t n = kBytes)
      : bytes(n),
        at(static_cast<std::uint8_t*>(
            mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {}
  ~Pages() { munmap(at, bytes); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
};

// How many bytes from `at` on are mapped from a memory file, as the kernel says.
std::size_t in_file(const void* at, std::size_t bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(at);
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  std::size_t found = 0;
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long begin = 0, end = 0;
    if (std::strstr(line, "orrery-memory") == nullptr || std::sscanf(line, "%lx-%lx", &begin, &end) != 2)
      continue;
    const std::size_t from = std::max<std::size_t>(begin, first);
    const std::size_t to = std::min<std::size_t>(end, first + bytes);
    if (to > from) found += to - from;
  }
  std::fclose(maps);
  return found;
}

cci_rma_handle_t* registered(cci_endpoint_t* endpoint, void* at, std::size_t bytes = kBytes) {
  cci_rma_handle_t* handle = nullptr;
  EXPECT_EQ(cci_rma_register(endpoint, at, bytes, kBoth, &handle), CCI_SUCCESS);
  return handle;
}

// One operation; its status.
int transfer(const Pair& pair, cci_rma_handle_t* local, std::uint64_t from, cci_rma_handle_t* remote,
             std::uint64_t to, std::uint64_t bytes, int flags) {
  const int status = cci_rma(pair.to_server, nullptr, 0, local, from, remote, to, bytes, nullptr, flags);
  if (status != CCI_SUCCESS) return status;
  cci_event_t* event = nullptr;
  const auto end = Clock::now() + std::chrono::seconds(60);
  while (cci_get_event(pair.client, &event) != CCI_SUCCESS) {
    cci_event_t* nothing = nullptr;
    (void)cci_get_event(pair.server, &nothing);  // it may go by frames
    if (Clock::now() > end) return CCI_ETIMEDOUT;
  }
  const int ended = event->send.status;
  cci_return_event(event);
  return ended;
}

// Uses the registration until it lies in the memory file, a minute at most.
void use_until_moved(const Pair& pair, cci_rma_handle_t* local, cci_rma_handle_t* remote, const void* there,
                     std::size_t bytes = kBytes) {
  const auto end = Clock::now() + std::chrono::seconds(60);
  while (in_file(there, bytes) != bytes && Clock::now() < end) {
    for (int i = 0; i < 64; ++i)
      ASSERT_EQ(transfer(pair, local, 0, remote, 0, 64, CCI_FLAG_WRITE), CCI_SUCCESS);
  }
  ASSERT_EQ(in_file(there, bytes), bytes);
}

class Mapping : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(open(&pair_, CCI_CONN_ATTR_RO));
    std::memset(here_.at, 'h', kBytes);
    std::memset(there_.at, 't', kBytes);
    local_ = registered(pair_.client, here_.at);
    remote_ = registered(pair_.server, there_.at);
  }
  const Started started_;
  Pair pair_;
  Pages here_, there_;
  cci_rma_handle_t* local_ = nullptr;
  cci_rma_handle_t* remote_ = nullptr;
};

TEST_F(Mapping, MemoryThatIsUsedOftenIsMovedAndReachedThere) {
  ASSERT_EQ(transfer(pair_, local_, 0, remote_, 0, 64, CCI_FLAG_WRITE), CCI_SUCCESS);
  EXPECT_EQ(in_file(there_.at, kBytes), 0u);
  ASSERT_NO_FATAL_FAILURE(use_until_moved(pair_, local_, remote_, there_.at));
  EXPECT_EQ(there_.at[63], 'h');
  EXPECT_EQ(there_.at[64], 't');
  for (int turn = 1; turn < 40; ++turn) {
    std::memset(here_.at, turn, kBytes);
    ASSERT_EQ(transfer(pair_, local_, 1, remote_, 3, kBytes - 5, CCI_FLAG_WRITE), CCI_SUCCESS);
    ASSERT_EQ(there_.at[3], turn);
    ASSERT_EQ(there_.at[kBytes - 3], turn);
    ASSERT_EQ(there_.at[kBytes - 2], 't');
    there_.at[100] = 'x';
    ASSERT_EQ(transfer(pair_, local_, 0, remote_, 0, kBytes, CCI_FLAG_READ), CCI_SUCCESS);
    ASSERT_EQ(std::memcmp(here_.at, there_.at, kBytes), 0);
  }
  EXPECT_EQ(transfer(pair_, local_, 0, remote_, 1, kBytes, CCI_FLAG_WRITE), CCI_ERR_RMA_HANDLE);
}

TEST_F(Mapping, WhatTheProgramWritesMeanwhileStays) {
  // One thread counts in each page, beside what peers write.
  constexpr int kPages = kBytes / 4096;
  std::atomic<bool> stop{false};
  std::uint64_t rounds = 0;
  std::thread writer([&] {
    for (; !stop; ++rounds) {
      for (int page = 0; page < kPages; ++page) {
        std::atomic_ref<std::uint64_t> word(
            *reinterpret_cast<std::uint64_t*>(there_.at + page * 4096 + 2048));
        if (rounds == 0) word.store(0);
        word.fetch_add(1, std::memory_order_relaxed);
      }
    }
  });
  const auto end = Clock::now() + std::chrono::seconds(60);
  std::uint8_t turn = 0;
  int after = 0;
  while (after < 200 && Clock::now() < end) {
    std::memset(here_.at, ++turn, 1024);
    const std::uint64_t at = (turn % kPages) * 4096;
    ASSERT_EQ(transfer(pair_, local_, 0, remote_, at, 1024, CCI_FLAG_WRITE), CCI_SUCCESS);
    ASSERT_EQ(there_.at[at], turn);
    ASSERT_EQ(there_.at[at + 1023], turn);
    if (in_file(there_.at, kBytes) == kBytes) ++after;
  }
  stop = true;
  writer.join();
  ASSERT_EQ(after, 200);
  for (int page = 0; page < kPages; ++page)
    ASSERT_EQ(*reinterpret_cast<std::uint64_t*>(there_.at + page * 4096 + 2048), rounds) << page;
}

TEST_F(Mapping, ARegistrationThatEndedIsNotReachedThere) {
  ASSERT_NO_FATAL_FAILURE(use_until_moved(pair_, local_, remote_, there_.at));
  cci_rma_handle stale = *remote_;
  ASSERT_EQ(cci_rma_deregister(pair_.server, remote_), CCI_SUCCESS);
  std::memset(there_.at, 'n', kBytes);
  EXPECT_EQ(transfer(pair_, local_, 0, &stale, 0, kBytes, CCI_FLAG_WRITE), CCI_ERR_RMA_HANDLE);
  EXPECT_EQ(there_.at[0], 'n');
  // Another one of the same memory is reached at once, in its own bounds and with its own rights.
  cci_rma_handle_t* again = nullptr;
  ASSERT_EQ(cci_rma_register(pair_.server, there_.at + 4096, 8192, CCI_FLAG_READ, &again), CCI_SUCCESS);
  EXPECT_EQ(transfer(pair_, local_, 0, again, 0, 8192, CCI_FLAG_READ), CCI_SUCCESS);
  EXPECT_EQ(here_.at[8191], 'n');
  EXPECT_EQ(here_.at[8192], 'h');
  EXPECT_EQ(transfer(pair_, local_, 0, again, 0, 8192, CCI_FLAG_WRITE), CCI_ERR_RMA_HANDLE);
  EXPECT_EQ(transfer(pair_, local_, 0, again, 0, 8193, CCI_FLAG_READ), CCI_ERR_RMA_HANDLE);
}

// What the interposed calls keep right: the program gives pages back, and their addresses serve anew.
TEST_F(Mapping, PagesThatTheProgramTakesAnewAreReachedAgain) {
  for (int turn = 0; turn < 3; ++turn) {
    ASSERT_NO_FATAL_FAILURE(use_until_moved(pair_, local_, remote_, there_.at));
    ASSERT_EQ(cci_rma_deregister(pair_.server, remote_), CCI_SUCCESS);
    ASSERT_EQ(mmap(there_.at, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
              there_.at);
    EXPECT_EQ(in_file(there_.at, kBytes), 0u);
    remote_ = registered(pair_.server, there_.at);
    std::memset(here_.at, 'a' + turn, kBytes);
    ASSERT_EQ(transfer(pair_, local_, 0, remote_, 0, kBytes, CCI_FLAG_WRITE), CCI_SUCCESS);
    EXPECT_EQ(std::memcmp(here_.at, there_.at, kBytes), 0);
  }
}

// As a NIC of the process does, which cannot do without.
void give_the_file_up(const Pair& pair, cci_rma_handle_t* local, cci_rma_handle_t* remote, const Pages& here,
                      const Pages& there) {
  ASSERT_NO_FATAL_FAILURE(use_until_moved(pair, local, remote, there.at));
  std::memset(there.at, 'k', kBytes);
  auto space = orrery::memory::AddressSpace::create({});
  ASSERT_TRUE(space.ok());
  EXPECT_EQ(in_file(there.at, kBytes), 0u);
  EXPECT_EQ(there.at[kBytes - 1], 'k');
  for (int turn = 0; turn < 40; ++turn) {
    std::memset(here.at, turn, kBytes);
    ASSERT_EQ(transfer(pair, local, 0, remote, 0, kBytes, CCI_FLAG_WRITE), CCI_SUCCESS);
    ASSERT_EQ(std::memcmp(here.at, there.at, kBytes), 0);
  }
  EXPECT_EQ(in_file(there.at, kBytes), 0u) << "moved into a file that is another's";
}

// For good: in a process of its own.
TEST_F(Mapping, TheFileIsGivenUpToALibraryThatNeedsOne) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        give_the_file_up(pair_, local_, remote_, here_, there_);
        _exit(HasFailure() ? 1 : 0);
      },
      ::testing::ExitedWithCode(0), "");
}

// A writer that is stopped in the middle of a copy goes on when the memory serves another purpose.
TEST(MappingOfProcesses, APeerThatIsStoppedWritesToNoMemoryThatIsDeregistered) {
  constexpr std::size_t kLong = std::size_t{16} << 20;
  struct Shared {
    char uri[128];
    struct cci_rma_handle handle;
    std::atomic<std::uint64_t> written;
    std::atomic<bool> ready, failed;
  };
  auto* const shared = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(shared, MAP_FAILED);
  const pid_t writer = fork();
  if (writer == 0) {
    while (!shared->ready) usleep(1000);
    const Started started;
    Pair pair;
    Pages mine(kLong);
    std::memset(mine.at, 'w', kLong);
    cci_event_t* event = nullptr;
    if (cci_create_endpoint(nullptr, 0, &pair.client, nullptr) != CCI_SUCCESS ||
        cci_connect(pair.client, shared->uri, nullptr, 0, CCI_CONN_ATTR_RO, nullptr, 0, nullptr) !=
            CCI_SUCCESS ||
        (event = next_event(pair.client, std::chrono::seconds(60))) == nullptr ||
        event->connect.status != CCI_SUCCESS)
      _exit(1);
    pair.to_server = event->connect.connection;
    cci_rma_handle_t* const local = registered(pair.client, mine.at, kLong);
    for (;;) {
      if (cci_rma(pair.to_server, nullptr, 0, local, 0, &shared->handle, 0, kLong, nullptr, CCI_FLAG_WRITE) !=
          CCI_SUCCESS)
        _exit(2);
      while (cci_get_event(pair.client, &event) != CCI_SUCCESS) {
      }
      const bool ended = event->send.status != CCI_SUCCESS;
      cci_return_event(event);
      if (ended) _exit(0);
      ++shared->written;
    }
  }
  ASSERT_GT(writer, 0);
  const Started started;
  cci_endpoint_t* server = nullptr;
  ASSERT_EQ(cci_create_endpoint(nullptr, 0, &server, nullptr), CCI_SUCCESS);
  Pages there(kLong);
  std::memset(there.at, 't', kLong);
  cci_rma_handle_t* const handle = registered(server, there.at, kLong);
  shared->handle = *handle;
  std::snprintf(shared->uri, sizeof shared->uri, "%s", uri_of(server).c_str());
  shared->ready = true;
  cci_event_t* const request = next_event(server, std::chrono::seconds(60));
  ASSERT_NE(request, nullptr);
  ASSERT_EQ(cci_accept(request, nullptr), CCI_SUCCESS);
  cci_return_event(request);
  cci_event_t* const accepted = next_event(server, std::chrono::seconds(60));
  ASSERT_NE(accepted, nullptr);
  ASSERT_EQ(accepted->type, CCI_EVENT_ACCEPT);
  cci_return_event(accepted);
  // Until it writes by the file.
  const auto end = Clock::now() + std::chrono::seconds(60);
  while (in_file(there.at, kLong) != kLong && Clock::now() < end) usleep(1000);
  ASSERT_EQ(in_file(there.at, kLong), kLong);
  const std::uint64_t written = shared->written;
  while (shared->written < written + 2 && Clock::now() < end) usleep(100);
  kill(writer, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(writer, &status, WUNTRACED), writer);
  ASSERT_TRUE(WIFSTOPPED(status));
  ASSERT_EQ(cci_rma_deregister(server, handle), CCI_SUCCESS);
  std::memset(there.at, 'n', kLong);
  kill(writer, SIGCONT);
  ASSERT_EQ(waitpid(writer, &status, 0), writer);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  for (std::size_t i = 0; i < kLong; ++i) ASSERT_EQ(there.at[i], 'n') << i;
  munmap(shared, sizeof(Shared));
}

}  // namespace
}  // namespace cci_test
