// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A job whose traffic is stopped, and goes on. PE 1 works; PE 0, in the launcher's part, stops it.
#include "tests/lib/gni/client.hpp"
#include "tests/require.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>

#include <unistd.h>

namespace {

using client::address_of;
using client::descriptor;
using client::next_event;

constexpr std::uint32_t kPatienceMs = 30'000;

gni_return_t suspend(std::uint32_t timeout = kPatienceMs) {
  return GNI_SuspendJob(0, 1, client::ptag(), client::cookie(), timeout);
}
gni_return_t resume() { return GNI_ResumeJob(0, 1, client::ptag(), client::cookie()); }

// Memory of both, and a thread of PE 1 that uses PE 0's in every way until it is told to stop.
class Suspension : public testing::Test {
 protected:
  enum Word : std::size_t { kPuts, kAdds, kStop, kWords = 8192 / sizeof(std::uint64_t) };
  struct Card {
    std::uint32_t address;
    std::uint64_t memory;
    gni_mem_handle_t handle;
  };

  Suspension() {
    if (posix_memalign(reinterpret_cast<void**>(&memory), 4096, 8192) != 0) std::abort();
    std::fill_n(memory, kWords, 0);
    queue = domain.queue(256);
    own = domain.memory(memory, 8192);
    const auto cards = pmi.gather(Card{domain.address, address_of(memory), own});
    peer = cards[static_cast<std::size_t>(1 - pmi.rank)];
    ep = domain.endpoint(queue, peer.address, 100 + static_cast<std::uint32_t>(1 - pmi.rank));
  }
  ~Suspension() override {
    pmi.barrier();
    std::free(memory);
  }

  std::uint64_t look(Word word) const {
    return std::atomic_ref<std::uint64_t>(memory[word]).load(std::memory_order_acquire);
  }
  void finish(gni_post_descriptor_t* d) {
    REQUIRE_SUCCESS(d->type == GNI_POST_RDMA_GET ? GNI_PostRdma(ep, d) : GNI_PostFma(ep, d));
    gni_cq_entry_t event = 0;
    EXPECT_EQ(next_event(queue, &event), GNI_RC_SUCCESS);
    gni_post_descriptor_t* done = nullptr;
    EXPECT_EQ(GNI_GetCompleted(queue, event, &done), GNI_RC_SUCCESS);
  }
  // One round of everything.
  void work(std::uint64_t round) {
    std::uint64_t value = round;
    gni_post_descriptor_t put = descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT);
    put.local_addr = address_of(&value);
    put.remote_addr = peer.memory + kPuts * 8;
    put.remote_mem_hndl = peer.handle;
    put.length = 8;
    finish(&put);
    gni_post_descriptor_t add = descriptor(GNI_POST_AMO, GNI_CQMODE_GLOBAL_EVENT);
    add.amo_cmd = GNI_FMA_ATOMIC_ADD;
    add.remote_addr = peer.memory + kAdds * 8;
    add.remote_mem_hndl = peer.handle;
    add.length = 8;
    add.first_operand = 1;
    finish(&add);
    gni_post_descriptor_t get = descriptor(GNI_POST_RDMA_GET, GNI_CQMODE_GLOBAL_EVENT);
    get.local_addr = address_of(memory) + 4096;
    get.local_mem_hndl = own;
    get.remote_addr = peer.memory + 4096;
    get.remote_mem_hndl = peer.handle;
    get.length = 4096;
    finish(&get);
  }

  const client::Pmi& pmi = client::Pmi::get();
  client::Domain domain;
  std::uint64_t* memory = nullptr;
  gni_mem_handle_t own{};
  gni_cq_handle_t queue = nullptr;
  gni_ep_handle_t ep = nullptr;
  Card peer{};
};

// Until that thread of this process sleeps in the kernel, or `ended`; a minute at most.
void wait_until_asleep(pid_t thread, const std::atomic<bool>& ended) {
  for (const std::time_t give_up = std::time(nullptr) + 60; !ended && std::time(nullptr) < give_up;) {
    std::ifstream stat("/proc/self/task/" + std::to_string(thread) + "/stat");
    std::string line;
    std::getline(stat, line);
    if (line.find(") S ") != std::string::npos) return;
    usleep(100);
  }
}

TEST_F(Suspension, ProgramsPauseAndGoOn) {
  if (geteuid() != 0) ORRERY_SKIP("root") << "suspending is a privileged act";
  if (pmi.rank == 1) {
    for (std::uint64_t round = 1; look(kStop) == 0; ++round) work(round);
    return;
  }
  const auto wait_for_progress = [&] {
    const std::uint64_t before = look(kAdds);
    const std::time_t give_up = std::time(nullptr) + 60;
    while (look(kAdds) < before + 10 && std::time(nullptr) < give_up) usleep(100);
    return look(kAdds) >= before + 10;
  };
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(wait_for_progress());
    ASSERT_EQ(suspend(), GNI_RC_SUCCESS);
    const std::uint64_t puts = look(kPuts);
    const std::uint64_t adds = look(kAdds);
    EXPECT_LE(puts - adds, 1u) << "each round is whole but for the last";
    // However long one looks.
    for (int k = 0; k < 20; ++k) {
      usleep(500);
      ASSERT_EQ(look(kPuts), puts);
      ASSERT_EQ(look(kAdds), adds);
    }
    ASSERT_EQ(suspend(), GNI_RC_SUCCESS) << "it is already";
    ASSERT_EQ(resume(), GNI_RC_SUCCESS);
  }
  EXPECT_TRUE(wait_for_progress());
  // The stopper's own operations paused with the others', and go on.
  std::uint64_t one = 1;
  gni_post_descriptor_t stop = descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT);
  stop.local_addr = address_of(&one);
  stop.remote_addr = peer.memory + kStop * 8;
  stop.remote_mem_hndl = peer.handle;
  stop.length = 8;
  ASSERT_EQ(suspend(), GNI_RC_SUCCESS);
  std::atomic<bool> ended{false};
  std::atomic<pid_t> posting{0};
  std::thread poster([&] {
    posting.store(gettid(), std::memory_order_release);
    finish(&stop);
    ended.store(true, std::memory_order_release);
  });
  while (posting.load(std::memory_order_acquire) == 0) usleep(100);
  wait_until_asleep(posting, ended);
  EXPECT_FALSE(ended.load(std::memory_order_acquire)) << "its post did not wait";
  ASSERT_EQ(resume(), GNI_RC_SUCCESS);
  poster.join();
}

TEST_F(Suspension, WhatCannotBeSaysSo) {
  if (geteuid() != 0) {
    EXPECT_EQ(suspend(), GNI_RC_PERMISSION_ERROR);
    EXPECT_EQ(resume(), GNI_RC_PERMISSION_ERROR);
    return;
  }
  if (pmi.rank == 1) return;
  EXPECT_EQ(GNI_SuspendJob(1, 1, client::ptag(), client::cookie(), 0), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_SuspendJob(0, 1, client::ptag(), client::cookie() + 77, 0), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_ResumeJob(1, 1, client::ptag(), client::cookie()), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_ResumeJob(0, 1, client::ptag(), client::cookie() + 77), GNI_RC_NO_MATCH);
  EXPECT_EQ(resume(), GNI_RC_INVALID_STATE) << "nothing was suspended";
  // A domain that was configured for a job is that job's.
  if (GNI_ConfigureJob(0, 1, client::ptag(), client::cookie(), nullptr) == GNI_RC_SUCCESS) {
    EXPECT_EQ(GNI_SuspendJob(0, 2, client::ptag(), client::cookie(), 0), GNI_RC_NO_MATCH);
    EXPECT_EQ(GNI_ResumeJob(0, 2, client::ptag(), client::cookie()), GNI_RC_NO_MATCH);
    EXPECT_EQ(resume(), GNI_RC_INVALID_STATE) << "still nothing was suspended";
  } else {
    ADD_FAILURE() << "the domain could not be configured";
  }
  // The tag may be left to the cookie.
  EXPECT_EQ(GNI_SuspendJob(0, 1, GNI_FIND_ALLOC_PTAG, client::cookie(), kPatienceMs), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_ResumeJob(0, 1, GNI_FIND_ALLOC_PTAG, client::cookie()), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_SuspendJob(0, 1, GNI_FIND_ALLOC_PTAG, client::cookie() + 77, 0), GNI_RC_NO_MATCH);
}

}  // namespace
