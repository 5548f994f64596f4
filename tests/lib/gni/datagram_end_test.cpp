// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/lib/gni/client.hpp"

#include <array>
#include <thread>

// Datagrams that no peer ends: of endpoints that are destroyed, and to one's own port.
namespace {

constexpr std::uint64_t kName = 41;

class DatagramEnd : public testing::Test {
 protected:
  // What a thread hears that waits for a named datagram of the NIC.
  struct Heard {
    gni_return_t rc = GNI_RC_NOT_DONE;
    std::uint64_t name = 0;
  };
  std::thread wait(Heard* heard, std::uint32_t timeout = 30'000) const {
    return std::thread(
        [this, heard, timeout] { heard->rc = GNI_PostdataProbeWaitById(domain.nic, timeout, &heard->name); });
  }
  client::Domain domain;
  gni_cq_handle_t queue = domain.queue(16);
};

TEST_F(DatagramEnd, OfAnEndpointThatIsDestroyedIsToldOnce) {
  for (const bool cancels : {false, true}) {
    Heard heard;
    std::thread waiter = wait(&heard);
    // To an instance that never answers.
    const gni_ep_handle_t ep = domain.endpoint(queue, domain.address, 9'999);
    ASSERT_EQ(GNI_EpPostDataWId(ep, nullptr, 0, nullptr, 0, kName), GNI_RC_SUCCESS);
    if (cancels) {
      EXPECT_EQ(GNI_EpPostDataCancelById(ep, kName), GNI_RC_SUCCESS);
    }
    ASSERT_EQ(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    waiter.join();
    EXPECT_EQ(heard.rc, GNI_RC_SUCCESS);
    EXPECT_EQ(heard.name, kName);
    std::uint64_t name = 0;
    EXPECT_EQ(GNI_PostDataProbeById(domain.nic, &name), GNI_RC_NO_MATCH) << "it was told";
  }
}

// A client keeps pointers, ranks, 0 in them; all ones alone is not one.
TEST_F(DatagramEnd, IdsAreTheClientsOwn) {
  for (const std::uint64_t id : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{1} << 63,
                                 std::uint64_t{0xffff'ffff}, UINT64_MAX - 1, UINT64_MAX}) {
    const gni_ep_handle_t ep = domain.endpoint(queue, domain.address, 9'999);
    const gni_return_t posted = GNI_EpPostDataWId(ep, nullptr, 0, nullptr, 0, id);
    gni_post_state_t state = GNI_POST_ERROR;
    std::uint32_t address = 0;
    std::uint32_t instance = 0;
    if (id == UINT64_MAX) {
      EXPECT_EQ(posted, GNI_RC_INVALID_PARAM);
    } else {
      ASSERT_EQ(posted, GNI_RC_SUCCESS) << id;
      EXPECT_EQ(GNI_EpPostDataTestById(ep, id ^ 2, &state, &address, &instance), GNI_RC_NO_MATCH) << id;
      EXPECT_EQ(GNI_EpPostDataTestById(ep, id, &state, &address, &instance), GNI_RC_SUCCESS) << id;
      EXPECT_EQ(state, GNI_POST_PENDING) << id;
      EXPECT_EQ(GNI_EpPostDataWaitById(ep, id, 1, &state, &address, &instance), GNI_RC_TIMEOUT) << id;
      ASSERT_EQ(GNI_EpPostDataCancelById(ep, id), GNI_RC_SUCCESS) << id;
      std::uint64_t told = ~id;
      EXPECT_EQ(GNI_PostDataProbeById(domain.nic, &told), GNI_RC_SUCCESS) << id;
      EXPECT_EQ(told, id);
      EXPECT_EQ(GNI_EpPostDataTestById(ep, id, &state, &address, &instance), GNI_RC_SUCCESS) << id;
      EXPECT_EQ(state, GNI_POST_TERMINATED) << id;
    }
    ASSERT_EQ(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
  }
}

TEST_F(DatagramEnd, StatesOfOneThatWasCancelled) {
  const gni_ep_handle_t ep = domain.endpoint(queue, domain.address, 9'999);
  ASSERT_EQ(GNI_EpPostDataWId(ep, nullptr, 0, nullptr, 0, kName), GNI_RC_SUCCESS);
  ASSERT_EQ(GNI_EpPostDataCancelById(ep, kName), GNI_RC_SUCCESS);
  std::uint64_t name = 0;
  EXPECT_EQ(GNI_PostDataProbeById(domain.nic, &name), GNI_RC_SUCCESS);
  EXPECT_EQ(name, kName);
  gni_post_state_t state = GNI_POST_PENDING;
  std::uint32_t address = 0;
  std::uint32_t instance = 0;
  EXPECT_EQ(GNI_EpPostDataTestById(ep, kName, &state, &address, &instance), GNI_RC_SUCCESS);
  EXPECT_EQ(state, GNI_POST_TERMINATED);
  ASSERT_EQ(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_PostDataProbeById(domain.nic, &name), GNI_RC_NO_MATCH);
}

// No call has to ask: their places are used again.
TEST_F(DatagramEnd, ManyThatNobodyAsksAfter) {
  for (int i = 0; i < 10'000; ++i) {
    const gni_ep_handle_t ep = domain.endpoint(queue, domain.address, 9'999);
    ASSERT_EQ(GNI_EpPostDataWId(ep, nullptr, 0, nullptr, 0, kName), GNI_RC_SUCCESS) << i;
    ASSERT_EQ(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
  }
}

TEST_F(DatagramEnd, ToOnesOwnPortMeetsItself) {
  Heard heard;
  std::thread waiter = wait(&heard);
  const gni_ep_handle_t ep = domain.endpoint(queue, domain.address, domain.instance);
  std::array<char, 6> out{'h', 'e', 'l', 'l', 'o'};
  std::array<char, 6> in{};
  ASSERT_EQ(GNI_EpPostDataWId(ep, out.data(), out.size(), in.data(), in.size(), kName), GNI_RC_SUCCESS);
  waiter.join();
  EXPECT_EQ(heard.rc, GNI_RC_SUCCESS);
  EXPECT_EQ(heard.name, kName);
  gni_post_state_t state = GNI_POST_PENDING;
  std::uint32_t address = 0;
  std::uint32_t instance = 0;
  ASSERT_EQ(GNI_EpPostDataWaitById(ep, kName, UINT32_MAX, &state, &address, &instance), GNI_RC_SUCCESS);
  EXPECT_EQ(state, GNI_POST_COMPLETED);
  EXPECT_EQ(address, domain.address);
  EXPECT_EQ(instance, domain.instance);
  EXPECT_STREQ(in.data(), "hello");
  EXPECT_EQ(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
}

// A wildcard that waits is met first.
TEST_F(DatagramEnd, ToOnesOwnPortPrefersAWildcard) {
  gni_ep_handle_t any = nullptr;
  ASSERT_EQ(GNI_EpCreate(domain.nic, queue, &any), GNI_RC_SUCCESS);
  std::array<char, 2> in{};
  ASSERT_EQ(GNI_EpPostDataWId(any, nullptr, 0, in.data(), in.size(), 1), GNI_RC_SUCCESS);
  const gni_ep_handle_t ep = domain.endpoint(queue, domain.address, domain.instance);
  std::array<char, 2> out{'x', 0};
  ASSERT_EQ(GNI_EpPostDataWId(ep, out.data(), out.size(), nullptr, 0, 2), GNI_RC_SUCCESS);
  gni_post_state_t state = GNI_POST_PENDING;
  std::uint32_t address = 0;
  std::uint32_t instance = 0;
  ASSERT_EQ(GNI_EpPostDataWaitById(any, 1, 30'000, &state, &address, &instance), GNI_RC_SUCCESS);
  EXPECT_EQ(state, GNI_POST_COMPLETED);
  EXPECT_STREQ(in.data(), "x");
  ASSERT_EQ(GNI_EpPostDataWaitById(ep, 2, 30'000, &state, &address, &instance), GNI_RC_SUCCESS);
  EXPECT_EQ(state, GNI_POST_COMPLETED);
}

}  // namespace
