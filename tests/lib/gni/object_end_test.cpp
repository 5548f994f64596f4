// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/lib/gni/client.hpp"

#include <array>
#include <atomic>
#include <functional>
#include <thread>
#include <vector>

#include <unistd.h>

// Objects that one thread ends while others wait in them, or look at them again and again.
namespace {

constexpr std::uint64_t kName = 41;

struct Objects {
  explicit Objects(gni_cdm_handle_t cdm, gni_nic_handle_t nic, std::uint32_t address) : cdm(cdm), nic(nic) {
    REQUIRE_SUCCESS(GNI_CqCreate(nic, 16, 0, GNI_CQ_BLOCKING, nullptr, nullptr, &queue));
    REQUIRE_SUCCESS(GNI_CqCreate(nic, 16, 0, GNI_CQ_BLOCKING, nullptr, nullptr, &source));
    REQUIRE_SUCCESS(GNI_EpCreate(nic, source, &endpoint));
    REQUIRE_SUCCESS(GNI_EpBind(endpoint, address, 9'999));  // which never answers
    REQUIRE_SUCCESS(GNI_EpPostDataWId(endpoint, nullptr, 0, nullptr, 0, kName));
    REQUIRE_SUCCESS(GNI_CompChanCreate(nic, &channel));
  }
  static Objects make() {
    gni_cdm_handle_t cdm = nullptr;
    gni_nic_handle_t nic = nullptr;
    std::uint32_t address = 0;
    REQUIRE_SUCCESS(GNI_CdmCreate(300, client::ptag(), client::cookie(), GNI_CDM_MODE_ERR_NO_KILL, &cdm));
    REQUIRE_SUCCESS(GNI_CdmAttach(cdm, 0, &address, &nic));
    return Objects(cdm, nic, address);
  }

  gni_cdm_handle_t cdm;
  gni_nic_handle_t nic;
  gni_cq_handle_t queue = nullptr;
  gni_cq_handle_t source = nullptr;
  gni_ep_handle_t endpoint = nullptr;
  gni_comp_chan_handle_t channel = nullptr;
};

using Call = gni_return_t (*)(Objects&);

gni_return_t wait_event(Objects& on) {
  gni_cq_entry_t event = 0;
  return GNI_CqWaitEvent(on.queue, UINT64_MAX, &event);
}
gni_return_t wait_event_of_two(Objects& on) {
  std::array both{on.source, on.queue};
  gni_cq_entry_t event = 0;
  std::uint32_t which = 0;
  return GNI_CqVectorWaitEvent(both.data(), 2, UINT64_MAX, &event, &which);
}
gni_return_t monitor(Objects& on) {
  std::array both{on.source, on.queue};
  std::uint32_t which = 0;
  return GNI_CqVectorMonitor(both.data(), 2, UINT64_MAX, &which);
}
gni_return_t wait_for_channel(Objects& on) {
  gni_cq_handle_t ready = nullptr;
  return GNI_CompChanGetEvent(on.channel, &ready);
}
gni_return_t wait_for_datagram(Objects& on) {
  gni_post_state_t state = GNI_POST_PENDING;
  std::uint32_t address = 0;
  std::uint32_t instance = 0;
  const gni_return_t said =
      GNI_EpPostDataWaitById(on.endpoint, kName, UINT32_MAX, &state, &address, &instance);
  // The end of the endpoint ends its datagram: a thread may come to hear of that.
  return said == GNI_RC_SUCCESS && state == GNI_POST_TERMINATED ? GNI_RC_NO_MATCH : said;
}
gni_return_t wait_for_any_datagram(Objects& on) {
  std::uint64_t name = 0;
  return GNI_PostdataProbeWaitById(on.nic, UINT32_MAX, &name);
}

// What each call says once `end` has ended what it waits in.
std::vector<gni_return_t> ended(const std::vector<Call>& calls, Objects& on,
                                const std::function<void()>& end) {
  std::vector<gni_return_t> said(calls.size(), GNI_RC_NOT_DONE);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < calls.size(); ++i) threads.emplace_back([&, i] { said[i] = calls[i](on); });
  usleep(20'000);  // a thread that is not inside by then meets a handle that has ended: the same
  end();
  for (std::thread& thread : threads) thread.join();
  return said;
}

TEST(ObjectEnd, AQueueTellsItsWaiters) {
  Objects on = Objects::make();
  const auto said = ended({wait_event, wait_event_of_two, monitor}, on,
                          [&] { EXPECT_EQ(GNI_CqDestroy(on.queue), GNI_RC_SUCCESS); });
  EXPECT_EQ(said, std::vector(3, GNI_RC_INVALID_PARAM));
  EXPECT_EQ(GNI_CqDestroy(on.source), GNI_RC_ERROR_RESOURCE) << "the endpoint's goes on";
  gni_cq_entry_t event = 0;
  EXPECT_EQ(GNI_CqWaitEvent(on.source, 10, &event), GNI_RC_TIMEOUT);
  EXPECT_EQ(GNI_CdmDestroy(on.cdm), GNI_RC_SUCCESS);
}

TEST(ObjectEnd, AChannelAndAnEndpointTellTheirWaiters) {
  Objects on = Objects::make();
  auto said = ended({wait_for_channel, wait_for_channel}, on,
                    [&] { EXPECT_EQ(GNI_CompChanDestroy(on.channel), GNI_RC_SUCCESS); });
  EXPECT_EQ(said, std::vector(2, GNI_RC_INVALID_PARAM));
  said = ended({wait_for_datagram}, on, [&] { EXPECT_EQ(GNI_EpDestroy(on.endpoint), GNI_RC_SUCCESS); });
  EXPECT_TRUE(said[0] == GNI_RC_NO_MATCH || said[0] == GNI_RC_INVALID_PARAM) << said[0];
  EXPECT_EQ(GNI_CdmDestroy(on.cdm), GNI_RC_SUCCESS);
}

TEST(ObjectEnd, ADomainTellsThreadsInEveryCallThatWaits) {
  for (int turn = 0; turn < 5; ++turn) {
    Objects on = Objects::make();
    const auto said = ended({wait_event, wait_event_of_two, monitor, wait_for_channel, wait_for_any_datagram},
                            on, [&] { EXPECT_EQ(GNI_CdmDestroy(on.cdm), GNI_RC_SUCCESS); });
    EXPECT_EQ(said, std::vector(5, GNI_RC_INVALID_PARAM));
  }
}

// A runtime that ends in a hurry destroys what its other threads still look at.
TEST(ObjectEnd, LooksOfOtherThreadsFindTheObjectOrNothing) {
  for (int turn = 0; turn < 20; ++turn) {
    const Objects on = Objects::make();
    std::atomic<bool> stop{false};
    const auto again = [&stop](auto look) {
      return std::thread([&stop, look] {
        while (!stop.load(std::memory_order_relaxed)) look();
      });
    };
    std::vector<std::thread> threads;
    threads.push_back(again([&on] { (void)GNI_CqTestEvent(on.source); }));
    threads.push_back(again([&on] {
      gni_cq_entry_t event = 0;
      (void)GNI_CqGetEvent(on.queue, &event);
    }));
    threads.push_back(again([&on] {
      std::uint64_t name = 0;
      (void)GNI_PostDataProbeById(on.nic, &name);
    }));
    threads.push_back(again([&on] {
      void* header = nullptr;
      std::uint8_t tag = GNI_SMSG_ANY_TAG;
      (void)GNI_SmsgGetNextWTag(on.endpoint, &header, &tag);
    }));
    usleep(1000);
    if (turn % 2 == 0) {
      EXPECT_EQ(GNI_EpDestroy(on.endpoint), GNI_RC_SUCCESS);
      EXPECT_EQ(GNI_CqDestroy(on.queue), GNI_RC_SUCCESS);
      EXPECT_EQ(GNI_CqDestroy(on.source), GNI_RC_SUCCESS);
    }
    EXPECT_EQ(GNI_CdmDestroy(on.cdm), GNI_RC_SUCCESS);
    stop.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(GNI_CqTestEvent(on.source), GNI_RC_INVALID_PARAM);
  }
}

}  // namespace
