// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#include "emu/nic/memory/registration_table.hpp"

#include "emu/base/asymmetric_fence.hpp"
#include "emu/base/log.hpp"
#include "emu/base/wait.hpp"
#include "emu/nic/state/hazard.hpp"

#include <algorithm>
#include <bit>
#include <chrono>
#include <numeric>
#include <thread>

namespace orrery::nic {

namespace {

constexpr std::uint64_t page_floor(std::uint64_t address) { return address & ~(kPageBytes - 1); }
constexpr std::uint64_t page_ceil(std::uint64_t address) { return page_floor(address + kPageBytes - 1); }
constexpr std::uint64_t kMaxPages = (1ull << 28) - 1;

// The generation before the first of each entry. The multiplier is the golden section of the generations and
// has no factor in common with their number: neighbours are never neighbours.
constexpr std::uint16_t before_first(std::uint32_t process_generation) {
  constexpr std::uint64_t kStride = 10'126;
  static_assert(std::gcd(kStride, std::uint64_t{kMaxGeneration}) == 1);
  return static_cast<std::uint16_t>(process_generation * kStride % kMaxGeneration);
}

}  // namespace

RegistrationTable::RegistrationTable(NicView view, std::uint32_t process_generation,
                                     std::function<std::uint64_t(std::uint64_t)> arena_alloc,
                                     std::function<void(std::uint64_t, std::uint64_t)> arena_free,
                                     HazardBoard* board)
    : view_(view),
      board_(board),
      arena_alloc_(std::move(arena_alloc)),
      arena_free_(std::move(arena_free)),
      extents_(view),
      free_(kMaxRegions),
      free_count_(kMaxRegions),
      generations_(kMaxRegions, before_first(process_generation)),
      held_(kMaxRegions) {
  const std::uint32_t first = first_region(view.header().process_slot);
  for (std::uint32_t i = 0; i < kMaxRegions; ++i)
    free_[i] = static_cast<std::uint16_t>((first + i) % kMaxRegions);
}

Result<MemKey> RegistrationTable::insert(const Entry& entry) {
  std::uint64_t total = entry.length;
  if (!entry.segments.empty()) {
    total = 0;
    for (const Segment& segment : entry.segments) total += segment.length;
  }
  const bool segmented = !entry.segments.empty();
  const std::uint64_t begin = segmented || entry.space ? 0 : page_floor(entry.address);
  const std::uint64_t end = entry.space ? kSpaceBytes
                            : segmented ? total
                                        : page_ceil(entry.address + entry.length);
  const std::uint64_t pages = entry.space ? 0 : (page_ceil(end) - begin) / kPageBytes;
  if (pages > kMaxPages) return Errc::size;

  std::uint64_t list = 0;
  if (segmented) {
    list = arena_alloc_(entry.segments.size() * sizeof(Segment));
    if (list == 0) return Errc::no_memory;
    std::copy(entry.segments.begin(), entry.segments.end(),
              view_.arena<Segment>(list, entry.segments.size()));
  }

  std::uint16_t index = 0;
  std::uint16_t generation = 0;
  {
    const std::lock_guard lock(mu_);
    if (!stalled_.empty()) [[unlikely]]
      reclaim_stalled();
    const bool is_held = entry.held.index < kMaxRegions;
    const bool is_stalled = std::find(stalled_.begin(), stalled_.end(), entry.held.index) != stalled_.end();
    if (is_held ? is_stalled : free_count_ == 0) {
      if (list != 0) arena_free_(list, entry.segments.size() * sizeof(Segment));
      return Errc::no_resource;
    }
    if (is_held) {
      index = entry.held.index;
    } else {
      index = free_[free_head_];
      free_head_ = (free_head_ + 1) % kMaxRegions;
      --free_count_;
    }
    generation =
        generations_[index] == kMaxGeneration ? 1 : static_cast<std::uint16_t>(generations_[index] + 1);
    generations_[index] = generation;
  }

  const auto flags =
      static_cast<std::uint8_t>(entry.flags | (segmented ? kSegmented : 0) | (entry.space ? kSpace : 0));
  if (entry.space) {
    spaces_[index / 64].fetch_or(std::uint64_t{1} << index % 64, std::memory_order_seq_cst);
    space_count_.fetch_add(1, std::memory_order_seq_cst);
  }
  MrtEntry& slot = view_.region(index);
  slot.begin.store(begin, std::memory_order_relaxed);
  slot.end.store(end, std::memory_order_relaxed);
  slot.segments.store(list, std::memory_order_relaxed);
  slot.segment_count.store(static_cast<std::uint32_t>(entry.segments.size()), std::memory_order_relaxed);
  slot.touched.store(0, std::memory_order_relaxed);
  slot.base.store(entry.held.base != 0 ? entry.held.base : begin, std::memory_order_relaxed);
  slot.reserved_as.store(entry.held.reserved_as, std::memory_order_relaxed);
  // Release: a peer that sees this control word sees the fields above.
  slot.control.store(control::make(generation, entry.domain, entry.queue_plus_1, flags, entry.state),
                     std::memory_order_release);
  return MemKey{.page = begin / kPageBytes,
                .page_count = static_cast<std::uint32_t>(pages),
                .index = index,
                .generation = generation,
                .process = static_cast<std::uint16_t>(view_.header().process_slot),
                .flags = flags};
}

Result<std::uint64_t> RegistrationTable::find(const MemKey& key) const {
  if (!key.valid() || key.index >= kMaxRegions || key.process != view_.header().process_slot) {
    return Errc::invalid_handle;
  }
  const std::uint64_t word = view_.region(key.index).control.load(std::memory_order_acquire);
  if (control::state(word) == RegionState::free || control::generation(word) != key.generation) {
    return Errc::invalid_handle;
  }
  return word;
}

bool RegistrationTable::wait_until_untouched(const RegionSet& regions,
                                             const std::function<bool(std::uint32_t)>& alive,
                                             std::int64_t limit_ns) {
  // Peers that announce themselves on the board look at this instead of each entry. Sequentially consistent
  // for the same reason as in remove().
  if (board_ != nullptr) board_->withdrawals.fetch_add(1, std::memory_order_seq_cst);
  // After this every peer that announced itself before it saw the entry's old word is seen below. Where the
  // barrier is not to be had, peers announce themselves with a full barrier of their own.
  asymmetric_fence::heavy();
  const std::int64_t deadline = monotonic_ns() + limit_ns;
  const ServiceState& service = view_.service();
  const std::uint64_t marks = board_ != nullptr ? regions.marks(view_.header().process_slot) : 0;
  for (std::uint32_t group = 0; group < kMaxProcesses / 64; ++group) {
    std::uint64_t bits = service.sources[group].load(std::memory_order_acquire);
    for (; bits != 0; bits &= bits - 1) {
      const std::uint32_t process = group * 64 + static_cast<std::uint32_t>(std::countr_zero(bits));
      const bool stalled = any_hazard(view_, process, [&](const std::atomic<std::uint64_t>& word) {
        // The same access is over as soon as the word changes; a later one finds the entry free.
        while (regions.named_by(word.load(std::memory_order_acquire))) {
          if (!alive(process)) break;
          if (monotonic_ns() > deadline) return true;
          yield_cpu();
        }
        return false;
      });
      if (stalled) return false;
      if (board_ == nullptr) continue;
      for (const auto& word : board_->lines[process].port) {
        const std::uint64_t seen = word.load(std::memory_order_acquire);
        while (may_touch(seen, marks) && word.load(std::memory_order_acquire) == seen) {
          if (!alive(process)) break;
          if (monotonic_ns() > deadline) return false;
          yield_cpu();
        }
      }
    }
  }
  return true;
}

bool RegistrationTable::forget_queue(std::uint32_t queue, const std::function<bool(std::uint32_t)>& alive,
                                     std::int64_t limit_ns) {
  RegionSet touched;
  bool any_space = false;
  for (std::uint32_t i = 0; i < kMaxRegions; ++i) {
    MrtEntry& entry = view_.region(i);
    std::uint64_t word = entry.control.load(std::memory_order_acquire);
    const auto names_it = [&] {
      return control::queue_plus_1(word) == queue + 1 && control::state(word) != RegionState::free;
    };
    // Sequentially consistent for the same reason as in remove().
    while (names_it()) {
      if (!entry.control.compare_exchange_weak(word, control::without_queue(word), std::memory_order_seq_cst))
        continue;
      if (entry.touched.load(std::memory_order_seq_cst) != 0) touched.add(i);
      any_space = any_space || is_space(i);
      break;
    }
  }
  if (any_space) extents_.refresh();
  return touched.empty() || wait_until_untouched(touched, alive, limit_ns);
}

// Of peers that were not gone after the limit: until the kernel has nothing of theirs in hand any more.
void RegistrationTable::wait_for_copies(std::uint32_t index, const Peers& peers) {
  const std::int64_t deadline = monotonic_ns() + kAttachLimitNs;
  for (std::uint32_t process = 0; process < kMaxProcesses; ++process) {
    const bool given_up = any_hazard(view_, process, [&](const std::atomic<std::uint64_t>& word) {
      while (word.load(std::memory_order_acquire) == (hazard_word(index) | kByAttach)) {
        if (!peers.alive(process) || peers.stopped(process)) break;
        if (monotonic_ns() > deadline) {
          log::warn("process {} has been copying to deregistered memory for {} s: it may still write there",
                    process, kAttachLimitNs / 1'000'000'000);
          return true;
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
      }
      return false;
    });
    if (given_up) return;
  }
}

Status RegistrationTable::remove(const MemKey& key, const Peers& peers, std::int64_t limit_ns,
                                 const std::function<void(std::span<const Range>)>& settle_own,
                                 const std::function<void(std::uint64_t, std::uint64_t)>& cut_off) {
  if (!key.valid() || key.index >= kMaxRegions) return Errc::invalid_handle;
  MrtEntry& entry = view_.region(key.index);
  std::uint64_t word = entry.control.load(std::memory_order_acquire);
  do {
    if (control::state(word) == RegionState::free || control::generation(word) != key.generation) {
      return Errc::invalid_handle;
    }
    // Sequentially consistent: a peer that touches the entry for the first time marks it so, looks again, and
    // either we see its mark or it sees this.
  } while (!entry.control.compare_exchange_weak(word, control::with_state(word, RegionState::free),
                                                std::memory_order_seq_cst));
  bool untouched = true;
  if (entry.touched.load(std::memory_order_seq_cst) != 0) {
    // What was granted by an extent's word ends with that word.
    const bool space = (control::flags(word) & kSpace) != 0;
    if (space) extents_.refresh();
    RegionSet alone;
    alone.add(key.index);
    untouched = wait_until_untouched(alone, peers.alive, limit_ns);
    if (!untouched) wait_for_copies(key.index, peers);
    // A peer's window is not an access that ends: its stores have to go nowhere from now on.
    const std::uint64_t windows = entry.windows.load(std::memory_order_seq_cst);
    const bool is_mapped = windows >> 32 == key.generation && (windows & UINT32_MAX) != 0;
    if (!untouched || is_mapped) {
      if (space) {
        for (const ExtentMap::Run& run : extents_.published()) cut_off(run.begin, run.end);
      } else {
        for (const Range& range : ranges_of(key.index)) cut_off(range.begin, range.end);
      }
    }
  }
  if (control::state(word) == RegionState::moving)
    settle_own(ranges_of(key.index));
  else
    settle_own({});
  const std::lock_guard lock(mu_);
  if (untouched)
    release(key.index);
  else
    stalled_.push_back(key.index);
  return {};
}

// REQUIRES: mu_ is held; no process can be in the middle of an access.
void RegistrationTable::release(std::uint16_t index) {
  MrtEntry& entry = view_.region(index);
  const std::uint64_t list = entry.segments.exchange(0, std::memory_order_relaxed);
  if (list != 0) {
    arena_free_(list, std::uint64_t{entry.segment_count.load(std::memory_order_relaxed)} * sizeof(Segment));
  }
  const std::uint64_t bit = std::uint64_t{1} << index % 64;
  if ((spaces_[index / 64].fetch_and(~bit, std::memory_order_relaxed) & bit) != 0)
    space_count_.fetch_sub(1, std::memory_order_relaxed);
  if (!held_[index]) give_back(index);
}

// REQUIRES: mu_ is held.
void RegistrationTable::give_back(std::uint16_t index) {
  free_[(free_head_ + free_count_) % kMaxRegions] = index;
  ++free_count_;
}

Result<std::uint16_t> RegistrationTable::hold(std::uint16_t wanted) {
  const std::lock_guard lock(mu_);
  if (!stalled_.empty()) reclaim_stalled();
  if (free_count_ == 0) return Errc::no_resource;
  // The oldest one, or the wanted one: it changes places with the oldest.
  for (std::size_t i = 0; i < free_count_; ++i) {
    if (free_[(free_head_ + i) % kMaxRegions] != wanted) continue;
    std::swap(free_[(free_head_ + i) % kMaxRegions], free_[free_head_]);
    break;
  }
  const std::uint16_t index = free_[free_head_];
  free_head_ = (free_head_ + 1) % kMaxRegions;
  --free_count_;
  held_[index] = true;
  return index;
}

void RegistrationTable::let_go(std::uint16_t index) {
  const std::lock_guard lock(mu_);
  held_[index] = false;
  // One that a peer is stalled in comes back when that peer has gone.
  if (std::find(stalled_.begin(), stalled_.end(), index) == stalled_.end()) give_back(index);
}

// REQUIRES: mu_ is held.
void RegistrationTable::reclaim_stalled() {
  std::erase_if(stalled_, [this](std::uint16_t index) {
    for (std::uint32_t process = 0; process < kMaxProcesses; ++process) {
      if (any_hazard(view_, process, [index](const std::atomic<std::uint64_t>& word) {
            return names_region(word.load(std::memory_order_acquire), index);
          }))
        return false;
      if (board_ == nullptr) continue;
      for (const auto& word : board_->lines[process].port) {
        const std::uint64_t mark = region_mark(view_.header().process_slot, index);
        if (may_touch(word.load(std::memory_order_acquire), mark)) return false;
      }
    }
    release(index);
    return true;
  });
}

std::vector<RegistrationTable::Range> RegistrationTable::ranges_of(std::uint32_t index) const {
  std::vector<Range> ranges;
  const MrtEntry& entry = view_.region(index);
  const std::uint64_t list = entry.segments.load(std::memory_order_relaxed);
  if (list == 0) {
    ranges.push_back(
        {entry.begin.load(std::memory_order_relaxed), entry.end.load(std::memory_order_relaxed)});
    return ranges;
  }
  const std::uint32_t count = entry.segment_count.load(std::memory_order_relaxed);
  if (const auto* segments = view_.arena<Segment>(list, count)) {
    for (std::uint32_t i = 0; i < count; ++i) {
      ranges.push_back(
          {page_floor(segments[i].address), page_ceil(segments[i].address + segments[i].length)});
    }
  }
  return ranges;
}

RegionState RegistrationTable::state_of(std::uint32_t index) const {
  return control::state(view_.region(index).control.load(std::memory_order_acquire));
}

void RegistrationTable::set_state(std::uint32_t index, RegionState from, RegionState to) {
  auto& control_word = view_.region(index).control;
  std::uint64_t word = control_word.load(std::memory_order_acquire);
  // Sequentially consistent for the same reason as in remove().
  while (
      control::state(word) == from &&
      !control_word.compare_exchange_weak(word, control::with_state(word, to), std::memory_order_seq_cst)) {
  }
}

RegionSet RegistrationTable::overlapping(std::uint64_t begin, std::uint64_t end) const {
  RegionSet regions;
  for (std::uint32_t i = 0; i < kMaxRegions; ++i) {
    if (state_of(i) == RegionState::free) continue;
    const MrtEntry& entry = view_.region(i);
    if (entry.segments.load(std::memory_order_relaxed) == 0) {
      const std::uint64_t entry_begin = entry.begin.load(std::memory_order_relaxed);
      if (entry_begin < end && begin < entry.end.load(std::memory_order_relaxed)) regions.add(i);
      continue;
    }
    for (const Range& range : ranges_of(i)) {
      if (range.begin < end && begin < range.end) {
        regions.add(i);
        break;
      }
    }
  }
  return regions;
}

bool RegistrationTable::covers_any(std::uint64_t begin, std::uint64_t end) const {
  bool any = false;
  overlapping(begin, end).for_each([&](std::uint32_t index) { any = any || !is_space(index); });
  return any;
}

void RegistrationTable::change_state(std::uint64_t begin, std::uint64_t end, RegionState from,
                                     RegionState to) {
  overlapping(begin, end).for_each([&](std::uint32_t index) { set_state(index, from, to); });
}

void RegistrationTable::settle_spaces() {
  for (std::uint32_t group = 0; group < spaces_.size(); ++group) {
    std::uint64_t bits = spaces_[group].load(std::memory_order_acquire);
    for (; bits != 0; bits &= bits - 1)
      set_state(group * 64 + static_cast<std::uint32_t>(std::countr_zero(bits)), RegionState::moving,
                RegionState::by_frame);
  }
}

void RegistrationTable::settle_moving(const std::function<bool(std::uint64_t, std::uint64_t)>& direct) {
  settle_spaces();
  for (std::uint32_t i = 0; i < kMaxRegions; ++i) {
    if (state_of(i) != RegionState::moving) continue;
    const auto ranges = ranges_of(i);
    const bool all = std::all_of(ranges.begin(), ranges.end(),
                                 [&](const Range& range) { return direct(range.begin, range.end); });
    set_state(i, RegionState::moving, all ? RegionState::direct : RegionState::by_frame);
  }
}

bool RegistrationTable::drain_range(std::uint64_t begin, std::uint64_t end,
                                    const std::function<bool(std::uint32_t)>& alive, std::int64_t limit_ns) {
  RegionSet regions = overlapping(begin, end);
  {
    const std::lock_guard lock(mu_);
    for (const std::uint16_t index : stalled_) {
      for (const Range& range : ranges_of(index)) {
        if (range.begin < end && begin < range.end) regions.add(index);
      }
    }
  }
  return regions.empty() || wait_until_untouched(regions, alive, limit_ns);
}

bool RegistrationTable::drain_spaces(const std::function<bool(std::uint32_t)>& alive, std::int64_t limit_ns) {
  RegionSet regions;
  for (std::uint32_t i = 0; i < kMaxRegions; ++i) {
    if ((spaces_[i / 64].load(std::memory_order_seq_cst) >> i % 64 & 1) != 0) regions.add(i);
  }
  return regions.empty() || wait_until_untouched(regions, alive, limit_ns);
}

bool RegistrationTable::mark_suspended(std::uint16_t domain, bool on,
                                       const std::function<bool(std::uint32_t)>& alive,
                                       std::int64_t limit_ns) {
  constexpr std::uint64_t kMark = std::uint64_t{kSuspended} << 8;
  RegionSet marked;
  bool any_space = false;
  for (std::uint32_t i = 0; i < kMaxRegions; ++i) {
    auto& entry = view_.region(i).control;
    std::uint64_t word = entry.load(std::memory_order_acquire);
    // Sequentially consistent for the same reason as in remove().
    while (control::state(word) != RegionState::free && control::domain(word) == domain &&
           !entry.compare_exchange_weak(word, on ? word | kMark : word & ~kMark, std::memory_order_seq_cst)) {
    }
    if (control::state(word) != RegionState::free && control::domain(word) == domain) {
      marked.add(i);
      any_space = any_space || is_space(i);
    }
  }
  if (any_space) extents_.refresh();
  // A peer that found the marks looks again.
  if (!on && board_ != nullptr) board_->withdrawals.fetch_add(1, std::memory_order_release);
  return !on || marked.empty() || wait_until_untouched(marked, alive, limit_ns);
}

std::uint32_t RegistrationTable::in_use() const {
  const std::lock_guard lock(mu_);
  return static_cast<std::uint32_t>(kMaxRegions - free_count_);
}

}  // namespace orrery::nic
