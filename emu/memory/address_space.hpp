// SPDX-License-Identifier: BSD-3-Clause
// Copyright 2026 the Orrery authors
#pragma once

#include "emu/base/status.hpp"
#include "emu/memory/range.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace orrery::memory {

struct ProcessState;

// How writers are held off while a page moves into the file. docs/memory.md, "The switch".
enum class Blocker : std::uint8_t {
  userfault,       // userfaultfd, privileged: writes of threads and of system calls wait
  userfault_user,  // userfaultfd, user mode only: writes of threads wait; system calls are retried by us or
                   // see EFAULT
  protect,         // mprotect and a SIGSEGV handler that waits; same limit for system calls
};

// What a child made by fork(2) finds at adopted addresses (uGNI's CDM_MODE_FORK_*).
enum class ForkMode : std::uint8_t {
  no_copy,    // nothing: access faults
  part_copy,  // default: a snapshot of extents up to 32 MiB and of the first and last page of larger ones;
              // the rest of those is mapped privately, so pages that the child has not touched follow the
              // parent
  full_copy,  // a snapshot of everything
};

struct Options {
  bool use_userfault = true;        // false: as in a container whose seccomp filter refuses it
  bool use_map_query = true;        // false: as on a kernel without PROCMAP_QUERY
  std::uint32_t extent_budget = 0;  // most extents in the file at once; 0 = a quarter of vm.max_map_count
  ForkMode fork_mode = ForkMode::part_copy;
};

// Called by AddressSpace::adopt and release around each chunk, on the calling (service) thread, with no lock
// of the address space held. Implemented by emu/nic.
class SwitchGuard {
 public:
  virtual ~SwitchGuard() = default;
  // Before a chunk is write-protected. Must return only when no peer writes to the chunk by cross-memory
  // attach any more (attach pins pages first and copies later: such a write would be lost), and none will
  // until after_switch. Not ok stops the adoption with that code; what was switched stays switched.
  virtual Status before_switch(Range chunk) = 0;
  // `switched` tells whether the chunk now lies in the file (adopt) or out of it (release).
  virtual void after_switch(Range chunk, bool switched) = 0;
};

// A guard that has nothing to drain.
class NoPeers final : public SwitchGuard {
 public:
  Status before_switch(Range) override { return {}; }
  void after_switch(Range, bool) override {}
};

struct Stats {
  Blocker blocker = Blocker::protect;
  bool map_query = false;     // PROCMAP_QUERY works here
  std::uint32_t extents = 0;  // ranges in the file, neighbours joined
  std::uint32_t extent_budget = 0;
  std::uint64_t bytes_in_file_range = 0;  // virtual bytes of those extents
  std::uint64_t file_blocks_bytes = 0;    // what the file really occupies (st_blocks)
  std::uint64_t adoptions = 0;            // chunks switched in, since create
  std::uint64_t releases = 0;             // chunks switched out
  std::uint64_t failures = 0;             // adoptions that ended in an error
  std::uint64_t switch_ns_total = 0;      // time writers could be held off, all chunks
  std::uint64_t switch_ns_max = 0;        // longest for one chunk
  std::uint64_t bytes_punched = 0;        // returned to the system by reap() and by interposed calls
  std::uint64_t faults_waited = 0;        // SIGSEGV faults that our handler resolved by waiting
  std::array<std::uint64_t, kObstacleCount> refused{};  // adoptions refused, by obstacle
};

// The owner's side of the memory file: a sparse memfd in which file offset = virtual address. One per process
// (the second create() gives Errc::invalid_state; a child of fork may make its own): the SIGSEGV handler, the
// fork handlers and the interposed calls act on it.
//
// Ownership: owns the file descriptor, the userfaultfd and the table of extents, which lie in pages of their
// own that are never adopted. Destroying it gives all adopted memory private pages again (REQUIRES: no other
// call runs); a process that exits need not. Threads: inspect, allocate, deallocate, retire, stats: any.
// adopt, release, reap: the service thread. Invariants:
//  1. The kernel's list of mappings is the truth; the table of extents is a hint that reap() corrects.
//  2. A page is in the file and at its own address, or not in the file; never in between when no call runs.
//  3. While writers are held off no lock that the program can hold is taken and nothing is allocated.
//  4. A failed switch leaves the page as it was: same contents, same protection.
// Usage: auto space = AddressSpace::create({}); space.value()->adopt(address, length, guard);
class AddressSpace {
 public:
  // The file reaches over all of user space: 2^47 bytes.
  static constexpr std::uint64_t kSpan = std::uint64_t{1} << 47;

  // Makes the memory file. Where RLIMIT_FSIZE or the kernel allows none, the object is still made, file() is
  // -1, everything goes by frame and one warning says why. Errc::invalid_state: there is one already;
  // Errc::no_memory: no pages for our own state.
  static Result<std::unique_ptr<AddressSpace>> create(const Options& options);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;
  // The descriptor to hand to peers (sealed against shrinking and growing); -1 when there is none. Owned
  // here.
  int file() const;
  // Bytes the file reaches over; 0 when there is none.
  std::uint64_t span() const;

  // What the kernel says of [address, address + length): mapped, protection, and whether all of it is in the
  // file and still our mapping. Errc::bounds: length 0 or wrap-around. Does not look at other threads' stacks
  // (adopt does). Never blocks; 0.4 us and one system call per mapping where PROCMAP_QUERY exists
  // (Linux 6.11), else it reads /proc/self/maps.
  Result<RangeInfo> inspect(std::uint64_t address, std::uint64_t length) const;

  // Moves the pages of [address, address + length) into the file, chunk by chunk, keeping addresses, contents
  // and protection. Other threads may write meanwhile; nothing is lost. Pages already there are skipped. ok:
  // all of it is in the file. Errc::unsupported: `*obstacle` (if given) says why it can never be;
  // Errc::no_resource: extent budget or the kernel's mapping limit; Errc::no_memory; Errc::invalid_state: in
  // a forked child, another userfaultfd has the range, or (Blocker::protect) a thread blocks SIGSEGV: may
  // go another time; the guard's own code. After an error a prefix of the range may be in the file (each
  // chunk wholly); use inspect.
  Status adopt(std::uint64_t address, std::uint64_t length, SwitchGuard& guard, Obstacle* obstacle = nullptr);

  // The reverse: gives [address, address + length) private memory with the same contents again. Peers that
  // still hold a window then write to orphaned file pages, which reap() frees. The way out when a stalled
  // peer may still store into a range that is being deregistered.
  Status release(std::uint64_t address, std::uint64_t length, SwitchGuard& guard);

  // The pages around `page`, within `bounds`, that can be adopted, or are, and can go away or become
  // read-only only by calls that tell the listener (unmapping.hpp); empty: not even that one. Service thread.
  Range adoptable_around(std::uint64_t page, Range bounds) const;

  // Returns once no switch of a chunk that overlaps the range is under way; call before deregistering.
  // Bounded by one chunk (docs/memory.md, "Bounds").
  void settle(std::uint64_t address, std::uint64_t length);

  // Memory born in the file: zeroed, page-aligned at least, direct from the first byte. `alignment`: a power
  // of two. Blocks of 2 MiB and more are aligned to 2 MiB and asked to be huge pages. Errc::unsupported
  // without a file; Errc::no_memory; Errc::invalid_param.
  Result<void*> allocate(std::size_t bytes, std::size_t alignment = kPageBytes);
  // The same at that address, a multiple of the page size. Errc::no_match: something lies there already.
  Result<void*> allocate_at(std::uint64_t at, std::size_t bytes);
  // Gives it back, to the system too. REQUIRES: exactly a value and size of allocate.
  void deallocate(void* block, std::size_t bytes);

  // Frees file pages whose mapping is gone (unmapped, replaced, released) and corrects the table of extents.
  // adopt runs it by itself when 64 MiB have been adopted since the last time or the budget is used up;
  // the service thread may when idle.
  void reap();

  // Chosen by CDM_MODE_FORK_* of uGNI at any time before the fork.
  void set_fork_mode(ForkMode mode);

  Stats stats() const;

 private:
  explicit AddressSpace(ProcessState& state) : state_(state) {}
  Result<void*> move_in(std::uint64_t at, std::uint64_t size);
  ProcessState& state_;  // in pages of its own
};

}  // namespace orrery::memory
