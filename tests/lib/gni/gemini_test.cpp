// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What a client finds on the older device. The job runs with --device gemini.
#include "tests/lib/gni/client.hpp"

#include <array>

namespace {

using client::address_of;
using client::descriptor;

class Gemini : public testing::Test {
 protected:
  Gemini() {
    source = domain.queue(64);
    ep = domain.endpoint(source, domain.address, domain.instance);
    memory = domain.memory(words.data(), sizeof words);
  }
  gni_post_descriptor_t get(std::uint64_t local, std::uint64_t remote, std::uint64_t length,
                            gni_post_type_t type = GNI_POST_FMA_GET) {
    gni_post_descriptor_t d = descriptor(type, GNI_CQMODE_GLOBAL_EVENT);
    d.local_addr = address_of(words.data()) + local;
    d.remote_addr = address_of(words.data()) + remote;
    d.local_mem_hndl = d.remote_mem_hndl = memory;
    d.length = length;
    return d;
  }
  gni_post_descriptor_t amo(std::uint32_t command) {
    gni_post_descriptor_t d = get(0, 256, 8, GNI_POST_AMO);
    std::memcpy(&d.amo_cmd, &command, sizeof d.amo_cmd);
    d.first_operand = 3;
    return d;
  }
  void reap() {
    gni_cq_entry_t event = 0;
    ASSERT_EQ(client::next_event(source, &event), GNI_RC_SUCCESS);
    gni_post_descriptor_t* done = nullptr;
    ASSERT_EQ(GNI_GetCompleted(source, event, &done), GNI_RC_SUCCESS);
  }

  client::Domain domain;
  alignas(64) std::array<std::uint64_t, 512> words{};
  gni_cq_handle_t source = nullptr;
  gni_ep_handle_t ep = nullptr;
  gni_mem_handle_t memory{};
};

TEST_F(Gemini, SaysSo) {
  gni_nic_device_t type = GNI_DEVICE_LAST;
  ASSERT_EQ(GNI_GetDeviceType(&type), GNI_RC_SUCCESS);
  EXPECT_EQ(type, GNI_DEVICE_GEMINI);
}

TEST_F(Gemini, TheLocalSideOfAGetIsAligned) {
  for (int round = 0; round < 3; ++round) {  // the fast path may come after the first
    for (const gni_post_type_t type : {GNI_POST_FMA_GET, GNI_POST_RDMA_GET}) {
      const auto post = type == GNI_POST_FMA_GET ? GNI_PostFma : GNI_PostRdma;
      gni_post_descriptor_t bad = get(2, 256, 64, type);
      EXPECT_EQ(post(ep, &bad), GNI_RC_ALIGNMENT_ERROR);
      gni_post_descriptor_t good = get(4, 256, 64, type);
      ASSERT_EQ(post(ep, &good), GNI_RC_SUCCESS);
      reap();
    }
    gni_post_descriptor_t put = get(3, 257, 7, GNI_POST_FMA_PUT);
    ASSERT_EQ(GNI_PostFma(ep, &put), GNI_RC_SUCCESS) << "puts may lie anywhere";
    reap();
  }
  gni_post_descriptor_t chained = get(2, 256, 64);
  EXPECT_EQ(GNI_CtPostFma(ep, &chained), GNI_RC_ALIGNMENT_ERROR);
}

TEST_F(Gemini, HasTheFirstGenerationOfAmosOnly) {
  words[32] = 10;
  for (int round = 0; round < 3; ++round) {
    for (const std::uint32_t command : {0x141u, 0x340u, 0x041u, 0x240u, 0x175u, 0x063u}) {
      gni_post_descriptor_t newer = amo(command);
      if ((command & 0x200) != 0) newer.length = 4;
      EXPECT_EQ(GNI_PostFma(ep, &newer), GNI_RC_ILLEGAL_OP) << std::hex << command;
    }
    gni_post_descriptor_t add = amo(GNI_FMA_ATOMIC_ADD);
    ASSERT_EQ(GNI_PostFma(ep, &add), GNI_RC_SUCCESS);
    reap();
    gni_post_descriptor_t fetch = amo(GNI_FMA_ATOMIC_FADD);
    ASSERT_EQ(GNI_PostFma(ep, &fetch), GNI_RC_SUCCESS);
    reap();
  }
  EXPECT_EQ(words[32], 10U + 3 * 6);
}

TEST_F(Gemini, EventDataOfTheInitiatorHas32Bits) {
  ASSERT_EQ(GNI_EpSetEventData(ep, 0xfedcba98, 0x12345678), GNI_RC_SUCCESS);
  std::array<gni_post_descriptor_t, 40> puts{};
  for (auto& put : puts) {
    put = get(0, 64, 8, GNI_POST_FMA_PUT);
    ASSERT_EQ(GNI_PostFma(ep, &put), GNI_RC_SUCCESS);
  }
  for (auto& put : puts) {
    gni_cq_entry_t event = 0;
    ASSERT_EQ(client::next_event(source, &event), GNI_RC_SUCCESS);
    EXPECT_EQ(GNI_CQ_GET_INST_ID(event), 0xfedcba98U);
    EXPECT_LT(GNI_CQ_GET_TID(event), 64U);
    gni_post_descriptor_t* done = nullptr;
    ASSERT_EQ(GNI_GetCompleted(source, event, &done), GNI_RC_SUCCESS);
    EXPECT_EQ(done, &put);
    GNI_CQ_SET_INST_ID(event, 0x87654321);
    EXPECT_EQ(GNI_CQ_GET_INST_ID(event), 0x87654321U);
  }
  gni_cq_handle_t deep = nullptr;
  EXPECT_EQ(GNI_CqCreate(domain.nic, 65536, 0, GNI_CQ_NOBLOCK, nullptr, nullptr, &deep),
            GNI_RC_ERROR_RESOURCE)
      << "its transactions have 16 bits";
}

TEST_F(Gemini, HasNoCollectiveEngine) {
  gni_ce_handle_t ce = nullptr;
  EXPECT_EQ(GNI_CeCreate(domain.nic, &ce), GNI_RC_ILLEGAL_OP);
  EXPECT_EQ(GNI_EpSetCeAttr(ep, 0, 0, GNI_CE_CHILD_PE), GNI_RC_ILLEGAL_OP);
  gni_post_descriptor_t join = get(0, 0, 0, GNI_POST_CE);
  EXPECT_EQ(GNI_PostFma(ep, &join), GNI_RC_ILLEGAL_OP);
  gni_job_res_desc_t desc{};
  EXPECT_EQ(GNI_GetJobResInfo(0, client::ptag(), GNI_JOB_RES_CE, &desc), GNI_RC_ERROR_RESOURCE);
}

}  // namespace
