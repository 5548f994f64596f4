// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/gate/timed.hpp"

#include "emu/base/timed_path.hpp"

#include <new>

namespace orrery::nic {

namespace {

constexpr std::size_t kTogether = 16;
constexpr std::size_t kLine = 64;

}  // namespace

TimedOps::~TimedOps() {
  for (std::byte* const blocks : blocks_) ::operator delete (blocks, std::align_val_t{kLine});
}

ORRERY_TIMED_PATH void* TimedOps::take(std::size_t bytes) {
  const std::lock_guard lock(mu_);
  if (free_.empty()) {
    const std::size_t each = (bytes + kLine - 1) / kLine * kLine;
    blocks_.push_back(static_cast<std::byte*>(::operator new (kTogether* each, std::align_val_t{kLine})));
    // The first of them is taken first.
    for (std::size_t i = kTogether; i > 0; --i) free_.push_back(blocks_.back() + (i - 1) * each);
  }
  void* const block = free_.back();
  free_.pop_back();
  return block;
}

ORRERY_TIMED_PATH void TimedOps::give_back(void* block) {
  const std::lock_guard lock(mu_);
  free_.push_back(block);
}

}  // namespace orrery::nic
