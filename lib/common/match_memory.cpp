// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "lib/common/match_memory.hpp"

#include "emu/nic/initiator/fast_path.hpp"
#include "emu/nic/initiator/router.hpp"
#include "emu/nic/state/extent_state.hpp"
#include "emu/nic/target/amo_cache.hpp"

#include <bit>
#include <chrono>
#include <mutex>
#include <thread>

namespace orrery::common {

namespace {

constexpr std::uint16_t space_generation(std::uint64_t space) {
  return static_cast<std::uint16_t>(space >> 16);
}

}  // namespace

MatchMemory::MatchMemory(nic::Runtime& runtime, nic::PeerRoute link, const memory::CrossAttach* attach,
                         const std::atomic<std::uint64_t>& space)
    : runtime_(runtime),
      peer_(std::move(link), static_cast<wire::ProcessSlot>(runtime.self().slot)),
      attach_(attach == nullptr ? memory::CrossAttach() : *attach),
      can_attach_(attach != nullptr),
      published_(space),
      mapped_(std::make_unique<std::array<Mapped, nic::kThreadWords + 2>>()) {}

// The owner's registration, once it has said which it is.
bool MatchMemory::has_space() {
  if (space_.load(std::memory_order_acquire) != 0) return true;
  // Acquire: the registration is in the owner's table before its key is published.
  const std::uint64_t said = published_.load(std::memory_order_acquire);
  if (said == 0 || space_index(said) >= nic::kMaxRegions) return false;
  space_.store(said, std::memory_order_release);
  return true;
}

// Looks for the extent, and keeps it for the thread of that hazard word. REQUIRES: the access is announced.
bool MatchMemory::find(std::uint32_t slot, std::uint64_t address, std::uint64_t bytes) {
  const std::uint64_t space = space_.load(std::memory_order_relaxed);
  nic::MrtEntry& entry = peer_.link.nic.region(space_index(space));
  const std::uint64_t word = nic::announced_word(entry);
  if (nic::control::generation(word) != space_generation(space) ||
      nic::control::state(word) == nic::RegionState::free || address >= nic::kSpaceBytes ||
      nic::AmoCache(peer_.link.nic).is_lazy())
    return false;
  const nic::FoundExtent extent = nic::find_extent(peer_.link.nic, address);
  // An owner that withdraws the registration changes its word, then those of all extents: one that is seen
  // before the registration's was not changed for that.
  if (extent.word == nullptr || bytes > extent.end - address ||
      entry.control.load(std::memory_order_acquire) != word)
    return false;
  const nic::Run run = peer_.link.memory->find(address);
  if (run.here == nullptr || !run.holds(address, bytes)) return false;
  const std::uint64_t begin = run.begin > extent.begin ? run.begin : extent.begin;
  const std::uint64_t end = run.end < extent.end ? run.end : extent.end;
  (*mapped_)[slot] = {extent.word, extent.value, begin, end - begin, run.at(begin)};
  return true;
}

template <bool kWrites>
Errc MatchMemory::find_and_move(std::uint32_t slot, std::uint64_t there, std::byte* here,
                                std::uint64_t bytes) {
  if (peer_.link.memory == nullptr || !has_space()) return Errc::not_done;
  {
    const nic::HazardGuard guard(peer_.hazard(slot), space_index(space_.load(std::memory_order_relaxed)),
                                 peer_.link.strong_hazards);
    if (find(slot, there, bytes)) {
      const Mapped& mapped = (*mapped_)[slot];
      move<kWrites>(mapped.here + (there - mapped.begin), here, bytes);
      return Errc::ok;
    }
  }
  ask_for(there);
  return Errc::not_done;
}

// One more access that a direct one would have done: the owner is asked for the page, of an extent that
// cannot be moved less and less often.
void MatchMemory::ask_for(std::uint64_t address) {
  const std::uint64_t extent = nic::extent_word::extent_of(address);
  auto& word = peer_.extent_hits[extent % peer_.extent_hits.size()];
  const std::uint64_t seen = word.load(std::memory_order_relaxed);
  const std::uint64_t count = seen >> 16 == extent ? (seen & 0xffff) + 1 : 1;
  if (count > 0xffff) return;
  word.store(extent << 16 | count, std::memory_order_relaxed);
  const std::uint32_t after = runtime_.nic().options().adopt_after;
  const std::uint64_t every = after == 0 ? 1 : after;
  if (count % every != 0 || !std::has_single_bit(count / every)) return;
  nic::want_extent(peer_.link.nic, address);
  runtime_.ring(peer_.link.process);
}

// One try of by_kernel(). not_done: the owner is moving pages, or has changed the registration meanwhile.
template <bool kWrites>
Errc MatchMemory::try_kernel(std::uint64_t there, std::byte* here, std::uint64_t bytes) {
  const std::uint32_t slot = nic::thread_hazard_slot();
  std::unique_lock shared(runtime_.nic().router().shared_hazard(), std::defer_lock);
  if (slot == nic::kSharedHazardSlot) shared.lock();
  const std::uint32_t index = space_index(space_.load(std::memory_order_relaxed));
  nic::MrtEntry& entry = peer_.link.nic.region(index);
  const nic::HazardGuard guard(peer_.hazard(slot), index, peer_.link.strong_hazards, nic::kByAttach);
  const std::uint64_t word = nic::announced_word(entry);
  // The copy would land in the old pages, or fault at pages that are held.
  if (nic::control::state(word) == nic::RegionState::moving) return Errc::not_done;
  if constexpr (kWrites)
    return attach_.write_while(entry.control, word, there, here, bytes).code();
  else
    return attach_.read(here, there, bytes).code();
}

template <bool kWrites>
Errc MatchMemory::by_kernel(std::uint64_t there, std::byte* here, std::uint64_t bytes) {
  if (!can_attach_ || !has_space()) return Errc::unreachable;
  constexpr int kYields = 1'000;
  constexpr auto kSleep = std::chrono::microseconds(50);
  // An owner that lives ends its move: it waits for no process that waits here (Regions::adopt_range).
  for (int i = 0;; ++i) {
    const Errc status = try_kernel<kWrites>(there, here, bytes);
    if (status != Errc::not_done) return status;
    if (i < kYields) {
      yield_cpu();
      continue;
    }
    if (!runtime_.alive(peer_.link.process)) return Errc::unreachable;
    std::this_thread::sleep_for(kSleep);
  }
}

Errc MatchMemory::put(std::uint64_t to, const std::byte* from, std::uint64_t bytes) {
  if (try_put(to, from, bytes) == Errc::ok) return Errc::ok;
  return by_kernel<true>(to, const_cast<std::byte*>(from), bytes);
}

Errc MatchMemory::get(std::uint64_t from, std::byte* to, std::uint64_t bytes) {
  if (try_get(from, to, bytes) == Errc::ok) return Errc::ok;
  return by_kernel<false>(from, to, bytes);
}

template Errc MatchMemory::find_and_move<true>(std::uint32_t, std::uint64_t, std::byte*, std::uint64_t);
template Errc MatchMemory::find_and_move<false>(std::uint32_t, std::uint64_t, std::byte*, std::uint64_t);

}  // namespace orrery::common
