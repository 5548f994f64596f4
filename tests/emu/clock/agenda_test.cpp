// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/clock/agenda.hpp"

#include <gtest/gtest.h>

#include <random>

namespace orrery::clock {
namespace {

struct Nothing final : Task {
  void run() override {}
};

TEST(Agenda, GivesTasksByTimeAndThoseOfOneTimeInTheOrderTheyCame) {
  std::mt19937 random(7);
  Agenda agenda;
  std::vector<Nothing> tasks(500);
  std::vector<std::pair<std::int64_t, std::size_t>> expected;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    const auto at = static_cast<std::int64_t>(random() % 40);
    agenda.add(at, &tasks[i], random() % 2 == 0 ? Concerns::others : Concerns::itself);
    expected.emplace_back(at, i);
  }
  std::sort(expected.begin(), expected.end());
  for (const auto& [at, which] : expected) {
    ASSERT_EQ(agenda.first(), at);
    ASSERT_EQ(agenda.take(), &tasks[which]);
  }
  EXPECT_TRUE(agenda.empty());
}

TEST(Agenda, TellsApartWhatConcernsOthers) {
  Nothing own, shared;
  Agenda agenda;
  EXPECT_EQ(agenda.first(), Agenda::kNone);
  agenda.add(3, &own, Concerns::itself);
  EXPECT_EQ(agenda.first(), 3);
  EXPECT_EQ(agenda.first_for_others(), Agenda::kNone);
  agenda.add(5, &shared, Concerns::others);
  EXPECT_EQ(agenda.first(), 3);
  EXPECT_EQ(agenda.first_for_others(), 5);
  EXPECT_EQ(agenda.size(), 2u);
  EXPECT_EQ(agenda.take(), &own);
  EXPECT_EQ(agenda.take(), &shared);
}

}  // namespace
}  // namespace orrery::clock
