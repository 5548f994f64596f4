// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/transport/hot_memory.hpp"

#include "tests/emu/nic/parts.hpp"

#include <gtest/gtest.h>

namespace orrery::nic {
namespace {

struct Hot : ::testing::Test {
  parts::Pair pair;
  Peer& peer = *pair.a.peers.connect(pair.b.host.self()).value();
  HotMemory hot{pair.a.host, 4};
  const MemKey key{.index = 70, .generation = 3, .process = 1, .flags = 0};
  std::uint64_t wanted() const { return pair.b.host.view.service().adoption_wanted[1].load(); }
};

TEST_F(Hot, AnOwnerIsAskedOnceByTheLastOfSoManyOperations) {
  for (int i = 0; i < 3; ++i) hot.count(peer, key, 0);
  EXPECT_EQ(wanted(), 0u);
  EXPECT_EQ(pair.b.host.rings, 0);
  for (int i = 0; i < 100; ++i) hot.count(peer, key, 0);
  EXPECT_EQ(wanted(), 1ull << (70 - 64));
  EXPECT_EQ(pair.b.host.rings, 1);
}

TEST_F(Hot, AnotherRegistrationInTheSamePlaceIsCountedAnew) {
  for (int i = 0; i < 3; ++i) hot.count(peer, key, 0);
  MemKey later = key;
  later.generation = 4;
  for (int i = 0; i < 3; ++i) hot.count(peer, later, 0);
  EXPECT_EQ(pair.b.host.rings, 0);
}

TEST_F(Hot, AnOwnerMayBeAskedAtOnce) {
  hot.ask(peer, key);
  EXPECT_EQ(wanted(), 1ull << (70 - 64));
}

TEST_F(Hot, AnExtentThatIsNotMovedIsAskedForLessAndLess) {
  MemKey space = key;
  space.flags = kSpace;
  for (int i = 0; i < 4 * 8; ++i) hot.count(peer, space, 0x12345000);
  // At 4, 8, 16 and 32 operations.
  EXPECT_EQ(pair.b.host.rings, 4);
}

}  // namespace
}  // namespace orrery::nic
