// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/memory/cross_attach.hpp"
#include "emu/nic/host/runtime.hpp"
#include "emu/nic/initiator/fast_path.hpp"
#include "emu/nic/state/hazard.hpp"
#include "emu/nic/state/request.hpp"
#include "emu/nic/state/thread_word.hpp"
#include "emu/nic/transport/peer.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace orrery::common {

// The memory of another process, through the registration of its whole address space
// (Regions::register_space): by stores and loads where its owner has moved it into the memory file, else by
// the kernel's copy. What is used often is asked to be moved.
// Invariant: an access is announced in the owner's segment while it lasts, so that pages which the owner
// moves or takes away are not touched (state/hazard.hpp).
// An access by the kernel waits while its owner moves a chunk of pages.
// Threads: any. Those beyond the ones that have a hazard word of their own go by the kernel, one at a time.
// Usage: if (memory.try_put(to, from, 8) == Errc::not_done) status = memory.put(to, from, 8);
class MatchMemory {
 public:
  // `attach`: what may be done by the kernel, null: nothing. `space`: where the owner says the key of its
  // registration (pack()); 0 until it has one.
  MatchMemory(nic::Runtime& runtime, nic::PeerRoute link, const memory::CrossAttach* attach,
              const std::atomic<std::uint64_t>& space);

  bool can_attach() const { return can_attach_; }

  // By the mapping alone: takes no lock and makes no system call but, now and then, one that asks the owner
  // for its pages. not_done: it is not mapped here, and nothing happened.
  Errc try_put(std::uint64_t to, const std::byte* from, std::uint64_t bytes) {
    return try_mapped<true>(to, const_cast<std::byte*>(from), bytes);
  }
  Errc try_get(std::uint64_t from, std::byte* to, std::uint64_t bytes) {
    return try_mapped<false>(from, to, bytes);
  }
  // By either way. Errors: bounds (not all of it is there), unreachable.
  Errc put(std::uint64_t to, const std::byte* from, std::uint64_t bytes);
  Errc get(std::uint64_t from, std::byte* to, std::uint64_t bytes);

  static constexpr std::uint64_t pack(const nic::MemKey& key) {
    return std::uint64_t{key.generation} << 16 | key.index | std::uint64_t{1} << 32;
  }

 private:
  // What a thread found mapped last; good while `word` says `value` (state/extent_state.hpp).
  struct alignas(64) Mapped {
    const std::atomic<std::uint64_t>* word = nullptr;
    std::uint64_t value = 0;
    std::uint64_t begin = 0;
    std::uint64_t size = 0;
    std::byte* here = nullptr;
  };

  // In line: the way of each short message.
  template <bool kWrites>
  [[gnu::always_inline]] Errc try_mapped(std::uint64_t there, std::byte* here, std::uint64_t bytes) {
    if (bytes == 0) return Errc::ok;
    const std::uint32_t slot = nic::thread_hazard_slot();
    if (slot == nic::kSharedHazardSlot) [[unlikely]]
      return Errc::not_done;
    const std::uint64_t space = space_.load(std::memory_order_acquire);
    if (space == 0) [[unlikely]]
      return find_and_move<kWrites>(slot, there, here, bytes);
    {
      const nic::HazardGuard guard(peer_.hazard(slot), space_index(space), peer_.link.strong_hazards);
      const Mapped& mapped = (*mapped_)[slot];
      // Acquire: pairs with the owner's publication. An owner that takes pages away changes this word, and
      // then looks for our announcement.
      const std::uint64_t offset = there - mapped.begin;
      if (mapped.word != nullptr && offset <= mapped.size && bytes <= mapped.size - offset &&
          mapped.word->load(std::memory_order_acquire) == mapped.value) [[likely]] {
        move<kWrites>(mapped.here + offset, here, bytes);
        return Errc::ok;
      }
    }
    return find_and_move<kWrites>(slot, there, here, bytes);
  }
  template <bool kWrites>
  static void move(std::byte* there, std::byte* here, std::uint64_t bytes) {
    if constexpr (kWrites)
      nic::detail::copy_to_target(there, here, bytes);
    else
      nic::detail::copy_from_target(here, there, bytes);
  }
  static constexpr std::uint32_t space_index(std::uint64_t space) { return space & 0xffff; }
  template <bool kWrites>
  Errc find_and_move(std::uint32_t slot, std::uint64_t there, std::byte* here, std::uint64_t bytes);
  bool find(std::uint32_t slot, std::uint64_t address, std::uint64_t bytes);
  void ask_for(std::uint64_t address);
  bool has_space();
  template <bool kWrites>
  Errc try_kernel(std::uint64_t there, std::byte* here, std::uint64_t bytes);
  template <bool kWrites>
  Errc by_kernel(std::uint64_t there, std::byte* here, std::uint64_t bytes);

  nic::Runtime& runtime_;
  nic::Peer peer_;
  memory::CrossAttach attach_;
  const bool can_attach_;
  const std::atomic<std::uint64_t>& published_;
  std::atomic<std::uint64_t> space_{0};
  std::unique_ptr<std::array<Mapped, nic::kThreadWords + 2>> mapped_;  // by hazard word: its thread's alone
};

}  // namespace orrery::common
