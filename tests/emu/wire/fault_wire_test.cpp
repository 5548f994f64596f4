// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/wire/fault_wire.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <vector>

namespace orrery::wire {
namespace {

constexpr std::uint32_t kFrames = 20000;

struct Outcome {
  std::map<std::uint32_t, int> arrivals;  // by number
  std::vector<std::uint32_t> order;
  int broken = 0;
  FaultCounts counts;
};

// Not the same for any two numbers that differ in a few bits, however few of its own are flipped.
std::uint32_t check_of(std::uint32_t number) { return number * 2654435761; }

// Sends numbered frames, then lets time pass until nothing is held.
Outcome run(const FaultRates& rates) {
  FaultWire faults(rates);
  Outcome outcome;
  const FaultWire::Send send = [&](std::uint32_t to, std::span<const std::byte> frame) {
    std::uint32_t words[2];
    std::memcpy(words, frame.data(), sizeof words);
    EXPECT_EQ(to, 9u);
    if (words[1] != check_of(words[0])) {
      ++outcome.broken;
      return;
    }
    ++outcome.arrivals[words[0]];
    outcome.order.push_back(words[0]);
  };
  std::int64_t now = 0;
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    const std::uint32_t words[2] = {i, check_of(i)};
    faults.pass(9, std::as_bytes(std::span(words)), now += 1000, send);
  }
  faults.release(now + 1'000'000'000, send);
  EXPECT_FALSE(faults.holds_any());
  outcome.counts = faults.counts();
  return outcome;
}

TEST(FaultRates, AreReadFromTextAndNonsenseIsRefused) {
  const auto rates = FaultRates::parse("drop=0.25,seed=42,delay=1");
  ASSERT_TRUE(rates.ok());
  EXPECT_EQ(rates.value().drop, 0.25);
  EXPECT_EQ(rates.value().delay, 1);
  EXPECT_EQ(rates.value().corrupt, 0);
  EXPECT_EQ(rates.value().seed, 42u);
  for (const char* bad :
       {"drop", "drop=", "drop=1.5", "drop=-0.1", "drop=x", "lose=0.1", "seed=1.5", "drop=0.1,,"})
    EXPECT_EQ(FaultRates::parse(bad).code(), Errc::invalid_param) << bad;
}

TEST(FaultWire, WithoutFaultsPassesEverythingInOrder) {
  const Outcome outcome = run({});
  ASSERT_EQ(outcome.order.size(), kFrames);
  for (std::uint32_t i = 0; i < kFrames; ++i) ASSERT_EQ(outcome.order[i], i);
}

TEST(FaultWire, DoesEachFaultAsOftenAsAskedAndCountsIt) {
  const Outcome outcome =
      run({.drop = 0.1, .corrupt = 0.1, .duplicate = 0.1, .reorder = 0.1, .delay = 0.1, .seed = 3});
  const auto near = [](std::uint64_t count, double expected) {
    return static_cast<double>(count) > 0.8 * expected && static_cast<double>(count) < 1.2 * expected;
  };
  EXPECT_TRUE(near(outcome.counts.dropped, 0.1 * kFrames));
  EXPECT_TRUE(near(outcome.counts.corrupted, 0.09 * kFrames));
  EXPECT_TRUE(near(outcome.counts.duplicated, 0.081 * kFrames));
  EXPECT_TRUE(near(outcome.counts.reordered, 0.0729 * kFrames));
  EXPECT_TRUE(near(outcome.counts.delayed, 0.06561 * kFrames));
  EXPECT_EQ(outcome.counts.corrupted, static_cast<std::uint64_t>(outcome.broken));
  std::uint64_t twice = 0;
  for (const auto& [number, count] : outcome.arrivals) twice += count == 2 ? 1 : 0;
  EXPECT_EQ(twice, outcome.counts.duplicated);
  EXPECT_FALSE(std::is_sorted(outcome.order.begin(), outcome.order.end()));
}

TEST(FaultWire, ABrokenFrameDiffersInOneToFourBits) {
  FaultWire faults({.corrupt = 1});
  const std::byte sent{0x5a};
  std::array<int, 9> frames_by_bits{};
  for (std::uint32_t i = 0; i < kFrames; ++i) {
    faults.pass(9, std::span(&sent, 1), 0, [&](std::uint32_t, std::span<const std::byte> frame) {
      ++frames_by_bits[static_cast<std::size_t>(
          std::popcount(std::to_integer<std::uint8_t>(frame[0] ^ sent)))];
    });
  }
  for (std::size_t bits = 0; bits < frames_by_bits.size(); ++bits)
    EXPECT_EQ(frames_by_bits[bits] != 0, bits >= 1 && bits <= 4) << bits << ": " << frames_by_bits[bits];
}

TEST(FaultWire, RepeatsItselfBySeed) {
  const FaultRates rates{.drop = 0.05, .duplicate = 0.05, .reorder = 0.1, .seed = 42};
  EXPECT_EQ(run(rates).order, run(rates).order);
  FaultRates other = rates;
  other.seed = 43;
  EXPECT_NE(run(rates).order, run(other).order);
}

}  // namespace
}  // namespace orrery::wire
