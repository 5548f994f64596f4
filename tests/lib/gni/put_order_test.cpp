// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/lib/gni/client.hpp"

#include <vector>

#include <sys/mman.h>

// Puts of one endpoint take effect in the order in which they were posted, while their target goes from
// frames to direct, and where one registration is direct and another is not: a later one may not be done
// before an earlier one that still travels.
namespace {

using client::address_of;
using client::Pmi;

constexpr std::uint64_t kPageBytes = 4096;
constexpr int kRounds = 60;
constexpr std::size_t kPuts = 600;
constexpr std::uint64_t kLast = 2;

struct Card {
  std::uint32_t address;
  std::uint32_t instance;
  std::uint64_t memory;
  gni_mem_handle_t handle;
};

class PutOrder : public testing::TestWithParam<std::uint16_t> {
 protected:
  // Puts zeroes and then kLast to the same word of the next PE, and waits for all of them.
  void put_many(const Card& target) {
    const gni_ep_handle_t ep = domain.endpoint(queue, target.address, target.instance);
    std::vector<gni_post_descriptor_t> posts(kPuts);
    std::vector<std::uint64_t> values(kPuts, 0);
    values.back() = kLast;
    std::size_t done = 0;
    const auto reap = [&] {
      gni_cq_entry_t event = 0;
      while (GNI_CqGetEvent(queue, &event) == GNI_RC_SUCCESS) {
        gni_post_descriptor_t* post = nullptr;
        ASSERT_EQ(GNI_GetCompleted(queue, event, &post), GNI_RC_SUCCESS);
        ++done;
      }
    };
    const std::time_t give_up = std::time(nullptr) + 60;
    for (std::size_t i = 0; i < kPuts; ++i) {
      posts[i] = client::descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT);
      posts[i].dlvr_mode = GetParam();
      posts[i].local_addr = address_of(&values[i]);
      posts[i].remote_addr = target.memory;
      posts[i].remote_mem_hndl = target.handle;
      posts[i].length = 8;
      gni_return_t rc = GNI_RC_ERROR_RESOURCE;
      while ((rc = GNI_PostFma(ep, &posts[i])) == GNI_RC_ERROR_RESOURCE && std::time(nullptr) < give_up)
        reap();
      ASSERT_EQ(rc, GNI_RC_SUCCESS);
      if (i % 16 == 0) reap();
    }
    while (done < kPuts && std::time(nullptr) < give_up) reap();
    EXPECT_EQ(done, kPuts) << "every one completes once";
    EXPECT_EQ(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
  }

  const Pmi& pmi = Pmi::get();
  client::Domain domain;
  gni_cq_handle_t queue = domain.queue(8192);
};

TEST_P(PutOrder, HoldsWhileMemoryMoves) {
  for (int round = 0; round < kRounds; ++round) {
    void* const page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(page, MAP_FAILED);
    gni_mem_handle_t handle = domain.memory(page, kPageBytes);
    const auto cards = pmi.gather(Card{domain.address, domain.instance, address_of(page), handle});
    if (pmi.rank == 1) put_many(cards[0]);
    pmi.barrier();
    if (pmi.rank == 0) {
      EXPECT_EQ(*static_cast<volatile std::uint64_t*>(page), kLast) << "round " << round;
    }
    pmi.barrier();
    EXPECT_EQ(GNI_MemDeregister(domain.nic, &handle), GNI_RC_SUCCESS);
    munmap(page, kPageBytes);
  }
}

// Data into memory that is reached by frame, then a flag into memory that is direct: the flag says that the
// data is there.
TEST_P(PutOrder, HoldsBetweenRegistrations) {
  const auto fresh_page = [] {
    void* const page = mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(page, MAP_FAILED);
    return static_cast<std::uint64_t*>(page);
  };
  const auto share = [&](std::uint64_t* page, gni_mem_handle_t handle) {
    return pmi.gather(Card{domain.address, domain.instance, address_of(page), handle})[0];
  };
  std::uint64_t* const flag = fresh_page();
  gni_mem_handle_t flag_handle = domain.memory(flag, kPageBytes);
  const Card flag_card = share(flag, flag_handle);
  if (pmi.rank == 1) put_many(flag_card);  // it is used often, and moved
  pmi.barrier();
  const std::time_t give_up = std::time(nullptr) + 60;
  constexpr std::uint64_t kValues = 50;
  std::uint64_t value = kLast;
  for (int round = 0; round < kRounds; ++round) {
    std::uint64_t* const page = fresh_page();
    gni_mem_handle_t handle = domain.memory(page, kPageBytes);
    const Card card = share(page, handle);
    if (pmi.rank == 1) {
      const gni_ep_handle_t ep = domain.endpoint(queue, card.address, card.instance);
      for (std::uint64_t i = 0; i < kValues; ++i) {
        ++value;
        for (const Card& to : {card, flag_card}) {
          auto post = client::descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_SILENT);
          post.dlvr_mode = GetParam();
          post.local_addr = address_of(&value);
          post.remote_addr = to.memory;
          post.remote_mem_hndl = to.handle;
          post.length = 8;
          gni_return_t rc = GNI_RC_ERROR_RESOURCE;
          while (rc == GNI_RC_ERROR_RESOURCE && std::time(nullptr) < give_up) rc = GNI_PostFma(ep, &post);
          EXPECT_EQ(rc, GNI_RC_SUCCESS);
        }
      }
      pmi.barrier();
      EXPECT_EQ(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    } else {
      const std::uint64_t last = value + kValues;
      std::uint64_t data = 0;
      bool in_order = true;
      for (std::uint64_t seen = 0; pmi.rank == 0 && seen != last && std::time(nullptr) < give_up;) {
        seen = __atomic_load_n(flag, __ATOMIC_ACQUIRE);
        data = __atomic_load_n(page, __ATOMIC_ACQUIRE);
        in_order = in_order && (seen <= value || data >= seen);
      }
      if (pmi.rank == 0) {
        EXPECT_TRUE(in_order) << "round " << round;
        EXPECT_EQ(data, last) << "round " << round;
      }
      value = last;
      pmi.barrier();
    }
    EXPECT_EQ(GNI_MemDeregister(domain.nic, &handle), GNI_RC_SUCCESS);
    munmap(page, kPageBytes);
  }
  EXPECT_EQ(GNI_MemDeregister(domain.nic, &flag_handle), GNI_RC_SUCCESS);
  munmap(flag, kPageBytes);
}
INSTANTIATE_TEST_SUITE_P(Modes, PutOrder, testing::Values(GNI_DLVMODE_PERFORMANCE, GNI_DLVMODE_IN_ORDER));

}  // namespace
