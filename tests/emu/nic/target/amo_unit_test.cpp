// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/target/amo_unit.hpp"

#include "tests/emu/nic/box.hpp"
#include "tests/emu/nic/target/amo_oracle.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cfenv>
#include <cmath>
#include <cstdlib>
#include <random>
#include <thread>
#include <utility>
#include <vector>

namespace orrery::nic {
namespace {

using amo_oracle::kWorked;
using amo_oracle::oracle;
using amo_oracle::Worked;
using box::Path;

constexpr AmoOp kOps[] = {AmoOp::bit_and, AmoOp::bit_or,       AmoOp::bit_xor,   AmoOp::swap,
                          AmoOp::and_xor, AmoOp::compare_swap, AmoOp::min,       AmoOp::max,
                          AmoOp::add,     AmoOp::float_min,    AmoOp::float_max, AmoOp::float_add};

std::vector<std::uint8_t> all_commands() {
  std::vector<std::uint8_t> all;
  for (const AmoOp op : kOps) {
    for (unsigned flags = 0; flags < 8; ++flags) {
      all.push_back(amo::command(
          op, (flags & 1 ? kAmoFetch : 0u) | (flags & 2 ? kAmoNarrow : 0u) | (flags & 4 ? kAmoCached : 0u)));
    }
  }
  return all;
}

std::uint64_t seed_from_environment() {
  const char* asked = std::getenv("ORRERY_TEST_SEED");
  const std::uint64_t seed = asked != nullptr ? std::strtoull(asked, nullptr, 0) : 20261122;
  std::printf("ORRERY_TEST_SEED=%llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// Words that are likely to be special, for the width asked for.
std::uint64_t interesting(std::mt19937_64& random, std::uint64_t width) {
  static constexpr std::uint64_t kWide[] = {0,
                                            1,
                                            ~0ull,
                                            1ull << 63,
                                            (1ull << 63) - 1,
                                            0x3ff0'0000'0000'0000,
                                            0x7ff0'0000'0000'0000,
                                            0xfff0'0000'0000'0000,
                                            0x7ff8'0000'0000'0001,
                                            0x7ff0'0000'0000'0001,
                                            0xfff8'0000'0000'0000,
                                            0x0000'0000'0000'0001,
                                            0x7fef'ffff'ffff'ffff,
                                            0x8000'0000'0000'0001};
  static constexpr std::uint64_t kNarrow[] = {0,           1,           0xffff'ffff, 0x8000'0000, 0x7fff'ffff,
                                              0x3f80'0000, 0x7f80'0000, 0xff80'0000, 0x7fc0'0001, 0x7f80'0001,
                                              0xffc0'0000, 0x7f7f'ffff, 0x8000'0001, 0x0080'0000};
  if (random() % 3 != 0) return random();
  return width == 8 ? kWide[random() % std::size(kWide)] : kNarrow[random() % std::size(kNarrow)];
}

// Two nodes; node 1 has memory, node 0 an endpoint to it.
class AmoUnit : public ::testing::TestWithParam<Path> {
 protected:
  AmoUnit() : world(2, GetParam()) {
    source = world[0].nic().create_queue(16, 0).value();
    endpoint = world.endpoint(0, 1, source);
    target = world[1].nic().create_queue(16, 0).value();
    key = world[1].nic().register_region(world[1].port(), address(memory), sizeof memory, 0, target).value();
  }
  static std::uint64_t address(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

  Request request(std::uint8_t command, const void* at, std::uint64_t a, std::uint64_t b = 0) {
    Request r;
    r.op = Op::amo;
    r.command = command;
    r.flags = kGlobalEvent;
    r.remote = key;
    r.remote_address = address(at);
    r.length = amo::width(command);
    r.local_address = address(results);
    r.operand[0] = a;
    r.operand[1] = b;
    return r;
  }
  // Posts and waits; how it ended.
  Errc run(const Request& r) {
    const Errc posted = world[0].nic().post(*endpoint, r);
    if (posted != Errc::ok) return posted;
    Event event;
    for (int i = 0; i < 1000; ++i) {
      if (world[0].nic().poll(*source, &event) == Errc::ok) {
        EXPECT_TRUE(source->completed(event.transaction(), event.status).ok());
        return event.status;
      }
      world.serve_all();
    }
    return Errc::timeout;
  }

  box::World world;
  alignas(4096) std::uint64_t memory[512] = {};
  std::uint64_t results[64] = {};
  CompletionQueue* source = nullptr;
  CompletionQueue* target = nullptr;
  std::unique_ptr<Endpoint> endpoint;
  MemKey key;
};

INSTANTIATE_TEST_SUITE_P(Paths, AmoUnit, ::testing::Values(Path::direct, Path::frame, Path::adopt),
                         [](const auto& info) {
                           return info.param == Path::direct  ? "Direct"
                                  : info.param == Path::frame ? "Frame"
                                                              : "Adopt";
                         });

TEST_P(AmoUnit, EveryCommandDoesWhatTheRulesSayAndTouchesOnlyItsWord) {
  std::mt19937_64 random(seed_from_environment());
  for (int round = 0; round < 300; ++round) {
    for (const std::uint8_t command : all_commands()) {
      const std::uint64_t width = amo::width(command);
      std::uint64_t old = interesting(random, width);
      const std::uint64_t a = interesting(random, width);
      const std::uint64_t b = interesting(random, width);
      // Compare-and-swap has to find what it looks for in half of the cases.
      if (amo::op(command) == AmoOp::compare_swap && random() % 2 == 0) old = a;
      std::uint8_t before[24];
      std::memset(before, 0xcc, sizeof before);
      std::memcpy(before + 8, &old, width);
      std::memcpy(memory + 3, before, sizeof before);
      std::memset(results, 0xdd, sizeof results);
      ASSERT_EQ(run(request(command, memory + 4, a, b)), Errc::ok);
      const std::uint64_t value = oracle(command, old, a, b);
      std::memcpy(before + 8, &value, width);
      ASSERT_EQ(std::memcmp(memory + 3, before, sizeof before), 0)
          << "command " << int{command} << std::hex << " of " << old << ", " << a << ", " << b << " gives "
          << memory[4] << ", not " << value;
      std::uint64_t found = 0xdddd'dddd'dddd'dddd;
      if (amo::fetches(command)) std::memcpy(&found, &old, width);
      ASSERT_EQ(results[0], found) << "command " << int{command};
    }
  }
}

TEST_P(AmoUnit, WorkedExamplesComeOutAsOnPaper) {
  for (const Worked& w : kWorked) {
    for (const unsigned flags :
         {0u, unsigned{kAmoFetch}, unsigned{kAmoCached}, unsigned{kAmoFetch | kAmoCached}}) {
      const std::uint8_t command = amo::command(w.op, w.narrow | flags);
      const std::uint64_t width = amo::width(command);
      memory[4] = 0;
      std::memcpy(memory + 4, &w.old, width);
      ASSERT_EQ(run(request(command, memory + 4, w.a, w.b)), Errc::ok);
      EXPECT_EQ(memory[4], w.result) << "command " << int{command} << std::hex << " of " << w.old;
      EXPECT_EQ(oracle(command, w.old, w.a, w.b), w.result) << "the oracle itself";
    }
  }
}

// What must hold whatever the numbers are.
TEST_P(AmoUnit, TheAlgebraHolds) {
  std::mt19937_64 random(seed_from_environment());
  for (int round = 0; round < 50; ++round) {
    for (const unsigned narrow : {0u, unsigned{kAmoNarrow}}) {
      const std::uint64_t mask = narrow != 0 ? 0xffff'ffffull : ~0ull;
      const std::uint64_t x = interesting(random, narrow != 0 ? 4 : 8) & mask;
      const std::uint64_t y = interesting(random, narrow != 0 ? 4 : 8) & mask;
      const auto chain = [&](std::initializer_list<std::pair<AmoOp, std::uint64_t>> steps) {
        memory[4] = x;
        for (const auto& [op, operand] : steps)
          EXPECT_EQ(run(request(amo::command(op, narrow), memory + 4, operand, operand)), Errc::ok);
        return memory[4];
      };
      using enum AmoOp;
      EXPECT_EQ(chain({{add, y}, {add, (~y + 1) & mask}}), x) << "what is added can be taken away";
      EXPECT_EQ(chain({{bit_xor, y}, {bit_xor, y}}), x);
      EXPECT_EQ(chain({{bit_and, y}, {bit_or, y}}), y) << "absorption";
      EXPECT_EQ(chain({{bit_or, y}, {bit_and, y}}), y);
      EXPECT_EQ(chain({{min, y}, {max, y}}), y);
      EXPECT_EQ(chain({{max, y}, {min, y}}), y);
      EXPECT_EQ(chain({{max, y}, {max, x}}), chain({{max, y}})) << "a maximum stays";
      EXPECT_EQ(chain({{swap, y}, {swap, x}}), x);
      EXPECT_EQ(chain({{and_xor, 0}}), 0u);
      EXPECT_EQ(chain({{and_xor, mask}}), ~x & mask) << "keep all, turn all";
    }
  }
}

TEST_P(AmoUnit, BytesThatAreNoCommandAreRefused) {
  int refused = 0;
  for (int command = 0; command < 256; ++command) {
    if (amo::is_valid(static_cast<std::uint8_t>(command))) continue;
    ++refused;
    memory[0] = 7;
    EXPECT_EQ(run(request(static_cast<std::uint8_t>(command), memory, 1)), Errc::illegal_op) << command;
    EXPECT_EQ(memory[0], 7u);
  }
  EXPECT_EQ(refused, 256 - 96);
}

TEST_P(AmoUnit, AlignmentBoundsAndPermissionAreChecked) {
  const auto* bytes = reinterpret_cast<const std::byte*>(memory);
  const std::uint8_t wide = amo::command(AmoOp::add, kAmoFetch);
  const std::uint8_t narrow = amo::command(AmoOp::add, kAmoFetch | kAmoNarrow);
  EXPECT_EQ(run(request(wide, bytes + 4, 1)), Errc::alignment);
  EXPECT_EQ(run(request(narrow, bytes + 4, 1)), Errc::ok);
  EXPECT_EQ(run(request(narrow, bytes + 2, 1)), Errc::alignment);
  EXPECT_EQ(run(request(wide, bytes + sizeof memory, 1)), Errc::bounds);
  EXPECT_EQ(run(request(wide, bytes - 8, 1)), Errc::bounds);
  Request odd = request(wide, bytes, 1);
  odd.length = 12;
  EXPECT_EQ(run(odd), Errc::alignment);
  const MemKey read_only =
      world[1].nic().register_region(world[1].port(), address(memory), 4096, kReadOnly, nullptr).value();
  Request refused = request(wide, bytes, 1);
  refused.remote = read_only;
  EXPECT_EQ(run(refused), Errc::permission);
  EXPECT_EQ(memory[0], 0x1'0000'0000u) << "only the narrow one";
}

TEST_P(AmoUnit, SeveralWordsAreOneOperation) {
  for (int i = 0; i < 512; ++i) memory[i] = static_cast<std::uint64_t>(i);
  Request r = request(amo::command(AmoOp::add, kAmoFetch), memory, 100);
  r.length = 64 * 8;
  ASSERT_EQ(run(r), Errc::ok);
  for (std::uint64_t i = 0; i < 512; ++i) ASSERT_EQ(memory[i], i + (i < 64 ? 100 : 0));
  for (std::uint64_t i = 0; i < 64; ++i) ASSERT_EQ(results[i], i);
  // With two operands and without fetching: every other word.
  r = request(amo::command(AmoOp::and_xor, 0), memory, 0, 5);
  r.length = 500 * 8;
  r.flags |= kRemoteEvent;
  ASSERT_EQ(run(r), Errc::ok);
  for (std::uint64_t i = 64; i < 512; ++i) ASSERT_EQ(memory[i], i % 2 == 0 && i < 500 ? 5 : i);
  Event event;
  EXPECT_EQ(target->take(&event), Errc::ok);
  EXPECT_EQ(target->take(&event), Errc::not_done) << "one event for all of them";
}

TEST_P(AmoUnit, WordsOfSegmentsAreFoundWhereTheyLie) {
  const Segment segments[] = {{address(memory + 100), 24}, {address(memory + 10), 20}, {address(memory), 20}};
  const MemKey list =
      world[1].nic().regions().register_segments(world[1].port(), segments, 0, nullptr).value();
  const auto at = [&](std::uint64_t offset, unsigned flags = 0) {
    Request r = request(amo::command(AmoOp::add, kAmoFetch | flags), nullptr, 1);
    r.remote_address = offset;
    r.remote = list;
    return run(r);
  };
  EXPECT_EQ(at(16), Errc::ok);
  EXPECT_EQ(memory[102], 1u);
  EXPECT_EQ(at(24), Errc::ok);
  EXPECT_EQ(memory[10], 1u);
  EXPECT_EQ(at(40, kAmoNarrow), Errc::ok);
  EXPECT_EQ(at(40), Errc::alignment) << "a word that lies in two segments";
  EXPECT_EQ(at(48), Errc::alignment) << "aligned as an offset alone";
  EXPECT_EQ(at(64), Errc::bounds);
}

TEST_P(AmoUnit, TheFlagOfAResponseStandsBehindItsData) {
  memory[9] = 0x1111;
  results[0] = results[1] = 0;
  Request r = request(amo::command(AmoOp::add, kAmoFetch), memory + 9, 1);
  r.flags |= kResponseFlag;
  r.sync_value = 0xabcd'ef01'2345'6789;
  ASSERT_EQ(run(r), Errc::ok);
  EXPECT_EQ(results[0], 0x1111u);
  EXPECT_EQ(results[1], 0x2345'6789u) << "four bytes of it";
  r.op = Op::get;
  r.length = 12;
  ASSERT_EQ(run(r), Errc::ok);
  EXPECT_EQ(results[0], 0x1112u);
  EXPECT_EQ(results[1] >> 32, 0x2345'6789u);
  r.remote.generation = static_cast<std::uint16_t>(r.remote.generation + 1);
  results[1] = 0;
  EXPECT_EQ(run(r), Errc::invalid_handle);
  EXPECT_EQ(results[1], 0u) << "an operation that failed raises no flag";
}

TEST(AmoArithmetic, DoesNotDependOnTheThreadThatDoesIt) {
  const double third = 1.0 / 3;
  const std::uint64_t a = std::bit_cast<std::uint64_t>(1.0);
  const std::uint64_t b = std::bit_cast<std::uint64_t>(third);
  const std::uint64_t nearest = float_rules::add(a, b);
  for (const int mode : {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST}) {
    ASSERT_EQ(std::fesetround(mode), 0);
    std::feclearexcept(FE_ALL_EXCEPT);
    EXPECT_EQ(float_rules::add(a, b), nearest);
    EXPECT_EQ(std::fetestexcept(FE_ALL_EXCEPT), 0) << "the thread's flags are its own";
    EXPECT_EQ(std::fegetround(), mode);
  }
  std::fesetround(FE_TONEAREST);
}

// Threads of two initiators and the target's own processor on one word: nothing is lost.
TEST(AmoConcurrency, SumsAreWhatWasAdded) {
  constexpr int kAdds = 20'000;
  box::World world(3, Path::direct);
  alignas(8) std::uint64_t words[3] = {};  // add, bits by xor, double
  const MemKey key =
      world[2]
          .nic()
          .register_region(world[2].port(), reinterpret_cast<std::uint64_t>(words), sizeof words, 0, nullptr)
          .value();
  const auto work = [&](int node) {
    const auto endpoint = world.endpoint(node, 2, nullptr);
    Request r;
    r.op = Op::amo;
    r.remote = key;
    r.length = 8;
    for (int i = 0; i < kAdds; ++i) {
      r.command = amo::command(AmoOp::add, 0);
      r.remote_address = reinterpret_cast<std::uint64_t>(words);
      r.operand[0] = 1;
      ASSERT_EQ(world[node].nic().post(*endpoint, r), Errc::ok);
      r.command = amo::command(AmoOp::bit_xor, 0);
      r.remote_address += 8;
      r.operand[0] = 1ull << node;
      ASSERT_EQ(world[node].nic().post(*endpoint, r), Errc::ok);
      r.command = amo::command(AmoOp::float_add, 0);
      r.remote_address += 8;
      r.operand[0] = std::bit_cast<std::uint64_t>(0.5);
      ASSERT_EQ(world[node].nic().post(*endpoint, r), Errc::ok);
    }
  };
  std::thread one(work, 0);
  std::thread two(work, 1);
  for (int i = 0; i < kAdds; ++i) std::atomic_ref<std::uint64_t>(words[0]).fetch_add(1);
  one.join();
  two.join();
  EXPECT_EQ(words[0], 3u * kAdds);
  EXPECT_EQ(words[1], 0u);
  EXPECT_EQ(std::bit_cast<double>(words[2]), static_cast<double>(kAdds));
}

}  // namespace
}  // namespace orrery::nic
