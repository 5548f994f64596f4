// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/target/amo_cache.hpp"

#include "emu/nic/target/amo_unit.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace orrery::nic {

namespace {

constexpr std::uint64_t kDirty = 1;
constexpr std::uint64_t kNarrowTag = 2;

constexpr std::uint64_t key_of(const AmoWord& word) { return word.address | (word.narrow ? kNarrowTag : 0); }
constexpr std::uint64_t address_of(std::uint64_t tag) { return tag & ~(kDirty | kNarrowTag); }
constexpr std::uint64_t width_of(std::uint64_t tag) { return (tag & kNarrowTag) != 0 ? 4 : 8; }

constexpr std::size_t hash_of(std::uint64_t key) {
  return static_cast<std::size_t>((key >> 1) * 0x9e37'79b9'7f4a'7c15 >> (64 - std::countr_zero(kAmoHints)));
}

// Only one process writes these in lazy mode; others may look.
void add_one(std::atomic<std::uint64_t>& counter) { counter.fetch_add(1, std::memory_order_relaxed); }

}  // namespace

void AmoCache::set_up(std::uint32_t entries, AmoCacheMode mode) {
  state_.capacity.store(std::clamp(entries, 1u, kMaxAmoEntries), std::memory_order_relaxed);
  state_.mode.store(mode, std::memory_order_relaxed);
}

AmoCacheCounters AmoCache::counters() const {
  return {.hits = state_.hits.load(std::memory_order_relaxed),
          .misses = state_.misses.load(std::memory_order_relaxed),
          .evictions = state_.evictions.load(std::memory_order_relaxed),
          .write_backs = state_.write_backs.load(std::memory_order_relaxed)};
}

std::uint32_t AmoCache::capacity() const {
  return std::min(state_.capacity.load(std::memory_order_relaxed), kMaxAmoEntries);
}

std::uint32_t AmoCache::find(std::uint64_t key) const {
  const auto holds = [&](std::uint32_t place) {
    return (state_.tags[place].load(std::memory_order_relaxed) & ~kDirty) == key;
  };
  const std::uint32_t hinted = state_.hints[hash_of(key)].load(std::memory_order_relaxed);
  if (hinted != 0 && hinted <= kMaxAmoEntries && holds(hinted - 1)) return hinted - 1;
  const std::uint32_t entries = capacity();
  for (std::uint32_t place = 0; place < entries; ++place) {
    if (holds(place)) return place;
  }
  return kNowhere;
}

// Puts `key` into the table: into a free place, or into the oldest one's, whose tag comes back in `evicted`.
// kNowhere: the table has no places.
std::uint32_t AmoCache::place_for(std::uint64_t key, std::uint64_t* evicted) {
  const std::uint32_t entries = capacity();
  if (entries == 0) return kNowhere;
  const std::uint32_t from = state_.oldest.load(std::memory_order_relaxed);
  std::uint32_t place = kNowhere;
  *evicted = 0;
  for (std::uint32_t i = 0; i < entries && place == kNowhere; ++i) {
    const std::uint32_t candidate = (from + i) % entries;
    std::uint64_t free = 0;
    if (state_.tags[candidate].load(std::memory_order_relaxed) == 0 &&
        state_.tags[candidate].compare_exchange_strong(free, key, std::memory_order_relaxed)) {
      place = candidate;
    }
  }
  if (place == kNowhere) {
    place = state_.oldest.fetch_add(1, std::memory_order_relaxed) % entries;
    *evicted = state_.tags[place].exchange(key, std::memory_order_relaxed);
    if (*evicted != 0) add_one(state_.evictions);
  }
  state_.hints[hash_of(key)].store(static_cast<std::uint16_t>(place + 1), std::memory_order_relaxed);
  return place;
}

void AmoCache::note(const AmoWord& word) {
  const std::uint64_t key = key_of(word);
  if (find(key) != kNowhere) return add_one(state_.hits);
  add_one(state_.misses);
  std::uint64_t evicted = 0;
  // Two that miss at once may both put it in: the second one ages out.
  (void)place_for(key, &evicted);
}

bool AmoCache::holds(const AmoWord& word) const { return find(key_of(word)) != kNowhere; }

void AmoCache::write_back(AddressMap& memory, std::uint64_t tag, std::uint64_t value) {
  if ((tag & kDirty) == 0) return;
  const std::uint64_t address = address_of(tag);
  const Run run = memory.find(address);
  if (!run.holds(address, width_of(tag))) return;
  add_one(state_.write_backs);
  store_bytes(run.at(address), reinterpret_cast<const std::byte*>(&value), width_of(tag));
}

Errc AmoCache::apply(AddressMap& memory, const AmoWord& word, std::uint8_t command, std::uint64_t a,
                     std::uint64_t b, std::uint64_t* old) {
  const std::uint64_t key = key_of(word);
  const std::uint64_t width = width_of(key);
  std::uint32_t place = find(key);
  if (place == kNowhere) {
    add_one(state_.misses);
    const Run run = memory.find(word.address);
    if (!run.holds(word.address, width)) return Errc::bounds;
    // A word of the other size that overlaps this one.
    flush(memory, word.address, word.address + width);
    std::uint64_t value = 0;
    load_bytes(reinterpret_cast<std::byte*>(&value), run.at(word.address), width);
    std::uint64_t evicted = 0;
    place = place_for(key, &evicted);
    if (place == kNowhere) return Errc::bounds;
    const std::uint64_t evicted_value = state_.values[place].exchange(value, std::memory_order_relaxed);
    write_back(memory, evicted, evicted_value);
  } else {
    add_one(state_.hits);
  }
  auto& cached = state_.values[place];
  auto& tag = state_.tags[place];
  *old = cached.load(std::memory_order_relaxed);
  const std::uint64_t value =
      width == 8 ? amo::combined<std::uint64_t>(amo::op(command), *old, a, b)
                 : amo::combined<std::uint32_t>(amo::op(command), static_cast<std::uint32_t>(*old),
                                                static_cast<std::uint32_t>(a), static_cast<std::uint32_t>(b));
  if (value != *old) {
    cached.store(value, std::memory_order_relaxed);
    tag.store(key | kDirty, std::memory_order_relaxed);
  }
  // A cached read: memory is made to know what its reader knows.
  if (amo::fetches(command) && (tag.load(std::memory_order_relaxed) & kDirty) != 0) {
    tag.store(key, std::memory_order_relaxed);
    write_back(memory, key | kDirty, value);
  }
  return Errc::ok;
}

void AmoCache::flush(AddressMap& memory, std::uint64_t begin, std::uint64_t end) {
  const std::uint32_t entries = capacity();
  for (std::uint32_t place = 0; place < entries; ++place) {
    const std::uint64_t tag = state_.tags[place].load(std::memory_order_relaxed);
    if (tag == 0 || address_of(tag) >= end || begin >= address_of(tag) + width_of(tag)) continue;
    const std::uint64_t value = state_.values[place].load(std::memory_order_relaxed);
    std::uint64_t expected = tag;
    // Coherent mode: another thread may have taken the place meanwhile, and keeps it.
    if (state_.tags[place].compare_exchange_strong(expected, 0, std::memory_order_relaxed))
      write_back(memory, tag, value);
  }
}

}  // namespace orrery::nic
