// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/initiator/initiator.hpp"

#include "tests/emu/nic/parts.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <vector>

namespace orrery::nic {
namespace {

struct Posts : ::testing::Test {
  parts::Pair pair;
  parts::Node& a = pair.a;
  parts::Node& b = pair.b;
  parts::Defers defers;
  Initiator initiator = make(false);
  CompletionQueue* queue = a.queues.create(64, 0).value();
  Endpoint endpoint;
  std::array<std::uint64_t, 4> source{21, 22, 23, 24};
  alignas(4096) std::array<std::uint64_t, 512> target{};
  MemKey key = b.expose(target.data(), sizeof target);

  Initiator make(bool with_deferral) {
    return {a.host, a.host.view, a.pending, a.peers,       a.transport,
            a.hot,  a.router,    defers,    with_deferral, a.moves};
  }
  Posts() {
    endpoint.port = a.port;
    endpoint.queue = queue;
    endpoint.bound = true;
    endpoint.remote_nic_address = 1;
    endpoint.local_event_data = 5;
    queue->become_source();
  }
  Request put(std::uint32_t flags) {
    Request request;
    request.op = Op::put;
    request.flags = flags;
    request.local_address = reinterpret_cast<std::uint64_t>(source.data());
    request.remote_address = reinterpret_cast<std::uint64_t>(target.data());
    request.length = sizeof source;
    request.remote = key;
    request.context = &source;
    return request;
  }
  // How the next operation ended; not_done: none has.
  Errc ended() {
    Event event;
    return queue->take(&event) == Errc::ok ? event.status : Errc::not_done;
  }
};

TEST_F(Posts, EndInOneEventOfTheQueue) {
  ASSERT_EQ(initiator.post(endpoint, put(kGlobalEvent)), Errc::ok);
  EXPECT_EQ(ended(), Errc::not_done);
  EXPECT_FALSE(endpoint.is_idle());
  pair.settle();
  EXPECT_EQ(ended(), Errc::ok);
  EXPECT_EQ(ended(), Errc::not_done);
  EXPECT_TRUE(endpoint.is_idle());
  EXPECT_EQ(target[3], 24u);
}

TEST_F(Posts, ThroughAnEndpointThatIsNotBoundAreRefused) {
  endpoint.bound = false;
  EXPECT_EQ(initiator.post(endpoint, put(kGlobalEvent)), Errc::invalid_state);
}

TEST_F(Posts, WithAKeyOfAProcessElsewhereAreAcceptedAndFail) {
  Request request = put(kGlobalEvent);
  endpoint.remote_nic_address = 0;
  ASSERT_EQ(initiator.post(endpoint, request), Errc::ok);
  EXPECT_EQ(ended(), Errc::invalid_handle);
}

TEST_F(Posts, AreCompleteInThemselvesOnceTheyAreAddressed) {
  Request request = put(kGlobalEvent);
  ASSERT_EQ(initiator.find_peer(endpoint, key), Errc::ok);
  Initiator::address(endpoint, &request);
  EXPECT_EQ(request.peer, endpoint.peer);
  EXPECT_EQ(request.domain, a.port->domain);
  EXPECT_EQ(request.completion.queue, queue);
  EXPECT_EQ(request.completion.value, 5u);
  EXPECT_EQ(request.completion.context, &source);
}

TEST_F(Posts, GoWhereTheDeferralSays) {
  Initiator deferring = make(true);
  defers.answer = {Begun::Kind::accepted};
  ASSERT_EQ(deferring.post_checked(endpoint, put(kGlobalEvent)), Errc::ok);
  ASSERT_EQ(defers.asked.size(), 1u);
  pair.settle();
  EXPECT_EQ(ended(), Errc::not_done);
  EXPECT_EQ(target[0], 0u);
  defers.answer = Begun::ended(Errc::timeout);
  ASSERT_EQ(deferring.post_checked(endpoint, put(kGlobalEvent)), Errc::ok);
  EXPECT_EQ(ended(), Errc::timeout);
  defers.answer = Begun::ended(Errc::ok);
  ASSERT_EQ(deferring.post_checked(endpoint, put(kGlobalEvent)), Errc::ok);
  pair.settle();
  EXPECT_EQ(ended(), Errc::ok);
  EXPECT_EQ(target[0], 21u);
}

TEST_F(Posts, ACreditStaysBehindWhatIsHeld) {
  defers.held.emplace_back();
  Request credit = put(0);
  credit.op = Op::credit;
  ASSERT_EQ(initiator.post_checked(endpoint, credit), Errc::ok);
  EXPECT_EQ(defers.held.size(), 2u);
}

TEST_F(Posts, OfOneChainEndInOneEventWithTheFirstError) {
  const ChainPart good{.endpoint = &endpoint, .request = put(0)};
  ChainPart bad = good;
  bad.request.remote_address += sizeof target;
  ASSERT_EQ(initiator.post_chain(endpoint, std::vector{good, bad, good}, kGlobalEvent, nullptr), Errc::ok);
  pair.settle();
  EXPECT_EQ(ended(), Errc::bounds);
  EXPECT_EQ(ended(), Errc::not_done);
}

TEST_F(Posts, OfOneSequenceAreAskedForByItsName) {
  Sequence* const sequence = initiator.open_sequence();
  ASSERT_NE(sequence, nullptr);
  const std::uint32_t name = sequence->name;
  ASSERT_EQ(initiator.post_in(*sequence, endpoint, put(0)), Errc::ok);
  Initiator::end_sequence(*sequence);
  a.moves.work = nullptr;
  Errc status = Errc::not_done;
  EXPECT_EQ(initiator.test_sequence(name, &status), Errc::not_done);
  pair.settle();
  EXPECT_EQ(initiator.test_sequence(name, &status), Errc::ok);
  EXPECT_EQ(status, Errc::ok);
  EXPECT_EQ(initiator.test_sequence(name, &status), Errc::invalid_param);
}

}  // namespace
}  // namespace orrery::nic
