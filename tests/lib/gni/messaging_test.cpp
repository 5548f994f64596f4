// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Datagrams and short messages as a client of two PEs sees them, for every value of ORRERY_ADOPT. Each PE
// talks to the other one and, through a second domain, to itself.
#include "tests/lib/gni/client.hpp"

#include <algorithm>
#include <array>
#include <thread>

#include <sched.h>
#include <sys/mman.h>

namespace {

using client::address_of;
using client::next_event;

class Messaging : public testing::Test {
 protected:
  Messaging() {
    struct Card {
      std::uint32_t nic_address;
    };
    const auto cards = pmi.gather(Card{domain.address});
    peer_address = cards[static_cast<std::size_t>(next)].nic_address;
    sources = domain.queue(32);
    endpoint = domain.endpoint(sources, peer_address, 100 + static_cast<std::uint32_t>(next));
  }
  ~Messaging() override { pmi.barrier(); }

  // ---- datagrams ----
  static gni_return_t post(gni_ep_handle_t ep, std::uint64_t value, std::uint64_t* reply) {
    return GNI_EpPostData(ep, &value, sizeof value, reply, sizeof *reply);
  }
  static gni_post_state_t settle(gni_ep_handle_t ep, std::uint32_t* address, std::uint32_t* id) {
    gni_post_state_t state = GNI_POST_PENDING;
    const std::time_t give_up = std::time(nullptr) + 60;
    while (std::time(nullptr) < give_up) {
      EXPECT_EQ(GNI_EpPostDataTest(ep, &state, address, id), GNI_RC_SUCCESS);
      if (state != GNI_POST_PENDING && state != GNI_POST_REMOTE_DATA) return state;
      sched_yield();
    }
    return state;
  }

  // ---- messages ----
  struct Box {
    gni_smsg_attr_t mine{};
    gni_smsg_attr_t theirs{};
    std::byte* memory = nullptr;
    gni_cq_handle_t arrived = nullptr;
    std::size_t bytes = 0;
  };
  // Makes our mailbox and tells the peer; neither has called GNI_SmsgInit yet.
  Box make_box(std::uint16_t credits, std::uint32_t max, std::uint32_t shift = 0,
               gni_smsg_type_t type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT) {
    Box box;
    box.mine.msg_type = type;
    box.mine.mbox_maxcredit = credits;
    box.mine.msg_maxsize = max;
    EXPECT_EQ(GNI_SmsgBufferSizeNeeded(&box.mine, &box.mine.buff_size), GNI_RC_SUCCESS);
    box.bytes = box.mine.buff_size + 4096;
    box.memory = static_cast<std::byte*>(
        mmap(nullptr, box.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    box.arrived = domain.queue(1024);
    box.mine.msg_buffer = box.memory;
    box.mine.mbox_offset = shift;
    box.mine.mem_hndl = domain.memory(box.memory, box.bytes, box.arrived);
    box.theirs = pmi.gather(box.mine)[static_cast<std::size_t>(next)];
    return box;
  }
  void drop(Box& box) {
    pmi.barrier();
    gni_return_t unbound = GNI_RC_NOT_DONE;
    while ((unbound = GNI_EpUnbind(endpoint)) == GNI_RC_NOT_DONE) sched_yield();
    EXPECT_EQ(unbound, GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_EpBind(endpoint, peer_address, 100 + static_cast<std::uint32_t>(next)), GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_MemDeregister(domain.nic, &box.mine.mem_hndl), GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_CqDestroy(box.arrived), GNI_RC_SUCCESS);
    munmap(box.memory, box.bytes);
  }
  void take_sent(std::uint32_t id) const {
    gni_cq_entry_t event = 0;
    ASSERT_EQ(next_event(sources, &event), GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_CQ_GET_TYPE(event), GNI_CQ_EVENT_TYPE_SMSG);
    EXPECT_EQ(GNI_CQ_GET_MSG_ID(event), id);
    gni_post_descriptor_t* none = nullptr;
    EXPECT_EQ(GNI_GetCompleted(sources, event, &none), GNI_RC_DESCRIPTOR_ERROR);
  }
  template <typename Value>
  gni_return_t receive(Value* value) const {
    void* header = nullptr;
    const std::time_t give_up = std::time(nullptr) + 60;
    gni_return_t rc = GNI_RC_NOT_DONE;
    while ((rc = GNI_SmsgGetNext(endpoint, &header)) == GNI_RC_NOT_DONE && std::time(nullptr) < give_up)
      sched_yield();
    if (rc == GNI_RC_SUCCESS) std::memcpy(value, header, sizeof *value);
    return rc;
  }

  const client::Pmi& pmi = client::Pmi::get();
  const int next = (pmi.rank + 1) % pmi.size;
  client::Domain domain{0, 100};
  std::uint32_t peer_address = 0;
  gni_cq_handle_t sources = nullptr;
  gni_ep_handle_t endpoint = nullptr;
};

TEST_F(Messaging, BoundDatagramsAreExchangedAgainAndAgain) {
  for (std::uint64_t round = 0; round < 200; ++round) {
    std::uint64_t reply = 0;
    std::uint32_t address = 0;
    std::uint32_t id = 0;
    ASSERT_EQ(post(endpoint, round * 10 + static_cast<std::uint64_t>(pmi.rank), &reply), GNI_RC_SUCCESS);
    ASSERT_EQ(settle(endpoint, &address, &id), GNI_POST_COMPLETED);
    ASSERT_EQ(reply, round * 10 + static_cast<std::uint64_t>(next));
    EXPECT_EQ(address, peer_address);
    EXPECT_EQ(id, 100 + static_cast<std::uint32_t>(next));
    gni_post_state_t state = GNI_POST_ERROR;
    EXPECT_EQ(GNI_EpPostDataTest(endpoint, &state, &address, &id), GNI_RC_NO_MATCH) << "taken already";
  }
}

TEST_F(Messaging, ADatagramWaitsForItsPartnerAndForNobodyElse) {
  std::uint64_t reply = 0;
  std::uint32_t address = 0;
  std::uint32_t id = 0;
  gni_post_state_t state = GNI_POST_ERROR;
  const gni_ep_handle_t stranger = domain.endpoint(sources, peer_address, 4711);
  if (pmi.rank == 0) {
    ASSERT_EQ(post(endpoint, 5, &reply), GNI_RC_SUCCESS);
    EXPECT_EQ(post(endpoint, 6, &reply), GNI_RC_ERROR_RESOURCE) << "one at a time";
    const gni_ep_handle_t second =
        domain.endpoint(sources, peer_address, 100 + static_cast<std::uint32_t>(next));
    EXPECT_EQ(post(second, 6, &reply), GNI_RC_ERROR_RESOURCE) << "one at a time towards a peer";
    EXPECT_EQ(GNI_EpDestroy(second), GNI_RC_SUCCESS);
    pmi.barrier();
    EXPECT_EQ(GNI_EpPostDataTest(endpoint, &state, &address, &id), GNI_RC_SUCCESS);
    EXPECT_EQ(state, GNI_POST_PENDING);
    EXPECT_EQ(GNI_EpPostDataWait(endpoint, 1, &state, &address, &id), GNI_RC_TIMEOUT);
    EXPECT_EQ(GNI_EpUnbind(endpoint), GNI_RC_NOT_DONE) << "a datagram is outstanding";
    pmi.barrier();
    ASSERT_EQ(GNI_EpPostDataWait(endpoint, 60'000, &state, &address, &id), GNI_RC_SUCCESS);
    EXPECT_EQ(state, GNI_POST_COMPLETED);
    EXPECT_EQ(reply, 9U);
  } else {
    ASSERT_EQ(post(stranger, 8, &reply), GNI_RC_SUCCESS) << "to an instance that never attaches";
    pmi.barrier();
    pmi.barrier();
    ASSERT_EQ(post(endpoint, 9, &reply), GNI_RC_SUCCESS);
    ASSERT_EQ(settle(endpoint, &address, &id), GNI_POST_COMPLETED);
    EXPECT_EQ(reply, 5U);
    EXPECT_EQ(GNI_EpPostDataTest(stranger, &state, &address, &id), GNI_RC_SUCCESS);
    EXPECT_EQ(state, GNI_POST_PENDING);
    EXPECT_EQ(GNI_EpPostDataCancel(stranger), GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_EpPostDataCancel(stranger), GNI_RC_NO_MATCH);
    EXPECT_EQ(GNI_EpPostDataTest(stranger, &state, &address, &id), GNI_RC_SUCCESS);
    EXPECT_EQ(state, GNI_POST_TERMINATED);
    EXPECT_EQ(GNI_EpPostDataTest(stranger, &state, &address, &id), GNI_RC_NO_MATCH);
  }
  EXPECT_EQ(GNI_EpDestroy(stranger), GNI_RC_SUCCESS);
}

TEST_F(Messaging, WildcardsMeetWhoeverComesInTheOrderInWhichTheyWerePosted) {
  constexpr int kPosts = 4;
  std::array<gni_ep_handle_t, kPosts> any{};
  std::array<std::uint64_t, kPosts> replies{};
  for (int round = 0; round < 2; ++round) {
    const bool first = round == 0;  // the wildcards are there before any peer comes, or after
    if (pmi.rank == 0) {
      if (!first) pmi.barrier();
      for (std::size_t i = 0; i < kPosts; ++i) {
        if (first) {
          REQUIRE_SUCCESS(GNI_EpCreate(domain.nic, nullptr, &any[i]));
        }
        const std::uint64_t value = 50 + i;
        ASSERT_EQ(GNI_EpPostDataWId(any[i], const_cast<std::uint64_t*>(&value), 8, &replies[i], 8, 7000 + i),
                  GNI_RC_SUCCESS);
      }
      if (first) pmi.barrier();
      const int expected = first ? kPosts : 1;
      for (int i = 0; i < expected; ++i) {
        std::uint64_t name = 0;
        ASSERT_EQ(GNI_PostdataProbeWaitById(domain.nic, 60'000, &name), GNI_RC_SUCCESS);
        EXPECT_EQ(name, 7000 + static_cast<std::uint64_t>(i));
        std::uint64_t again = 0;
        EXPECT_EQ(GNI_PostDataProbeById(domain.nic, &again), GNI_RC_SUCCESS) << "a probe takes nothing";
        EXPECT_EQ(again, name);
        gni_post_state_t state = GNI_POST_PENDING;
        std::uint32_t address = 0;
        std::uint32_t id = 0;
        const auto at = static_cast<std::size_t>(i);
        EXPECT_EQ(GNI_EpPostDataTestById(any[at], name + 1, &state, &address, &id), GNI_RC_NO_MATCH);
        ASSERT_EQ(GNI_EpPostDataWaitById(any[at], name, 60'000, &state, &address, &id), GNI_RC_SUCCESS);
        EXPECT_EQ(state, GNI_POST_COMPLETED);
        EXPECT_EQ(id, 101U);
        EXPECT_EQ(replies[at], first ? 900 + static_cast<std::uint64_t>(i) : 950);
      }
      std::uint64_t name = 0;
      EXPECT_EQ(GNI_PostDataProbeById(domain.nic, &name), GNI_RC_NO_MATCH);
      EXPECT_EQ(GNI_PostdataProbeWaitById(domain.nic, 1, &name), GNI_RC_TIMEOUT);
      if (!first) {
        for (std::size_t i = 1; i < kPosts; ++i) {
          EXPECT_EQ(GNI_EpPostDataCancelById(any[i], 7000 + i), GNI_RC_SUCCESS);
          EXPECT_EQ(GNI_PostDataProbeById(domain.nic, &name), GNI_RC_SUCCESS) << "cancelled ones are found";
          EXPECT_EQ(GNI_EpDestroy(any[i]), GNI_RC_SUCCESS);
        }
      }
    } else {
      const int posts = first ? kPosts : 1;
      if (first) pmi.barrier();
      for (int i = 0; i < posts; ++i) {
        std::uint64_t reply = 0;
        std::uint32_t address = 0;
        std::uint32_t id = 0;
        ASSERT_EQ(post(endpoint, (first ? 900 : 950) + static_cast<std::uint64_t>(i), &reply),
                  GNI_RC_SUCCESS);
        if (!first) pmi.barrier();
        ASSERT_EQ(settle(endpoint, &address, &id), GNI_POST_COMPLETED);
        EXPECT_EQ(reply, 50 + static_cast<std::uint64_t>(i));
        EXPECT_EQ(id, 100U);
      }
    }
    pmi.barrier();
  }
}

TEST_F(Messaging, DatagramsOfAnyLengthAndBuffersThatAreTooSmall) {
  std::array<char, 128> out{};
  std::array<char, 128> in{};
  for (const std::uint16_t length : {0, 1, 127, 128}) {
    out.fill(static_cast<char>('a' + pmi.rank));
    in.fill(0);
    std::uint32_t address = 0;
    std::uint32_t id = 0;
    ASSERT_EQ(GNI_EpPostData(endpoint, out.data(), length, in.data(), length), GNI_RC_SUCCESS);
    ASSERT_EQ(settle(endpoint, &address, &id), GNI_POST_COMPLETED);
    EXPECT_EQ(std::count(in.begin(), in.end(), 'a' + next), length);
    pmi.barrier();
  }
  ASSERT_EQ(GNI_EpPostData(endpoint, out.data(), 16, in.data(), 8), GNI_RC_SUCCESS);
  gni_post_state_t state = GNI_POST_PENDING;
  std::uint32_t address = 0;
  std::uint32_t id = 0;
  EXPECT_EQ(GNI_EpPostDataWait(endpoint, 60'000, &state, &address, &id), GNI_RC_SIZE_ERROR);
  EXPECT_EQ(GNI_EpPostDataTest(endpoint, &state, &address, &id), GNI_RC_NO_MATCH) << "it is gone";
}

TEST_F(Messaging, AThreadThatWaitsHearsOfADatagramThatAnotherPosted) {
  std::uint64_t name = 0;
  std::thread waiter(
      [&] { EXPECT_EQ(GNI_PostdataProbeWaitById(domain.nic, 60'000, &name), GNI_RC_SUCCESS); });
  std::uint64_t value = 3;
  std::uint64_t reply = 0;
  ASSERT_EQ(GNI_EpPostDataWId(endpoint, &value, 8, &reply, 8, 42), GNI_RC_SUCCESS);
  waiter.join();
  EXPECT_EQ(name, 42U);
  std::uint32_t address = 0;
  std::uint32_t id = 0;
  EXPECT_EQ(settle(endpoint, &address, &id), GNI_POST_COMPLETED);
}

TEST_F(Messaging, TwoDomainsOfOneProcessMeet) {
  const client::Domain other(0, 300);
  const gni_ep_handle_t here =
      domain.endpoint(nullptr, other.address, 300 + static_cast<std::uint32_t>(pmi.rank));
  const gni_ep_handle_t there =
      other.endpoint(nullptr, domain.address, 100 + static_cast<std::uint32_t>(pmi.rank));
  gni_ep_handle_t any = nullptr;
  REQUIRE_SUCCESS(GNI_EpCreate(other.nic, nullptr, &any));
  std::uint64_t at_any = 0;
  std::uint64_t at_here = 0;
  std::uint64_t at_there = 0;
  std::uint32_t address = 0;
  std::uint32_t id = 0;
  // The one that is bound back goes first, the wildcard keeps waiting.
  ASSERT_EQ(post(any, 1, &at_any), GNI_RC_SUCCESS);
  ASSERT_EQ(post(there, 2, &at_there), GNI_RC_SUCCESS);
  ASSERT_EQ(post(here, 3, &at_here), GNI_RC_SUCCESS);
  EXPECT_EQ(settle(here, &address, &id), GNI_POST_COMPLETED);
  EXPECT_EQ(id, 300 + static_cast<std::uint32_t>(pmi.rank));
  EXPECT_EQ(at_here, 2U);
  EXPECT_EQ(settle(there, &address, &id), GNI_POST_COMPLETED);
  EXPECT_EQ(at_there, 3U);
  gni_post_state_t state = GNI_POST_ERROR;
  EXPECT_EQ(GNI_EpPostDataTest(any, &state, &address, &id), GNI_RC_SUCCESS);
  EXPECT_EQ(state, GNI_POST_PENDING);
  ASSERT_EQ(post(here, 4, &at_here), GNI_RC_SUCCESS);
  EXPECT_EQ(settle(here, &address, &id), GNI_POST_COMPLETED);
  EXPECT_EQ(at_here, 1U);
  std::uint32_t who = 0;
  EXPECT_EQ(GNI_PostDataProbe(other.nic, &address, &who), GNI_RC_SUCCESS);
  EXPECT_EQ(who, domain.instance);
  EXPECT_EQ(settle(any, &address, &id), GNI_POST_COMPLETED);
  EXPECT_EQ(at_any, 4U);
  EXPECT_EQ(GNI_PostDataProbe(other.nic, &address, &who), GNI_RC_NO_MATCH);
}

TEST_F(Messaging, MessagesArriveInOrderWithTheirTagsAndEvents) {
  constexpr std::uint32_t kMessages = 300;
  for (const auto type : {GNI_SMSG_TYPE_MBOX, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT}) {
    Box box = make_box(4, 200, type == GNI_SMSG_TYPE_MBOX ? 24 : 0, type);
    ASSERT_EQ(GNI_SmsgInit(endpoint, &box.mine, &box.theirs), GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_SmsgInit(endpoint, &box.mine, &box.theirs), GNI_RC_INVALID_STATE);
    std::uint32_t sent = 0;
    std::uint32_t received = 0;
    std::vector<char> data(200);
    const std::time_t give_up = std::time(nullptr) + 100;
    while ((sent < kMessages || received < kMessages) && std::time(nullptr) < give_up) {
      if (sent < kMessages) {
        const std::uint32_t length = sent % 197;
        std::fill(data.begin(), data.end(), static_cast<char>(sent));
        const gni_return_t rc =
            GNI_SmsgSendWTag(endpoint, &sent, sizeof sent, length == 0 ? nullptr : data.data(), length,
                             0xf0000000U + sent, static_cast<std::uint8_t>(sent % 255));
        ASSERT_TRUE(rc == GNI_RC_SUCCESS || rc == GNI_RC_NOT_DONE) << rc;
        std::fill(data.begin(), data.end(), '!');  // it was copied
        if (rc == GNI_RC_SUCCESS) {
          ASSERT_NO_FATAL_FAILURE(take_sent(0xf0000000U + sent));
          ++sent;
        }
      }
      void* at = nullptr;
      std::uint8_t tag = GNI_SMSG_ANY_TAG;
      const gni_return_t rc = GNI_SmsgGetNextWTag(endpoint, &at, &tag);
      if (rc == GNI_RC_NOT_DONE) {
        sched_yield();
        continue;
      }
      ASSERT_EQ(rc, GNI_RC_SUCCESS);
      EXPECT_EQ(tag, received % 255);
      std::uint32_t number = 0;
      std::memcpy(&number, at, sizeof number);
      ASSERT_EQ(number, received);
      const char* payload = static_cast<const char*>(at) + sizeof number;
      EXPECT_EQ(std::count(payload, payload + received % 197, static_cast<char>(received)), received % 197);
      ASSERT_EQ(GNI_SmsgRelease(endpoint), GNI_RC_SUCCESS);
      gni_cq_entry_t event = 0;
      ASSERT_EQ(next_event(box.arrived, &event), GNI_RC_SUCCESS);
      EXPECT_EQ(GNI_CQ_GET_TYPE(event), GNI_CQ_EVENT_TYPE_SMSG);
      EXPECT_EQ(GNI_CQ_GET_INST_ID(event), 100 + static_cast<std::uint32_t>(next));
      ++received;
    }
    EXPECT_EQ(received, kMessages);
    drop(box);
  }
}

TEST_F(Messaging, AReceiverMayOpenItsEndAfterMessagesHaveCome) {
  Box box = make_box(4, 64);
  if (pmi.rank == 0) {
    ASSERT_EQ(GNI_SmsgInit(endpoint, &box.mine, &box.theirs), GNI_RC_SUCCESS);
    for (std::uint64_t i = 0; i < 4; ++i) {
      ASSERT_EQ(GNI_SmsgSend(endpoint, &i, sizeof i, nullptr, 0, 0), GNI_RC_SUCCESS);
      ASSERT_NO_FATAL_FAILURE(take_sent(0));
    }
    std::uint64_t more = 4;
    EXPECT_EQ(GNI_SmsgSend(endpoint, &more, sizeof more, nullptr, 0, 0), GNI_RC_NOT_DONE) << "no credit";
    pmi.barrier();
    gni_return_t rc = GNI_RC_NOT_DONE;
    while ((rc = GNI_SmsgSend(endpoint, &more, sizeof more, nullptr, 0, 0)) == GNI_RC_NOT_DONE) sched_yield();
    ASSERT_EQ(rc, GNI_RC_SUCCESS);
    ASSERT_NO_FATAL_FAILURE(take_sent(0));
    void* at = nullptr;
    EXPECT_EQ(GNI_SmsgGetNext(endpoint, &at), GNI_RC_NOT_DONE);
    EXPECT_EQ(GNI_SmsgRelease(endpoint), GNI_RC_NOT_DONE);
  } else {
    pmi.barrier();
    ASSERT_EQ(GNI_SmsgInit(endpoint, &box.mine, &box.theirs), GNI_RC_SUCCESS);
    for (std::uint64_t i = 0; i < 5; ++i) {
      std::uint64_t value = 99;
      ASSERT_EQ(receive(&value), GNI_RC_SUCCESS);
      EXPECT_EQ(value, i);
      ASSERT_EQ(receive(&value), GNI_RC_SUCCESS) << "the same one until it is released";
      EXPECT_EQ(value, i);
      EXPECT_EQ(GNI_SmsgRelease(endpoint), GNI_RC_SUCCESS);
    }
  }
  drop(box);
}

TEST_F(Messaging, TagsThatWereNotAskedForStayWhereTheyAre) {
  Box box = make_box(2, 64);
  ASSERT_EQ(GNI_SmsgInit(endpoint, &box.mine, &box.theirs), GNI_RC_SUCCESS);
  std::uint64_t value = 7;
  ASSERT_EQ(GNI_SmsgSendWTag(endpoint, nullptr, 0, &value, sizeof value, 1, 30), GNI_RC_SUCCESS);
  ASSERT_NO_FATAL_FAILURE(take_sent(1));
  pmi.barrier();
  void* at = nullptr;
  std::uint8_t tag = 31;
  gni_return_t rc = GNI_RC_NOT_DONE;
  while ((rc = GNI_SmsgGetNextWTag(endpoint, &at, &tag)) == GNI_RC_NOT_DONE) sched_yield();
  EXPECT_EQ(rc, GNI_RC_NO_MATCH);
  EXPECT_EQ(tag, 30) << "what is there";
  EXPECT_EQ(at, nullptr);
  EXPECT_EQ(GNI_SmsgRelease(endpoint), GNI_RC_NOT_DONE) << "none was given";
  ASSERT_EQ(GNI_SmsgGetNextWTag(endpoint, &at, &tag), GNI_RC_SUCCESS);
  EXPECT_EQ(std::memcmp(at, &value, sizeof value), 0);
  EXPECT_EQ(GNI_SmsgRelease(endpoint), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_SmsgSend(endpoint, nullptr, 0, box.memory, 65, 1), GNI_RC_ERROR_RESOURCE) << "too long";
  drop(box);
}

TEST_F(Messaging, RequestsForMessagesAreAsManyAsTheQueueIsDeep) {
  Box box = make_box(16, 8);
  const gni_cq_handle_t shallow = domain.queue(2);
  const gni_ep_handle_t ep = domain.endpoint(shallow, peer_address, 100 + static_cast<std::uint32_t>(next));
  ASSERT_EQ(GNI_SmsgInit(ep, &box.mine, &box.theirs), GNI_RC_SUCCESS);
  std::uint64_t value = 1;
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(GNI_SmsgSend(ep, &value, 8, nullptr, 0, 1), GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_SmsgSend(ep, &value, 8, nullptr, 0, 2), GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_SmsgSend(ep, &value, 8, nullptr, 0, 3), GNI_RC_NOT_DONE) << "later";
    gni_cq_entry_t event = 0;
    EXPECT_EQ(next_event(shallow, &event), GNI_RC_SUCCESS);
    EXPECT_EQ(next_event(shallow, &event), GNI_RC_SUCCESS);
  }
  EXPECT_EQ(GNI_EpUnbind(ep), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_SmsgSend(ep, &value, 8, nullptr, 0, 1), GNI_RC_INVALID_PARAM) << "its connection is gone";
  EXPECT_EQ(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
  drop(box);
}

TEST_F(Messaging, AMailboxThatIsGoneBreaksTheConnection) {
  Box box = make_box(4, 64);
  ASSERT_EQ(GNI_SmsgInit(endpoint, &box.mine, &box.theirs), GNI_RC_SUCCESS);
  pmi.barrier();
  if (pmi.rank == 0) {
    EXPECT_EQ(GNI_MemDeregister(domain.nic, &box.mine.mem_hndl), GNI_RC_SUCCESS);
    pmi.barrier();
    box.mine.mem_hndl = domain.memory(box.memory, box.bytes, box.arrived);
  } else {
    pmi.barrier();
    std::uint64_t value = 1;
    ASSERT_EQ(GNI_SmsgSend(endpoint, &value, 8, nullptr, 0, 77), GNI_RC_SUCCESS);
    gni_cq_entry_t event = 0;
    ASSERT_EQ(next_event(sources, &event), GNI_RC_TRANSACTION_ERROR);
    EXPECT_EQ(GNI_CQ_GET_MSG_ID(event), 77U);
    EXPECT_EQ(GNI_SmsgSend(endpoint, &value, 8, nullptr, 0, 78), GNI_RC_INVALID_STATE);
    void* at = nullptr;
    EXPECT_EQ(GNI_SmsgGetNext(endpoint, &at), GNI_RC_NOT_DONE) << "our own mailbox is as it was";
  }
  drop(box);
}

}  // namespace
