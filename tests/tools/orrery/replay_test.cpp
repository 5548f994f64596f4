// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "tools/orrery/trace/replay.hpp"

#include "emu/model/link_state.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <vector>

// A run's operations, asked about again.
namespace orrery::tool {
namespace {

// Long puts to one node, all begun at one time by PEs on nodes of their own, in this order.
std::vector<clock::Recorded> begun_at_once(const model::Machine& machine,
                                           const std::vector<std::uint32_t>& pes) {
  const model::Pricing& p = machine.pricing;
  const std::size_t bytes = (model::LinkState::bytes_needed(p, model::LinkState::Kind::exact) + 63) / 64 * 64;
  const std::unique_ptr<std::byte, decltype(&std::free)> memory(
      static_cast<std::byte*>(std::aligned_alloc(64, bytes)), &std::free);
  model::LinkState links =
      model::LinkState::create({memory.get(), bytes}, p, model::LinkState::Kind::exact).value();
  std::vector<clock::Recorded> records;
  for (const std::uint32_t pe : pes) {
    const model::QuoteRequest request{
        .op = model::Op::bte_put, .src = pe, .dst = 0, .bytes = 1 << 20, .now = Picos{1000}};
    records.push_back({.called = 1000,
                       .pe = pe,
                       .number = records.size(),
                       .uncontended = false,
                       .request = request,
                       .quote = model::quote(p, request, &links)});
  }
  return records;
}

// A PE that is woken without time passing begins its operation after that of the one that woke it, whichever
// has the smaller number. Where PEs run ahead of one another the numbers decide.
TEST(Replay, OperationsOfOneTimeComeInTheOrderInWhichAConservativeRunBeganThem) {
  const model::BuiltMachine built = model::build_machine("aries");
  ASSERT_TRUE(built.machine) << built.error;
  const auto conflicts = [&](const std::vector<std::uint32_t>& pes, Ties ties) {
    const auto found = replay(*built.machine, begun_at_once(*built.machine, pes), ties);
    EXPECT_TRUE(found);
    EXPECT_EQ(found->operations, pes.size());
    return found->conflicts;
  };
  EXPECT_EQ(conflicts({1, 2, 3}, Ties::by_pe), 0u);
  EXPECT_EQ(conflicts({1, 2, 3}, Ties::as_begun), 0u);
  EXPECT_EQ(conflicts({2, 3, 1}, Ties::as_begun), 0u);
  EXPECT_GT(conflicts({2, 3, 1}, Ties::by_pe), 0u);
}

}  // namespace
}  // namespace orrery::tool
