// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/wait.hpp"
#include "emu/memory/address_space.hpp"
#include "emu/memory/extent_table.hpp"
#include "emu/memory/map_query.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>

#include <signal.h>

namespace orrery::memory {

// Everything that a switch, the fault handler and the fork handlers read and write: one block of pages of our
// own that is never adopted, so that none of them can wait at, or miss, a page that is being switched.
//
// Threads and locks: `switching` is held for one chunk's switch, for reap and from a fork's beginning to its
// end; never taken by interposed calls (an allocator may call those under a lock that fork wants). `table`
// guards extents, pins and the file pages of memory that is being unmapped; it is a leaf, held for system
// calls on our own pages only.
struct ProcessState {
  ProcessState(std::span<Extent> table_storage, std::span<Extent> fork_storage, std::span<Range> live_storage)
      : extents(table_storage), fork_extents(fork_storage), live(live_storage) {}

  // Constant after create.
  Options options;
  Range own;      // this block
  int file = -1;  // the memory file
  std::uint64_t inode = 0;
  std::uint32_t dev_major = 0;
  std::uint32_t dev_minor = 0;
  std::uint32_t device_minor = UINT32_MAX;  // of the file system of /dev
  int userfault = -1;
  bool userfault_shared = false;       // can write-protect pages of the file too
  bool userfault_unpopulated = false;  // marks pages that are not there yet (Linux 6.4)
  int pagemap = -1;
  Blocker blocker = Blocker::protect;
  std::uint64_t main_stack = 0;  // an address in it
  MapQuery map_query;

  std::mutex switching;
  std::mutex table;

  // Guarded by `table`.
  ExtentTable extents;
  std::array<Range, 64> pins{};  // asked MADV_DONTFORK for; the oldest are overwritten
  std::atomic<std::uint32_t> pin_count{0};

  // The chunk being switched: set under both locks before writers are held off, ended under `switching`.
  // `sequence` is odd meanwhile. Readers: the fault handler, interposed calls and waits for the switch.
  FutexWord sequence{0};
  std::atomic<std::uint64_t> active_begin{0};
  std::atomic<std::uint64_t> active_end{0};

  // Fork: guarded by `switching`.
  std::span<Extent> fork_extents;  // what the child finds, copied before the fork
  std::uint32_t fork_count = 0;
  int fork_pipe[2] = {-1, -1};
  bool fork_signal_was_blocked = false;
  std::atomic<ForkMode> fork_mode{ForkMode::part_copy};
  const std::uint32_t* parent_mark = nullptr;  // 1 here, 0 in any child (MADV_WIPEONFORK)
  std::atomic<bool> child_mapped{false};
  bool child_closed = false;
  std::uint64_t child_lost = 0;  // bytes whose place was taken in the child

  // Reap: guarded by `switching`.
  std::span<Range> live;
  std::uint64_t adopted_since_reap = 0;
  std::int64_t next_forced_reap_ns = 0;

  // Counters: any thread, relaxed.
  std::atomic<std::uint64_t> adoptions{0}, releases{0}, failures{0}, switch_ns_total{0}, switch_ns_max{0},
      bytes_punched{0}, faults_waited{0};
  std::array<std::atomic<std::uint64_t>, kObstacleCount> refused{};

  bool in_child() const { return *parent_mark == 0; }
  bool is_ours(const Mapping& mapping) const {
    return mapping.shared && mapping.inode == inode && mapping.dev_minor == dev_minor &&
           mapping.dev_major == dev_major;
  }
};

// The handlers of one signal that ours came in front of; it hands on to the last. A new one goes to the next
// slot before `last` names it: a handler that runs meanwhile reads a whole one.
struct HandlerChain {
  std::array<struct sigaction, 8> slots{};
  std::atomic<std::uint32_t> last{0};

  struct sigaction& target() {
    return slots[last.load(std::memory_order_acquire) % slots.size()];
  }
};

// What must outlive the state: the pointer to it and the handlers that ours chain to. A page of its own in
// our data segment, never adopted.
struct alignas(kPageBytes) HandlerPage {
  std::atomic<ProcessState*> state{nullptr};
  HandlerChain segment_faults;  // SIGSEGV
  HandlerChain bus_faults;      // SIGBUS
  // Not through the linkage table: its page may be missing in a child.
  long (*system_call)(long, ...) = nullptr;
  int* (*errno_location)() = nullptr;
};
extern HandlerPage g_handler_page;
static_assert(sizeof(HandlerPage) == kPageBytes);

inline ProcessState* current_state() { return g_handler_page.state.load(std::memory_order_acquire); }

// Maps the pages and constructs the state in them; null without memory. `extents`: capacity of the table.
ProcessState* make_state(std::uint32_t extents);
void destroy_state(ProcessState* state);

// Waits until no chunk that overlaps `range` is being switched. REQUIRES: the table lock is not held.
void await_switch(ProcessState& state, Range range);

// Under the table lock: empties the file's pages of what was adopted in `range` and forgets it.
void forget_extents(ProcessState& state, Range range);

// The first reason, if any, why `range`, inside `mapping`, stays out of the file. `all_threads`: look at
// every thread's stack, not only at the caller's.
Obstacle obstacle_of(ProcessState& state, const Mapping& mapping, Range range, bool all_threads);

// Locks the table at a moment when no overlapping chunk is being switched.
class QuietTable {
 public:
  QuietTable(ProcessState& state, Range range);
  ~QuietTable() { state_.table.unlock(); }
  QuietTable(const QuietTable&) = delete;
  QuietTable& operator=(const QuietTable&) = delete;

 private:
  ProcessState& state_;
};

}  // namespace orrery::memory
