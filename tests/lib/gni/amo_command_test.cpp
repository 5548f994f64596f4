// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/gni/request/amo_command.hpp"

#include <gtest/gtest.h>

#include <set>

// Which command of the NIC each of the interface's is, by name.
namespace {

using orrery::gni::amo_command_of;
using orrery::nic::AmoOp;
using orrery::nic::kAmoCached;
using orrery::nic::kAmoFetch;
using orrery::nic::kAmoNarrow;
namespace amo = orrery::nic::amo;

struct Row {
  gni_fma_cmd_type_t name;
  AmoOp op;
  unsigned flags;
};

#define FIRST(name, op, flags) \
  {GNI_FMA_ATOMIC_##name, AmoOp::op, flags}, { GNI_FMA_ATOMIC_##name##_C, AmoOp::op, (flags) | kAmoCached }
#define SECOND(name, op, flags)                                                                              \
  {GNI_FMA_ATOMIC2_##name, AmoOp::op, flags}, {GNI_FMA_ATOMIC2_##name##_C, AmoOp::op, (flags) | kAmoCached}, \
      {GNI_FMA_ATOMIC2_##name##_S, AmoOp::op, (flags) | kAmoNarrow}, {                                       \
    GNI_FMA_ATOMIC2_##name##_SC, AmoOp::op, (flags) | kAmoNarrow | kAmoCached                                \
  }
#define BOTH(name, op) SECOND(name, op, 0u), SECOND(F##name, op, kAmoFetch)

constexpr Row kRows[] = {FIRST(FADD, add, kAmoFetch),
                         FIRST(FAND, bit_and, kAmoFetch),
                         FIRST(FOR, bit_or, kAmoFetch),
                         FIRST(FXOR, bit_xor, kAmoFetch),
                         FIRST(FAX, and_xor, kAmoFetch),
                         FIRST(CSWAP, compare_swap, kAmoFetch),
                         FIRST(ADD, add, 0u),
                         FIRST(AND, bit_and, 0u),
                         FIRST(OR, bit_or, 0u),
                         FIRST(XOR, bit_xor, 0u),
                         FIRST(AX, and_xor, 0u),
                         BOTH(AND, bit_and),
                         BOTH(OR, bit_or),
                         BOTH(XOR, bit_xor),
                         BOTH(SWAP, swap),
                         BOTH(AX, and_xor),
                         BOTH(CSWAP, compare_swap),
                         BOTH(IMIN, min),
                         BOTH(IMAX, max),
                         BOTH(IADD, add),
                         BOTH(FPMIN, float_min),
                         BOTH(FPMAX, float_max),
                         BOTH(FPADD, float_add)};

TEST(GniAmoCommands, AreTheCommandsOfTheNicThatTheirNamesSay) {
  std::set<int> numbers;
  std::set<int> commands;
  for (const Row& row : kRows) {
    const std::uint8_t command = amo_command_of(row.name);
    EXPECT_EQ(command, amo::command(row.op, row.flags)) << std::hex << static_cast<int>(row.name);
    EXPECT_TRUE(amo::is_valid(command));
    numbers.insert(static_cast<int>(row.name));
    commands.insert(command);
  }
  EXPECT_EQ(numbers.size(), 118u) << "all of them";
  EXPECT_EQ(commands.size(), 96u) << "the generations share what both have";
}

TEST(GniAmoCommands, OtherNumbersAreNone) {
  std::set<std::uint32_t> named;
  for (const Row& row : kRows) named.insert(static_cast<std::uint32_t>(row.name));
  for (std::uint32_t number = 0; number < 0x1000; ++number) {
    gni_fma_cmd_type_t command;
    std::memcpy(&command, &number, sizeof command);
    EXPECT_EQ(amo::is_valid(amo_command_of(command)), named.count(number) != 0) << std::hex << number;
  }
}

}  // namespace
