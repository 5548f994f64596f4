// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/memory/extent_map.hpp"
#include "emu/nic/memory/region_set.hpp"
#include "emu/nic/state/access.hpp"
#include "emu/nic/state/hazard_board.hpp"
#include "emu/nic/state/lock_rank.hpp"
#include "emu/nic/state/nic_state.hpp"
#include "emu/nic/state/request.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

namespace orrery::nic {

// How a registration stands in an entry that was held for it (RegistrationTable::hold).
struct HeldEntry {
  std::uint16_t index = kMaxRegions;  // none: any free one
  std::uint32_t reserved_as = 0;      // as in MrtEntry
  std::uint64_t base = 0;             // as in MrtEntry; 0: the first page
};

// The owner's side of a NIC's memory registration table. Peers read the entries; only this writes them.
// Threads: any.
// Invariants: (1) an entry whose state is free refuses every key; (2) an entry is reused only after no
// process can be in the middle of an access that its last key allowed; (3) free entries are reused oldest
// first, so that a generation comes round again after 67 million registrations at the soonest; (4) processes
// that have one slot after the other begin far apart in the generations, so that a key which outlived its
// process is refused by its successor: until one of them has registered some thousand times in one entry.
// Usage: auto key = table.insert(entry);  table.remove(key.value(), peers, ns, settle, cut_off);
class RegistrationTable {
 public:
  struct Entry {
    std::uint16_t domain = 0;
    std::uint8_t flags = 0;  // RegionFlags
    std::uint32_t queue_plus_1 = 0;
    std::uint64_t address = 0;  // exact; rounded out to pages here
    std::uint64_t length = 0;
    std::span<const Segment> segments;  // instead of address and length
    bool space = false;                 // the same: the whole address space, mapped or not
    RegionState state = RegionState::by_frame;
    HeldEntry held;  // with nothing registered there
  };

  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
  };

  // `process_generation` tells the processes that have had our slot apart. `arena_alloc` gives room for
  // segment lists in the segment's arena (offset, or 0 when it is used up). `board`: where peers
  // announce rows of FMA windows too; null: nowhere.
  RegistrationTable(NicView view, std::uint32_t process_generation,
                    std::function<std::uint64_t(std::uint64_t)> arena_alloc,
                    std::function<void(std::uint64_t, std::uint64_t)> arena_free,
                    HazardBoard* board = nullptr);

  // Errors: no_resource (all entries in use, or a peer is still in the held one), no_memory (no room for the
  // segment list), size (over 1 TiB).
  Result<MemKey> insert(const Entry& entry);

  // Sets an entry aside, `wanted` if it is free; registrations there come and go until it is released.
  // Errors: no_resource (all entries in use).
  Result<std::uint16_t> hold(std::uint16_t wanted);
  // REQUIRES: held, and nothing is registered there.
  void let_go(std::uint16_t index);

  // Takes that queue away from all registrations that name it, and waits until no peer can be in the middle
  // of raising an event there: false when one still may be after `limit_ns`. Blocks up to the limit.
  bool forget_queue(std::uint32_t queue, const std::function<bool(std::uint32_t)>& alive,
                    std::int64_t limit_ns);

  // The control word of a key that is ours and current. Errors: invalid_handle.
  Result<std::uint64_t> find(const MemKey& key) const;

  // What is known of the process in a slot.
  struct Peers {
    std::function<bool(std::uint32_t)> alive;    // whether to wait for it at all
    std::function<bool(std::uint32_t)> stopped;  // whether none of its threads is in the kernel
  };
  // How long a removal waits for a copy by the kernel whose process is not stopped: it ends by itself, unless
  // something holds that process in the middle of it.
  static constexpr std::int64_t kAttachLimitNs = 10'000'000'000;

  // Refuses the key from now on and waits until no peer is in the middle of an access. `cut_off()` is called
  // when a peer is still there after `limit_ns`, and must make its accesses harmless; the entry is then
  // reused only after that peer has gone. A copy that the kernel may be making cannot be cut off: it is
  // waited for, until it is over or its process is stopped, which it can only be before or after it
  // (cross_attach.hpp). `settle_own(moving)` waits for threads of our own process, and for the adoption of
  // those ranges. Blocks up to the limits. Errors: invalid_handle.
  Status remove(const MemKey& key, const Peers& peers, std::int64_t limit_ns,
                const std::function<void(std::span<const Range> moving)>& settle_own,
                const std::function<void(std::uint64_t begin, std::uint64_t end)>& cut_off);

  // Where the address space lies in the memory file, for registrations of the whole of it.
  ExtentMap& extents() { return extents_; }
  bool has_spaces() const { return space_count_.load(std::memory_order_relaxed) != 0; }
  // Waits until no peer is in the middle of an access to one of those: false when one still is after the
  // limit. Allocates nothing.
  bool drain_spaces(const std::function<bool(std::uint32_t)>& alive, std::int64_t limit_ns);

  // Whether any registration but those of the whole space has bytes in [begin, end).
  bool covers_any(std::uint64_t begin, std::uint64_t end) const;
  // Changes how peers reach every registration that overlaps [begin, end) and is in state `from`. When it
  // leaves direct or by_frame the call waits for peers as remove() does; false when one did not go.
  void change_state(std::uint64_t begin, std::uint64_t end, RegionState from, RegionState to);
  // Registrations of the whole space that are `moving` are by_frame again: their extents say what is direct.
  void settle_spaces();
  // Registrations that are `moving` become direct when `direct(begin, end)` holds for all they cover, else
  // by_frame again.
  void settle_moving(const std::function<bool(std::uint64_t, std::uint64_t)>& direct);
  // Marks every registration of the domain so that no grant holds any more, and waits for peers in the
  // middle of an access (false: longer than the limit); or takes the marks away.
  bool mark_suspended(std::uint16_t domain, bool on, const std::function<bool(std::uint32_t)>& alive,
                      std::int64_t limit_ns);
  bool drain_range(std::uint64_t begin, std::uint64_t end, const std::function<bool(std::uint32_t)>& alive,
                   std::int64_t limit_ns);

  // What a current registration covers, in pages, piece by piece. Empty when there is none at `index`.
  std::vector<Range> ranges_of(std::uint32_t index) const;
  RegionState state_of(std::uint32_t index) const;
  void set_state(std::uint32_t index, RegionState from, RegionState to);

  std::uint32_t in_use() const;
  std::uint32_t capacity() const { return kMaxRegions; }

 private:
  bool wait_until_untouched(const RegionSet& regions, const std::function<bool(std::uint32_t)>& alive,
                            std::int64_t limit_ns);
  void wait_for_copies(std::uint32_t index, const Peers& peers);
  void release(std::uint16_t index);
  void give_back(std::uint16_t index);
  void reclaim_stalled();
  RegionSet overlapping(std::uint64_t begin, std::uint64_t end) const;
  bool is_space(std::uint32_t index) const {
    return (control::flags(view_.region(index).control.load(std::memory_order_relaxed)) & kSpace) != 0;
  }

  const NicView view_;
  HazardBoard* const board_;
  const std::function<std::uint64_t(std::uint64_t)> arena_alloc_;
  const std::function<void(std::uint64_t, std::uint64_t)> arena_free_;
  ExtentMap extents_;
  std::atomic<std::uint32_t> space_count_{0};                          // entries that spaces_ names
  std::array<std::atomic<std::uint64_t>, kMaxRegions / 64> spaces_{};  // entries of the whole space
  mutable Lock<LockRank::registrations> mu_;
  std::vector<std::uint16_t> free_;  // a ring, guarded by mu_
  std::size_t free_head_ = 0;
  std::size_t free_count_ = 0;
  std::vector<std::uint16_t> generations_;  // guarded by mu_
  std::vector<std::uint16_t> stalled_;      // removed while a peer was stalled in them, guarded by mu_
  std::vector<bool> held_;                  // guarded by mu_
};

}  // namespace orrery::nic
