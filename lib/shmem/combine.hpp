// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "include/dmapp/dmapp.h"

#include <cstddef>
#include <type_traits>

// What a reduction does with two contributions.
namespace orrery::shmem {

using Combine = void (*)(void* into, const void* other, std::size_t nelems);

// A reduction: how two contributions are combined, and what it is to DMAPP, if that has it.
struct Reduction {
  Combine combine = nullptr;
  bool dmapp_has_it = false;
  dmapp_c_type_t type = DMAPP_C_INT64;
  dmapp_c_op_t op = DMAPP_C_SUM;
};

template <typename T>
Reduction reduction_of(Combine combine, dmapp_c_op_t op) {
  if constexpr (std::is_same_v<T, float>) return {combine, op < DMAPP_C_AND, DMAPP_C_FLOAT, op};
  if constexpr (std::is_same_v<T, double>) return {combine, op < DMAPP_C_AND, DMAPP_C_DOUBLE, op};
  if constexpr (std::is_integral_v<T> && sizeof(T) == 4)
    return {combine, true, std::is_signed_v<T> ? DMAPP_C_INT32 : DMAPP_C_UINT32, op};
  if constexpr (std::is_integral_v<T> && sizeof(T) == 8)
    return {combine, true, std::is_signed_v<T> ? DMAPP_C_INT64 : DMAPP_C_UINT64, op};
  return {.combine = combine};
}

#define ORRERY_COMBINE(NAME, OP, EXPRESSION)                               \
  template <typename T>                                                    \
  void combine_##NAME(void* into, const void* other, std::size_t nelems) { \
    auto* const a = static_cast<T*>(into);                                 \
    const auto* const b = static_cast<const T*>(other);                    \
    for (std::size_t i = 0; i < nelems; ++i) a[i] = EXPRESSION;            \
  }                                                                        \
  template <typename T>                                                    \
  Reduction reduction_##NAME() {                                           \
    return reduction_of<T>(combine_##NAME<T>, OP);                         \
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

ORRERY_COMBINE(and, DMAPP_C_AND, static_cast<T>(a[i] & b[i]))
ORRERY_COMBINE(or, DMAPP_C_OR, static_cast<T>(a[i] | b[i]))
ORRERY_COMBINE(xor, DMAPP_C_XOR, static_cast<T>(a[i] ^ b[i]))
ORRERY_COMBINE(min, DMAPP_C_MIN, (b[i] < a[i] ? b[i] : a[i]))
ORRERY_COMBINE(max, DMAPP_C_MAX, (a[i] < b[i] ? b[i] : a[i]))
ORRERY_COMBINE(sum, DMAPP_C_SUM, wrapping_sum(a[i], b[i]))
ORRERY_COMBINE(prod, DMAPP_C_PROD, wrapping_product(a[i], b[i]))
#undef ORRERY_COMBINE

}  // namespace orrery::shmem
