// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/gate/suspend.hpp"

#include "emu/base/wait.hpp"
#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

// What a suspending process and the owner of a NIC say to each other. With traffic: tests/lib/gni.
namespace orrery::nic {
namespace {

constexpr std::uint32_t kDomain = 7;  // of the box's ports
constexpr std::int64_t kLongNs = 20'000'000'000;

// Node 0 suspends the domain in node 1.
struct Two {
  Two() : world(2, box::Path::direct), page(4096) {}
  // While node 1's service thread runs.
  Errc suspend_attended() {
    std::atomic<bool> stop{false};
    std::thread owner([&] {
      while (!stop.load(std::memory_order_relaxed)) (void)world[1].nic().serve();
    });
    const Errc result = world[0].nic().suspension().suspend(other, kDomain, monotonic_ns() + kLongNs);
    stop.store(true, std::memory_order_relaxed);
    owner.join();
    return result;
  }
  Errc resume() { return world[0].nic().suspension().resume(other, kDomain); }
  bool is_marked(const MemKey& key) {
    const auto word = world[1].nic().view().region(key.index).control.load(std::memory_order_acquire);
    return (control::flags(word) & kSuspended) != 0;
  }
  MemKey add_region() {
    const auto address = reinterpret_cast<std::uint64_t>(page.data());
    return world[1].nic().register_region(world[1].port(), address, page.size(), 0, nullptr).value();
  }
  box::World world;
  std::vector<std::byte> page;
  const std::vector<ProcessName> other{world[1].name()};
};

TEST(Suspend, MarksRegistrationsUntilItIsOver) {
  Two two;
  const MemKey key = two.add_region();
  ASSERT_EQ(two.suspend_attended(), Errc::ok);
  EXPECT_TRUE(two.is_marked(key));
  ASSERT_EQ(two.resume(), Errc::ok);
  two.world.serve_all();
  EXPECT_FALSE(two.is_marked(key));
  EXPECT_EQ(two.resume(), Errc::invalid_state);
}

TEST(Suspend, DoesNotTakeTheQuietOfAnEarlierOneForItsOwn) {
  Two two;
  ASSERT_EQ(two.suspend_attended(), Errc::ok);
  ASSERT_EQ(two.resume(), Errc::ok);
  // Its owner has not looked since: it may have started anything.
  EXPECT_EQ(two.world[0].nic().suspension().suspend(two.other, kDomain, monotonic_ns()), Errc::timeout);
}

TEST(Suspend, MarksWhatWasRegisteredBetweenTwo) {
  Two two;
  ASSERT_EQ(two.suspend_attended(), Errc::ok);
  ASSERT_EQ(two.resume(), Errc::ok);
  const MemKey key = two.add_region();
  ASSERT_EQ(two.suspend_attended(), Errc::ok);
  EXPECT_TRUE(two.is_marked(key));
}

}  // namespace
}  // namespace orrery::nic
