// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>

// The arithmetic of the collective engine. Pure functions: the same contributions in the same order give the
// same bits in every process.
namespace orrery::nic {

// How a reduction ended: the device's own codes. DO NOT CHANGE THE VALUES.
enum class CeStatus : std::uint8_t {
  ok = 0,
  unexpected = 0x32,     // the VCE is not there, or the tree has no end
  duplicate = 0x33,      // the child has joined this reduction already
  child_invalid = 0x34,  // the VCE has no such child
  inconsistent = 0x35,   // the children want different commands
  protection = 0x36,     // another domain's VCE
  id_mismatch = 0x37,    // the children's next reductions in the lane have different ids
  unreachable = 0x3d,    // a process of the tree has died
};

enum class Rounding : std::uint8_t { nearest = 0, up = 1, down = 2, zero = 3 };

// Floating-point exceptions. DO NOT CHANGE THE VALUES: they are in slots and in results.
enum CeException : std::uint8_t { kCeInvalid = 1, kCeOverflow = 2, kCeUnderflow = 4, kCeInexact = 8 };

// A contribution, or what several came to.
struct CeValue {
  std::uint64_t operand[2] = {};
  std::uint64_t reduction = 0;
  std::uint8_t command = 0;  // as in gni_ce_cmd_type_t: bit 0 set, 64-bit operands
  bool two_operands = false;
  std::uint8_t exceptions = 0;  // CeException
  CeStatus status = CeStatus::ok;
};

// The fourth word of a slot.
constexpr std::uint64_t ce_meta(const CeValue& value) {
  return std::uint64_t{value.command} | std::uint64_t{value.two_operands} << 8 |
         std::uint64_t{value.exceptions} << 16 | static_cast<std::uint64_t>(value.status) << 24;
}
constexpr void set_ce_meta(CeValue& value, std::uint64_t meta) {
  value.command = static_cast<std::uint8_t>(meta);
  value.two_operands = (meta >> 8 & 1) != 0;
  value.exceptions = static_cast<std::uint8_t>(meta >> 16 & 0xf);
  value.status = static_cast<CeStatus>(meta >> 24 & 0xff);
}

// Whether the engine has that command.
bool ce_command_exists(std::uint32_t command);

// What the operands look like before the first step: 32-bit commands drop the upper halves, and without
// two_operands a command that does not carry an index drops the second operand.
CeValue ce_normal(CeValue value);

// `left` and then `right`, in this order. Both are normal. The first status that is not ok is kept; different
// ids give id_mismatch, different commands inconsistent.
//   AND OR XOR IADD FPADD   each operand with the other's
//   MIN MAX                 the smaller or greater first operand with its index, the second operand; where
//   the
//                           values are equal LIDX takes the lower index, GIDX the greater (both unsigned)
// A number wins against a NaN, and then the operation was invalid; two NaNs give the left one. Zeros of
// either sign are equal.
CeValue ce_combine(const CeValue& left, const CeValue& right, Rounding rounding);

}  // namespace orrery::nic
