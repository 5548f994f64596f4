// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace orrery::sim {

// An array that grows by blocks and never moves what it holds, so that growing costs neither a copy nor
// twice the memory. Owner and thread: those of what contains it.
//   std::uint32_t i = array.grow();  array[i] = value;
template <typename T, int kBlockLog2>
class BlockArray {
 public:
  T& operator[](std::uint32_t i) { return blocks_[i >> kBlockLog2][i & kMask]; }
  const T& operator[](std::uint32_t i) const { return blocks_[i >> kBlockLog2][i & kMask]; }
  // Index of a new element.
  std::uint32_t grow() {
    if (size_ >> kBlockLog2 == blocks_.size()) blocks_.emplace_back(new T[kMask + 1]);
    return size_++;
  }
  std::uint32_t size() const { return size_; }
  std::size_t bytes() const {
    return blocks_.size() * (kMask + 1) * sizeof(T) + blocks_.capacity() * sizeof(void*);
  }

 private:
  static constexpr std::uint32_t kMask = (1u << kBlockLog2) - 1;
  std::vector<std::unique_ptr<T[]>> blocks_;
  std::uint32_t size_ = 0;
};

}  // namespace orrery::sim
