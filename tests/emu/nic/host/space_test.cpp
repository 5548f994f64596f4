// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A registration of a whole address space between two processes, while the owner's memory comes and goes.
// PE 1 owns it, PE 0 puts and gets. Run by `orrery run -n 2`.
#include "emu/nic/host/runtime.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include <malloc.h>
#include <pmi.h>
#include <sys/mman.h>
#include <unistd.h>

namespace orrery::nic {
namespace {

constexpr std::uint16_t kDomain = 77;
constexpr std::size_t kBytes = 1 << 20;    // a block that libc maps by itself
constexpr std::size_t kSmall = 100 << 10;  // and one that it takes from the heap

std::uint64_t g_static[kBytes / 8];

struct Told {
  MemKey key;
  std::uint32_t nic_address = 0;
  std::uint64_t address = 0;
};

class Space : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    int spawned = 0;
    ASSERT_EQ(PMI_Init(&spawned), PMI_SUCCESS);
    ASSERT_EQ(PMI_Get_rank(&rank_), PMI_SUCCESS);
    const auto runtime = Runtime::of_process();
    ASSERT_TRUE(runtime.ok());
    nic_ = &runtime.value()->nic();
    job::Job& job = runtime.value()->job();
    ASSERT_TRUE(job.publish(kDomain, static_cast<std::uint32_t>(rank_), 0).ok());
    port_ = nic_->open_port(kDomain, job.nic_address(), static_cast<std::uint32_t>(rank_));
    Told told;
    if (rank_ == 1) told = {nic_->regions().register_space(*port_, 0, nullptr).value(), job.nic_address(), 0};
    target_ = told_by_owner(told);
    queue_ = nic_->create_queue(64, 0).value();
    endpoint_ = std::make_unique<Endpoint>();
    endpoint_->port = port_;
    endpoint_->queue = queue_;
    queue_->become_source();
    endpoint_->bound = true;
    endpoint_->remote_nic_address = target_.nic_address;
    endpoint_->remote_instance = 1;
  }

  static void barrier() { EXPECT_EQ(PMI_Barrier(), PMI_SUCCESS); }
  // What PE 1 says, to both.
  static Told told_by_owner(const Told& mine) {
    static int turn = 0;
    char space[64] = {};
    EXPECT_EQ(PMI_KVS_Get_my_name(space, sizeof space), PMI_SUCCESS);
    const std::string key = "told" + std::to_string(turn++);
    if (rank_ == 1) {
      const std::string value = fmt::format("{} {} {} {} {} {}", mine.key.index, mine.key.generation,
                                            mine.key.process, mine.key.flags, mine.nic_address, mine.address);
      EXPECT_EQ(PMI_KVS_Put(space, key.c_str(), value.c_str()), PMI_SUCCESS);
      EXPECT_EQ(PMI_KVS_Commit(space), PMI_SUCCESS);
    }
    barrier();
    char value[256] = {};
    EXPECT_EQ(PMI_KVS_Get(space, key.c_str(), value, sizeof value), PMI_SUCCESS);
    Told told;
    unsigned flags = 0;
    EXPECT_EQ(std::sscanf(value, "%hu %hu %hu %u %u %lu", &told.key.index, &told.key.generation,
                          &told.key.process, &flags, &told.nic_address, &told.address),
              6);
    told.key.flags = static_cast<std::uint8_t>(flags);
    return told;
  }
  static std::uint64_t said(std::uint64_t address) { return told_by_owner({.address = address}).address; }
  static Errc access(Op op, std::uint64_t* word, std::uint64_t address) {
    Request request;
    request.op = op;
    request.flags = kGlobalEvent;
    request.local_address = reinterpret_cast<std::uint64_t>(word);
    request.remote_address = address;
    request.remote = target_.key;
    request.length = 8;
    const Errc posted = nic_->post(*endpoint_, request);
    if (posted != Errc::ok) return posted;
    Event event;
    while (nic_->poll(*queue_, &event) != Errc::ok) {
    }
    void* context = nullptr;
    EXPECT_TRUE(queue_->collect(event.transaction(), &context));
    return event.status;
  }
  static Errc put(std::uint64_t value, std::uint64_t address) { return access(Op::put, &value, address); }
  static bool is_direct(std::uint64_t address) {
    return extents_cover(endpoint_->peer->link.nic, address, 8);
  }
  static bool may_adopt() {
    const char* mode = std::getenv("ORRERY_ADOPT");
    return mode == nullptr || std::strcmp(mode, "never") != 0;
  }
  // PE 0: until the memory is direct, or for a while where it never will be.
  static bool make_hot(std::uint64_t address) {
    for (int i = 0; i < 2'000; ++i) {
      EXPECT_EQ(put(0, address), Errc::ok);
      if (is_direct(address)) return true;
      if (i > 40) usleep(1'000);
      if (i > 60 && !may_adopt()) break;
    }
    return false;
  }

  static inline int rank_ = 0;
  static inline Nic* nic_ = nullptr;
  static inline Port* port_ = nullptr;
  static inline Told target_;
  static inline CompletionQueue* queue_ = nullptr;
  static inline std::unique_ptr<Endpoint> endpoint_;
};

TEST_F(Space, ReachesStaticsHeapAndMappingsAndMakesThemDirect) {
  auto* const small = new std::uint64_t[512];
  void* const mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(mapped, MAP_FAILED);
  for (std::uint64_t* const words : {g_static + 1'000, small, static_cast<std::uint64_t*>(mapped)}) {
    *words = 17;
    const std::uint64_t address = said(reinterpret_cast<std::uint64_t>(words));
    if (rank_ == 0) {
      std::uint64_t got = 0;
      EXPECT_EQ(access(Op::get, &got, address), Errc::ok);
      EXPECT_EQ(got, 17u);
#ifdef __SANITIZE_ADDRESS__
      const bool is_eligible =
          words != small;  // its own allocator's heap is in mappings that are not told of
#else
      const bool is_eligible = true;
#endif
      EXPECT_EQ(make_hot(address), may_adopt() && is_eligible);
      EXPECT_EQ(put(42, address), Errc::ok);
    }
    barrier();
    if (rank_ == 1) {
      EXPECT_EQ(*words, 42u);
    }
    barrier();
  }
  munmap(mapped, kBytes);
  delete[] small;
}

TEST_F(Space, UnmappedAndReadOnlyMemoryIsAnErrorOfTheAccess) {
  void* const mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const std::uint64_t address = said(reinterpret_cast<std::uint64_t>(mapped));
  if (rank_ == 0) make_hot(address);
  barrier();
  if (rank_ == 1) {
    ASSERT_EQ(mprotect(mapped, kBytes, PROT_READ), 0);
  }
  barrier();
  if (rank_ == 0) {
    EXPECT_EQ(put(5, address), Errc::bounds);
    std::uint64_t got = 1;
    EXPECT_EQ(access(Op::get, &got, address), Errc::ok);
    EXPECT_EQ(got, 0u);
  }
  barrier();
  if (rank_ == 1) {
    ASSERT_EQ(munmap(mapped, kBytes), 0);
  }
  barrier();
  if (rank_ == 0) {
    EXPECT_EQ(put(6, address), Errc::bounds);
    EXPECT_EQ(put(7, 8), Errc::bounds) << "the null page";
    std::uint64_t got = 0;
    EXPECT_EQ(access(Op::get, &got, address), Errc::bounds);
  }
  barrier();
}

// The same addresses again and again, by the program's own calls and by libc's: what is stored is found in
// the memory that lies there now.
TEST_F(Space, MemoryThatTakesThePlaceOfWhatWasDirectIsReached) {
  for (int turn = 0; turn < 60; ++turn) {
    void* mapped = nullptr;
    if (rank_ == 1) {
      const int how = turn % 3;
      if (how == 0)
        mapped = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      else
        mapped = std::malloc(how == 1 ? kBytes : kSmall);
      std::memset(mapped, 1, kSmall);
    }
    const std::uint64_t address =
        said((reinterpret_cast<std::uint64_t>(mapped) + kSmall / 2) & ~std::uint64_t{7});
    if (rank_ == 0) {
      for (int i = 0; i < 40; ++i) ASSERT_EQ(put(static_cast<std::uint64_t>(i), address), Errc::ok);
      if (turn % 4 == 0) usleep(2'000);
      ASSERT_EQ(put(1'000u + static_cast<unsigned>(turn), address), Errc::ok);
    }
    barrier();
    if (rank_ == 1) {
      ASSERT_EQ(*reinterpret_cast<std::uint64_t*>(address), 1'000u + static_cast<unsigned>(turn))
          << "turn " << turn;
      if (turn % 3 == 0)
        munmap(mapped, kBytes);
      else
        std::free(mapped);
      if (turn % 5 == 0) malloc_trim(0);
    }
    barrier();
  }
}

TEST_F(Space, NothingIsReachedAfterItsEnd) {
  const std::uint64_t address = said(reinterpret_cast<std::uint64_t>(g_static));
  if (rank_ == 0) {
    EXPECT_EQ(make_hot(address), may_adopt());
    EXPECT_EQ(put(3, address), Errc::ok);
  }
  barrier();
  if (rank_ == 1) {
    EXPECT_TRUE(nic_->deregister(target_.key).ok());
    EXPECT_EQ(g_static[0], 3u);
  }
  barrier();
  if (rank_ == 0) {
    EXPECT_EQ(put(4, address), Errc::invalid_handle);
  }
  barrier();
  if (rank_ == 1) {
    EXPECT_EQ(g_static[0], 3u);
  }
}

}  // namespace
}  // namespace orrery::nic
