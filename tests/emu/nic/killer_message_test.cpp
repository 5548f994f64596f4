// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/message/message.hpp"
#include "tests/emu/nic/box.hpp"
#include "tests/emu/nic/seeds.hpp"
#include "tests/emu/stepper.hpp"
#include "tests/require.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>

// Processes that die after any instruction of a datagram's post or of a message; see killer_test.cpp. The
// victim is slot 0, a forked child; slots 1 and 2 survive and go on with whatever it left.
namespace orrery::nic {
namespace {

using box::Path;
using test::Stepper;

constexpr std::uint32_t kLaneBytes = wire::kLaneControlBytes + wire::kMinLaneDataBytes;
constexpr MailboxShape kShape{.credits = 4, .max_bytes = 200};
constexpr std::uint64_t kBoxBytes = kPageBytes;
static_assert(kShape.bytes() <= kBoxBytes);

using Bytes = std::array<std::byte, 100>;

Bytes pattern(std::uint64_t seed) {
  Bytes bytes;
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(seed * 31 + i);
  return bytes;
}

class KillMessenger : public ::testing::Test {
 protected:
  explicit KillMessenger(Path path = Path::direct)
      : world(3, path, {.drain_limit_ns = 20'000'000'000}, MAP_SHARED, kLaneBytes) {
    memory = static_cast<std::byte*>(
        mmap(nullptr, 3 * kBoxBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ORRERY_CHECK(memory != MAP_FAILED, "no memory");
    any.port = &world[1].port();
    arrived = world[1].nic().create_queue(64, 0).value();
    sent = world[1].nic().create_queue(64, 0).value();
    world.kill(0);
  }
  ~KillMessenger() override { munmap(memory, 3 * kBoxBytes); }

  std::unique_ptr<Endpoint> bound(int from, int to, CompletionQueue* queue = nullptr) {
    auto endpoint = world.endpoint(from, to, queue);
    endpoint->remote_instance = static_cast<std::uint32_t>(to);
    return endpoint;
  }
  DatagramUnit& unit(int node) { return world[node].nic().datagrams(); }
  Errc post(int node, Endpoint& endpoint, const Bytes& out, Bytes& in) {
    return unit(node).post(endpoint, out, std::nullopt, in);
  }
  // A post that maps the peer and finds no partner there.
  void meet_nobody(int from, int to) {
    const auto nobody = bound(from, to);
    nobody->remote_instance = 4711;
    Bytes in{};
    ASSERT_EQ(post(from, *nobody, pattern(0), in), Errc::ok);
    unit(from).forget(*nobody);
  }
  // What the survivor posted to the victim: the victim's bytes, or a failure.
  void check_bound_back(const Bytes& in) {
    const DatagramStatus at = status(1, *to_victim);
    if (at == DatagramStatus::completed)
      EXPECT_EQ(in, pattern(round));
    else
      EXPECT_EQ(at, DatagramStatus::failed);
  }
  DatagramStatus status(int node, Endpoint& endpoint) {
    DatagramOutcome outcome;
    EXPECT_EQ(unit(node).test(endpoint, std::nullopt, &outcome), Errc::ok);
    return outcome.status;
  }

  // Kills victims after instruction 0, 1, 2 ... of `operation`; `prepare` comes before each, `check` after.
  template <typename Prepare, typename Operation, typename Check>
  void run(Prepare prepare, Operation operation, Check check) {
    Stepper stepper;
    const auto once = [&](std::uint64_t limit) {
      ++round;
      to_victim.reset();
      victim.reset();
      world.revive(0);
      world.bury();
      victim = bound(0, 1);
      to_victim = bound(1, 0, sent);
      // All processes know each other: mapping a peer is 18,000 instructions of another kind.
      meet_nobody(0, 1);
      meet_nobody(1, 0);
      prepare();
      const Stepper::End end = stepper.start([&] { operation(); }, limit);
      stepper.kill();
      if (end == Stepper::End::refused) return end;
      world.kill(0);
      for (int i = 0; i < 4; ++i) world.serve_all();
      check();
      return end;
    };
    const Stepper::End end = once(UINT64_MAX);
    if (end == Stepper::End::refused)
      ORRERY_SKIP("ptrace") << "this system does not let a process trace its child";
    ASSERT_EQ(end, Stepper::End::finished);
    const std::uint64_t length = stepper.steps;
    const std::uint64_t runs = std::min<std::uint64_t>(length, box::long_tests() ? 3'000 : 40);
    std::printf("%llu instructions, killed %llu times\n", static_cast<unsigned long long>(length),
                static_cast<unsigned long long>(runs));
    for (std::uint64_t i = 0; i < runs; ++i) {
      const std::uint64_t limit = i * length / runs;
      const Stepper::End how = once(limit);
      ASSERT_TRUE(how == Stepper::End::stopped || how == Stepper::End::finished) << "after " << limit;
      if (!HasFailure()) continue;
      ADD_FAILURE() << "killed after " << limit << " instructions of " << length;
      return;
    }
  }

  // A third process is served by the wildcard of process 1, whatever the victim did to it.
  void check_wildcard() {
    const DatagramStatus at = status(1, any);
    if (at == DatagramStatus::completed) {
      EXPECT_EQ(at_any, pattern(round)) << "half of the victim's bytes";
      ASSERT_EQ(post(1, any, pattern(1000), at_any), Errc::ok);
    } else {
      ASSERT_EQ(at, DatagramStatus::pending);
    }
    const auto other = bound(2, 1);
    Bytes reply{};
    ASSERT_EQ(post(2, *other, pattern(round + 7), reply), Errc::ok);
    ASSERT_EQ(status(2, *other), DatagramStatus::completed);
    EXPECT_EQ(reply, pattern(1000));
    ASSERT_EQ(status(1, any), DatagramStatus::completed);
    EXPECT_EQ(at_any, pattern(round + 7));
  }

  // ---- mailboxes: one a process ----
  MailboxPlace open_memory(int node, CompletionQueue* queue) {
    std::memset(memory + node * static_cast<int>(kBoxBytes), 0, kBoxBytes);
    const auto address =
        reinterpret_cast<std::uint64_t>(memory) + static_cast<std::uint64_t>(node) * kBoxBytes;
    return {world[node].nic().register_region(world[node].port(), address, kBoxBytes, 0, queue).value(),
            address};
  }
  void open_mailboxes() {
    const MailboxPlace victims = open_memory(0, nullptr);
    const MailboxPlace ours = open_memory(1, arrived);
    our_key = ours.key;
    ASSERT_EQ(world[0].nic().messages().open(*victim, kShape, victims, ours), Errc::ok);
    ASSERT_EQ(world[1].nic().messages().open(*to_victim, kShape, ours, victims), Errc::ok);
  }
  Errc send(int node, Endpoint& endpoint, const Bytes& bytes) {
    return send_message(world[node].nic(), endpoint, bytes, {}, {.id = 3});
  }
  // Process 1 finds whole messages in order, then hears that its peer is gone, and closes its end.
  void check_mailbox(std::uint64_t first, std::uint64_t most) {
    std::uint64_t got = 0;
    ReceivedMessage message;
    Errc found = Errc::ok;
    while ((found = next_message(world[1].nic(), *to_victim, kAnyTag, &message)) == Errc::ok) {
      const Bytes expected = pattern(first + got++);
      ASSERT_EQ(message.bytes, expected.size());
      ASSERT_EQ(std::memcmp(message.at, expected.data(), expected.size()), 0) << "message " << got;
      ASSERT_EQ(release_message(world[1].nic(), *to_victim), Errc::ok);
    }
    EXPECT_EQ(found, Errc::not_done);
    EXPECT_LE(got, most);
    EXPECT_EQ(send(1, *to_victim, pattern(1)), Errc::invalid_state);
    Event event;
    std::uint64_t told = 0;
    while (world[1].nic().poll(*arrived, &event) == Errc::ok) ++told;
    EXPECT_LE(told, got) << "an event came before its message";
    EXPECT_LE(got, told + 1) << "only the last one's event may be missing";
    while (world[1].nic().poll(*sent, &event) == Errc::ok) {
      void* none = nullptr;
      EXPECT_TRUE(sent->collect(static_cast<std::uint32_t>(event.data >> 32), &none));
    }
    EXPECT_EQ(sent->posts_open(), 0u) << "a message to the victim never ended";
    EXPECT_EQ(to_victim->in_flight.load(), 0u);
    EXPECT_TRUE(world[1].nic().deregister(our_key).ok());
    EXPECT_EQ(world[1].cut_offs, 0);
  }

  box::World world;
  std::byte* memory = nullptr;
  Endpoint any;  // of process 1, bound to no port
  Bytes at_any{};
  Bytes at_victim{};
  CompletionQueue* arrived = nullptr;
  CompletionQueue* sent = nullptr;
  MemKey our_key;
  std::unique_ptr<Endpoint> victim;
  std::unique_ptr<Endpoint> to_victim;
  std::uint64_t round = 0;
};

TEST_F(KillMessenger, PostThatMeetsAWildcard) {
  run(
      [&] {
        if (any.datagram.load() == 0) {
          ASSERT_EQ(post(1, any, pattern(1000), at_any), Errc::ok);
        }
      },
      [&] { (void)post(0, *victim, pattern(round), at_victim); }, [&] { check_wildcard(); });
}

TEST_F(KillMessenger, PostThatMeetsOneBoundBack) {
  Bytes in{};
  run([&] { ASSERT_EQ(post(1, *to_victim, pattern(2000), in), Errc::ok); },
      [&] { (void)post(0, *victim, pattern(round), at_victim); }, [&] { check_bound_back(in); });
}

TEST_F(KillMessenger, WildcardThatMeetsOneThatWaits) {
  Bytes in{};
  run([&] { ASSERT_EQ(post(1, *to_victim, pattern(2000), in), Errc::ok); },
      [&] {
        Endpoint wildcard;
        wildcard.port = &world[0].port();
        (void)post(0, wildcard, pattern(round), at_victim);
      },
      [&] { check_bound_back(in); });
}

TEST_F(KillMessenger, PostThatIsTakenAndAnotherThatIsCancelled) {
  run(
      [&] {
        if (any.datagram.load() == 0) {
          ASSERT_EQ(post(1, any, pattern(1000), at_any), Errc::ok);
        }
        ASSERT_EQ(post(0, *victim, pattern(round), at_victim), Errc::ok);
      },
      [&] {
        DatagramOutcome outcome;
        (void)unit(0).test(*victim, std::nullopt, &outcome);
        (void)post(0, *victim, pattern(5), at_victim);
        (void)unit(0).cancel(*victim, std::nullopt);
      },
      [&] {
        ASSERT_EQ(status(1, any), DatagramStatus::completed);
        EXPECT_EQ(at_any, pattern(round));
        ASSERT_EQ(post(1, any, pattern(1000), at_any), Errc::ok);
        check_wildcard();
      });
}

TEST_F(KillMessenger, FirstMessageSent) {
  run([&] { open_mailboxes(); }, [&] { (void)send(0, *victim, pattern(round)); },
      [&] { check_mailbox(round, 1); });
}

TEST_F(KillMessenger, LaterMessageSent) {
  run(
      [&] {
        open_mailboxes();
        ASSERT_EQ(send(0, *victim, pattern(round)), Errc::ok);
      },
      [&] { (void)send(0, *victim, pattern(round + 1)); }, [&] { check_mailbox(round, 2); });
}

TEST_F(KillMessenger, MessagesReceivedAndReleased) {
  run(
      [&] {
        open_mailboxes();
        for (std::uint64_t i = 0; i < 3; ++i) ASSERT_EQ(send(1, *to_victim, pattern(i)), Errc::ok);
      },
      [&] {
        ReceivedMessage message;
        for (int i = 0; i < 2; ++i) {
          (void)next_message(world[0].nic(), *victim, kAnyTag, &message);
          (void)release_message(world[0].nic(), *victim);
        }
      },
      [&] {
        EXPECT_LE(to_victim->mailbox->released_word().load(), 2u);
        check_mailbox(0, 0);
      });
}

TEST_F(KillMessenger, SendToAPostedBuffer) {
  const MailboxPlace place = open_memory(1, nullptr);
  ChannelUnit& channels = world[1].nic().channels();
  const ChannelName name = channels.open(world[1].port(), arrived).value();
  const auto send_one = [&](int node, Endpoint& endpoint, const Bytes& bytes) {
    Request request;
    request.op = Op::send;
    request.local_address = reinterpret_cast<std::uint64_t>(bytes.data());
    request.length = bytes.size();
    request.remote = key_of(name);
    return world[node].nic().post(endpoint, request);
  };
  // The sends that came.
  const auto take = [&](const Bytes& expected) {
    int sends = 0;
    Event event;
    while (world[1].nic().poll(*arrived, &event) == Errc::ok) {
      const auto came = channels.take(event);
      if (!came.ok()) continue;  // told of twice
      ++sends;
      EXPECT_EQ(came.value().bytes, expected.size());
      EXPECT_EQ(std::memcmp(memory + kBoxBytes, expected.data(), expected.size()), 0);
    }
    return sends;
  };
  Bytes source{};
  run(
      [&] {
        // One buffer: whatever becomes of it, the next sender finds it ready.
        if (credits_of(world[1].nic().view(), name).value() == 0) {
          ASSERT_EQ(channels.post(name, place.key, place.address, 200, nullptr), Errc::ok);
        }
        source = pattern(round);
      },
      [&] { (void)send_one(0, *victim, source); },
      [&] {
        const int sends = take(source);
        EXPECT_LE(sends, 1);
        if (sends == 1) {
          ASSERT_EQ(channels.post(name, place.key, place.address, 200, nullptr), Errc::ok);
        }
        ASSERT_EQ(credits_of(world[1].nic().view(), name).value(), 1u) << "the buffer is lost";
        const auto other = bound(2, 1);
        const Bytes bytes = pattern(round + 9);
        ASSERT_EQ(send_one(2, *other, bytes), Errc::ok);
        EXPECT_EQ(take(bytes), 1);
      });
}

class KillMessengerByFrame : public KillMessenger {
 protected:
  KillMessengerByFrame() : KillMessenger(Path::frame) {}
};

TEST_F(KillMessengerByFrame, MessageSent) {
  run([&] { open_mailboxes(); }, [&] { (void)send(0, *victim, pattern(round)); },
      [&] { check_mailbox(round, 1); });
}

TEST_F(KillMessengerByFrame, MessagesReceivedAndReleased) {
  run(
      [&] {
        open_mailboxes();
        for (std::uint64_t i = 0; i < 2; ++i) ASSERT_EQ(send(1, *to_victim, pattern(i)), Errc::ok);
      },
      [&] {
        ReceivedMessage message;
        for (int i = 0; i < 2; ++i) {
          world[0].nic().progress();
          (void)next_message(world[0].nic(), *victim, kAnyTag, &message);
          (void)release_message(world[0].nic(), *victim);
        }
      },
      [&] { check_mailbox(0, 0); });
}

}  // namespace
}  // namespace orrery::nic
