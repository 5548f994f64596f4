// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/gate/suspend.hpp"

#include "emu/base/wait.hpp"
#include "tests/emu/nic/parts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace orrery::nic {
namespace {

constexpr std::uint32_t kDomain = 7;  // of the parts' ports
constexpr std::int64_t kLongNs = 60'000'000'000;

// Node a suspends the domain in b, whose service thread runs while a waits.
struct Suspended : ::testing::Test {
  parts::Pair pair;
  parts::Node& a = pair.a;
  parts::Node& b = pair.b;
  parts::Defers defers_a, defers_b;
  Suspension asking = made(a, defers_a);
  Suspension asked = made(b, defers_b);
  parts::Told told;
  std::uint64_t source = 7;
  alignas(4096) std::array<std::uint64_t, 512> target{};
  const std::vector<ProcessName> other{b.host.self()};

  static Suspension made(parts::Node& node, parts::Defers& defers) {
    return {node.host,
            node.host.view,
            node.peers,
            node.ports,
            node.regions.table(),
            {node.pending, node.transport, node.router.bte(), defers},
            1'000'000'000,
            node.moves};
  }
  Suspended() {
    a.moves.work = [this] { (void)asked.attend(); };
  }
  bool is_marked(const MemKey& key) {
    return (control::flags(b.host.view.region(key.index).control.load()) & kSuspended) != 0;
  }
};

TEST_F(Suspended, ItsRegistrationsAreMarkedAndItsOwnerIsRung) {
  const MemKey key = b.expose(target.data(), sizeof target);
  ASSERT_EQ(asking.suspend(other, kDomain, monotonic_ns() + kLongNs), Errc::ok);
  EXPECT_EQ(b.host.rings, 1);
  EXPECT_TRUE(is_marked(key));
  ASSERT_EQ(asking.resume(other, kDomain), Errc::ok);
  EXPECT_FALSE(asked.attend());
  EXPECT_FALSE(is_marked(key));
}

TEST_F(Suspended, AnotherDomainsRegistrationsAreNot) {
  const MemKey key = b.expose(target.data(), sizeof target);
  ASSERT_EQ(asking.suspend(other, kDomain + 1, monotonic_ns() + kLongNs), Errc::ok);
  EXPECT_FALSE(is_marked(key));
}

TEST_F(Suspended, ItIsNotQuietWhileSomethingOfItsIsHeldBack) {
  defers_b.held.emplace_back();
  EXPECT_EQ(asking.suspend(other, kDomain, monotonic_ns()), Errc::timeout);
  EXPECT_FALSE(asked.attend()) << "it goes on as if nothing had been";
  defers_b.held.clear();
  EXPECT_EQ(asking.suspend(other, kDomain, monotonic_ns() + kLongNs), Errc::ok);
}

TEST_F(Suspended, ItIsNotQuietWhileItsFramesAreUnderWay) {
  const MemKey key = a.expose(target.data(), sizeof target);
  (void)b.router.route(pair.put(b, a, &source, target.data(), 8, key, &told), kSharedHazardSlot);
  EXPECT_EQ(asking.suspend(other, kDomain, monotonic_ns()), Errc::timeout);
  pair.settle();
  EXPECT_EQ(asking.suspend(other, kDomain, monotonic_ns() + kLongNs), Errc::ok);
}

TEST_F(Suspended, ADeadProcessIsNotWaitedFor) {
  defers_b.held.emplace_back();
  (void)a.peers.connect(b.host.self());
  b.host.lives = false;
  EXPECT_EQ(asking.suspend(other, kDomain, monotonic_ns() + kLongNs), Errc::ok);
}

TEST_F(Suspended, WhatWasNotSuspendedIsNotResumed) {
  EXPECT_EQ(asking.resume(other, kDomain), Errc::invalid_state);
  EXPECT_EQ(asking.resume(other, kMaxSuspendable), Errc::invalid_param);
  EXPECT_EQ(asking.suspend(other, kMaxSuspendable, monotonic_ns()), Errc::invalid_param);
}

}  // namespace
}  // namespace orrery::nic
