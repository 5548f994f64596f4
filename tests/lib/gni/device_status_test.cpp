// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/device/device_status.hpp"

#include "lib/gni/queue/cq_entry.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <set>
#include <string>

namespace orrery::gni {
namespace {

gni_cq_entry_t with_status(int code) { return cq_entry::post(1, 2, static_cast<std::uint8_t>(code)); }

std::string described(gni_cq_entry_t entry) {
  std::array<char, 256> buffer{};
  EXPECT_EQ(GNI_CqErrorStr(entry, buffer.data(), buffer.size()), GNI_RC_SUCCESS);
  return buffer.data();
}

TEST(CqErrorStr, JoinsSourceStatusAndInfo) {
  EXPECT_EQ(described(with_status(0x0f)), "SSID:AT_MDD_INV:CPLTN_SRSP");
  EXPECT_EQ(described(cq_entry::cq_write(7, 0)), "RMT:OKAY:CQWRITE");
  EXPECT_EQ(described(cq_entry::overrun(0x2f)), "RMT:CQ_OVERRUN:CPLTN_SREQ:OVERRUN");
}

TEST(CqErrorStr, TellsEveryStatusApartAndFitsIn256Bytes) {
  std::set<std::string> seen;
  for (int code = 0; code < 62; ++code) seen.insert(described(with_status(code)));
  EXPECT_EQ(seen.size(), 62u);
  EXPECT_FALSE(described(~gni_cq_entry_t{0}).empty());
}

TEST(CqErrorStr, RefusesAShortBufferWithoutTouchingIt) {
  std::array<char, 64> buffer;
  buffer.fill('x');
  const std::string text = "SSID:AT_MDD_INV:CPLTN_SRSP";
  EXPECT_EQ(GNI_CqErrorStr(with_status(0x0f), buffer.data(), static_cast<std::uint32_t>(text.size())),
            GNI_RC_SIZE_ERROR);
  EXPECT_EQ(buffer[0], 'x');
  EXPECT_EQ(GNI_CqErrorStr(with_status(0x0f), buffer.data(), static_cast<std::uint32_t>(text.size() + 1)),
            GNI_RC_SUCCESS);
  EXPECT_EQ(text, buffer.data());
  EXPECT_EQ(buffer[text.size() + 1], 'x');
}

TEST(CqErrorStr, RefusesNoBuffer) {
  EXPECT_EQ(GNI_CqErrorStr(with_status(1), nullptr, 256), GNI_RC_INVALID_PARAM);
}

TEST(CqErrorRecoverable, FollowsTheAriesTable) {
  // Runs of recoverable codes, first and last.
  constexpr int kRuns[][2] = {{0x06, 0x09}, {0x0b, 0x0b}, {0x18, 0x18}, {0x1d, 0x1d}, {0x20, 0x23},
                              {0x26, 0x2c}, {0x2e, 0x2f}, {0x39, 0x39}, {0x3b, 0x3d}};
  for (int code = 1; code <= 0x3d; ++code) {
    bool documented = false;
    for (const auto& run : kRuns) documented = documented || (code >= run[0] && code <= run[1]);
    std::uint32_t recoverable = 2;
    EXPECT_EQ(GNI_CqErrorRecoverable(with_status(code), &recoverable), GNI_RC_SUCCESS) << code;
    EXPECT_EQ(recoverable, documented ? 1u : 0u) << code;
  }
}

TEST(CqErrorRecoverable, HasNoAnswerForSuccessAndUnknownCodes) {
  std::uint32_t recoverable = 7;
  for (const int code : {0, 0x3e, 0x3f})
    EXPECT_EQ(GNI_CqErrorRecoverable(with_status(code), &recoverable), GNI_RC_INVALID_STATE) << code;
  EXPECT_EQ(recoverable, 7u);
  EXPECT_EQ(GNI_CqErrorRecoverable(with_status(1), nullptr), GNI_RC_INVALID_PARAM);
}

TEST(DeviceStatus, OfAnErrorIsNeverOkayAndOfOkAlways) {
  EXPECT_EQ(device_status_of(Errc::ok), DeviceStatus::okay);
  for (int code = 1; code < kErrcCount; ++code)
    EXPECT_NE(device_status_of(static_cast<Errc>(code)), DeviceStatus::okay) << code;
  EXPECT_NE(device_status_of(static_cast<Errc>(255)), DeviceStatus::okay);
}

TEST(DeviceStatus, NamesWhatHappensToAStaleHandleAndARangeBeyondIt) {
  EXPECT_STREQ(device_status_name(static_cast<std::uint64_t>(device_status_of(Errc::invalid_handle))),
               "AT_MDD_INV");
  EXPECT_STREQ(device_status_name(static_cast<std::uint64_t>(device_status_of(Errc::bounds))),
               "AT_BOUNDS_ERR");
  EXPECT_STREQ(device_status_name(static_cast<std::uint64_t>(device_status_of(Errc::permission))),
               "AT_MDD_WR_PERMISSION_ERR");
  EXPECT_STREQ(device_status_name(static_cast<std::uint64_t>(device_status_of(Errc::protection))),
               "AT_PROTECTION_ERR");
  EXPECT_STREQ(device_status_name(99), "UNKNOWN");
}

}  // namespace
}  // namespace orrery::gni
