// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/domain/mem_handle.hpp"

#include <gtest/gtest.h>

#include <random>

namespace orrery::gni {
namespace {

nic::MemKey a_key() {
  return {.page = 0x7'1234'5678,
          .page_count = 0x0abc'def1,
          .index = 0xfed,
          .generation = 0x2bcd,
          .process = 0x3a5,
          .flags = nic::kReadOnly};
}

TEST(MemHandle, CarriesEveryPartOfAKey) {
  EXPECT_EQ(mem_handle::key_of(mem_handle::make(a_key())), a_key());
  std::mt19937_64 random(1);
  for (int i = 0; i < 10'000; ++i) {
    const nic::MemKey key{.page = random() & mem_handle::kPageMask,
                          .page_count = static_cast<std::uint32_t>(random() & 0x0fff'ffff),
                          .index = static_cast<std::uint16_t>(random() % nic::kMaxRegions),
                          .generation = static_cast<std::uint16_t>(random() % nic::kMaxGeneration + 1),
                          .process = static_cast<std::uint16_t>(random() & 0x3ff),
                          .flags = static_cast<std::uint8_t>(random() & (nic::kReadOnly | nic::kSegmented))};
    const gni_mem_handle_t handle = mem_handle::make(key);
    ASSERT_EQ(mem_handle::key_of(handle), key);
    ASSERT_TRUE(mem_handle::well_formed(handle));
    ASSERT_EQ(mem_handle::key_word_of(handle), nic::key_word(key));
  }
}

// Where a client that looks into a handle finds what it knows of: docs/sources.md says where.
TEST(MemHandle, HasThePublicFieldsInTheirPlaces) {
  const gni_mem_handle_t handle = mem_handle::make(a_key());
  EXPECT_EQ(handle.qword1 & ((std::uint64_t{1} << 42) - 1), a_key().page);
  EXPECT_EQ(handle.qword1 >> 52, a_key().index);
  EXPECT_EQ(handle.qword2 & 0x0fff'ffff, a_key().page_count);
  EXPECT_EQ(handle.qword2 >> 28 & 0x3f, 12U) << "the page shift";
  EXPECT_EQ(handle.qword2 >> 34 & 0xff, 0x01U) << "the read-only flag";
}

TEST(MemHandle, AnyBitThatFlipsIsNoticed) {
  const gni_mem_handle_t handle = mem_handle::make(a_key());
  for (int bit = 0; bit < 128; ++bit) {
    gni_mem_handle_t changed = handle;
    (bit < 64 ? changed.qword1 : changed.qword2) ^= std::uint64_t{1} << bit % 64;
    EXPECT_FALSE(mem_handle::well_formed(changed)) << bit;
  }
}

TEST(MemHandle, ZeroesAreNone) {
  EXPECT_TRUE(mem_handle::is_none({}));
  EXPECT_FALSE(mem_handle::well_formed({}));
  EXPECT_FALSE(mem_handle::is_none(mem_handle::make(a_key())));
}

}  // namespace
}  // namespace orrery::gni
