// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Counters, capabilities and settings of the device, as one PE sees them.
#include "tests/lib/gni/client.hpp"

#include <array>

#include <sys/mman.h>
#include <unistd.h>

#include <orrery/fma.h>

namespace {

using client::address_of;

// Any number as an enumerator: clients may pass what the enumeration does not name.
template <typename Enum>
__attribute__((no_sanitize("enum"))) Enum any(std::uint32_t value) {
  static_assert(sizeof(Enum) == sizeof value);
  Enum result;
  std::memcpy(&result, &value, sizeof value);
  return result;
}

// What a privileged call answers here.
gni_return_t if_root(gni_return_t code) { return geteuid() == 0 ? code : GNI_RC_PERMISSION_ERROR; }

constexpr std::uint32_t kFmaLaunches = 19;

class Statistics : public testing::Test {
 protected:
  std::uint32_t value(std::uint32_t which) {
    std::uint32_t counted = 0x5555;
    EXPECT_EQ(GNI_GetNicStat(domain.nic, any<gni_statistic_t>(which), &counted), GNI_RC_SUCCESS) << which;
    return counted;
  }
  client::Domain domain;
};

TEST_F(Statistics, AreZeroAtFirstAndExistInBothNumberings) {
  for (std::uint32_t which = 0; which <= 20; ++which) EXPECT_EQ(value(which), 0U) << which;
}

TEST_F(Statistics, ASendWithoutCreditIsAStall) {
  const gni_cq_handle_t source = domain.queue(64);
  const gni_ep_handle_t ep = domain.endpoint(source, domain.address, domain.instance);
  gni_smsg_attr_t attr{};
  attr.msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT;
  attr.mbox_maxcredit = 4;
  attr.msg_maxsize = 64;
  ASSERT_EQ(GNI_SmsgBufferSizeNeeded(&attr, &attr.buff_size), GNI_RC_SUCCESS);
  void* const box = mmap(nullptr, attr.buff_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(box, MAP_FAILED);
  attr.msg_buffer = box;
  attr.mem_hndl = domain.memory(box, attr.buff_size);
  ASSERT_EQ(GNI_SmsgInit(ep, &attr, &attr), GNI_RC_SUCCESS);
  std::uint64_t word = 7;
  std::uint32_t refused = 0;
  std::uint32_t sent = 0;
  for (std::uint32_t i = 0; i < 10; ++i) {
    const gni_return_t rc = GNI_SmsgSend(ep, &word, sizeof word, nullptr, 0, i);
    ASSERT_TRUE(rc == GNI_RC_SUCCESS || rc == GNI_RC_NOT_DONE) << gni_err_str[rc];
    ++(rc == GNI_RC_SUCCESS ? sent : refused);
  }
  EXPECT_EQ(sent, 4U);
  EXPECT_EQ(value(GNI_STAT_SMSG_MBOX_CREDITS_STALL), refused);
  EXPECT_EQ(value(GNI_STAT_SMSG_REQ_STALL), 0U);
  EXPECT_EQ(GNI_ResetNicStat(domain.nic, GNI_STAT_SMSG_MBOX_CREDITS_STALL), GNI_RC_SUCCESS);
  EXPECT_EQ(value(GNI_STAT_SMSG_MBOX_CREDITS_STALL), 0U);
  EXPECT_EQ(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
}

TEST_F(Statistics, SendsBeyondTheDepthOfTheQueueAreRequestStalls) {
  const gni_cq_handle_t source = domain.queue(2);
  const gni_ep_handle_t ep = domain.endpoint(source, domain.address, domain.instance);
  gni_smsg_attr_t attr{};
  attr.msg_type = GNI_SMSG_TYPE_MBOX;
  attr.mbox_maxcredit = 64;
  attr.msg_maxsize = 64;
  ASSERT_EQ(GNI_SmsgBufferSizeNeeded(&attr, &attr.buff_size), GNI_RC_SUCCESS);
  void* const box = mmap(nullptr, attr.buff_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(box, MAP_FAILED);
  attr.msg_buffer = box;
  attr.mem_hndl = domain.memory(box, attr.buff_size);
  ASSERT_EQ(GNI_SmsgInit(ep, &attr, &attr), GNI_RC_SUCCESS);
  std::uint64_t word = 7;
  std::uint32_t refused = 0;
  for (std::uint32_t i = 0; i < 20; ++i) {
    const gni_return_t rc = GNI_SmsgSend(ep, &word, sizeof word, nullptr, 0, i);
    if (rc == GNI_RC_SUCCESS) continue;
    ASSERT_EQ(rc, GNI_RC_NOT_DONE);
    ++refused;
  }
  EXPECT_GT(refused, 0U);
  EXPECT_EQ(value(GNI_STAT_SMSG_REQ_STALL), refused);
  EXPECT_EQ(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
}

TEST_F(Statistics, LaunchesAreCountedAndOutliveTheirWindow) {
  alignas(64) static std::array<std::uint64_t, 512> words;
  const gni_mem_handle_t memory = domain.memory(words.data(), sizeof words);
  orrery_fma_place_t place{domain.address, 0, address_of(words.data()), {memory.qword1, memory.qword2}};
  orrery_fma_descriptor_t d{};
  d.pe_shift = 6;
  d.pe_bits = 1;
  orrery_fma_window_t* window = nullptr;
  ASSERT_EQ(orrery_fma_open(domain.nic, &d, &place, 1, &window), ORRERY_FMA_SUCCESS);
  ASSERT_EQ(orrery_fma_begin(window), ORRERY_FMA_SUCCESS);
  for (std::uint64_t i = 0; i < 5; ++i)
    ASSERT_EQ(orrery_fma_launch(window, orrery_fma_word(0, 8 * i, i)), ORRERY_FMA_SUCCESS);
  EXPECT_EQ(value(kFmaLaunches), 5U);
  std::uint32_t name = 0;
  ASSERT_EQ(orrery_fma_end(window, &name), ORRERY_FMA_SUCCESS);
  while (orrery_fma_test(window, name) == ORRERY_FMA_NOT_DONE) {
  }
  EXPECT_EQ(orrery_fma_close(window), ORRERY_FMA_SUCCESS);
  EXPECT_EQ(value(kFmaLaunches), 5U);
  EXPECT_EQ(GNI_ResetNicStat(domain.nic, any<gni_statistic_t>(kFmaLaunches)), GNI_RC_SUCCESS);
  EXPECT_EQ(value(kFmaLaunches), 0U);
}

TEST_F(Statistics, BadArgumentsAreRefused) {
  std::uint32_t counted = 77;
  for (const std::uint32_t which : {21U, 64U, ~0U}) {
    EXPECT_EQ(GNI_GetNicStat(domain.nic, any<gni_statistic_t>(which), &counted), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_ResetNicStat(domain.nic, any<gni_statistic_t>(which)), GNI_RC_INVALID_PARAM);
  }
  EXPECT_EQ(GNI_GetNicStat(domain.nic, GNI_STAT_SMSG_REQ_STALL, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_GetNicStat(nullptr, GNI_STAT_SMSG_REQ_STALL, &counted), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_ResetNicStat(nullptr, GNI_STAT_SMSG_REQ_STALL), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(counted, 77U);
}

TEST(Device, ThereIsOneAndItsAddressIsThatOfTheAttachment) {
  int count = 0;
  ASSERT_EQ(GNI_GetNumLocalDevices(&count), GNI_RC_SUCCESS);
  EXPECT_EQ(count, 1);
  std::array<int, 4> ids{-7, -7, -7, -7};
  ASSERT_EQ(GNI_GetLocalDeviceIds(ids.size(), ids.data()), GNI_RC_SUCCESS);
  EXPECT_EQ(ids, (std::array<int, 4>{0, -7, -7, -7})) << "no more than there are";
  std::uint32_t granularity = 0;
  ASSERT_EQ(GNI_GetNttGran(0, &granularity), GNI_RC_SUCCESS);
  EXPECT_EQ(granularity, 1U);
  std::uint32_t address = 0xdead;
  std::uint32_t cpu = 0xdead;
  ASSERT_EQ(GNI_CdmGetNicAddress(0, &address, &cpu), GNI_RC_SUCCESS) << "without a domain";
  EXPECT_EQ(cpu, 0U);
  const client::Domain domain;
  EXPECT_EQ(address, domain.address);
}

TEST(Endpoint, IsIdleOnceItsOperationsAreReaped) {
  client::Domain domain;
  const gni_cq_handle_t source = domain.queue(4);
  const gni_ep_handle_t ep = domain.endpoint(source, domain.address, domain.instance);
  EXPECT_EQ(GNI_EpIdle(ep), GNI_RC_SUCCESS);
  alignas(64) std::array<std::uint64_t, 8> words{};
  gni_post_descriptor_t d = client::descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT);
  std::uint64_t value = 5;
  d.local_addr = address_of(&value);
  d.remote_addr = address_of(words.data());
  d.remote_mem_hndl = domain.memory(words.data(), sizeof words);
  d.length = 8;
  ASSERT_EQ(GNI_PostFma(ep, &d), GNI_RC_SUCCESS);
  gni_cq_entry_t event = 0;
  ASSERT_EQ(client::next_event(source, &event), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_EpIdle(ep), GNI_RC_SUCCESS);
  EXPECT_EQ(words[0], 5U);
}

TEST(Capabilities, OfTwoThatAreAlikeFit) {
  (void)client::Pmi::get();
  gni_revision_info_t ours{};
  ASSERT_EQ(GNI_GetCapabilities(&ours), GNI_RC_SUCCESS);
  EXPECT_NE(ours.revision_instance, 0U);
  EXPECT_EQ(GNI_VERSION_CHECK(ours.user_major_revision, ours.user_minor_revision, ours.user_code_revision),
            static_cast<std::uint32_t>(GNI_VERSION));
  EXPECT_GT(ours.maximum_defined_capabilities, 0U);
  EXPECT_EQ(GNI_ValidateCapabilities(ours, ours), GNI_RC_SUCCESS);

  gni_revision_info_t poorer = ours;
  poorer.capabilities[0] = 0;
  EXPECT_EQ(GNI_ValidateCapabilities(ours, poorer), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_ValidateCapabilities(poorer, ours), GNI_RC_NO_MATCH);
  gni_revision_info_t demanding = ours;
  demanding.requirement[5] = 1ull << 63;
  EXPECT_EQ(GNI_ValidateCapabilities(ours, demanding), GNI_RC_NO_MATCH);
  gni_revision_info_t richer = ours;
  richer.capabilities[5] = 1ull << 63;
  EXPECT_EQ(GNI_ValidateCapabilities(ours, richer), GNI_RC_SUCCESS);

  EXPECT_EQ(GNI_GetCapabilities(nullptr), GNI_RC_INVALID_PARAM);
  gni_revision_info_t empty{};
  EXPECT_EQ(GNI_ValidateCapabilities(ours, empty), GNI_RC_INVALID_PARAM);
  gni_revision_info_t absurd = ours;
  absurd.maximum_defined_capabilities = 64 * GNI_MAX_CAPABILITY_WORDS + 1;
  EXPECT_EQ(GNI_ValidateCapabilities(absurd, ours), GNI_RC_INVALID_PARAM);
}

TEST(BalancedInjection, WhatIsSetIsTold) {
  (void)client::Pmi::get();
  gni_bi_desc_t before{};
  ASSERT_EQ(GNI_GetBIConfig(0, &before), GNI_RC_SUCCESS);
  EXPECT_EQ(before.current_bw, 100);
  EXPECT_EQ(before.current_norbs, GNI_BI_ORB_MAX);
  EXPECT_EQ(GNI_SetBIConfig(0, 50, 25, GNI_BI_FLAG_APPLY_NOW), if_root(GNI_RC_SUCCESS));
  EXPECT_EQ(GNI_BISyncWait(0, 10), GNI_RC_SUCCESS);
  if (geteuid() == 0) {
    gni_bi_desc_t now{};
    ASSERT_EQ(GNI_GetBIConfig(0, &now), GNI_RC_SUCCESS);
    EXPECT_EQ(now.current_bw, 50);
    EXPECT_EQ(now.current_aot_bw, 25);
    EXPECT_EQ(now.current_norbs, GNI_BI_ORB_MAX / 2);
    EXPECT_EQ(now.cle_seqnum, before.cle_seqnum + 1);
    ASSERT_EQ(GNI_SetBIConfig(0, 248, 992, GNI_BI_FLAG_APPLY_NOW | GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES),
              GNI_RC_SUCCESS);
    ASSERT_EQ(GNI_GetBIConfig(0, &now), GNI_RC_SUCCESS);
    EXPECT_EQ(now.current_bw, 25);
    EXPECT_EQ(now.current_norbs, 248);
    ASSERT_EQ(GNI_SetBIConfig(0, 0xffff, 0xffff, GNI_BI_FLAG_USE_DEFAULT_SETTINGS), GNI_RC_SUCCESS);
    ASSERT_EQ(GNI_GetBIConfig(0, &now), GNI_RC_SUCCESS);
    EXPECT_EQ(now.current_bw, before.sys_def_bw);
  }
  EXPECT_EQ(GNI_SetBIConfig(0, 101, 0, 0), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SetBIConfig(0, 0, 101, 0), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SetBIConfig(0, 993, 0, GNI_BI_FLAG_VALUE_IS_NUM_ORB_ENTRIES), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SetBIConfig(0, 50, 50, 0x10), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SetBIConfig(0, 50, 50, GNI_BI_FLAG_APPLY_NOW | GNI_BI_FLAG_APPLY_AFTER_THROTTLE),
            GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SetBIConfig(1, 50, 50, 0), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_GetBIConfig(0, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_GetBIConfig(3, &before), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_BISyncWait(3, 0), GNI_RC_NO_MATCH);
}

TEST(DeviceRegisters, TheRequestTimeoutKeepsWhatWasWritten) {
  client::Domain domain;
  std::uint64_t old = 77;
  EXPECT_EQ(GNI_SetDeviceOrbMMR(domain.nic, GNI_DEV_ORB_MMR_TIMEOUT, 12345, &old), if_root(GNI_RC_SUCCESS));
  if (geteuid() == 0) {
    EXPECT_EQ(GNI_SetDeviceOrbMMR(domain.nic, GNI_DEV_ORB_MMR_TIMEOUT, 0, &old), GNI_RC_SUCCESS);
    EXPECT_EQ(old, 12345U);
  } else {
    EXPECT_EQ(old, 77U);
  }
  EXPECT_EQ(GNI_SetDeviceOrbMMR(domain.nic, GNI_DEV_ORB_MMR_TIMEOUT, 0, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SetDeviceOrbMMR(domain.nic, any<gni_dev_orb_mmr_t>(0), 0, &old), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SetDeviceOrbMMR(domain.nic, any<gni_dev_orb_mmr_t>(2), 0, &old), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SetDeviceOrbMMR(nullptr, GNI_DEV_ORB_MMR_TIMEOUT, 0, &old), GNI_RC_INVALID_PARAM);
}

}  // namespace
