// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Block transfers long enough for the engine: the call returns while they are under way. What the interface
// permits but does not promise (to be overtaken, to read the source late) is tried until it is seen.
#include "tests/lib/gni/client.hpp"

#include <cstddef>

#include <sys/mman.h>

namespace {

using client::address_of;
using client::descriptor;
using client::next_event;

constexpr std::size_t kLong = 32 << 20;
constexpr std::size_t kShort = 4096;
constexpr std::size_t kBytes = kLong + kShort;
constexpr int kTries = 200;

class Bte : public testing::Test {
 protected:
  struct Card {
    std::uint32_t nic_address;
    std::uint64_t address;
    gni_mem_handle_t handle;
  };

  Bte() : domain(0, 100), source(area()), target(area()) {
    queue = domain.queue(32);
    local = domain.memory(source, kBytes);
    handle = domain.memory(target, kBytes);
    peer = pmi.gather(Card{domain.address, address_of(target),
                           handle})[static_cast<std::size_t>((pmi.rank + 1) % pmi.size)];
    endpoint =
        domain.endpoint(queue, peer.nic_address, 100 + static_cast<std::uint32_t>((pmi.rank + 1) % pmi.size));
  }
  ~Bte() override {
    pmi.barrier();
    munmap(source, kBytes);
    munmap(target, kBytes);
  }
  static std::byte* area() {
    void* at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(at, 1, kBytes);
    return static_cast<std::byte*>(at);
  }

  gni_post_descriptor_t transfer(gni_post_type_t type, std::size_t from, std::size_t bytes,
                                 std::uint16_t rdma_mode = 0) const {
    gni_post_descriptor_t d = descriptor(type, GNI_CQMODE_GLOBAL_EVENT);
    d.rdma_mode = rdma_mode;
    d.local_addr = address_of(source) + from;
    d.local_mem_hndl = local;
    d.remote_addr = peer.address + from;
    d.remote_mem_hndl = peer.handle;
    d.length = bytes;
    return d;
  }
  gni_post_descriptor_t* completed(gni_cq_entry_t event) const {
    gni_post_descriptor_t* done = nullptr;
    EXPECT_EQ(GNI_GetCompleted(queue, event, &done), GNI_RC_SUCCESS);
    return done;
  }
  gni_post_descriptor_t* next() const {
    gni_cq_entry_t event = 0;
    EXPECT_EQ(next_event(queue, &event), GNI_RC_SUCCESS);
    return completed(event);
  }

  const client::Pmi& pmi = client::Pmi::get();
  client::Domain domain;
  std::byte* source;
  std::byte* target;
  gni_cq_handle_t queue = nullptr;
  gni_mem_handle_t local{};
  gni_mem_handle_t handle{};
  gni_ep_handle_t endpoint = nullptr;
  Card peer{};
};

TEST_F(Bte, ALongTransferIsStillUnderWayWhenItsPostReturns) {
  bool seen = false;
  for (int i = 0; i < kTries && !seen; ++i) {
    gni_post_descriptor_t d = transfer(GNI_POST_RDMA_PUT, 0, kLong);
    ASSERT_EQ(GNI_PostRdma(endpoint, &d), GNI_RC_SUCCESS);
    gni_cq_entry_t event = 0;
    const gni_return_t at_once = GNI_CqGetEvent(queue, &event);
    if (at_once == GNI_RC_SUCCESS) {
      EXPECT_EQ(completed(event), &d);
      continue;
    }
    EXPECT_EQ(at_once, GNI_RC_NOT_DONE);
    seen = true;
    EXPECT_EQ(next(), &d);
  }
  EXPECT_TRUE(seen);
}

TEST_F(Bte, AShortTransferOvertakesALongOne) {
  bool seen = false;
  for (int i = 0; i < kTries && !seen; ++i) {
    gni_post_descriptor_t first = transfer(GNI_POST_RDMA_PUT, 0, kLong);
    gni_post_descriptor_t second = transfer(GNI_POST_RDMA_PUT, kLong, kShort);
    ASSERT_EQ(GNI_PostRdma(endpoint, &first), GNI_RC_SUCCESS);
    ASSERT_EQ(GNI_PostRdma(endpoint, &second), GNI_RC_SUCCESS);
    seen = next() == &second;
    EXPECT_EQ(next(), seen ? &first : &second);
  }
  EXPECT_TRUE(seen);
}

TEST_F(Bte, AFencedTransferStandsBetweenWhatWasPostedBeforeAndAfter) {
  for (int i = 0; i < 10; ++i) {
    // All three use the last bytes of the long one: the fenced get brings them here, then they are put back.
    const std::byte value{static_cast<unsigned char>(10 + i)};
    source[kLong - 1] = value;
    gni_post_descriptor_t first = transfer(GNI_POST_RDMA_PUT, 0, kLong);
    gni_post_descriptor_t second = transfer(GNI_POST_RDMA_GET, kLong, kShort, GNI_RDMAMODE_FENCE);
    second.remote_addr = peer.address + kLong - kShort;
    gni_post_descriptor_t third = transfer(GNI_POST_RDMA_PUT, kLong, kShort);
    ASSERT_EQ(GNI_PostRdma(endpoint, &first), GNI_RC_SUCCESS);
    ASSERT_EQ(GNI_PostRdma(endpoint, &second), GNI_RC_SUCCESS);
    ASSERT_EQ(GNI_PostRdma(endpoint, &third), GNI_RC_SUCCESS);
    EXPECT_EQ(next(), &first);
    EXPECT_EQ(next(), &second);
    EXPECT_EQ(next(), &third);
    EXPECT_EQ(source[kLong + kShort - 1], value) << "the fenced get came before the long put was done";
    std::memset(source + kLong, 0, kShort);
    gni_post_descriptor_t back = transfer(GNI_POST_RDMA_GET, kLong, kShort);
    ASSERT_EQ(GNI_PostRdma(endpoint, &back), GNI_RC_SUCCESS);
    EXPECT_EQ(next(), &back);
    EXPECT_EQ(source[kLong + kShort - 1], value) << "the last put came before the fenced get was done";
    pmi.barrier();
  }
}

TEST_F(Bte, ASourceThatIsReusedTooEarlyShowsAtTheTarget) {
  volatile std::byte* const last = source + kLong - 1;
  bool seen = false;
  for (int i = 0; i < kTries && !seen; ++i) {
    *last = std::byte{2};
    gni_post_descriptor_t d = transfer(GNI_POST_RDMA_PUT, 0, kLong);
    ASSERT_EQ(GNI_PostRdma(endpoint, &d), GNI_RC_SUCCESS);
    *last = std::byte{3};
    EXPECT_EQ(next(), &d);
    std::byte there{};
    gni_post_descriptor_t back = transfer(GNI_POST_RDMA_GET, kLong - kShort, kShort);
    ASSERT_EQ(GNI_PostRdma(endpoint, &back), GNI_RC_SUCCESS);
    EXPECT_EQ(next(), &back);
    there = *last;
    seen = there == std::byte{3};
    EXPECT_TRUE(seen || there == std::byte{2});
  }
  EXPECT_TRUE(seen);
}

TEST_F(Bte, AQueueOfOnePostStaysUntilThatIsOver) {
  const gni_cq_handle_t other = domain.queue(4);
  gni_post_descriptor_t d = transfer(GNI_POST_RDMA_PUT, 0, kLong);
  d.src_cq_hndl = other;
  ASSERT_EQ(GNI_PostRdma(endpoint, &d), GNI_RC_SUCCESS);
  gni_return_t rc = GNI_RC_ERROR_RESOURCE;
  const std::time_t give_up = std::time(nullptr) + 60;
  while ((rc = GNI_CqDestroy(other)) == GNI_RC_ERROR_RESOURCE && std::time(nullptr) < give_up) {
    timespec moment{0, 20'000};
    nanosleep(&moment, nullptr);
  }
  EXPECT_EQ(rc, GNI_RC_SUCCESS);
  // Only then: all of it is there.
  gni_post_descriptor_t back = transfer(GNI_POST_RDMA_GET, kLong - kShort, kShort);
  ASSERT_EQ(GNI_PostRdma(endpoint, &back), GNI_RC_SUCCESS);
  EXPECT_EQ(next(), &back);
}

TEST_F(Bte, AQueueForOneRequestHoldsBothOfItsEvents) {
  const client::Domain dual(GNI_CDM_MODE_DUAL_EVENTS, 300);
  const gni_cq_handle_t one = dual.queue(1);
  const gni_ep_handle_t ep = dual.endpoint(one, peer.nic_address, 300);
  const gni_mem_handle_t mine = dual.memory(source, kBytes);
  for (int i = 0; i < 3; ++i) {
    gni_post_descriptor_t d = transfer(GNI_POST_RDMA_PUT, 0, kLong);
    d.cq_mode = GNI_CQMODE_DUAL_EVENTS;
    d.local_mem_hndl = mine;
    ASSERT_EQ(GNI_PostRdma(ep, &d), GNI_RC_SUCCESS);
    // Both are raised before either is taken.
    const std::time_t give_up = std::time(nullptr) + 60;
    while (GNI_EpIdle(ep) == GNI_RC_NOT_DONE && std::time(nullptr) < give_up) {
    }
    for (int e = 0; e < 2; ++e) {
      gni_cq_entry_t event = 0;
      ASSERT_EQ(next_event(one, &event), GNI_RC_SUCCESS);
      gni_post_descriptor_t* done = nullptr;
      EXPECT_EQ(GNI_GetCompleted(one, event, &done), GNI_RC_SUCCESS);
      EXPECT_EQ(done, &d);
    }
  }
  EXPECT_EQ(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
}

}  // namespace
