// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/job/wireup_record.hpp"

#include <gtest/gtest.h>

namespace orrery::job {
namespace {

TEST(WireupRecord, RequestSurvivesARoundTrip) {
  const WireupRequest request{Wanted::descriptors, 0x0102030405060708, {17, 3}, 42, 43};
  const auto decoded = decode_request(encode(request));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded.value().wanted, Wanted::descriptors);
  EXPECT_EQ(decoded.value().job_id, request.job_id);
  EXPECT_EQ(decoded.value().process, request.process);
  EXPECT_EQ(decoded.value().request_nonce, 42u);
  EXPECT_EQ(decoded.value().secret, 43u);
}

TEST(WireupRecord, ReplySurvivesARoundTrip) {
  const auto decoded = decode_reply(encode(WireupReply{5, 6, 7}));
  ASSERT_TRUE(decoded.ok());
  EXPECT_EQ(decoded.value().kinds, 5);
  EXPECT_EQ(decoded.value().job_id, 6u);
  EXPECT_EQ(decoded.value().reply_nonce, 7u);
}

TEST(WireupRecord, EveryDamagedHeaderByteIsCorrupt) {
  // Bytes 0..7 hold magic, version and what is wanted: no change there may pass.
  for (std::size_t at = 0; at < 6; ++at) {
    auto request = encode(WireupRequest{});
    auto reply = encode(WireupReply{});
    request[at] ^= std::byte{0x80};
    reply[at] ^= std::byte{0x80};
    EXPECT_EQ(decode_request(request).code(), Errc::corrupt) << at;
    EXPECT_EQ(decode_reply(reply).code(), Errc::corrupt) << at;
  }
}

TEST(WireupRecord, OtherLengthsAndValuesAreCorrupt) {
  const auto request = encode(WireupRequest{});
  for (std::size_t length = 0; length < kRequestBytes; ++length) {
    EXPECT_EQ(decode_request(std::span(request).first(length)).code(), Errc::corrupt) << length;
  }
  const auto reply = encode(WireupReply{});
  for (std::size_t length = 0; length < kReplyBytes; ++length) {
    EXPECT_EQ(decode_reply(std::span(reply).first(length)).code(), Errc::corrupt) << length;
  }
  EXPECT_EQ(decode_request(encode(WireupRequest{.wanted = static_cast<Wanted>(4)})).code(), Errc::corrupt);
  EXPECT_EQ(decode_request(encode(WireupRequest{.process = {HostDirectory::kMaxProcesses, 0}})).code(),
            Errc::corrupt);
  EXPECT_EQ(decode_reply(encode(WireupReply{.kinds = 16})).code(), Errc::corrupt);
}

}  // namespace
}  // namespace orrery::job
