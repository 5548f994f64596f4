// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/common/handle_table.hpp"

#include "emu/base/wait.hpp"

#include <type_traits>

#include <unistd.h>

namespace orrery::common {
namespace {

constexpr std::uint64_t kTag = 0xa7;
constexpr unsigned kSlotBits = 20;
static_assert(HandleTable::kCapacity == 1u << kSlotBits);

constexpr std::uint64_t make_handle(std::uint8_t kind, std::uint32_t generation, std::uint32_t slot) {
  return kTag << 56 | static_cast<std::uint64_t>(kind) << 52 |
         static_cast<std::uint64_t>(generation) << kSlotBits | slot;
}

constexpr std::uint32_t generation_of(std::uint64_t handle) {
  return static_cast<std::uint32_t>(handle >> kSlotBits);
}

// Differs between processes of one host at one time, and between a process and its successor of the same id.
std::uint32_t generation_of_this_process() {
  const std::uint64_t seed = static_cast<std::uint64_t>(monotonic_ns()) ^ static_cast<std::uint64_t>(getpid())
                                                                              << 40;
  const std::uint32_t mixed = static_cast<std::uint32_t>((seed * 0x9e3779b97f4a7c15ULL) >> 33);
  return mixed | 1;  // below 2^31, so that no slot is retired early, and not 0
}

}  // namespace

static_assert(std::is_trivially_destructible_v<HandleTable>);

std::uint64_t HandleTable::insert(std::uint8_t kind, void* object) {
  const std::lock_guard lock(mutex_);
  if (first_generation_ == 0) first_generation_ = generation_of_this_process();
  std::uint32_t index = free_;
  std::uint32_t generation = first_generation_;
  if (index != 0) {
    generation = generation_of(free_words_[index]);
    free_ = static_cast<std::uint32_t>(free_words_[index] & (kCapacity - 1));
  } else {
    if (used_ == kCapacity - 1) return 0;
    index = ++used_;
  }
  const std::uint64_t handle = make_handle(kind, generation, index);
  slots_[index].payload = reinterpret_cast<std::uintptr_t>(object);
  // Release: pairs with find's acquire; a thread that knows the handle sees the object.
  slots_[index].word().store(handle, std::memory_order_release);
  ++live_;
  return handle;
}

void* HandleTable::erase(std::uint8_t kind, std::uint64_t handle) {
  const std::lock_guard lock(mutex_);
  void* const object = find(kind, handle);
  if (object == nullptr) return nullptr;
  const auto index = static_cast<std::uint32_t>(handle & (kCapacity - 1));
  slots_[index].word().store(0, std::memory_order_release);
  --live_;
  const std::uint32_t next_generation = generation_of(handle) + 1;
  if (next_generation != 0) {
    free_words_[index] = static_cast<std::uint64_t>(next_generation) << kSlotBits | free_;
    free_ = index;
  }
  return object;
}

void HandleTable::forget_all() {
  // Without the lock: a thread of the parent may have held it in the moment of the fork.
  for (std::uint32_t index = 1; index <= used_; ++index) {
    slots_[index].word().store(0, std::memory_order_release);
  }
  free_ = 0;
  live_ = 0;
}

std::uint32_t HandleTable::live() const {
  const std::lock_guard lock(mutex_);
  return live_;
}

}  // namespace orrery::common
