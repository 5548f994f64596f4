// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// A target that sleeps or is stopped is still written to, read and told; an initiator that is stopped in the
// middle of its posts holds no other up. Of the two PEs the first is the one that goes on.
#include "tests/lib/gni/client.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <random>
#include <string>

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

namespace {

using client::address_of;
using client::descriptor;
using client::next_event;

constexpr std::size_t kBytes = 64 << 10;
constexpr std::size_t kWords = kBytes / sizeof(std::uint64_t);

// Whether a process is stopped, as the kernel sees it.
bool is_stopped(pid_t pid) {
  std::array<char, 512> line{};
  FILE* file = std::fopen(("/proc/" + std::to_string(pid) + "/stat").c_str(), "r");
  if (file == nullptr) return false;
  const std::size_t got = std::fread(line.data(), 1, line.size() - 1, file);
  std::fclose(file);
  const std::string stat(line.data(), got);
  const std::size_t end = stat.rfind(") ");
  return end != std::string::npos && end + 2 < stat.size() && stat[end + 2] == 'T';
}

// Whether the mapping that holds `at` is a shared one.
bool is_shared(const void* at) {
  FILE* maps = std::fopen("/proc/self/maps", "r");
  if (maps == nullptr) return false;
  std::array<char, 512> line{};
  bool shared = false;
  while (std::fgets(line.data(), line.size(), maps) != nullptr) {
    unsigned long begin = 0;
    unsigned long end = 0;
    std::array<char, 8> rights{};
    if (std::sscanf(line.data(), "%lx-%lx %7s", &begin, &end, rights.data()) != 3) continue;
    if (address_of(at) >= begin && address_of(at) < end) shared = rights[3] == 's';
  }
  std::fclose(maps);
  return shared;
}

void wait_until_stopped(pid_t pid) {
  for (int i = 0; i < 300'000 && !is_stopped(pid); ++i) usleep(200);
  ASSERT_TRUE(is_stopped(pid)) << pid << " has not stopped for a minute";
}

class Stopped : public testing::Test {
 protected:
  struct Card {
    pid_t pid;
    std::uint32_t nic_address;
    std::uint64_t address;
    gni_mem_handle_t handle;
  };

  Stopped() : domain(0, 100) {
    memory = static_cast<std::uint64_t*>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::fill_n(memory, kWords, 0);
    sources = domain.queue(64);
    targets = domain.queue(4096);
    mine = {getpid(), domain.address, address_of(memory), domain.memory(memory, kBytes, targets)};
    const auto cards = pmi.gather(mine);
    peer = cards[static_cast<std::size_t>(1 - pmi.rank)];
    endpoint = domain.endpoint(sources, peer.nic_address, 100 + static_cast<std::uint32_t>(1 - pmi.rank));
    local = domain.memory(&word, sizeof word);
    use_until_adopted();
  }
  ~Stopped() override {
    pmi.barrier();
    munmap(memory, kBytes);
  }

  // What is used often moves into the memory file, and is reached without its owner from then on.
  void use_until_adopted() {
    for (int round = 0; round < 60'000; ++round) {
      for (int i = 0; i < 20; ++i) put(0, 1, GNI_CQMODE_GLOBAL_EVENT);
      usleep(1000);
      const auto adopted = pmi.gather<int>(is_shared(memory) ? 1 : 0);
      if (std::count(adopted.begin(), adopted.end(), 0) == 0) return;
    }
    FAIL() << "memory that is used often has not moved into the memory file";
  }
  gni_post_descriptor_t word_at(gni_post_type_t type, std::size_t index, std::uint16_t mode) {
    gni_post_descriptor_t d = descriptor(type, mode);
    d.local_addr = address_of(&word);
    d.local_mem_hndl = local;
    d.remote_addr = peer.address + index * sizeof word;
    d.remote_mem_hndl = peer.handle;
    d.length = sizeof word;
    return d;
  }
  // The status of a put's own event.
  gni_return_t put(std::size_t index, std::uint64_t value, std::uint16_t mode) {
    word = value;
    gni_post_descriptor_t d = word_at(GNI_POST_FMA_PUT, index, mode);
    return post_and_reap(&d);
  }
  gni_return_t post_and_reap(gni_post_descriptor_t* d) {
    REQUIRE_SUCCESS(GNI_PostFma(endpoint, d));
    gni_cq_entry_t event = 0;
    const gni_return_t told = next_event(sources, &event);
    gni_post_descriptor_t* done = nullptr;
    if (told != GNI_RC_NOT_DONE) (void)GNI_GetCompleted(sources, event, &done);
    return told;
  }
  // What the first PE does to a second that does nothing.
  void use_the_other() {
    for (std::size_t i = 1; i <= 500; ++i)
      EXPECT_EQ(put(i, i * 3, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT), GNI_RC_SUCCESS);
    for (std::size_t i = 1; i <= 500; ++i) {
      word = 0;
      gni_post_descriptor_t d = word_at(GNI_POST_FMA_GET, i, GNI_CQMODE_GLOBAL_EVENT);
      EXPECT_EQ(post_and_reap(&d), GNI_RC_SUCCESS);
      EXPECT_EQ(word, i * 3);
    }
  }
  // What the second finds when it looks again.
  void find_it_all() {
    for (std::size_t i = 1; i <= 500; ++i) EXPECT_EQ(memory[i], i * 3);
    gni_cq_entry_t event = 0;
    for (int i = 0; i < 500; ++i) ASSERT_EQ(GNI_CqGetEvent(targets, &event), GNI_RC_SUCCESS) << i;
    EXPECT_EQ(GNI_CqGetEvent(targets, &event), GNI_RC_NOT_DONE);
  }

  const client::Pmi& pmi = client::Pmi::get();
  client::Domain domain;
  std::uint64_t* memory = nullptr;
  alignas(8) std::uint64_t word = 0;
  gni_cq_handle_t sources = nullptr;
  gni_cq_handle_t targets = nullptr;
  gni_mem_handle_t local{};
  gni_ep_handle_t endpoint = nullptr;
  Card mine{};
  Card peer{};
};

TEST_F(Stopped, ATargetThatIsStoppedIsStillWrittenReadAndTold) {
  if (pmi.rank == 1) {
    ASSERT_EQ(raise(SIGSTOP), 0);
    find_it_all();
  } else {
    wait_until_stopped(peer.pid);
    use_the_other();
    EXPECT_TRUE(is_stopped(peer.pid));
    ASSERT_EQ(kill(peer.pid, SIGCONT), 0);
  }
}

TEST_F(Stopped, ATargetThatSleepsInTheKernelIsStillWrittenReadAndTold) {
  if (pmi.rank == 1) {
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    sigprocmask(SIG_BLOCK, &one, nullptr);
    pmi.barrier();
    int got = 0;
    ASSERT_EQ(sigwait(&one, &got), 0);
    find_it_all();
  } else {
    pmi.barrier();
    use_the_other();
    ASSERT_EQ(kill(peer.pid, SIGUSR1), 0);
  }
}

TEST_F(Stopped, AnInitiatorThatIsStoppedAnywhereHoldsNobodyUp) {
  constexpr int kRounds = 40;
  std::minstd_rand random(20);
  for (int round = 0; round < kRounds; ++round) {
    auto* const area = static_cast<std::uint64_t*>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    std::fill_n(area, kWords, 0);
    Card card = mine;
    card.address = address_of(area);
    card.handle = domain.memory(area, kBytes);
    peer = pmi.gather(card)[static_cast<std::size_t>(1 - pmi.rank)];
    if (pmi.rank == 1) {
      // Writes until it is told that there is nothing to write to any more.
      std::uint64_t value = 1;
      while (put(value % kWords, value, GNI_CQMODE_GLOBAL_EVENT) == GNI_RC_SUCCESS) ++value;
      EXPECT_GT(value, 16U);
    } else {
      while (*const_cast<volatile std::uint64_t*>(&area[20]) == 0) usleep(50);
      usleep(static_cast<useconds_t>(random() % 3000));
      ASSERT_EQ(kill(peer.pid, SIGSTOP), 0);
      wait_until_stopped(peer.pid);
      // No access is left in it when this returns, wherever the other stands.
      ASSERT_EQ(GNI_MemDeregister(domain.nic, &card.handle), GNI_RC_SUCCESS);
      std::fill_n(area, kWords, ~0ull);
      ASSERT_EQ(kill(peer.pid, SIGCONT), 0);
    }
    pmi.barrier();
    if (pmi.rank == 0) {
      EXPECT_EQ(std::count(area, area + kWords, ~0ull), static_cast<std::ptrdiff_t>(kWords)) << round;
    } else {
      EXPECT_EQ(GNI_MemDeregister(domain.nic, &card.handle), GNI_RC_SUCCESS);
    }
    munmap(area, kBytes);
  }
}

}  // namespace
