// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors

// What each atomic operation does to each type.
#include "lib/portals4/process.hpp"

#include <complex>
#include <cstring>
#include <type_traits>

namespace orrery::portals4 {

namespace {

template <typename T>
constexpr bool kComplex = false;
template <typename T>
constexpr bool kComplex<std::complex<T>> = true;

// Calls body(T{}) with the type that a datatype names.
template <typename Body>
auto with_type(ptl_datatype_t type, Body body) {
  switch (type) {
    case PTL_INT8_T:
      return body(std::int8_t{});
    case PTL_UINT8_T:
      return body(std::uint8_t{});
    case PTL_INT16_T:
      return body(std::int16_t{});
    case PTL_UINT16_T:
      return body(std::uint16_t{});
    case PTL_INT32_T:
      return body(std::int32_t{});
    case PTL_UINT32_T:
      return body(std::uint32_t{});
    case PTL_FLOAT:
      return body(float{});
    case PTL_INT64_T:
      return body(std::int64_t{});
    case PTL_UINT64_T:
      return body(std::uint64_t{});
    case PTL_DOUBLE:
      return body(double{});
    case PTL_FLOAT_COMPLEX:
      return body(std::complex<float>{});
    case PTL_DOUBLE_COMPLEX:
      return body(std::complex<double>{});
    case PTL_LONG_DOUBLE:
      return body(0.0L);
    default:
      return body(std::complex<long double>{});
  }
}

template <typename T>
using Wide = std::conditional_t<std::is_integral_v<T>, std::uint64_t, T>;

// Integers wrap around: they are computed as unsigned.
template <typename T>
T combine(ptl_op_t operation, T a, T b, T operand) {
  switch (operation) {
    case PTL_SUM:
      return static_cast<T>(static_cast<Wide<T>>(a) + static_cast<Wide<T>>(b));
    case PTL_PROD:
      return static_cast<T>(static_cast<Wide<T>>(a) * static_cast<Wide<T>>(b));
    case PTL_SWAP:
      return b;
    case PTL_CSWAP:
      return operand == a ? b : a;
    case PTL_CSWAP_NE:
      return operand != a ? b : a;
    default:
      break;
  }
  if constexpr (!kComplex<T>) {
    switch (operation) {
      case PTL_MIN:
        return b < a ? b : a;
      case PTL_MAX:
        return a < b ? b : a;
      case PTL_CSWAP_LE:
        return operand <= a ? b : a;
      case PTL_CSWAP_LT:
        return operand < a ? b : a;
      case PTL_CSWAP_GE:
        return operand >= a ? b : a;
      case PTL_CSWAP_GT:
        return operand > a ? b : a;
      default:
        break;
    }
  }
  if constexpr (std::is_integral_v<T>) {
    switch (operation) {
      case PTL_LOR:
        return static_cast<T>(a != 0 || b != 0);
      case PTL_LAND:
        return static_cast<T>(a != 0 && b != 0);
      case PTL_LXOR:
        return static_cast<T>((a != 0) != (b != 0));
      case PTL_BOR:
        return static_cast<T>(a | b);
      case PTL_BAND:
        return static_cast<T>(a & b);
      case PTL_BXOR:
        return static_cast<T>(a ^ b);
      case PTL_MSWAP:
        return static_cast<T>((b & operand) | (a & ~operand));
      default:
        break;
    }
  }
  return a;
}

bool is_integer(ptl_datatype_t type) {
  return with_type(type, [](auto value) { return std::is_integral_v<decltype(value)>; });
}
bool is_complex(ptl_datatype_t type) {
  return with_type(type, [](auto value) { return kComplex<decltype(value)>; });
}

}  // namespace

std::uint32_t size_of(ptl_datatype_t type) {
  if (type > PTL_LONG_DOUBLE_COMPLEX) return 0;
  return with_type(type, [](auto value) { return static_cast<std::uint32_t>(sizeof value); });
}

bool is_simple(ptl_op_t operation, ptl_datatype_t type) {
  if (size_of(type) == 0) return false;
  switch (operation) {
    case PTL_MIN:
    case PTL_MAX:
      return !is_complex(type);
    case PTL_SUM:
    case PTL_PROD:
      return true;
    case PTL_LOR:
    case PTL_LAND:
    case PTL_BOR:
    case PTL_BAND:
    case PTL_LXOR:
    case PTL_BXOR:
      return is_integer(type);
    default:
      return false;
  }
}

bool is_swap(ptl_op_t operation, ptl_datatype_t type) {
  if (size_of(type) == 0) return false;
  switch (operation) {
    case PTL_SWAP:
    case PTL_CSWAP:
    case PTL_CSWAP_NE:
      return true;
    case PTL_CSWAP_LE:
    case PTL_CSWAP_LT:
    case PTL_CSWAP_GE:
    case PTL_CSWAP_GT:
      return !is_complex(type);
    case PTL_MSWAP:
      return is_integer(type);
    default:
      return false;
  }
}

void apply(ptl_op_t operation, ptl_datatype_t type, std::byte* target, const std::byte* source,
           const std::byte* operand, std::uint64_t bytes) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    T constant = zero;
    std::memcpy(&constant, operand, sizeof(T));
    for (std::uint64_t at = 0; at + sizeof(T) <= bytes; at += sizeof(T)) {
      T a;
      T b;
      std::memcpy(&a, target + at, sizeof(T));
      std::memcpy(&b, source + at, sizeof(T));
      const T value = combine<T>(operation, a, b, constant);
      std::memcpy(target + at, &value, sizeof(T));
    }
  });
}

}  // namespace orrery::portals4
