// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Queues into which every connected peer may put; three PEs, each of which puts to all, itself too.
#include "tests/lib/gni/client.hpp"

#include <array>
#include <map>

#include <sched.h>

namespace {

struct Came {
  std::uint32_t pe, id;
  std::vector<std::byte> bytes;
};
struct Inbox {
  std::vector<Came> came;
  int answer = 1;
  gni_dqueue_handle_t ends = nullptr;  // what the callback tries to finish
  gni_return_t ended = GNI_RC_SUCCESS;
};

int receive(void* context, void* data, std::uint32_t length, std::uint32_t pe, std::uint32_t id) {
  auto& inbox = *static_cast<Inbox*>(context);
  const auto* const at = static_cast<std::byte*>(data);
  inbox.came.push_back({pe, id, {at, at + length}});
  if (inbox.ends != nullptr) inbox.ended = GNI_DqueueFini(inbox.ends);
  return inbox.answer;
}

class Queues : public testing::Test {
 protected:
  void open(std::uint32_t entries, std::uint32_t bytes) {
    in = {};
    in.entries = entries;
    in.msg_size = bytes;
    in.npeers = static_cast<std::uint32_t>(pmi.size);
    in.cb = receive;
    in.context = &inbox;
    REQUIRE_SUCCESS(GNI_DqueueInit(domain.nic, &in, &out, &queue));
    peers = pmi.gather(out);
    REQUIRE_SUCCESS(GNI_DqueueConnect(queue, peers.data(), static_cast<std::uint32_t>(peers.size())));
    pmi.barrier();
  }
  ~Queues() override {
    pmi.barrier();
    if (queue == nullptr) return;
    gni_return_t rc = GNI_RC_NOT_DONE;
    while ((rc = GNI_DqueueFini(queue)) == GNI_RC_NOT_DONE) sched_yield();
    EXPECT_EQ(rc, GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_DqueueFini(queue), GNI_RC_INVALID_PARAM);
    pmi.barrier();
  }
  gni_return_t put(const gni_dqueue_out_attr_t& to, void* data, std::uint32_t length) {
    return GNI_DqueuePut(queue, data, length, to.pe, to.id);
  }

  const client::Pmi& pmi = client::Pmi::get();
  client::Domain domain;
  gni_dqueue_in_attr_t in{};
  gni_dqueue_out_attr_t out{};
  std::vector<gni_dqueue_out_attr_t> peers;
  gni_dqueue_handle_t queue = nullptr;
  Inbox inbox;
};

TEST_F(Queues, MessagesOfOneSenderComeInOrderAndWhole) {
  open(0, 0);
  EXPECT_EQ(out.entries, static_cast<std::uint32_t>(GNI_DQUEUE_DEFAULT_ENTRIES));
  EXPECT_EQ(out.msg_size, static_cast<std::uint32_t>(GNI_DQUEUE_DEFAULT_MSG_SIZE));
  EXPECT_EQ(out.pe, domain.address);
  EXPECT_EQ(out.id, domain.instance);
  constexpr std::uint32_t kEach = 700;
  const std::time_t give_up = std::time(nullptr) + 90;
  std::array<std::uint32_t, 48> words{};
  for (std::uint32_t n = 0; n < kEach; ++n) {
    const std::uint32_t count = 1 + n % 48;
    for (std::uint32_t i = 0; i < count; ++i) words[i] = n + i;
    for (const auto& peer : peers) {
      gni_return_t rc = GNI_RC_NOT_DONE;
      while ((rc = put(peer, words.data(), 4 * count)) == GNI_RC_NOT_DONE && std::time(nullptr) < give_up)
        (void)GNI_DqueueProgress(queue);
      ASSERT_EQ(rc, GNI_RC_SUCCESS);
    }
  }
  while (inbox.came.size() < kEach * peers.size() && std::time(nullptr) < give_up) {
    if (GNI_DqueueProgress(queue) == GNI_RC_NOT_DONE) sched_yield();
  }
  ASSERT_EQ(inbox.came.size(), kEach * peers.size());
  std::map<std::uint32_t, std::uint32_t> next;
  for (const Came& came : inbox.came) {
    const std::uint32_t n = next[came.id]++;
    const std::uint32_t count = 1 + n % 48;
    ASSERT_EQ(came.bytes.size(), 4 * count);
    std::memcpy(words.data(), came.bytes.data(), came.bytes.size());
    for (std::uint32_t i = 0; i < count; ++i) ASSERT_EQ(words[i], n + i);
  }
  EXPECT_EQ(next.size(), peers.size());
  EXPECT_EQ(GNI_DqueueProgress(queue), GNI_RC_NOT_DONE);
}

TEST_F(Queues, AllEntriesCanBeFullAndThenAPutIsNotDone) {
  open(300, 16);
  std::uint64_t word = 5;
  const gni_dqueue_out_attr_t& self = peers[static_cast<std::size_t>(pmi.rank)];
  for (int i = 0; i < 300; ++i) ASSERT_EQ(put(self, &word, sizeof word), GNI_RC_SUCCESS) << i;
  EXPECT_EQ(put(self, &word, sizeof word), GNI_RC_NOT_DONE);
  inbox.answer = 0;
  EXPECT_EQ(GNI_DqueueProgress(queue), GNI_RC_SUCCESS);
  EXPECT_EQ(inbox.came.size(), 1U) << "the callback stopped it";
  inbox.answer = 1;
  while (GNI_DqueueProgress(queue) == GNI_RC_SUCCESS) {
  }
  EXPECT_EQ(inbox.came.size(), 300U);
  EXPECT_EQ(put(self, nullptr, 0), GNI_RC_SUCCESS) << "a message of nothing is one";
  EXPECT_EQ(GNI_DqueueProgress(queue), GNI_RC_SUCCESS);
  EXPECT_TRUE(inbox.came.back().bytes.empty());
}

TEST_F(Queues, ACallbackCannotFinishItsQueue) {
  open(4, 16);
  const gni_dqueue_out_attr_t& self = peers[static_cast<std::size_t>(pmi.rank)];
  std::uint64_t word = 5;
  inbox.ends = queue;
  ASSERT_EQ(put(self, &word, sizeof word), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_DqueueProgress(queue), GNI_RC_SUCCESS);
  EXPECT_EQ(inbox.came.size(), 1U);
  EXPECT_EQ(inbox.ended, GNI_RC_NOT_DONE);
}

TEST_F(Queues, BadArgumentsAreRefused) {
  open(128, 64);
  gni_dqueue_handle_t another = nullptr;
  gni_dqueue_out_attr_t ends{};
  gni_dqueue_in_attr_t bad = in;
  EXPECT_EQ(GNI_DqueueInit(nullptr, &bad, &ends, &another), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_DqueueInit(domain.nic, nullptr, &ends, &another), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_DqueueInit(domain.nic, &bad, nullptr, &another), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_DqueueInit(domain.nic, &bad, &ends, nullptr), GNI_RC_INVALID_PARAM);
  bad.cb = nullptr;
  EXPECT_EQ(GNI_DqueueInit(domain.nic, &bad, &ends, &another), GNI_RC_INVALID_PARAM);
  bad = in;
  bad.entries = 1u << 20;
  EXPECT_EQ(GNI_DqueueInit(domain.nic, &bad, &ends, &another), GNI_RC_INVALID_PARAM);
  bad = in;
  bad.npeers = 0;
  EXPECT_EQ(GNI_DqueueInit(domain.nic, &bad, &ends, &another), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(another, nullptr);

  std::array<std::byte, 65> data{};
  EXPECT_EQ(put(peers[0], data.data(), 65), GNI_RC_SIZE_ERROR);
  EXPECT_EQ(put(peers[0], nullptr, 8), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_DqueuePut(queue, data.data(), 8, peers[0].pe, 4711), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_DqueueConnect(queue, peers.data(), 1), GNI_RC_INVALID_PARAM) << "connected already";
  EXPECT_EQ(GNI_DqueueConnect(queue, nullptr, 1), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_DqueueConnect(queue, peers.data(), UINT32_MAX), GNI_RC_ERROR_RESOURCE) << "more than npeers";
  EXPECT_EQ(GNI_DqueueConnect(queue, peers.data(), 0), GNI_RC_INVALID_PARAM);
  gni_dqueue_out_attr_t wrong = peers[0];
  wrong.id = 4711;
  EXPECT_EQ(GNI_DqueueConnect(queue, &wrong, 1), GNI_RC_ERROR_RESOURCE) << "npeers are connected";
  wrong.mdh.qword1 ^= 1;
  EXPECT_EQ(GNI_DqueueConnect(queue, &wrong, 1), GNI_RC_INVALID_PARAM);
  // A registration that is no queue's.
  alignas(4096) static std::array<std::byte, 4096> page{};
  wrong = out;
  wrong.id = 4712;
  wrong.mdh = domain.memory(page.data(), page.size());
  EXPECT_EQ(GNI_DqueueConnect(queue, &wrong, 1), GNI_RC_INVALID_PARAM);
  for (const auto handle : {gni_dqueue_handle_t{}, reinterpret_cast<gni_dqueue_handle_t>(domain.nic)}) {
    EXPECT_EQ(GNI_DqueuePut(handle, data.data(), 8, peers[0].pe, peers[0].id), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_DqueueProgress(handle), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_DqueueConnect(handle, peers.data(), 1), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_DqueueFini(handle), GNI_RC_INVALID_PARAM);
  }
}

}  // namespace
