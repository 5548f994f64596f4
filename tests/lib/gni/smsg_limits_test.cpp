// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tests/lib/gni/client.hpp"

#include <array>
#include <vector>

// Short messages at their limits: headers beyond msg_maxsize, and more connections than a NIC has packets.
namespace {

using client::address_of;
using client::Pmi;

struct Card {
  std::uint32_t address;
  std::uint32_t instance;
  gni_smsg_attr_t attr;
};

// As many mailboxes with the next PE as asked for, and the endpoints to use them.
class SmsgLimits : public testing::Test {
 protected:
  void connect(std::uint16_t credits, std::uint32_t most, std::size_t connections) {
    gni_smsg_attr_t attr;
    std::memset(&attr, 0, sizeof attr);
    attr.msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT;
    attr.mbox_maxcredit = credits;
    attr.msg_maxsize = most;
    unsigned int bytes = 0;
    REQUIRE_SUCCESS(GNI_SmsgBufferSizeNeeded(&attr, &bytes));
    bytes = (bytes + 63) & ~63u;
    memory.assign(bytes * connections, std::byte{});
    attr.buff_size = bytes;
    attr.msg_buffer = memory.data();
    attr.mem_hndl = handle = domain.memory(memory.data(), memory.size());
    const auto cards = pmi.gather(Card{domain.address, domain.instance, attr});
    const Card& other = cards[static_cast<std::size_t>((pmi.rank + 1) % pmi.size)];
    for (std::size_t i = 0; i < connections; ++i) {
      eps.push_back(domain.endpoint(sent, other.address, other.instance));
      gni_smsg_attr_t ours = attr;
      gni_smsg_attr_t theirs = other.attr;
      ours.mbox_offset = theirs.mbox_offset = static_cast<std::uint32_t>(i * bytes);
      REQUIRE_SUCCESS(GNI_SmsgInit(eps.back(), &ours, &theirs));
    }
    pmi.barrier();
  }
  ~SmsgLimits() override {
    pmi.barrier();
    gni_cq_entry_t event = 0;
    while (GNI_CqGetEvent(sent, &event) == GNI_RC_SUCCESS) {
    }
  }
  // Merely busy is NOT_DONE, whatever is used up.
  gni_return_t send(gni_ep_handle_t ep, const void* header, std::uint32_t header_bytes, const void* data,
                    std::uint32_t data_bytes) {
    const std::time_t give_up = std::time(nullptr) + 60;
    gni_return_t rc = GNI_RC_NOT_DONE;
    while (rc == GNI_RC_NOT_DONE && std::time(nullptr) < give_up) {
      rc = GNI_SmsgSend(ep, const_cast<void*>(header), header_bytes, const_cast<void*>(data), data_bytes, 0);
      gni_cq_entry_t event = 0;
      while (GNI_CqGetEvent(sent, &event) == GNI_RC_SUCCESS) {
      }
    }
    return rc;
  }
  std::byte* next(gni_ep_handle_t ep) {
    const std::time_t give_up = std::time(nullptr) + 60;
    void* at = nullptr;
    gni_return_t rc = GNI_RC_NOT_DONE;
    while ((rc = GNI_SmsgGetNext(ep, &at)) == GNI_RC_NOT_DONE && std::time(nullptr) < give_up) {
    }
    EXPECT_EQ(rc, GNI_RC_SUCCESS);
    return static_cast<std::byte*>(at);
  }

  const Pmi& pmi = Pmi::get();
  client::Domain domain;
  gni_cq_handle_t sent = domain.queue(65'536);
  std::vector<std::byte> memory;
  gni_mem_handle_t handle{};
  std::vector<gni_ep_handle_t> eps;
};

class SmsgHeader : public SmsgLimits, public testing::WithParamInterface<std::array<std::uint32_t, 3>> {};

TEST_P(SmsgHeader, GoesBeyondTheDataThatWasAgreed) {
  const auto [most, header_bytes, data_bytes] = GetParam();
  connect(4, most, 1);
  std::vector<unsigned char> header(header_bytes);
  std::vector<unsigned char> data(data_bytes);
  for (std::size_t i = 0; i < header.size(); ++i) header[i] = static_cast<unsigned char>(i * 3 + 1);
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<unsigned char>(i * 7 + i / 251);
  for (int round = 0; round < 12; ++round) {
    ASSERT_EQ(send(eps[0], header.data(), header_bytes, data.data(), data_bytes), GNI_RC_SUCCESS);
    const std::byte* const came = next(eps[0]);
    ASSERT_NE(came, nullptr);
    EXPECT_EQ(std::memcmp(came, header.data(), header_bytes), 0);
    EXPECT_EQ(std::memcmp(came + header_bytes, data.data(), data_bytes), 0);
    ASSERT_EQ(GNI_SmsgRelease(eps[0]), GNI_RC_SUCCESS);
  }
  std::vector<unsigned char> longer(most + 1);
  EXPECT_EQ(send(eps[0], nullptr, 0, longer.data(), most + 1), GNI_RC_ERROR_RESOURCE);
  EXPECT_EQ(send(eps[0], longer.data(), 33, longer.data(), most), GNI_RC_ERROR_RESOURCE);
}
INSTANTIATE_TEST_SUITE_P(AsClientsSend, SmsgHeader,
                         testing::Values(std::array<std::uint32_t, 3>{16'384, 32, 16'383},
                                         std::array<std::uint32_t, 3>{16'384, 32, 16'353},
                                         std::array<std::uint32_t, 3>{2'048, 4, 2'048},
                                         std::array<std::uint32_t, 3>{100, 32, 100},
                                         std::array<std::uint32_t, 3>{0, 32, 0}));

// PE 0 takes and releases everything, and then calls nothing: every connection has its credits again.
TEST_F(SmsgLimits, CreditsComeBackByThemselves) {
  constexpr std::size_t kConnections = 150;
  constexpr std::uint16_t kCredits = 16;
  connect(kCredits, 64, kConnections);
  const bool receives = pmi.rank == 0;
  if (!receives) {
    for (std::uint32_t i = 0; i < kCredits; ++i) {
      for (const gni_ep_handle_t ep : eps) ASSERT_EQ(send(ep, &i, sizeof i, nullptr, 0), GNI_RC_SUCCESS);
    }
  }
  pmi.barrier();
  if (receives) {
    for (const gni_ep_handle_t ep : eps) {
      for (std::uint32_t i = 0; i < kCredits; ++i) {
        const std::byte* const came = next(ep);
        ASSERT_NE(came, nullptr);
        std::uint32_t number = 0;
        std::memcpy(&number, came, sizeof number);
        ASSERT_EQ(number, i);
        ASSERT_EQ(GNI_SmsgRelease(ep), GNI_RC_SUCCESS);
      }
    }
  } else {
    const std::uint32_t more = kCredits;
    for (const gni_ep_handle_t ep : eps) ASSERT_EQ(send(ep, &more, sizeof more, nullptr, 0), GNI_RC_SUCCESS);
  }
  pmi.barrier();
  if (receives) {
    for (const gni_ep_handle_t ep : eps) ASSERT_NE(next(ep), nullptr);
  }
}

}  // namespace
