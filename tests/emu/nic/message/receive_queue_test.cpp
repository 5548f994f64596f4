// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/message/receive_queue.hpp"

#include "tests/emu/nic/box.hpp"
#include "tests/emu/nic/seeds.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <random>
#include <set>
#include <thread>
#include <vector>

namespace orrery::nic {
namespace {

constexpr std::uint64_t kBufferBytes = 64;
constexpr std::uint64_t kMe = 1;  // as claimer: slot 1, generation 0

// A queue in a NIC's segment, with a slab.
class Queue {
 public:
  Queue(Nic& nic, std::uint32_t buffers, std::uint64_t nonce = 1)
      : slab(buffers * kBufferBytes),
        offset_(nic.arena().take(ReceiveQueue::bytes_for(buffers), Arena::Use::unit)),
        queue(nic.view(), offset_, buffers, reinterpret_cast<std::uint64_t>(slab.data()), kBufferBytes,
              nonce) {}
  std::vector<std::byte> slab;

 private:
  const std::uint64_t offset_;

 public:
  ReceiveQueue queue;
};

TEST(ReceiveQueueTest, BuffersAreTakenOldestFirstAndGivenBackInAnyOrder) {
  box::World world(2, box::Path::direct);
  Queue q(world[0].nic(), 4);
  const auto sender = open_receive_queue(world[0].nic().view(), q.queue.name()).value();
  std::vector<ReceiveBufferName> held;
  for (std::uint32_t i = 0; i < 4; ++i) {
    const auto claimed = claim_buffer(sender, kMe);
    ASSERT_TRUE(claimed.ok());
    EXPECT_EQ(claimed.value().index, i);
    ASSERT_EQ(publish_buffer(sender, claimed.value(), 10 + i, 100 + i), Errc::ok);
    held.push_back(claimed.value());
  }
  EXPECT_EQ(claim_buffer(sender, kMe).code(), Errc::no_resource) << "receive not ready";
  EXPECT_EQ(free_buffers(sender), 0u);
  for (const ReceiveBufferName& buffer : held) {
    const auto got = q.queue.take(buffer);
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(got.value().address,
              reinterpret_cast<std::uint64_t>(q.slab.data()) + buffer.index * kBufferBytes);
    EXPECT_EQ(got.value().bytes, 10 + buffer.index);
    EXPECT_EQ(got.value().user, 100 + buffer.index);
    EXPECT_EQ(q.queue.take(buffer).code(), Errc::no_match) << "once";
  }
  for (const std::uint32_t i : {2u, 0u, 3u}) ASSERT_EQ(q.queue.give_back(held[i]), Errc::ok);
  EXPECT_EQ(q.queue.give_back(held[2]), Errc::no_match) << "once";
  EXPECT_EQ(free_buffers(sender), 3u);
  for (const std::uint32_t i : {2u, 0u, 3u}) EXPECT_EQ(claim_buffer(sender, kMe).value().index, i);
  EXPECT_FALSE(claim_buffer(sender, kMe).ok());
}

TEST(ReceiveQueueTest, ForeignNamesAndLengthsAreRefused) {
  box::World world(2, box::Path::direct);
  const NicView view = world[0].nic().view();
  ReceiveQueueName name;
  {
    Queue q(world[0].nic(), 2);
    name = q.queue.name();
    EXPECT_TRUE(open_receive_queue(view, name).ok());
    for (const ReceiveQueueName& bad :
         {ReceiveQueueName{}, ReceiveQueueName{name.offset, 0}, ReceiveQueueName{name.offset, 2},
          ReceiveQueueName{name.offset + 8, 1}, ReceiveQueueName{UINT64_MAX - 63, 1}, ReceiveQueueName{0, 1}})
      EXPECT_EQ(open_receive_queue(view, bad).code(), Errc::invalid_handle) << bad.offset;
    const auto claimed = claim_buffer(q.queue.view(), kMe).value();
    EXPECT_EQ(publish_buffer(q.queue.view(), {9, claimed.serial}, 1, 0), Errc::invalid_handle);
    EXPECT_EQ(publish_buffer(q.queue.view(), {claimed.index, claimed.serial + 1}, 1, 0),
              Errc::invalid_handle);
    ASSERT_EQ(publish_buffer(q.queue.view(), claimed, kBufferBytes + 1, 0), Errc::ok);
    EXPECT_EQ(q.queue.take(claimed).code(), Errc::no_match) << "longer than a buffer";
    EXPECT_EQ(q.queue.take({99, 1}).code(), Errc::no_match);
    EXPECT_EQ(free_buffers(q.queue.view()), 2u) << "and nothing is lost";
    q.queue.view().state->buffers = kMaxReceiveBuffers + 1;
    EXPECT_EQ(open_receive_queue(view, name).code(), Errc::invalid_handle);
  }
  EXPECT_EQ(open_receive_queue(view, name).code(), Errc::invalid_handle) << "destroyed";
}

TEST(ReceiveQueueTest, ClaimsOfTheDeadAreRepaired) {
  box::World world(2, box::Path::direct);
  Queue q(world[0].nic(), 3);
  const ReceiveQueueView& view = q.queue.view();
  const auto filling = claim_buffer(view, 7).value();
  const auto untold = claim_buffer(view, 7).value();
  const auto living = claim_buffer(view, kMe).value();
  ASSERT_EQ(publish_buffer(view, untold, 5, 0), Errc::ok);
  EXPECT_TRUE(q.queue.has_claims());
  std::vector<ReceiveBufferName> told;
  const auto alive = [](std::uint16_t slot, std::uint32_t) { return slot != 7; };
  EXPECT_EQ(q.queue.repair(alive, [&](const ReceiveBufferName& b) { told.push_back(b); }), 1u);
  EXPECT_EQ(told, std::vector{untold});
  EXPECT_TRUE(q.queue.take(untold).ok());
  EXPECT_EQ(q.queue.repair(alive, [&](const ReceiveBufferName& b) { told.push_back(b); }), 0u);
  EXPECT_EQ(told.size(), 1u);
  EXPECT_EQ(publish_buffer(view, filling, 1, 0), Errc::invalid_handle);
  ASSERT_EQ(publish_buffer(view, living, 1, 0), Errc::ok);
  EXPECT_EQ(claim_buffer(view, kMe).value().index, filling.index);
}

TEST(ReceiveQueueTest, ManyBuffersAndThreads) {
  box::World world(1, box::Path::direct);
  Queue q(world[0].nic(), 100);
  constexpr int kEach = 5000;
  std::mutex mu;
  std::deque<ReceiveBufferName> told;  // what events would carry
  std::atomic<int> received{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < kEach;) {
        const auto claimed = claim_buffer(q.queue.view(), t);
        if (!claimed.ok()) {
          ASSERT_EQ(claimed.code(), Errc::no_resource);
          std::this_thread::yield();
          continue;
        }
        const std::uint64_t mark = t << 32 | i;
        std::memcpy(reinterpret_cast<void*>(address_of(q.queue.view(), claimed.value())), &mark, sizeof mark);
        ASSERT_EQ(publish_buffer(q.queue.view(), claimed.value(), sizeof mark, mark), Errc::ok);
        ++i;
        const std::lock_guard lock(mu);
        told.push_back(claimed.value());
      }
    });
  }
  std::set<std::uint64_t> seen;
  std::mt19937_64 random(1);
  std::vector<ReceiveBufferName> held;
  while (received.load() < 3 * kEach) {
    ReceiveBufferName buffer;
    {
      const std::lock_guard lock(mu);
      if (!told.empty()) {
        buffer = told.front();
        told.pop_front();
      }
    }
    if (buffer.serial != 0) {
      const auto got = q.queue.take(buffer);
      ASSERT_TRUE(got.ok());
      std::uint64_t mark = 0;
      std::memcpy(&mark, reinterpret_cast<const void*>(got.value().address), sizeof mark);
      ASSERT_EQ(mark, got.value().user);
      ASSERT_TRUE(seen.insert(mark).second);
      held.push_back(buffer);
      ++received;
    }
    if (!held.empty() && (held.size() > 60 || buffer.serial == 0)) {
      std::swap(held[random() % held.size()], held.back());
      ASSERT_EQ(q.queue.give_back(held.back()), Errc::ok);
      held.pop_back();
    }
  }
  for (auto& thread : threads) thread.join();
  for (const auto& buffer : held) ASSERT_EQ(q.queue.give_back(buffer), Errc::ok);
  EXPECT_EQ(free_buffers(q.queue.view()), 100u);
}

TEST(ReceiveQueueTest, HoldsAsManyBuffersAsItSays) {
  box::World world(1, box::Path::direct);
  Queue q(world[0].nic(), kMaxReceiveBuffers);
  for (std::uint32_t i = 0; i < kMaxReceiveBuffers; ++i) ASSERT_TRUE(claim_buffer(q.queue.view(), kMe).ok());
  EXPECT_FALSE(claim_buffer(q.queue.view(), kMe).ok());
}

// A seeded world against a plain model of the buffers' holders; senders die at each stage of a send.
std::string buffers_as_the_model_says(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  box::World world(1, box::Path::direct);
  const auto buffers = static_cast<std::uint32_t>(1 + random() % 7);
  Queue q(world[0].nic(), buffers, 1 + random() % 1000);
  const ReceiveQueueView& view = q.queue.view();
  std::deque<std::uint32_t> free;
  for (std::uint32_t i = 0; i < buffers; ++i) free.push_back(i);
  struct Claim {
    ReceiveBufferName name;
    std::uint64_t sender;
    bool filled = false;
  };
  std::deque<Claim> claims;
  std::vector<ReceiveBufferName> ours;
  std::uint64_t oldest = 1, next = 4;  // senders [oldest, next) live
  for (int step = 0; step < 300; ++step) {
    const std::uint64_t choice = random() % 100;
    if (choice < 35) {
      const std::uint64_t sender = oldest + random() % (next - oldest);
      const auto claimed = claim_buffer(view, sender);
      if (claimed.ok() != !free.empty()) return "a claim came out otherwise";
      if (free.empty()) continue;
      if (claimed.value().index != free.front()) return "not the oldest buffer";
      free.pop_front();
      claims.push_back({claimed.value(), sender});
    } else if (choice < 60) {
      if (claims.empty()) continue;
      Claim& claim = claims[random() % claims.size()];
      const Errc expected = claim.filled ? Errc::invalid_handle : Errc::ok;
      if (publish_buffer(view, claim.name, 8, claim.sender) != expected)
        return "a publication came out otherwise";
      claim.filled = true;
    } else if (choice < 75) {
      if (claims.empty()) continue;
      const auto at = claims.begin() + static_cast<std::ptrdiff_t>(random() % claims.size());
      const auto got = q.queue.take(at->name);
      if (got.ok() != at->filled) return "a buffer was to be had otherwise";
      if (!got.ok()) continue;
      if (got.value().user != at->sender || got.value().claimer != at->sender) return "of another sender";
      ours.push_back(at->name);
      claims.erase(at);
    } else if (choice < 95) {
      if (ours.empty()) continue;
      std::swap(ours[random() % ours.size()], ours.back());
      if (q.queue.give_back(ours.back()) != Errc::ok) return "a buffer does not come back";
      free.push_back(ours.back().index);
      ours.pop_back();
    } else {
      ++oldest;
      ++next;
      std::set<std::uint32_t> untold;
      std::vector<std::uint32_t> freed;
      for (std::uint32_t i = 0; i < buffers; ++i) {
        for (auto at = claims.begin(); at != claims.end(); ++at) {
          if (at->name.index != i || at->sender >= oldest) continue;
          if (at->filled) {
            untold.insert(i);
          } else {
            freed.push_back(i);
            claims.erase(at);
          }
          break;
        }
      }
      std::set<std::uint32_t> told;
      const std::uint32_t count =
          q.queue.repair([&](std::uint16_t slot, std::uint32_t) { return slot >= oldest; },
                         [&](const ReceiveBufferName& b) { told.insert(b.index); });
      if (count != freed.size() || told != untold) return "another repair";
      for (const std::uint32_t i : freed) free.push_back(i);
    }
    if (free_buffers(view) != free.size()) return "another number of free buffers";
  }
  return "";
}

TEST(ReceiveQueueInABox, BuffersAreWhereTheModelSays) {
  box::for_every_seed(1000, 100'000, buffers_as_the_model_says);
}

}  // namespace
}  // namespace orrery::nic
