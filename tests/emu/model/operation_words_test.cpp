// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/model/operation_words.hpp"

#include "emu/model/collective.hpp"
#include "emu/model/machine.hpp"
#include "emu/model/machine_file.hpp"
#include "emu/model/quote.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace orrery::model {
namespace {

TEST(OperationWords, EachStandsForOneThingAndIsFoundByItsName) {
  std::set<std::string> seen;
  for (const OperationWord& w : operation_words()) {
    const std::string name = std::string(w.api) + "." + std::string(w.word);
    EXPECT_TRUE(seen.insert(name).second) << name;
    const auto priced = priced_by_word(name);
    ASSERT_TRUE(priced.has_value()) << name;
    EXPECT_TRUE(*priced == w.priced) << name;
  }
  EXPECT_FALSE(priced_by_word("gni").has_value());
  EXPECT_FALSE(priced_by_word("gni.").has_value());
  EXPECT_FALSE(priced_by_word("gni.PUT").has_value());
  EXPECT_FALSE(priced_by_word("dmapp.POST_AMO").has_value());
}

// An operation that no API asks for would be priced in vain.
TEST(OperationWords, ReachEveryOperationAndCollective) {
  std::set<std::string_view> reached;
  for (const OperationWord& w : operation_words()) reached.insert(priced_name(w.priced));
  for (int i = 0; i < kOps; ++i) EXPECT_TRUE(reached.contains(op_name(static_cast<Op>(i)))) << i;
  for (int i = 0; i < kCollectives; ++i) {
    EXPECT_TRUE(reached.contains(collective_name(static_cast<Collective>(i)))) << i;
  }
}

TEST(OperationWords, ArePricedOnEveryMachine) {
  for (const ShippedFile& shipped : shipped_machines()) {
    const BuiltMachine built = build_machine(std::string(shipped.name));
    ASSERT_TRUE(built.machine) << built.error;
    const Machine& m = *built.machine;
    const bool free = m.pricing.network == Network::crossbar;
    for (const OperationWord& w : operation_words()) {
      SCOPED_TRACE(std::string(shipped.name) + " " + std::string(w.api) + "." + std::string(w.word));
      Picos took;
      if (const Op* const op = std::get_if<Op>(&w.priced)) {
        took =
            quote(m.pricing, {.op = *op, .src = 0, .dst = m.pricing.nodes - 1, .bytes = 8}, nullptr).data_at;
      } else {
        took = quote_collective(m, std::get<Collective>(w.priced), m.pricing.nodes, 8).time;
      }
      EXPECT_EQ(took == Picos{}, free);
    }
  }
}

}  // namespace
}  // namespace orrery::model
