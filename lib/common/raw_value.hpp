// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace orrery::common {

// The number behind an enumeration that a C client passed: any 32 bits, where C++ lets an enumeration only be
// read while it holds one of its own values.
template <typename Enum>
std::uint32_t raw_value(const Enum& value) {
  static_assert(std::is_enum_v<Enum> && sizeof(Enum) == sizeof(std::uint32_t));
  std::uint32_t raw = 0;
  std::memcpy(&raw, &value, sizeof raw);
  return raw;
}

}  // namespace orrery::common
