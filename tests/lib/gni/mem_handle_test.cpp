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
    ASSERT_EQ(handle.qword2 >> 41 & 1, 0U) << "another layout of the machines'";
  }
}

// Of what a client does not know, a handle that it puts together may say anything.
TEST(MemHandle, WithoutAGenerationIsANumberWhateverElseItSays) {
  const auto built = [](std::uint64_t shift, std::uint64_t pages, std::uint64_t crc, std::uint64_t flags) {
    return gni_mem_handle_t{std::uint64_t{0xfed} << 52 | 0x1234'5678,
                            crc << 56 | flags << 34 | shift << 28 | pages};
  };
  for (std::uint64_t shift = 0; shift < 64; ++shift) {
    const bool is_of_pages = shift >= 12 && shift <= 30;
    for (const std::uint64_t pages : {0ull, 1ull, 0xabc'def1ull, 0xfff'ffffull}) {
      for (const std::uint64_t crc : {0x00ull, 0x5aull, 0xffull}) {
        for (const std::uint64_t flags : {0ull, 1ull, 2ull, 0x80ull, 0xffull}) {
          const gni_mem_handle_t handle = built(shift, pages, crc, flags);
          ASSERT_EQ(mem_handle::key_of(handle).is_number(), is_of_pages && pages != 0)
              << shift << ' ' << pages << ' ' << crc << ' ' << flags;
          ASSERT_EQ(mem_handle::well_formed(handle), is_of_pages && pages != 0);
          ASSERT_EQ(mem_handle::key_of(handle).index, 0xfed);
        }
      }
    }
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
