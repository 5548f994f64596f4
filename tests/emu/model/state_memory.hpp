// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace orrery::model {

// A block for a link state, zeroed, at the beginning of a cache line.
struct Memory {
  explicit Memory(std::size_t size) : size(size), block(new std::byte[size + 64]()) {}
  std::span<std::byte> span() {
    const auto at = (reinterpret_cast<std::uintptr_t>(block.get()) + 63) / 64 * 64;
    return {reinterpret_cast<std::byte*>(at), size};
  }
  std::size_t size;
  std::unique_ptr<std::byte[]> block;
};

}  // namespace orrery::model
