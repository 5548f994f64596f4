// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/gate/fault.hpp"

#include "emu/nic/message/message.hpp"
#include "emu/nic/target/amo_unit.hpp"
#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

// Faults that were asked for, on every path.
namespace orrery::nic {
namespace {

using box::Path;
using box::World;

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

Nic::Options with_faults(const std::string& words) {
  std::string why;
  Nic::Options options;
  options.faults = parse_faults(words, &why).value();
  options.fault_pe = 0;
  return options;
}

// Node 0 posts to node 1.
struct Pair {
  Pair(Path path, const std::string& faults) : world(2, path, with_faults(faults)), target(64), source(64) {
    local = world[0].nic().create_queue(64, 0).value();
    remote = world[1].nic().create_queue(64, 0).value();
    key = world[1].nic().register_region(world[1].port(), address_of(target.data()), 512, 0, remote).value();
    endpoint = world.endpoint(0, 1, local);
  }
  ~Pair() { EXPECT_TRUE(world.settle(0, *endpoint)); }
  Request put(std::uint64_t value, std::size_t at, std::uint32_t flags = kGlobalEvent) {
    source[at] = value;
    return box::put_word(&source[at], &target[at], key, flags);
  }
  Errc post(const Request& request) { return world[0].nic().post(*endpoint, request); }
  // What the next completion says; not_done: none came.
  Errc outcome() {
    Event event;
    for (int i = 0; i < 2000; ++i) {
      const Errc found = world[0].nic().poll(*local, &event);
      if (found == Errc::ok) {
        (void)local->completed(event.transaction(), event.status);
        return event.status;
      }
      world.serve_all();
    }
    return Errc::not_done;
  }
  Errc put_and_wait(std::uint64_t value, std::size_t at, std::uint32_t flags = kGlobalEvent) {
    const Errc posted = post(put(value, at, flags));
    return posted == Errc::ok ? outcome() : posted;
  }
  const FaultCounters& counters() { return error_state(world[0].nic().view()).faults; }
  World world;
  std::vector<std::uint64_t> target;
  std::vector<std::uint64_t> source;
  CompletionQueue* local = nullptr;
  CompletionQueue* remote = nullptr;
  MemKey key;
  std::unique_ptr<Endpoint> endpoint;
};

class Faults : public ::testing::TestWithParam<Path> {};
INSTANTIATE_TEST_SUITE_P(Paths, Faults, ::testing::Values(Path::direct, Path::frame),
                         [](const auto& info) { return info.param == Path::direct ? "Direct" : "Frame"; });

TEST_P(Faults, OneOperationFailsAndNoOther) {
  struct Case {
    const char* words;
    Errc status;
    std::atomic<std::uint64_t> FaultCounters::*counter;
  };
  for (const Case& c : {Case{"drop=@3", Errc::timeout, &FaultCounters::dropped},
                        Case{"corrupt=@3", Errc::corrupt, &FaultCounters::corrupted}}) {
    Pair pair(GetParam(), c.words);
    const std::uint64_t before = pair.world[0].nic().errors().newest();
    for (std::size_t i = 1; i <= 6; ++i) {
      ASSERT_EQ(pair.put_and_wait(100 + i, i), i == 3 ? c.status : Errc::ok) << c.words << ", put " << i;
      EXPECT_EQ(pair.target[i], i == 3 ? 0 : 100 + i) << "what fails moves nothing";
    }
    EXPECT_EQ((pair.counters().*c.counter).load(), 1u);
    const auto event = pair.world[0].nic().errors().next(before);
    ASSERT_TRUE(event);
    EXPECT_EQ(event->status, c.status);
    EXPECT_EQ(event->nic_address, 1u);
    EXPECT_NE(event->transaction, UINT32_MAX);
    EXPECT_FALSE(event->corrected);
    EXPECT_EQ(pair.world[0].nic().errors().newest(), before + 1);
  }
}

TEST_P(Faults, EveryVerbMeetsThem) {
  Pair pair(GetParam(), "drop=1");
  Request request = pair.put(1, 1);
  for (const Op op : {Op::put, Op::get, Op::cq_write, Op::amo}) {
    request.op = op;
    request.command = amo::command(AmoOp::add, 0);
    ASSERT_EQ(pair.post(request), Errc::ok);
    EXPECT_EQ(pair.outcome(), Errc::timeout) << static_cast<int>(op);
  }
  std::array<ChainPart, 2> parts{ChainPart{pair.endpoint.get(), pair.put(5, 5, 0)},
                                 ChainPart{pair.endpoint.get(), pair.put(6, 6, 0)}};
  ASSERT_EQ(pair.world[0].nic().initiator().post_chain(*pair.endpoint, parts, kGlobalEvent, nullptr),
            Errc::ok);
  EXPECT_EQ(pair.outcome(), Errc::timeout);
  EXPECT_EQ(pair.target, std::vector<std::uint64_t>(64));
  EXPECT_EQ(pair.counters().dropped.load(), 6u);
}

TEST_P(Faults, ASilentOperationThatFailsIsReportedToo) {
  Pair pair(GetParam(), "corrupt=1");
  EXPECT_EQ(pair.put_and_wait(1, 1, 0), Errc::corrupt);
}

TEST_P(Faults, ARevokedHandleStaysRevokedUntilTheMemoryIsRegisteredAgain) {
  Pair pair(GetParam(), "revoke=@2");
  EXPECT_EQ(pair.put_and_wait(1, 1), Errc::ok);
  EXPECT_EQ(pair.put_and_wait(2, 2), Errc::invalid_handle);
  EXPECT_EQ(pair.put_and_wait(3, 3), Errc::invalid_handle);
  ASSERT_TRUE(pair.world[1].nic().deregister(pair.key).ok());
  pair.key = pair.world[1]
                 .nic()
                 .register_region(pair.world[1].port(), address_of(pair.target.data()), 512, 0, nullptr)
                 .value();
  EXPECT_EQ(pair.put_and_wait(4, 4), Errc::ok);
  EXPECT_EQ(pair.counters().revoked.load(), 2u);
}

TEST_P(Faults, ADeadNodeIsUnreachableFromItsTimeOn) {
  Pair pair(GetParam(), "dead=1@3");
  EXPECT_EQ(pair.put_and_wait(1, 1), Errc::ok);
  EXPECT_EQ(pair.put_and_wait(2, 2), Errc::ok);
  EXPECT_EQ(pair.put_and_wait(3, 3), Errc::unreachable);
  EXPECT_EQ(pair.put_and_wait(4, 4), Errc::unreachable);
  EXPECT_EQ(pair.target[2], 2u);
  EXPECT_EQ(pair.target[3], 0u);
}

TEST_P(Faults, NothingLeavesADeadNode) {
  Pair pair(GetParam(), "dead=0");
  EXPECT_EQ(pair.put_and_wait(1, 1), Errc::unreachable);
}

TEST_P(Faults, ALinkErrorIsRetriedAndOnlyCounted) {
  Pair pair(GetParam(), "link=0.3,seed=5");
  const std::uint64_t before = pair.world[0].nic().errors().newest();
  for (std::size_t i = 0; i < 60; ++i) ASSERT_EQ(pair.put_and_wait(i + 1, i), Errc::ok);
  const std::uint64_t errors = pair.counters().link_errors.load();
  EXPECT_GT(errors, 5u);
  EXPECT_LT(errors, 60u);
  EXPECT_EQ(pair.counters().links_failed.load(), 0u);
  const auto event = pair.world[0].nic().errors().next(before);
  ASSERT_TRUE(event);
  EXPECT_TRUE(event->corrected);
  for (std::size_t i = 0; i < 60; ++i) ASSERT_EQ(pair.target[i], i + 1);
}

TEST_P(Faults, ALinkThatNeverGetsAPacketThroughIsGivenUp) {
  Pair pair(GetParam(), "link=1");
  EXPECT_EQ(pair.put_and_wait(1, 1), Errc::unreachable);
  EXPECT_EQ(pair.counters().link_errors.load(), static_cast<std::uint64_t>(FaultUnit::kLinkTries));
  EXPECT_EQ(pair.counters().links_failed.load(), 1u);
}

TEST_P(Faults, TheSameSeedMeetsTheSameFaults) {
  const auto run = [](const std::string& words) {
    Pair pair(GetParam(), words);
    std::vector<Errc> outcomes;
    for (std::size_t i = 0; i < 60; ++i) outcomes.push_back(pair.put_and_wait(1, i));
    return outcomes;
  };
  const auto once = run("drop=0.2,corrupt=0.2,seed=11");
  EXPECT_EQ(run("drop=0.2,corrupt=0.2,seed=11"), once);
  EXPECT_NE(run("drop=0.2,corrupt=0.2,seed=12"), once);
  EXPECT_NE(std::count(once.begin(), once.end(), Errc::timeout), 0);
  EXPECT_NE(std::count(once.begin(), once.end(), Errc::corrupt), 0);
  EXPECT_NE(std::count(once.begin(), once.end(), Errc::ok), 0);
}

TEST_P(Faults, OnlyThePesThatAreNamedMeetThem) {
  Pair pair(GetParam(), "drop=1,pe=3");
  EXPECT_EQ(pair.put_and_wait(1, 1), Errc::ok);
}

// Nothing that is delayed is there before its time. What it looks like until then can only be seen by a
// thread that is not put aside for as long.
TEST_P(Faults, WhatIsDelayedComesLaterAndMayBeOvertakenUnlessTheOrderIsAsked) {
  Pair pair(GetParam(), "delay=@1:200ms");
  const std::int64_t begin = monotonic_ns();
  ASSERT_EQ(pair.post(pair.put(7, 1)), Errc::ok);
  pair.source[1] = 99;  // ours again
  const bool was_idle = pair.endpoint->is_idle();
  ASSERT_EQ(pair.post(pair.put(8, 2)), Errc::ok);
  EXPECT_EQ(pair.outcome(), Errc::ok) << "the second overtakes the first";
  const std::uint64_t first = pair.target[1];
  if (monotonic_ns() - begin < 200'000'000) {
    EXPECT_FALSE(was_idle);
    EXPECT_EQ(pair.target[2], 8u);
    EXPECT_EQ(first, 0u);
  }
  ASSERT_EQ(pair.post(pair.put(9, 1, kGlobalEvent | kInOrder)), Errc::ok);
  const std::int64_t deadline = monotonic_ns() + 20'000'000'000;
  Event event;
  for (int events = 0; events < 2 && monotonic_ns() < deadline;) {
    if (pair.world[0].nic().poll(*pair.local, &event) == Errc::ok) {
      (void)pair.local->completed(event.transaction(), event.status);
      EXPECT_EQ(event.status, Errc::ok);
      ++events;
    }
    pair.world.serve_all();
  }
  EXPECT_EQ(pair.target[1], 9u) << "the third stays behind the first";
  EXPECT_EQ(pair.counters().delayed.load(), 1u);
  EXPECT_TRUE(pair.endpoint->is_idle());
}

TEST_P(Faults, WhatIsDelayedKeepsTheQueueThatItWasPostedWith) {
  Pair pair(GetParam(), "delay=@1:1us");
  Nic& nic = pair.world[0].nic();
  CompletionQueue* const other = nic.create_queue(8, 0).value();
  other->become_source();
  pair.endpoint->queue = other;
  ASSERT_EQ(pair.post(pair.put(7, 1)), Errc::ok);
  pair.endpoint->queue = pair.local;
  EXPECT_EQ(nic.destroy_queue(other).code(), Errc::no_resource) << "no thread has looked whether it is due";
  ASSERT_TRUE(pair.world.settle(0, *pair.endpoint));
  Event event;
  EXPECT_EQ(other->take(&event), Errc::ok);
  EXPECT_TRUE(nic.destroy_queue(other).ok());
}

// What is short when it is posted goes to the engine when its time comes, because a frame is under way then.
TEST_P(Faults, ADelayedBlockTransferThatGoesToTheEngineSendsItsOwnBytes) {
  Pair pair(GetParam(), "delay=@1:1us");
  ASSERT_EQ(pair.post(pair.put(7, 1, kGlobalEvent | kBlockTransfer | kFence)), Errc::ok);
  ASSERT_EQ(pair.post(pair.put(8, 2)), Errc::ok);
  const std::int64_t deadline = monotonic_ns() + 20'000'000'000;
  for (int ended = 0; ended < 2 && monotonic_ns() < deadline;) {
    const Errc outcome = pair.outcome();
    if (outcome == Errc::not_done) continue;  // the engine's thread has not come to it
    EXPECT_EQ(outcome, Errc::ok);
    ++ended;
  }
  EXPECT_EQ(pair.target[1], 7u);
  EXPECT_EQ(pair.target[2], 8u);
}

TEST_P(Faults, ADelayedGetAndAmoBringTheirValue) {
  Pair pair(GetParam(), "delay=1:1us");
  pair.target[4] = 40;
  Request request = pair.put(0, 4);
  request.op = Op::get;
  ASSERT_EQ(pair.post(request), Errc::ok);
  ASSERT_EQ(pair.outcome(), Errc::ok);
  EXPECT_EQ(pair.source[4], 40u);
  request.op = Op::amo;
  request.command = amo::command(AmoOp::add, kAmoFetch);
  request.operand[0] = 2;
  pair.source[4] = 0;
  ASSERT_EQ(pair.post(request), Errc::ok);
  ASSERT_EQ(pair.outcome(), Errc::ok);
  EXPECT_EQ(pair.source[4], 40u);
  EXPECT_EQ(pair.target[4], 42u);
}

TEST_P(Faults, AChainWhosePartsAreDelayedEndsOnce) {
  Pair pair(GetParam(), "delay=1:1us");
  std::array<ChainPart, 2> parts{ChainPart{pair.endpoint.get(), pair.put(5, 5, 0)},
                                 ChainPart{pair.endpoint.get(), pair.put(6, 6, 0)}};
  ASSERT_EQ(pair.world[0].nic().initiator().post_chain(*pair.endpoint, parts, kGlobalEvent, nullptr),
            Errc::ok);
  EXPECT_EQ(pair.outcome(), Errc::ok);
  EXPECT_EQ(pair.target[5], 5u);
  EXPECT_EQ(pair.target[6], 6u);
  EXPECT_EQ(pair.outcome(), Errc::not_done);
}

TEST_P(Faults, DatagramsDoNotReachADeadNode) {
  Pair pair(GetParam(), "dead=1");
  auto mine = pair.world.endpoint(0, 1, nullptr);
  const std::array<std::byte, 4> data{};
  std::array<std::byte, 4> buffer{};
  DatagramUnit& unit = pair.world[0].nic().datagrams();
  ASSERT_EQ(unit.post(*mine, data, {}, buffer), Errc::ok);
  DatagramOutcome outcome;
  ASSERT_EQ(unit.test(*mine, {}, &outcome), Errc::ok);
  EXPECT_EQ(outcome.status, DatagramStatus::failed);
}

// ---- messages ----

struct Mail : Pair {
  static constexpr MailboxShape kShape{.credits = 4, .max_bytes = 64};
  Mail(Path path, const std::string& faults, bool sends_again) : Pair(path, faults), boxes(8192) {
    for (int i = 0; i < 2; ++i) {
      const auto at = address_of(boxes.data()) + static_cast<std::uint64_t>(i) * 4096;
      places[i] = {.key = world[i].nic().register_region(world[i].port(), at, 2048, 0, nullptr).value(),
                   .address = at};
    }
    back = world.endpoint(1, 0, nullptr);
    open(0, *endpoint, sends_again);
    open(1, *back, sends_again);
  }
  void open(int i, Endpoint& ep, bool sends_again) {
    EXPECT_EQ(world[i].nic().messages().open(ep, kShape, places[i], places[1 - i]), Errc::ok);
    ep.mailbox->sends_again = sends_again;
  }
  Errc send(std::uint64_t value) {
    return send_message(world[0].nic(), *endpoint, std::as_bytes(std::span(&value, 1)), {}, {});
  }
  Errc receive(std::uint64_t* value) {
    ReceivedMessage message;
    Errc found = Errc::not_done;
    for (int i = 0; i < 2000 && found == Errc::not_done; ++i) {
      world.serve_all();
      found = next_message(world[1].nic(), *back, kAnyTag, &message);
    }
    if (found != Errc::ok) return found;
    std::memcpy(value, message.at, sizeof *value);
    return release_message(world[1].nic(), *back);
  }
  std::vector<std::byte> boxes;
  MailboxPlace places[2];
  std::unique_ptr<Endpoint> back;
};

TEST_P(Faults, AMessageIsSentAgainUntilItArrives) {
  Mail mail(GetParam(), "drop=0.3,corrupt=0.2,seed=2", true);
  mail.world[0].port().max_retransmits = 40;
  mail.world[1].port().max_retransmits = 40;
  for (std::uint64_t i = 0; i < 50; ++i) {
    Errc sent = Errc::not_done;
    for (int tries = 0; tries < 1000 && sent == Errc::not_done; ++tries) {
      mail.world.serve_all();
      sent = mail.send(i);
    }
    ASSERT_EQ(sent, Errc::ok);
    ASSERT_EQ(mail.outcome(), Errc::ok);
    std::uint64_t value = ~i;
    ASSERT_EQ(mail.receive(&value), Errc::ok);
    ASSERT_EQ(value, i);
  }
  EXPECT_GT(mail.counters().retransmitted.load(), 10u);
}

TEST_P(Faults, AMessageThatMayNotBeSentAgainBreaksItsConnection) {
  for (const bool sends_again : {false, true}) {
    Mail mail(GetParam(), "drop=1", sends_again);
    mail.world[0].port().max_retransmits = 2;
    ASSERT_EQ(mail.send(1), Errc::ok);
    EXPECT_EQ(mail.outcome(), Errc::timeout);
    EXPECT_EQ(mail.send(2), Errc::invalid_state);
    EXPECT_EQ(mail.counters().retransmitted.load(), sends_again ? 2u : 0u);
    EXPECT_EQ(mail.counters().dropped.load(), sends_again ? 3u : 1u);
  }
}

TEST_P(Faults, DelayedMessagesStillComeInTheirOrder) {
  for (const std::uint32_t order : {std::uint32_t{kInOrder}, 0u}) {
    Mail mail(GetParam(), "delay=0.5:200us,seed=4", true);
    mail.world[0].port().message_order = order;
    const std::int64_t deadline = monotonic_ns() + 20'000'000'000;
    std::uint64_t sent = 0;
    std::uint64_t got = 0;
    while (got < 40 && monotonic_ns() < deadline) {
      if (sent < 40 && mail.send(sent) == Errc::ok) ++sent;
      mail.world.serve_all();
      ReceivedMessage message;
      if (next_message(mail.world[1].nic(), *mail.back, kAnyTag, &message) != Errc::ok) continue;
      std::uint64_t value = 0;
      std::memcpy(&value, message.at, sizeof value);
      ASSERT_EQ(value, got++);
      ASSERT_EQ(release_message(mail.world[1].nic(), *mail.back), Errc::ok);
    }
    EXPECT_EQ(got, 40u);
    Event event;
    while (mail.world[0].nic().poll(*mail.local, &event) == Errc::ok) EXPECT_EQ(event.status, Errc::ok);
    EXPECT_GT(mail.counters().delayed.load(), 5u);
  }
}

// ---- frames without an answer ----

TEST(Refusals, ASilentPutThatItsTargetRefusesIsToldToTheErrorLog) {
  Pair pair(Path::frame, "");
  ASSERT_EQ(pair.put_and_wait(1, 1), Errc::ok);
  Nic& nic = pair.world[0].nic();
  const std::uint64_t before = nic.errors().newest();
  // Good when it was posted, and gone when it arrives.
  ASSERT_EQ(pair.post(pair.put(2, 2, 0)), Errc::ok);
  ASSERT_EQ(pair.post(pair.put(3, 3, 0)), Errc::ok);
  ASSERT_TRUE(pair.world[1].nic().deregister(pair.key).ok());
  for (int i = 0; i < 10; ++i) pair.world.serve_all();
  nic.transport().collect_refusals();
  EXPECT_EQ(nic.errors().newest(), before + 2);
  const auto event = nic.errors().next(before);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->status, Errc::invalid_handle);
  EXPECT_EQ(event->nic_address, 1u);
  EXPECT_EQ(event->domain, 7u);
  EXPECT_EQ(event->transaction, UINT32_MAX);
  nic.transport().collect_refusals();
  EXPECT_EQ(nic.errors().newest(), before + 2) << "each is told once";
  EXPECT_EQ(pair.target[2], 0u);
}

}  // namespace
}  // namespace orrery::nic
