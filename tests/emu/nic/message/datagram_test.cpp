// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/target/execute.hpp"
#include "tests/emu/nic/gate/fake_clock.hpp"
#include "tests/emu/nic/message/datagram_world.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <set>
#include <thread>
#include <utility>

// Datagrams between NICs of one process.
namespace orrery::nic {
namespace {

TEST_F(Datagrams, TheSecondPostOfABoundPairExchangesBoth) {
  const auto there = bound(0, 1);
  const auto back = bound(1, 0);
  ASSERT_EQ(post(0, *there, 11, a), Errc::ok);
  EXPECT_EQ(test(0, *there).status, DatagramStatus::pending);
  ASSERT_EQ(post(1, *back, 22, b), Errc::ok);
  // The first one's process did nothing for it.
  EXPECT_EQ(post_word::state(at(0, 0).word.load()), PostState::completed);
  expect_met(0, *there, 1, a, 22);
  expect_met(1, *back, 0, b, 11);
}

TEST_F(Datagrams, OneBoundBackIsPreferredToAWildcardThatWaitsLonger) {
  const auto any = wildcard(1);
  const auto back = bound(1, 0);
  const auto there = bound(0, 1);
  ASSERT_EQ(post(1, *any, 1, a), Errc::ok);
  ASSERT_EQ(post(1, *back, 2, b), Errc::ok);
  ASSERT_EQ(post(0, *there, 3, c), Errc::ok);
  expect_met(0, *there, 1, c, 2);
  expect_met(1, *back, 0, b, 3);
  EXPECT_EQ(test(1, *any).status, DatagramStatus::pending);
}

TEST_F(Datagrams, AWildcardThatComesLaterFindsWhoeverWaits) {
  const auto from_0 = bound(0, 1);
  const auto from_2 = bound(2, 1);
  ASSERT_EQ(post(0, *from_0, 10, a), Errc::ok);
  ASSERT_EQ(post(2, *from_2, 12, b), Errc::ok);
  const auto any = wildcard(1);
  const auto more = wildcard(1);
  ASSERT_EQ(post(1, *any, 1, c), Errc::ok);
  ASSERT_EQ(post(1, *more, 2, d), Errc::ok);
  expect_met(0, *from_0, 1, a, 1);
  expect_met(2, *from_2, 1, b, 2);
  expect_met(1, *any, 0, c, 10);
  expect_met(1, *more, 2, d, 12);
}

struct FakeTime {
  box::FakeClock clock;
};
class DatagramsUnderAClock : private FakeTime, public Datagrams {
 protected:
  DatagramsUnderAClock() : Datagrams(&clock) {}
  using FakeTime::clock;
};

// Slots are taken in whatever order the host starts processes: a run would not be like another.
TEST_F(DatagramsUnderAClock, AWildcardFindsThoseThatWaitInTheOrderOfTheClocksNumbers) {
  clock.turned_round = true;
  const auto from_0 = bound(0, 1);
  const auto from_2 = bound(2, 1);
  ASSERT_EQ(post(0, *from_0, 10, a), Errc::ok);
  ASSERT_EQ(post(2, *from_2, 12, b), Errc::ok);
  const auto any = wildcard(1);
  const auto more = wildcard(1);
  ASSERT_EQ(post(1, *any, 1, c), Errc::ok);
  ASSERT_EQ(post(1, *more, 2, d), Errc::ok);
  expect_met(1, *any, 2, c, 12);
  expect_met(1, *more, 0, d, 10);
}

TEST_F(Datagrams, AnotherDomainIsNeverMet) {
  Port* const stranger = world[1].nic().open_port(9, 1, 1);
  auto any = std::make_unique<Endpoint>();
  any->port = stranger;
  const auto there = bound(0, 1);
  ASSERT_EQ(post(1, *any, 1, a), Errc::ok);
  ASSERT_EQ(post(0, *there, 2, b), Errc::ok);
  EXPECT_EQ(test(1, *any).status, DatagramStatus::pending);
  EXPECT_EQ(test(0, *there).status, DatagramStatus::pending);
}

TEST_F(Datagrams, APostToSomebodyWhoAttachesLaterIsLookedAtAgain) {
  world[1].attached = false;
  const auto there = bound(0, 1);
  ASSERT_EQ(post(0, *there, 1, a), Errc::ok);
  const auto any = wildcard(1);
  ASSERT_EQ(post(1, *any, 2, b), Errc::ok);
  EXPECT_EQ(test(0, *there).status, DatagramStatus::pending);
  world[1].attached = true;
  expect_met(0, *there, 1, a, 2);
  expect_met(1, *any, 0, b, 1);
}

TEST_F(Datagrams, PostsToTheDeadFailAndWildcardsWaitOn) {
  const auto there = bound(0, 1);
  const auto any = wildcard(0);
  ASSERT_EQ(post(0, *there, 1, a), Errc::ok);
  ASSERT_EQ(post(0, *any, 2, b), Errc::ok);
  world.kill(1);
  EXPECT_EQ(test(0, *there).status, DatagramStatus::failed);
  EXPECT_EQ(test(0, *any).status, DatagramStatus::pending);
  ASSERT_EQ(post(0, *there, 3, a), Errc::ok);
  EXPECT_EQ(test(0, *there).status, DatagramStatus::failed) << "no process lives there any more";
  // Its successor is met.
  world.revive(1);
  ASSERT_EQ(post(0, *there, 4, a), Errc::ok);
  const auto back = bound(1, 0);
  ASSERT_EQ(post(1, *back, 5, c), Errc::ok);
  expect_met(0, *there, 1, a, 5);
  expect_met(1, *back, 0, c, 4);
}

TEST_F(Datagrams, AClaimOfTheDeadIsTakenBack) {
  const auto any = wildcard(0);
  ASSERT_EQ(post(0, *any, 1, a), Errc::ok);
  // Process 1 claims it and dies.
  auto& word = at(0, 0).word;
  word.store(post_word::claimed(word.load(), 1, 0));
  EXPECT_EQ(test(0, *any).status, DatagramStatus::remote_data);
  world.kill(1);
  EXPECT_EQ(test(0, *any).status, DatagramStatus::pending);
  // A third one need not wait for the owner to notice.
  word.store(post_word::claimed(word.load(), 1, 0));
  const auto there = bound(2, 0);
  ASSERT_EQ(post(2, *there, 7, b), Errc::ok);
  expect_met(2, *there, 0, b, 1);
  expect_met(0, *any, 2, a, 7);
}

TEST_F(Datagrams, ASomebodyWhoStopsInAnExchangeHoldsUpNobodyElse) {
  const auto any = wildcard(0);
  const auto other = wildcard(0);
  ASSERT_EQ(post(0, *any, 1, a), Errc::ok);
  ASSERT_EQ(post(0, *other, 2, b), Errc::ok);
  auto& word = at(0, 0).word;
  const std::uint64_t pending = word.load();
  word.store(post_word::claimed(pending, 1, 0));  // process 1 lives, and does not go on
  const auto there = bound(2, 0);
  ASSERT_EQ(post(2, *there, 3, c), Errc::ok);
  expect_met(2, *there, 0, c, 2);
  expect_met(0, *other, 2, b, 3);
  DatagramUnit& unit = world[0].nic().datagrams();
  EXPECT_EQ(unit.cancel(*any, std::nullopt), Errc::no_match) << "theirs until they go on";
  EXPECT_TRUE(unit.is_busy(*any));
  // No other post is there: the next one waits, and is looked at again once process 1 has released it.
  ASSERT_EQ(post(2, *there, 4, c), Errc::ok);
  EXPECT_EQ(test(2, *there).status, DatagramStatus::pending);
  word.store(pending);
  expect_met(2, *there, 0, c, 1);
  expect_met(0, *any, 2, a, 4);
}

TEST_F(Datagrams, APostThatWasDroppedWhileSomebodyWasAtItIsUsedAgainAfterwards) {
  auto any = wildcard(0);
  ASSERT_EQ(post(0, *any, 1, a), Errc::ok);
  auto& word = at(0, 0).word;
  word.store(post_word::claimed(word.load(), 1, 0));
  world[0].nic().datagrams().forget(*any);
  EXPECT_EQ(any->datagram.load(), 0u);
  ASSERT_EQ(post(0, *any, 2, a), Errc::ok);
  EXPECT_EQ(any->datagram.load(), 2u) << "another place";
  world[0].nic().datagrams().forget(*any);
  world.kill(1);
  ASSERT_EQ(post(0, *any, 3, a), Errc::ok);
  const auto more = wildcard(0);
  ASSERT_EQ(post(0, *more, 4, b), Errc::ok);
  EXPECT_EQ(datagrams_of(world[0].nic().view()).count.load(), 2u);
}

TEST_F(Datagrams, AnEndpointHasOnePostAndAPeerIsPostedToOnce) {
  const auto there = bound(0, 1);
  const auto second = bound(0, 1);
  ASSERT_EQ(post(0, *there, 1, a), Errc::ok);
  EXPECT_EQ(post(0, *there, 2, b), Errc::no_resource);
  EXPECT_EQ(post(0, *second, 2, b), Errc::no_resource);
  ASSERT_EQ(world[0].nic().datagrams().cancel(*there, std::nullopt), Errc::ok);
  ASSERT_EQ(post(0, *second, 3, b), Errc::ok) << "the first has ended, if not been taken";
  EXPECT_EQ(test(0, *there).status, DatagramStatus::terminated);
}

TEST_F(Datagrams, NoMoreThanTheTableHolds) {
  std::vector<std::unique_ptr<Endpoint>> many;
  for (std::uint32_t i = 0; i < kMaxDatagrams; ++i) {
    many.push_back(wildcard(0));
    ASSERT_EQ(post(0, *many.back(), i, a), Errc::ok);
  }
  const auto more = wildcard(0);
  EXPECT_EQ(post(0, *more, 1, b), Errc::no_resource);
  world[0].nic().datagrams().forget(*many.back());
  EXPECT_EQ(post(0, *more, 1, b), Errc::ok);
}

// The packet that another wire would carry does what the neighbour's processor does.
TEST_F(Datagrams, APacketIsAppliedLikeThePostThatItDescribes) {
  const auto any = wildcard(1);
  ASSERT_EQ(post(1, *any, 5, a), Errc::ok);
  wire::PacketHeader header;
  header.verb = wire::Verb::datagram;
  header.command = static_cast<std::uint8_t>(DatagramCommand::bound);
  header.domain = 7;
  header.event_data = port_word(30, 31);
  header.operand[0] = port_word(1, 1);
  const std::uint64_t value = 99;
  DatagramReply reply;
  std::span<std::byte> out(reinterpret_cast<std::byte*>(&reply), sizeof reply);
  const Target target{world[1].nic().view(), nullptr};
  const auto payload = std::as_bytes(std::span(&value, 1));
  header.domain = 8;
  EXPECT_EQ(execute(target, header, payload, out), Errc::not_done) << "another domain";
  header.domain = 7;
  header.command = 9;
  EXPECT_EQ(execute(target, header, payload, out), Errc::illegal_op);
  header.command = static_cast<std::uint8_t>(DatagramCommand::bound);
  const std::array<std::byte, 129> too_long{};
  EXPECT_EQ(execute(target, header, too_long, out), Errc::size);
  EXPECT_EQ(execute(target, header, payload, out.first(8)), Errc::size);
  EXPECT_EQ(execute(target, header, payload, out), Errc::ok);
  EXPECT_EQ(reply.partner, port_word(1, 1));
  EXPECT_EQ(reply.bytes, 8u);
  const DatagramOutcome outcome = test(1, *any);
  EXPECT_EQ(outcome.status, DatagramStatus::completed);
  EXPECT_EQ(outcome.remote_address, 30u);
  EXPECT_EQ(outcome.remote_instance, 31u);
  EXPECT_EQ(a.value(), 99u);
  EXPECT_EQ(execute(target, header, payload, out), Errc::not_done) << "it was taken";
}

// Two posts end, the older one first, after a probe has looked at the older one and before it has looked at
// the younger one: what it finds must not be the younger one.
TEST_F(Datagrams, AProbeFindsTheOldestOfThoseThatEndWhileItLooks) {
  const auto any = wildcard(1);
  const auto back = bound(1, 2);
  const auto end_both = [&] {
    wire::PacketHeader header;
    header.verb = wire::Verb::datagram;
    header.command = static_cast<std::uint8_t>(DatagramCommand::bound);
    header.domain = 7;
    header.operand[0] = port_word(1, 1);
    DatagramReply reply;
    std::span<std::byte> out(reinterpret_cast<std::byte*>(&reply), sizeof reply);
    for (const std::uint32_t from : {0u, 2u}) {
      header.event_data = port_word(from, from);
      EXPECT_EQ(execute({world[1].nic().view(), nullptr}, header, {}, out), Errc::ok);
    }
  };
  bool looking = false;
  DatagramUnit unit(world[1], world[1].nic().view(),
                    {.connect = [](ProcessName) -> Result<Peer*> { return Errc::unreachable; },
                     .send = {},
                     .is_cut =
                         [&](std::uint32_t, std::uint32_t) {
                           // It is looking at the younger one.
                           if (std::exchange(looking, false)) end_both();
                           return false;
                         },
                     .progress = [] {}});
  world[2].attached = false;
  const std::uint64_t value = 5;
  ASSERT_EQ(unit.post(*any, std::as_bytes(std::span(&value, 1)), 70, a.in), Errc::ok);
  ASSERT_EQ(unit.post(*back, std::as_bytes(std::span(&value, 1)), 71, b.in), Errc::ok);
  std::uint64_t name = 0;
  EXPECT_EQ(unit.probe_named(world[1].port(), &name), Errc::no_match);
  world[2].attached = true;
  looking = true;
  ASSERT_EQ(unit.probe_named(world[1].port(), &name), Errc::ok);
  EXPECT_FALSE(looking) << "both ended meanwhile";
  EXPECT_EQ(name, 70u);
}

// Two threads of one process look at the same post: one of them has it, and the table stays whole.
TEST_F(Datagrams, OfTwoThreadsThatLookAtAPostOneTakesIt) {
  constexpr int kRounds = 300;
  const auto there = bound(0, 1);
  const auto back = bound(1, 0);
  DatagramUnit& unit = world[0].nic().datagrams();
  std::atomic<int> round{0};
  std::atomic<int> looked{0};
  std::atomic<int> taken{0};
  const auto take_once = [&] {
    for (;;) {
      DatagramOutcome outcome;
      const Errc found = unit.test(*there, 7, &outcome);
      if (found == Errc::no_match) return;
      if (found == Errc::ok && outcome.status == DatagramStatus::completed) ++taken;
    }
  };
  std::thread other([&] {
    for (int r = 1; r <= kRounds; ++r) {
      while (round.load() < r) std::this_thread::yield();
      take_once();
      looked.store(r);
    }
  });
  for (int r = 1; r <= kRounds; ++r) {
    EXPECT_EQ(post(0, *there, 1, a, 7), Errc::ok);
    round.store(r);
    EXPECT_EQ(post(1, *back, 2, b), Errc::ok);
    take_once();
    while (looked.load() < r) std::this_thread::yield();
    (void)test(1, *back);
  }
  other.join();
  EXPECT_EQ(taken.load(), kRounds);
  // Each place is given out once.
  std::array<std::unique_ptr<Endpoint>, 4> any;
  std::set<std::uint32_t> places;
  for (auto& one : any) {
    one = wildcard(0);
    EXPECT_EQ(post(0, *one, 3, c), Errc::ok);
    places.insert(one->datagram.load());
  }
  EXPECT_EQ(places.size(), any.size());
}

// All post to all at once, over and over: every exchange pairs two posts that name each other,
// and every value arrives once.
TEST_F(Datagrams, ThreadsOfFourProcessesMeetInPairs) {
  constexpr std::uint64_t kRounds = 400;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int self = 0; self < 4; ++self) {
    threads.emplace_back([&, self] {
      DatagramUnit& unit = world[self].nic().datagrams();
      std::array<std::unique_ptr<Endpoint>, 4> to;
      std::array<Mail, 4> mail;
      for (int peer = 0; peer < 4; ++peer) to[static_cast<std::size_t>(peer)] = bound(self, peer);
      for (std::uint64_t round = 0; round < kRounds; ++round) {
        for (int peer = 0; peer < 4; ++peer) {
          if (peer == self) continue;
          const auto i = static_cast<std::size_t>(peer);
          const std::uint64_t value = round << 8 | static_cast<std::uint64_t>(self << 4 | peer);
          if (unit.post(*to[i], std::as_bytes(std::span(&value, 1)), std::nullopt, mail[i].in) != Errc::ok)
            ++wrong;
        }
        for (int peer = 0; peer < 4; ++peer) {
          if (peer == self) continue;
          const auto i = static_cast<std::size_t>(peer);
          DatagramOutcome outcome;
          if (unit.wait(*to[i], std::nullopt, std::nullopt, &outcome) != Errc::ok ||
              outcome.status != DatagramStatus::completed ||
              mail[i].value() != (round << 8 | static_cast<std::uint64_t>(peer << 4 | self)))
            ++wrong;
        }
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

// One process serves with several wildcards, the others come and come.
TEST_F(Datagrams, ThreadsOfThreeProcessesAreServedByWildcards) {
  constexpr std::uint64_t kRounds = 400;
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int self = 1; self < 4; ++self) {
    threads.emplace_back([&, self] {
      DatagramUnit& unit = world[self].nic().datagrams();
      const auto server = bound(self, 0);
      Mail mail;
      for (std::uint64_t round = 0; round < kRounds; ++round) {
        const std::uint64_t value = round << 8 | static_cast<std::uint64_t>(self);
        DatagramOutcome outcome;
        if (unit.post(*server, std::as_bytes(std::span(&value, 1)), std::nullopt, mail.in) != Errc::ok ||
            unit.wait(*server, std::nullopt, std::nullopt, &outcome) != Errc::ok ||
            outcome.status != DatagramStatus::completed || outcome.remote_instance != 0)
          ++wrong;
      }
    });
  }
  DatagramUnit& unit = world[0].nic().datagrams();
  std::array<std::unique_ptr<Endpoint>, 2> any{wildcard(0), wildcard(0)};
  std::array<Mail, 2> mail;
  std::array<std::vector<int>, 4> seen;  // a wildcard that is looked at first may have been met second
  for (auto& rounds : seen) rounds.resize(kRounds);
  for (std::uint64_t served = 0; served < 3 * kRounds;) {
    for (std::size_t i = 0; i < any.size(); ++i) {
      DatagramOutcome outcome;
      const std::uint64_t value = served;
      if (any[i]->datagram.load() == 0 &&
          unit.post(*any[i], std::as_bytes(std::span(&value, 1)), std::nullopt, mail[i].in) != Errc::ok)
        ++wrong;
      if (unit.test(*any[i], std::nullopt, &outcome) != Errc::ok) ++wrong;
      if (outcome.status != DatagramStatus::completed) continue;
      const auto who = outcome.remote_instance;
      const std::uint64_t round = mail[i].value() >> 8;
      if (who < 1 || who > 3 || (mail[i].value() & 0xff) != who || round >= kRounds ||
          seen[who][round]++ != 0)
        ++wrong;
      ++served;
    }
    yield_cpu();
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace orrery::nic
