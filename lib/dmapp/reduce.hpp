// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "lib/dmapp/inside.hpp"

#include "include/dmapp/dmapp.h"

#include <cstdint>
#include <cstring>

// What the reductions of sets compute. Pure functions; any thread.
namespace orrery::dmapp::reduce {

// Bytes of an element; 0: not a type. Any number is accepted.
constexpr std::uint32_t bytes_of(dmapp_c_type_t type) {
  constexpr std::uint32_t kBytes[] = {4, 8, 4, 8, 4, 8};
  const auto index = static_cast<unsigned>(type) - DMAPP_C_INT32;
  return index < 6 ? kBytes[index] : 0;
}
constexpr std::uint32_t most_elements(dmapp_c_type_t type) {
  return bytes_of(type) == 0 ? 0 : static_cast<std::uint32_t>(kSetElements * 8 / bytes_of(type));
}
constexpr bool is_op(dmapp_c_op_t op) {
  return static_cast<unsigned>(op) - DMAPP_C_SUM <= DMAPP_C_XOR - DMAPP_C_SUM;
}
constexpr bool takes(dmapp_c_op_t op, dmapp_c_type_t type) {
  return op < DMAPP_C_AND || (type != DMAPP_C_FLOAT && type != DMAPP_C_DOUBLE);
}

template <typename T>
T combined(dmapp_c_op_t op, T a, T b) {
  switch (op) {
    case DMAPP_C_SUM:
      return static_cast<T>(a + b);
    case DMAPP_C_PROD:
      return static_cast<T>(a * b);
    case DMAPP_C_MIN:
      return b < a ? b : a;
    case DMAPP_C_MAX:
      return a < b ? b : a;
    default:
      break;
  }
  if constexpr (std::is_integral_v<T>) {
    if (op == DMAPP_C_AND) return a & b;
    if (op == DMAPP_C_OR) return a | b;
    if (op == DMAPP_C_XOR) return a ^ b;
  }
  return a;
}

template <typename T>
void combine_as(dmapp_c_op_t op, std::uint32_t count, void* into, const void* from) {
  for (std::uint32_t i = 0; i < count; ++i) {
    T a;
    T b;
    std::memcpy(&a, static_cast<std::byte*>(into) + i * sizeof(T), sizeof a);
    std::memcpy(&b, static_cast<const std::byte*>(from) + i * sizeof(T), sizeof b);
    a = combined(op, a, b);
    std::memcpy(static_cast<std::byte*>(into) + i * sizeof(T), &a, sizeof a);
  }
}

// into[i] = into[i] op from[i]. Integers wrap. REQUIRES: takes(op, type).
inline void combine(dmapp_c_op_t op, dmapp_c_type_t type, std::uint32_t count, void* into, const void* from) {
  // Sums and products of signed numbers wrap as those of unsigned ones do.
  const bool wraps = op == DMAPP_C_SUM || op == DMAPP_C_PROD;
  switch (type) {
    case DMAPP_C_INT32:
      return wraps ? combine_as<std::uint32_t>(op, count, into, from)
                   : combine_as<std::int32_t>(op, count, into, from);
    case DMAPP_C_INT64:
      return wraps ? combine_as<std::uint64_t>(op, count, into, from)
                   : combine_as<std::int64_t>(op, count, into, from);
    case DMAPP_C_UINT32:
      return combine_as<std::uint32_t>(op, count, into, from);
    case DMAPP_C_UINT64:
      return combine_as<std::uint64_t>(op, count, into, from);
    case DMAPP_C_FLOAT:
      return combine_as<float>(op, count, into, from);
    case DMAPP_C_DOUBLE:
      return combine_as<double>(op, count, into, from);
  }
}

}  // namespace orrery::dmapp::reduce
