// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/target/amo_unit.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

// What AMOs come to, by other means than the unit's: binary digits for the integer commands, wider formats
// for sums of floating-point numbers, and a table worked by hand.
namespace orrery::nic::amo_oracle {

// A word as its binary digits, lowest first: logic by tables of truth, sums by columns with a carry.
using Digits = std::vector<int>;

inline Digits digits_of(std::uint64_t word, std::uint64_t width) {
  Digits digits;
  for (std::uint64_t i = 0; i < 8 * width; ++i) digits.push_back(static_cast<int>(word >> i & 1));
  return digits;
}

inline std::uint64_t word_of(const Digits& digits) {
  std::uint64_t word = 0;
  for (std::size_t i = digits.size(); i-- > 0;) word = 2 * word + static_cast<std::uint64_t>(digits[i]);
  return word;
}

// truth: the result for the digits (0, 0), (0, 1), (1, 0), (1, 1).
inline Digits by_truth(const Digits& x, const Digits& y, const std::array<int, 4>& truth) {
  Digits result;
  for (std::size_t i = 0; i < x.size(); ++i)
    result.push_back(truth[static_cast<std::size_t>(2 * x[i] + y[i])]);
  return result;
}
inline constexpr std::array<int, 4> kAnd{0, 0, 0, 1};
inline constexpr std::array<int, 4> kOr{0, 1, 1, 1};
inline constexpr std::array<int, 4> kXor{0, 1, 1, 0};

inline Digits sum_of(const Digits& x, const Digits& y) {
  Digits sum;
  int carry = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const int column = x[i] + y[i] + carry;
    sum.push_back(column % 2);
    carry = column / 2;
  }
  return sum;
}

// What a word stands for in two's complement: its highest digit counts negative.
__extension__ using Wide = __int128;
inline Wide number_of(const Digits& digits) {
  Wide number = 0;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const Wide weight = Wide{digits[i]} << i;
    number += i + 1 == digits.size() ? -weight : weight;
  }
  return number;
}

inline std::uint64_t integer_oracle(AmoOp op, std::uint64_t width, std::uint64_t old_word,
                                    std::uint64_t a_word, std::uint64_t b_word) {
  const Digits old = digits_of(old_word, width);
  const Digits a = digits_of(a_word, width);
  const Digits b = digits_of(b_word, width);
  switch (op) {
    case AmoOp::bit_and:
      return word_of(by_truth(old, a, kAnd));
    case AmoOp::bit_or:
      return word_of(by_truth(old, a, kOr));
    case AmoOp::bit_xor:
      return word_of(by_truth(old, a, kXor));
    case AmoOp::swap:
      return word_of(a);
    case AmoOp::and_xor:
      return word_of(by_truth(by_truth(old, a, kAnd), b, kXor));
    case AmoOp::compare_swap: {
      const Digits differ = by_truth(old, a, kXor);
      return word_of(std::count(differ.begin(), differ.end(), 1) == 0 ? b : old);
    }
    case AmoOp::min:
      return word_of(number_of(old) - number_of(a) > 0 ? a : old);
    case AmoOp::max:
      return word_of(number_of(old) - number_of(a) < 0 ? a : old);
    default:
      return word_of(sum_of(old, a));
  }
}

// Sums in a format with more than twice as many digits, rounded once more: that gives the nearest number of
// the narrow one.
template <typename Word, typename Number, typename WideNumber>
Word float_oracle(AmoOp op, Word old, Word a) {
  const auto number = [](Word word) {
    Number n;
    std::memcpy(&n, &word, sizeof n);
    return n;
  };
  const auto word_of_number = [](Number n) {
    Word w;
    if (std::isnan(n)) n = std::numeric_limits<Number>::quiet_NaN();
    std::memcpy(&w, &n, sizeof w);
    return w;
  };
  const Number x = number(old);
  const Number y = number(a);
  if (op == AmoOp::float_add)
    return word_of_number(static_cast<Number>(static_cast<WideNumber>(x) + static_cast<WideNumber>(y)));
  const bool least = op == AmoOp::float_min;
  if (std::isnan(x) && std::isnan(y)) return word_of_number(x);
  if (std::isnan(x)) return a;
  if (std::isnan(y)) return old;
  if (x == 0 && y == 0) return std::signbit(x) == least ? old : a;
  return (x < y) == least ? old : a;
}

inline std::uint64_t oracle(std::uint8_t command, std::uint64_t old, std::uint64_t a, std::uint64_t b) {
  __extension__ using Quad = __float128;
  const AmoOp op = amo::op(command);
  const bool is_float = op == AmoOp::float_min || op == AmoOp::float_max || op == AmoOp::float_add;
  if (!is_float) return integer_oracle(op, amo::width(command), old, a, b);
  if (amo::width(command) == 8) return float_oracle<std::uint64_t, double, Quad>(op, old, a);
  return float_oracle<std::uint32_t, float, double>(op, static_cast<std::uint32_t>(old),
                                                    static_cast<std::uint32_t>(a));
}

// Worked by hand from the words of the interface: AX is (old AND first) XOR second; CSWAP stores the second
// where the first stands; IMIN and IMAX are of signed numbers; a narrow command uses the low halves.
struct Worked {
  AmoOp op;
  unsigned narrow;
  std::uint64_t old, a, b, result;
};
inline constexpr Worked kWorked[] = {
    {AmoOp::bit_and, 0, 0xff00ff00ff00ff00, 0x0ff00ff00ff00ff0, 0, 0x0f000f000f000f00},
    {AmoOp::bit_and, kAmoNarrow, 0xff00ff00, 0xffffffff0ff00ff0, 0, 0x0f000f00},
    {AmoOp::bit_or, 0, 0xf0f0f0f000000000, 0x0000000012345678, 0, 0xf0f0f0f012345678},
    {AmoOp::bit_or, kAmoNarrow, 0x80000001, 0xffffffff00000100, 0, 0x80000101},
    {AmoOp::bit_xor, 0, 0xffffffffffffffff, 0x00000000ffffffff, 0, 0xffffffff00000000},
    {AmoOp::bit_xor, kAmoNarrow, 0xaaaaaaaa, 0xffffffff, 0, 0x55555555},
    {AmoOp::swap, 0, 1, 0xdeadbeefcafef00d, 0, 0xdeadbeefcafef00d},
    {AmoOp::swap, kAmoNarrow, 1, 0xdeadbeefcafef00d, 0, 0xcafef00d},
    {AmoOp::and_xor, 0, 0x0123456789abcdef, 0xffffffff00000000, 0x00000000ffffffff, 0x01234567ffffffff},
    {AmoOp::and_xor, 0, 0x0f, 0x3c, 0xff, 0xf3},
    {AmoOp::and_xor, kAmoNarrow, 0x12345678, 0x0000ffff, 0xffff0000, 0xffff5678},
    {AmoOp::compare_swap, 0, 7, 7, 9, 9},
    {AmoOp::compare_swap, 0, 7, 8, 9, 7},
    {AmoOp::compare_swap, 0, 0x100000007, 7, 9, 0x100000007},
    {AmoOp::compare_swap, kAmoNarrow, 7, 0x100000007, 0x200000009, 9},
    {AmoOp::min, 0, 0xffffffffffffffff, 1, 0, 0xffffffffffffffff},  // -1 < 1
    {AmoOp::min, 0, 0x7fffffffffffffff, 0x8000000000000000, 0, 0x8000000000000000},
    {AmoOp::min, kAmoNarrow, 5, 0xfffffffb, 0, 0xfffffffb},  // -5 < 5
    {AmoOp::max, 0, 0xffffffffffffffff, 1, 0, 1},
    {AmoOp::max, 0, 0x8000000000000000, 0x8000000000000001, 0, 0x8000000000000001},
    {AmoOp::max, kAmoNarrow, 0x7fffffff, 0x80000000, 0, 0x7fffffff},
    {AmoOp::add, 0, 0xffffffffffffffff, 2, 0, 1},
    {AmoOp::add, 0, 0x7fffffffffffffff, 1, 0, 0x8000000000000000},
    {AmoOp::add, kAmoNarrow, 0xffffffff, 1, 0, 0},
    {AmoOp::float_add, 0, 0x3ff0000000000000, 0x4000000000000000, 0, 0x4008000000000000},  // 1 + 2 = 3
    {AmoOp::float_add, 0, 0x7ff0000000000000, 0xfff0000000000000, 0, 0x7ff8000000000000},  // no number
    {AmoOp::float_add, 0, 0x4340000000000000, 0x3ff0000000000000, 0, 0x4340000000000000},  // 2^53 + 1: even
    {AmoOp::float_add, kAmoNarrow, 0x3f800000, 0x3f000000, 0, 0x3fc00000},                 // 1 + 0.5
    {AmoOp::float_add, kAmoNarrow, 0x7f7fffff, 0x7f7fffff, 0, 0x7f800000},                 // overflow
    {AmoOp::float_min, 0, 0xbff0000000000000, 0x3ff0000000000000, 0, 0xbff0000000000000},  // -1, 1
    {AmoOp::float_min, 0, 0x0000000000000000, 0x8000000000000000, 0, 0x8000000000000000},  // +0, -0
    {AmoOp::float_max, 0, 0x7ff8000000000001, 0x3ff0000000000000, 0, 0x3ff0000000000000},  // NaN, 1
    {AmoOp::float_max, kAmoNarrow, 0xff800000, 0xff7fffff, 0, 0xff7fffff},                 // -infinity
};

}  // namespace orrery::nic::amo_oracle
