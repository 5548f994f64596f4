// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/common/local_access.hpp"

#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace orrery::common {
namespace {

struct LocalSide : ::testing::Test {
  nic::MemKey add(std::uint8_t flags) {
    return world[0].nic().register_region(world[0].port(), begin, bytes.size(), flags, nullptr).value();
  }
  bool ask(const nic::MemKey& of, bool writes) {
    return local.ask(world[0].nic(), world[0].port(), name, of, begin + 8, 8, writes);
  }

  nic::box::World world{1, nic::box::Path::direct};
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(4096);
  const std::uint64_t begin = reinterpret_cast<std::uint64_t>(bytes.data());
  const LocalName name{{1, 2}};
  LocalAccess local;
};

TEST_F(LocalSide, AnAnswerHoldsForTheWholeRegistrationUnderItsNameAlone) {
  EXPECT_FALSE(local.allows(name, begin, 8, false)) << "it was not asked for yet";
  const nic::MemKey key = add(0);
  ASSERT_TRUE(ask(key, true));
  EXPECT_TRUE(local.allows(name, begin, bytes.size(), true));
  EXPECT_TRUE(local.allows(name, begin + 100, 0, true));
  EXPECT_FALSE(local.allows({{1, 3}}, begin, 8, false));
  EXPECT_FALSE(local.allows({{2, 2}}, begin, 8, false));
  EXPECT_FALSE(local.allows(name, begin - 4096, 8, false));
  EXPECT_FALSE(local.allows(name, begin, std::uint64_t{1} << 40, false));
  EXPECT_FALSE(local.allows(name, begin, UINT64_MAX, false));
}

TEST_F(LocalSide, AnAnswerEndsWithItsRegistration) {
  const nic::MemKey key = add(0);
  ASSERT_TRUE(ask(key, true));
  ASSERT_TRUE(world[0].nic().deregister(key).ok());
  EXPECT_FALSE(local.allows(name, begin, 8, false));
  EXPECT_FALSE(ask(key, false));
  const nic::MemKey again = add(0);
  EXPECT_FALSE(local.allows(name, begin, 8, false));
  EXPECT_TRUE(ask(again, false));
}

TEST_F(LocalSide, MemoryThatIsOnlyReadIsNotWritten) {
  const nic::MemKey key = add(nic::kReadOnly);
  EXPECT_FALSE(ask(key, true));
  ASSERT_TRUE(ask(key, false));
  EXPECT_TRUE(local.allows(name, begin, 8, false));
  EXPECT_FALSE(local.allows(name, begin, 8, true));
}

}  // namespace
}  // namespace orrery::common
