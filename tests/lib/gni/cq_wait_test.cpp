// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Waiting for completion queues: several at once, beside threads that poll them, through a descriptor.
#include "tests/lib/gni/client.hpp"

#include <array>
#include <cerrno>
#include <thread>

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

namespace {

using client::address_of;
using client::descriptor;
using client::Pmi;

constexpr std::uint64_t kForAMinute = 60'000;

// Three queues of registrations, which the previous rank writes events into.
class CqWait : public testing::Test {
 protected:
  struct Card {
    std::uint32_t address;
    std::array<gni_mem_handle_t, 3> handles;
  };
  CqWait() {
    Card mine{domain.address, {}};
    for (std::size_t i = 0; i < 3; ++i) {
      queues[i] = domain.queue(64, GNI_CQ_BLOCKING);
      mine.handles[i] = domain.memory(words.data(), sizeof words, queues[i]);
    }
    const auto cards = pmi.gather(mine);
    next = cards[static_cast<std::size_t>((pmi.rank + 1) % pmi.size)];
    self = mine;
    source = domain.queue(64, GNI_CQ_BLOCKING);
    to_next = domain.endpoint(source, next.address, 1);
    to_self = domain.endpoint(source, mine.address, 1);
    pmi.barrier();
  }
  ~CqWait() override { pmi.barrier(); }

  // An event with `value` into queue `which` of the next rank, or of our own.
  void write(gni_ep_handle_t ep, const Card& card, std::size_t which, std::uint64_t value) {
    gni_post_descriptor_t d = descriptor(GNI_POST_CQWRITE, GNI_CQMODE_SILENT);
    d.remote_mem_hndl = card.handles[which];
    d.cqwrite_value = value;
    REQUIRE_SUCCESS(GNI_PostCqWrite(ep, &d));
  }
  static void nap(long milliseconds) {
    timespec moment{0, milliseconds * 1'000'000};
    nanosleep(&moment, nullptr);
  }

  const Pmi& pmi = Pmi::get();
  client::Domain domain{GNI_CDM_MODE_ERR_NO_KILL};
  std::array<std::uint64_t, 8> words{};
  std::array<gni_cq_handle_t, 3> queues{};
  gni_cq_handle_t source = nullptr;
  gni_ep_handle_t to_next = nullptr;
  gni_ep_handle_t to_self = nullptr;
  Card next{};
  Card self{};
};

TEST_F(CqWait, AWaiterOnSeveralQueuesIsWokenByAnotherProcessAndToldWhich) {
  for (std::uint64_t round = 0; round < 30; ++round) {
    const std::size_t which = round % 3;
    if (pmi.rank == 0) {
      // Now and then late, so that the waiter really sleeps.
      if (round % 10 == 0) nap(20);
      write(to_next, next, which, 100 + round);
    }
    gni_cq_entry_t event = 0;
    std::uint32_t found = 77;
    ASSERT_EQ(GNI_CqVectorWaitEvent(queues.data(), 3, kForAMinute, &event, &found), GNI_RC_SUCCESS);
    EXPECT_EQ(found, which);
    EXPECT_EQ(GNI_CQ_GET_DATA(event), 100 + round);
    if (pmi.rank != 0) write(to_next, next, which, 100 + round);
    pmi.barrier();
  }
  std::uint32_t found = 77;
  gni_cq_entry_t event = 77;
  EXPECT_EQ(GNI_CqVectorWaitEvent(queues.data(), 3, 1, &event, &found), GNI_RC_TIMEOUT);
  EXPECT_EQ(GNI_CqVectorMonitor(queues.data(), 3, 1, &found), GNI_RC_TIMEOUT);
  EXPECT_EQ(found, 77U);
}

TEST_F(CqWait, AMonitorConsumesNothingAndRunsBesideAThreadThatPolls) {
  std::uint32_t found = 77;
  gni_return_t rc = GNI_RC_NOT_DONE;
  std::thread monitor([&] { rc = GNI_CqVectorMonitor(queues.data(), 3, kForAMinute, &found); });
  for (int i = 0; i < 1000; ++i) {
    gni_cq_entry_t event = 0;
    ASSERT_EQ(GNI_CqGetEvent(queues[1], &event), GNI_RC_NOT_DONE);
  }
  nap(5);
  write(to_self, self, 2, 9);
  monitor.join();
  EXPECT_EQ(rc, GNI_RC_SUCCESS);
  EXPECT_EQ(found, 2U);
  gni_cq_entry_t event = 0;
  EXPECT_EQ(GNI_CqGetEvent(queues[2], &event), GNI_RC_SUCCESS) << "it is still there";
  EXPECT_EQ(GNI_CQ_GET_DATA(event), 9U);
}

TEST_F(CqWait, AMonitorHearsOfPostsOfItsOwnProcess) {
  std::uint32_t found = 77;
  gni_return_t rc = GNI_RC_NOT_DONE;
  std::array<gni_cq_handle_t, 2> both{queues[0], source};
  std::thread monitor([&] { rc = GNI_CqVectorMonitor(both.data(), 2, kForAMinute, &found); });
  nap(5);
  gni_post_descriptor_t d = descriptor(GNI_POST_CQWRITE, GNI_CQMODE_GLOBAL_EVENT);
  d.remote_mem_hndl = self.handles[2];
  ASSERT_EQ(GNI_PostCqWrite(to_self, &d), GNI_RC_SUCCESS);
  monitor.join();
  EXPECT_EQ(rc, GNI_RC_SUCCESS);
  EXPECT_EQ(found, 1U);
}

TEST_F(CqWait, AMaskStopsTheWakeUpsOfAQueue) {
  std::uint32_t found = 77;
  for (const gni_cq_handle_t queue : queues) ASSERT_EQ(GNI_CqInterruptMask(queue), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_CqVectorMonitor(queues.data(), 3, kForAMinute, &found), GNI_RC_NOT_DONE);
  write(to_self, self, 1, 5);
  ASSERT_EQ(GNI_CqInterruptUnmask(queues[0]), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_CqVectorMonitor(queues.data(), 3, 1, &found), GNI_RC_TIMEOUT) << "of a masked one";
  // One that sleeps meanwhile is told.
  gni_return_t rc = GNI_RC_NOT_DONE;
  std::thread monitor([&] { rc = GNI_CqVectorMonitor(queues.data(), 3, kForAMinute, &found); });
  nap(5);
  ASSERT_EQ(GNI_CqInterruptUnmask(queues[1]), GNI_RC_SUCCESS);
  monitor.join();
  EXPECT_EQ(rc, GNI_RC_SUCCESS);
  EXPECT_EQ(found, 1U);
  std::thread last([&] { rc = GNI_CqVectorMonitor(&queues[2], 1, kForAMinute, &found); });
  last.join();
  EXPECT_EQ(rc, GNI_RC_NOT_DONE);
}

TEST_F(CqWait, AChannelsDescriptorIsReadableOncePerArm) {
  gni_comp_chan_handle_t channel = nullptr;
  int fd = -1;
  ASSERT_EQ(GNI_CompChanCreate(domain.nic, &channel), GNI_RC_SUCCESS);
  ASSERT_EQ(GNI_CompChanFd(channel, &fd), GNI_RC_SUCCESS);
  const int epoll = epoll_create1(0);
  // Interrupted also by being stopped and continued, whatever the handlers.
  const auto ready = [](int at, epoll_event* event, int milliseconds) {
    int found = -1;
    do {
      found = epoll_wait(at, event, 1, milliseconds);
    } while (found < 0 && errno == EINTR);
    return found;
  };
  epoll_event wanted{};
  wanted.events = EPOLLIN;
  ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &wanted), 0);
  epoll_event got{};
  for (const gni_cq_handle_t queue : queues) ASSERT_EQ(GNI_CqAttachCompChan(queue, channel), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_CqAttachCompChan(queues[0], channel), GNI_RC_INVALID_STATE) << "twice";
  EXPECT_EQ(GNI_CompChanDestroy(channel), GNI_RC_ERROR_RESOURCE) << "queues are attached";
  {
    gni_cq_handle_t named = domain.queue(4, GNI_CQ_BLOCKING);
    gni_ep_handle_t ep = nullptr;
    ASSERT_EQ(GNI_EpCreate(domain.nic, named, &ep), GNI_RC_SUCCESS);
    ASSERT_EQ(GNI_CqAttachCompChan(named, channel), GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_CqDestroy(named), GNI_RC_ERROR_RESOURCE) << "an endpoint names it";
    EXPECT_EQ(GNI_CqAttachCompChan(named, channel), GNI_RC_INVALID_STATE) << "and it is attached as before";
    ASSERT_EQ(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_CqDestroy(named), GNI_RC_SUCCESS);
  }
  for (std::uint64_t round = 0; round < 10; ++round) {
    const std::size_t which = round % 3;
    ASSERT_EQ(GNI_CqArmCompChan(queues.data(), 3), GNI_RC_SUCCESS);
    ASSERT_EQ(ready(epoll, &got, 0), 0) << "nothing has come";
    pmi.barrier();
    write(to_next, next, which, round);
    write(to_next, next, which, round);
    ASSERT_EQ(ready(epoll, &got, 60'000), 1);
    gni_cq_handle_t queue = nullptr;
    ASSERT_EQ(GNI_CompChanGetEvent(channel, &queue), GNI_RC_SUCCESS);
    EXPECT_EQ(queue, queues[which]);
    gni_cq_entry_t event = 0;
    ASSERT_EQ(client::next_event(queue, &event), GNI_RC_SUCCESS);
    ASSERT_EQ(client::next_event(queue, &event), GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_CQ_GET_DATA(event), round);
    ASSERT_EQ(ready(epoll, &got, 1), 0) << "one event an arm";
    pmi.barrier();
  }
  // Queue 2 was armed with the others, and has not fired since.
  write(to_self, self, 2, 1);
  gni_cq_handle_t queue = nullptr;
  ASSERT_EQ(GNI_CompChanGetEvent(channel, &queue), GNI_RC_SUCCESS) << "waits as long as it takes";
  EXPECT_EQ(queue, queues[2]);
  // What is there already when it is armed counts.
  ASSERT_EQ(GNI_CqArmCompChan(&queues[2], 1), GNI_RC_SUCCESS);
  ASSERT_EQ(GNI_CompChanGetEvent(channel, &queue), GNI_RC_SUCCESS);
  EXPECT_EQ(queue, queues[2]);
  ASSERT_EQ(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
  EXPECT_EQ(GNI_CompChanGetEvent(channel, &queue), GNI_RC_NOT_DONE);
  close(epoll);
}

TEST_F(CqWait, ArgumentsThatNobodyShouldPassAreRefused) {
  gni_cq_entry_t event = 77;
  std::uint32_t which = 77;
  gni_comp_chan_handle_t channel = nullptr;
  gni_cq_handle_t queue = nullptr;
  int fd = 77;
  const gni_cq_handle_t plain = domain.queue(4);
  for (const std::uint64_t bits : {0ull, 1ull, 0xdeadbeefcafef00dull, ~0ull}) {
    auto bad = reinterpret_cast<gni_cq_handle_t>(bits);
    const auto bad_channel = reinterpret_cast<gni_comp_chan_handle_t>(bits);
    EXPECT_EQ(GNI_CqVectorWaitEvent(&bad, 1, 0, &event, &which), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_CqVectorMonitor(&bad, 1, 0, &which), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_CqInterruptMask(bad), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_CqInterruptUnmask(bad), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_CqArmCompChan(&bad, 1), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_CompChanCreate(reinterpret_cast<gni_nic_handle_t>(bits), &channel), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_CompChanDestroy(bad_channel), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_CompChanFd(bad_channel, &fd), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_CompChanGetEvent(bad_channel, &queue), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_CqAttachCompChan(queues[0], bad_channel), GNI_RC_INVALID_PARAM);
  }
  EXPECT_EQ(GNI_CqVectorWaitEvent(nullptr, 1, 0, &event, &which), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CqVectorWaitEvent(queues.data(), 0, 0, &event, &which), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CqVectorWaitEvent(queues.data(), 1, 0, nullptr, &which), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CqVectorWaitEvent(queues.data(), 1, 0, &event, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CqVectorMonitor(queues.data(), 1, 0, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CqArmCompChan(nullptr, 1), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CqArmCompChan(queues.data(), 0), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CqArmCompChan(queues.data(), 1), GNI_RC_INVALID_PARAM) << "not attached";
  gni_cq_handle_t cannot = plain;
  EXPECT_EQ(GNI_CqVectorMonitor(&cannot, 1, 0, &which), GNI_RC_ERROR_RESOURCE);
  EXPECT_EQ(GNI_CqVectorWaitEvent(&cannot, 1, 0, &event, &which), GNI_RC_ERROR_RESOURCE);
  EXPECT_EQ(GNI_CqInterruptMask(plain), GNI_RC_INVALID_PARAM);
  ASSERT_EQ(GNI_CompChanCreate(domain.nic, &channel), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_CompChanCreate(domain.nic, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CompChanFd(channel, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CompChanGetEvent(channel, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_CqAttachCompChan(plain, channel), GNI_RC_INVALID_PARAM) << "cannot block";
  EXPECT_EQ(GNI_CompChanDestroy(channel), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_CompChanDestroy(channel), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(event, 77U);
  EXPECT_EQ(which, 77U);
  EXPECT_EQ(fd, 77);
}

}  // namespace
