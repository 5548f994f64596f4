// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <bit>
#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

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

namespace ce_command {
// Commands without the bit that tells 64-bit operands.
enum Command : std::uint8_t {
  kAnd = 0x00,
  kOr = 0x02,
  kXor = 0x04,
  kIntMinLow = 0x10,
  kIntMaxLow = 0x12,
  kIntAdd = 0x14,
  kFloatMinLow = 0x18,
  kFloatMaxLow = 0x1a,
  kFloatAdd = 0x1c,
  kIntMinGreat = 0x30,
  kIntMaxGreat = 0x32,
  kFloatMinGreat = 0x38,
  kFloatMaxGreat = 0x3a,
};

inline constexpr std::uint8_t kWide = 1;  // 64-bit operands
constexpr bool is_wide(std::uint8_t command) { return (command & kWide) != 0; }
constexpr std::uint8_t kind_of(std::uint8_t command) { return command & 0xfe; }
constexpr bool carries_index(std::uint8_t kind) {
  return kind >= kIntMinLow && kind != kIntAdd && kind != kFloatAdd;
}
}  // namespace ce_command

// Whether the engine has that command.
constexpr bool ce_command_exists(std::uint32_t command) {
  using enum ce_command::Command;
  constexpr auto bit = [](ce_command::Command kind) { return 1u << kind / 2; };
  constexpr std::uint32_t kThere = bit(kAnd) | bit(kOr) | bit(kXor) | bit(kIntMinLow) | bit(kIntMaxLow) |
                                   bit(kIntAdd) | bit(kFloatMinLow) | bit(kFloatMaxLow) | bit(kFloatAdd) |
                                   bit(kIntMinGreat) | bit(kIntMaxGreat) | bit(kFloatMinGreat) |
                                   bit(kFloatMaxGreat);
  return command < 64 && (kThere >> command / 2 & 1) != 0;
}

// What the operands look like before the first step: 32-bit commands drop the upper halves, and without
// two_operands a command that does not carry an index drops the second operand.
constexpr CeValue ce_normal(CeValue value) {
  using enum ce_command::Command;
  if (!value.two_operands && !ce_command::carries_index(ce_command::kind_of(value.command)))
    value.operand[1] = 0;
  if (!ce_command::is_wide(value.command)) {
    value.operand[0] = static_cast<std::uint32_t>(value.operand[0]);
    value.operand[1] = static_cast<std::uint32_t>(value.operand[1]);
  }
  return value;
}

// `left` and then `right`, in this order. Both are normal. The first status that is not ok is kept; different
// ids give id_mismatch, different commands inconsistent.
//   AND OR XOR IADD FPADD   each operand with the other's
//   MIN MAX                 the smaller or greater first operand with its index, the second operand; where
//   the
//                           values are equal LIDX takes the lower index, GIDX the greater (both unsigned)
// A number wins against a NaN, and then the operation was invalid; two NaNs give the left one. Zeros of
// either sign are equal.
CeValue ce_combine(const CeValue& left, const CeValue& right, Rounding rounding);

// The same for two contributions of the same reduction and the same meta(), when that is one of the commands
// that most programs use: one operand of 64 bits, rounded to nearest. `left` becomes what both come to.
// Floating-point exceptions are not told. False: not one of these, or the processor's floating-point modes
// are not the usual ones; nothing happened.
inline bool ce_combine_usual(std::uint64_t meta, std::uint64_t* left, std::uint64_t right) {
  using enum ce_command::Command;
  switch (meta) {
    case kAnd | ce_command::kWide:
      *left &= right;
      return true;
    case kOr | ce_command::kWide:
      *left |= right;
      return true;
    case kXor | ce_command::kWide:
      *left ^= right;
      return true;
    case kIntAdd | ce_command::kWide:
      *left += right;
      return true;
#if defined(__SSE2__)
    case kFloatAdd | ce_command::kWide: {
      const auto modes_and_flags = [] {
        unsigned word = 0;
        // Not _mm_getcsr(): the compiler takes that for a function that gives the same each time.
        asm volatile("stmxcsr %0" : "=m"(word));
        return word;
      };
      const unsigned before = modes_and_flags();
      // Anything but the flags: a mode that the program chose.
      if ((before & ~unsigned{_MM_EXCEPT_MASK}) != _MM_MASK_MASK) return false;
      auto a = std::bit_cast<double>(*left);
      auto b = std::bit_cast<double>(right);
      // Volatile: the addition stays between the two looks at the flags.
      asm volatile("" : "+x"(a), "+x"(b));
      double sum = a + b;
      asm volatile("" : "+x"(sum));
      // The program's flags stay as they were; most often the sum has changed none.
      if (modes_and_flags() != before) _mm_setcsr(before);
      *left = std::bit_cast<std::uint64_t>(sum);
      return true;
    }
#endif
    default:
      return false;
  }
}

}  // namespace orrery::nic
