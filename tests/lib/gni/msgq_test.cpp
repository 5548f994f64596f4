// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Message queues that the instances of a node share: four PEs on two pretended nodes.
#include "tests/lib/gni/client.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <sched.h>

namespace {

constexpr std::uint32_t kTypeMsgq = 3;

struct Came {
  std::uint32_t id, address;
  std::uint64_t value[4];
  std::uint8_t tag;
};

struct Inbox {
  std::vector<Came> came;
  int answer = 1;
  gni_msgq_handle_t ends = nullptr;  // what the callback tries to leave
  gni_return_t ended = GNI_RC_SUCCESS;
};

int receive(std::uint32_t id, std::uint32_t address, void* message, std::uint8_t tag, void* context) {
  auto& inbox = *static_cast<Inbox*>(context);
  Came came{id, address, {}, tag};
  std::memcpy(came.value, message, sizeof came.value);
  inbox.came.push_back(came);
  if (inbox.ends != nullptr) inbox.ended = GNI_MsgqRelease(inbox.ends);
  return inbox.answer;
}

gni_msgq_attr_t attributes(std::uint32_t instances) {
  gni_msgq_attr_t attrs{};
  attrs.max_msg_sz = 64;
  attrs.smsg_q_sz = 8;
  attrs.rcv_pool_sz = 64;
  attrs.num_msgq_eps = 1;
  attrs.nloc_insts = instances;
  attrs.modes = GNI_MSGQ_MODE_BLOCKING;
  attrs.rcv_cq_sz = 64;
  return attrs;
}

class Queues : public testing::Test {
 protected:
  Queues() {
    addresses = pmi.gather(domain.address);
    for (int pe = 0; pe < pmi.size; ++pe) {
      (addresses[static_cast<std::size_t>(pe)] == domain.address ? here : there).push_back(pe);
    }
    source = domain.queue(512);
    attrs = attributes(static_cast<std::uint32_t>(here.size()));
    REQUIRE_SUCCESS(GNI_MsgqInit(domain.nic, receive, &inbox, source, &attrs, &queue));
    pmi.barrier();
  }
  ~Queues() override {
    pmi.barrier();
    if (queue == nullptr) return;
    gni_return_t rc = GNI_RC_NOT_DONE;
    while ((rc = GNI_MsgqRelease(queue)) == GNI_RC_NOT_DONE) sched_yield();
    EXPECT_EQ(rc, GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_MsgqRelease(queue), GNI_RC_INVALID_PARAM);
    pmi.barrier();
  }
  bool leader() const { return here.front() == pmi.rank; }
  // The node's first instance connects it to the other node, as one instance of each does.
  void connect() {
    gni_msgq_ep_attr_t ours{};
    std::uint32_t bytes = 0;
    const std::uint32_t other = addresses[static_cast<std::size_t>(there.front())];
    if (leader()) REQUIRE_SUCCESS(GNI_MsgqGetConnAttrs(queue, other, &ours, &bytes));
    const auto all = pmi.gather(ours);
    gni_msgq_ep_attr_t theirs = all[static_cast<std::size_t>(there.front())];
    if (leader()) REQUIRE_SUCCESS(GNI_MsgqConnect(queue, other, &theirs));
    pmi.barrier();
  }
  gni_ep_handle_t to(int pe) {
    gni_ep_handle_t& ep = endpoints[pe];
    if (ep == nullptr)
      ep = domain.endpoint(source, addresses[static_cast<std::size_t>(pe)],
                           100 + static_cast<std::uint32_t>(pe));
    return ep;
  }
  gni_return_t send(int pe, std::uint64_t number, std::uint32_t id) {
    std::array<std::uint64_t, 2> header{number, static_cast<std::uint64_t>(pmi.rank)};
    std::array<std::uint64_t, 2> data{number * number, ~number};
    const std::time_t give_up = std::time(nullptr) + 60;
    gni_return_t rc = GNI_RC_NOT_DONE;
    while (std::time(nullptr) < give_up) {
      rc = GNI_MsgqSend(queue, to(pe), header.data(), sizeof header, data.data(), sizeof data, id,
                        static_cast<std::uint8_t>(number));
      if (rc != GNI_RC_NOT_DONE) break;
      (void)GNI_MsgqProgress(queue, 0);
    }
    return rc;
  }

  const client::Pmi& pmi = client::Pmi::get();
  client::Domain domain;
  std::vector<std::uint32_t> addresses;
  std::vector<int> here, there;
  gni_cq_handle_t source = nullptr;
  gni_msgq_attr_t attrs{};
  gni_msgq_handle_t queue = nullptr;
  Inbox inbox;
  std::map<int, gni_ep_handle_t> endpoints;
};

TEST_F(Queues, EveryInstanceReachesEveryInstanceOfAConnectedNodeInOrder) {
  connect();
  constexpr std::uint64_t kEach = 200;
  for (std::uint64_t n = 0; n < kEach; ++n) {
    for (const int pe : there) {
      const auto id = static_cast<std::uint32_t>(0xabc0'0000 + n);
      ASSERT_EQ(send(pe, n, id), GNI_RC_SUCCESS);
      gni_cq_entry_t event = 0;
      ASSERT_EQ(client::next_event(source, &event), GNI_RC_SUCCESS);
      EXPECT_EQ(GNI_CQ_GET_TYPE(event), kTypeMsgq);
      EXPECT_EQ(GNI_CQ_GET_MSG_ID(event), id);
    }
  }
  const std::time_t give_up = std::time(nullptr) + 60;
  while (inbox.came.size() < kEach * there.size() && std::time(nullptr) < give_up)
    EXPECT_EQ(GNI_MsgqProgress(queue, 10), GNI_RC_SUCCESS);
  ASSERT_EQ(inbox.came.size(), kEach * there.size());
  std::map<std::uint32_t, std::uint64_t> next;
  for (const Came& came : inbox.came) {
    const std::uint64_t number = next[came.id]++;
    EXPECT_EQ(came.value[0], number);
    EXPECT_EQ(came.value[1], came.id - 100);
    EXPECT_EQ(came.value[2], number * number);
    EXPECT_EQ(came.value[3], ~number);
    EXPECT_EQ(came.tag, static_cast<std::uint8_t>(number));
    EXPECT_EQ(came.address, addresses[came.id - 100]);
  }
  EXPECT_EQ(next.size(), there.size());
  EXPECT_EQ(GNI_MsgqIdle(queue), GNI_RC_SUCCESS);
}

TEST_F(Queues, ACallbackThatSaysStopIsCalledOncePerCall) {
  connect();
  inbox.answer = 0;
  for (std::uint64_t n = 0; n < 5; ++n) ASSERT_EQ(send(there.front(), n, 1), GNI_RC_SUCCESS);
  pmi.barrier();
  if (leader()) {
    const std::size_t due = 5 * there.size();
    for (std::size_t n = 1; n <= due; ++n) {
      EXPECT_EQ(GNI_MsgqProgress(queue, 1000), GNI_RC_NOT_DONE);
      ASSERT_EQ(inbox.came.size(), n);
    }
  }
  EXPECT_EQ(GNI_MsgqProgress(queue, 0), GNI_RC_SUCCESS) << "nothing came";
  EXPECT_EQ(GNI_MsgqProgress(queue, UINT32_MAX), GNI_RC_SUCCESS) << "it does not wait";
}

TEST_F(Queues, WithoutABufferASendIsNotDone) {
  connect();
  // No instance receives: a channel's buffers are used up at some time.
  if (leader()) {
    std::array<std::uint64_t, 4> words{};
    gni_return_t rc = GNI_RC_SUCCESS;
    int sent = 0;
    while (sent < 1000 && rc == GNI_RC_SUCCESS) {
      rc = GNI_MsgqSend(queue, to(there.back()), words.data(), sizeof words, nullptr, 0, 7, 7);
      sent += rc == GNI_RC_SUCCESS ? 1 : 0;
    }
    EXPECT_EQ(rc, GNI_RC_NOT_DONE);
    EXPECT_GE(sent, 8);
    gni_cq_entry_t event = 0;
    for (int i = 0; i < sent; ++i) ASSERT_EQ(client::next_event(source, &event), GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_CqGetEvent(source, &event), GNI_RC_NOT_DONE) << "what was refused has no event";
  }
  pmi.barrier();
  while (GNI_MsgqProgress(queue, 0) == GNI_RC_NOT_DONE) {
  }
}

TEST_F(Queues, WhatACallbackHasLeftBehindHoldsTheSendersBack) {
  connect();
  inbox.answer = 0;
  std::array<std::uint64_t, 4> words{};
  int sent = 0;
  for (int round = 0; round < 6; ++round) {
    while (leader() && sent < 2000 &&
           GNI_MsgqSend(queue, to(there.back()), words.data(), sizeof words, nullptr, 0, 7, 7) ==
               GNI_RC_SUCCESS)
      ++sent;
    pmi.barrier();
    if (here.back() == pmi.rank) (void)GNI_MsgqProgress(queue, 0);
    pmi.barrier();
  }
  // A queue has 128 buffers. The first call empties them, and the others take what it left behind.
  EXPECT_LE(sent, 2 * 128 + 6);
  inbox.answer = 1;
  const auto all = static_cast<std::size_t>(pmi.gather(sent)[static_cast<std::size_t>(there.front())]);
  const std::time_t give_up = std::time(nullptr) + 60;
  while (here.back() == pmi.rank && inbox.came.size() < all && std::time(nullptr) < give_up)
    (void)GNI_MsgqProgress(queue, 0);
  EXPECT_EQ(inbox.came.size(), here.back() == pmi.rank ? all : 0);
}

TEST_F(Queues, WhatIsNotConnectedIsNoMatch) {
  std::uint64_t word = 1;
  for (int pe = 0; pe < pmi.size; ++pe)
    EXPECT_EQ(GNI_MsgqSend(queue, to(pe), &word, 8, nullptr, 0, 1, 1), GNI_RC_NO_MATCH) << pe;
  const std::uint32_t other = addresses[static_cast<std::size_t>(there.front())];
  gni_msgq_ep_attr_t theirs{};
  EXPECT_EQ(GNI_MsgqConnect(queue, other, &theirs), GNI_RC_NO_MATCH) << "nothing was asked for";
  EXPECT_EQ(GNI_MsgqConnRelease(queue, other), GNI_RC_NO_MATCH);
  connect();
  EXPECT_EQ(send(there.front(), 1, 1), GNI_RC_SUCCESS);
  std::array<std::byte, 65> long_one{};
  EXPECT_EQ(GNI_MsgqSend(queue, to(there.front()), long_one.data(), 65, nullptr, 0, 1, 1), GNI_RC_SIZE_ERROR);
  if (leader()) {
    std::uint32_t bytes = 0;
    EXPECT_EQ(GNI_MsgqGetConnAttrs(queue, other, &theirs, &bytes), GNI_RC_INVALID_STATE);
    EXPECT_EQ(GNI_MsgqConnect(queue, other, &theirs), GNI_RC_INVALID_STATE);
  }
  pmi.barrier();
  if (leader()) {
    EXPECT_EQ(GNI_MsgqConnRelease(queue, other), GNI_RC_SUCCESS);
  }
  pmi.barrier();
  EXPECT_EQ(GNI_MsgqSend(queue, to(there.front()), &word, 8, nullptr, 0, 1, 1),
            leader() ? GNI_RC_NO_MATCH : GNI_RC_SUCCESS)
      << "the others hear of it when they look";
  (void)GNI_MsgqProgress(queue, 0);
  EXPECT_EQ(GNI_MsgqSend(queue, to(there.front()), &word, 8, nullptr, 0, 1, 1), GNI_RC_NO_MATCH);
  pmi.barrier();
  while (GNI_MsgqProgress(queue, 0) == GNI_RC_NOT_DONE) {
  }
}

TEST_F(Queues, ACallbackCannotLeaveItsQueue) {
  connect();
  inbox.ends = queue;
  for (const int pe : there) ASSERT_EQ(send(pe, 3, 1), GNI_RC_SUCCESS);
  const std::time_t give_up = std::time(nullptr) + 60;
  while (inbox.came.size() < there.size() && std::time(nullptr) < give_up) (void)GNI_MsgqProgress(queue, 10);
  EXPECT_EQ(inbox.came.size(), there.size());
  EXPECT_EQ(inbox.ended, GNI_RC_NOT_DONE);
}

// Instances that join and leave with nothing between them that makes them wait for each other.
class Joining : public testing::Test {
 protected:
  Joining() {
    const auto addresses = pmi.gather(domain.address);
    const auto here = std::count(addresses.begin(), addresses.end(), domain.address);
    attrs = attributes(static_cast<std::uint32_t>(here));
    is_first = std::find(addresses.begin(), addresses.end(), domain.address) - addresses.begin() == pmi.rank;
  }
  ~Joining() override { pmi.barrier(); }
  void join_and_leave() {
    gni_msgq_handle_t queue = nullptr;
    REQUIRE_SUCCESS(GNI_MsgqInit(domain.nic, receive, &inbox, nullptr, &attrs, &queue));
    gni_return_t rc = GNI_RC_NOT_DONE;
    while ((rc = GNI_MsgqRelease(queue)) == GNI_RC_NOT_DONE) sched_yield();
    REQUIRE_SUCCESS(rc);
  }

  const client::Pmi& pmi = client::Pmi::get();
  client::Domain domain;
  gni_msgq_attr_t attrs{};
  bool is_first = false;  // of its node
  Inbox inbox;
};

TEST_F(Joining, OneThatLeavesAtOnceWasSeenByAll) {
  for (int round = 0; round < 50; ++round) {
    join_and_leave();
    pmi.barrier();
  }
}

TEST_F(Joining, AQueueThatOthersHaveNotLeftYetIsNotTheNextOne) {
  for (std::uint32_t round = 0; round < 50; ++round) {
    attrs.max_msg_sz = round % 2 == 0 ? 64 : 128;
    join_and_leave();
    join_and_leave();
  }
}

TEST_F(Joining, AllAreRefusedWhenOneHasOtherAttributesAndMayTryAgain) {
  for (int round = 0; round < 20; ++round) {
    attrs.max_msg_sz = is_first ? 64 : 128;
    gni_msgq_handle_t queue = nullptr;
    ASSERT_EQ(GNI_MsgqInit(domain.nic, receive, &inbox, nullptr, &attrs, &queue), GNI_RC_INVALID_PARAM);
    attrs.max_msg_sz = 32;
    join_and_leave();
  }
}

TEST_F(Queues, BadArgumentsAreRefused) {
  std::uint32_t bytes = 77;
  gni_msgq_handle_t another = nullptr;
  EXPECT_EQ(GNI_MsgqInit(domain.nic, receive, &inbox, source, &attrs, &another), GNI_RC_INVALID_STATE);
  EXPECT_EQ(GNI_MsgqInit(domain.nic, nullptr, &inbox, source, &attrs, &another), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MsgqInit(nullptr, receive, &inbox, source, &attrs, &another), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MsgqInit(domain.nic, receive, &inbox, source, nullptr, &another), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MsgqInit(domain.nic, receive, &inbox, source, &attrs, nullptr), GNI_RC_INVALID_PARAM);
  struct Row {
    const char* name;
    std::uint32_t gni_msgq_attr_t::*field;
    std::uint32_t value;
  };
  for (const Row& row :
       {Row{"no bytes", &gni_msgq_attr_t::max_msg_sz, 0},
        Row{"too many bytes", &gni_msgq_attr_t::max_msg_sz, 129},
        Row{"no credits", &gni_msgq_attr_t::smsg_q_sz, 0}, Row{"odd credits", &gni_msgq_attr_t::smsg_q_sz, 3},
        Row{"no connections", &gni_msgq_attr_t::num_msgq_eps, 0},
        Row{"no instances", &gni_msgq_attr_t::nloc_insts, 0},
        Row{"too many instances", &gni_msgq_attr_t::nloc_insts, 129}}) {
    gni_msgq_attr_t bad = attrs;
    bad.*row.field = row.value;
    EXPECT_EQ(GNI_MsgqSize(&bad, &bytes), GNI_RC_INVALID_PARAM) << row.name;
    EXPECT_EQ(GNI_MsgqInit(domain.nic, receive, &inbox, source, &bad, &another), GNI_RC_INVALID_PARAM)
        << row.name;
  }
  gni_msgq_attr_t bad = attrs;
  bad.modes = 2;
  EXPECT_EQ(GNI_MsgqSize(&bad, &bytes), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(bytes, 77U);
  EXPECT_EQ(GNI_MsgqSize(&attrs, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MsgqSize(nullptr, &bytes), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MsgqSize(&attrs, &bytes), GNI_RC_SUCCESS);
  EXPECT_GT(bytes, 0U);
  gni_msgq_ep_attr_t ends{};
  EXPECT_EQ(GNI_MsgqGetConnAttrs(queue, domain.address, &ends, &bytes), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MsgqGetConnAttrs(queue, 1, nullptr, &bytes), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MsgqGetConnAttrs(queue, 1, &ends, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MsgqConnect(queue, 1, nullptr), GNI_RC_INVALID_PARAM);
  const std::uint32_t other = addresses[static_cast<std::size_t>(there.front())];
  ASSERT_EQ(GNI_MsgqGetConnAttrs(queue, other, &ends, &bytes), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_MsgqGetConnAttrs(queue, other + 999, &ends, &bytes), GNI_RC_ERROR_RESOURCE)
      << "one connection is all that was asked for";
  ends.pe_addr = other;
  gni_msgq_ep_attr_t wrong = ends;
  wrong.num_insts = 0;
  EXPECT_EQ(GNI_MsgqConnect(queue, other, &wrong), GNI_RC_INVALID_PARAM);
  wrong = ends;
  wrong.num_insts = 129;
  EXPECT_EQ(GNI_MsgqConnect(queue, other, &wrong), GNI_RC_INVALID_PARAM);
  wrong = ends;
  wrong.max_msg_sz = 65;
  EXPECT_EQ(GNI_MsgqConnect(queue, other, &wrong), GNI_RC_INVALID_PARAM);
  wrong = ends;
  wrong.insts[0].mdh.qword1 ^= 1;
  EXPECT_EQ(GNI_MsgqConnect(queue, other, &wrong), GNI_RC_INVALID_PARAM);
  const auto bits = [](auto value) { return reinterpret_cast<gni_msgq_handle_t>(value); };
  for (const gni_msgq_handle_t bad_queue : {gni_msgq_handle_t{}, bits(domain.nic), bits(source)}) {
    std::uint64_t word = 0;
    EXPECT_EQ(GNI_MsgqProgress(bad_queue, 0), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_MsgqIdle(bad_queue), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_MsgqRelease(bad_queue), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_MsgqConnRelease(bad_queue, 1), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_MsgqConnect(bad_queue, 1, &ends), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_MsgqGetConnAttrs(bad_queue, 1, &ends, &bytes), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_MsgqSend(bad_queue, to(0), &word, 8, nullptr, 0, 1, 1), GNI_RC_INVALID_PARAM);
  }
  std::uint64_t word = 0;
  EXPECT_EQ(GNI_MsgqSend(queue, nullptr, &word, 8, nullptr, 0, 1, 1), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MsgqSend(queue, to(0), nullptr, 8, nullptr, 0, 1, 1), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_MsgqSend(queue, to(0), &word, 8, nullptr, 8, 1, 1), GNI_RC_INVALID_PARAM);
}

}  // namespace
