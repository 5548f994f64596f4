// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/common/handle_table.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace orrery::common {
namespace {

enum class HandleKind : std::uint8_t { none = 0, cdm, nic, ep, cq, err, msgq, ce, comp_chan, dqueue };
using HandleTable = TypedHandleTable<HandleKind>;

struct HandleTableTest : testing::Test {
  std::unique_ptr<HandleTable> table = std::make_unique<HandleTable>(1);
  int object = 0;
  int other = 0;
};

TEST_F(HandleTableTest, FindsWhatWasInserted) {
  const std::uint64_t a = table->insert(HandleKind::ep, &object);
  const std::uint64_t b = table->insert(HandleKind::ep, &other);
  ASSERT_NE(a, 0u);
  EXPECT_NE(a, b);
  EXPECT_EQ(table->find(HandleKind::ep, a), &object);
  EXPECT_EQ(table->find(HandleKind::ep, b), &other);
  EXPECT_EQ(table->live(), 2u);
}

TEST_F(HandleTableTest, RefusesNullFreedAndOtherKinds) {
  const std::uint64_t handle = table->insert(HandleKind::cq, &object);
  EXPECT_EQ(table->find(HandleKind::cq, 0), nullptr);
  EXPECT_EQ(table->find(HandleKind::ep, handle), nullptr);
  EXPECT_EQ(table->erase(HandleKind::ep, handle), nullptr);
  EXPECT_EQ(table->erase(HandleKind::cq, handle), &object);
  EXPECT_EQ(table->find(HandleKind::cq, handle), nullptr);
  EXPECT_EQ(table->erase(HandleKind::cq, handle), nullptr);
  EXPECT_EQ(table->live(), 0u);
}

TEST_F(HandleTableTest, AReusedSlotDoesNotReviveItsOldHandle) {
  const std::uint64_t old = table->insert(HandleKind::ep, &object);
  EXPECT_EQ(table->erase(HandleKind::ep, old), &object);
  const std::uint64_t fresh = table->insert(HandleKind::ep, &other);
  EXPECT_EQ(fresh & (HandleTable::kCapacity - 1), old & (HandleTable::kCapacity - 1));
  EXPECT_NE(fresh, old);
  EXPECT_EQ(table->find(HandleKind::ep, old), nullptr);
  EXPECT_EQ(table->find(HandleKind::ep, fresh), &other);
}

TEST_F(HandleTableTest, RefusesAddressesAndAnyChangedBit) {
  const std::uint64_t handle = table->insert(HandleKind::nic, &object);
  EXPECT_EQ(table->find(HandleKind::nic, reinterpret_cast<std::uintptr_t>(&object)), nullptr);
  for (int bit = 0; bit < 64; ++bit)
    EXPECT_EQ(table->find(HandleKind::nic, handle ^ (std::uint64_t{1} << bit)), nullptr) << bit;
}

TEST_F(HandleTableTest, RefusesAHandleOfATableThatStartedElsewhere) {
  auto foreign = std::make_unique<HandleTable>(77);
  const std::uint64_t theirs = foreign->insert(HandleKind::ep, &object);
  const std::uint64_t ours = table->insert(HandleKind::ep, &object);
  EXPECT_EQ(table->find(HandleKind::ep, theirs), nullptr);
  EXPECT_EQ(foreign->find(HandleKind::ep, ours), nullptr);
}

TEST_F(HandleTableTest, TablesWithoutAGivenStartGiveHandlesAllTheSame) {
  auto chosen = std::make_unique<HandleTable>();
  const std::uint64_t handle = chosen->insert(HandleKind::ep, &object);
  EXPECT_EQ(chosen->find(HandleKind::ep, handle), &object);
}

TEST_F(HandleTableTest, RetiresASlotWhoseGenerationsAreSpent) {
  auto last = std::make_unique<HandleTable>(UINT32_MAX);
  const std::uint64_t first = last->insert(HandleKind::ep, &object);
  EXPECT_EQ(last->erase(HandleKind::ep, first), &object);
  const std::uint64_t second = last->insert(HandleKind::ep, &object);
  EXPECT_NE(second & (HandleTable::kCapacity - 1), first & (HandleTable::kCapacity - 1));
}

TEST_F(HandleTableTest, SaysNoWhenFullAndGivesFreedSlotsAgain) {
  std::vector<std::uint64_t> all;
  for (;;) {
    const std::uint64_t handle = table->insert(HandleKind::ep, &object);
    if (handle == 0) break;
    all.push_back(handle);
  }
  EXPECT_EQ(all.size(), std::size_t{HandleTable::kCapacity} - 1);
  EXPECT_EQ(table->erase(HandleKind::ep, all[12345]), &object);
  EXPECT_NE(table->insert(HandleKind::cq, &other), 0u);
  EXPECT_EQ(table->insert(HandleKind::cq, &other), 0u);
}

TEST_F(HandleTableTest, AgreesWithAMapOverARandomHistory) {
  const std::uint64_t seed = 42;
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937_64 random(seed);
  std::vector<int> objects(64);
  std::unordered_map<std::uint64_t, void*> live;
  std::vector<std::uint64_t> given;
  for (int step = 0; step < 20'000; ++step) {
    if (given.empty() || random() % 2 == 0) {
      void* const what = &objects[random() % objects.size()];
      const std::uint64_t handle = table->insert(HandleKind::ep, what);
      ASSERT_TRUE(live.emplace(handle, what).second) << "a live handle was given twice";
      given.push_back(handle);
    } else {
      const std::uint64_t handle = given[random() % given.size()];
      const auto known = live.find(handle);
      void* const expected = known == live.end() ? nullptr : known->second;
      ASSERT_EQ(table->find(HandleKind::ep, handle), expected);
      ASSERT_EQ(table->erase(HandleKind::ep, handle), expected);
      live.erase(handle);
    }
  }
  EXPECT_EQ(table->live(), live.size());
}

// Property: threads that make, find and free handles of their own never see another thread's object.
TEST_F(HandleTableTest, ThreadsDoNotSeeEachOthersHandles) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([this, t, &wrong] {
      int mine = 0;
      for (int round = 0; round < 2000; ++round) {
        const std::uint64_t handle = table->insert(HandleKind::ep, &mine);
        if (table->find(HandleKind::ep, handle) != &mine) ++wrong[t];
        if (table->erase(HandleKind::ep, handle) != &mine) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : wrong) EXPECT_EQ(count, 0);
  EXPECT_EQ(table->live(), 0u);
}

}  // namespace
}  // namespace orrery::common
