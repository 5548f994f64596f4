// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/lib/gni/client.hpp"

#include <array>

// What calls say once the peer has left the job. Rank 1 sends two messages and ends; rank 0 looks afterwards.
namespace {

using client::address_of;
using client::Pmi;

struct Card {
  std::uint32_t address;
  std::uint32_t instance;
  gni_smsg_attr_t attr;
};

constexpr std::uint16_t kCredits = 8;
constexpr std::uint64_t kFirst = 71;

void pause() {
  timespec moment{0, 1'000'000};
  nanosleep(&moment, nullptr);
}

TEST(PeerThatLeft, ItsMessagesAreReadAndNoCallHangs) {
  const Pmi& pmi = Pmi::get();
  std::vector<std::byte> memory;  // outlives the domain: rank 0 sends to it while rank 1 leaves
  client::Domain domain;
  const gni_cq_handle_t sent = domain.queue(64);
  gni_smsg_attr_t attr;
  std::memset(&attr, 0, sizeof attr);
  attr.msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT;
  attr.mbox_maxcredit = kCredits;
  attr.msg_maxsize = 64;
  REQUIRE_SUCCESS(GNI_SmsgBufferSizeNeeded(&attr, &attr.buff_size));
  attr.buff_size = (attr.buff_size + 63) & ~63u;
  memory.resize(2 * attr.buff_size);
  attr.msg_buffer = memory.data();
  attr.mem_hndl = domain.memory(memory.data(), memory.size());
  const auto cards = pmi.gather(Card{domain.address, domain.instance, attr});
  const Card& other = cards[static_cast<std::size_t>(1 - pmi.rank)];
  std::array<gni_ep_handle_t, 2> eps{};
  for (auto& ep : eps) ep = domain.endpoint(sent, other.address, other.instance);
  const auto open = [&](std::uint32_t which) {
    gni_smsg_attr_t ours = attr;
    gni_smsg_attr_t theirs = other.attr;
    ours.mbox_offset = theirs.mbox_offset = which * attr.buff_size;
    return GNI_SmsgInit(eps[which], &ours, &theirs);
  };
  ASSERT_EQ(open(0), GNI_RC_SUCCESS);
  if (pmi.rank == 1) {
    ASSERT_EQ(open(1), GNI_RC_SUCCESS);
    for (std::uint64_t i = 0; i < 2; ++i) {
      std::uint64_t value = kFirst + i;
      ASSERT_EQ(GNI_SmsgSend(eps[i], &value, sizeof value, nullptr, 0, 0), GNI_RC_SUCCESS);
      gni_cq_entry_t event = 0;
      ASSERT_EQ(client::next_event(sent, &event), GNI_RC_SUCCESS);
    }
    pmi.barrier();
    return;
  }
  pmi.barrier();
  // Credits come no more, and that the peer is gone is known some time later.
  const std::time_t give_up = std::time(nullptr) + 60;
  std::uint64_t value = 0;
  const auto send_until_refused = [&](gni_ep_handle_t ep) {
    gni_return_t rc = GNI_RC_NOT_DONE;
    while ((rc = GNI_SmsgSend(ep, &value, sizeof value, nullptr, 0, 0)) == GNI_RC_SUCCESS ||
           (rc == GNI_RC_NOT_DONE && std::time(nullptr) < give_up)) {
      gni_cq_entry_t event = 0;
      while (GNI_CqGetEvent(sent, &event) != GNI_RC_NOT_DONE) {
      }
      pause();
    }
    return rc;
  };
  EXPECT_EQ(send_until_refused(eps[0]), GNI_RC_INVALID_STATE);
  EXPECT_EQ(open(1), GNI_RC_SUCCESS) << "its mailbox is our own memory";
  EXPECT_EQ(send_until_refused(eps[1]), GNI_RC_INVALID_STATE);
  for (std::uint64_t i = 0; i < 2; ++i) {
    void* at = nullptr;
    ASSERT_EQ(GNI_SmsgGetNext(eps[i], &at), GNI_RC_SUCCESS) << i;
    std::memcpy(&value, at, sizeof value);
    EXPECT_EQ(value, kFirst + i);
    EXPECT_EQ(GNI_SmsgRelease(eps[i]), GNI_RC_SUCCESS);
    std::uint8_t tag = GNI_SMSG_ANY_TAG;
    EXPECT_EQ(GNI_SmsgGetNext(eps[i], &at), GNI_RC_NOT_DONE);
    EXPECT_EQ(GNI_SmsgGetNextWTag(eps[i], &at, &tag), GNI_RC_NOT_DONE);
  }
  // A post is taken, and its event says how it ended.
  const gni_cq_handle_t posted = domain.queue(4);
  const gni_ep_handle_t ep = domain.endpoint(posted, other.address, other.instance);
  gni_post_descriptor_t d = client::descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT);
  d.local_addr = address_of(&value);
  d.remote_addr = address_of(other.attr.msg_buffer);
  d.remote_mem_hndl = other.attr.mem_hndl;
  d.length = sizeof value;
  ASSERT_EQ(GNI_PostFma(ep, &d), GNI_RC_SUCCESS);
  gni_cq_entry_t event = 0;
  gni_post_descriptor_t* done = nullptr;
  EXPECT_EQ(client::next_event(posted, &event), GNI_RC_TRANSACTION_ERROR);
  EXPECT_EQ(GNI_GetCompleted(posted, event, &done), GNI_RC_TRANSACTION_ERROR);
  EXPECT_EQ(done, &d);
  EXPECT_EQ(GNI_GetCompleted(posted, event, &done), GNI_RC_DESCRIPTOR_ERROR) << "taken before";
  for (const gni_ep_handle_t one : {eps[0], eps[1], ep}) {
    gni_return_t unbound = GNI_RC_NOT_DONE;
    while ((unbound = GNI_EpUnbind(one)) == GNI_RC_NOT_DONE && std::time(nullptr) < give_up + 60) pause();
    EXPECT_EQ(unbound, GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_EpDestroy(one), GNI_RC_SUCCESS);
  }
  EXPECT_EQ(GNI_CqDestroy(posted), GNI_RC_SUCCESS);
}

}  // namespace
