// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/wire/seal.hpp"

#include "tests/require.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace orrery::wire {
namespace {

constexpr AuthKey kKey{0x0706050403020100, 0x0f0e0d0c0b0a0908};

struct SealTest : ::testing::Test {
  void SetUp() override {
    std::string why;
    if (!Sealer::is_usable(&why)) ORRERY_SKIP("encryption") << why;
    seals = std::move(Sealer::open(kKey, true, &why)).value();
    unseals = std::move(Sealer::open(kKey, false, &why)).value();
  }
  std::vector<std::byte> sealed(std::span<const std::byte> frame, std::uint64_t counter) {
    std::vector<std::byte> out(frame.size() + kSealBytes);
    EXPECT_TRUE(seals->seal({.source = 3, .target = 4, .counter = counter}, frame, out));
    return out;
  }
  std::unique_ptr<Sealer> seals, unseals;
};

std::vector<std::byte> frame_of(std::size_t size) {
  std::vector<std::byte> frame(size);
  for (std::size_t i = 0; i < size; ++i) frame[i] = static_cast<std::byte>(i * 7 + 1);
  return frame;
}

TEST_F(SealTest, WhatWentInComesOut) {
  std::uint64_t counter = 0;
  for (const std::size_t size : {std::size_t{1}, std::size_t{88}, std::size_t{65536}}) {
    const auto frame = frame_of(size);
    const auto bytes = sealed(frame, ++counter);
    std::vector<std::byte> back(size);
    ASSERT_TRUE(unseals->unseal(bytes, back));
    EXPECT_EQ(back, frame);
    const auto head = read_seal_head(bytes);
    ASSERT_TRUE(head);
    EXPECT_EQ(head->source, 3u);
    EXPECT_EQ(head->target, 4u);
    EXPECT_EQ(head->counter, counter);
  }
}

TEST_F(SealTest, NothingOfAFrameShowsAndNoTwoAreAlike) {
  const auto frame = frame_of(256);
  const auto one = sealed(frame, 1);
  const auto two = sealed(frame, 2);
  EXPECT_EQ(std::search(one.begin(), one.end(), frame.begin(), frame.begin() + 8), one.end());
  EXPECT_FALSE(std::equal(one.begin() + kSealHeadBytes, one.end(), two.begin() + kSealHeadBytes));
}

TEST_F(SealTest, EveryBitIsHeld) {
  const auto frame = frame_of(40);
  const auto bytes = sealed(frame, 1);
  std::vector<std::byte> back(frame.size());
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    auto changed = bytes;
    changed[bit / 8] ^= static_cast<std::byte>(1u << bit % 8);
    EXPECT_FALSE(unseals->unseal(changed, back)) << bit;
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    back.resize(size < kSealBytes ? 0 : size - kSealBytes);
    EXPECT_FALSE(unseals->unseal(std::span(bytes).first(size), back)) << size;
  }
}

TEST_F(SealTest, AnotherKeyOpensNothing) {
  const auto frame = frame_of(40);
  const auto bytes = sealed(frame, 1);
  std::vector<std::byte> back(frame.size());
  std::string why;
  const AuthScope scope{.job = 1, .from = 2, .to = 3, .domain = 0};
  EXPECT_FALSE(Sealer::open(seal_key(kKey, scope), false, &why).value()->unseal(bytes, back));
  EXPECT_NE(seal_key(kKey, scope), seal_key(kKey, {.job = 1, .from = 3, .to = 2, .domain = 0}))
      << "directions";
  EXPECT_NE(seal_key(kKey, scope), derive_key(kKey, scope)) << "the key of frames";
}

// AES-128-GCM as everywhere: key, nonce and text of NIST's test case with nothing but zeros.
TEST_F(SealTest, IsTheCipherThatItIsCalled) {
  std::string why;
  const auto zero = std::move(Sealer::open({0, 0}, true, &why)).value();
  const std::vector<std::byte> frame(16);
  std::vector<std::byte> out(frame.size() + kSealBytes);
  ASSERT_TRUE(zero->seal({.source = 0, .target = 0, .counter = 0}, frame, out));
  const unsigned char expected[] = {0x03, 0x88, 0xda, 0xce, 0x60, 0xb6, 0xa3, 0x92,
                                    0xf3, 0x28, 0xc2, 0xb9, 0x71, 0xb2, 0xfe, 0x78};
  EXPECT_TRUE(std::equal(std::begin(expected), std::end(expected), out.begin() + kSealHeadBytes,
                         [](unsigned char a, std::byte b) { return std::byte{a} == b; }));
}

}  // namespace
}  // namespace orrery::wire
