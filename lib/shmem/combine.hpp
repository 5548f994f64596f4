// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstddef>
#include <type_traits>

// What a reduction does with two contributions.
namespace orrery::shmem {

#define ORRERY_COMBINE(NAME, EXPRESSION)                         \
  template <typename T>                                          \
  void NAME(void* into, const void* other, std::size_t nelems) { \
    auto* const a = static_cast<T*>(into);                       \
    const auto* const b = static_cast<const T*>(other);          \
    for (std::size_t i = 0; i < nelems; ++i) a[i] = EXPRESSION;  \
  }

// Integers wrap: arithmetic is done without sign.
template <typename T>
T wrapping_sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<unsigned long long>(a) + static_cast<unsigned long long>(b));
  } else {
    return a + b;
  }
}
template <typename T>
T wrapping_product(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<unsigned long long>(a) * static_cast<unsigned long long>(b));
  } else {
    return a * b;
  }
}

ORRERY_COMBINE(combine_and, static_cast<T>(a[i] & b[i]))
ORRERY_COMBINE(combine_or, static_cast<T>(a[i] | b[i]))
ORRERY_COMBINE(combine_xor, static_cast<T>(a[i] ^ b[i]))
ORRERY_COMBINE(combine_min, (b[i] < a[i] ? b[i] : a[i]))
ORRERY_COMBINE(combine_max, (a[i] < b[i] ? b[i] : a[i]))
ORRERY_COMBINE(combine_sum, wrapping_sum(a[i], b[i]))
ORRERY_COMBINE(combine_prod, wrapping_product(a[i], b[i]))
#undef ORRERY_COMBINE

}  // namespace orrery::shmem
