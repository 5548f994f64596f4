// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/queue/cq_entry.hpp"

#include "lib/gni/device/device_status.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <random>
#include <string>

namespace orrery::gni {
namespace {

TEST(GniCqEntry, PostCarriesItsTransactionAndTwentyFourBitsOfTheLocalValue) {
  const gni_cq_entry_t e = cq_entry::post(0xabcdef, 0x99123456, 0);
  EXPECT_EQ(GNI_CQ_GET_TYPE(e), GNI_CQ_EVENT_TYPE_POST);
  EXPECT_EQ(GNI_CQ_GET_TID(e), 0xabcdefu);
  EXPECT_EQ(GNI_CQ_GET_INST_ID(e), 0x123456u);
  EXPECT_TRUE(GNI_CQ_STATUS_OK(e));
  EXPECT_EQ(GNI_CQ_OVERRUN(e), 0u);
  EXPECT_EQ(GNI_CQ_REM_OVERRUN(e), 0u);
}

TEST(GniCqEntry, MessageCarriesAllThirtyTwoBitsOfItsId) {
  const gni_cq_entry_t e = cq_entry::message_sent(0xfedcba98, 0);
  EXPECT_EQ(GNI_CQ_GET_TYPE(e), GNI_CQ_EVENT_TYPE_SMSG);
  EXPECT_EQ(GNI_CQ_GET_MSG_ID(e), 0xfedcba98u);
}

TEST(GniCqEntry, RemoteEventGivesTheSendersValueAsInstanceRemoteInstanceAndData) {
  const gni_cq_entry_t e = cq_entry::remote(GNI_CQ_EVENT_TYPE_POST, 0xfedcba98, 0);
  EXPECT_EQ(GNI_CQ_GET_REM_INST_ID(e), 0xfedcba98u);
  EXPECT_EQ(GNI_CQ_GET_INST_ID(e), 0xfedcba98u);
  EXPECT_EQ(GNI_CQ_GET_DATA(e) & 0xffffffffu, 0xfedcba98u);
}

TEST(GniCqEntry, CqWriteCarriesFortyEightBitsWhoseLowHalfIsTheRemoteInstance) {
  const gni_cq_entry_t e = cq_entry::cq_write(0xffff123456789abcULL, 0);
  EXPECT_EQ(GNI_CQ_GET_DATA(e), 0x123456789abcULL);
  EXPECT_EQ(GNI_CQ_GET_REM_INST_ID(e), 0x56789abcu);
}

TEST(GniCqEntry, IsNeverZeroHoweverEmptyTheEvent) {
  EXPECT_NE(cq_entry::post(0, 0, 0), 0u);
  EXPECT_NE(cq_entry::message_sent(0, 0), 0u);
  EXPECT_NE(cq_entry::remote(GNI_CQ_EVENT_TYPE_POST, 0, 0), 0u);
  EXPECT_NE(cq_entry::cq_write(0, 0), 0u);
  EXPECT_NE(cq_entry::overrun(0), 0u);
}

TEST(GniCqEntry, OverrunIsMarkedAndItsStatusIsRecoverable) {
  const gni_cq_entry_t e = cq_entry::overrun(static_cast<std::uint8_t>(DeviceStatus::cq_overrun));
  EXPECT_NE(GNI_CQ_OVERRUN(e), 0u);
  EXPECT_FALSE(GNI_CQ_STATUS_OK(e));
  std::uint32_t recoverable = 0;
  EXPECT_EQ(GNI_CqErrorRecoverable(e, &recoverable), GNI_RC_SUCCESS);
  EXPECT_EQ(recoverable, 1u);
}

TEST(GniCqEntry, EveryStatusCodeSurvivesBesideEveryPayload) {
  for (int code = 0; code < 64; ++code) {
    const auto status = static_cast<std::uint8_t>(code);
    const gni_cq_entry_t e = cq_entry::post(0xffffff, 0xffffff, status);
    EXPECT_EQ(GNI_CQ_GET_STATUS(e), static_cast<std::uint64_t>(code));
    EXPECT_EQ(GNI_CQ_GET_TID(e), 0xffffffu);
    EXPECT_EQ(GNI_CQ_GET_INST_ID(e), 0xffffffu);
  }
}

TEST(GniCqEntry, FieldsOfOneEventDoNotOverlap) {
  using cq_entry::Field;
  constexpr std::array<std::array<Field, 9>, 2> kShapes{{
      {cq_entry::kOverrun, cq_entry::kRemoteOverrun, cq_entry::kType, cq_entry::kSource, cq_entry::kInfo,
       cq_entry::kStatus, cq_entry::kTid, cq_entry::kLocalInstId, Field{54, 1}},
      {cq_entry::kOverrun, cq_entry::kRemoteOverrun, cq_entry::kType, cq_entry::kSource, cq_entry::kInfo,
       cq_entry::kStatus, cq_entry::kCeTransaction, cq_entry::kCeReduction, cq_entry::kCeId},
  }};
  for (const auto& shape : kShapes) {
    std::uint64_t seen = 0;
    for (const Field& field : shape) {
      EXPECT_EQ(seen & field.mask(), 0u) << "bit " << field.shift;
      seen |= field.mask();
    }
  }
}

TEST(GniCqSetters, ReplaceTheirFieldAndNothingElse) {
  const std::uint64_t seed = 20261121;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 1000; ++round) {
    const std::uint32_t tid = static_cast<std::uint32_t>(random()) & 0xffffff;
    const std::uint32_t inst = static_cast<std::uint32_t>(random()) & 0xffffff;
    const auto status = static_cast<std::uint8_t>(random() % 62);
    gni_cq_entry_t e = cq_entry::post(0, 0, status);
    GNI_CQ_SET_TID(e, tid | 0xff000000u);
    GNI_CQ_SET_INST_ID(e, inst);
    EXPECT_EQ(e, cq_entry::post(tid, inst, status));
    GNI_CQ_SET_TYPE(e, GNI_CQ_EVENT_TYPE_MSGQ);
    EXPECT_EQ(GNI_CQ_GET_TYPE(e), GNI_CQ_EVENT_TYPE_MSGQ);
    EXPECT_EQ(GNI_CQ_GET_TID(e), tid);
    GNI_CQ_CLR_STATUS(e);
    EXPECT_TRUE(GNI_CQ_STATUS_OK(e));
    const auto value = static_cast<std::uint32_t>(random());
    GNI_CQ_SET_MSG_ID(e, value);
    EXPECT_EQ(GNI_CQ_GET_MSG_ID(e), value);
    gni_cq_entry_t there = cq_entry::remote(GNI_CQ_EVENT_TYPE_POST, 0, status);
    GNI_CQ_SET_REM_INST_ID(there, value);
    EXPECT_EQ(there, cq_entry::remote(GNI_CQ_EVENT_TYPE_POST, value, status));
  }
}

TEST(GniCqSetters, IgnoreANullEntry) {
  gni_cq_set_inst_id(nullptr, 1);
  gni_cq_set_rem_inst_id(nullptr, 1);
  gni_cq_set_tid(nullptr, 1);
  gni_cq_set_msg_id(nullptr, 1);
  gni_cq_set_type(nullptr, 1);
  gni_cq_clr_status(nullptr);
}

TEST(GniCqGetters, AcceptAnyBits) {
  for (const std::uint64_t e : {std::uint64_t{0}, ~std::uint64_t{0}}) {
    const std::uint64_t ones = e == 0 ? 0 : 1;
    EXPECT_EQ(GNI_CQ_OVERRUN(e), ones);
    EXPECT_EQ(GNI_CQ_REM_OVERRUN(e), ones);
    EXPECT_EQ(GNI_CQ_GET_SOURCE(e), ones * 7);
    EXPECT_EQ(GNI_CQ_GET_INFO(e), ones * 3);
    EXPECT_EQ(GNI_CQ_GET_BLOCK_ID(e), ones * 0xffff);
    EXPECT_EQ(GNI_CQ_GET_UNSUCCESSFUL_CNT(e), ones * 0xffff);
    EXPECT_EQ(GNI_CQ_GET_MARKER_ID(e), ones * 0xffff);
    EXPECT_EQ(GNI_CQ_GET_FAILED_ENQUEUE_CNT(e), ones * 0xffff);
    EXPECT_EQ(GNI_CQ_GET_CE_ID(e), ones * 0x3fff);
    EXPECT_EQ(GNI_CQ_GET_REDUCTN_ID(e), ones * 0xffffffff);
    EXPECT_EQ(GNI_CQ_GET_TRANS_TYPE(e), ones * 0x3);
  }
}

TEST(GniCqStatusQuestions, RecogniseDlaOverflowAndBteEnqueues) {
  const auto overflow = static_cast<std::uint8_t>(DeviceStatus::dla_overflow);
  EXPECT_TRUE(GNI_CQ_STATUS_DLA_OVERFLOW(cq_entry::post(1, 1, overflow)));
  EXPECT_FALSE(GNI_CQ_STATUS_DLA_OVERFLOW(cq_entry::post(1, 1, 0)));
  const gni_cq_entry_t enqueue =
      cq_entry::make(GNI_CQ_EVENT_TYPE_POST, cq_entry::Source::bte, cq_entry::kBteEnqStatus, 0, 0);
  EXPECT_TRUE(GNI_CQ_BTE_ENQ_STATUS(enqueue));
  EXPECT_FALSE(GNI_CQ_BTE_ENQ_STATUS(cq_entry::post(1, 1, 0)));
}

}  // namespace
}  // namespace orrery::gni
