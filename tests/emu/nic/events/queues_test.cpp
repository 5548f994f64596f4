// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/events/queues.hpp"

#include "emu/nic/events/ports.hpp"
#include "emu/nic/state/hazard.hpp"
#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace orrery::nic {
namespace {

// A table of its own over a NIC's segment: the NIC has made no queue.
struct Queues : ::testing::Test {
  static bool all_let_go(std::uint32_t) { return true; }

  box::World world{1, box::Path::direct};
  const NicView view = world[0].nic().view();
  Arena arena{view};
  EventQueues queues{view, arena};
};

TEST_F(Queues, AreMadeUntilTheirNumbersAreUsedUpAndRefuseImpossibleDepths) {
  EXPECT_EQ(queues.create(0, 0).code(), Errc::invalid_param);
  EXPECT_EQ(queues.create(kMaxQueueDepth + 1, 0).code(), Errc::invalid_param);
  EXPECT_EQ(queues.create(1u << 22, 0).code(), Errc::no_memory);
  for (std::uint32_t i = 0; i < kMaxQueues; ++i) ASSERT_TRUE(queues.create(1, 0).ok()) << i;
  EXPECT_EQ(queues.create(1, 0).code(), Errc::no_resource);
  EXPECT_EQ(queues.count(), kMaxQueues);
}

TEST_F(Queues, AProducerOfAQueueThatEndedFindsNoSlotInTheOneThatHasItsRing) {
  CompletionQueue* const first = queues.create(4, 0).value();
  const QueueView stale = first->view();
  ASSERT_EQ(push_event(stale, {EventKind::remote, Errc::ok, 1}), Errc::ok);
  const std::uint64_t word = stale.slots[1].control.load();
  ASSERT_TRUE(queues.destroy(first, all_let_go).ok());
  CompletionQueue* const second = queues.create(4, 0).value();
  ASSERT_EQ(second->view().slots, stale.slots);
  EXPECT_NE(second->view().slots[1].control.load(), word);
  Event event;
  EXPECT_EQ(second->take(&event), Errc::not_done);
}

TEST_F(Queues, StayWhileTheyAreNamedAndForEverWhenNotAllHaveLetGo) {
  CompletionQueue* const queue = queues.create(4, 0).value();
  queue->references.store(1);
  bool asked = false;
  const auto note = [&asked](std::uint32_t) { return asked = true; };
  EXPECT_EQ(queues.destroy(queue, note).code(), Errc::no_resource);
  EXPECT_FALSE(asked);
  queue->references.store(0);
  EXPECT_TRUE(queues.destroy(queue, [](std::uint32_t) { return false; }).ok());
  EXPECT_EQ(queues.count(), 1u);
  EXPECT_EQ(push_event(queue->view(), {EventKind::remote, Errc::ok, 1}), Errc::ok)
      << "its ring is still there";
}

TEST(PortTable, GivesEachPortAHazardWordAndTheRestASharedOne) {
  ErrorLog log;
  Ports ports(log);
  std::set<std::uint32_t> words;
  std::vector<Port*> open;
  for (std::uint32_t i = 0; i < kSharedHazardSlot; ++i) {
    open.push_back(ports.open(1, 2, i));
    EXPECT_TRUE(words.insert(open.back()->hazard_slot).second);
  }
  EXPECT_EQ(ports.open(1, 2, 100)->hazard_slot, kSharedHazardSlot);
  EXPECT_EQ(ports.open(1, 2, 101)->hazard_slot, kSharedHazardSlot);
  const std::uint32_t freed = open[2]->hazard_slot;
  ports.close(open[2]);
  EXPECT_EQ(ports.open(1, 2, 102)->hazard_slot, freed);
}

TEST(PortTable, TellsOfAnErrorOncePerDomainAndTheLogAlways) {
  ErrorLog log;
  Ports ports(log);
  int heard = 0;
  const auto hook = [](void* self, const ErrorEvent&) { ++*static_cast<int*>(self); };
  ports.open(7, 0, 0);
  for (const std::uint16_t domain : {7, 7, 8}) {
    Port* const port = ports.open(domain, 0, 1);
    port->on_error = hook;
    port->on_error_self = &heard;
  }
  ports.tell_of_error({.domain = 7, .status = Errc::bounds});
  EXPECT_EQ(heard, 1);
  ports.tell_of_error({.domain = 9, .status = Errc::bounds});
  EXPECT_EQ(heard, 1);
  EXPECT_EQ(log.newest(), 2u);
}

}  // namespace
}  // namespace orrery::nic
