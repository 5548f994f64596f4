// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/collective/collective_combine.hpp"

#include <bit>
#include <limits>
#include <type_traits>

#if defined(__SSE2__)
#include <immintrin.h>
#else
#include <cfenv>
#endif

namespace orrery::nic {

namespace {

using namespace ce_command;

constexpr bool takes_greater(std::uint8_t kind) { return (kind & 2) != 0; }
constexpr bool prefers_greater_index(std::uint8_t kind) { return (kind & 0x20) != 0; }

#if defined(__SSE2__)

// The processor's rounding mode and exception flags for the length of one operation. The caller's, and what
// it unmasked, come back.
class FloatingScope {
 public:
  explicit FloatingScope(Rounding rounding) : saved_(_mm_getcsr()) {
    constexpr unsigned kModes[] = {_MM_ROUND_NEAREST, _MM_ROUND_UP, _MM_ROUND_DOWN, _MM_ROUND_TOWARD_ZERO};
    // All exceptions masked, no flush to zero: the machine's own arithmetic, whatever the program uses.
    _mm_setcsr(_MM_MASK_MASK | kModes[static_cast<std::size_t>(rounding)]);
  }
  ~FloatingScope() { _mm_setcsr(saved_); }
  FloatingScope(const FloatingScope&) = delete;
  FloatingScope& operator=(const FloatingScope&) = delete;

  static std::uint8_t raised() {
    const unsigned flags = _mm_getcsr();
    return static_cast<std::uint8_t>(((flags & _MM_EXCEPT_INVALID) != 0 ? kCeInvalid : 0) |
                                     ((flags & _MM_EXCEPT_OVERFLOW) != 0 ? kCeOverflow : 0) |
                                     ((flags & _MM_EXCEPT_UNDERFLOW) != 0 ? kCeUnderflow : 0) |
                                     ((flags & _MM_EXCEPT_INEXACT) != 0 ? kCeInexact : 0));
  }

 private:
  const unsigned saved_;
};

#else

class FloatingScope {
 public:
  explicit FloatingScope(Rounding rounding) {
    constexpr int kModes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    std::feholdexcept(&saved_);
    std::fesetround(kModes[static_cast<std::size_t>(rounding)]);
  }
  ~FloatingScope() { std::fesetenv(&saved_); }
  FloatingScope(const FloatingScope&) = delete;
  FloatingScope& operator=(const FloatingScope&) = delete;

  static std::uint8_t raised() {
    const int flags = std::fetestexcept(FE_ALL_EXCEPT);
    return static_cast<std::uint8_t>(
        ((flags & FE_INVALID) != 0 ? kCeInvalid : 0) | ((flags & FE_OVERFLOW) != 0 ? kCeOverflow : 0) |
        ((flags & FE_UNDERFLOW) != 0 ? kCeUnderflow : 0) | ((flags & FE_INEXACT) != 0 ? kCeInexact : 0));
  }

 private:
  std::fenv_t saved_{};
};

#endif

template <typename Float>
using BitsOf = std::conditional_t<sizeof(Float) == 8, std::uint64_t, std::uint32_t>;

template <typename Float>
std::uint64_t add(std::uint64_t left, std::uint64_t right, Rounding rounding, std::uint8_t* exceptions) {
  // Volatile: the compiler must not move the addition out of the mode that it is made in.
  volatile Float a = std::bit_cast<Float>(static_cast<BitsOf<Float>>(left));
  volatile Float b = std::bit_cast<Float>(static_cast<BitsOf<Float>>(right));
  volatile Float sum = 0;
  {
    const FloatingScope scope(rounding);
    sum = a + b;
    *exceptions |= FloatingScope::raised();
  }
  const Float value = sum;
  return std::bit_cast<BitsOf<Float>>(value);
}

// Numbers by their bits: a program's own modes (denormals that count as zero, exceptions that are unmasked)
// have no effect, and its exception flags stay.
template <typename Float>
bool is_nan(std::uint64_t word) {
  const auto magnitude = static_cast<BitsOf<Float>>(word) << 1;
  return static_cast<BitsOf<Float>>(magnitude) >
         static_cast<BitsOf<Float>>(std::bit_cast<BitsOf<Float>>(std::numeric_limits<Float>::infinity())
                                    << 1);
}

// In the order of the numbers that are none of NaN; both zeros give 0.
template <typename Float>
std::int64_t order_of(std::uint64_t word) {
  constexpr int kSign = std::numeric_limits<BitsOf<Float>>::digits - 1;
  const auto bits = static_cast<BitsOf<Float>>(word);
  const auto magnitude = static_cast<std::int64_t>(bits & ~(BitsOf<Float>{1} << kSign));
  return (bits >> kSign) != 0 ? -magnitude : magnitude;
}

// Whether the right value is taken: -1 no, 1 yes, 0 they are equal.
int prefer_right(std::int64_t left, std::int64_t right, bool greater) {
  if (left == right) return 0;
  return (right > left) == greater ? 1 : -1;
}

template <typename Float>
int prefer_right_number(std::uint64_t left, std::uint64_t right, bool greater, std::uint8_t* exceptions) {
  if (is_nan<Float>(left) || is_nan<Float>(right)) {
    *exceptions |= kCeInvalid;
    return is_nan<Float>(left) && !is_nan<Float>(right) ? 1 : -1;
  }
  return prefer_right(order_of<Float>(left), order_of<Float>(right), greater);
}

int prefer_right(std::uint8_t command, std::uint64_t left, std::uint64_t right, std::uint8_t* exceptions) {
  const std::uint8_t kind = kind_of(command);
  const bool greater = takes_greater(kind);
  if ((kind & 8) != 0) {
    return is_wide(command) ? prefer_right_number<double>(left, right, greater, exceptions)
                            : prefer_right_number<float>(left, right, greater, exceptions);
  }
  if (is_wide(command))
    return prefer_right(static_cast<std::int64_t>(left), static_cast<std::int64_t>(right), greater);
  return prefer_right(static_cast<std::int32_t>(left), static_cast<std::int32_t>(right), greater);
}

std::uint64_t combine_words(std::uint8_t command, std::uint64_t left, std::uint64_t right, Rounding rounding,
                            std::uint8_t* exceptions) {
  switch (kind_of(command)) {
    case kAnd:
      return left & right;
    case kOr:
      return left | right;
    case kXor:
      return left ^ right;
    case kIntAdd:
      return is_wide(command) ? left + right : static_cast<std::uint32_t>(left + right);
    default:
      return is_wide(command) ? add<double>(left, right, rounding, exceptions)
                              : add<float>(left, right, rounding, exceptions);
  }
}

}  // namespace

CeValue ce_combine(const CeValue& left, const CeValue& right, Rounding rounding) {
  CeValue out = left;
  out.exceptions |= right.exceptions;
  if (left.status != CeStatus::ok) return out;
  if (right.status != CeStatus::ok) {
    out.status = right.status;
    return out;
  }
  if (left.reduction != right.reduction) {
    out.status = CeStatus::id_mismatch;
    return out;
  }
  if (left.command != right.command || left.two_operands != right.two_operands) {
    out.status = CeStatus::inconsistent;
    return out;
  }
  const std::uint8_t kind = kind_of(left.command);
  if (carries_index(kind)) {
    int take = prefer_right(left.command, left.operand[0], right.operand[0], &out.exceptions);
    if (take == 0) take = (right.operand[1] > left.operand[1]) == prefers_greater_index(kind) ? 1 : -1;
    if (take > 0) {
      out.operand[0] = right.operand[0];
      out.operand[1] = right.operand[1];
    }
    return out;
  }
  out.operand[0] = combine_words(left.command, left.operand[0], right.operand[0], rounding, &out.exceptions);
  if (left.two_operands)
    out.operand[1] =
        combine_words(left.command, left.operand[1], right.operand[1], rounding, &out.exceptions);
  return out;
}

}  // namespace orrery::nic
