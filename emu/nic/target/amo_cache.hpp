// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/nic/state/address_map.hpp"
#include "emu/nic/state/nic_state.hpp"

#include <array>
#include <atomic>
#include <cstdint>

// The AMO cache of a NIC: a small table of words that cached commands work on, so that the machine need not
// read host memory for each. (The Gemini paper, section 2.4: host memory is updated each time the variable is
// updated, "lazy update mechanisms are also provided"; what the NIC does is not coherent with what the local
// processor does.) Two modes, the owner's choice for the life of the NIC:
//
//   coherent  commands work on memory; the table says which words a cache would hold, and counts. Only the
//             counters show a difference, to the target's processor too. Any thread of any process.
//   lazy      commands work on the cached value. Memory, and with it the target's processor, sees it when the
//             entry is evicted, when the cache is flushed, when its registration ends, or when a fetching
//             command has read it. What the processor stores to a cached word in between, no cached command
//             sees, and the next write-back overwrites it.
//
// In both modes the network sees one value: puts, gets and commands past the cache write a cached word back
// and drop its entry first. For that, in lazy mode every packet to the NIC is applied by its owner: a value
// that only its owner may write back needs no other writer of that memory, and nothing to repair when an
// initiator dies. The price is that a lazy NIC's owner has to be scheduled, as for frames.
//
// A word enters in the next free place; when there is none, the word that came first leaves (entry N + 1
// evicts). Words of 4 and of 8 bytes are different entries; one that overlaps another drives it out.
namespace orrery::nic {

enum class AmoCacheMode : std::uint32_t { coherent = 0, lazy = 1 };

inline constexpr std::uint32_t kMaxAmoEntries = 1024;
inline constexpr std::uint32_t kAmoHints = 4096;

// What lies in kAmoArea.
//   tag: virtual address of the word | 2 when it has 4 bytes | 1 when memory lacks the value; 0: free
struct AmoState {
  std::atomic<AmoCacheMode> mode;       // owner, before the NIC is ready
  std::atomic<std::uint32_t> capacity;  // likewise
  alignas(kCacheLine) std::atomic<std::uint64_t> hits;
  std::atomic<std::uint64_t> misses;
  std::atomic<std::uint64_t> evictions;    // entries that left because another came
  std::atomic<std::uint64_t> write_backs;  // values that went to memory
  std::atomic<std::uint32_t> oldest;       // next place to be taken from
  alignas(kCacheLine) std::array<std::atomic<std::uint64_t>, kMaxAmoEntries> tags;
  std::array<std::atomic<std::uint64_t>, kMaxAmoEntries> values;  // lazy: owner only
  std::array<std::atomic<std::uint16_t>, kAmoHints> hints;        // place + 1 of a word, by its hash; may lie
};
static_assert(offsetof(AmoState, capacity) == 4 && offsetof(AmoState, hits) == 64 &&
              offsetof(AmoState, oldest) == 96 && offsetof(AmoState, tags) == 128 &&
              offsetof(AmoState, values) == 8320 && offsetof(AmoState, hints) == 16512 &&
              sizeof(AmoState) <= kAmoArea.bytes);

// What the cache did since the NIC was made.
struct AmoCacheCounters {
  std::uint64_t hits = 0;
  std::uint64_t misses = 0;
  std::uint64_t evictions = 0;
  std::uint64_t write_backs = 0;
};

// One word that a cached command is for.
struct AmoWord {
  std::uint64_t address = 0;  // virtual, of the owner
  bool narrow = false;        // 4 bytes, not 8
};

// The table in a NIC's segment, ours or a peer's; what a peer's says is checked. A value.
class AmoCache {
 public:
  explicit AmoCache(const NicView& nic) : state_(nic.unit<AmoState, kAmoArea>()) {}

  // Owner, once, before another process sees the segment. `entries`: 1..kMaxAmoEntries.
  void set_up(std::uint32_t entries, AmoCacheMode mode);

  bool is_lazy() const { return state_.mode.load(std::memory_order_relaxed) == AmoCacheMode::lazy; }
  // Whether any word was ever cached.
  bool was_used() const { return state_.misses.load(std::memory_order_relaxed) != 0; }
  AmoCacheCounters counters() const;

  // Coherent mode: a cached command works on this word. Any thread of any process; lock-free.
  void note(const AmoWord& word);
  // Whether a cached command would find it here now.
  bool holds(const AmoWord& word) const;

  // Lazy mode, one thread of the owner at a time: applies a command to the cached value, which is read from
  // `memory` first when the word is not here. `*old` is what the command found. ok, or bounds (the word
  // cannot be reached). May touch memory of another entry that it drives out.
  Errc apply(AddressMap& memory, const AmoWord& word, std::uint8_t command, std::uint64_t a, std::uint64_t b,
             std::uint64_t* old);

  // Drops every word that overlaps [begin, end), of the owner's addresses; writes back what memory
  // lacks. Lazy mode: one thread of the owner at a time; an entry is dropped before memory is touched, so
  // that a caller that a missing page interrupts can go on by calling again.
  void flush(AddressMap& memory, std::uint64_t begin, std::uint64_t end);

 private:
  static constexpr std::uint32_t kNowhere = UINT32_MAX;
  std::uint32_t capacity() const;
  std::uint32_t find(std::uint64_t key) const;
  std::uint32_t place_for(std::uint64_t key, std::uint64_t* evicted);
  void write_back(AddressMap& memory, std::uint64_t tag, std::uint64_t value);

  AmoState& state_;
};

}  // namespace orrery::nic
