// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/events/completion_queue.hpp"
#include "emu/nic/state/nic_state.hpp"
#include "emu/nic/state/thread_word.hpp"
#include "emu/wire/ring_layout.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace orrery::nic {

struct Peer;

// What grants are found by.
constexpr std::uint64_t key_word(std::uint16_t process, std::uint16_t generation, std::uint16_t index) {
  return std::uint64_t{process} << 32 | std::uint64_t{generation} << 16 | index;
}
inline constexpr std::uint64_t kKeyWordMask = (std::uint64_t{1} << kThreadTagShift) - 1;
constexpr std::uint64_t key_word(const MemKey& key) {
  return key_word(key.process, key.generation, key.index);
}

// What the last access through a key was allowed, so that the next one need only see that nothing changed:
// one word of the owner's decides that, with one load and one compare. Filled by the general path after all
// its checks; good for put and get.
struct alignas(kCacheLine) Grant {
  // Thread << 48 (state/thread_word.hpp) | process << 32 | generation << 16 | index; all ones: empty.
  std::uint64_t key = UINT64_MAX;
  std::uint64_t control = 0;  // what `word` was when it was granted
  Peer* peer = nullptr;
  // The entry's control word; of a whole address space the word of one extent (state/extent_state.hpp).
  const std::atomic<std::uint64_t>* word = nullptr;
  std::uint64_t begin = 0;  // target addresses that are registered and mapped here
  std::uint64_t size = 0;
  std::byte* here = nullptr;  // where `begin` is mapped
  std::atomic<std::uint64_t>* hazard = nullptr;
  bool writable = false;
  QueueView queue;  // of the registration; it lives as long as the registration does
};

// The same for short puts without a completion whose target is reached by frame: the frame but for what
// each has of its own. The target checks everything again; what the general path refuses at once is refused
// at once here too.
struct FrameGrant {
  std::uint64_t key = UINT64_MAX;  // as above, of any thread
  Peer* peer = nullptr;            // another process may answer to the same key later
  std::uint64_t control = 0;
  std::uint32_t flags = 0;  // of the request
  MrtEntry* entry = nullptr;
  std::uint64_t begin = 0;  // target addresses that are registered
  std::uint64_t size = 0;
  wire::ShortFrame frame;
};

inline constexpr std::size_t kGrants = 4;  // per endpoint, by the low bits of the key's index

}  // namespace orrery::nic
