// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/target/amo_cache.hpp"

#include "emu/nic/target/amo_unit.hpp"
#include "tests/emu/nic/box.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace orrery::nic {
namespace {

constexpr std::uint32_t kEntries = 4;
constexpr std::uint8_t kAdd = amo::command(AmoOp::add, kAmoCached);
constexpr std::uint8_t kFetchingAdd = amo::command(AmoOp::add, kAmoCached | kAmoFetch);

// Node 1 has memory and a cache of kEntries words, node 0 works on it.
class Cached {
 public:
  explicit Cached(AmoCacheMode mode, box::Path path = box::Path::direct)
      : world(2, path, {.amo_cache_entries = kEntries, .amo_cache_mode = mode}) {
    queue = world[0].nic().create_queue(16, 0).value();
    endpoint = world.endpoint(0, 1, queue);
    key = world[1].nic().register_region(world[1].port(), address(memory), sizeof memory, 0, nullptr).value();
  }
  static std::uint64_t address(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

  // Carries an operation out; what a fetching one found.
  std::uint64_t run(Op op, std::uint8_t command, const void* at, std::uint64_t a, std::uint64_t b = 0,
                    std::uint64_t length = 8) {
    std::uint64_t local = op == Op::put ? a : 0;
    Request r;
    r.op = op;
    r.command = command;
    r.flags = kGlobalEvent;
    r.remote = key;
    r.remote_address = address(at);
    r.length = op == Op::amo ? amo::width(command) : length;
    r.local_address = address(&local);
    r.operand[0] = a;
    r.operand[1] = b;
    EXPECT_EQ(world[0].nic().post(*endpoint, r), Errc::ok);
    Event event;
    Errc found = Errc::not_done;
    for (int i = 0; i < 1000 && found == Errc::not_done; ++i) {
      world.serve_all();
      found = world[0].nic().poll(*queue, &event);
    }
    EXPECT_EQ(found, Errc::ok);
    EXPECT_EQ(event.status, Errc::ok);
    EXPECT_TRUE(queue->completed(event.transaction(), event.status).ok());
    return local;
  }
  std::uint64_t amo(std::uint8_t command, int word, std::uint64_t a, std::uint64_t b = 0) {
    return run(Op::amo, command, memory + word, a, b);
  }
  void expect(std::uint64_t hits, std::uint64_t misses, std::uint64_t evictions, std::uint64_t write_backs) {
    const AmoCacheCounters counters = AmoCache(world[1].nic().view()).counters();
    EXPECT_EQ(counters.hits, hits);
    EXPECT_EQ(counters.misses, misses);
    EXPECT_EQ(counters.evictions, evictions);
    EXPECT_EQ(counters.write_backs, write_backs);
  }

  box::World world;
  alignas(4096) std::uint64_t memory[512] = {};
  CompletionQueue* queue = nullptr;
  std::unique_ptr<Endpoint> endpoint;
  MemKey key;
};

TEST(AmoCacheCoherent, MemoryIsCurrentAndTheCountersSayWhatACacheWouldDo) {
  Cached c(AmoCacheMode::coherent);
  for (int word = 0; word < 4; ++word) c.amo(kAdd, word, 5);
  c.expect(0, 4, 0, 0);
  for (int word = 0; word < 4; ++word) {
    EXPECT_EQ(c.memory[word], 5u);
    c.amo(kAdd, word, 1);
  }
  c.expect(4, 4, 0, 0);
  c.amo(kAdd, 4, 1);  // drives out word 0, the first to come
  c.expect(4, 5, 1, 0);
  c.amo(kAdd, 1, 1);
  c.expect(5, 5, 1, 0);
  c.amo(kAdd, 0, 1);
  c.expect(5, 6, 2, 0);
  EXPECT_EQ(c.memory[0], 7u);
  // The target's processor is heard at once.
  c.memory[0] = 100;
  EXPECT_EQ(c.amo(kFetchingAdd, 0, 1), 100u);
  c.amo(amo::command(AmoOp::add, kAmoFetch), 0, 1);
  c.expect(6, 6, 2, 0);  // a command past the cache counts nowhere
}

TEST(AmoCacheLazy, MemoryHasTheOldValueUntilAFetchingCommandReadsTheNewOne) {
  Cached c(AmoCacheMode::lazy);
  c.memory[0] = 10;
  c.amo(kAdd, 0, 1);
  c.amo(kAdd, 0, 1);
  EXPECT_EQ(c.memory[0], 10u);
  c.expect(1, 1, 0, 0);
  EXPECT_EQ(c.amo(kFetchingAdd, 0, 1), 12u);
  EXPECT_EQ(c.memory[0], 13u);
  c.expect(2, 1, 0, 1);
  // What the processor stores is not heard while the word is cached.
  c.memory[0] = 1000;
  EXPECT_EQ(c.amo(kFetchingAdd, 0, 0), 13u);
  EXPECT_EQ(c.memory[0], 1000u) << "the cache has nothing that memory lacks";
  c.expect(3, 1, 0, 1);
}

TEST(AmoCacheLazy, OneEntryTooManyWritesTheFirstOneBack) {
  Cached c(AmoCacheMode::lazy);
  for (int word = 0; word < 4; ++word) c.amo(kAdd, word, 7);
  for (int word = 0; word < 4; ++word) EXPECT_EQ(c.memory[word], 0u);
  c.amo(kAdd, 4, 7);
  EXPECT_EQ(c.memory[0], 7u);
  for (int word = 1; word < 5; ++word) EXPECT_EQ(c.memory[word], 0u);
  c.expect(0, 5, 1, 1);
  EXPECT_EQ(c.amo(kFetchingAdd, 0, 1), 7u) << "it comes back from memory";
  c.expect(0, 6, 2, 3);  // word 1 left, word 0 was read
}

TEST(AmoCacheLazy, AFlushWritesEverythingBackAndEmptiesTheCache) {
  Cached c(AmoCacheMode::lazy);
  c.amo(kAdd, 0, 1);
  c.amo(kAdd, 1, 2);
  c.world[1].nic().transport().flush_amo_cache();
  EXPECT_EQ(c.memory[0], 1u);
  EXPECT_EQ(c.memory[1], 2u);
  c.expect(0, 2, 0, 2);
  c.memory[0] = 50;
  EXPECT_EQ(c.amo(kFetchingAdd, 0, 0), 50u) << "the cache had dropped it";
  c.expect(0, 3, 0, 2);
}

TEST(AmoCacheLazy, DeregistrationWritesItsOwnWordsBack) {
  Cached c(AmoCacheMode::lazy);
  alignas(4096) static std::uint64_t other[512] = {};
  Nic& nic = c.world[1].nic();
  const MemKey second =
      nic.register_region(c.world[1].port(), Cached::address(other), sizeof other, 0, nullptr).value();
  c.amo(kAdd, 0, 1);
  const MemKey first = c.key;
  c.key = second;
  c.run(Op::amo, kAdd, other, 9);
  ASSERT_TRUE(nic.deregister(first).ok());
  EXPECT_EQ(c.memory[0], 1u);
  EXPECT_EQ(other[0], 0u);
  ASSERT_TRUE(nic.deregister(second).ok());
  EXPECT_EQ(other[0], 9u);
}

TEST(AmoCacheLazy, TheNetworkSeesOneValue) {
  for (const auto path : {box::Path::direct, box::Path::frame, box::Path::adopt}) {
    Cached c(AmoCacheMode::lazy, path);
    c.amo(kAdd, 0, 3);
    EXPECT_EQ(c.run(Op::get, 0, c.memory, 0), 3u);
    c.amo(kAdd, 0, 3);
    EXPECT_EQ(c.amo(amo::command(AmoOp::add, kAmoFetch), 0, 1), 6u) << "past the cache";
    c.amo(kAdd, 0, 1);
    c.run(Op::put, 0, c.memory, 100);
    EXPECT_EQ(c.memory[0], 100u);
    EXPECT_EQ(c.amo(kFetchingAdd, 0, 1), 100u);
    // A put to half of it keeps the other half of what was cached.
    c.amo(kAdd, 0, 0x5'0000'0000);
    c.run(Op::put, 0, c.memory, 1, 0, 4);
    EXPECT_EQ(c.memory[0], 0x5'0000'0001u);
  }
}

// Also by the fast path of a put of one line without a completion.
TEST(AmoCacheLazy, ASilentPutDrivesACachedWordOut) {
  Cached c(AmoCacheMode::lazy, box::Path::frame);
  c.amo(kAdd, 0, 0x5'0000'0000);
  ASSERT_EQ(c.memory[0], 0u) << "in the cache only";
  std::uint64_t one = 1;
  Request r;
  r.op = Op::put;
  r.remote = c.key;
  r.remote_address = Cached::address(c.memory);
  r.length = 4;
  r.local_address = Cached::address(&one);
  for (int i = 0; i < 2; ++i) ASSERT_EQ(c.world[0].nic().post(*c.endpoint, r), Errc::ok);
  for (int i = 0; i < 1000 && c.memory[0] != 0x5'0000'0001; ++i) c.world.serve_all();
  EXPECT_EQ(c.memory[0], 0x5'0000'0001u);
}

TEST(AmoCacheLazy, WordsOfBothSizesThatOverlapDriveEachOtherOut) {
  constexpr std::uint8_t kNarrow = amo::command(AmoOp::add, kAmoCached | kAmoNarrow);
  Cached c(AmoCacheMode::lazy);
  auto* halves = reinterpret_cast<std::uint32_t*>(c.memory);
  c.run(Op::amo, kNarrow, halves, 1);
  c.run(Op::amo, kNarrow, halves + 1, 2);
  EXPECT_EQ(c.memory[0], 0u);
  EXPECT_EQ(c.amo(kFetchingAdd, 0, 0x10'0000'0010), 0x2'0000'0001u);
  c.amo(kAdd, 0, 0x10);
  EXPECT_EQ(c.run(Op::amo, kNarrow | kAmoFetch, halves, 1), 0x21u);
  EXPECT_EQ(c.memory[0], 0x12'0000'0022u);
}

// Against a plain map: what fetching commands find, and what memory is after a flush.
TEST(AmoCacheLazy, ValuesAreThoseOfAPlainTable) {
  for (const auto path : {box::Path::direct, box::Path::frame, box::Path::adopt}) {
    Cached c(AmoCacheMode::lazy, path);
    std::mt19937_64 random(99);
    std::map<int, std::uint64_t> model;
    for (int i = 0; i < 3000; ++i) {
      const int word = static_cast<int>(random() % 9);
      const std::uint64_t a = random();
      constexpr AmoOp kOps[] = {AmoOp::add, AmoOp::bit_xor, AmoOp::swap, AmoOp::max, AmoOp::and_xor};
      const AmoOp op = kOps[random() % std::size(kOps)];
      const unsigned flags = (random() % 4 != 0 ? kAmoCached : 0u) | (random() % 3 == 0 ? kAmoFetch : 0u);
      const std::uint64_t old = c.amo(amo::command(op, flags), word, a, ~a);
      if ((flags & kAmoFetch) != 0) {
        ASSERT_EQ(old, model[word]) << "operation " << i;
      }
      model[word] = amo::combined<std::uint64_t>(op, model[word], a, ~a);
      if (random() % 50 == 0) {
        ASSERT_EQ(c.run(Op::get, 0, c.memory + word, 0), model[word]) << "operation " << i;
      }
    }
    c.world[1].nic().transport().flush_amo_cache();
    for (const auto& [word, value] : model) EXPECT_EQ(c.memory[word], value);
    EXPECT_GT(AmoCache(c.world[1].nic().view()).counters().evictions, 100u);
  }
}

}  // namespace
}  // namespace orrery::nic
