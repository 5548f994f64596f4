// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/target/execute.hpp"
#include "tests/emu/nic/message/datagram_world.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

// Datagrams with processes of other hosts, which are asked and answer when the test says so.
namespace orrery::nic {
namespace {

// The world as process 1 would see it if processes 2 and 3 lived on other hosts, which are asked by packets,
// and answer later.
struct FarAway {
  explicit FarAway(box::World& world) : world_(world) {}
  DatagramUnit::Hooks hooks() {
    return {.connect = [this](ProcessName process) -> Result<Peer*> {
              auto& peer = peers_[process.slot];
              if (!peer) peer = std::make_unique<Peer>(world_[1].connect(process).value(), 1);
              peer->link.by_wire = process.slot >= 2;
              if (auto now = std::exchange(when_connected, nullptr)) now();
              return peer.get();
            },
            .send =
                [this](Peer&, const wire::PacketHeader&, std::span<const std::byte>, const Completion& told) {
                  asked.push_back(DatagramUnit::post_of(told));
                  return Errc::not_done;
                },
            .is_cut = [](std::uint32_t, std::uint32_t) { return false; },
            .progress = [] {}};
  }
  // A post, bound to a port of process 1, comes here.
  Errc comes(DatagramUnit& unit, std::uint16_t domain = 7, std::uint32_t instance = 1,
             wire::ProcessSlot from = 3) {
    wire::PacketHeader header;
    header.verb = wire::Verb::datagram;
    header.command = static_cast<std::uint8_t>(DatagramCommand::bound);
    header.source = from;
    header.domain = domain;
    header.event_data = port_word(from, from);
    header.operand[0] = port_word(1, instance);
    DatagramReply reply;
    unit.note_source(header);
    return execute({world_[1].nic().view(), nullptr}, header, {},
                   std::span(reinterpret_cast<std::byte*>(&reply), sizeof reply));
  }

  // From each of two processes.
  void two_come(DatagramUnit& unit) {
    for (const wire::ProcessSlot from : {wire::ProcessSlot{2}, wire::ProcessSlot{3}})
      EXPECT_EQ(comes(unit, 7, 1, from), Errc::not_done);
  }

  std::vector<DatagramName> asked;
  // Called once, the next time that a thread is about to ask.
  std::function<void()> when_connected;

 private:
  box::World& world_;
  std::map<wire::ProcessSlot, std::unique_ptr<Peer>> peers_;
};

TEST_F(Datagrams, AYoungerWildcardDoesNotAskWhereAnOlderOneHasJustBeenToldThatThereIsNothing) {
  FarAway far(world);
  DatagramUnit unit(world[1], world[1].nic().view(), far.hooks());
  EXPECT_EQ(far.comes(unit), Errc::not_done);
  const auto older = wildcard(1);
  const auto younger = wildcard(1);
  ASSERT_EQ(unit.post(*older, {}, 70, a.in), Errc::ok);
  ASSERT_EQ(unit.post(*younger, {}, 71, b.in), Errc::ok);
  ASSERT_EQ(far.asked.size(), 1u) << "the younger one waits for its turn";
  EXPECT_EQ(far.comes(unit), Errc::no_resource) << "nor is it met in the older one's place";
  unit.exchanged(far.asked[0], Errc::not_done, {});
  std::uint64_t name = 0;
  EXPECT_EQ(unit.probe_named(world[1].port(), &name), Errc::no_match);
  EXPECT_EQ(far.asked.size(), 1u) << "it would be given what is posted there from now on";
  EXPECT_EQ(far.comes(unit), Errc::ok);
  ASSERT_EQ(unit.probe_named(world[1].port(), &name), Errc::ok);
  EXPECT_EQ(name, 70u);
}

TEST_F(Datagrams, WhoWaitsForAYoungerWildcardAloneMovesTheOlderOneAlong) {
  FarAway far(world);
  DatagramUnit unit(world[1], world[1].nic().view(), far.hooks());
  far.two_come(unit);
  const auto older = wildcard(1);
  const auto younger = wildcard(1);
  ASSERT_EQ(unit.post(*older, {}, 70, a.in), Errc::ok);
  ASSERT_EQ(unit.post(*younger, {}, 71, b.in), Errc::ok);
  ASSERT_EQ(far.asked.size(), 1u);
  unit.exchanged(far.asked.back(), Errc::not_done, {});
  DatagramOutcome outcome;
  ASSERT_EQ(unit.test(*younger, 71, &outcome), Errc::ok);
  ASSERT_EQ(far.asked.size(), 2u) << "the older one asks the other process";
  EXPECT_EQ(far.asked.back().index, far.asked.front().index);
  unit.exchanged(far.asked.back(), Errc::ok, {});
  ASSERT_EQ(unit.test(*younger, 71, &outcome), Errc::ok);
  ASSERT_EQ(far.asked.size(), 3u) << "its turn";
  EXPECT_NE(far.asked.back().index, far.asked.front().index);
}

TEST_F(Datagrams, AWildcardForgetsWhomItWantedToAskWhenAnOlderOneWasToldMeanwhileThatThereIsNothing) {
  FarAway far(world);
  DatagramUnit unit(world[1], world[1].nic().view(), far.hooks());
  const auto older = wildcard(1);
  const auto younger = wildcard(1);
  ASSERT_EQ(unit.post(*older, {}, 70, a.in), Errc::ok);
  // A neighbour exchanges the older one while others make posts.
  auto& word = at(1, 0).word;
  word.store(post_word::claimed(word.load(), 0, 0));
  for (const wire::ProcessSlot from : {wire::ProcessSlot{2}, wire::ProcessSlot{3}})
    EXPECT_EQ(far.comes(unit, 7, 1, from), Errc::no_resource);
  ASSERT_EQ(unit.post(*younger, {}, 71, b.in), Errc::ok);
  ASSERT_EQ(far.asked.size(), 1u) << "one of the two";
  unit.exchanged(far.asked.back(), Errc::not_done, {});
  // It dies; the older one asks the other.
  world.kill(0);
  std::uint64_t name = 0;
  EXPECT_EQ(unit.probe_named(world[1].port(), &name), Errc::no_match);
  ASSERT_EQ(far.asked.size(), 2u);
  EXPECT_EQ(far.asked.back().index, 0u);
  unit.exchanged(far.asked.back(), Errc::not_done, {});
  EXPECT_EQ(unit.probe_named(world[1].port(), &name), Errc::no_match);
  EXPECT_EQ(far.asked.size(), 2u);
}

TEST_F(Datagrams, ThatAPortWasToldThatThereIsNothingSaysNothingOfOtherPorts) {
  FarAway far(world);
  DatagramUnit unit(world[1], world[1].nic().view(), far.hooks());
  EXPECT_EQ(far.comes(unit), Errc::not_done);
  EXPECT_EQ(far.comes(unit, 7, 2), Errc::not_done);
  EXPECT_EQ(far.comes(unit, 9, 1), Errc::not_done);
  const auto any = wildcard(1);
  ASSERT_EQ(unit.post(*any, {}, 70, a.in), Errc::ok);
  ASSERT_EQ(far.asked.size(), 1u);
  unit.exchanged(far.asked[0], Errc::not_done, {});
  std::size_t asked = 1;
  for (Port* const other : {world[1].nic().open_port(7, 1, 2), world[1].nic().open_port(9, 1, 1)}) {
    auto later = wildcard(1);
    later->port = other;
    ASSERT_EQ(unit.post(*later, {}, 71, b.in), Errc::ok);
    ASSERT_EQ(far.asked.size(), ++asked) << "its bound post still waits there";
    unit.exchanged(far.asked.back(), Errc::not_done, {});
  }
}

TEST_F(Datagrams, PostsToPortsThatNobodyHasAreNotRememberedOneByOne) {
  FarAway far(world);
  DatagramUnit unit(world[1], world[1].nic().view(), far.hooks());
  for (std::uint32_t instance = 1; instance <= 10'000; ++instance)
    EXPECT_EQ(far.comes(unit, 7, instance, 3), Errc::not_done);
  EXPECT_EQ(unit.sources_for_test(), 0u);
  const auto any = wildcard(1);
  ASSERT_EQ(unit.post(*any, {}, 70, a.in), Errc::ok);
  ASSERT_EQ(far.asked.size(), 1u) << "one of them was to this port";
  unit.exchanged(far.asked[0], Errc::not_done, {});
  EXPECT_EQ(unit.sources_for_test(), 0u);
  // From now on the port's are its own.
  const auto later = wildcard(1);
  ASSERT_EQ(unit.post(*later, {}, 71, b.in), Errc::ok);
  EXPECT_EQ(far.asked.size(), 1u);
  for (std::uint32_t instance = 1; instance <= 10'000; ++instance) (void)far.comes(unit, 7, instance, 3);
  EXPECT_EQ(unit.sources_for_test(), 1u);
}

// One thread is on its way to ask for the older one, another one comes with the younger.
TEST_F(Datagrams, AWildcardDoesNotAskBeforeAnOlderOneThatAnotherThreadIsAt) {
  FarAway far(world);
  DatagramUnit unit(world[1], world[1].nic().view(), far.hooks());
  far.two_come(unit);
  const auto older = wildcard(1);
  const auto younger = wildcard(1);
  const auto youngest = wildcard(1);
  const auto meanwhile = [&](Endpoint& endpoint, std::uint64_t name, Mail& mail) {
    far.when_connected = [&unit, &endpoint, name, &mail] {
      std::thread([&] { EXPECT_EQ(unit.post(endpoint, {}, name, mail.in), Errc::ok); }).join();
    };
  };
  meanwhile(*younger, 71, b);
  ASSERT_EQ(unit.post(*older, {}, 70, a.in), Errc::ok);
  ASSERT_EQ(far.asked.size(), 1u);
  EXPECT_EQ(far.asked[0].index, 0u) << "the older one asks";
  // The same when it looks again.
  unit.exchanged(far.asked[0], Errc::not_done, {});
  meanwhile(*youngest, 72, c);
  std::uint64_t name = 0;
  EXPECT_EQ(unit.probe_named(world[1].port(), &name), Errc::no_match);
  ASSERT_EQ(far.asked.size(), 2u);
  EXPECT_EQ(far.asked[1].index, 0u);
  // It is served; then the others have their turn.
  unit.exchanged(far.asked[1], Errc::ok, {});
  ASSERT_EQ(unit.probe_named(world[1].port(), &name), Errc::ok);
  EXPECT_EQ(name, 70u);
  ASSERT_EQ(far.asked.size(), 3u);
  EXPECT_EQ(far.asked[2].index, 1u);
}

// A neighbour's post that found the oldest wildcard asking waits for it: one that is posted meanwhile must
// not take it.
TEST_F(Datagrams, AWildcardMeetsNobodyWhileAnOlderOneAsks) {
  FarAway far(world);
  DatagramUnit unit(world[1], world[1].nic().view(), far.hooks());
  EXPECT_EQ(far.comes(unit), Errc::not_done);
  const auto older = wildcard(1);
  ASSERT_EQ(unit.post(*older, {}, 70, a.in), Errc::ok);
  ASSERT_EQ(far.asked.size(), 1u);
  const auto there = bound(0, 1);
  ASSERT_EQ(post(0, *there, 5, c), Errc::ok);
  EXPECT_EQ(test(0, *there).status, DatagramStatus::pending);
  const auto younger = wildcard(1);
  ASSERT_EQ(unit.post(*younger, {}, 71, b.in), Errc::ok);
  std::uint64_t name = 0;
  EXPECT_EQ(unit.probe_named(world[1].port(), &name), Errc::no_match);
  unit.exchanged(far.asked[0], Errc::not_done, {});
  EXPECT_EQ(test(0, *there).status, DatagramStatus::completed);
  ASSERT_EQ(unit.probe_named(world[1].port(), &name), Errc::ok);
  EXPECT_EQ(name, 70u);
}

}  // namespace
}  // namespace orrery::nic
