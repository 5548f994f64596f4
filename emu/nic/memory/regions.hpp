// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/nic/memory/registration_table.hpp"
#include "emu/nic/state/access.hpp"
#include "emu/nic/state/arena.hpp"
#include "emu/nic/state/host_services.hpp"
#include "emu/nic/state/lock_rank.hpp"

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>

namespace orrery::nic {

class CompletionQueue;
struct Port;

// The memory of this process that its peers may reach: what is registered, what of it lies in the memory
// file, and the owner's side of moving it there and of taking it back.
//
// Threads: any; adopt_range() and adopt_wanted(): the service thread. Locks: `moving`, and the table's own.
// Invariants: (1) after a registration is removed no peer touches its memory; (2) pages that are being moved
// are written by their owner alone.
// Usage: auto key = regions.register_region(port, address, length, 0, nullptr);
//        regions.deregister(key.value());
class Regions {
 public:
  struct Options {
    std::int64_t drain_limit_ns = 100'000'000;  // how long a stalled peer can delay a deregistration
    bool may_adopt = true;
    bool eager_adoption = false;
  };
  // What it needs of the parts of the NIC that touch the memory for peers.
  struct Hooks {
    std::function<void()> await_frames;  // returns when no frame is being applied that was before the call
    std::function<void()> take_frames;   // applies the frames that have arrived
    std::function<void(std::uint64_t begin, std::uint64_t end)> flush_amo_cache;
    std::function<void()> removed;  // a registration is gone: returns when nothing stores there any more
  };

  Regions(HostServices& services, NicView view, wire::ProcessSlot self, Arena& arena, const Options& options,
          Hooks hooks);
  Regions(const Regions&) = delete;
  Regions& operator=(const Regions&) = delete;

  // Makes [address, address + length) reachable by the domain's other ports, by pages. `queue`, if any, gets
  // an event for each operation that asks for a remote event. Not blocking but for system calls.
  // Errors: invalid_param (length 0, not mapped), permission (not writable and not kReadOnly),
  // no_resource (4,096 registrations are in use). `held`: in an entry that is held (table()).
  Result<MemKey> register_region(const Port& port, std::uint64_t address, std::uint64_t length,
                                 std::uint8_t flags, CompletionQueue* queue, const HeldEntry& held = {});
  // The same for a list of segments that are addressed as one, by offsets from 0.
  Result<MemKey> register_segments(const Port& port, std::span<const Segment> segments, std::uint8_t flags,
                                   CompletionQueue* queue);
  // The same for the whole address space, mapped or not, now and later: an access to what is not mapped, or
  // may not be written, ends in `bounds` for the process that asked. What is hot is moved into the memory
  // file by extents of 2 MiB, where the environment lets it (adoptable_around). Errors: no_resource.
  Result<MemKey> register_space(const Port& port, std::uint8_t flags, CompletionQueue* queue);
  // The program is about to take pages away, or their right to be written: none is reached directly from when
  // leave_pages() returns until left_pages(). Waits for peers as deregister(). Any thread; allocates nothing.
  ExtentMap::Token leave_pages(std::uint64_t begin, std::uint64_t end);
  void left_pages(ExtentMap::Token token) { table_.extents().left(token); }
  // After it returns no peer touches the memory any more, and the key is refused everywhere. Waits for peers
  // that are in the middle of an access, at most drain_limit_ns; a peer that is stalled longer than that is
  // cut off from the pages instead. Errors: invalid_handle.
  Status deregister(const MemKey& key);
  // Registrations that name the queue raise no events any more; waits for peers that are raising one. False:
  // one of them still may.
  bool forget_queue(std::uint32_t queue);

  // Moves whole pages of ours into the memory file; `registered`: as long as a registration has some of them.
  // Service thread only. Errors: HostServices::adopt's; timeout where no registration has any more.
  Status adopt_range(std::uint64_t begin, std::uint64_t end, bool registered);
  // Moves what peers have asked for. Service thread only.
  void adopt_wanted();

  // Whether `key` is ours and covers the range. Errors: invalid_handle, protection, permission, bounds.
  Errc check_local(std::uint16_t domain, const MemKey& key, std::uint64_t address, std::uint64_t length,
                   bool writes) const {
    if (!key.valid() || key.index >= kMaxRegions || key.process != self_) [[unlikely]]
      return Errc::invalid_handle;
    const MrtEntry& entry = view_.region(key.index);
    const std::uint64_t word = entry.control.load(std::memory_order_acquire);
    if (((control::flags(word) ^ key.flags) & kSegmented) != 0) [[unlikely]]
      return Errc::invalid_handle;
    return check_access(entry, word, key.generation, domain, address, length, writes);
  }
  // What is registered here under a number (state/mdh.hpp), and what an address means there.
  MemKey own_by_number(std::uint16_t domain, const MemKey& key, std::uint64_t* address) const;

  // Where byte `offset` of one of our own segmented registrations lies.
  struct Piece {
    std::byte* at = nullptr;  // null: the registration is gone
    std::uint64_t bytes = 0;  // contiguous from there
  };
  Piece piece(const MemKey& key, std::uint64_t offset) const;
  // Copies from, or to, what lies at `offset` of one of them. False: the registration is gone.
  bool gather(const MemKey& key, std::uint64_t offset, std::span<std::byte> bytes) const;
  bool scatter(const MemKey& key, std::uint64_t offset, std::span<const std::byte> bytes) const;

  RegistrationTable& table() { return table_; }

 private:
  // Errors: not_done (it says direct, and pages were cut off since `cuts_` was `seen`).
  Result<MemKey> insert(RegistrationTable::Entry entry, std::uint32_t seen);
  void adopt_region(std::uint32_t index);
  void adopt_extent(std::uint64_t page);
  void watch(std::uint32_t index);
  void cut_off(std::uint64_t begin, std::uint64_t end);
  void set_cutting(RegistrationTable::Range range);
  void await_switch(std::uint32_t region);
  bool alive(std::uint32_t slot) { return services_.slot_alive(static_cast<wire::ProcessSlot>(slot)); }

  HostServices& services_;
  const NicView view_;
  const wire::ProcessSlot self_;
  const Options options_;
  clock::Clock* const clock_;
  const Hooks hooks_;
  RegistrationTable table_;
  Lock<LockRank::moving> moving_mu_;
  std::condition_variable_any switched_;         // with moving_mu_
  RegistrationTable::Range moving_, switching_;  // being adopted; those moved right now. By moving_mu_
  RegistrationTable::Range cutting_;             // being cut off. By moving_mu_
  std::atomic<std::uint32_t> cuts_{0};           // beginnings and ends of those; written under moving_mu_
};

}  // namespace orrery::nic
