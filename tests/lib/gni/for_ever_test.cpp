// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/lib/gni/client.hpp"

#include <array>
#include <functional>
#include <vector>

#include <unistd.h>

// For ever is for ever in every call with a time-out, and (uint32_t)-1 says so where it has 64 bits too. In
// virtual time, where the other PE takes longer than 2^32 ms before it acts. Virtual time has room for two
// such waits (2^63 ps): each test is a job of its own.
namespace {

using client::Pmi;

constexpr unsigned kLongerThanAllMilliseconds = 4'400'000;  // seconds
constexpr std::uint64_t kName = 77;

class ForEver : public testing::Test {
 protected:
  // PE 0 waits, PE 1 acts late.
  void wait_and_act(const std::function<void()>& wait, const std::function<void()>& act) {
    pmi.barrier();
    if (pmi.rank == 0) {
      wait();
    } else {
      sleep(kLongerThanAllMilliseconds);
      act();
    }
    pmi.barrier();
  }
  void post_back() {
    const gni_ep_handle_t ep = domain.endpoint(queue, addresses[0], instances[0]);
    REQUIRE_SUCCESS(GNI_EpPostData(ep, nullptr, 0, nullptr, 0));
    EXPECT_EQ(GNI_EpPostDataWait(ep, UINT32_MAX, &state, &address, &instance), GNI_RC_SUCCESS);
    EXPECT_EQ(state, GNI_POST_COMPLETED);
  }
  void post_named() { REQUIRE_SUCCESS(GNI_EpPostDataWId(any, nullptr, 0, nullptr, 0, kName)); }
  void write_event() {
    const gni_ep_handle_t ep = domain.endpoint(queue, addresses[0], instances[0]);
    gni_post_descriptor_t d = client::descriptor(GNI_POST_CQWRITE, GNI_CQMODE_GLOBAL_EVENT);
    d.remote_mem_hndl = handles[0];
    d.cqwrite_value = 5;
    EXPECT_EQ(GNI_PostCqWrite(ep, &d), GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_CqWaitEvent(queue, UINT64_MAX, &event), GNI_RC_SUCCESS);
  }

  gni_post_state_t state = GNI_POST_PENDING;
  std::uint32_t address = 0;
  std::uint32_t instance = 0;
  std::uint32_t which = 9;
  gni_cq_entry_t event = 0;
  gni_ep_handle_t any = nullptr;
  const Pmi& pmi = Pmi::get();
  client::Domain domain;
  gni_cq_handle_t queue = domain.queue(16, GNI_CQ_BLOCKING);
  gni_cq_handle_t arrived = domain.queue(16, GNI_CQ_BLOCKING);
  alignas(8) std::array<std::uint64_t, 8> words{};
  std::vector<std::uint32_t> addresses = pmi.gather(domain.address);
  std::vector<std::uint32_t> instances = pmi.gather(domain.instance);
  std::vector<gni_mem_handle_t> handles = pmi.gather(domain.memory(words.data(), sizeof words, arrived));
};

// ---- datagrams ----

TEST_F(ForEver, OfADatagramsProbe) {
  REQUIRE_SUCCESS(GNI_EpCreate(domain.nic, queue, &any));
  wait_and_act(
      [&] {
        post_named();
        std::uint64_t name = 0;
        EXPECT_EQ(GNI_PostdataProbeWaitById(domain.nic, UINT32_MAX, &name), GNI_RC_SUCCESS);
        EXPECT_EQ(name, kName);
        EXPECT_EQ(GNI_EpPostDataTestById(any, kName, &state, &address, &instance), GNI_RC_SUCCESS);
      },
      [this] { post_back(); });
}

TEST_F(ForEver, OfADatagramByItsName) {
  REQUIRE_SUCCESS(GNI_EpCreate(domain.nic, queue, &any));
  wait_and_act(
      [&] {
        post_named();
        EXPECT_EQ(GNI_EpPostDataWaitById(any, kName, UINT32_MAX, &state, &address, &instance),
                  GNI_RC_SUCCESS);
        EXPECT_EQ(state, GNI_POST_COMPLETED);
      },
      [this] { post_back(); });
}

TEST_F(ForEver, OfADatagram) {
  REQUIRE_SUCCESS(GNI_EpCreate(domain.nic, queue, &any));
  wait_and_act(
      [&] {
        post_named();
        EXPECT_EQ(GNI_EpPostDataWait(any, UINT32_MAX, &state, &address, &instance), GNI_RC_SUCCESS);
        EXPECT_EQ(state, GNI_POST_COMPLETED);
      },
      [this] { post_back(); });
}

// ---- queues: by both words for it ----

TEST_F(ForEver, OfAQueue) {
  for (const std::uint64_t timeout : {std::uint64_t{UINT32_MAX}, UINT64_MAX}) {
    wait_and_act([&] { EXPECT_EQ(GNI_CqWaitEvent(arrived, timeout, &event), GNI_RC_SUCCESS); },
                 [this] { write_event(); });
  }
}

TEST_F(ForEver, OfAVectorThatIsMonitored) {
  for (const std::uint64_t timeout : {std::uint64_t{UINT32_MAX}, UINT64_MAX}) {
    wait_and_act(
        [&] {
          EXPECT_EQ(GNI_CqVectorMonitor(&arrived, 1, timeout, &which), GNI_RC_SUCCESS);
          EXPECT_EQ(GNI_CqGetEvent(arrived, &event), GNI_RC_SUCCESS);
        },
        [this] { write_event(); });
  }
}

TEST_F(ForEver, OfAVectorsEvent) {
  for (const std::uint64_t timeout : {std::uint64_t{UINT32_MAX}, UINT64_MAX}) {
    wait_and_act(
        [&] { EXPECT_EQ(GNI_CqVectorWaitEvent(&arrived, 1, timeout, &event, &which), GNI_RC_SUCCESS); },
        [this] { write_event(); });
  }
}

}  // namespace
