// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// Two ends of the wire over this host's loopback interface. Everything that arrives validates itself.
#include "tests/emu/wire/ofi_pair.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <thread>

#include <poll.h>

namespace orrery::wire {
namespace {

constexpr Verb kVerbs[] = {Verb::put,  Verb::get,      Verb::amo,     Verb::cq_write,
                           Verb::send, Verb::datagram, Verb::message, Verb::credit,
                           Verb::join, Verb::release,  Verb::response};

TEST(OfiWire, EveryKindOfPacketArrivesOnceAndInOrder) {
  SKIP_WITHOUT_PROVIDER();
  Pair pair;
  constexpr std::uint64_t kRounds = 200;
  std::uint64_t next[2] = {};  // requests, answers
  pair.sink[1].on_packet = [&](const Packet& packet) {
    const bool answer = packet.header.verb == Verb::response;
    const std::uint64_t number = packet.header.event_data;
    ASSERT_EQ(number, next[answer]++) << "lost, doubled or out of order";
    ASSERT_EQ(packet.header.verb, answer ? Verb::response : kVerbs[number % 10]);
    ASSERT_EQ(packet.header.source, 2) << "the receiver's slot for the sender";
    ASSERT_EQ(packet.header.operand[1], ~number);
    ASSERT_EQ(packet.payload.size(), number % 50);
    for (std::size_t i = 0; i < packet.payload.size(); ++i) ASSERT_EQ(packet.payload[i], byte_of(number, i));
  };
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    for (const bool answer : {false, true}) {
      PacketHeader header = header_of(answer ? Verb::response : kVerbs[i % 10], i, i % 50);
      header.domain = static_cast<std::uint16_t>(i / 16 % 12);
      header.operand[1] = ~i;
      pair.send(0, header, payload_of(i, i % 50));
    }
  }
  ASSERT_TRUE(pair.until([&] { return next[0] == kRounds && next[1] == kRounds && pair.end[0]->is_idle(); }));
  EXPECT_LT(pair.end[0]->counts().frames_sent, 2 * kRounds) << "packets travel together";
}

TEST(OfiWire, PayloadsOfAnySizeArriveInParts) {
  SKIP_WITHOUT_PROVIDER();
  Pair pair;
  const std::size_t most = pair.end[0]->max_payload();
  std::vector<std::byte> got;
  bool complete = false;
  pair.sink[1].on_packet = [&](const Packet& packet) {
    ASSERT_EQ(packet.header.offset, got.size());
    ASSERT_EQ(packet.header.length, packet.header.aux);
    got.insert(got.end(), packet.payload.begin(), packet.payload.end());
    ASSERT_FALSE(complete);
    complete = (packet.header.flags & kLast) != 0;
  };
  for (const Verb verb : {Verb::put, Verb::response}) {
    for (const std::size_t bytes :
         {std::size_t{0}, std::size_t{1}, std::size_t{4096}, most - 1, most, most + 1, 2 * most,
          OfiWire::kLongestPayload - 1, OfiWire::kLongestPayload}) {
      got.clear();
      complete = false;
      PacketHeader header = header_of(verb, 1, bytes);
      header.aux = bytes;
      const auto payload = payload_of(bytes, bytes);
      pair.send(0, header, payload);
      ASSERT_TRUE(pair.until([&] { return complete; })) << bytes;
      ASSERT_EQ(got, payload) << bytes;
    }
  }
  const std::vector<std::byte> long_payload(OfiWire::kLongestPayload + 1);
  EXPECT_EQ(pair.end[0]->try_send(5, header_of(Verb::put, 1, 1), long_payload).code(), Errc::size);
  EXPECT_EQ(pair.end[0]
                ->try_send(5, header_of(Verb::message, 1, 1), std::span(long_payload).first(most + 1))
                .code(),
            Errc::size);
  EXPECT_EQ(pair.end[0]->try_send(6, header_of(Verb::put, 1, 1), {}).code(), Errc::no_match);
}

// Both sides send requests without pause, each of which is answered from deliver(), over so few frames that
// they run out all the time: a wire that let requests wait for answers and answers for requests would stop.
TEST(OfiWire, FloodsInBothDirectionsDoNotDeadlock) {
  SKIP_WITHOUT_PROVIDER();
  Pair pair([](OfiWireOptions& options, int) {
    options.frames = 64;
    options.frame_bytes = 4096;
    options.receives = 8;
  });
  constexpr std::uint64_t kRequests = 3000;
  const auto payload = payload_of(3, 3000);
  std::uint64_t answers[2] = {};
  for (int i = 0; i < 2; ++i) {
    pair.sink[i].on_packet = [&, i](const Packet& packet) {
      if (packet.header.verb == Verb::response) {
        ASSERT_EQ(packet.header.event_data, answers[i]++);
        return;
      }
      const PacketHeader answer = header_of(Verb::response, packet.header.event_data, payload.size());
      ASSERT_TRUE(pair.end[i]->try_send(packet.header.source, answer, payload).ok());
    };
  }
  std::uint64_t sent[2] = {};
  ASSERT_TRUE(pair.until([&] {
    for (int i = 0; i < 2; ++i) {
      while (sent[i] < kRequests &&
             pair.end[i]
                 ->try_send(Pair::slot_of_other(i), header_of(Verb::put, sent[i], payload.size()), payload)
                 .ok()) {
        ++sent[i];
      }
    }
    return answers[0] == kRequests && answers[1] == kRequests;
  })) << answers[0]
      << " and " << answers[1] << " answers";
}

// An "ok" without data is no packet: the acknowledgement says it.
TEST(OfiWire, AnOkWithoutDataIsTheAcknowledgement) {
  SKIP_WITHOUT_PROVIDER();
  Pair pair;
  constexpr std::uint32_t kRequests = 500;
  pair.sink[1].on_packet = [&](const Packet& packet) {
    ASSERT_TRUE(pair.end[1]->try_send(packet.header.source, header_of(Verb::response, 0, 0), {}).ok());
  };
  std::uint32_t answers = 0;
  pair.sink[0].on_packet = [&](const Packet& packet) {
    EXPECT_EQ(packet.header.verb, Verb::response);
    EXPECT_EQ(packet.header.source, 5);
    EXPECT_EQ(packet.header.status, 0);
    EXPECT_EQ(packet.header.offset, 16u);
    EXPECT_EQ(packet.header.transaction, answers++);
  };
  for (std::uint32_t i = 0; i < kRequests; ++i) {
    PacketHeader put = header_of(Verb::put, i, 8);
    put.flags |= kWantsResponse;
    put.transaction = i;
    put.offset = 16;
    pair.send(0, put, payload_of(i, 8));
  }
  EXPECT_TRUE(pair.until([&] { return answers == kRequests; })) << answers;
  EXPECT_EQ(pair.end[1]->counts().packets_sent, 0u);
}

// A process that ends waits until its wire is idle, and takes its acknowledgements with it if it goes sooner.
TEST(OfiWire, WhoOwesAnAnswerByAcknowledgementIsNotIdle) {
  SKIP_WITHOUT_PROVIDER();
  Pair pair;
  pair.sink[1].on_packet = [&](const Packet& packet) {
    ASSERT_TRUE(pair.end[1]->try_send(packet.header.source, header_of(Verb::response, 0, 0), {}).ok());
  };
  PacketHeader put = header_of(Verb::put, 0, 8);
  put.flags |= kWantsResponse;
  pair.send(0, put, payload_of(0, 8));
  ASSERT_TRUE(pair.until([&] { return pair.sink[1].count == 1; }));
  EXPECT_FALSE(pair.end[1]->is_idle());
  // It polls no more once it is idle.
  const std::int64_t limit = monotonic_ns() + kPatience;
  while (!pair.end[1]->is_idle() && monotonic_ns() < limit) pair.poll();
  while (pair.sink[0].count == 0 && monotonic_ns() < limit) pair.end[0]->poll(16);
  EXPECT_EQ(pair.sink[0].count, 1u);
}

// The property: every request is answered once and as its target said, whatever the link does: by the
// acknowledgement, by an error that the acknowledgement does not overtake, or with data.
TEST(OfiWire, EveryRequestHasItsOwnAnswerByABadLink) {
  SKIP_WITHOUT_PROVIDER();
  Pair pair([](OfiWireOptions& options, int i) {
    options.retransmit_after_ns = 5'000'000;
    options.faults = FaultRates{.drop = 0.02,
                                .corrupt = 0.02,
                                .duplicate = 0.02,
                                .reorder = 0.02,
                                .delay = 0.01,
                                .seed = 4711 + static_cast<std::uint64_t>(i)};
  });
  constexpr std::uint32_t kRequests = 4000;
  const auto is_wrong = [](std::uint32_t i) { return i % 7 == 3 || (i > 2000 && i < 2300); };
  const auto is_get = [](std::uint32_t i) { return i % 5 == 1; };
  const auto payload = payload_of(1, 8);
  pair.sink[1].on_packet = [&](const Packet& packet) {
    const std::uint32_t i = packet.header.transaction;
    PacketHeader answer = header_of(Verb::response, 0, 0);
    answer.transaction = i;
    answer.status = is_wrong(i) ? 3 : 0;
    const std::span<const std::byte> data =
        is_get(i) && !is_wrong(i) ? std::span<const std::byte>(payload) : std::span<const std::byte>();
    ASSERT_TRUE(pair.end[1]->try_send(packet.header.source, answer, data).ok());
  };
  std::vector<int> answers(kRequests);
  std::uint32_t answered = 0;
  pair.sink[0].on_packet = [&](const Packet& packet) {
    const std::uint32_t i = packet.header.transaction;
    ASSERT_LT(i, kRequests);
    EXPECT_EQ(++answers[i], 1) << i;
    EXPECT_EQ(packet.header.status, is_wrong(i) ? 3 : 0) << i;
    EXPECT_EQ(packet.payload.size(), is_get(i) && !is_wrong(i) ? 8u : 0u) << i;
    ++answered;
  };
  for (std::uint32_t i = 0; i < kRequests; ++i) {
    PacketHeader request = header_of(is_get(i) ? Verb::get : Verb::put, i, 8);
    request.flags |= kWantsResponse;
    request.transaction = i;
    pair.send(0, request, is_get(i) ? std::span<const std::byte>() : std::span<const std::byte>(payload));
    if (i % 3 == 0) pair.poll();
  }
  EXPECT_TRUE(pair.until([&] { return answered == kRequests; })) << answered;
}

// The property: what one side sends, the other gets, each packet once, whole, in the order of its stream,
// whatever the link does to one frame in twenty.
TEST(OfiWire, ABadLinkLosesNothing) {
  SKIP_WITHOUT_PROVIDER();
  const std::uint64_t seed = 20261;
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  Pair pair([&](OfiWireOptions& options, int i) {
    options.retransmit_after_ns = 5'000'000;
    options.faults = FaultRates{.drop = 0.01,
                                .corrupt = 0.01,
                                .duplicate = 0.01,
                                .reorder = 0.01,
                                .delay = 0.01,
                                .seed = seed + static_cast<std::uint64_t>(i)};
  });
  constexpr std::uint64_t kPackets = kSanitized ? 10'000 : 50'000;  // each way
  std::uint64_t next[2][2] = {};                                    // receiver, stream
  for (int i = 0; i < 2; ++i) {
    pair.sink[i].on_packet = [&, i](const Packet& packet) {
      const bool answer = packet.header.verb == Verb::response;
      const std::uint64_t number = packet.header.event_data;
      ASSERT_EQ(number, next[i][answer]++);
      ASSERT_EQ(packet.payload.size(), number * 37 % 300);
      for (std::size_t k = 0; k < packet.payload.size(); ++k)
        ASSERT_EQ(packet.payload[k], byte_of(number, k));
    };
  }
  std::mt19937_64 random(seed);
  std::uint64_t sent[2][2] = {};
  while (sent[0][0] + sent[0][1] + sent[1][0] + sent[1][1] < 2 * kPackets) {
    const int from = static_cast<int>(random() % 2);
    const bool answer = random() % 2 != 0;
    const std::uint64_t number = sent[from][answer]++;
    const std::size_t bytes = number * 37 % 300;
    pair.send(from, header_of(answer ? Verb::response : Verb::put, number, bytes), payload_of(number, bytes));
    if (random() % 4 == 0) pair.poll();
    if (HasFatalFailure()) return;
  }
  ASSERT_TRUE(pair.until([&] {
    return pair.end[0]->is_idle() && pair.end[1]->is_idle() && next[0][0] == sent[1][0] &&
           next[0][1] == sent[1][1] && next[1][0] == sent[0][0] && next[1][1] == sent[0][1];
  }));
  for (int i = 0; i < 2; ++i) {
    const FaultCounts faults = pair.end[i]->fault_counts();
    const OfiWireCounts& counts = pair.end[1 - i]->counts();
    EXPECT_GT(faults.dropped, 20u);
    EXPECT_GT(faults.reordered, 20u);
    EXPECT_GT(faults.corrupted, 20u);
    EXPECT_GE(counts.refusals(Refusal::duplicate), faults.duplicated / 2) << "copies are noticed";
    // What a short frame says is read before its tag is, which covers it: a broken name of a job or a process
    // is one that is not known.
    std::uint64_t broken = 0;
    for (int cause = 0; cause < kRefusals; ++cause) {
      const auto why = static_cast<Refusal>(cause);
      if (why != Refusal::duplicate && why != Refusal::window) broken += counts.refusals(why);
    }
    // Held copies may still be on their way.
    EXPECT_GE(broken + 2, faults.corrupted) << "every broken frame was caught";
    EXPECT_LE(broken, faults.corrupted);
    EXPECT_TRUE(pair.losses[i].slots.empty());
  }
}

// A frame by a process that has some of what it takes.
std::vector<std::byte> forge(std::uint64_t job, std::uint32_t source, std::uint32_t target,
                             const AuthKey& key) {
  std::vector<std::byte> frame(kHostFrameHeaderBytes + packet_bytes(0));
  write_packet(std::span(frame).subspan(kHostFrameHeaderBytes), header_of(Verb::put, 666, 0), {});
  FrameHeader header;
  header.job = job;
  header.source = source;
  header.target = target;
  header.domain = 7;
  header.packets = 1;
  header.sequence = 1;
  header.body_bytes = packet_bytes(0);
  header.body_crc = crc32c(std::span<const std::byte>(frame).subspan(kHostFrameHeaderBytes));
  write_frame_header(frame, header, key);
  return frame;
}

TEST(OfiWire, StrangersAreCountedAndHarmless) {
  SKIP_WITHOUT_PROVIDER();
  Pair pair;
  const auto refused = [&](Refusal cause) { return pair.end[1]->counts().refusals(cause); };
  const auto check = [&](const std::vector<std::byte>& frame, Refusal cause) {
    const std::uint64_t before = refused(cause);
    while (!pair.end[0]->send_raw_for_test(5, frame).ok()) pair.poll();
    EXPECT_TRUE(pair.until([&] { return refused(cause) == before + 1; })) << refusal_name(cause);
  };
  const std::uint64_t job = options_of(0).job;
  const AuthKey guess = derive_key({1, 2}, {job, 1, 2, 7});
  check(forge(job, 10, 11, guess), Refusal::tag);
  // The right secret, but another job's time: the incarnations are others.
  check(forge(job, 10, 11, derive_key(kSecret, {job, 1, 2, 7})), Refusal::tag);
  check(forge(job + 1, 10, 11, guess), Refusal::job);
  check(forge(job, 12, 11, guess), Refusal::source);
  check(forge(job, 10, 12, guess), Refusal::target);
  auto frame = forge(job, 10, 11, guess);
  frame[4] = std::byte{9};
  check(frame, Refusal::version);
  frame = forge(job, 10, 11, guess);
  frame[40] ^= std::byte{1};
  check(frame, Refusal::checksum);
  check(std::vector<std::byte>(87, std::byte{0x4f}), Refusal::truncated);
  check(std::vector<std::byte>(5000, std::byte{'G'}), Refusal::magic);
  EXPECT_EQ(pair.sink[1].count, 0u) << "nothing of it was delivered";
  // The real ones still understand each other.
  pair.send(0, header_of(Verb::put, 1, 0));
  EXPECT_TRUE(pair.until([&] { return pair.sink[1].count == 1; }));
}

// A process that sees the link can send again what it saw, to the same process or to its successor.
TEST(OfiWire, ReplaysAreRefused) {
  SKIP_WITHOUT_PROVIDER();
  Pair pair([](OfiWireOptions& options, int i) {
    // Every frame of end 0 arrives twice: the second is a replay.
    if (i == 0) options.faults = FaultRates{.duplicate = 1};
  });
  for (std::uint64_t i = 0; i < 50; ++i) {
    pair.send(0, header_of(Verb::put, i, 0));
    ASSERT_TRUE(pair.until([&] { return pair.sink[1].count == i + 1 && pair.end[0]->is_idle(); }));
  }
  ASSERT_TRUE(pair.until([&] { return pair.end[1]->counts().refusals(Refusal::duplicate) >= 50; }));
  EXPECT_EQ(pair.sink[1].count, 50u);

  // A second life of end 1 under the same job, rank and secret does not take frames for the first.
  Collect sink;
  auto reborn = open_wire(options_of(11), sink);
  ASSERT_NE(reborn, nullptr);
  ASSERT_TRUE(reborn->add_peer(2, pair.end[0]->address()).ok());
  Collect stranger_sink;
  auto stranger = open_wire(options_of(30), stranger_sink);
  ASSERT_TRUE(stranger->add_peer(1, reborn->address()).ok());
  // What end 0 would have sent to the first life, whose incarnation its address tells.
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  std::memcpy(&from, pair.end[0]->address().data() + 8, 8);
  std::memcpy(&to, pair.end[1]->address().data() + 8, 8);
  const std::uint64_t job = options_of(0).job;
  const auto old_frame = forge(job, 10, 11, derive_key(kSecret, {job, from, to, 7}));
  const std::int64_t limit = monotonic_ns() + kPatience;
  // By a connection of a process that it does not know nothing comes at all.
  while (reborn->counts().refusals(Refusal::source) == 0 && monotonic_ns() < limit) {
    (void)stranger->send_raw_for_test(1, old_frame);
    stranger->poll(16);
    reborn->poll(16);
  }
  EXPECT_GE(reborn->counts().refusals(Refusal::source), 1u);
  ASSERT_TRUE(reborn->add_peer(9, stranger->address()).ok());
  for (bool sent = false; reborn->counts().refusals(Refusal::tag) == 0 && monotonic_ns() < limit;) {
    sent = sent || stranger->send_raw_for_test(1, old_frame).ok();
    stranger->poll(16);
    reborn->poll(16);
  }
  EXPECT_EQ(reborn->counts().refusals(Refusal::tag), 1u);
  EXPECT_EQ(sink.count, 0u);
}

TEST(OfiWire, BadAddressesAreRefused) {
  SKIP_WITHOUT_PROVIDER();
  Collect sink;
  auto wire = open_wire(options_of(1), sink);
  auto other = open_wire(options_of(2), sink);
  const auto good = other->address();
  for (std::size_t size = 0; size < good.size(); ++size) {
    EXPECT_EQ(wire->add_peer(3, std::span(good).first(size)).code(), Errc::corrupt) << size;
  }
  for (std::size_t i = 0; i < good.size(); ++i) {
    auto bad = good;
    bad[i] ^= std::byte{0x10};
    EXPECT_EQ(wire->add_peer(3, bad).code(), Errc::corrupt) << i;
  }
  EXPECT_EQ(wire->add_peer(3, wire->address()).code(), Errc::invalid_param) << "ourselves";
  EXPECT_TRUE(wire->add_peer(3, good).ok());
  EXPECT_EQ(wire->add_peer(3, good).code(), Errc::invalid_param);
  EXPECT_EQ(wire->add_peer(4, good).code(), Errc::invalid_param);
}

// What a host directory says about where processes are.
struct Addresses : PeerAddresses {
  std::map<std::uint32_t, std::vector<std::byte>> of;
  std::vector<std::byte> address_of(std::uint32_t rank) override { return of[rank]; }
};

TEST(OfiWire, AProcessThatSpeaksFirstIsLookedUpAndALaterLifeReplacesIt) {
  SKIP_WITHOUT_PROVIDER();
  Collect sink;
  Losses losses;
  auto wire = open_wire(options_of(1), sink, &losses);
  Addresses addresses;
  wire->set_addresses(&addresses);
  std::vector<std::uint64_t> got;
  sink.on_packet = [&](const Packet& packet) {
    EXPECT_EQ(packet.header.source, 2);
    got.push_back(packet.header.event_data);
  };
  for (std::uint64_t life = 1; life <= 2; ++life) {
    Collect ignored;
    auto peer = open_wire(options_of(2), ignored);
    ASSERT_TRUE(peer->add_peer(1, wire->address()).ok());
    addresses.of[2] = peer->address();
    ASSERT_TRUE(peer->try_send(1, header_of(Verb::put, life, 0), {}).ok());
    const std::int64_t limit = monotonic_ns() + kPatience;
    while (!peer->is_idle() && monotonic_ns() < limit) {
      peer->poll(16);
      wire->poll(16);
    }
    EXPECT_EQ(got.size(), life);
  }
  EXPECT_EQ(got, (std::vector<std::uint64_t>{1, 2}));
  EXPECT_TRUE(losses.slots.empty());
}

TEST(OfiWire, AProcessThatIsKnownToBeDeadIsDroppedAndALaterLifeIsNot) {
  SKIP_WITHOUT_PROVIDER();
  Collect sink;
  auto wire = open_wire(options_of(1), sink);
  auto first = open_wire(options_of(2), sink)->address();
  auto second = open_wire(options_of(2), sink)->address();
  ASSERT_TRUE(wire->add_peer(2, first).ok());
  ASSERT_TRUE(wire->add_peer(2, second).ok());
  wire->drop_peer(2, first);
  EXPECT_FALSE(wire->is_lost(2));
  wire->drop_peer(2, second);
  EXPECT_TRUE(wire->is_lost(2));
  EXPECT_EQ(wire->try_send(2, header_of(Verb::put, 1, 0), {}).code(), Errc::unreachable);
}

// A passive target: its thread sleeps on the descriptor and on nothing else.
TEST(OfiWire, ASleepingEndIsWokenThroughItsDescriptor) {
  SKIP_WITHOUT_PROVIDER();
  Pair pair;
  ASSERT_GE(pair.end[1]->wait_fd(), 0);
  constexpr std::uint64_t kRounds = 50;
  pair.sink[1].on_packet = [&](const Packet& packet) {
    ASSERT_TRUE(pair.end[1]->try_send(2, header_of(Verb::response, packet.header.event_data, 0), {}).ok());
  };
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> sleeps = 0;
  std::atomic<bool> asleep = false;
  std::thread target([&] {
    while (!stop.load()) {
      pair.end[1]->poll(16);
      if (!pair.end[1]->prepare_to_sleep()) continue;
      int timeout = 200;
      if (const auto deadline = pair.end[1]->next_deadline_ns()) {
        timeout =
            static_cast<int>(std::clamp<std::int64_t>((*deadline - monotonic_ns()) / 1'000'000 + 1, 0, 200));
      }
      pollfd fd{pair.end[1]->wait_fd(), POLLIN, 0};
      asleep.store(true);
      sleeps.fetch_add(::poll(&fd, 1, timeout) == 0 ? 1 : 0);
      asleep.store(false);
    }
  });
  std::int64_t slowest = 0;
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    const std::int64_t start = monotonic_ns();
    EXPECT_TRUE(pair.end[0]->try_send(5, header_of(Verb::put, i, 0), {}).ok());
    while (pair.sink[0].count == i && monotonic_ns() - start < kPatience) pair.end[0]->poll(16);
    slowest = std::max(slowest, monotonic_ns() - start);
    while (i % 10 == 0 && !asleep.load() && monotonic_ns() - start < kPatience) pair.end[0]->poll(16);
  }
  EXPECT_EQ(pair.sink[0].count, kRounds);
  // With nothing under way it has no deadline of its own: it sleeps its whole 200 ms.
  const std::uint64_t before = sleeps.load();
  std::int64_t limit = monotonic_ns() + kPatience;
  while (sleeps.load() < before + 2 && monotonic_ns() < limit) {
    pair.end[0]->poll(16);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_GE(sleeps.load(), before + 2);
  stop.store(true);
  target.join();
  RecordProperty("slowest_us", static_cast<int>(slowest / 1000));
}

}  // namespace
}  // namespace orrery::wire
