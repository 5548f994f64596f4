// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Datagrams and short messages with every kind of argument that no client may pass; see bad_input_test.cpp.
#include "tests/lib/gni/client.hpp"

#include <array>
#include <limits>

namespace {

using client::address_of;

class BadMessages : public testing::Test {
 protected:
  BadMessages() {
    endpoint = domain.endpoint(domain.queue(64), domain.address, domain.instance);
    EXPECT_EQ(GNI_EpCreate(domain.nic, nullptr, &unbound), GNI_RC_SUCCESS);
    const gni_ep_handle_t gone = domain.endpoint(nullptr, 1, 1);
    EXPECT_EQ(GNI_EpDestroy(gone), GNI_RC_SUCCESS);
    bad_eps = {nullptr, gone, reinterpret_cast<gni_ep_handle_t>(0x1000ul),
               reinterpret_cast<gni_ep_handle_t>(~0ul), reinterpret_cast<gni_ep_handle_t>(domain.nic)};
    bad_nics = {nullptr, reinterpret_cast<gni_nic_handle_t>(endpoint),
                reinterpret_cast<gni_nic_handle_t>(0xdeadbeeful)};
    attr.msg_type = GNI_SMSG_TYPE_MBOX;
    attr.mbox_maxcredit = 4;
    attr.msg_maxsize = 32;
    attr.msg_buffer = page.data();
    attr.buff_size = 4096;
    attr.mem_hndl = domain.memory(page.data(), 4096);
  }

  // A connection with `ours` and `theirs` is refused with `code`.
  void refused(const char* what, gni_smsg_attr_t ours, gni_smsg_attr_t theirs, gni_return_t code) {
    EXPECT_EQ(GNI_SmsgInit(endpoint, &ours, &theirs), code) << what;
    EXPECT_EQ(GNI_SmsgSend(endpoint, nullptr, 0, nullptr, 0, 0), GNI_RC_INVALID_PARAM) << what;
  }
  template <typename Change>
  gni_smsg_attr_t but(Change change) const {
    gni_smsg_attr_t changed = attr;
    change(changed);
    return changed;
  }

  client::Domain domain{0, 700};
  gni_ep_handle_t endpoint = nullptr;
  gni_ep_handle_t unbound = nullptr;
  std::vector<gni_ep_handle_t> bad_eps;
  std::vector<gni_nic_handle_t> bad_nics;
  alignas(4096) std::array<std::byte, 8192> page{};
  gni_smsg_attr_t attr{};
};

TEST_F(BadMessages, HandlesThatAreNotLiveAreRefused) {
  std::uint64_t word = 0;
  gni_post_state_t state = GNI_POST_ERROR;
  std::uint32_t address = 77;
  std::uint32_t id = 77;
  void* at = &word;
  std::uint8_t tag = 9;
  for (const auto ep : bad_eps) {
    EXPECT_EQ(GNI_EpPostData(ep, &word, 8, &word, 8), GNI_RC_INVALID_PARAM) << ep;
    EXPECT_EQ(GNI_EpPostDataWId(ep, &word, 8, &word, 8, 1), GNI_RC_INVALID_PARAM) << ep;
    EXPECT_EQ(GNI_EpPostDataTest(ep, &state, &address, &id), GNI_RC_INVALID_PARAM) << ep;
    EXPECT_EQ(GNI_EpPostDataTestById(ep, 1, &state, &address, &id), GNI_RC_INVALID_PARAM) << ep;
    EXPECT_EQ(GNI_EpPostDataWait(ep, 1, &state, &address, &id), GNI_RC_INVALID_PARAM) << ep;
    EXPECT_EQ(GNI_EpPostDataWaitById(ep, 1, 1, &state, &address, &id), GNI_RC_INVALID_PARAM) << ep;
    EXPECT_EQ(GNI_EpPostDataCancel(ep), GNI_RC_INVALID_PARAM) << ep;
    EXPECT_EQ(GNI_EpPostDataCancelById(ep, 1), GNI_RC_INVALID_PARAM) << ep;
    EXPECT_EQ(GNI_SmsgInit(ep, &attr, &attr), GNI_RC_INVALID_PARAM) << ep;
    EXPECT_EQ(GNI_SmsgSend(ep, &word, 8, nullptr, 0, 1), GNI_RC_INVALID_PARAM) << ep;
    EXPECT_EQ(GNI_SmsgSendWTag(ep, &word, 8, nullptr, 0, 1, 1), GNI_RC_INVALID_PARAM) << ep;
    EXPECT_EQ(GNI_SmsgGetNext(ep, &at), GNI_RC_INVALID_PARAM) << ep;
    EXPECT_EQ(GNI_SmsgGetNextWTag(ep, &at, &tag), GNI_RC_INVALID_PARAM) << ep;
    EXPECT_EQ(GNI_SmsgRelease(ep), GNI_RC_INVALID_PARAM) << ep;
  }
  for (const auto nic : bad_nics) {
    EXPECT_EQ(GNI_PostDataProbe(nic, &address, &id), GNI_RC_INVALID_PARAM) << nic;
    EXPECT_EQ(GNI_PostDataProbeById(nic, &word), GNI_RC_INVALID_PARAM) << nic;
    EXPECT_EQ(GNI_PostdataProbeWaitById(nic, 1, &word), GNI_RC_INVALID_PARAM) << nic;
    EXPECT_EQ(GNI_SmsgSetDeliveryMode(nic, GNI_DLVMODE_PERFORMANCE), GNI_RC_INVALID_PARAM) << nic;
    EXPECT_EQ(GNI_SmsgSetMaxRetrans(nic, 1), GNI_RC_INVALID_PARAM) << nic;
  }
  EXPECT_EQ(address, 77U);
  EXPECT_EQ(state, GNI_POST_ERROR);
  EXPECT_EQ(at, &word);
  EXPECT_EQ(tag, 9);
}

TEST_F(BadMessages, ArgumentsOfDatagramsThatMakeNoSenseAreRefused) {
  std::array<std::byte, 256> bytes{};
  gni_post_state_t state = GNI_POST_ERROR;
  std::uint32_t address = 77;
  std::uint32_t id = 77;
  std::uint64_t name = 77;
  EXPECT_EQ(GNI_EpPostData(endpoint, bytes.data(), 129, bytes.data(), 8), GNI_RC_SIZE_ERROR);
  EXPECT_EQ(GNI_EpPostData(endpoint, bytes.data(), UINT16_MAX, bytes.data(), 8), GNI_RC_SIZE_ERROR);
  EXPECT_EQ(GNI_EpPostData(endpoint, nullptr, 8, bytes.data(), 8), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_EpPostData(endpoint, bytes.data(), 8, nullptr, 8), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_EpPostDataWId(endpoint, bytes.data(), 8, bytes.data(), 8, UINT64_MAX), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_EpPostDataTest(endpoint, &state, &address, &id), GNI_RC_NO_MATCH)
      << "none of them was posted";
  EXPECT_EQ(GNI_EpPostDataWait(endpoint, 10, &state, &address, &id), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_EpPostDataCancel(endpoint), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_EpPostDataCancelById(endpoint, 5), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_PostDataProbe(domain.nic, &address, &id), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_PostDataProbeById(domain.nic, &name), GNI_RC_NO_MATCH);
  ASSERT_EQ(GNI_EpPostDataWId(endpoint, bytes.data(), 128, bytes.data(), UINT16_MAX, 5), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_EpPostDataTest(endpoint, nullptr, &address, &id), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_EpPostDataTest(endpoint, &state, nullptr, &id), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_EpPostDataTest(endpoint, &state, &address, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_EpPostDataTestById(endpoint, 5, nullptr, &address, &id), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_EpPostDataTestById(endpoint, 6, &state, &address, &id), GNI_RC_NO_MATCH) << "another name";
  EXPECT_EQ(GNI_EpPostDataWait(endpoint, 0, &state, &address, &id), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_EpPostDataWait(endpoint, 1, nullptr, &address, &id), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_EpPostDataWaitById(endpoint, 5, 0, &state, &address, &id), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_EpPostDataWaitById(endpoint, 6, 1, &state, &address, &id), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_EpPostDataWaitById(endpoint, 5, 1, &state, nullptr, &id), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_EpPostDataCancelById(endpoint, 6), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_PostDataProbe(domain.nic, nullptr, &id), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_PostDataProbe(domain.nic, &address, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_PostDataProbeById(domain.nic, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_PostdataProbeWaitById(domain.nic, 1, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(address, 77U);
  EXPECT_EQ(id, 77U);
  EXPECT_EQ(name, 77U);
  EXPECT_EQ(state, GNI_POST_ERROR);
  EXPECT_EQ(GNI_EpPostDataCancelById(endpoint, 5), GNI_RC_SUCCESS);
}

TEST_F(BadMessages, ConnectionsThatMakeNoSenseAreRefused) {
  unsigned int size = 77;
  EXPECT_EQ(GNI_SmsgBufferSizeNeeded(nullptr, &size), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SmsgBufferSizeNeeded(&attr, nullptr), GNI_RC_INVALID_PARAM);
  const auto no_type = but([](auto& a) { a.msg_type = GNI_SMSG_TYPE_INVALID; });
  const auto no_credit = but([](auto& a) { a.mbox_maxcredit = 0; });
  const auto too_long = but([](auto& a) { a.msg_maxsize = GNI_SMSG_MAX_SIZE + 1; });
  for (gni_smsg_attr_t bad : {no_type, no_credit, too_long}) {
    EXPECT_EQ(GNI_SmsgBufferSizeNeeded(&bad, &size), GNI_RC_INVALID_PARAM);
    refused("a bad attribute here", bad, attr, GNI_RC_INVALID_PARAM);
    refused("a bad attribute there", attr, bad, GNI_RC_INVALID_PARAM);
  }
  gni_smsg_attr_t huge = but([](auto& a) {
    a.mbox_maxcredit = UINT16_MAX;
    a.msg_maxsize = GNI_SMSG_MAX_SIZE;
  });
  EXPECT_EQ(GNI_SmsgBufferSizeNeeded(&huge, &size), GNI_RC_INVALID_PARAM) << "more than the size can say";
  EXPECT_EQ(size, 77U);

  EXPECT_EQ(GNI_SmsgInit(unbound, &attr, &attr), GNI_RC_INVALID_STATE);
  EXPECT_EQ(GNI_SmsgInit(endpoint, nullptr, &attr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SmsgInit(endpoint, &attr, nullptr), GNI_RC_INVALID_PARAM);
  const auto other_credits = but([](auto& a) { a.mbox_maxcredit = 5; });
  const auto other_size = but([](auto& a) { a.msg_maxsize = 33; });
  const auto other_type = but([](auto& a) { a.msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT; });
  refused("credits differ", attr, other_credits, GNI_RC_INVALID_PARAM);
  refused("sizes differ", attr, other_size, GNI_RC_INVALID_PARAM);
  refused("types differ", attr, other_type, GNI_RC_INVALID_PARAM);
  const auto no_handle = but([](auto& a) { a.mem_hndl = {0, 0}; });
  const auto bad_handle = but([](auto& a) { a.mem_hndl.qword1 ^= 1ull << 60; });
  const auto outside = but([](auto& a) { a.mbox_offset = 4096 - 64; });
  const auto far_outside = but([](auto& a) { a.mbox_offset = std::numeric_limits<std::uint32_t>::max(); });
  refused("no handle here", no_handle, attr, GNI_RC_INVALID_PARAM);
  refused("no handle there", attr, no_handle, GNI_RC_INVALID_PARAM);
  refused("no process's handle here", bad_handle, attr, GNI_RC_INVALID_PARAM);
  refused("no process's handle there", attr, bad_handle, GNI_RC_INVALID_PARAM);
  refused("half outside the registration", outside, attr, GNI_RC_INVALID_PARAM);
  refused("outside the registration", far_outside, attr, GNI_RC_INVALID_PARAM);
  gni_smsg_attr_t read_only = attr;
  read_only.mem_hndl = domain.memory(page.data(), 4096, nullptr, GNI_MEM_READ_ONLY);
  refused("a mailbox that no peer may write", read_only, attr, GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SmsgSetDeliveryMode(domain.nic, 0x8000), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SmsgSetDeliveryMode(domain.nic, GNI_DLVMODE_IN_ORDER), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_SmsgSetMaxRetrans(domain.nic, 3), GNI_RC_SUCCESS);
}

TEST_F(BadMessages, MessagesThatMakeNoSenseAreRefused) {
  gni_smsg_attr_t mine = attr;
  gni_smsg_attr_t theirs = attr;
  theirs.mbox_offset = mine.mbox_offset = 0;  // our own mailbox: what we send comes back
  ASSERT_EQ(GNI_SmsgInit(endpoint, &mine, &theirs), GNI_RC_SUCCESS);
  std::array<std::byte, 64> bytes{};
  std::uint8_t tag = 9;
  void* at = nullptr;
  EXPECT_EQ(GNI_SmsgSend(endpoint, nullptr, 8, bytes.data(), 8, 1), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SmsgSend(endpoint, bytes.data(), 8, nullptr, 8, 1), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SmsgSend(endpoint, nullptr, 0, bytes.data(), 33, 1), GNI_RC_ERROR_RESOURCE);
  EXPECT_EQ(GNI_SmsgSend(endpoint, bytes.data(), 33, bytes.data(), 32, 1), GNI_RC_ERROR_RESOURCE);
  EXPECT_EQ(GNI_SmsgSend(endpoint, bytes.data(), UINT32_MAX, bytes.data(), UINT32_MAX, 1),
            GNI_RC_ERROR_RESOURCE);
  EXPECT_EQ(GNI_SmsgSendWTag(endpoint, bytes.data(), 8, nullptr, 0, 1, GNI_SMSG_ANY_TAG),
            GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SmsgGetNext(endpoint, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SmsgGetNextWTag(endpoint, nullptr, &tag), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SmsgGetNextWTag(endpoint, &at, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SmsgGetNextWTag(endpoint, &at, &tag), GNI_RC_NOT_DONE);
  EXPECT_EQ(GNI_SmsgRelease(endpoint), GNI_RC_NOT_DONE);
  EXPECT_EQ(at, nullptr);
  EXPECT_EQ(tag, 9);
}

// What a peer writes into the mailbox is looked at before it is believed.
TEST_F(BadMessages, NonsenseInTheMailboxBreaksTheConnectionAndNothingElse) {
  gni_smsg_attr_t theirs = attr;
  theirs.msg_buffer = page.data();
  theirs.mbox_offset = 2048;
  ASSERT_EQ(GNI_SmsgInit(endpoint, &attr, &theirs), GNI_RC_SUCCESS);
  auto* const words = reinterpret_cast<std::uint64_t*>(page.data());
  void* at = nullptr;
  words[8] = 0xffff'ffff'ffff'ffff;  // a message of another number
  EXPECT_EQ(GNI_SmsgGetNext(endpoint, &at), GNI_RC_NOT_DONE);
  words[8] = 1ull << 32 | 1u << 16 | 65;  // the first, longer than agreed, with the room of a header
  EXPECT_EQ(GNI_SmsgGetNext(endpoint, &at), GNI_RC_INVALID_STATE);
  std::uint64_t value = 0;
  EXPECT_EQ(GNI_SmsgSend(endpoint, &value, 8, nullptr, 0, 0), GNI_RC_INVALID_STATE);
  EXPECT_EQ(GNI_EpUnbind(endpoint), GNI_RC_SUCCESS);

  // More releases than there were messages.
  page.fill({});
  ASSERT_EQ(GNI_EpBind(endpoint, domain.address, domain.instance), GNI_RC_SUCCESS);
  ASSERT_EQ(GNI_SmsgInit(endpoint, &attr, &theirs), GNI_RC_SUCCESS);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(GNI_SmsgSend(endpoint, &value, 8, nullptr, 0, 0), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_SmsgSend(endpoint, &value, 8, nullptr, 0, 0), GNI_RC_NOT_DONE);
  words[0] = 5;
  EXPECT_EQ(GNI_SmsgSend(endpoint, &value, 8, nullptr, 0, 0), GNI_RC_INVALID_STATE);
}

}  // namespace
