// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// The registration cache, over a device that only counts.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>
#include <vector>

#include <sys/mman.h>
#include <udreg_pub.h>

namespace {

struct Device {
  std::map<void*, std::uint64_t> registered;
  std::set<void*> unfit;  // begins of ranges that cannot be registered
  std::uint64_t room = 1000;
  int ended = 0;
};

void* reg(void* address, std::uint64_t length, void* context) {
  auto& device = *static_cast<Device*>(context);
  if (device.unfit.contains(address)) return UDREG_DEVICE_REG_FAILED;
  if (device.registered.size() >= device.room) return nullptr;
  device.registered[address] = length;
  return address;
}
std::uint32_t dereg(void* data, void* context) {
  return static_cast<Device*>(context)->registered.erase(data) == 1 ? 0 : 1;
}
void end(void* context) { ++static_cast<Device*>(context)->ended; }

class Udreg : public testing::Test {
 protected:
  void open(std::uint32_t entries, std::uint32_t modes = UDREG_CC_MODE_USE_LAZY_DEREG) {
    std::strcpy(attr.cache_name, "test");
    attr.max_entries = entries;
    attr.modes = modes;
    attr.reg_context = attr.dreg_context = attr.destructor_context = &device;
    attr.device_reg_func = reg;
    attr.device_dereg_func = dereg;
    attr.destructor_callback = end;
    ASSERT_EQ(UDREG_CacheCreate(&attr), UDREG_RC_SUCCESS);
    ASSERT_EQ(UDREG_CacheAccess("test", &cache), UDREG_RC_SUCCESS);
  }
  ~Udreg() override {
    if (cache == nullptr) return;
    EXPECT_EQ(UDREG_CacheRelease(cache), UDREG_RC_SUCCESS);
    EXPECT_EQ(UDREG_CacheDestroy(cache), UDREG_RC_SUCCESS);
    EXPECT_TRUE(device.registered.empty());
    EXPECT_EQ(device.ended, 1);
  }
  static void* at(std::uint64_t address) { return reinterpret_cast<void*>(address); }
  std::uint64_t stat(std::uint32_t which) {
    std::uint64_t value = ~0ull;
    EXPECT_EQ(UDREG_GetStat(cache, which, &value), UDREG_RC_SUCCESS);
    return value;
  }

  Device device;
  udreg_cache_attr_t attr{};
  udreg_cache_handle_t cache = nullptr;
};

TEST_F(Udreg, WhatWasRegisteredIsFoundAgainInWholePages) {
  open(8);
  udreg_entry_t* first = nullptr;
  ASSERT_EQ(UDREG_Register(cache, at(0x10010), 100, &first), UDREG_RC_SUCCESS);
  EXPECT_EQ(first->address, at(0x10000));
  EXPECT_EQ(first->length, 4096U);
  EXPECT_EQ(first->device_data, at(0x10000));
  udreg_entry_t* again = nullptr;
  ASSERT_EQ(UDREG_Register(cache, at(0x10fff), 1, &again), UDREG_RC_SUCCESS);
  EXPECT_EQ(again, first);
  udreg_entry_t* beyond = nullptr;
  ASSERT_EQ(UDREG_Register(cache, at(0x10fff), 2, &beyond), UDREG_RC_SUCCESS);
  EXPECT_NE(beyond, first);
  EXPECT_EQ(beyond->length, 8192U);
  EXPECT_EQ(UDREG_Unregister(cache, first), UDREG_RC_SUCCESS);
  EXPECT_EQ(UDREG_Unregister(cache, first), UDREG_RC_SUCCESS);
  EXPECT_EQ(UDREG_Unregister(cache, first), UDREG_RC_INVALID_PARAM) << "it has no user any more";
  EXPECT_EQ(device.registered.at(at(0x10000)), 8192U) << "and it stays";
  EXPECT_EQ(UDREG_DecrRefcount(cache, beyond), UDREG_RC_SUCCESS);
  EXPECT_EQ(stat(UDREG_STAT_CACHE_HIT), 1U);
  EXPECT_EQ(stat(UDREG_STAT_CACHE_MISS), 2U);
}

TEST_F(Udreg, AFullCacheGivesUpWhatWasUsedLongestAgo) {
  open(3);
  std::vector<udreg_entry_t*> entries(4);
  for (std::uint64_t i = 0; i < 3; ++i)
    ASSERT_EQ(UDREG_Register(cache, at(0x100000 * (i + 1)), 64, &entries[i]), UDREG_RC_SUCCESS);
  EXPECT_EQ(UDREG_Register(cache, at(0x400000), 64, &entries[3]), UDREG_RC_NO_SPACE) << "all are in use";
  EXPECT_EQ(UDREG_Evict(cache), UDREG_RC_NO_MATCH);
  ASSERT_EQ(UDREG_Unregister(cache, entries[0]), UDREG_RC_SUCCESS);
  ASSERT_EQ(UDREG_Unregister(cache, entries[1]), UDREG_RC_SUCCESS);
  // The first is used again, so the second goes.
  ASSERT_EQ(UDREG_Register(cache, at(0x100000), 64, &entries[0]), UDREG_RC_SUCCESS);
  ASSERT_EQ(UDREG_Register(cache, at(0x400000), 64, &entries[3]), UDREG_RC_SUCCESS);
  EXPECT_FALSE(device.registered.contains(at(0x200000)));
  EXPECT_TRUE(device.registered.contains(at(0x100000)));
  EXPECT_EQ(stat(UDREG_STAT_CACHE_EVICTED), 1U);
  for (const std::size_t i : {0u, 2u, 3u}) EXPECT_EQ(UDREG_Unregister(cache, entries[i]), UDREG_RC_SUCCESS);
  EXPECT_EQ(UDREG_Evict(cache), UDREG_RC_SUCCESS);
  EXPECT_EQ(device.registered.size(), 2U);
}

TEST_F(Udreg, ADeviceWithoutRoomIsSaidSoAndEvictionHelps) {
  open(8);
  device.room = 1;
  udreg_entry_t* entry = nullptr;
  ASSERT_EQ(UDREG_Register(cache, at(0x10000), 64, &entry), UDREG_RC_SUCCESS);
  ASSERT_EQ(UDREG_Unregister(cache, entry), UDREG_RC_SUCCESS);
  // What Open MPI does.
  EXPECT_EQ(UDREG_Register(cache, at(0x20000), 64, &entry), UDREG_RC_NO_SPACE);
  EXPECT_EQ(UDREG_Evict(cache), UDREG_RC_SUCCESS);
  EXPECT_EQ(UDREG_Register(cache, at(0x20000), 64, &entry), UDREG_RC_SUCCESS);
  EXPECT_EQ(UDREG_CacheDestroy(cache), UDREG_RC_NO_SPACE) << "an entry is in use";
  EXPECT_EQ(UDREG_Unregister(cache, entry), UDREG_RC_SUCCESS);
}

// Memory of whole large pages with nothing around it, of which some is taken away again.
class LargePages {
 public:
  static constexpr std::size_t kLarge = 2 << 20;
  LargePages() {
    whole_ = static_cast<char*>(mmap(nullptr, 5 * kLarge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    const auto begin = (reinterpret_cast<std::uintptr_t>(whole_) + 2 * kLarge - 1) / kLarge * kLarge;
    base = reinterpret_cast<char*>(begin);
    munmap(base - kLarge / 2, kLarge / 2);
    munmap(base + 2 * kLarge, kLarge / 2);
  }
  ~LargePages() { munmap(whole_, 5 * kLarge); }
  void remove(std::size_t from, std::size_t to) { munmap(base + from, to - from); }
  char* base = nullptr;

 private:
  char* whole_ = nullptr;
};

TEST_F(Udreg, ByModeAnEntryGoesAtOnceAndRangesAreLarge) {
  open(8, UDREG_CC_MODE_USE_EVICT_W_UNREG | UDREG_CC_MODE_USE_LARGE_PAGES);
  const LargePages pages;
  udreg_entry_t* entry = nullptr;
  ASSERT_EQ(UDREG_Register(cache, pages.base + 0x10000, 64, &entry), UDREG_RC_SUCCESS);
  EXPECT_EQ(entry->address, pages.base);
  EXPECT_EQ(entry->length, 0x200000U);
  EXPECT_EQ(UDREG_Unregister(cache, entry), UDREG_RC_SUCCESS);
  EXPECT_TRUE(device.registered.empty());
  ASSERT_EQ(UDREG_Register(cache, pages.base + 0x10000, 64, &entry), UDREG_RC_SUCCESS);
  EXPECT_EQ(UDREG_DecrRefcount(cache, entry), UDREG_RC_SUCCESS);
  EXPECT_EQ(device.registered.size(), 1U) << "it only counts down";
}

TEST_F(Udreg, LargePagesAreNeverWidenedIntoWhatIsNotMapped) {
  open(8, UDREG_CC_MODE_USE_LARGE_PAGES);
  LargePages pages;
  pages.remove(0x1000, 0x2000);
  udreg_entry_t* entry = nullptr;
  ASSERT_EQ(UDREG_Register(cache, pages.base + 0x10010, 64, &entry), UDREG_RC_SUCCESS);
  EXPECT_EQ(entry->address, pages.base + 0x10000) << "there is a hole before it";
  EXPECT_EQ(entry->length, 0x1f0000U) << "and memory behind it";
  EXPECT_EQ(UDREG_Unregister(cache, entry), UDREG_RC_SUCCESS);
  pages.remove(0x3ff000, 0x400000);
  ASSERT_EQ(UDREG_Register(cache, pages.base + 0x210000, 64, &entry), UDREG_RC_SUCCESS);
  EXPECT_EQ(entry->address, pages.base + 0x200000);
  EXPECT_EQ(entry->length, 0x11000U);
  EXPECT_EQ(UDREG_Unregister(cache, entry), UDREG_RC_SUCCESS);
}

TEST_F(Udreg, MemoryThatCannotBeRegisteredIsABadArgument) {
  open(8, UDREG_CC_MODE_USE_LARGE_PAGES);
  const LargePages pages;
  device.unfit = {pages.base, pages.base + 0x30000};
  udreg_entry_t* entry = nullptr;
  ASSERT_EQ(UDREG_Register(cache, pages.base + 0x10000, 64, &entry), UDREG_RC_SUCCESS);
  EXPECT_EQ(entry->length, 4096U) << "what lies around it cannot, it can";
  EXPECT_EQ(UDREG_Unregister(cache, entry), UDREG_RC_SUCCESS);
  EXPECT_EQ(UDREG_Register(cache, pages.base + 0x30000, 64, &entry), UDREG_RC_INVALID_PARAM);
}

TEST_F(Udreg, CountersAreSetBackOneByOne) {
  open(8);
  udreg_entry_t* entry = nullptr;
  for (int i = 0; i < 3; ++i) ASSERT_EQ(UDREG_Register(cache, at(0x10000), 64, &entry), UDREG_RC_SUCCESS);
  EXPECT_EQ(UDREG_ResetStat(cache, UDREG_STAT_CACHE_HIT), UDREG_RC_SUCCESS);
  EXPECT_EQ(stat(UDREG_STAT_CACHE_HIT), 0U);
  EXPECT_EQ(stat(UDREG_STAT_CACHE_MISS), 1U);
  EXPECT_EQ(UDREG_ResetStat(cache, 3), UDREG_RC_INVALID_PARAM);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(UDREG_Unregister(cache, entry), UDREG_RC_SUCCESS);
}

TEST_F(Udreg, BadArgumentsAreRefused) {
  EXPECT_EQ(UDREG_CacheCreate(nullptr), UDREG_RC_INVALID_PARAM);
  EXPECT_EQ(UDREG_CacheCreate(&attr), UDREG_RC_INVALID_PARAM) << "no name";
  open(2);
  EXPECT_EQ(UDREG_CacheCreate(&attr), UDREG_RC_INVALID_PARAM) << "the name is in use";
  udreg_cache_attr_t bad = attr;
  std::memset(bad.cache_name, 'x', sizeof bad.cache_name);
  EXPECT_EQ(UDREG_CacheCreate(&bad), UDREG_RC_INVALID_PARAM) << "a name without end";
  udreg_cache_handle_t none = nullptr;
  EXPECT_EQ(UDREG_CacheAccess("no such", &none), UDREG_RC_NO_MATCH);
  EXPECT_EQ(UDREG_CacheAccess(nullptr, &none), UDREG_RC_INVALID_PARAM);
  udreg_entry_t* entry = nullptr;
  udreg_entry_t own{};
  EXPECT_EQ(UDREG_Register(cache, at(0x1000), 0, &entry), UDREG_RC_INVALID_PARAM);
  EXPECT_EQ(UDREG_Register(cache, at(~0ull - 100), 64, &entry), UDREG_RC_INVALID_PARAM);
  EXPECT_EQ(UDREG_Register(cache, at(0x1000), ~0ull, &entry), UDREG_RC_INVALID_PARAM);
  EXPECT_EQ(UDREG_Register(cache, at(0x1000), 64, nullptr), UDREG_RC_INVALID_PARAM);
  EXPECT_EQ(UDREG_Unregister(cache, &own), UDREG_RC_INVALID_PARAM);
  EXPECT_EQ(UDREG_Unregister(cache, nullptr), UDREG_RC_INVALID_PARAM);
  std::uint64_t value = 0;
  EXPECT_EQ(UDREG_GetStat(cache, 3, &value), UDREG_RC_INVALID_PARAM);
  EXPECT_EQ(UDREG_GetStat(cache, 0, nullptr), UDREG_RC_INVALID_PARAM);
  auto* const wild = reinterpret_cast<udreg_cache_handle_t>(0xdeadbeef);
  EXPECT_EQ(UDREG_Register(wild, at(0x1000), 64, &entry), UDREG_RC_INVALID_PARAM);
  EXPECT_EQ(UDREG_Evict(wild), UDREG_RC_INVALID_PARAM);
  EXPECT_EQ(UDREG_CacheDestroy(wild), UDREG_RC_INVALID_PARAM);
  EXPECT_EQ(UDREG_CacheRelease(wild), UDREG_RC_INVALID_PARAM);
  EXPECT_EQ(UDREG_GetStat(wild, 0, &value), UDREG_RC_INVALID_PARAM);
}

}  // namespace
