// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <type_traits>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

// Arithmetic of the NIC's units on IEEE 754 numbers that are held as words. The result is a function of the
// words alone: it does not depend on the rounding mode, flush-to-zero or trap settings of the thread that
// happens to do the unit's work, and leaves that thread's exception flags as they were.
//   add  rounds to nearest, ties to even; a result that is no number is the quiet NaN 0x7ff8000000000000
//        (0x7fc00000), whatever NaN went in
//   min, max  of a number and a NaN: the number; of two NaNs: that quiet NaN; -0 counts as less than +0
namespace orrery::nic::float_rules {

template <typename Word>
using Number = std::conditional_t<sizeof(Word) == 8, double, float>;

template <typename Word>
inline constexpr Word kQuietNan = sizeof(Word) == 8 ? static_cast<Word>(0x7ff8'0000'0000'0000) : 0x7fc0'0000;

template <typename Word>
constexpr bool is_nan(Word word) {
  constexpr Word kSign = Word{1} << (8 * sizeof(Word) - 1);
  constexpr Word kInfinity = sizeof(Word) == 8 ? static_cast<Word>(0x7ff0'0000'0000'0000) : 0x7f80'0000;
  return (word & ~kSign) > kInfinity;
}

// A word whose order as an integer is the order of the numbers.
template <typename Word>
constexpr std::make_signed_t<Word> order_of(Word word) {
  constexpr Word kSign = Word{1} << (8 * sizeof(Word) - 1);
  return static_cast<std::make_signed_t<Word>>((word & kSign) != 0 ? ~word | kSign : word);
}

template <typename Word>
constexpr Word min(Word a, Word b) {
  if (is_nan(a)) return is_nan(b) ? kQuietNan<Word> : b;
  return is_nan(b) || order_of(a) <= order_of(b) ? a : b;
}

template <typename Word>
constexpr Word max(Word a, Word b) {
  if (is_nan(a)) return is_nan(b) ? kQuietNan<Word> : b;
  return is_nan(b) || order_of(a) >= order_of(b) ? a : b;
}

// For its lifetime the thread computes as IEEE 754 does by default, without traps.
class DefaultEnvironment {
 public:
#if defined(__x86_64__)
  DefaultEnvironment() : saved_(_mm_getcsr()) {
    if ((saved_ & ~kFlags) != kDefault) [[unlikely]]
      _mm_setcsr(kDefault);
  }
  ~DefaultEnvironment() {
    if (_mm_getcsr() != saved_) _mm_setcsr(saved_);
  }

 private:
  static constexpr unsigned kFlags = 0x3f;
  static constexpr unsigned kDefault = 0x1f80;  // all exceptions masked, nearest, no flush to zero
  const unsigned saved_;
#else
  DefaultEnvironment() {
    std::feholdexcept(&saved_);
    std::fesetround(FE_TONEAREST);
  }
  ~DefaultEnvironment() { std::fesetenv(&saved_); }

 private:
  std::fenv_t saved_;
#endif

 public:
  DefaultEnvironment(const DefaultEnvironment&) = delete;
  DefaultEnvironment& operator=(const DefaultEnvironment&) = delete;
};

template <typename Word>
inline Word add(Word a, Word b) {
  Word sum = 0;
  {
    const DefaultEnvironment environment;
    // Volatile: the addition stays between the two changes of the environment.
    const volatile auto x = std::bit_cast<Number<Word>>(a);
    const volatile auto y = std::bit_cast<Number<Word>>(b);
    const volatile auto z = x + y;
    sum = std::bit_cast<Word>(static_cast<Number<Word>>(z));
  }
  return is_nan(sum) ? kQuietNan<Word> : sum;
}

}  // namespace orrery::nic::float_rules
