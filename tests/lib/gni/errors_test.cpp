// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Subscriptions to errors.
#include "tests/lib/gni/client.hpp"

#include <array>
#include <thread>

#include <unistd.h>

namespace {

using client::address_of;
using client::descriptor;

class Errors : public testing::Test {
 protected:
  Errors() {
    queue = domain.queue(256);
    ep = domain.endpoint(queue, domain.address, domain.instance);
  }
  // A put through a handle that leads nowhere; its transaction.
  std::uint64_t fail() {
    gni_post_descriptor_t d = descriptor(GNI_POST_FMA_PUT, GNI_CQMODE_GLOBAL_EVENT);
    d.local_addr = d.remote_addr = address_of(words.data());
    d.length = 8;
    REQUIRE_SUCCESS(GNI_PostFma(ep, &d));
    gni_cq_entry_t event = 0;
    EXPECT_EQ(client::next_event(queue, &event), GNI_RC_TRANSACTION_ERROR);
    gni_post_descriptor_t* done = nullptr;
    EXPECT_EQ(GNI_GetCompleted(queue, event, &done), GNI_RC_TRANSACTION_ERROR);
    return GNI_CQ_GET_TID(event);
  }

  client::Domain domain{GNI_CDM_MODE_ERR_NO_KILL};
  std::array<std::uint64_t, 8> words{};
  gni_cq_handle_t queue = nullptr;
  gni_ep_handle_t ep = nullptr;
};

TEST_F(Errors, ASubscriberHearsOfEachFailureWithItsTransactionAndItsPe) {
  gni_err_handle_t err = nullptr;
  (void)fail();
  ASSERT_EQ(GNI_SubscribeErrors(domain.nic, 0, GNI_ERRMASK_ADDRESS_TRANSLATION, 0, &err), GNI_RC_SUCCESS);
  gni_error_event_t event{};
  EXPECT_EQ(GNI_GetErrorEvent(err, &event), GNI_RC_NOT_DONE) << "what was before is not ours";
  const std::uint64_t tid = fail();
  ASSERT_EQ(GNI_GetErrorEvent(err, &event), GNI_RC_SUCCESS);
  EXPECT_EQ(event.error_category, GNI_ERRMASK_ADDRESS_TRANSLATION);
  EXPECT_EQ(event.error_code, 0x0f) << "AT_MDD_INV";
  EXPECT_EQ(event.ptag, client::ptag());
  EXPECT_EQ(event.info_mmrs[0], tid);
  EXPECT_EQ(event.info_mmrs[1], domain.address);
  const std::uint32_t serial = event.serial_number;
  EXPECT_EQ(GNI_GetErrorEvent(err, &event), GNI_RC_NOT_DONE);

  gni_error_mask_t mask = 0;
  ASSERT_EQ(GNI_SetErrorMask(err, GNI_ERRMASK_CRITICAL, &mask), GNI_RC_SUCCESS);
  EXPECT_EQ(mask, GNI_ERRMASK_ADDRESS_TRANSLATION);
  ASSERT_EQ(GNI_GetErrorMask(err, &mask), GNI_RC_SUCCESS);
  EXPECT_EQ(mask, GNI_ERRMASK_CRITICAL);
  (void)fail();
  EXPECT_EQ(GNI_GetErrorEvent(err, &event), GNI_RC_NOT_DONE) << "masked";
  ASSERT_EQ(GNI_SetErrorMask(err, 0xff, nullptr), GNI_RC_SUCCESS);
  (void)fail();
  ASSERT_EQ(GNI_GetErrorEvent(err, &event), GNI_RC_SUCCESS);
  EXPECT_EQ(event.serial_number, serial + 2);
  EXPECT_EQ(GNI_SetErrorPtag(err, client::ptag()), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_SetErrorPtag(err, static_cast<std::uint8_t>(client::ptag() + 1)), GNI_RC_PERMISSION_ERROR);
  EXPECT_EQ(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
}

TEST_F(Errors, AWaiterBlocksForTheFirstAndCollectsMore) {
  gni_err_handle_t err = nullptr;
  ASSERT_EQ(GNI_SubscribeErrors(domain.nic, 0, 0xff, 8, &err), GNI_RC_SUCCESS);
  std::array<gni_error_event_t, 3> events{};
  std::uint32_t count = 0;
  gni_return_t rc = GNI_RC_NOT_DONE;
  std::thread waiter([&] { rc = GNI_WaitErrorEvents(err, events.data(), 3, 60'000, &count); });
  for (int i = 0; i < 3; ++i) (void)fail();
  waiter.join();
  EXPECT_EQ(rc, GNI_RC_SUCCESS);
  EXPECT_EQ(count, 3U);
  EXPECT_EQ(events[2].serial_number, events[0].serial_number + 2);
  for (int i = 0; i < 9; ++i) (void)fail();
  EXPECT_EQ(GNI_GetErrorEvent(err, events.data()), GNI_RC_ERROR_RESOURCE) << "one more than it keeps";
  for (int i = 0; i < 8; ++i) EXPECT_EQ(GNI_GetErrorEvent(err, events.data()), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_GetErrorEvent(err, events.data()), GNI_RC_NOT_DONE);
  EXPECT_EQ(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
}

TEST_F(Errors, WhatASubscriptionIsNotForFillsNoneOfItsRoom) {
  gni_err_handle_t err = nullptr;
  ASSERT_EQ(GNI_SubscribeErrors(domain.nic, 0, GNI_ERRMASK_CRITICAL, 8, &err), GNI_RC_SUCCESS);
  for (int i = 0; i < 20; ++i) (void)fail();
  gni_error_event_t event{};
  EXPECT_EQ(GNI_GetErrorEvent(err, &event), GNI_RC_NOT_DONE);
  EXPECT_EQ(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
}

TEST_F(Errors, ASubscriptionToTheDeviceTellsWhoseAnErrorIs) {
  gni_err_handle_t err = nullptr;
  const gni_return_t subscribed = GNI_SubscribeErrors(nullptr, 0, 0xff, 8, &err);
  if (geteuid() != 0) {
    EXPECT_EQ(subscribed, GNI_RC_PERMISSION_ERROR);
    return;
  }
  ASSERT_EQ(subscribed, GNI_RC_SUCCESS);
  gni_error_event_t event{};
  (void)fail();
  ASSERT_EQ(GNI_GetErrorEvent(err, &event), GNI_RC_SUCCESS);
  EXPECT_EQ(event.ptag, client::ptag());
  ASSERT_EQ(GNI_SetErrorPtag(err, static_cast<std::uint8_t>(client::ptag() + 1)), GNI_RC_SUCCESS);
  (void)fail();
  EXPECT_EQ(GNI_GetErrorEvent(err, &event), GNI_RC_NOT_DONE) << "not of that tag";
  ASSERT_EQ(GNI_SetErrorPtag(err, client::ptag()), GNI_RC_SUCCESS);
  (void)fail();
  EXPECT_EQ(GNI_GetErrorEvent(err, &event), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
}

TEST_F(Errors, ArgumentsThatNobodyShouldPassAreRefused) {
  gni_err_handle_t err = nullptr;
  gni_error_event_t event{};
  gni_error_mask_t mask = 77;
  std::uint32_t count = 77;
  for (const std::uint64_t bits : {0ull, 1ull, 0xdeadbeefcafef00dull, ~0ull}) {
    const auto bad = reinterpret_cast<gni_err_handle_t>(bits);
    EXPECT_EQ(GNI_ReleaseErrors(bad), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_GetErrorMask(bad, &mask), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_SetErrorMask(bad, 1, &mask), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_GetErrorEvent(bad, &event), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_WaitErrorEvents(bad, &event, 1, 0, &count), GNI_RC_INVALID_PARAM);
    EXPECT_EQ(GNI_SetErrorPtag(bad, 1), GNI_RC_INVALID_PARAM);
    if (bits != 0) {
      EXPECT_EQ(GNI_SubscribeErrors(reinterpret_cast<gni_nic_handle_t>(bits), 0, 1, 0, &err),
                GNI_RC_INVALID_PARAM);
    }
  }
  EXPECT_EQ(GNI_SubscribeErrors(nullptr, 5, 1, 0, &err), GNI_RC_NO_MATCH);
  EXPECT_EQ(GNI_SubscribeErrors(domain.nic, 0, 1, 0, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_SubscribeErrors(domain.nic, 0, 1, UINT32_MAX, &err), GNI_RC_ERROR_RESOURCE);
  EXPECT_EQ(err, nullptr);
  ASSERT_EQ(GNI_SubscribeErrors(domain.nic, 0, 1, 0, &err), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_GetErrorMask(err, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_GetErrorEvent(err, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_WaitErrorEvents(err, nullptr, 1, 0, &count), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_WaitErrorEvents(err, &event, 0, 0, &count), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_WaitErrorEvents(err, &event, 1, 0, nullptr), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
  EXPECT_EQ(GNI_ReleaseErrors(err), GNI_RC_INVALID_PARAM);
  EXPECT_EQ(mask, 77U);
  EXPECT_EQ(count, 77U);
}

}  // namespace
