// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/target/amo_unit.hpp"
#include "lib/gni/raw_value.hpp"

#include "include/gni/gni_pub.h"

#include <array>
#include <cstdint>

// The NIC's command for each of the interface's.
namespace orrery::gni {

namespace detail {

inline constexpr std::uint8_t kNoCommand = 0xff;
inline constexpr std::uint32_t kAmoCommands = 0x400;  // the interface's numbers lie below

// What marks the commands that came with Aries.
inline constexpr std::uint32_t kSecondGenerationBit = 0x40;

// The bits of a number of the interface:
//   0x100 does not fetch | 0x200 32 bits | 0x40 second generation
//   second generation: 0x20 cached, 0x1e the operation, 0x01 set for 64 bits
//   first generation:  0x10 cached, 0x0f the operation, 8..13 in the order of the table below
constexpr std::uint8_t command_of(std::uint32_t number) {
  using nic::AmoOp;
  constexpr std::array kFirst{AmoOp::add,     AmoOp::bit_and, AmoOp::bit_or,
                              AmoOp::bit_xor, AmoOp::and_xor, AmoOp::compare_swap};
  const bool fetches = (number & 0x100) == 0;
  unsigned flags = fetches ? nic::kAmoFetch : 0u;
  if ((number & 0x40) == 0) {
    const std::uint32_t op = (number & 0x0f) - 8;
    if (op >= kFirst.size() || (number & ~0x11fu) != 0) return kNoCommand;
    if (kFirst[op] == AmoOp::compare_swap && !fetches) return kNoCommand;
    if ((number & 0x10) != 0) flags |= nic::kAmoCached;
    return nic::amo::command(kFirst[op], flags);
  }
  const bool narrow = (number & 0x200) != 0;
  if (((number & 1) == 0) != narrow || (number & 0x80) != 0) return kNoCommand;
  if (narrow) flags |= nic::kAmoNarrow;
  if ((number & 0x20) != 0) flags |= nic::kAmoCached;
  const std::uint8_t command = nic::amo::command(static_cast<AmoOp>(number >> 1 & 0x0f), flags);
  return nic::amo::is_valid(command) ? command : kNoCommand;
}

inline constexpr auto kCommandOfAmo = [] {
  std::array<std::uint8_t, kAmoCommands> table{};
  for (std::uint32_t number = 0; number < kAmoCommands; ++number) table[number] = command_of(number);
  return table;
}();

}  // namespace detail

// The NIC's command, or a value that nic::amo::is_valid refuses. Accepts any bits.
inline std::uint8_t amo_command_of(const gni_fma_cmd_type_t& command) {
  const auto number = static_cast<std::uint32_t>(raw_value(command));
  return number < detail::kAmoCommands ? detail::kCommandOfAmo[number] : detail::kNoCommand;
}

}  // namespace orrery::gni
